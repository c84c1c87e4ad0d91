/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The real hands at work in a pod whose processes put links, pipes, sockets, devices, directories
 * and mounts in the place of everything that the hands touch, as fast as they can. Whatever an
 * operation answers: nothing beside the pod may change.
 */

#include <sched.h>
#include <sys/resource.h>

#include "handler/hands/client.h"
#include "handler/hands/test-fake-disk.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/linux/mount-tree.h"

#define N_OPERATIONS 10000

typedef struct {
    FakePod pod;
    FakeDisk disk;  /* serves disk_0.sock and kernel-boot.sock */
    FakeDisk boot;  /* the latter */
    char *outside;  /* what nobody may touch: beside the pod, of the same file system */
    int outside_fd; /* listens at outside/socket */
    ChHands *hands;
    uint64_t handle;
} Stage;

/* --- what is attacked, below FakePod.dir --- */

#define EMPTY_DIRS "pods/" FAKE_POD_UID "/volumes/kubernetes.io~empty-dir"
static const char *const places[] = {
    EMPTY_DIRS,
    EMPTY_DIRS "/sockets",
    EMPTY_DIRS "/sockets/launcher-sock",
    EMPTY_DIRS "/sockets/launcher-unresponsive",
    EMPTY_DIRS "/container-disks",
    EMPTY_DIRS "/container-disks/disk_0.sock",
    EMPTY_DIRS "/container-disks/disk_0.img",
    EMPTY_DIRS "/container-disks/kernel-boot",
    EMPTY_DIRS "/container-disks/kernel-boot/vmlinuz",
    EMPTY_DIRS "/container-disks/kernel-boot.sock",
    "image/disk",
    "image/disk/file",
    "image/boot",
    "image/boot/vmlinuz",
    "root/run",
    "root/run/kubevirt",
    "root/run/kubevirt/domain-notify-pipe.sock",
    "root/run/kubevirt-private",
    "root/run/kubevirt-private/vif-cache-eth0.json",
    "root/run/kubevirt-private/secret-disks/v.iso",
    "root/dev",
    "root/dev/kvm",
    "root/dev/net",
    "root/dev/net/tun",
    "root/var/run",
};

static bool
put_hostile(const char *path, const char *outside, int variant)
{
    g_autofree char *target = NULL;

    switch (variant) {
    case 0: /* a file */
        target = g_build_filename(outside, "secret", NULL);
        break;
    case 1: /* a directory, with what is looked for in it */
        target = g_build_filename(outside, "dir", NULL);
        break;
    case 2: /* up and out */
        target = g_strdup("../../../../../../../../../../../../../etc/passwd");
        break;
    case 3: /* a magic link */
        target = g_strdup_printf("/proc/self/root%s/dir", outside);
        break;
    case 4:
        target = g_build_filename(outside, "socket", NULL);
        break;
    case 5: /* who creates what it leads to, creates it there */
        target = g_build_filename(outside, "new", NULL);
        break;
    case 6:
        target = g_build_filename(outside, "device", NULL);
        break;
    case 7:
        return mkfifo(path, 0666) == 0;
    case 8:
        return mknod(path, S_IFCHR | 0666, makedev(1, 3)) == 0;
    case 9:
        return mkdir(path, 0777) == 0;
    default:
        return mknod(path, S_IFREG | 0666, 0) == 0;
    }
    return symlink(target, path) == 0;
}
#define N_VARIANTS 11

/* Puts what was there back in its place; what was made there meanwhile goes. */
static void
restore(const char *saved, const char *path)
{
    struct stat st;

    if (rename(saved, path) == 0 || errno == ENOENT)
        return;
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
        test_tree_remove(path);
    (void)unlink(path);
    (void)rename(saved, path);
}

static void
swap_for_ever(const Stage *stage, guint32 seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);

    for (;;) {
        const char *place = places[g_rand_int_range(rand, 0, G_N_ELEMENTS(places))];
        g_autofree char *path = g_build_filename(stage->pod.dir, place, NULL);
        g_autofree char *saved = g_strconcat(path, ".real", NULL);

        restore(saved, path);
        if (rename(path, saved) < 0 && errno != ENOENT)
            continue; /* mounted on */
        if (put_hostile(path, stage->outside, g_rand_int_range(rand, 0, N_VARIANTS))) {
            for (int i = g_rand_int_range(rand, 0, 20); i > 0; i--)
                sched_yield();
            if (unlink(path) < 0)
                (void)rmdir(path);
        }
        restore(saved, path);
        sched_yield();
    }
}

