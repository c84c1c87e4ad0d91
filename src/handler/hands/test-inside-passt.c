/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-passt.h"

#include <errno.h>
#include <fcntl.h>

#include "handler/hands/test-fake-passt.h"
#include "lib/base/fd.h"
#include "lib/linux/clock.h"

#define LONG_US (INT64_C(60) * 1000000)

/* A pod's root, and the hands' child that works in it. */
typedef struct {
    char *root;
    int root_fd;
    pid_t child; /* 0: none */
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    f->root = test_tree_new();
    test_tree_mkdir(f->root, FAKE_PASST_DIR);
    test_tree_mkdir(f->root, "var");
    test_tree_link(f->root, "var/run", "/run"); /* as in a launcher image */
    f->root_fd = open(f->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    f->child = 0;
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    g_assert_cmpint(f->child, ==, 0);
    close(f->root_fd);
    test_tree_remove(f->root);
    g_free(f->root);
}

static bool
skip(void)
{
    if (geteuid() == 0)
        return false;
    g_test_skip("needs root: network namespaces, TCP_REPAIR");
    return true;
}

static void
begin(Fixture *f, bool is_target, int64_t for_us)
{
    f->child = fork();
    if (f->child == 0) {
        ChHandsReply reply = {0};

        _exit(ch_inside_repair_passt(f->root_fd, is_target, ch_clock_us() + for_us, &reply)
                  ? 0
                  : reply.errnum);
    }
}

/* Returns the errno that it ended with. */
static int
end(Fixture *f)
{
    int status = 0;

    g_assert_cmpint(waitpid(f->child, &status, 0), ==, f->child);
    g_assert_true(WIFEXITED(status));
    f->child = 0;
    return WEXITSTATUS(status);
}

static int
run(Fixture *f, bool is_target, int64_t for_us)
{
    begin(f, is_target, for_us);
    return end(f);
}

/* On, off, and off without a window probe, for several sockets at once. */
static void
test_modes(Fixture *f, gconstpointer data)
{
    static const int modes[][2] = {
        {TCP_REPAIR_ON, 1}, {TCP_REPAIR_OFF, 0}, {TCP_REPAIR_ON, 1}, {TCP_REPAIR_OFF_NO_WP, 0}};
    int sockets[3];
    int listen_fd, fd;

    if (skip())
        return;
    for (int i = 0; i < 3; i++)
        sockets[i] = fake_passt_tcp(true);
    listen_fd = fake_passt_listen(f->root, "vm.socket.repair");
    begin(f, false, LONG_US);
    fd = fake_passt_accept(listen_fd);
    for (gsize i = 0; i < G_N_ELEMENTS(modes); i++) {
        fake_passt_send(fd, (int8_t)modes[i][0], sockets, 3);
        g_assert_cmpint(fake_passt_echo(fd), ==, modes[i][0]);
        for (int j = 0; j < 3; j++)
            g_assert_cmpint(fake_passt_mode(sockets[j]), ==, modes[i][1]);
    }
    close(fd);
    g_assert_cmpint(end(f), ==, 0);
    for (int i = 0; i < 3; i++)
        close(sockets[i]);
    close(listen_fd);
}

/* The node's own sockets are not touched, whoever sends them. */
static void
test_socket_of_the_node(Fixture *f, gconstpointer data)
{
    const int tcp_fd = fake_passt_tcp(false);
    int listen_fd, fd;

    if (skip())
        return;
    listen_fd = fake_passt_listen(f->root, "vm.socket.repair");
    begin(f, false, LONG_US);
    fd = fake_passt_accept(listen_fd);
    fake_passt_send(fd, TCP_REPAIR_ON, &tcp_fd, 1);
    g_assert_cmpint(fake_passt_echo(fd), ==, -100);
    g_assert_cmpint(end(f), ==, EXDEV);
    g_assert_cmpint(fake_passt_mode(tcp_fd), ==, 0);
    close(fd);
    close(tcp_fd);
    close(listen_fd);
}

static int
run_message(Fixture *f, int8_t mode, const int fds[], unsigned n_fds)
{
    const int listen_fd = fake_passt_listen(f->root, "vm.socket.repair");
    g_autofree char *path = g_build_filename(f->root, FAKE_PASST_DIR, "vm.socket.repair", NULL);
    int fd, result;

    begin(f, false, LONG_US);
    fd = fake_passt_accept(listen_fd);
    fake_passt_send(fd, mode, fds, n_fds);
    g_assert_cmpint(fake_passt_echo(fd), ==, -100);
    result = end(f);
    close(fd);
    close(listen_fd);
    g_assert_cmpint(unlink(path), ==, 0);
    return result;
}

static void
test_nonsense(Fixture *f, gconstpointer data)
{
    int tcp_fd, file_fd;

    if (skip())
        return;
    tcp_fd = fake_passt_tcp(true);
    file_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    g_assert_cmpint(run_message(f, 2, &tcp_fd, 1), ==, EPROTO);
    g_assert_cmpint(run_message(f, -2, &tcp_fd, 1), ==, EPROTO);
    g_assert_cmpint(run_message(f, TCP_REPAIR_ON, NULL, 0), ==, EPROTO);
    g_assert_cmpint(run_message(f, TCP_REPAIR_ON, &file_fd, 1), ==, ENOTTY);
    g_assert_cmpint(fake_passt_mode(tcp_fd), ==, 0);
    close(tcp_fd);
    close(file_fd);
}

/* spec:04-23.8#1c: at the source it must be there; nobody is at the target for ever. */
static void
test_nobody(Fixture *f, gconstpointer data)
{
    g_autofree char *dir = g_build_filename(f->root, FAKE_PASST_DIR, NULL);
    g_autofree char *other = g_build_filename(dir, "vm.repair", NULL);

    g_assert_true(g_file_set_contents(other, "", 0, NULL)); /* of another form */
    g_assert_cmpint(run(f, false, LONG_US), ==, ENOENT);
    g_assert_cmpint(run(f, true, 1000), ==, ETIMEDOUT);
    g_assert_cmpint(unlink(other), ==, 0);
    g_assert_cmpint(rmdir(dir), ==, 0);
    g_assert_cmpint(run(f, false, LONG_US), ==, ENOENT);
}

/* The first by name that answers; what refuses, and links, are passed over. */
static void
test_first_of_some(Fixture *f, gconstpointer data)
{
    int second_fd, third_fd, fd;

    test_tree_write(f->root, FAKE_PASST_DIR "/0.socket.repair", "");
    test_tree_link(f->root, FAKE_PASST_DIR "/1.socket.repair", "3.socket.repair");
    third_fd = fake_passt_listen(f->root, "3.socket.repair");
    second_fd = fake_passt_listen(f->root, "2.socket.repair");
    begin(f, false, LONG_US);
    fd = fake_passt_accept(second_fd);
    close(fd);
    g_assert_cmpint(end(f), ==, 0);
    close(second_fd); /* refuses now */
    begin(f, false, LONG_US);
    fd = fake_passt_accept(third_fd);
    close(fd);
    g_assert_cmpint(end(f), ==, 0);
    close(third_fd);
    g_assert_cmpint(run(f, false, LONG_US), ==, ECONNREFUSED);
}

/* The target's comes after its helper, beside what an earlier one left. */
static void
test_target_comes_later(Fixture *f, gconstpointer data)
{
    int listen_fd, fd;

    close(fake_passt_listen(f->root, "old.socket.repair"));
    begin(f, true, LONG_US);
    g_usleep(50000); /* it looks at least once before; not needed for the test to pass */
    listen_fd = fake_passt_listen(f->root, "vm.repair");
    fd = fake_passt_accept(listen_fd);
    close(fd);
    g_assert_cmpint(end(f), ==, 0);
    close(listen_fd);
}

/* field:FR-H15 */
static void
test_silent_passt(Fixture *f, gconstpointer data)
{
    const int listen_fd = fake_passt_listen(f->root, "vm.socket.repair");

    g_assert_cmpint(run(f, false, 1000), ==, ETIMEDOUT);
    close(listen_fd);
}

/* A link to elsewhere leads to a place in the pod. */
static void
test_link_stays_in_the_pod(Fixture *f, gconstpointer data)
{
    g_autofree char *outside = test_tree_new();
    g_autofree char *dir = g_build_filename(f->root, FAKE_PASST_DIR, NULL);
    int listen_fd;

    test_tree_mkdir(outside, FAKE_PASST_DIR);
    listen_fd = fake_passt_listen(outside, "vm.socket.repair");
    g_assert_cmpint(rmdir(dir), ==, 0);
    {
        g_autofree char *target = g_build_filename(outside, FAKE_PASST_DIR, NULL);

        g_assert_cmpint(symlink(target, dir), ==, 0);
    }
    g_assert_cmpint(run(f, false, LONG_US), ==, ENOENT);
    close(listen_fd);
    test_tree_remove(outside);
}

#define ADD(path, func) g_test_add("/inside-passt/" path, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("modes", test_modes);
    ADD("socket-of-the-node", test_socket_of_the_node);
    ADD("nonsense", test_nonsense);
    ADD("nobody", test_nobody);
    ADD("first-of-some", test_first_of_some);
    ADD("target-comes-later", test_target_comes_later);
    ADD("silent-passt", test_silent_passt);
    ADD("link-stays-in-the-pod", test_link_stays_in_the_pod);
    return g_test_run();
}
