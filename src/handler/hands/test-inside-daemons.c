/* SPDX-License-Identifier: Apache-2.0 */

/* Sockets of the node's daemons, in a tree that stands for the node: this program's own mounts. */

#include "handler/hands/inside-daemons.h"

#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/xattr.h>

#include "handler/hands/mount-list.h"
#include "handler/hands/test-fake-pod.h"
#include "handler/hands/test-fake-step.h"
#include "lib/base/fd.h"

#define MULTIPATH "daemons/pr/multipathd.socket"
#define HELPER    "daemons/pr/pr-helper.sock"
#define ENFORCE   "sys/fs/selinux/enforce"
#define LABEL     "system_u:object_r:container_file_t:s0"

typedef struct {
    char *dir, *share, *run; /* owned */
    pid_t node;              /* 0: us */
} Fixture;

static void
use_node(Fixture *f, pid_t pid)
{
    f->node = pid;
    ch_inside_daemons_set_places(
        &(ChDaemonPlaces){f->share, f->run, f->dir, pid != 0 ? pid : getpid()});
}

static void
set_up(Fixture *f, gconstpointer data)
{
    (void)umask(022);
    f->dir = test_tree_new();
    f->share = g_build_filename(f->dir, "share", NULL);
    f->run = g_build_filename(f->dir, "run", NULL);
    test_tree_mkdir(f->share, ".");
    test_tree_mkdir(f->run, ".");
    use_node(f, 0);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    g_autofree char *target = g_build_filename(f->share, MULTIPATH, NULL);

    if (f->node > 0) {
        kill(f->node, SIGKILL);
        waitpid(f->node, NULL, 0);
    }
    while (umount2(target, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        ;
    test_tree_remove(f->dir);
    g_free(f->dir);
    g_free(f->share);
    g_free(f->run);
}

static bool
set_it(const ChHandsRequest *request, const char *path, ChHandsReply *reply)
{
    return ch_inside_set_multipath(request, reply);
}

static ChHandsReply
set_multipath(uint32_t flags)
{
    return fake_step_run(set_it, (ChHandsRequest){.flags = flags}, NULL);
}

static void
put_socket(const char *dir, const char *name)
{
    close(fake_pod_listen(dir, name)); /* its file stays */
}

static void
drop(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_cmpint(unlink(path), ==, 0);
}

static void
assert_mounted(const Fixture *f, const ChHandsReply *reply)
{
    const struct stat source = test_tree_stat(f->run, "multipathd.socket");
    const struct stat target = test_tree_stat(f->share, MULTIPATH);

    g_assert_cmpint(reply->errnum, ==, 0);
    g_assert_cmpint(reply->look.socket_errno, ==, 0);
    g_assert_true(reply->target.is_mounted);
    g_assert_cmpuint(target.st_ino, ==, source.st_ino);
    g_assert_cmpuint(target.st_dev, ==, source.st_dev);
    g_assert_true(S_ISSOCK(target.st_mode));
}

static void
assert_empty(const Fixture *f, const ChHandsReply *reply)
{
    const struct stat target = test_tree_stat(f->share, MULTIPATH);

    g_assert_cmpint(reply->errnum, ==, 0);
    g_assert_false(reply->target.is_mounted);
    g_assert_cmpuint(target.st_mode, ==, S_IFREG | 0644);
    g_assert_cmpint(target.st_size, ==, 0);
}

/* spec:05-16.8#156: each step of it, and each a second time. */
static void
test_multipath_life(Fixture *f, gconstpointer data)
{
    g_autofree char *target = g_build_filename(f->share, MULTIPATH, NULL);
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    reply = set_multipath(0); /* not there: the place is made */
    assert_empty(f, &reply);
    g_assert_cmpint(reply.look.socket_errno, ==, ENOENT);
    g_assert_cmpuint(test_tree_stat(f->share, "daemons").st_mode, ==, S_IFDIR | 0755);
    g_assert_cmpuint(test_tree_stat(f->share, "daemons/pr").st_mode, ==, S_IFDIR | 0755);

    put_socket(f->run, "multipathd.socket");
    reply = set_multipath(0);
    assert_mounted(f, &reply);
    g_assert_cmpuint(reply.size, ==, 1);
    reply = set_multipath(0);
    assert_mounted(f, &reply);
    g_assert_cmpuint(reply.size, ==, 0);

    g_assert_cmpint(mount(target, target, NULL, MS_BIND, NULL), ==, 0);
    reply = set_multipath(0);
    assert_mounted(f, &reply);
    g_assert_cmpuint(reply.size, ==, 1); /* no stack: the daemon could not remove its socket */
    drop(f->run, "multipathd.socket");
    put_socket(f->run, "multipathd.socket"); /* another one */
    reply = set_multipath(0);
    assert_mounted(f, &reply);
    g_assert_cmpuint(reply.size, ==, 2);

    drop(f->run, "multipathd.socket");
    reply = set_multipath(0);
    assert_empty(f, &reply);
    g_assert_cmpuint(reply.size, ==, 1);

    put_socket(f->run, "multipathd.socket");
    reply = set_multipath(0);
    assert_mounted(f, &reply);
    reply = set_multipath(CH_HANDS_REMOVE);
    assert_empty(f, &reply);
    g_assert_cmpuint(reply.size, ==, 1);
    reply = set_multipath(CH_HANDS_REMOVE);
    assert_empty(f, &reply);
    g_assert_cmpuint(reply.size, ==, 0);
}

/* As in a node with many pods: more than a pod's mountinfo may have. */
static void
test_stack_behind_many_mounts(Fixture *f, gconstpointer data)
{
    g_autofree char *target = g_build_filename(f->share, MULTIPATH, NULL);
    g_autoptr(GString) path = g_string_new(f->dir);
    g_autofree char *mounts = NULL;
    ChHandsReply reply;
    gsize length;

    if (fake_pod_skip_mounts())
        return;
    for (int i = 0; i < 14; i++)
        g_string_append_printf(path, "/%0250d", i);
    test_tree_mkdir(path->str, ".");
    for (int i = 0; i < 150; i++)
        g_assert_cmpint(mount(path->str, path->str, NULL, MS_BIND, NULL), ==, 0);
    g_assert_true(g_file_get_contents("/proc/self/mountinfo", &mounts, &length, NULL));
    g_assert_cmpuint(length, >, CH_MOUNT_LIST_MAX_BYTES);
    put_socket(f->run, "multipathd.socket");
    reply = set_multipath(0);
    assert_mounted(f, &reply);
    g_assert_cmpint(mount(target, target, NULL, MS_BIND, NULL), ==, 0);
    reply = set_multipath(0);
    while (umount2(path->str, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        ;
    assert_mounted(f, &reply);
    g_assert_cmpuint(reply.size, ==, 1);
}

static bool
set_with_few_descriptors(const ChHandsRequest *request, const char *path, ChHandsReply *reply)
{
    const int free_fd = open("/", O_PATH | O_CLOEXEC);
    struct rlimit limit = {(rlim_t)free_fd + 3, (rlim_t)free_fd + 3}; /* three directories */

    fake_pod_must(close(free_fd) == 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    return ch_inside_set_multipath(request, reply);
}

/* A socket that cannot be opened for want of a descriptor stays where it is mounted. */
static void
test_socket_that_cannot_be_opened(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    put_socket(f->run, "multipathd.socket");
    reply = set_multipath(0);
    assert_mounted(f, &reply);
    reply = fake_step_run(set_with_few_descriptors, (ChHandsRequest){.flags = 0}, NULL);
    g_assert_cmpint(reply.errnum, ==, EMFILE);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_SOCKET);
    g_assert_cmpuint(reply.size, ==, 0);
    reply = set_multipath(0);
    assert_mounted(f, &reply);
    g_assert_cmpuint(reply.size, ==, 0);
}

static void
test_nothing_is_made_to_remove(Fixture *f, gconstpointer data)
{
    if (fake_pod_skip_mounts())
        return;
    g_assert_cmpint(set_multipath(CH_HANDS_REMOVE).errnum, ==, 0);
    g_assert_false(test_tree_has(f->share, "daemons"));
}

/* What a pod put at the place is neither followed nor mounted on. */
static void
test_strange_place(Fixture *f, gconstpointer data)
{
    g_autofree char *target = g_build_filename(f->share, MULTIPATH, NULL);
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    test_tree_mkdir(f->share, "daemons/pr");
    put_socket(f->run, "multipathd.socket");
    test_tree_write(f->dir, "victim", "the node's");
    test_tree_link(f->share, MULTIPATH, "../../../victim");
    reply = set_multipath(CH_HANDS_REMOVE);
    g_assert_cmpint(reply.errnum, ==, 0);
    reply = set_multipath(0);
    assert_mounted(f, &reply);
    g_assert_true(S_ISREG(test_tree_stat(f->dir, "victim").st_mode));
    (void)set_multipath(CH_HANDS_REMOVE);

    drop(f->share, MULTIPATH);
    g_assert_cmpint(mkfifo(target, 0600), ==, 0);
    reply = set_multipath(0);
    assert_mounted(f, &reply);
    (void)set_multipath(CH_HANDS_REMOVE);

    drop(f->share, MULTIPATH);
    test_tree_mkdir(f->share, MULTIPATH);
    reply = set_multipath(0);
    assert_mounted(f, &reply);
    (void)set_multipath(CH_HANDS_REMOVE);

    drop(f->share, MULTIPATH);
    test_tree_mkdir(f->share, MULTIPATH "/full");
    reply = set_multipath(0);
    g_assert_cmpint(reply.errnum, ==, ENOTEMPTY);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_TARGET);
}

static void
test_strange_source(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    test_tree_write(f->run, "multipathd.socket", "");
    reply = set_multipath(0);
    g_assert_cmpint(reply.errnum, ==, ENOTSOCK);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_SOCKET);
    drop(f->run, "multipathd.socket");
    put_socket(f->run, "other");
    test_tree_link(f->run, "multipathd.socket", "other");
    g_assert_cmpint(set_multipath(0).errnum, ==, ELOOP);
    test_tree_remove(f->share);
    g_assert_cmpint(set_multipath(0).errnum, ==, EXDEV);
    test_tree_write(f->dir, "share", "");
    reply = set_multipath(0);
    g_assert_cmpint(reply.errnum, ==, ENOTDIR);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_DIR);
    drop(f->dir, "share");
}

/* A process that is the node: its mounts are its own. @hidden: (nullable): an empty directory is
 * mounted there */
static pid_t
start_node(const char *hidden)
{
    int channel[2];
    char byte;
    pid_t pid;

    g_assert_cmpint(pipe2(channel, O_CLOEXEC), ==, 0);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        fake_pod_must(unshare(CLONE_NEWNS) == 0, "unshare");
        fake_pod_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private");
        fake_pod_must(hidden == NULL || mount("none", hidden, "tmpfs", 0, NULL) == 0, "tmpfs");
        fake_pod_must(write(channel[1], "r", 1) == 1, "write");
        for (;;)
            pause();
    }
    close(channel[1]);
    g_assert_cmpint(read(channel[0], &byte, 1), ==, 1);
    close(channel[0]);
    return pid;
}