/* In the launcher's mount namespace: what the pod has elsewhere shadows what the hands look for. */
static void
shadow_for_ever(const Stage *stage, guint32 seed)
{
    static const char *const shadowed[] = {
        "run/kubevirt", "run/kubevirt/sockets", "run/kubevirt-private", "dev", "dev/net"};
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autofree char *mounts = g_strdup_printf("/proc/%d/ns/mnt", (int)stage->pod.pid);
    g_autofree char *shadow = fake_pod_path(&stage->pod, "shadow");
    ch_autofd int namespace_fd = open(mounts, O_RDONLY | O_CLOEXEC);
    ch_autofd int shadow_fd = -EBADF;

    fake_pod_must(setns(namespace_fd, CLONE_NEWNS) == 0, "join the launcher's mounts");
    shadow_fd = open(shadow, O_PATH | O_CLOEXEC);
    for (;;) {
        const char *place = shadowed[g_rand_int_range(rand, 0, G_N_ELEMENTS(shadowed))];
        g_autofree char *path = fake_pod_path(&stage->pod, place);
        ch_autofd int tree_fd = ch_mount_tree_clone(shadow_fd);
        ch_autofd int target_fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (target_fd >= 0 && ch_mount_tree_attach(tree_fd, target_fd) == 0) {
            for (int i = g_rand_int_range(rand, 0, 20); i > 0; i--)
                sched_yield();
            (void)ch_mount_detach_root(tree_fd); /* whatever its name is by now */
        }
        sched_yield();
    }
}

static pid_t
start_attacker(const Stage *stage, void (*attack)(const Stage *stage, guint32 seed))
{
    const guint32 seed = (guint32)g_test_rand_int();
    const pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)umask(0);
        (void)setpriority(PRIO_PROCESS, 0, 5); /* it never waits */
        attack(stage, seed);
        _exit(0);
    }
    return pid;
}

static void
stop_attacker(pid_t pid)
{
    int status = 0;

    g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFSIGNALED(status));
    g_assert_cmpint(WTERMSIG(status), ==, SIGKILL);
}

/* --- what is asked --- */

static bool
call(const Stage *stage, const ChHandsRequest *request, const char *bytes)
{
    g_autoptr(GError) error = NULL;
    ch_autofd int fd = -EBADF;
    ChHandsReply reply = {0};
    ChHandsRequest sized = *request;
    const bool done = bytes == NULL
                          ? ch_hands_call(stage->hands, request, &reply, &fd, &error)
                          : (sized.n_bytes = (uint32_t)strlen(bytes),
                             ch_hands_call_with(stage->hands, &sized, bytes, &reply, &fd, &error));

    if (!done) {
        g_test_message("%s: %s", ch_hands_op_name(request->op), error->message);
        g_assert_error(error, CH_ERRNO, error->code); /* never CLOSED, never TIMEOUT */
        g_assert_cmpint(error->code, !=, EPROTO);
    }
    if (done && request->op == CH_HANDS_OP_CONNECT)
        g_assert_true(
            ch_hands_tell(stage->hands,
                          &(ChHandsRequest){.op = CH_HANDS_OP_RELEASE, .handle = reply.handle},
                          NULL));
    return done;
}

