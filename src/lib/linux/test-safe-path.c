/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/safe-path.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/linux/test-tree.h"

/* The tree of each test: what is in `in` is the workload's, `out` is not to be reached. */
typedef struct {
    char *dir;
    char *in;
    int in_fd;
} Tree;

static void
set_up(Tree *tree, gconstpointer data)
{
    tree->dir = test_tree_new();
    tree->in = g_build_filename(tree->dir, "in", NULL);
    test_tree_mkdir(tree->dir, "in/a/b");
    test_tree_mkdir(tree->dir, "out");
    test_tree_write(tree->dir, "in/a/b/file", "inside");
    test_tree_write(tree->dir, "in/file", "top");
    test_tree_write(tree->dir, "out/file", "outside");
    tree->in_fd = open(tree->in, O_PATH | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(tree->in_fd, >=, 0);
}

static void
tear_down(Tree *tree, gconstpointer data)
{
    close(tree->in_fd);
    test_tree_remove(tree->dir);
    g_free(tree->in);
    g_free(tree->dir);
}

static const struct ResolveCase {
    const char *path;
    const char *link;   /* made at this name in `in`, NULL: none */
    const char *target; /* ... with this text */
    const char *open;
    int no_links;      /* 0 or -errno */
    int in_root;       /* 0 or -errno */
    const char *found; /* what IN_ROOT reaches, in `in` */
} resolve_cases[] = {
    /* clang-format off */
    {"plain",            NULL,   NULL,           "a/b/file",           0,       0,       "a/b/file"},
    {"missing",          NULL,   NULL,           "a/none",             -ENOENT, -ENOENT, NULL},
    {"through-file",     NULL,   NULL,           "file/x",             -ENOTDIR, -ENOTDIR, NULL},
    {"up-and-back",      NULL,   NULL,           "a/../file",          0,       0,       "file"},
    {"above-root",       NULL,   NULL,           "../../../file",      -EXDEV,  0,       "file"},
    {"absolute",         NULL,   NULL,           "/a/b/file",          -EXDEV,  0,       "a/b/file"},
    {"absolute-link",    "l",    "/a/b",         "l/file",             -ELOOP,  0,       "a/b/file"},
    {"link-to-root",     "l",    "/",            "l/file",             -ELOOP,  0,       "file"},
    {"relative-link-up", "a/l",  "../../../..",  "a/l/file",           -ELOOP,  0,       "file"},
    {"link-at-the-end",  "l",    "a/b/file",     "l",                  -ELOOP,  0,       "a/b/file"},
    {"link-to-sibling",  "l",    "../out",       "l/file",             -ELOOP,  -ENOENT, NULL},
    {"link-to-itself",   "l",    "l",            "l",                  -ELOOP,  -ELOOP,  NULL},
    {"dangling",         "l",    "/none",        "l",                  -ELOOP,  -ENOENT, NULL},
    /* clang-format on */
};

static void
check_open(const Tree *tree, const struct ResolveCase *c, ChResolve how, int expect)
{
    ch_autofd int fd = ch_safe_open(tree->in_fd, c->open, O_PATH, 0, how);
    struct stat st;
    ChFileId id;

    if (expect < 0) {
        g_assert_cmpint(fd, ==, expect);
        return;
    }
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(fcntl(fd, F_GETFD) & FD_CLOEXEC, !=, 0);
    g_assert_cmpint(ch_safe_identify(fd, &id, NULL), ==, 0);
    st = test_tree_stat(tree->in, c->found);
    g_assert_cmpuint(id.ino, ==, st.st_ino);
    g_assert_cmpuint(id.dev, ==, st.st_dev);
}

/* spec:05-16.1#1 spec:05-16.1#2 spec:05-16.1#3 spec:05-16.1#4 spec:05-16.1#5 spec:05-16.1#6
 * spec:05-16.1#8 spec:05-16.1#18 */
static void
test_resolve(Tree *tree, gconstpointer data)
{
    const struct ResolveCase *c = data;

    if (c->link != NULL)
        test_tree_link(tree->in, c->link, c->target);
    check_open(tree, c, CH_RESOLVE_NO_LINKS, c->no_links);
    check_open(tree, c, CH_RESOLVE_IN_ROOT, c->in_root);
}

/* spec:05-16.1#7 spec:05-16.1#9 */
static void
test_chain(Tree *tree, gconstpointer data)
{
    ch_autofd int fd = -EBADF;

    test_tree_mkdir(tree->in, "some/dir");
    test_tree_link(tree->in, "some/one", "two");
    test_tree_link(tree->in, "some/two", "../three");
    test_tree_link(tree->in, "three", "/some/dir/../../four");
    test_tree_link(tree->in, "four", "a");
    fd = ch_safe_open(
        tree->in_fd, "some/one/b/../../some/two/b/file", O_PATH, 0, CH_RESOLVE_IN_ROOT);
    g_assert_cmpint(fd, >=, 0);
}

static void
test_magic_link(void)
{
    ch_autofd int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

    g_assert_cmpint(
        ch_safe_open(proc_fd, "self/root/etc", O_PATH, 0, CH_RESOLVE_IN_ROOT), ==, -ELOOP);
    g_assert_cmpint(
        ch_safe_open(proc_fd, "self/root/etc", O_PATH, 0, CH_RESOLVE_NO_LINKS), ==, -ELOOP);
}

/* spec:05-16.1#24 */
static void
test_create(Tree *tree, gconstpointer data)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    ch_autofd int fd = ch_safe_open(tree->in_fd, "new", flags, 0640, CH_RESOLVE_NO_LINKS);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(test_tree_stat(tree->in, "new").st_mode & 0777, ==, 0640);
    g_assert_cmpint(
        ch_safe_open(tree->in_fd, "new", flags, 0640, CH_RESOLVE_NO_LINKS), ==, -EEXIST);
    /* A dangling link must not become a file elsewhere. */
    test_tree_link(tree->in, "l", "../out/made");
    g_assert_cmpint(ch_safe_open(tree->in_fd, "l", flags, 0640, CH_RESOLVE_NO_LINKS), <, 0);
    g_assert_false(test_tree_has(tree->dir, "out/made"));
}