static void
test_in_the_node(Fixture *f, gconstpointer data)
{
    g_autofree char *root = NULL;
    g_autofree char *there = NULL;
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    put_socket(f->run, "multipathd.socket");
    use_node(f, start_node(NULL));
    root = g_strdup_printf("/proc/%d/root", (int)f->node);
    there = g_build_filename(root, f->share, NULL);
    reply = set_multipath(0);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_true(reply.target.is_mounted);
    g_assert_true(S_ISSOCK(test_tree_stat(there, MULTIPATH).st_mode));
    g_assert_true(S_ISREG(test_tree_stat(f->share, MULTIPATH).st_mode)); /* not with us */
    g_assert_cmpuint(set_multipath(CH_HANDS_REMOVE).size, ==, 1);
    g_assert_true(S_ISREG(test_tree_stat(there, MULTIPATH).st_mode));
}

/* Local mode: the share directory is the agent's alone. Nothing is made in the node's. */
static void
test_another_directory_in_the_node(Fixture *f, gconstpointer data)
{
    g_autofree char *there = NULL;

    if (fake_pod_skip_mounts())
        return;
    use_node(f, start_node(f->share));
    there = g_strdup_printf("/proc/%d/root%s", (int)f->node, f->share);
    g_assert_cmpint(set_multipath(0).errnum, ==, EXDEV);
    g_assert_false(test_tree_has(there, "daemons"));
    g_assert_false(test_tree_has(f->share, "daemons"));
}

