/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/pod-addresses.h"

#include "handler/pod/network-cache.h"

#include <glib/gstdio.h>

static const struct {
    const char *name, *text;
} files[] = {
    {"a", "{\"podIP\":\"1.1.1.1\",\"podIPs\":[\"1.1.1.1\",\"::2\",\"x\"]}"},
    {"b", "{\"podIP\":\"3.3.3.3\"}"},
    {"state", "{\"networkState\":2}"},
    {"broken", "{\"podIP\":"},
    {"list", "{\"podIPs\":[\"::4\"]}"},
};

/* spec:02-14.10#2 spec:02-14.10#11 spec:04-23.7#1b spec:04-23.7#1c: what the files say, and nothing
 * after the clean-up. */
static void
test_load(void)
{
    g_autofree char *dir = g_dir_make_tmp("ch-test-XXXXXX", NULL);
    g_autofree char *caches = g_build_filename(dir, "network-info-cache", NULL);
    g_autofree char *cache = g_build_filename(caches, "uid1", NULL);
    g_autoptr(ChJson) vmi = ch_json_parse(
        "{\"metadata\":{\"uid\":\"uid1\"},\"spec\":{\"domain\":{\"devices\":{\"interfaces\":["
        "{\"name\":\"a\"},{\"name\":\"none\"},{\"name\":\"state\"},{\"name\":\"broken\"},"
        "{\"name\":\"../x\"},{},{\"name\":\"b\"},{\"name\":\"list\"}]}}}}",
        -1,
        NULL);
    g_autoptr(ChPodAddressList) list = NULL;
    g_autoptr(ChPodAddressList) after = NULL;
    const ChPodAddresses *entries;
    gsize n = 0;

    g_assert_cmpint(g_mkdir_with_parents(cache, 0755), ==, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(cache, files[i].name, NULL);

        g_assert_true(g_file_set_contents(path, files[i].text, -1, NULL));
    }
    list = ch_pod_address_list_load(dir, vmi);
    entries = ch_pod_address_list_peek(list, &n);
    g_assert_cmpuint(n, ==, 3);
    g_assert_cmpstr(entries[0].network, ==, "a");
    g_assert_cmpstr(entries[0].ip, ==, "1.1.1.1");
    g_assert_cmpstr(entries[0].ips[1], ==, "::2");
    g_assert_null(entries[0].ips[2]);
    g_assert_cmpstr(entries[1].ip, ==, "3.3.3.3");
    g_assert_null(entries[1].ips[0]);
    g_assert_null(entries[2].ip);
    g_assert_cmpstr(entries[2].ips[0], ==, "::4");

    g_assert_true(ch_network_cache_remove(dir, "uid1", NULL));
    after = ch_pod_address_list_load(dir, vmi);
    (void)ch_pod_address_list_peek(after, &n);
    g_assert_cmpuint(n, ==, 0);
    g_assert_cmpint(g_rmdir(caches) + g_rmdir(dir), ==, 0);
}

static void
test_without_uid(void)
{
    g_autoptr(ChJson) vmi = ch_json_parse("{}", -1, NULL);
    g_autoptr(ChPodAddressList) list = ch_pod_address_list_load("/nonexistent", vmi);
    gsize n = 1;

    (void)ch_pod_address_list_peek(list, &n);
    g_assert_cmpuint(n, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pod-addresses/of-the-spec", test_load);
    g_test_add_func("/pod-addresses/without-uid", test_without_uid);
    return g_test_run();
}
