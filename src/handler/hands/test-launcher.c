/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/launcher.h"

#include "handler/hands/test-fake-pod.h"
#include "lib/base/fd.h"
#include "lib/linux/test-no-peerpidfd.h"

typedef struct {
    FakePod pod;
    bool is_ready;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    f->is_ready = geteuid() == 0;
    if (!f->is_ready)
        return;
    (void)umask(022);
    fake_pod_init(&f->pod);
    ch_launcher_set_pods_dir(f->pod.pods_dir);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    if (f->is_ready)
        fake_pod_clear(&f->pod);
}

/* The whole of CONNECT without the hands. Returns its errno. */
static int
identify(ChHandsReply *out_reply)
{
    ChLauncherConnection connection;
    ChPodEntry entry;
    int root_fd = -EBADF;

    *out_reply = (ChHandsReply){0};
    if (!ch_launcher_connect(FAKE_POD_UID, &connection, out_reply))
        return out_reply->errnum;
    if (ch_launcher_identify(FAKE_POD_UID, &connection, &entry, out_reply)) {
        if (ch_launcher_open_root(&entry, &connection.inode, &root_fd, out_reply))
            close(root_fd);
        close(entry.pidfd);
    }
    close(connection.socket_fd);
    return out_reply->errnum;
}

static void
test_look(Fixture *f, gconstpointer data)
{
    ChHandsReply reply = {0};

    if (fake_pod_skip())
        return;
    g_assert_true(ch_launcher_look("no-such-pod", &reply));
    g_assert_cmpint(reply.look.dir_errno, ==, ENOENT);
    g_assert_cmpint(reply.look.socket_errno, ==, ENOENT);
    reply = (ChHandsReply){0};
    g_assert_true(ch_launcher_look(FAKE_POD_UID, &reply));
    g_assert_cmpint(reply.look.dir_errno, ==, 0);
    g_assert_cmpint(reply.look.socket_errno, ==, ENOENT);
    g_assert_cmpint(reply.look.marker_errno, ==, ENOENT);
    test_tree_write(f->pod.sockets, "launcher-sock", ""); /* of whatever type */
    g_assert_true(ch_launcher_mark(FAKE_POD_UID, &reply));
    g_assert_true(ch_launcher_mark(FAKE_POD_UID, &reply));
    g_assert_cmpint(
        test_tree_stat(f->pod.sockets, "launcher-unresponsive").st_mode, ==, S_IFREG | 0644);
    g_assert_true(ch_launcher_look(FAKE_POD_UID, &reply));
    g_assert_cmpint(reply.look.socket_errno, ==, 0);
    g_assert_cmpint(reply.look.marker_errno, ==, 0);
}

static void
test_mark_through_link(Fixture *f, gconstpointer data)
{
    ChHandsReply reply = {0};

    if (fake_pod_skip())
        return;
    test_tree_link(f->pod.sockets, "launcher-unresponsive", "../made");
    g_assert_true(ch_launcher_mark(FAKE_POD_UID, &reply)); /* something has the name already */
    g_assert_false(test_tree_has(f->pod.sockets, "../made"));
}

/* What may stand at the socket's place. */
static void
put_nothing(const Fixture *f)
{
}

static void
put_file(const Fixture *f)
{
    test_tree_write(f->pod.sockets, "launcher-sock", "");
}

static void
put_link(const Fixture *f)
{
    test_tree_link(f->pod.sockets, "launcher-sock", "/run/dbus/system_bus_socket");
}

static void
put_fifo(const Fixture *f)
{
    g_autofree char *path = g_build_filename(f->pod.sockets, "launcher-sock", NULL);

    g_assert_cmpint(mkfifo(path, 0666), ==, 0);
}

static void
put_device(const Fixture *f)
{
    g_autofree char *path = g_build_filename(f->pod.sockets, "launcher-sock", NULL);

    g_assert_cmpint(mknod(path, S_IFCHR | 0666, makedev(1, 5)), ==, 0);
}