/* --- what is watched */

static guint
count_events(int fd)
{
    char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    guint n_events = 0;

    g_assert_true(n > 0 || errno == EAGAIN);
    for (ssize_t at = 0; at < n; n_events++) {
        const struct inotify_event *event = (const void *)(buffer + at);

        at += (ssize_t)(sizeof(*event) + event->len);
    }
    return n_events;
}

static void
test_watches(Fixture *f, gconstpointer data)
{
    ch_autofd int run_fd = -EBADF;
    ch_autofd int helper_fd = -EBADF;
    g_autofree char *elsewhere = g_build_filename(f->dir, "elsewhere", NULL);
    ChHandsReply reply = {0};

    /* As the node's root sees it: /run is a link there. */
    test_tree_mkdir(elsewhere, ".");
    ch_inside_daemons_set_places(&(ChDaemonPlaces){f->share, "/link", f->dir, getpid()});
    g_assert_false(ch_inside_watch_multipath(&run_fd, &reply));
    g_assert_cmpint(reply.errnum, ==, ENOENT);
    test_tree_link(f->dir, "link", "/elsewhere");
    g_assert_true(ch_inside_watch_multipath(&run_fd, &reply));
    g_assert_cmpuint(count_events(run_fd), ==, 0);
    test_tree_mkdir(elsewhere, "new");
    g_assert_cmpuint(count_events(run_fd), ==, 1);
    g_assert_cmpint(fcntl(run_fd, F_GETFD), ==, FD_CLOEXEC);

    g_assert_false(ch_inside_watch_reservation(&helper_fd, &reply));
    g_assert_cmpint(reply.errnum, ==, ENOENT);
    g_assert_true(g_str_has_prefix(reply.text, "error opening the socket dir /"));
    test_tree_mkdir(f->share, "daemons/pr");
    g_assert_true(ch_inside_watch_reservation(&helper_fd, &reply));
    test_tree_mkdir(f->share, HELPER);
    g_assert_cmpuint(count_events(helper_fd), ==, 1);
}

