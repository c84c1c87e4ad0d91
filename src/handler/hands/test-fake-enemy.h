/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-enemy: the real hands at work in a pod whose processes put links, pipes, sockets,
 * devices, directories and mounts in the place of everything that the hands touch, as fast as they
 * can. Whatever an operation answers: nothing beside the pod may change. Needs root. For test
 * programs only.
 */

#pragma once

#include <sched.h>
#include <sys/resource.h>

#include "handler/hands/client.h"
#include "handler/hands/test-fake-disk.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/linux/mount-tree.h"
#include "lib/linux/safe-path.h"

#define ENEMY_N_OPERATIONS 10000
#define ENEMY_EMPTY_DIRS   "pods/" FAKE_POD_UID "/volumes/kubernetes.io~empty-dir"

/* What is attacked. */
typedef struct {
    const char *path; /* below FakePod.dir */
    const char *bait; /* below outside: what half of the links put there lead to; NULL: "dir" */
    bool is_made;     /* by the hands, when there is none: it is not put back */
} EnemyPlace;

/* What is asked of the hands. */
typedef struct {
    ChHandsRequest request;
    const void *bytes;
    gsize n_bytes;
    bool is_of_node; /* it is about no pod by name */
} EnemyOperation;

typedef struct Enemy {
    FakePod pod;
    char *outside;  /* owned; what nobody may touch: beside the pod, of the same file system */
    int outside_fd; /* listens at outside/socket */
    const EnemyPlace *places;
    gsize n_places;
    const char *const *shadowed; /* directories of the pod that something is mounted over; NULL */
    const EnemyOperation *operations;
    gsize n_operations;
    guint n_asked;                                             /* in all; 0: ENEMY_N_OPERATIONS */
    void (*describe)(const struct Enemy *enemy, GString *out); /* (nullable): more of outside */
    ChHands *hands;
    uint64_t handle;
    ChFileId pipe; /* that was opened last */
} Enemy;

typedef void (*EnemyAttack)(const Enemy *enemy, guint32 seed);

/* --- what its processes do --- */

#define ENEMY_N_VARIANTS 24 /* half of them baits */

static inline bool
enemy_put(const EnemyPlace *place, const char *path, const char *outside, int variant)
{
    static const char *const targets[] = {
        "secret", /* a file */
        "dir",    /* a directory, with what is looked for in it */
        "socket",
        "new", /* who creates what it leads to, creates it there */
        "device",
        "block",
    };
    g_autofree char *target = NULL;

    if (variant < (int)G_N_ELEMENTS(targets)) {
        target = g_build_filename(outside, targets[variant], NULL);
        return symlink(target, path) == 0;
    }
    switch (variant) {
    case 6: /* up and out */
        return symlink("../../../../../../../../../../../../../etc/passwd", path) == 0;
    case 7: /* a magic link */
        target = g_strdup_printf("/proc/self/root%s/dir", outside);
        return symlink(target, path) == 0;
    case 8:
        return mkfifo(path, 0666) == 0;
    case 9:
        return mknod(path, S_IFCHR | 0666, makedev(1, 3)) == 0;
    case 10:
        return mkdir(path, 0777) == 0;
    case 11:
        return mknod(path, S_IFREG | 0666, 0) == 0;
    default:
        target = g_build_filename(outside, place->bait != NULL ? place->bait : "dir", NULL);
        return symlink(target, path) == 0;
    }
}

static inline void
enemy_clear_name(const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
        test_tree_remove(path);
    (void)unlink(path);
}

/* Puts what was there back in its place; what was made there meanwhile goes. */
static inline void
enemy_restore(const char *saved, const char *path)
{
    if (rename(saved, path) == 0 || errno == ENOENT)
        return;
    enemy_clear_name(path);
    (void)rename(saved, path);
}

static inline void
enemy_wait(GRand *rand)
{
    for (int i = g_rand_int_range(rand, 0, 20); i > 0; i--)
        sched_yield();
}

static inline void
enemy_swap_for_ever(const Enemy *enemy, guint32 seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);

    for (;;) {
        const EnemyPlace *place =
            &enemy->places[g_rand_int_range(rand, 0, (gint32)enemy->n_places)];
        g_autofree char *path = g_build_filename(enemy->pod.dir, place->path, NULL);
        g_autofree char *saved = g_strconcat(path, ".real", NULL);

        if (!place->is_made)
            enemy_restore(saved, path);
        if ((place->is_made ? unlink(path) : rename(path, saved)) < 0 && errno != ENOENT)
            continue; /* mounted on */
        if (enemy_put(place, path, enemy->outside, g_rand_int_range(rand, 0, ENEMY_N_VARIANTS))) {
            enemy_wait(rand);
            if (unlink(path) < 0)
                (void)rmdir(path);
        }
        if (!place->is_made)
            enemy_restore(saved, path);
        sched_yield();
    }
}

