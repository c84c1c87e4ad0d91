/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/metadata.h"

static guint n_changes;

static void
on_change(gpointer data)
{
    n_changes++;
}

static const ChJson *
kubevirt(const ChJson *json)
{
    return ch_json_at(json, "KubeVirt");
}

static void
test_new_is_empty(void)
{
    g_autoptr(ChMetadata) metadata = ch_metadata_new(NULL, NULL);
    g_autoptr(ChJson) json = ch_metadata_to_json(metadata);
    g_autofree char *text = ch_json_print(json, NULL);

    g_assert_cmpstr(text,
                    ==,
                    "{\"KubeVirt\":{\"UID\":\"\",\"GracePeriod\":null,\"Migration\":null,"
                    "\"Backup\":null,\"AccessCredential\":null,\"MemoryDump\":null}}");
}

static void
test_setting_the_identity_is_silent(void)
{
    g_autoptr(ChMetadata) metadata = ch_metadata_new(on_change, NULL);

    n_changes = 0;
    ch_metadata_set_uid(metadata, "u");
    ch_metadata_init_grace_period(metadata, 5);
    g_assert_cmpuint(n_changes, ==, 0);
    ch_metadata_update_grace_period(metadata, 5);
    g_assert_cmpuint(n_changes, ==, 0);
    ch_metadata_update_grace_period(metadata, 6);
    g_assert_cmpuint(n_changes, ==, 1);
}

static void
test_first_shutdown_counts(void)
{
    g_autoptr(ChMetadata) metadata = ch_metadata_new(on_change, NULL);

    n_changes = 0;
    ch_metadata_init_grace_period(metadata, 5);
    ch_metadata_mark_shutdown(metadata, G_GINT64_CONSTANT(1795996780) * G_USEC_PER_SEC);
    ch_metadata_mark_shutdown(metadata, G_GINT64_CONSTANT(1795996799) * G_USEC_PER_SEC);
    g_assert_cmpuint(n_changes, ==, 1);
    ch_metadata_mark_graceful(metadata);
    ch_metadata_mark_graceful(metadata);
    g_assert_cmpuint(n_changes, ==, 2);

    g_autoptr(ChJson) json = ch_metadata_to_json(metadata);
    g_autofree char *text = ch_json_print(ch_json_at(kubevirt(json), "GracePeriod"), NULL);
    g_assert_cmpstr(text,
                    ==,
                    "{\"DeletionGracePeriodSeconds\":5,\"DeletionTimestamp\":"
                    "\"2026-11-29T23:59:40Z\",\"MarkedForGracefulShutdown\":true}");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/metadata/new-is-empty", test_new_is_empty);
    g_test_add_func("/metadata/setting-the-identity-is-silent",
                    test_setting_the_identity_is_silent);
    g_test_add_func("/metadata/first-shutdown-counts", test_first_shutdown_counts);
    return g_test_run();
}