/* --- pr-helper's socket */

static void
assert_owner(const Fixture *f, const char *path, uid_t id)
{
    const struct stat st = test_tree_stat(f->share, path);

    g_assert_cmpuint(st.st_uid, ==, id);
    g_assert_cmpuint(st.st_gid, ==, id);
}

static void
test_reservation_owner(Fixture *f, gconstpointer data)
{
    ChHandsReply reply = {0};

    if (fake_pod_skip())
        return;
    g_assert_false(ch_inside_own_reservation(&reply));
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_DIR);
    g_assert_true(g_str_has_prefix(reply.text, "error opening the socket dir /"));
    test_tree_mkdir(f->share, "daemons/pr");
    g_assert_false(ch_inside_own_reservation(&reply));
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_SOCKET);
    g_assert_cmpint(reply.errnum, ==, ENOENT);
    g_assert_true(g_str_has_prefix(reply.text, "error opening the socket /"));
    assert_owner(f, "daemons/pr", 107); /* all the same */

    test_tree_write(f->share, HELPER, "");
    g_assert_false(ch_inside_own_reservation(&reply));
    g_assert_cmpint(reply.errnum, ==, ENOTSOCK);
    assert_owner(f, HELPER, 0);
    drop(f->share, HELPER);
    put_socket(f->dir, "victim");
    test_tree_link(f->share, HELPER, "../../../victim");
    g_assert_false(ch_inside_own_reservation(&reply));
    g_assert_cmpint(reply.errnum, ==, ELOOP);
    g_assert_cmpuint(test_tree_stat(f->dir, "victim").st_uid, ==, 0);
    drop(f->share, HELPER);

    for (int i = 0; i < 2; i++) { /* and made anew */
        g_autofree char *pr = g_build_filename(f->share, "daemons/pr", NULL);

        put_socket(pr, "pr-helper.sock");
        reply = (ChHandsReply){0};
        g_assert_true(ch_inside_own_reservation(&reply));
        g_assert_cmpint(reply.errnum, ==, 0);
        assert_owner(f, HELPER, 107);
        drop(f->share, HELPER);
    }
}

