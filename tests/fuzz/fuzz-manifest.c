/* SPDX-License-Identifier: Apache-2.0 */

/* Any file given to `chandler apply`: refused with a line, or a document that prints and parses. */

#include "local/cli/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) manifests = ch_manifest_parse((const char *)data, size, "f", &error);

    g_assert_true((manifests == NULL) == (error != NULL));
    if (error != NULL)
        g_assert_true(g_str_has_prefix(error->message, "f:"));
    for (guint i = 0; manifests != NULL && i < manifests->len; i++) {
        const ChManifest *manifest = &g_array_index(manifests, ChManifest, i);
        g_autofree char *text = ch_json_print(manifest->object, NULL);
        g_autoptr(ChJson) again = ch_json_parse(text, -1, NULL);

        g_assert_true(again == NULL || ch_json_equal(again, manifest->object));
        g_assert_nonnull(ch_json_string_at(manifest->object, "metadata", "name"));
    }
    return 0;
}