static void
test_lookup(Tree *tree, gconstpointer data)
{
    g_autofree char *fifo = g_build_filename(tree->in, "fifo", NULL);

    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    test_tree_link(tree->in, "l", "file");
    g_assert_cmpint(ch_safe_lookup(tree->in_fd, "file"), ==, 0);
    g_assert_cmpint(
        ch_safe_lookup(tree->in_fd, "fifo"), ==, 0); /* and does not wait for a writer */
    g_assert_cmpint(ch_safe_lookup(tree->in_fd, "none"), ==, -ENOENT);
    g_assert_cmpint(ch_safe_lookup(tree->in_fd, "l"), ==, -ELOOP);
}

/* spec:05-16.1#16 */
static void
test_remove(Tree *tree, gconstpointer data)
{
    g_autofree char *fifo = g_build_filename(tree->in, "fifo", NULL);

    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    test_tree_mkdir(tree->in, "empty");
    test_tree_link(tree->in, "l", "file");
    test_tree_link(tree->in, "d", "../out");
    g_assert_cmpint(ch_safe_remove(tree->in_fd, "fifo"), ==, 0);
    g_assert_cmpint(ch_safe_remove(tree->in_fd, "empty"), ==, 0);
    g_assert_cmpint(ch_safe_remove(tree->in_fd, "none"), ==, 0);
    g_assert_cmpint(ch_safe_remove(tree->in_fd, "a"), ==, -ENOTEMPTY);
    g_assert_cmpint(ch_safe_remove(tree->in_fd, "l"), ==, -ELOOP);
    g_assert_cmpint(ch_safe_remove(tree->in_fd, "d"), ==, -ELOOP);
    g_assert_false(test_tree_has(tree->in, "fifo"));
    g_assert_false(test_tree_has(tree->in, "empty"));
    g_assert_true(test_tree_has(tree->in, "file"));
    g_assert_true(test_tree_has(tree->in, "l"));
}