/* In the launcher's mount namespace: what the pod has elsewhere shadows what the hands look for. */
static inline void
enemy_shadow_for_ever(const Enemy *enemy, guint32 seed)
{
    const gsize n_shadowed = g_strv_length((GStrv)enemy->shadowed);
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autofree char *mounts = g_strdup_printf("/proc/%d/ns/mnt", (int)enemy->pod.pid);
    g_autofree char *shadow = fake_pod_path(&enemy->pod, "shadow");
    ch_autofd int namespace_fd = open(mounts, O_RDONLY | O_CLOEXEC);
    ch_autofd int shadow_fd = -EBADF;

    fake_pod_must(setns(namespace_fd, CLONE_NEWNS) == 0, "join the launcher's mounts");
    shadow_fd = open(shadow, O_PATH | O_CLOEXEC);
    for (;;) {
        const char *place = enemy->shadowed[g_rand_int_range(rand, 0, (gint32)n_shadowed)];
        g_autofree char *path = fake_pod_path(&enemy->pod, place);
        ch_autofd int tree_fd = ch_mount_tree_clone(shadow_fd);
        ch_autofd int target_fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (target_fd >= 0 && ch_mount_tree_attach(tree_fd, target_fd) == 0) {
            enemy_wait(rand);
            (void)ch_mount_detach_root(tree_fd); /* whatever its name is by now */
        }
        sched_yield();
    }
}

static inline pid_t
enemy_start_attack(const Enemy *enemy, EnemyAttack attack)
{
    const guint32 seed = (guint32)g_test_rand_int();
    const pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)umask(0);
        (void)setpriority(PRIO_PROCESS, 0, 5); /* it never waits */
        attack(enemy, seed);
        _exit(0);
    }
    return pid;
}

static inline void
enemy_stop_attack(pid_t pid)
{
    int status = 0;

    g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFSIGNALED(status));
    g_assert_cmpint(WTERMSIG(status), ==, SIGKILL);
}

/* --- what is asked --- */

static inline bool
enemy_tell(const Enemy *enemy, ChHandsRequest request)
{
    request.dev = enemy->pipe.dev;
    request.ino = enemy->pipe.ino;
    return ch_hands_tell(enemy->hands, &request, NULL);
}

static inline bool
enemy_ask(Enemy *enemy, gsize which)
{
    const EnemyOperation *operation = &enemy->operations[which];
    ChHandsRequest request = operation->request;
    g_autoptr(GError) error = NULL;
    ch_autofd int fd = -EBADF;
    ChHandsReply reply = {0};
    bool done;

    if (!operation->is_of_node && (request.uid[0] == '\0' || request.image != CH_HANDS_IMAGE_NONE))
        request.handle = enemy->handle;
    request.n_bytes = (uint32_t)operation->n_bytes;
    if (request.op == CH_HANDS_OP_PIPE_CLOSE)
        return enemy_tell(enemy, request);
    done = operation->bytes == NULL
               ? ch_hands_call(enemy->hands, &request, &reply, &fd, &error)
               : ch_hands_call_with(enemy->hands, &request, operation->bytes, &reply, &fd, &error);
    if (!done) {
        g_test_message("%s: %s", ch_hands_op_name(request.op), error->message);
        g_assert_error(error, CH_ERRNO, error->code); /* never CLOSED, never TIMEOUT */
        g_assert_cmpint(error->code, !=, EPROTO);
    }
    if (done && request.op == CH_HANDS_OP_PIPE_OPEN)
        enemy->pipe = (ChFileId){reply.dev, reply.ino};
    if (done && request.op == CH_HANDS_OP_CONNECT)
        g_assert_true(
            ch_hands_tell(enemy->hands,
                          &(ChHandsRequest){.op = CH_HANDS_OP_RELEASE, .handle = reply.handle},
                          NULL));
    return done;
}

/* --- what may not change --- */

static inline void
enemy_describe(GString *out, const char *path)
{
    g_autoptr(GDir) dir = NULL;
    struct stat st;
    const char *name;

    if (lstat(path, &st) < 0)
        g_error("%s: %s", path, g_strerror(errno));
    g_string_append_printf(out,
                           "%s %lo %o %u:%u %ld %ld.%09ld\n",
                           path,
                           (unsigned long)st.st_ino,
                           st.st_mode,
                           st.st_uid,
                           st.st_gid,
                           (long)st.st_size,
                           (long)st.st_ctim.tv_sec, /* any change of the file changes it */
                           (long)st.st_ctim.tv_nsec);
    if (S_ISDIR(st.st_mode))
        dir = g_dir_open(path, 0, NULL);
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *child = g_build_filename(path, name, NULL);

        enemy_describe(out, child);
    }
}

