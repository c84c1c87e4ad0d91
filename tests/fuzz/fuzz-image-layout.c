/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an OCI image says of itself: the first byte chooses index, manifest, tar's listing, or an
 * image's name.
 */

#include <string.h>

#include "local/podrunner/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_documents(const char *text)
{
    g_autoptr(ChJson) json = ch_json_parse(text, -1, NULL);
    g_autoptr(GPtrArray) layers = json != NULL ? ch_image_manifest_layers(json, NULL) : NULL;
    const char *digest = json != NULL ? ch_image_index_find(json, "latest", NULL) : NULL;
    g_autofree char *path = digest != NULL ? ch_image_blob_path(digest, NULL) : NULL;

    g_assert_true(path == NULL || strlen(path) == strlen("blobs/sha256/") + 64);
    g_assert_true(path == NULL || strstr(path, "..") == NULL);
}

static void
fuzz_listing(const char *text)
{
    g_autofree char *file = ch_image_listing_find(text, "/disk/", NULL);

    g_assert_true(file == NULL || strstr(file, "disk/") != NULL);
}

static void
fuzz_name(const char *text)
{
    g_auto(ChImageName) name = {0};

    if (!ch_image_name_parse(text, &name, NULL))
        return;
    g_assert_false(g_str_has_prefix(name.name, "/") || g_str_has_prefix(name.name, "."));
    g_assert_null(strstr(name.name, "/."));
    g_assert_null(strstr(name.tag, "/."));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parts[])(const char *) = {fuzz_documents, fuzz_listing, fuzz_name};
    g_autofree char *text = size > 0 ? g_strndup((const char *)data + 1, size - 1) : NULL;

    if (text != NULL)
        parts[data[0] % G_N_ELEMENTS(parts)](text);
    return 0;
}
