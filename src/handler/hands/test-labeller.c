/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/labeller.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "handler/hands/tap.h"
#include "handler/hands/test-fake-network.h"
#include "lib/base/fd.h"
#include "lib/linux/line-reader.h"
#include "lib/linux/test-tree.h"

#define LABEL "system_u:system_r:container_t:s0:c1,c22"
#define OWN   "system_u:system_r:spc_t:s0"

/* A pod with a network, and a /proc with labels for it and for us. What the helper tells comes
 * through `told_fd`, its standard error; its standard input is `attr/exec`. */
typedef struct {
    FakeNetwork network;
    char *proc; /* owned */
    int told_fd;
    int streams[2]; /* the test's own standard input and error */
} Fixture;

/* As the kernel keeps it; the labeller has a copy, and the test changes it from test to test. */
static char proc_dir[PATH_MAX];
static char program[PATH_MAX];
static const ChTapLabelPlaces places = {proc_dir, program};

static void
write_label_of(const Fixture *f, const char *text, gssize n)
{
    g_autofree char *path = g_strdup_printf("%s/%d/attr/current", f->proc, (int)f->network.pid);

    g_assert_true(g_file_set_contents(path, text, n, NULL));
}

static int
replace_stream(int number, int fd)
{
    const int old_fd = fcntl(number, F_DUPFD_CLOEXEC, 100);

    g_assert_cmpint(dup2(fd, number), ==, number);
    close(fd);
    return old_fd;
}

static void
set_up(Fixture *f, gconstpointer data)
{
    g_autofree char *dir = NULL;
    g_autofree char *path = NULL;
    int pair[2];

    *f = (Fixture){.proc = test_tree_new(), .told_fd = -EBADF, .streams = {-EBADF, -EBADF}};
    fake_network_init(&f->network, data == NULL);
    dir = g_strdup_printf("%d/attr", (int)f->network.pid);
    test_tree_mkdir(f->proc, dir);
    test_tree_mkdir(f->proc, "thread-self/attr");
    test_tree_write(f->proc, "thread-self/attr/current", OWN "\n");
    test_tree_write(f->proc, "thread-self/attr/exec", "");
    write_label_of(f, LABEL, sizeof(LABEL)); /* with a NUL, as SELinux gives it */
    g_strlcpy(proc_dir, f->proc, sizeof(proc_dir));
    g_strlcpy(program, "/proc/self/exe", sizeof(program));

    path = g_build_filename(f->proc, "thread-self/attr/exec", NULL);
    g_assert_cmpint(pipe2(pair, O_CLOEXEC | O_NONBLOCK), ==, 0);
    f->told_fd = pair[0];
    f->streams[0] = replace_stream(STDIN_FILENO, open(path, O_RDONLY | O_CLOEXEC));
    f->streams[1] = replace_stream(STDERR_FILENO, pair[1]);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    (void)close(replace_stream(STDIN_FILENO, f->streams[0]));
    (void)close(replace_stream(STDERR_FILENO, f->streams[1]));
    close(f->told_fd);
    fake_network_clear(&f->network);
    test_tree_remove(f->proc);
    g_free(f->proc);
}

/* --- what is executed */

static void
tell(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(120);
}

/* What it may do: make a tap, and nothing that its own exec could give it. */
static bool
has_but_net_admin(void)
{
    char status[8192];

    return ch_read_whole(AT_FDCWD, "/proc/self/status", status, sizeof(status)) > 0 &&
           strstr(status, "\nCapPrm:\t0000000000001000\n") != NULL &&
           strstr(status, "\nCapEff:\t0000000000001000\n") != NULL &&
           strstr(status, "\nCapBnd:\t0000000000001000\n") != NULL &&
           strstr(status, "\nNoNewPrivs:\t0\n") != NULL; /* else no label could change */
}

/* Behind the labeller's filter: few calls work. */
static int
helper_main(char **argv)
{
    char label[256] = "";
    struct stat st;

    if (pread(STDIN_FILENO, label, sizeof(label) - 1, 0) < 0)
        return 121;
    for (int i = 1; i < CH_TAP_N_ARGS; i++) {
        tell(argv[i]);
        tell(" ");
    }
    tell(label);
    for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
        if (fstat(fd, &st) == 0)
            tell(" and a descriptor");
    if (!has_but_net_admin())
        tell(" and other privileges");
    if (environ[0] != NULL)
        tell(" and an environment");
    tell("\n");
    if (g_str_equal(argv[2], "traps"))
        __builtin_trap();
    if (g_str_equal(argv[2], "hangs")) {
        (void)dprintf(STDERR_FILENO, "%d\n", (int)getpid());
        for (;;)
            (void)poll(NULL, 0, 1000);
    }
    return ch_tap_main(argv);
}