/* What is outside, and what is mounted there. (transfer full) */
static inline char *
enemy_describe_outside(const Enemy *enemy)
{
    GString *out = g_string_new(NULL);
    g_autofree char *mounts = NULL;
    g_auto(GStrv) lines = NULL;

    enemy_describe(out, enemy->outside);
    g_assert_true(g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL));
    lines = g_strsplit(mounts, "\n", -1);
    for (gsize i = 0; lines[i] != NULL; i++)
        if (strstr(lines[i], enemy->outside) != NULL)
            g_string_append_printf(out, "%s\n", lines[i]);
    if (enemy->describe != NULL)
        enemy->describe(enemy, out);
    return g_string_free(out, FALSE);
}

static inline void
enemy_make_node(const Enemy *enemy, const char *name, mode_t mode, dev_t number)
{
    g_autofree char *path = g_build_filename(enemy->outside, name, NULL);

    g_assert_cmpint(mknod(path, mode, number), ==, 0);
}

/* After the pod, before anything is put into it. */
static inline void
enemy_make_outside(Enemy *enemy)
{
    enemy->outside = g_build_filename(enemy->pod.dir, "outside", NULL);
    test_tree_mkdir(enemy->outside, "dir");
    test_tree_write(enemy->outside, "secret", "secret");
    enemy_make_node(enemy, "device", S_IFCHR | 0600, makedev(10, 232));
    enemy_make_node(enemy, "block", S_IFBLK | 0600, makedev(482, 64));
    enemy->outside_fd = fake_pod_listen(enemy->outside, "socket");
    g_assert_cmpint(fcntl(enemy->outside_fd, F_SETFL, O_NONBLOCK), ==, 0);
}

/* --- the fight --- */

static inline void
enemy_start_hands(Enemy *enemy)
{
    const ChHandsPlaces places = {
        enemy->pod.pods_dir, "/nonexistent", enemy->pod.pods_dir, getpid()};
    const ChHandsRequest connect = {.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID};
    g_autoptr(GError) error = NULL;
    ch_autofd int fd = -EBADF;
    ChHandsReply reply;

    enemy->hands = ch_hands_start(NULL, &places, &error);
    g_assert_no_error(error);
    g_assert_true(ch_hands_call(enemy->hands, &connect, &reply, &fd, &error));
    g_assert_no_error(error);
    enemy->handle = reply.handle;
}

/* The pod and what serves it run. @attacks: up to 4 */
static inline void
enemy_fight(Enemy *enemy, const EnemyAttack *attacks, gsize n_attacks)
{
    g_autofree char *before = NULL;
    g_autofree char *after = NULL;
    pid_t attackers[4];
    const guint n_asked = enemy->n_asked != 0 ? enemy->n_asked : ENEMY_N_OPERATIONS;
    guint n_done = 0;

    g_assert_cmpuint(n_attacks, <=, G_N_ELEMENTS(attackers));
    enemy_start_hands(enemy);
    before = enemy_describe_outside(enemy);
    for (gsize i = 0; i < enemy->n_operations; i++)
        if (!enemy_ask(enemy, i))
            g_error("operation %" G_GSIZE_FORMAT " fails in a pod that is no enemy", i);

    for (gsize i = 0; i < n_attacks; i++)
        attackers[i] = enemy_start_attack(enemy, attacks[i]);
    for (guint i = 0, which = 0; i < n_asked; i++) {
        n_done += enemy_ask(enemy, which);
        which = which + 1 < enemy->n_operations ? which + 1 : 0;
    }
    for (gsize i = 0; i < n_attacks; i++)
        enemy_stop_attack(attackers[i]);
    after = enemy_describe_outside(enemy);

    g_test_message("%u of %u operations were done", n_done, n_asked);
    g_assert_cmpstr(before, ==, after);
    g_assert_cmpint(accept4(enemy->outside_fd, NULL, NULL, SOCK_CLOEXEC), ==, -1);
    g_assert_cmpint(errno, ==, EAGAIN);
    g_assert_cmpuint(n_done, >, 0);
    g_assert_cmpuint(n_done, <, n_asked);
    ch_hands_stop(enemy->hands);
}

/* After what serves the pod. */
static inline void
enemy_clear(Enemy *enemy)
{
    close(enemy->outside_fd);
    g_free(enemy->outside);
    fake_pod_clear(&enemy->pod);
}

/* For main(): what is mounted here goes with this program. */
static inline void
enemy_leave_node(void)
{
    if (geteuid() != 0)
        return;
    fake_pod_must(unshare(CLONE_NEWNS) == 0, "unshare");
    fake_pod_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "make private");
}
