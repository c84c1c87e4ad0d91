/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-cache.h"

#include <errno.h>
#include <string.h>

#include "lib/base/errors.h"
#include "lib/linux/test-tree.h"

#define UID     "1111bbbb-0000-4000-8000-000000000001"
#define FILE_IN "network-info-cache/" UID "/default"

typedef struct {
    char *dir;
    guint n_owned;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    *f = (Fixture){.dir = test_tree_new()};
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    test_tree_remove(f->dir);
    g_free(f->dir);
}

/* What the hands do, without changing the owner: this test needs no root. */
static bool
own(gpointer data, const char *uid, const char *network, GError **error)
{
    Fixture *f = data;
    g_autofree char *path = g_strdup_printf("network-info-cache/%s/.%s.new", uid, network);

    g_assert_true(test_tree_has(f->dir, path));
    f->n_owned++;
    return true;
}

static bool
own_not(gpointer data, const char *uid, const char *network, GError **error)
{
    return ch_fail(error, CH_ERROR_CLOSED, "the hands have ended");
}

static void
store(Fixture *f, const char *text)
{
    g_autoptr(ChJson) document = ch_json_parse(text, -1, NULL);
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_network_cache_store(f->dir, UID, "default", document, own, f, &error));
    g_assert_no_error(error);
}

/* spec:04-23.2#3 spec:04-23.2#4 spec:04-23.6#1 */
static void
test_round_trip(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) missing = ch_network_cache_load(f->dir, UID, "default", NULL);
    g_autoptr(ChJson) found = NULL;
    struct stat st;

    g_assert_cmpuint(ch_json_length(missing), ==, 0);
    g_assert_cmpint(ch_network_cache_state(missing), ==, CH_NETWORK_PENDING);
    (void)umask(022);
    store(f, "{\"podIP\":\"10.0.0.1\",\"unknown\":1.10}");
    store(f, "{\"podIP\":\"10.0.0.2\",\"unknown\":1.10,\"networkState\":1}");
    g_assert_cmpuint(f->n_owned, ==, 2);
    st = test_tree_stat(f->dir, FILE_IN);
    g_assert_cmpuint(st.st_mode, ==, S_IFREG | 0604);
    st = test_tree_stat(f->dir, "network-info-cache/" UID);
    g_assert_cmpuint(st.st_mode, ==, S_IFDIR | 0750);
    g_assert_false(test_tree_has(f->dir, "network-info-cache/" UID "/.default.new"));
    found = ch_network_cache_load(f->dir, UID, "default", NULL);
    g_assert_cmpstr(ch_json_string_at(found, "podIP"), ==, "10.0.0.2");
    g_assert_cmpint(ch_network_cache_state(found), ==, CH_NETWORK_STARTED);
    ch_network_cache_set_state(found, CH_NETWORK_PENDING);
    g_assert_false(ch_json_has(found, "networkState"));
}

/* spec:04-23.2#1 The old file stays when the new one cannot be completed, and nothing is left of
 * that. */
static void
test_failed_store(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) document = ch_json_new_object();
    g_autoptr(ChJson) found = NULL;
    g_autoptr(GError) error = NULL;

    store(f, "{\"podIP\":\"10.0.0.1\"}");
    g_assert_false(ch_network_cache_store(f->dir, UID, "default", document, own_not, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_CLOSED);
    g_assert_false(test_tree_has(f->dir, "network-info-cache/" UID "/.default.new"));
    found = ch_network_cache_load(f->dir, UID, "default", NULL);
    g_assert_cmpstr(ch_json_string_at(found, "podIP"), ==, "10.0.0.1");
    /* What a killed agent leaves of a write is no obstacle. */
    test_tree_write(f->dir, "network-info-cache/" UID "/.default.new", "half a docu");
    store(f, "{}");
}

/* spec:04-23.2#1 */
static void
test_bad_files(Fixture *f, gconstpointer data)
{
    static const char *const texts[] = {"", "[]", "{\"networkState\":", "nonsense"};

    test_tree_mkdir(f->dir, "network-info-cache/" UID "/folder");
    test_tree_link(f->dir, "network-info-cache/" UID "/link", "/etc/hostname");
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        test_tree_write(f->dir, FILE_IN, texts[i]);
        g_assert_null(ch_network_cache_load(f->dir, UID, "default", &error));
        g_assert_nonnull(strstr(error->message, "error unmarshaling cached object"));
    }
    g_assert_null(ch_network_cache_load(f->dir, UID, "folder", NULL));
    g_assert_null(ch_network_cache_load(f->dir, UID, "link", NULL));
}

static void
test_remove(Fixture *f, gconstpointer data)
{
    static const char *const bad[] = {"", ".", "..", "../x", "a/b"};
    g_autoptr(GError) error = NULL;

    store(f, "{}");
    test_tree_write(f->dir, "network-info-cache/other", "x");
    g_assert_true(ch_network_cache_remove(f->dir, UID, &error));
    g_assert_false(test_tree_has(f->dir, "network-info-cache/" UID));
    g_assert_true(ch_network_cache_remove(f->dir, UID, &error));
    g_assert_no_error(error);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(ch_network_cache_remove(f->dir, bad[i], NULL));
        g_assert_null(ch_network_cache_load(f->dir, UID, bad[i], NULL));
        g_assert_null(ch_network_cache_load(f->dir, bad[i], "default", NULL));
    }
    g_assert_true(test_tree_has(f->dir, "network-info-cache/other"));
}

/* spec:04-23.2#4 spec:04-23.4#5 What cannot be removed is told. The state of one network goes, and
 * with it what was known of it. */
static void
test_forget(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChJson) found = NULL;

    store(f, "{\"podIP\":\"10.0.0.1\",\"networkState\":2}");
    test_tree_write(f->dir, "network-info-cache/" UID "/other", "{\"networkState\":2}");
    g_assert_true(ch_network_cache_forget(f->dir, UID, "default", &error));
    g_assert_true(ch_network_cache_forget(f->dir, UID, "default", &error));
    g_assert_no_error(error);
    found = ch_network_cache_load(f->dir, UID, "default", NULL);
    g_assert_cmpint(ch_network_cache_state(found), ==, CH_NETWORK_PENDING);
    g_assert_cmpuint(ch_json_length(found), ==, 0);
    g_assert_true(test_tree_has(f->dir, "network-info-cache/" UID "/other"));
    g_assert_false(ch_network_cache_forget(f->dir, UID, "../other", NULL));
    test_tree_mkdir(f->dir, FILE_IN);
    g_assert_false(ch_network_cache_forget(f->dir, UID, "default", &error));
    g_assert_error(error, CH_ERRNO, EISDIR);
    g_clear_error(&error);
    g_assert_false(ch_network_cache_remove(f->dir, UID, &error));
    g_assert_nonnull(strstr(error->message, "teardown failed, err: "));
}

#define ADD(path, test) g_test_add(path, Fixture, NULL, set_up, test, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("/network-cache/round-trip", test_round_trip);
    ADD("/network-cache/failed-store-keeps-the-old", test_failed_store);
    ADD("/network-cache/refuses-bad-files", test_bad_files);
    ADD("/network-cache/removes-one-vmi", test_remove);
    ADD("/network-cache/forgets-one-network", test_forget);
    return g_test_run();
}