#define DISK .uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_DISK
#define BOOT .uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_BOOT
static const struct {
    ChHandsRequest request;
    const char *bytes;
} operations[] = {
    {{.op = CH_HANDS_OP_LOOK, .uid = FAKE_POD_UID}, NULL},
    {{.op = CH_HANDS_OP_MARK, .uid = FAKE_POD_UID}, NULL},
    {{.op = CH_HANDS_OP_PROBE, .uid = FAKE_POD_UID}, NULL},
    {{.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID}, NULL},
    {{.op = CH_HANDS_OP_RECONNECT}, NULL},
    {{.op = CH_HANDS_OP_PIPE_OPEN, .flags = CH_HANDS_NON_ROOT}, NULL},
    {{.op = CH_HANDS_OP_DEVICES_OWN, .devices = CH_HANDS_DEVICE_KVM | CH_HANDS_DEVICE_TUN}, NULL},
    {{.op = CH_HANDS_OP_DHCP_STORE, .name = "eth0"}, "{}"},
    {{.op = CH_HANDS_OP_IMAGE_STAT, .image = CH_HANDS_IMAGE_SECRET, .uid = "ns", .name = "v"},
     NULL},
    {{.op = CH_HANDS_OP_SOURCE_LOOK, DISK}, NULL},
    {{.op = CH_HANDS_OP_TARGET_LOOK, DISK}, NULL},
    {{.op = CH_HANDS_OP_MOUNT, DISK, .source_uid = FAKE_POD_UID}, "disk/file"},
    {{.op = CH_HANDS_OP_UNMOUNT, DISK}, NULL},
    {{.op = CH_HANDS_OP_MOUNT, BOOT, .source_uid = FAKE_POD_UID}, "boot/vmlinuz"},
    {{.op = CH_HANDS_OP_UNMOUNT, BOOT}, NULL},
};

static bool
ask(const Stage *stage, gsize which)
{
    ChHandsRequest request = operations[which].request;

    if (request.uid[0] == '\0' || request.image != CH_HANDS_IMAGE_NONE)
        request.handle = stage->handle;
    return call(stage, &request, operations[which].bytes);
}

/* --- what may not change --- */

static void
describe(GString *out, const char *path)
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

        describe(out, child);
    }
}

/* What is outside, and what is mounted there. (transfer full) */
static char *
describe_outside(const Stage *stage)
{
    GString *out = g_string_new(NULL);
    g_autofree char *mounts = NULL;
    g_auto(GStrv) lines = NULL;

    describe(out, stage->outside);
    g_assert_true(g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL));
    lines = g_strsplit(mounts, "\n", -1);
    for (gsize i = 0; lines[i] != NULL; i++)
        if (strstr(lines[i], stage->outside) != NULL)
            g_string_append_printf(out, "%s\n", lines[i]);
    return g_string_free(out, FALSE);
}

static void
make_outside(Stage *stage)
{
    static const char *const nodes[] = {"device", "dir/kvm", "dir/net/tun"};

    stage->outside = g_build_filename(stage->pod.dir, "outside", NULL);
    test_tree_mkdir(stage->outside, "dir/net");
    test_tree_mkdir(stage->outside, "dir/kubevirt/sockets");
    test_tree_mkdir(stage->outside, "dir/kernel-boot");
    test_tree_mkdir(stage->outside, "dir/sockets");
    test_tree_write(stage->outside, "secret", "secret");
    test_tree_write(stage->outside, "dir/file", "secret");
    test_tree_write(stage->outside, "dir/disk_0.img", "");
    test_tree_write(stage->outside, "dir/vmlinuz", "secret");
    test_tree_write(stage->outside, "dir/v.iso", "secret");
    test_tree_write(stage->outside, "dir/vif-cache-eth0.json", "secret");
    for (gsize i = 0; i < G_N_ELEMENTS(nodes); i++) {
        g_autofree char *path = g_build_filename(stage->outside, nodes[i], NULL);
        const dev_t number = i == 2 ? makedev(10, 200) : makedev(10, 232);

        g_assert_cmpint(mknod(path, S_IFCHR | 0600, number), ==, 0);
    }
    stage->outside_fd = fake_pod_listen(stage->outside, "socket");
    g_assert_cmpint(fcntl(stage->outside_fd, F_SETFL, O_NONBLOCK), ==, 0);
}