static void
put_linked_dir(const Fixture *f)
{
    g_autofree char *moved = g_strconcat(f->pod.sockets, "-moved", NULL);

    fake_pod_kill_launcher((FakePod *)&f->pod);
    g_assert_cmpint(g_rename(f->pod.sockets, moved), ==, 0);
    g_assert_cmpint(symlink(moved, f->pod.sockets), ==, 0);
}

static void
put_dead_socket(const Fixture *f)
{
    close(fake_pod_listen(f->pod.sockets, "launcher-sock"));
}

static const struct PlaceCase {
    const char *path;
    void (*put)(const Fixture *f);
    int errnum;
} place_cases[] = {
    {"nothing", put_nothing, ENOENT},
    {"file", put_file, ECONNREFUSED},
    {"link", put_link, ELOOP},
    {"fifo", put_fifo, ECONNREFUSED},
    {"device", put_device, ECONNREFUSED},
    {"linked-directory", put_linked_dir, ELOOP},
    {"dead-socket", put_dead_socket, ECONNREFUSED},
};

/* field:FR-F02 */
static void
test_place(Fixture *f, gconstpointer data)
{
    const struct PlaceCase *c = data;
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    c->put(f);
    g_assert_cmpint(identify(&reply), ==, c->errnum);
}

/* spec:05-16.2#43 */
static void
test_good(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    fake_pod_start_launcher(&f->pod, false);
    g_assert_cmpint(identify(&reply), ==, 0);
}

static void
assert_isolation_error(const ChHandsReply *reply)
{
    g_test_message("%s", reply->text);
    g_assert_true(g_str_has_prefix(
        reply->text,
        "failed to detect isolation for launcher pod when setting up notify pipe: ")); /* 01 §14.2
                                                                                        */
}

/* Somebody listens there whose root does not hold this socket (here: this very process). */
static void
test_foreign_listener(Fixture *f, gconstpointer data)
{
    ch_autofd int listen_fd = -EBADF;
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    listen_fd = fake_pod_listen(f->pod.sockets, "launcher-sock");
    g_assert_cmpint(identify(&reply), !=, 0);
    assert_isolation_error(&reply);
}

/* In a mount namespace that stands for ours: the brain plays the launcher, and all is right but
 * that it is in no pod. */
