/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/time.h"

typedef struct {
    int ends[2];
} Pair;

static void
set_up(Pair *pair, gconstpointer data)
{
    g_assert_cmpint(ch_channel_pair(pair->ends), ==, 0);
    g_assert_cmpint(fcntl(pair->ends[0], F_GETFD) & FD_CLOEXEC, !=, 0);
    g_assert_cmpint(fcntl(pair->ends[1], F_GETFD) & FD_CLOEXEC, !=, 0);
}

static void
tear_down(Pair *pair, gconstpointer data)
{
    ch_close_fd(&pair->ends[0]);
    ch_close_fd(&pair->ends[1]);
}

static unsigned
count_open_fds(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    unsigned n = 0;

    while (g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

static void
test_records(Pair *pair, gconstpointer data)
{
    char buffer[8];
    int fd = 42;

    g_assert_cmpint(ch_channel_receive(pair->ends[1], buffer, sizeof(buffer), &fd), ==, -EAGAIN);
    g_assert_cmpint(fd, ==, 42);
    g_assert_cmpint(ch_channel_send(pair->ends[0], "one", 3, -1), ==, 0);
    g_assert_cmpint(ch_channel_send(pair->ends[0], "three", 5, -1), ==, 0);
    g_assert_cmpint(ch_channel_receive(pair->ends[1], buffer, sizeof(buffer), &fd), ==, 3);
    g_assert_cmpint(fd, <, 0);
    g_assert_cmpint(ch_channel_receive(pair->ends[1], buffer, sizeof(buffer), NULL), ==, 5);
    g_assert_cmpint(memcmp(buffer, "three", 5), ==, 0);
}

static void
test_descriptor(Pair *pair, gconstpointer data)
{
    ch_autofd int passed = -EBADF;
    char buffer[8];
    int pipe_fds[2];

    g_assert_cmpint(pipe2(pipe_fds, O_CLOEXEC), ==, 0);
    g_assert_cmpint(ch_channel_send(pair->ends[0], "x", 1, pipe_fds[1]), ==, 0);
    close(pipe_fds[1]);
    g_assert_cmpint(ch_channel_receive(pair->ends[1], buffer, sizeof(buffer), &passed), ==, 1);
    g_assert_cmpint(passed, >=, 0);
    g_assert_cmpint(fcntl(passed, F_GETFD) & FD_CLOEXEC, !=, 0);
    g_assert_cmpint(write(passed, "y", 1), ==, 1);
    g_assert_cmpint(read(pipe_fds[0], buffer, 1), ==, 1);
    close(pipe_fds[0]);
}

static void
test_two_descriptors(Pair *pair, gconstpointer data)
{
    const unsigned n_before = count_open_fds();
    const int sent[] = {pair->ends[0], STDERR_FILENO};
    int fds[] = {42, 42};
    char buffer[8];

    g_assert_cmpint(ch_channel_send_fds(pair->ends[0], "x", 1, sent, 2), ==, 0);
    g_assert_cmpint(ch_channel_receive_fds(pair->ends[1], buffer, sizeof(buffer), fds, 2), ==, 1);
    g_assert_cmpint(ch_channel_send(fds[0], "first", 5, -1), ==, 0);
    g_assert_cmpint(ch_channel_receive(pair->ends[1], buffer, sizeof(buffer), NULL), ==, 5);
    close(fds[0]);
    close(fds[1]);
    g_assert_cmpint(ch_channel_send_fds(pair->ends[0], "x", 1, sent, 1), ==, 0);
    g_assert_cmpint(ch_channel_receive_fds(pair->ends[1], buffer, sizeof(buffer), fds, 2), ==, 1);
    g_assert_cmpint(fds[1], ==, -EBADF);
    close(fds[0]);
    g_assert_cmpint(ch_channel_send_fds(pair->ends[0], "x", 1, sent, 2), ==, 0);
    g_assert_cmpint(ch_channel_receive(pair->ends[1], buffer, sizeof(buffer), fds), ==, -EPROTO);
    g_assert_cmpuint(count_open_fds(), ==, n_before);
}

static void
test_unwanted_descriptor(Pair *pair, gconstpointer data)
{
    const unsigned n_before = count_open_fds();
    char buffer[8];

    g_assert_cmpint(ch_channel_send(pair->ends[0], "x", 1, STDERR_FILENO), ==, 0);
    g_assert_cmpint(ch_channel_receive(pair->ends[1], buffer, sizeof(buffer), NULL), ==, -EPROTO);
    g_assert_cmpuint(count_open_fds(), ==, n_before);
}

/* More than one, straight from sendmsg(2). */
static void
test_many_descriptors(Pair *pair, gconstpointer data)
{
    const unsigned n_before = count_open_fds();
    const int fds[3] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    union {
        char bytes[CMSG_SPACE(sizeof(fds))];
        struct cmsghdr align;
    } control = {.align = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {.iov_base = (char[]){"x"}, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    char buffer[8];
    int fd = 42;

    control.align.cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(&control.align), fds, sizeof(fds));
    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    g_assert_cmpint(sendmsg(pair->ends[0], &message, 0), ==, 1);
    g_assert_cmpint(ch_channel_receive(pair->ends[1], buffer, sizeof(buffer), &fd), ==, -EPROTO);
    g_assert_cmpint(fd, ==, 42);
    g_assert_cmpuint(count_open_fds(), ==, n_before);
}

static void
test_too_long(Pair *pair, gconstpointer data)
{
    char buffer[4];

    g_assert_cmpint(ch_channel_send(pair->ends[0], "too long", 8, -1), ==, 0);
    g_assert_cmpint(ch_channel_send(pair->ends[0], "next", 4, -1), ==, 0);
    g_assert_cmpint(ch_channel_receive(pair->ends[1], buffer, sizeof(buffer), NULL), ==, -EMSGSIZE);
    g_assert_cmpint(ch_channel_receive(pair->ends[1], buffer, sizeof(buffer), NULL), ==, 4);
}

static void
test_end(Pair *pair, gconstpointer data)
{
    char buffer[4];

    ch_close_fd(&pair->ends[0]);
    g_assert_cmpint(ch_channel_wait(pair->ends[1], ch_time_now_us() + 60 * CH_SECOND_US), ==, 0);
    g_assert_cmpint(ch_channel_receive(pair->ends[1], buffer, sizeof(buffer), NULL), ==, 0);
    g_assert_cmpint(ch_channel_send(pair->ends[1], "x", 1, -1), ==, -EPIPE);
}

static void
test_wait(Pair *pair, gconstpointer data)
{
    const int64_t start_us = ch_time_now_us();

    g_assert_cmpint(ch_channel_wait(pair->ends[1], start_us + 20 * CH_MS_US), ==, -ETIMEDOUT);
    g_assert_cmpint(ch_time_now_us() - start_us, >=, 20 * CH_MS_US);
    g_assert_cmpint(ch_channel_send(pair->ends[0], "x", 1, -1), ==, 0);
    g_assert_cmpint(ch_channel_wait(pair->ends[1], ch_time_now_us() + 60 * CH_SECOND_US), ==, 0);
}

static void
test_full(Pair *pair, gconstpointer data)
{
    int result = 0;

    for (int i = 0; i < 100000 && result == 0; i++)
        result = ch_channel_send(pair->ends[0], "record", 6, -1);
    g_assert_cmpint(result, ==, -EAGAIN);
}

static const struct {
    const char *path;
    void (*func)(Pair *pair, gconstpointer data);
} cases[] = {
    {"/channel/records-stay-whole", test_records},
    {"/channel/descriptor-travels", test_descriptor},
    {"/channel/two-descriptors-travel", test_two_descriptors},
    {"/channel/unwanted-descriptor-is-dropped", test_unwanted_descriptor},
    {"/channel/more-descriptors-are-closed", test_many_descriptors},
    {"/channel/too-long-is-refused-alone", test_too_long},
    {"/channel/end-is-seen", test_end},
    {"/channel/wait-has-a-deadline", test_wait},
    {"/channel/send-never-waits", test_full},
};

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add(cases[i].path, Pair, NULL, set_up, cases[i].func, tear_down);
    return g_test_run();
}
