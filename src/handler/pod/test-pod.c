/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/pod.h"

#include <sys/resource.h>

#include "handler/hands/test-fake-passt.h"
#include "handler/hands/test-fake-pod.h"
#include "handler/pod/pod-net.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/linux/test-no-peerpidfd.h"

typedef struct {
    FakePod fake;
    ChHands *hands;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    if (geteuid() != 0)
        return;
    fake_pod_init(&f->fake);
    f->hands =
        ch_hands_start(NULL, &(ChHandsPlaces){f->fake.pods_dir, "/nonexistent", NULL, 0}, &error);
    g_assert_no_error(error);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    if (f->hands == NULL)
        return;
    fake_pod_kill_launcher(&f->fake); /* it holds copies of the channels */
    ch_hands_stop(f->hands);
    fake_pod_clear(&f->fake);
}

static ChPod *
connect_launcher(Fixture *f)
{
    g_autoptr(GError) error = NULL;
    ch_autofd int fd = -EBADF;
    ChPod *pod;

    fake_pod_start_launcher(&f->fake, false);
    pod = ch_pod_connect(f->hands, FAKE_POD_UID, &fd, &error);
    g_assert_no_error(error);
    g_assert_nonnull(pod);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(fcntl(fd, F_GETFD) & FD_CLOEXEC, !=, 0);
    g_assert_cmpint(fcntl(fd, F_GETFL) & O_NONBLOCK, !=, 0);
    return pod;
}

static void
test_connects(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPod) pod = NULL;

    if (fake_pod_skip())
        return;
    pod = connect_launcher(f);
    g_assert_cmpint(ch_pod_pid(pod), ==, f->fake.pid);
    g_assert_cmpstr(ch_pod_peek_uid(pod), ==, FAKE_POD_UID);
}

/* spec:01#78 */
static void
test_pipe(Fixture *f, gconstpointer data)
{
    const bool is_non_root = GPOINTER_TO_INT(data);
    g_autoptr(ChPod) pod = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    ch_autofd int fd = -EBADF;
    struct stat st;

    if (fake_pod_skip())
        return;
    pod = connect_launcher(f);
    path = fake_pod_path(&f->fake, "run/kubevirt/domain-notify-pipe.sock");
    for (int round = 0; round < 2; round++) { /* the second replaces the first */
        ch_close_fd(&fd);
        g_assert_true(ch_pod_open_notify_pipe(pod, is_non_root, &fd, &error));
        g_assert_no_error(error);
        g_assert_cmpint(g_lstat(path, &st), ==, 0);
        g_assert_true(S_ISSOCK(st.st_mode));
        g_assert_cmpint(st.st_mode & 07777, ==, 0755);
        g_assert_cmpint(st.st_uid, ==, is_non_root ? 107 : 0);
        g_assert_cmpint(st.st_gid, ==, is_non_root ? 107 : 0);
    }
}

/* From the pod's side: it can connect until the pipe is closed, and a successor's pipe stays. */
static void
test_pipe_serves(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPod) pod = NULL;
    g_autoptr(ChPod) successor = NULL;
    g_autoptr(GError) error = NULL;
    ch_autofd int command_fd = -EBADF;
    ch_autofd int listen_fd = -EBADF;
    ch_autofd int next_fd = -EBADF;
    ch_autofd int client_fd = -EBADF;
    ch_autofd int served_fd = -EBADF;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *path = NULL;

    if (fake_pod_skip())
        return;
    pod = connect_launcher(f);
    path = fake_pod_path(&f->fake, "run/kubevirt/domain-notify-pipe.sock");
    g_assert_cmpuint(
        g_strlcpy(address.sun_path, path, sizeof(address.sun_path)), <, sizeof(address.sun_path));
    g_assert_true(ch_pod_open_notify_pipe(pod, true, &listen_fd, &error));
    client_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(connect(client_fd, (const struct sockaddr *)&address, sizeof(address)), ==, 0);
    served_fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(served_fd, >=, 0);

    successor = ch_pod_connect(f->hands, FAKE_POD_UID, &command_fd, &error);
    g_assert_no_error(error);
    g_assert_true(ch_pod_open_notify_pipe(successor, true, &next_fd, &error));
    ch_pod_close_notify_pipe(pod); /* not its own any more */
    g_usleep(50000);
    g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));

    ch_pod_close_notify_pipe(successor);
    for (int i = 0; i < 1000 && g_file_test(path, G_FILE_TEST_EXISTS); i++)
        g_usleep(10000);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