static void
test_chown(Tree *tree, gconstpointer data)
{
    ch_autofd int fd = ch_safe_open(tree->in_fd, "file", O_PATH, 0, CH_RESOLVE_NO_LINKS);
    struct stat before;

    if (geteuid() != 0) {
        g_test_skip("needs root: chown");
        return;
    }
    g_assert_cmpint(ch_safe_chown(fd, 107, 108), ==, 0);
    before = test_tree_stat(tree->in, "file");
    g_assert_cmpint(before.st_uid, ==, 107);
    g_assert_cmpint(before.st_gid, ==, 108);
    g_usleep(20000);
    /* Already so: not even the change time moves. */
    g_assert_cmpint(ch_safe_chown(fd, 107, 108), ==, 0);
    g_assert_cmpint(test_tree_stat(tree->in, "file").st_ctim.tv_nsec, ==, before.st_ctim.tv_nsec);
}

typedef struct {
    int in_fd;
    atomic_bool stop;
} Attacker;

/* Keeps exchanging the directory `a` for a link that leads out. */
static gpointer
attack(gpointer data)
{
    Attacker *attacker = data;

    while (!atomic_load(&attacker->stop))
        (void)syscall(
            SYS_renameat2, attacker->in_fd, "a", attacker->in_fd, "evil", 2 /* RENAME_EXCHANGE */);
    return NULL;
}

/* spec:05-16.1#25 */
static void
test_race(Tree *tree, gconstpointer data)
{
    const ChResolve how = GPOINTER_TO_UINT(data);
    const int64_t end_us = ch_time_now_us() + CH_SECOND_US;
    Attacker attacker = {.in_fd = tree->in_fd};
    const ino_t inside = test_tree_stat(tree->in, "a/b/file").st_ino;
    unsigned n_opened = 0;
    unsigned n_refused = 0;
    GThread *thread;

    test_tree_mkdir(tree->dir, "out/b");
    test_tree_write(tree->dir, "out/b/file", "outside");
    test_tree_link(tree->in, "evil", "../out");
    thread = g_thread_new("attacker", attack, &attacker);
    for (unsigned i = 0; i < 10000 && ch_time_now_us() < end_us; i++) {
        ch_autofd int fd = ch_safe_open(tree->in_fd, "a/b/file", O_PATH, 0, how);
        ChFileId id;

        if (fd < 0) {
            g_assert_true(fd == -ELOOP || fd == -ENOENT || fd == -EAGAIN || fd == -EXDEV);
            n_refused++;
            continue;
        }
        g_assert_cmpint(ch_safe_identify(fd, &id, NULL), ==, 0);
        g_assert_cmpuint(id.ino, ==, inside);
        n_opened++;
    }
    atomic_store(&attacker.stop, true);
    g_thread_join(thread);
    g_test_message("%u opened, %u refused", n_opened, n_refused);
    g_assert_cmpuint(n_opened + n_refused, >, 100);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(resolve_cases); i++) {
        g_autofree char *path = g_strconcat("/safe-path/resolve/", resolve_cases[i].path, NULL);

        g_test_add(path, Tree, &resolve_cases[i], set_up, test_resolve, tear_down);
    }
    g_test_add("/safe-path/chain", Tree, NULL, set_up, test_chain, tear_down);
    g_test_add_func("/safe-path/magic-link-is-refused", test_magic_link);
    g_test_add("/safe-path/create-is-exclusive", Tree, NULL, set_up, test_create, tear_down);
    g_test_add("/safe-path/lookup-follows-nothing", Tree, NULL, set_up, test_lookup, tear_down);
    g_test_add("/safe-path/remove-spares-links", Tree, NULL, set_up, test_remove, tear_down);
    g_test_add("/safe-path/chown-only-when-needed", Tree, NULL, set_up, test_chown, tear_down);
    g_test_add("/safe-path/race/no-links",
               Tree,
               GUINT_TO_POINTER(CH_RESOLVE_NO_LINKS),
               set_up,
               test_race,
               tear_down);
    g_test_add("/safe-path/race/in-root",
               Tree,
               GUINT_TO_POINTER(CH_RESOLVE_IN_ROOT),
               set_up,
               test_race,
               tear_down);
    return g_test_run();
}
