/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "handler/hands/inside-own.h"
#include "handler/hands/test-fake-root.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"

#define PIPE "run/kubevirt/domain-notify-pipe.sock"

static int
open_pipe(FakeRoot *f, int *out_fd, ChHandsReply *out_reply)
{
    *out_reply = (ChHandsReply){0};
    *out_fd = -EBADF;
    (void)ch_inside_open_pipe(f->root_fd, true, out_fd, out_reply);
    return out_reply->errnum;
}

static void
make_node(const FakeRoot *f, const char *path, mode_t type, unsigned minor_number)
{
    g_autofree char *full = fake_pod_path(&f->pod, path);

    g_assert_cmpint(mknod(full, type | 0600, makedev(10, minor_number)), ==, 0);
}

/* What the pod put at the pipe's name before: all but links and full directories are replaced. */
static void
put_nothing(const FakeRoot *f)
{
}

static void
put_file(const FakeRoot *f)
{
    test_tree_write(f->pod.root, PIPE, "old");
}

static void
put_fifo(const FakeRoot *f)
{
    make_node(f, PIPE, S_IFIFO, 0);
}

static void
put_device(const FakeRoot *f)
{
    make_node(f, PIPE, S_IFCHR, 232);
}

static void
put_empty_dir(const FakeRoot *f)
{
    test_tree_mkdir(f->pod.root, PIPE);
}

static void
put_full_dir(const FakeRoot *f)
{
    test_tree_mkdir(f->pod.root, PIPE "/sub");
}

static void
put_link(const FakeRoot *f)
{
    test_tree_link(f->pod.root, PIPE, "../../../victim");
}

static void
put_dangling_link(const FakeRoot *f)
{
    test_tree_link(f->pod.root, PIPE, "made");
}

static void
remove_share_dir(const FakeRoot *f)
{
    g_autofree char *path = fake_pod_path(&f->pod, "run/kubevirt");

    test_tree_remove(path);
}

static void
link_share_dir_out(const FakeRoot *f)
{
    remove_share_dir(f);
    test_tree_link(f->pod.root, "run/kubevirt", "../../..");
}

static void
link_share_dir_within(const FakeRoot *f)
{
    remove_share_dir(f);
    test_tree_mkdir(f->pod.root, "elsewhere");
    test_tree_link(f->pod.root, "run/kubevirt", "/elsewhere");
}

static const struct PipeCase {
    const char *path;
    void (*put)(const FakeRoot *f);
    int errnum;
    const char *found; /* where the pipe is then, in the root */
} pipe_cases[] = {
    {"nothing-there", put_nothing, 0, PIPE},
    {"old-file-goes", put_file, 0, PIPE},
    {"fifo-goes", put_fifo, 0, PIPE},
    {"device-goes", put_device, 0, PIPE},
    {"empty-directory-goes", put_empty_dir, 0, PIPE},
    {"full-directory-stays", put_full_dir, ENOTEMPTY, NULL},
    {"link-is-refused", put_link, ELOOP, NULL},
    {"dangling-link-is-refused", put_dangling_link, ELOOP, NULL},
    {"no-directory", remove_share_dir, ENOENT, NULL},
    {"directory-linked-out-stays-in", link_share_dir_out, 0, "domain-notify-pipe.sock"},
    {"directory-linked-within", link_share_dir_within, 0, "elsewhere/domain-notify-pipe.sock"},
};

static void
test_pipe(FakeRoot *f, gconstpointer data)
{
    const struct PipeCase *c = data;
    ch_autofd int fd = -EBADF;
    ChHandsReply reply;
    struct stat st;

    if (fake_pod_skip())
        return;
    c->put(f);
    g_assert_cmpint(open_pipe(f, &fd, &reply), ==, c->errnum);
    if (c->errnum != 0) {
        g_assert_true(
            g_str_has_prefix(reply.text, "failed to create unix socket for proxy service: "));
        if (c->errnum == ELOOP)
            g_assert_nonnull(strstr(reply.text, "the pathname is symlink"));
        return;
    }
    st = test_tree_stat(f->pod.root, c->found);
    g_assert_true(S_ISSOCK(st.st_mode));
    g_assert_cmpint(st.st_mode & 07777, ==, 0755);
    g_assert_cmpint(st.st_uid, ==, 107);
    g_assert_cmpint(st.st_gid, ==, 107);
    g_assert_cmpuint(st.st_ino, ==, reply.ino);
    g_assert_cmpuint(st.st_dev, ==, reply.dev);
}

static bool
close_pipe(FakeRoot *f, const ChHandsReply *opened)
{
    const ChFileId id = {opened->dev, opened->ino};
    ChHandsReply reply = {0};

    return ch_inside_close_pipe(f->root_fd, &id, &reply);
}