static void
play_brain(Fixture *f)
{
    int ready[2];
    char byte;
    ChHandsReply reply;
    pid_t brain;

    fake_pod_mount(&f->pod);
    if (pipe2(ready, O_CLOEXEC) < 0)
        _exit(61);
    brain = fork();
    if (brain == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fake_pod_must(chroot(f->pod.root) == 0 && chdir("/") == 0, "chroot");
        (void)fake_pod_listen("/var/run/kubevirt/sockets", "launcher-sock");
        (void)!write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    if (read(ready[0], &byte, 1) != 1)
        _exit(62);
    if (identify(&reply) != EPERM)
        _exit(63);
    _exit(strstr(reply.text, "is in no pod") != NULL ? 0 : 64);
}

static void
test_brain_as_launcher(Fixture *f, gconstpointer data)
{
    int status = 0;
    pid_t child;

    if (fake_pod_skip())
        return;
    child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
            _exit(60);
        play_brain(f);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
}

/* The root holds something at the socket's place, but not what was connected to. */
static void
test_other_socket(Fixture *f, gconstpointer data)
{
    ChLauncherConnection connection;
    g_autofree char *path = NULL;
    g_autofree char *away = NULL;
    ChHandsReply reply = {0};
    int root_fd = -EBADF;
    ChPodEntry entry;

    if (fake_pod_skip())
        return;
    fake_pod_start_launcher(&f->pod, false);
    path = g_build_filename(f->pod.sockets, "launcher-sock", NULL);
    away = g_build_filename(f->pod.sockets, "away", NULL);
    g_assert_true(ch_launcher_connect(FAKE_POD_UID, &connection, &reply));
    g_assert_true(ch_launcher_identify(FAKE_POD_UID, &connection, &entry, &reply));
    g_assert_cmpint(g_rename(path, away), ==, 0);
    close(fake_pod_listen(f->pod.sockets, "launcher-sock"));
    g_assert_false(ch_launcher_open_root(&entry, &connection.inode, &root_fd, &reply));
    g_assert_cmpint(reply.errnum, ==, EXDEV);
    assert_isolation_error(&reply);
    close(entry.pidfd);
    close(connection.socket_fd);
}

/* The listener is gone, a child of it holds the socket. */
static void
test_inherited(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    fake_pod_start_launcher(&f->pod, true);
    waitpid(f->pod.pid, NULL, 0);
    f->pod.pid = 0;
    g_assert_cmpint(identify(&reply), ==, ESRCH);
    assert_isolation_error(&reply);
}

/* In a pid namespace of our own: the listener is gone and its number belongs to a stranger. */
static void
recycle(Fixture *f, bool has_peerpidfd)
{
    ChHandsReply reply;
    g_autofree char *last_pid = NULL;
    pid_t stranger;
    pid_t listener;

    if (mount("proc", "/proc", "proc", 0, NULL) < 0)
        _exit(70);
    fake_pod_start_launcher(&f->pod, true);
    listener = f->pod.pid;
    waitpid(listener, NULL, 0);
    last_pid = g_strdup_printf("%d", (int)listener - 1);
    {
        ch_autofd int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

        if (fd < 0 || write(fd, last_pid, strlen(last_pid)) < 0)
            _exit(71);
    }
    stranger = fork();
    if (stranger == 0)
        for (;;)
            pause();
    if (stranger != listener)
        _exit(72);
    if (!has_peerpidfd && !test_deny_peerpidfd())
        _exit(73);
    if (identify(&reply) == 0)
        _exit(74); /* the stranger was taken for the launcher */
    _exit(g_str_has_prefix(
              reply.text,
              "failed to detect isolation for launcher pod when setting up notify pipe: process ")
              ? 0
              : 75);
}

static void
test_recycled(Fixture *f, gconstpointer data)
{
    const bool has_peerpidfd = GPOINTER_TO_INT(data);
    int status = 0;
    pid_t child;

    if (fake_pod_skip())
        return;
    child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
            _exit(60);
        child = fork();
        if (child == 0)
            recycle(f, has_peerpidfd);
        waitpid(child, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 61);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    if (WEXITSTATUS(status) == 71) {
        g_test_skip("the kernel has no ns_last_pid");
        return;
    }
    g_assert_cmpint(WEXITSTATUS(status), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/launcher/look-and-mark", Fixture, NULL, set_up, test_look, tear_down);
    g_test_add(
        "/launcher/mark-through-link", Fixture, NULL, set_up, test_mark_through_link, tear_down);
    for (gsize i = 0; i < G_N_ELEMENTS(place_cases); i++) {
        g_autofree char *path = g_strconcat("/launcher/place/", place_cases[i].path, NULL);

        g_test_add(path, Fixture, &place_cases[i], set_up, test_place, tear_down);
    }
    g_test_add("/launcher/good", Fixture, NULL, set_up, test_good, tear_down);
    g_test_add(
        "/launcher/foreign-listener", Fixture, NULL, set_up, test_foreign_listener, tear_down);
    g_test_add(
        "/launcher/brain-as-launcher", Fixture, NULL, set_up, test_brain_as_launcher, tear_down);
    g_test_add("/launcher/other-socket", Fixture, NULL, set_up, test_other_socket, tear_down);
    g_test_add("/launcher/inherited-listener", Fixture, NULL, set_up, test_inherited, tear_down);
    g_test_add("/launcher/recycled-pid/with-peerpidfd",
               Fixture,
               GINT_TO_POINTER(1),
               set_up,
               test_recycled,
               tear_down);
    g_test_add("/launcher/recycled-pid/without-peerpidfd",
               Fixture,
               GINT_TO_POINTER(0),
               set_up,
               test_recycled,
               tear_down);
    return g_test_run();
}