/* Names that would lead elsewhere are not even asked for. */
static void
test_images(Fixture *f, gconstpointer data)
{
    static const char *const bad[] = {"", ".", "..", "../vm", "a/b", ".vm"};
    g_autoptr(ChPod) pod = NULL;
    g_autoptr(GError) error = NULL;
    int64_t size = 7;

    if (fake_pod_skip())
        return;
    pod = connect_launcher(f);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) by_name = NULL;
        g_autoptr(GError) by_namespace = NULL;

        g_assert_false(
            ch_pod_stat_image(pod, CH_POD_IMAGE_NO_CLOUD, "ns", bad[i], &size, &by_name));
        g_assert_error(by_name, CH_ERROR, CH_ERROR_INVALID);
        g_assert_false(
            ch_pod_stat_image(pod, CH_POD_IMAGE_NO_CLOUD, bad[i], "vm", &size, &by_namespace));
        g_assert_error(by_namespace, CH_ERROR, CH_ERROR_INVALID);
    }
    test_tree_mkdir(f->fake.root, "run/kubevirt-private/secret-disks");
    test_tree_write(f->fake.root, "run/kubevirt-private/secret-disks/v.iso", "12345");
    for (int i = 0; i < 2; i++) { /* the second time nobody is asked */
        g_assert_true(ch_pod_stat_image(pod, CH_POD_IMAGE_SECRET, "ns", "v", &size, NULL));
        g_assert_cmpint(size, ==, 5);
        test_tree_write(f->fake.root, "run/kubevirt-private/secret-disks/v.iso", "123456");
    }
    g_assert_false(ch_pod_stat_image(pod, CH_POD_IMAGE_SYSPREP, "ns", "v", &size, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_assert_cmpint(size, ==, 5);
    g_assert_true(ch_pod_stat_image(pod, CH_POD_IMAGE_SYSPREP, "ns", "v", &size, NULL));
    g_assert_cmpint(size, ==, -1); /* known by now */
}

/* spec:01#53 */
static void
test_devices(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPod) pod = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    ChPodDevice failed = 0;

    if (fake_pod_skip())
        return;
    pod = connect_launcher(f);
    path = fake_pod_path(&f->fake, "dev/kvm");
    g_assert_false(ch_pod_own_devices(pod, CH_POD_DEVICE_KVM, false, &failed, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_assert_cmpstr(error->message, ==, "failed opening /dev/kvm: no such file or directory");
    g_assert_cmpuint(failed, ==, CH_POD_DEVICE_KVM);
    g_clear_error(&error);
    g_assert_cmpint(mknod(path, S_IFCHR | 0600, makedev(10, 232)), ==, 0);
    g_assert_true(
        ch_pod_own_devices(pod, CH_POD_DEVICE_KVM | CH_POD_DEVICE_VFIO, false, &failed, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(failed, ==, 0);
    g_assert_cmpint(test_tree_stat(f->fake.root, "dev/kvm").st_uid, ==, 107);
}

static void
test_named_nodes(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPod) pod = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;

    if (fake_pod_skip())
        return;
    pod = connect_launcher(f);
    path = fake_pod_path(&f->fake, "dev/disk0");
    g_assert_cmpint(mknod(path, S_IFBLK | 0600, makedev(7, 200)), ==, 0);
    g_assert_true(ch_pod_own_block(pod, "disk0", &error));
    g_assert_no_error(error);
    g_assert_cmpint(test_tree_stat(f->fake.root, "dev/disk0").st_uid, ==, 107);
    g_assert_false(ch_pod_own_virtiofs(pod, "fs", &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_clear_error(&error);
    g_assert_false(ch_pod_own_block(pod, "../disk0", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

/* Anew to the same process only, whoever has its place. */
static void
test_reconnects(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPod) pod = NULL;
    g_autoptr(GError) error = NULL;
    ch_autofd int fd = -EBADF;
    ch_autofd int usurper_fd = -EBADF;

    if (fake_pod_skip())
        return;
    pod = connect_launcher(f);
    g_assert_true(ch_pod_reconnect(pod, &fd, &error));
    g_assert_no_error(error);
    g_assert_cmpint(fcntl(fd, F_GETFL) & O_NONBLOCK, !=, 0);
    g_assert_cmpint(fcntl(fd, F_GETFD) & FD_CLOEXEC, !=, 0);
    ch_close_fd(&fd);

    usurper_fd = fake_pod_listen(f->fake.sockets, "launcher-sock"); /* while the launcher lives */
    g_assert_false(ch_pod_reconnect(pod, &fd, &error));
    g_assert_error(error, CH_ERRNO, ESTALE);
    g_clear_error(&error);
    ch_close_fd(&usurper_fd);
    g_assert_false(ch_pod_reconnect(pod, &fd, &error));
    g_assert_error(error, CH_ERRNO, ECONNREFUSED);
    g_clear_error(&error);

    fake_pod_kill_launcher(&f->fake);
    fake_pod_start_launcher(&f->fake, false);
    g_assert_false(ch_pod_reconnect(pod, &fd, &error));
    g_assert_error(error, CH_ERRNO, ESTALE);
    g_assert_cmpint(fd, ==, -EBADF);
}

static void
test_no_launcher(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    int fd = -EBADF;

    if (fake_pod_skip())
        return;
    g_assert_null(ch_pod_connect(f->hands, FAKE_POD_UID, &fd, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_clear_error(&error);
    g_assert_null(ch_pod_connect(f->hands, "../" FAKE_POD_UID, &fd, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_clear_error(&error);
    g_assert_null(ch_pod_connect(f->hands, "", &fd, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_assert_cmpint(fd, ==, -EBADF);
}

/* The real program, behind its filter, on a kernel without SO_PEERPIDFD. */
static void
test_old_kernel(Fixture *f, gconstpointer data)
{
    int status = 0;
    pid_t child;

    if (fake_pod_skip())
        return;
    fake_pod_start_launcher(&f->fake, false);
    child = fork();
    if (child == 0) {
        g_autoptr(GError) error = NULL;
        ChHands *hands;
        int fd = -EBADF;

        if (!test_deny_peerpidfd())
            _exit(70);
        hands = ch_hands_start(
            NULL, &(ChHandsPlaces){f->fake.pods_dir, "/nonexistent", NULL, 0}, &error);
        if (hands == NULL || ch_pod_connect(hands, FAKE_POD_UID, &fd, &error) == NULL)
            _exit(71);
        _exit(fd >= 0 ? 0 : 72);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
}

/* Each is known by its own handle, and dead by it. */
/* spec:04-23.9#5: what fails because the launcher is gone says nothing about its network. */
static void
test_restarts(Fixture *f, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    for (int i = 0; i < 10; i++) {
        g_autoptr(ChPod) pod = connect_launcher(f);
        g_autoptr(GError) error = NULL;
        ChPodDevice failed = 0;

        g_assert_cmpint(ch_pod_pid(pod), ==, f->fake.pid);
        fake_pod_kill_launcher(&f->fake);
        g_assert_false(ch_pod_own_devices(pod, CH_POD_DEVICE_KVM, false, &failed, &error));
        g_assert_cmpuint(failed, ==, 0);
        g_assert_true(ch_pod_error_is_passing(error));
        g_clear_error(&error);
        g_assert_null(ch_pod_net_open_route(pod, &error));
        g_assert_error(error, CH_ERRNO, ESRCH);
        g_assert_true(ch_hands_is_passing(error));
    }
}

/* Our descriptor table is full: the connection is lost, the hands' entry is given back (all the
 * same a thousand of them fit). */
static void
test_no_descriptors(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    struct rlimit limit;
    struct rlimit none;
    int fd = -EBADF;

    if (fake_pod_skip())
        return;
    ch_pod_free(connect_launcher(f));
    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    none = limit;
    none.rlim_cur = 3;
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &none), ==, 0);
    g_assert_null(ch_pod_connect(f->hands, FAKE_POD_UID, &fd, &error));
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    g_assert_error(error, CH_ERRNO, EMFILE);
    g_assert_cmpint(fd, ==, -EBADF);
}

typedef struct {
    int listen_fd, tcp_fd;
} Passt;

static gpointer
ask_for_repair(gpointer data)
{
    const Passt *passt = data;
    const int fd = fake_passt_accept(passt->listen_fd);

    fake_passt_send(fd, TCP_REPAIR_ON, &passt->tcp_fd, 1);
    g_assert_cmpint(fake_passt_echo(fd), ==, TCP_REPAIR_ON);
    close(fd);
    return NULL;
}

/* By hands with all their restrictions, for which the socket is the pod's own. */
static void
test_passt(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPod) pod = NULL;
    g_autoptr(GError) error = NULL;

    if (fake_pod_skip())
        return;
    test_tree_mkdir(f->fake.root, FAKE_PASST_DIR);
    pod = connect_launcher(f);
    g_assert_false(ch_pod_repair_passt(pod, false, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_clear_error(&error);
    for (int is_target = 0; is_target < 2; is_target++) {
        const Passt passt = {
            .listen_fd =
                fake_passt_listen(f->fake.root, is_target ? "b.repair" : "a.socket.repair"),
            .tcp_fd = fake_passt_tcp(true),
        };
        GThread *thread = g_thread_new("passt", ask_for_repair, (gpointer)&passt);

        (void)ch_pod_repair_passt(pod, is_target, &error);
        g_assert_no_error(error);
        g_thread_join(thread);
        g_assert_cmpint(fake_passt_mode(passt.tcp_fd), ==, 1);
        close(passt.listen_fd);
        close(passt.tcp_fd);
    }
    fake_pod_kill_launcher(&f->fake);
    ch_pod_free(connect_launcher(f)); /* the hands are as they were */
}

#define METRICS_DISKS   "run/kubevirt-private/downwardapi-disks"
#define METRICS_CHANNEL "run/kubevirt-private/downwardmetrics-channel"

static void
test_metrics(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPod) pod = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    g_autofree char *channel = NULL;
    g_autofree char *disk = NULL;
    ch_autofd int listen_fd = -EBADF;
    ch_autofd int qemu_fd = -EBADF;
    ch_autofd int fd = -EBADF;
    gsize size;

    if (fake_pod_skip())
        return;
    pod = connect_launcher(f);
    g_assert_false(ch_pod_write_metrics(pod, "body\n", 5, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_clear_error(&error);
    g_assert_false(ch_pod_write_metrics(pod, "", 0, &error));
    g_assert_error(error, CH_ERRNO, EFBIG);
    g_clear_error(&error);
    g_assert_false(ch_pod_connect_metrics(pod, &fd, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_clear_error(&error);

    test_tree_mkdir(f->fake.root, METRICS_DISKS);
    test_tree_write(f->fake.root, METRICS_DISKS "/vhostmd0", "");
    g_assert_true(ch_pod_write_metrics(pod, "body\n", 5, &error));
    path = fake_pod_path(&f->fake, METRICS_DISKS "/vhostmd0");
    g_assert_true(g_file_get_contents(path, &disk, &size, NULL));
    g_assert_cmpuint(size, ==, 16 + 5);
    g_assert_cmpstr(disk + 16, ==, "body\n");

    test_tree_mkdir(f->fake.root, METRICS_CHANNEL);
    channel = fake_pod_path(&f->fake, METRICS_CHANNEL);
    listen_fd = fake_pod_listen(channel, "downwardmetrics.sock");
    g_assert_true(ch_pod_connect_metrics(pod, &fd, &error));
    qemu_fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(write(fd, "x", 1), ==, 1);
    g_assert_cmpint(fcntl(fd, F_GETFD) & FD_CLOEXEC, !=, 0);
    g_assert_cmpint(fcntl(fd, F_GETFL) & O_NONBLOCK, !=, 0);
}

static const struct {
    const char *path;
    void (*func)(Fixture *f, gconstpointer data);
    int data;
} cases[] = {
    {"/pod/connects", test_connects, 0},
    {"/pod/pipe/root", test_pipe, false},
    {"/pod/pipe/non-root", test_pipe, true},
    {"/pod/pipe/serves-until-closed", test_pipe_serves, 0},
    {"/pod/images", test_images, 0},
    {"/pod/devices", test_devices, 0},
    {"/pod/passt", test_passt, 0},
    {"/pod/named-nodes", test_named_nodes, 0},
    {"/pod/metrics", test_metrics, 0},
    {"/pod/reconnects", test_reconnects, 0},
    {"/pod/no-launcher", test_no_launcher, 0},
    {"/pod/no-descriptors-left", test_no_descriptors, 0},
    {"/pod/old-kernel", test_old_kernel, 0},
    {"/pod/launchers-come-and-go", test_restarts, 0},
};

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add(cases[i].path,
                   Fixture,
                   GINT_TO_POINTER(cases[i].data),
                   set_up,
                   cases[i].func,
                   tear_down);
    return g_test_run();
}