/* spec:05-16.1#12: it is made over the last one's, and once that is closed */
static void
test_close(FakeRoot *f, gconstpointer data)
{
    ch_autofd int first_fd = -EBADF;
    ch_autofd int second_fd = -EBADF;
    ChHandsReply first;
    ChHandsReply second;

    if (fake_pod_skip())
        return;
    g_assert_cmpint(open_pipe(f, &first_fd, &first), ==, 0);
    g_assert_cmpint(open_pipe(f, &second_fd, &second), ==, 0);
    g_assert_false(close_pipe(f, &first)); /* the successor's */
    g_assert_true(test_tree_has(f->pod.root, PIPE));
    g_assert_true(close_pipe(f, &second));
    g_assert_false(test_tree_has(f->pod.root, PIPE));
    g_assert_false(close_pipe(f, &second));
    ch_close_fd(&second_fd);
    g_assert_cmpint(open_pipe(f, &second_fd, &second), ==, 0);
    g_assert_true(test_tree_has(f->pod.root, PIPE));
}

/* Longer than sun_path allows. */
static void
test_long_root(FakeRoot *f, gconstpointer data)
{
    g_autofree char *name = g_strnfill(200, 'd');
    g_autofree char *root = NULL;
    g_autofree char *share = NULL;
    ch_autofd int root_fd = -EBADF;
    ch_autofd int fd = -EBADF;
    ChHandsReply reply = {0};

    if (fake_pod_skip())
        return;
    root = g_build_filename(f->pod.dir, name, NULL);
    test_tree_mkdir(root, "var/run/kubevirt");
    root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    g_assert_true(ch_inside_open_pipe(root_fd, false, &fd, &reply));
    g_assert_cmpint(test_tree_stat(root, "var/run/kubevirt/domain-notify-pipe.sock").st_uid, ==, 0);
}

/* As it is asked for here; test-inside-own.c has the rest. */
static int
own_kvm(FakeRoot *f)
{
    ChHandsReply reply = {0};

    (void)ch_inside_own_devices(f->root_fd, CH_HANDS_DEVICE_KVM, false, &reply);
    return reply.errnum;
}

typedef struct {
    int root_fd;
    atomic_bool stop;
} Attacker;

/* As root in its own pod: whatever name is acted on is exchanged all the time. */
static gpointer
attack(gpointer data)
{
    static const char *const pairs[][2] = {
        {"dev/kvm", "dev/evil"},
        {"run/kubevirt", "run/evil"},
        {"run/kubevirt/domain-notify-pipe.sock", "run/pipe"},
        {"dev", "evil-dev"},
    };
    Attacker *a = data;

    for (gsize i = 0; !atomic_load(&a->stop); i = (i + 1) % G_N_ELEMENTS(pairs))
        for (int times = 0; times < 2; times++)
            (void)syscall(SYS_renameat2, a->root_fd, pairs[i][0], a->root_fd, pairs[i][1], 2);
    return NULL;
}

static void
test_race(FakeRoot *f, gconstpointer data)
{
    const int64_t end_us = ch_time_now_us() + 2 * CH_SECOND_US;
    Attacker attacker = {.root_fd = f->root_fd};
    unsigned n_done = 0;
    unsigned n_refused = 0;
    GThread *thread;

    if (fake_pod_skip())
        return;
    make_node(f, "dev/kvm", S_IFCHR, 232);
    test_tree_link(f->pod.root, "dev/evil", "../../victim");
    test_tree_link(f->pod.root, "run/evil", "../..");
    test_tree_link(f->pod.root, "run/pipe", "../../victim");
    test_tree_mkdir(f->pod.dir, "evil");
    test_tree_write(f->pod.dir, "evil/kvm", "the host's");
    test_tree_link(f->pod.root, "evil-dev", "../evil");
    thread = g_thread_new("attacker", attack, &attacker);
    for (unsigned i = 0; i < 10000 && ch_time_now_us() < end_us; i++) {
        ch_autofd int fd = -EBADF;
        ChHandsReply reply;
        const int errnum = i % 2 == 0 ? open_pipe(f, &fd, &reply) : own_kvm(f);

        errnum == 0 ? n_done++ : n_refused++;
    }
    atomic_store(&attacker.stop, true);
    g_thread_join(thread);
    g_test_message("%u done, %u refused", n_done, n_refused);
    g_assert_cmpuint(n_done, >, 0);
    g_assert_cmpint(test_tree_stat(f->pod.dir, "evil/kvm").st_uid, ==, 0);
    g_assert_false(test_tree_has(f->pod.dir, "domain-notify-pipe.sock"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(pipe_cases); i++) {
        g_autofree char *path = g_strconcat("/inside/pipe/", pipe_cases[i].path, NULL);

        g_test_add(
            path, FakeRoot, &pipe_cases[i], fake_root_set_up, test_pipe, fake_root_tear_down);
    }
    g_test_add("/inside/close-spares-a-successor",
               FakeRoot,
               NULL,
               fake_root_set_up,
               test_close,
               fake_root_tear_down);
    g_test_add("/inside/root-of-any-length",
               FakeRoot,
               NULL,
               fake_root_set_up,
               test_long_root,
               fake_root_tear_down);
    g_test_add("/inside/racing-attacker",
               FakeRoot,
               NULL,
               fake_root_set_up,
               test_race,
               fake_root_tear_down);
    return g_test_run();
}
