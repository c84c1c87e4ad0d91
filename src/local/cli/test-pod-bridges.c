/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/pod-bridges.h"

#include <glib/gstdio.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include "lib/linux/rtnetlink.h"

typedef struct {
    ChCli cli;
    char *parent, *folder;
} State;

static void
state_init(State *state)
{
    state->cli.state_dir = g_dir_make_tmp("test-pod-bridges-XXXXXX", NULL);
    state->parent = g_build_filename(state->cli.state_dir, "podrunner", NULL);
    state->folder = g_build_filename(state->parent, "bridges", NULL);
    g_assert_cmpint(g_mkdir_with_parents(state->folder, 0755), ==, 0);
}

/* Of the notes nothing may be left. */
static void
state_clear(State *state)
{
    g_assert_false(g_file_test(state->folder, G_FILE_TEST_EXISTS));
    g_assert_cmpint(g_rmdir(state->parent), ==, 0);
    g_assert_cmpint(g_rmdir(state->cli.state_dir), ==, 0);
    g_free(state->folder);
    g_free(state->parent);
    g_free(state->cli.state_dir);
}

/* @boot: NULL: this one */
static void
note(const State *state, const char *name, unsigned index, const char *boot)
{
    g_autofree char *path = g_build_filename(state->folder, name, NULL);
    g_autofree char *now = NULL;
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents("/proc/sys/kernel/random/boot_id", &now, NULL, NULL));
    text = g_strdup_printf("%u %s\n", index, boot != NULL ? boot : g_strchomp(now));
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

/* @master: index of the bridge whose port it becomes; 0: none */
static unsigned
make_link(const char *kind, const char *name, unsigned master)
{
    g_autoptr(ChNetlink) netlink = ch_netlink_open(NETLINK_ROUTE, NULL);
    ChNetlinkMessage message;

    ch_rtnl_compose_link(&message,
                         &(ChLinkChange){.kind = kind, .name = name, .master = (int)master});
    g_assert_true(ch_netlink_request(netlink, &message, message.header.nlmsg_len, NULL));
    return if_nametoindex(name);
}

static void
test_ours_go(void)
{
    State state;

    state_init(&state);
    note(&state, "lab0", make_link("bridge", "lab0", 0), NULL);
    (void)make_link("bridge", "lab1", 0);
    note(&state, "lab1", 0, NULL); /* whoever noted it crashed before it could tell the index */
    note(&state, "lab2", 7, NULL); /* gone already */
    ch_pod_bridges_remove(&state.cli);
    g_assert_cmpuint(if_nametoindex("lab0"), ==, 0);
    g_assert_cmpuint(if_nametoindex("lab1"), ==, 0);
    ch_pod_bridges_remove(&state.cli);
    state_clear(&state);
}

static void
test_others_stay(void)
{
    State state;

    state_init(&state);
    note(&state, "other0", make_link("bridge", "other0", 0) + 1, NULL);
    note(&state, "other1", make_link("bridge", "other1", 0), "another-boot");
    note(&state, "lo", if_nametoindex("lo"), NULL);
    ch_pod_bridges_remove(&state.cli);
    g_assert_cmpuint(if_nametoindex("other0"), !=, 0);
    g_assert_cmpuint(if_nametoindex("other1"), !=, 0);
    g_assert_cmpuint(if_nametoindex("lo"), !=, 0);
    state_clear(&state);
}

/* Somebody gave it a port since. */
static void
test_used_by_others_stays(void)
{
    State state;
    unsigned index;

    state_init(&state);
    index = make_link("bridge", "used0", 0);
    note(&state, "used0", index, NULL);
    (void)make_link("veth", "port0", index);
    ch_pod_bridges_remove(&state.cli);
    g_assert_cmpuint(if_nametoindex("used0"), !=, 0);
    state_clear(&state);
}

static void
test_notes_that_are_none(void)
{
    static const char *const texts[] = {"", "x", "1", "-1 x", "99999999999 x", " ", "1  "};
    State state;

    state_init(&state);
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autofree char *name = g_strdup_printf("odd%zu", i);
        g_autofree char *path = g_build_filename(state.folder, name, NULL);

        (void)make_link("bridge", name, 0);
        g_assert_true(g_file_set_contents(path, texts[i], -1, NULL));
    }
    ch_pod_bridges_remove(&state.cli);
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autofree char *name = g_strdup_printf("odd%zu", i);

        g_assert_cmpuint(if_nametoindex(name), !=, 0);
    }
    state_clear(&state);
}

int
main(int argc, char **argv)
{
    if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return 77; /* no namespaces here */
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pod-bridges/ours-go", test_ours_go);
    g_test_add_func("/pod-bridges/others-stay", test_others_stay);
    g_test_add_func("/pod-bridges/used-by-others-stays", test_used_by_others_stays);
    g_test_add_func("/pod-bridges/notes-that-are-none", test_notes_that_are_none);
    return g_test_run();
}