/* (transfer full): what helpers told so far */
static char *
take_told(const Fixture *f)
{
    char text[1024] = "";

    if (read(f->told_fd, text, sizeof(text) - 1) < 0)
        g_assert_cmpint(errno, ==, EAGAIN);
    return g_strdup(text);
}

static void
assert_told(const Fixture *f, const char *expected)
{
    g_autofree char *told = take_told(f);

    g_assert_cmpstr(told, ==, expected);
}

static void
assert_label_written(const Fixture *f, const char *expected)
{
    g_autofree char *path = g_build_filename(f->proc, "thread-self/attr/exec", NULL);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, expected);
}

/* --- asking, as the hands and a child of theirs do */

static ChHandsReply
make(const Fixture *f, const char *name, uint32_t flags)
{
    ChTapOrder order = {.pid = f->network.pid, .flags = flags};
    ch_autofd int fd = -EBADF;
    ChHandsReply reply = {0};

    g_strlcpy(order.name, name, sizeof(order.name));
    g_assert_cmpint(ch_labeller_start(&places), ==, 0);
    g_assert_true(ch_labeller_is_wanted());
    g_assert_cmpint(ch_labeller_ask(&order, f->network.pidfd, &fd), ==, 0);
    g_assert_cmpint(ch_labeller_await(fd, &reply), ==, reply.errnum == 0);
    return reply;
}

static void
assert_fails(const ChHandsReply *reply, int errnum, const char *text)
{
    g_assert_cmpstr(reply->text, ==, text);
    g_assert_cmpint(reply->errnum, ==, errnum);
}

/* What sysfs says of a tap in the pod's network, 0: there is none. */
static unsigned long
tap_value(const Fixture *f, const char *name, const char *what)
{
    g_autofree char *dir = test_tree_new();
    g_autofree char *path = g_build_filename(dir, "class/net", name, what, NULL);
    int pair[2];
    char text[32] = "";
    pid_t child;

    g_assert_cmpint(pipe2(pair, O_CLOEXEC), ==, 0);
    child = fork();
    if (child == 0) {
        int fd = -1;
        ssize_t n = 0;

        if (setns(f->network.pidfd, CLONE_NEWNET) == 0 && unshare(CLONE_NEWNS) == 0 &&
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
            mount("sysfs", dir, "sysfs", 0, NULL) == 0)
            fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            n = read(fd, text, sizeof(text));
        _exit(n > 0 && write(pair[1], text, (size_t)n) != n);
    }
    g_assert_cmpint(waitpid(child, NULL, 0), ==, child);
    close(pair[1]);
    g_assert_cmpint(read(pair[0], text, sizeof(text) - 1), >=, 0);
    close(pair[0]);
    test_tree_remove(dir);
    return strtoul(text, NULL, 0);
}

/* spec:05-16.8#154 spec:04-23.8#7 */
static void
test_labelled(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_network_skip_taps())
        return;
    reply = make(f, "tap0", CH_HANDS_NON_ROOT);
    assert_fails(&reply, 0, "");
    assert_told(f, "make-tap tap0 1 " LABEL "\n");
    g_assert_cmpuint(tap_value(f, "tap0", "owner"), ==, 107);
    g_assert_cmpuint(tap_value(f, "tap0", "group"), ==, 107);
    g_assert_cmpuint(tap_value(f, "tap0", "tun_flags"), ==, 0x2802); /* one queue, persistent */

    reply = make(f, "tap1", CH_HANDS_MULTI_QUEUE);
    assert_fails(&reply, 0, "");
    assert_told(f, "make-tap tap1 2 " LABEL "\n");
    g_assert_cmpuint(tap_value(f, "tap1", "owner"), ==, 0);
    g_assert_cmpuint(tap_value(f, "tap1", "tun_flags"), ==, 0x1902);
}

/* What has our label already needs no other process. */
static void
test_own_label(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_network_skip_taps())
        return;
    write_label_of(f, OWN, -1);
    reply = make(f, "tap0", 0);
    assert_fails(&reply, 0, "");
    assert_told(f, "");
    assert_label_written(f, "");
    g_assert_cmpuint(tap_value(f, "tap0", "tun_flags"), ==, 0x2802);
    reply = make(f, "tap0", 0);
    assert_fails(&reply,
                 EBUSY,
                 "failed to create tap device named tap0. Reason: [0]: device or resource busy");
}

static void
test_tap_fails(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_network_skip_taps())
        return;
    reply = make(f, "lo", 0);
    assert_fails(&reply,
                 EBUSY,
                 "failed to create tap device named lo. Reason: [0]: device or resource busy");
    assert_told(f, "make-tap lo 0 " LABEL "\n");
    reply = make(f, "a/b", 0); /* the helper looks at its arguments itself */
    assert_fails(
        &reply, EINVAL, "failed to create tap device named a/b. Reason: [0]: invalid argument");
}