static void
make_pod(Stage *stage)
{
    g_autofree char *disks = NULL;
    g_autofree char *kvm = NULL;
    g_autofree char *tun = NULL;

    fake_pod_init(&stage->pod);
    disks = g_build_filename(stage->pod.dir, EMPTY_DIRS, "container-disks", NULL);
    test_tree_mkdir(disks, ".");
    test_tree_mkdir(stage->pod.root, "shadow/sockets");
    test_tree_mkdir(stage->pod.root, "run/kubevirt-private/secret-disks");
    test_tree_write(stage->pod.root, "run/kubevirt-private/secret-disks/v.iso", "1");
    kvm = fake_pod_path(&stage->pod, "dev/kvm");
    tun = fake_pod_path(&stage->pod, "dev/net/tun");
    g_assert_cmpint(mknod(kvm, S_IFCHR | 0600, makedev(10, 232)), ==, 0);
    g_assert_cmpint(mknod(tun, S_IFCHR | 0600, makedev(10, 200)), ==, 0);
    stage->pod.accepts = true;
    fake_pod_start_launcher(&stage->pod, false);
    fake_disk_init(&stage->disk, stage->pod.dir, disks, "disk_0.sock", "image");
    fake_disk_init(&stage->boot, stage->pod.dir, disks, "kernel-boot.sock", "image");
    test_tree_write(stage->disk.root, "disk/file", "image");
    test_tree_mkdir(stage->disk.root, "boot");
    test_tree_write(stage->disk.root, "boot/vmlinuz", "kernel");
    stage->disk.accepts = stage->boot.accepts = true;
    fake_disk_start(&stage->disk);
    fake_disk_start(&stage->boot);
}

static void
start_hands(Stage *stage)
{
    const ChHandsPlaces places_of_hands = {
        stage->pod.pods_dir, "/nonexistent", stage->pod.pods_dir, getpid()};
    const ChHandsRequest connect = {.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID};
    g_autoptr(GError) error = NULL;
    ch_autofd int fd = -EBADF;
    ChHandsReply reply;

    stage->hands = ch_hands_start(NULL, &places_of_hands, &error);
    g_assert_no_error(error);
    g_assert_true(ch_hands_call(stage->hands, &connect, &reply, &fd, &error));
    g_assert_no_error(error);
    stage->handle = reply.handle;
}

static void
end_stage(Stage *stage)
{
    static const char *const mounted[] = {"disk_0.img", "kernel-boot/vmlinuz"};

    ch_hands_stop(stage->hands);
    for (gsize i = 0; i < G_N_ELEMENTS(mounted); i++) {
        g_autofree char *path = g_build_filename(stage->disk.empty_dir, mounted[i], NULL);

        while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
            ;
    }
    fake_disk_clear(&stage->disk);
    fake_disk_clear(&stage->boot);
    close(stage->outside_fd);
    g_free(stage->outside);
    fake_pod_clear(&stage->pod);
}

static void
test_races(void)
{
    g_autofree char *before = NULL;
    g_autofree char *after = NULL;
    guint n_done = 0;
    Stage stage = {0};
    pid_t attackers[2];

    if (fake_pod_skip_mounts())
        return;
    make_pod(&stage);
    make_outside(&stage);
    start_hands(&stage);
    for (gsize i = 0; i < G_N_ELEMENTS(operations); i++)
        if (!ask(&stage, i))
            g_error("operation %" G_GSIZE_FORMAT " fails in a pod that is no enemy", i);

    before = describe_outside(&stage);
    attackers[0] = start_attacker(&stage, swap_for_ever);
    attackers[1] = start_attacker(&stage, shadow_for_ever);
    for (gsize i = 0; i < N_OPERATIONS; i++)
        n_done += ask(&stage, i % G_N_ELEMENTS(operations));
    stop_attacker(attackers[0]);
    stop_attacker(attackers[1]);
    after = describe_outside(&stage);

    g_test_message("%u of %d operations were done", n_done, N_OPERATIONS);
    g_assert_cmpstr(before, ==, after);
    g_assert_cmpint(accept4(stage.outside_fd, NULL, NULL, SOCK_CLOEXEC), ==, -1);
    g_assert_cmpint(errno, ==, EAGAIN);
    g_assert_cmpuint(n_done, >, 0);
    g_assert_cmpuint(n_done, <, N_OPERATIONS);
    end_stage(&stage);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (geteuid() == 0) { /* what is mounted here goes with this program */
        fake_pod_must(unshare(CLONE_NEWNS) == 0, "unshare");
        fake_pod_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "make private");
    }
    g_test_add_func("/attack/races", test_races);
    return g_test_run();
}