static char *
read_label(const Fixture *f, const char *path)
{
    g_autofree char *full = g_build_filename(f->share, path, NULL);
    char text[64] = "";

    return getxattr(full, "security.selinux", text, sizeof(text) - 1) < 0 ? NULL : g_strdup(text);
}

static void
test_reservation_label(Fixture *f, gconstpointer data)
{
    g_autofree char *pr = g_build_filename(f->share, "daemons/pr", NULL);
    g_autofree char *none = NULL;
    g_autofree char *of_dir = NULL;
    g_autofree char *of_socket = NULL;
    ChHandsReply reply = {0};

    if (fake_pod_skip())
        return;
    test_tree_mkdir(f->share, "daemons/pr");
    if (setxattr(pr, "security.selinux", "a:b:c:s0", 9, 0) < 0) {
        g_test_skip("needs a file system that keeps security attributes");
        return;
    }
    put_socket(pr, "pr-helper.sock");
    g_assert_true(ch_inside_own_reservation(&reply)); /* without SELinux */
    none = read_label(f, "daemons/pr");
    g_assert_cmpstr(none, ==, "a:b:c:s0");

    test_tree_mkdir(f->dir, "sys/fs/selinux");
    test_tree_write(f->dir, ENFORCE, "1");
    g_assert_true(ch_inside_own_reservation(&reply));
    g_assert_true(ch_inside_own_reservation(&reply));
    of_dir = read_label(f, "daemons/pr");
    of_socket = read_label(f, HELPER);
    g_assert_cmpstr(of_dir, ==, LABEL);
    g_assert_cmpstr(of_socket, ==, LABEL);
}

#define ADD(name, func)                                                                            \
    g_test_add("/hands/inside-daemons/" name, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("multipath/life", test_multipath_life);
    ADD("multipath/stack-behind-many-mounts", test_stack_behind_many_mounts);
    ADD("multipath/socket-that-cannot-be-opened", test_socket_that_cannot_be_opened);
    ADD("multipath/nothing-is-made-to-remove", test_nothing_is_made_to_remove);
    ADD("multipath/strange-place", test_strange_place);
    ADD("multipath/strange-source", test_strange_source);
    ADD("multipath/in-the-node", test_in_the_node);
    ADD("multipath/another-directory-in-the-node", test_another_directory_in_the_node);
    ADD("watches", test_watches);
    ADD("reservation/owner", test_reservation_owner);
    ADD("reservation/label", test_reservation_label);
    return g_test_run();
}