static void
test_helper_dies(Fixture *f, gconstpointer data)
{
    g_autofree char *text = NULL;
    ChHandsReply reply;

    if (fake_network_skip())
        return;
    text = g_strdup_printf("failed to execute command in launcher namespace %d: no child processes",
                           (int)f->network.pid);
    reply = make(f, "traps", 0);
    assert_fails(&reply, ECHILD, text);
}

static void
test_no_program(Fixture *f, gconstpointer data)
{
    g_autofree char *text = NULL;
    ChHandsReply reply;

    if (fake_network_skip())
        return;
    text = g_strdup_printf(
        "failed to execute command in launcher namespace %d: no such file or directory",
        (int)f->network.pid);
    g_strlcpy(program, "/nonexistent", sizeof(program));
    reply = make(f, "tap0", 0);
    assert_fails(&reply, ENOENT, text);
}

static void
test_label_refused(Fixture *f, gconstpointer data)
{
    g_autofree char *path = g_build_filename(f->proc, "thread-self/attr/exec", NULL);
    ChHandsReply reply;

    if (fake_network_skip())
        return;
    g_assert_cmpint(unlink(path), ==, 0);
    reply = make(f, "tap0", 0);
    assert_fails(&reply,
                 ENOENT,
                 "failed to switch selinux context to " LABEL
                 ". Reason: no such file or directory");
    assert_told(f, "");
}

/* What is no label of one line goes nowhere. */
static void
test_odd_labels(Fixture *f, gconstpointer data)
{
    static const struct {
        const char *text;
        gssize n;
        int errnum;
    } cases[] = {
        {"", 0, EBADMSG},
        {"\n", 1, EBADMSG},
        {"\0", 1, EBADMSG},
        {"a:b:c:s0\n\n", 10, EBADMSG},
        {"a:b\nc:s0", 8, EBADMSG},
        {"a:b\0c:s0", 8, EBADMSG},
        {"a:b:c s0", 8, EBADMSG},
        {"a:b:\x1b:s0", 8, EBADMSG},
        {"a:b:\xc3\xa4:s0", 9, EBADMSG},
        {"a:b:c:s0\n", 9, 0},
    };
    g_autofree char *long_label = g_strnfill(4096, 'a');

    if (fake_network_skip_taps())
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        ChHandsReply reply;

        write_label_of(f, cases[i].text, cases[i].n);
        reply = make(f, "tap0", 0);
        g_assert_cmpint(reply.errnum, ==, cases[i].errnum);
        assert_told(f, cases[i].errnum == 0 ? "make-tap tap0 0 a:b:c:s0\n" : "");
        assert_label_written(f, cases[i].errnum == 0 ? "a:b:c:s0" : "");
    }
    write_label_of(f, long_label, -1);
    g_assert_cmpint(make(f, "tap1", 0).errnum, ==, EFBIG);
    assert_told(f, "");
}

static void
test_no_label(Fixture *f, gconstpointer data)
{
    g_autofree char *path = g_strdup_printf("%s/%d/attr/current", f->proc, (int)f->network.pid);
    g_autofree char *text = g_strdup_printf(
        "could not retrieve pid %d selinux label: no such file or directory", (int)f->network.pid);
    ChHandsReply reply;

    if (fake_network_skip())
        return;
    g_assert_cmpint(unlink(path), ==, 0);
    reply = make(f, "tap0", 0);
    assert_fails(&reply, ENOENT, text);
    assert_told(f, "");
}

static void
test_launcher_is_gone(Fixture *f, gconstpointer data)
{
    if (fake_network_skip())
        return;
    fake_network_end(&f->network);
    g_assert_cmpint(make(f, "tap0", 0).errnum, ==, ESRCH);
    assert_told(f, "");
}

/* Who shares our network is no pod. */
static void
test_own_network(Fixture *f, gconstpointer data)
{
    if (fake_network_skip())
        return;
    g_assert_cmpint(make(f, "tap0", 0).errnum, ==, EPERM);
    assert_told(f, "");
}

/* --- ends */

/* Asks for a helper that hangs. */
static void
ask_for_ever(const Fixture *f, int *out_fd)
{
    const ChTapOrder order = {.pid = f->network.pid, .name = "hangs"};

    g_assert_cmpint(ch_labeller_start(&places), ==, 0);
    g_assert_cmpint(ch_labeller_ask(&order, f->network.pidfd, out_fd), ==, 0);
}

