/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/launcher-socket.h"

#include "handler/hands/test-fake-pod.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"

#define BELOW "volumes/kubernetes.io~empty-dir/sockets/launcher-sock"

static const struct PathCase {
    const char *path;
    const char *uid;
} path_cases[] = {
    {"/pods/1234/" BELOW, "1234"},
    {"/pods//1234/./" BELOW, "1234"},
    {"/pods/x/../1234/" BELOW, "1234"},
    {"pods/1234/" BELOW, NULL},
    {"/other/1234/" BELOW, NULL},
    {"/pods1234/" BELOW, NULL},
    {"/pods/" BELOW, NULL},
    {"/pods/../1234/" BELOW, NULL},
    {"/pods/12 34/" BELOW, NULL},
    {"/pods/1234/" BELOW "/x", NULL},
    {"/pods/1234/volumes/kubernetes.io~empty-dir/sockets/other", NULL},
    {"/pods/1234", NULL},
    {"/pods", NULL},
    {"", NULL},
};

static void
test_paths(void)
{
    g_autofree char *path = ch_launcher_socket_path("/pods", "1234");

    g_assert_cmpstr(path, ==, "/pods/1234/" BELOW);
    for (gsize i = 0; i < G_N_ELEMENTS(path_cases); i++) {
        g_autofree char *uid = ch_launcher_socket_pod_uid("/pods", path_cases[i].path);

        g_assert_cmpstr(uid, ==, path_cases[i].uid);
    }
}

static void
assert_facts(ChHands *hands, const char *uid, ChLauncherSocketFacts expect)
{
    g_autoptr(GError) error = NULL;
    ChLauncherSocketFacts facts;

    g_assert_true(ch_launcher_socket_look(hands, uid, &facts, &error));
    g_assert_no_error(error);
    g_assert_cmpint(facts.is_dir_missing, ==, expect.is_dir_missing);
    g_assert_cmpint(facts.is_found, ==, expect.is_found);
    g_assert_cmpint(facts.is_absent, ==, expect.is_absent);
    g_assert_cmpint(facts.is_unresponsive, ==, expect.is_unresponsive);
}

/* Spec 01 §14.4 ³, row by row, as a pod comes and goes. */
static void
test_facts(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChHands) hands = NULL;
    g_autofree char *socket_path = NULL;
    FakePod pod;

    fake_pod_init(&pod);
    hands = ch_hands_start(NULL, &(ChHandsPlaces){pod.pods_dir, "/nonexistent", NULL, 0}, &error);
    g_assert_no_error(error);
    assert_facts(
        hands,
        "no-such-pod",
        (ChLauncherSocketFacts){.is_dir_missing = 1, .is_absent = 1, .is_unresponsive = 1});
    assert_facts(
        hands, FAKE_POD_UID, (ChLauncherSocketFacts){.is_absent = 1, .is_unresponsive = 1});
    test_tree_write(pod.sockets, "launcher-sock", "");
    assert_facts(hands, FAKE_POD_UID, (ChLauncherSocketFacts){.is_found = 1});
    g_assert_true(ch_launcher_socket_mark_unresponsive(hands, FAKE_POD_UID, &error));
    g_assert_true(ch_launcher_socket_mark_unresponsive(hands, FAKE_POD_UID, &error));
    g_assert_true(test_tree_has(pod.sockets, "launcher-unresponsive"));
    assert_facts(hands, FAKE_POD_UID, (ChLauncherSocketFacts){.is_found = 1, .is_unresponsive = 1});

    /* A link is no socket, but not nothing either. */
    socket_path = g_build_filename(pod.sockets, "launcher-sock", NULL);
    (void)g_unlink(socket_path);
    test_tree_link(pod.sockets, "launcher-sock", "/etc/passwd");
    assert_facts(hands, FAKE_POD_UID, (ChLauncherSocketFacts){.is_unresponsive = 1});
    ch_hands_stop(g_steal_pointer(&hands));
    fake_pod_clear(&pod);
}

static void
test_probe(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChHands) hands = NULL;
    ch_autofd int listen_fd = -EBADF;
    FakePod pod;

    fake_pod_init(&pod);
    hands = ch_hands_start(NULL, &(ChHandsPlaces){pod.pods_dir, "/nonexistent", NULL, 0}, &error);
    g_assert_no_error(error);
    g_assert_false(ch_launcher_socket_probe(hands, FAKE_POD_UID, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_clear_error(&error);
    listen_fd = fake_pod_listen(pod.sockets, "launcher-sock");
    g_assert_true(ch_launcher_socket_probe(hands, FAKE_POD_UID, &error));
    ch_close_fd(&listen_fd);
    g_assert_false(ch_launcher_socket_probe(hands, FAKE_POD_UID, &error));
    g_assert_error(error, CH_ERRNO, ECONNREFUSED);
    g_clear_error(&error);
    g_assert_false(ch_launcher_socket_probe(hands, "../" FAKE_POD_UID, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    ch_hands_stop(g_steal_pointer(&hands));
    fake_pod_clear(&pod);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/launcher-socket/paths", test_paths);
    g_test_add_func("/launcher-socket/facts", test_facts);
    g_test_add_func("/launcher-socket/probe", test_probe);
    return g_test_run();
}