/* Waits until the helper tells that it hangs. Returns a pidfd. */
static int
open_helper(const Fixture *f)
{
    struct pollfd poll_fd = {.fd = f->told_fd, .events = POLLIN};
    g_autoptr(GString) told = g_string_new(NULL);
    int fd;

    while (strchr(told->str, '\n') == strrchr(told->str, '\n')) { /* none, or one line */
        g_autofree char *text = NULL;

        g_assert_cmpint(poll(&poll_fd, 1, 60000), ==, 1);
        text = take_told(f);
        g_string_append(told, text);
    }
    g_assert_true(g_str_has_prefix(told->str, "make-tap hangs 0 " LABEL "\n"));
    fd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(strchr(told->str, '\n') + 1, NULL, 10), 0);
    g_assert_cmpint(fd, >=, 0);
    return fd;
}

static void
assert_ends(int helper_fd)
{
    struct pollfd poll_fd = {.fd = helper_fd, .events = POLLIN};

    g_assert_cmpint(poll(&poll_fd, 1, 60000), ==, 1);
}

/* Who waits was killed. */
static void
test_deadline(Fixture *f, gconstpointer data)
{
    ch_autofd int helper_fd = -EBADF;
    int fd = -EBADF;

    if (fake_network_skip())
        return;
    ask_for_ever(f, &fd);
    helper_fd = open_helper(f);
    close(fd);
    assert_ends(helper_fd);
}

static void
test_hands_end(Fixture *f, gconstpointer data)
{
    ch_autofd int helper_fd = -EBADF;
    pid_t hands;
    int fd;

    if (fake_network_skip())
        return;
    hands = fork();
    if (hands == 0) {
        ask_for_ever(f, &fd);
        for (;;)
            pause();
    }
    helper_fd = open_helper(f);
    kill(hands, SIGKILL);
    g_assert_cmpint(waitpid(hands, NULL, 0), ==, hands);
    assert_ends(helper_fd);
}

/* Returns how the child that does @func ended. */
static int
run_as_hands(const Fixture *f, int (*func)(const Fixture *f))
{
    const pid_t hands = fork();
    int status = 0;

    if (hands == 0)
        _exit(func(f));
    g_assert_cmpint(waitpid(hands, &status, 0), ==, hands);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int
ask_the_dead(const Fixture *f)
{
    const ChTapOrder order = {.pid = f->network.pid, .name = "tap0"};
    char *path = g_strdup_printf("/proc/self/task/%d/children", (int)getpid());
    char *children = NULL;
    int fd;

    if (ch_labeller_start(&places) < 0 || !g_file_get_contents(path, &children, NULL, NULL) ||
        kill((pid_t)strtol(children, NULL, 10), SIGKILL) < 0 || wait(NULL) < 0)
        return 100;
    return 100 + ch_labeller_ask(&order, f->network.pidfd, &fd);
}

/* Its hands end too: nobody else would start another. */
static void
test_labeller_ends(Fixture *f, gconstpointer data)
{
    if (fake_network_skip())
        return;
    g_assert_cmpint(run_as_hands(f, ask_the_dead), ==, EXIT_FAILURE);
}

static int
start_without_privilege(const Fixture *f)
{
    return setuid(65534) < 0 ? EXIT_FAILURE : -ch_labeller_start(&places);
}

static void
test_no_sandbox(Fixture *f, gconstpointer data)
{
    g_autofree char *told = NULL;

    if (fake_network_skip())
        return;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    g_test_skip("a sanitizer's build has no filter that could be refused");
    return;
#endif
    g_assert_cmpint(run_as_hands(f, start_without_privilege), ==, ECHILD);
    told = take_told(f);
    g_assert_true(g_str_has_prefix(told, "virt-handler-hands: labels for taps: "));
}

int
main(int argc, char **argv)
{
    if (argc == CH_TAP_N_ARGS && g_str_equal(argv[1], CH_TAP_COMMAND))
        _exit(helper_main(argv));
    g_test_init(&argc, &argv, NULL);
#define ADD(name, data, func) g_test_add("/labeller/" name, Fixture, data, set_up, func, tear_down)
    ADD("gives-the-launchers-label", NULL, test_labelled);
    ADD("has-the-label-already", NULL, test_own_label);
    ADD("tap-fails", NULL, test_tap_fails);
    ADD("helper-dies", NULL, test_helper_dies);
    ADD("no-program", NULL, test_no_program);
    ADD("label-refused", NULL, test_label_refused);
    ADD("odd-labels", NULL, test_odd_labels);
    ADD("no-label", NULL, test_no_label);
    ADD("launcher-is-gone", NULL, test_launcher_is_gone);
    ADD("refuses-its-own-network", "shared", test_own_network);
    ADD("nobody-waits", NULL, test_deadline);
    ADD("hands-end", NULL, test_hands_end);
    ADD("labeller-ends", NULL, test_labeller_ends);
    ADD("has-no-sandbox", NULL, test_no_sandbox);
    return g_test_run();
}
