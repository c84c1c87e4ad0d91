/* SPDX-License-Identifier: Apache-2.0 */

/*
 * image: files out of container images that lie on this machine.
 *
 * Theory of operation: an image called NAME[:TAG] is the directory <images>/NAME:TAG, or
 * <images>/NAME. It is either an OCI image layout (it has a file "oci-layout"), or simply the
 * image's root directory. Layers are not unpacked: the one file that is wanted is streamed out of
 * its layer by tar(1), into a cache keyed by the layer's digest, under a name made here; no path in
 * a layer is ever created on this machine, and links in layers are not followed. Digests are not
 * verified: who may write to the images directory may as well write to the cache.
 *
 * Thread: a worker's. Blocks: for the disk. Spec: OCI image specification 1.0 (image-layout,
 * manifest).
 */

#pragma once

#include "lib/json/json.h"

#define CH_IMAGE_MAX_LAYERS 128

/* What of an image's reference names the directory, and what the entry in its index. */
typedef struct {
    char *name; /* without tag and digest */
    char *tag;  /* "latest" by default */
} ChImageName;

/* Pure. Returns: false with CH_ERROR_INVALID: no name, or one that would leave the directory */
bool ch_image_name_parse(const char *image, ChImageName *out_name, GError **error);
void ch_image_name_clear(ChImageName *name);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChImageName, ch_image_name_clear)

/* Pure. The digest of the manifest for @tag in an index.json; borrowed from @index. A single entry
 * without a name serves every tag. NULL with CH_ERROR_NOT_FOUND or CH_ERROR_INVALID */
const char *ch_image_index_find(const ChJson *index, const char *tag, GError **error);

/* Pure. (transfer container) (element-type utf8): the layers' digests, the topmost first, borrowed
 * from @manifest. NULL with CH_ERROR_INVALID or CH_ERROR_LIMIT */
GPtrArray *ch_image_manifest_layers(const ChJson *manifest, GError **error);

/* Pure. (transfer full): "blobs/sha256/..." of a digest; NULL with CH_ERROR_INVALID */
char *ch_image_blob_path(const char *digest, GError **error);

/* Pure. (transfer full): the member of a layer for @wanted out of tar's listing, one name a line.
 * @wanted: a path ("/boot/vmlinuz"), or a directory ("/disk/") of which the one file is meant.
 * NULL: none; with CH_ERROR_INVALID: a directory with more than one. */
char *ch_image_listing_find(const char *listing, const char *wanted, GError **error);

typedef struct {
    const char *images_dir;
    const char *cache_dir;
} ChImageStore;

/**
 * ch_image_find_file:
 * @image: "registry.example/path/name:tag"
 * @wanted: as above
 *
 * Returns: (transfer full): a readable file on this machine; NULL: the message says which image or
 * file is missing, and where it was looked for; CH_ERROR_NOT_FOUND when it is not there
 */
char *ch_image_find_file(const ChImageStore *store,
                         const char *image,
                         const char *wanted,
                         GError **error);

/* Removes what was cached of layers that are gone. A guest that still uses such a file keeps it. */
void ch_image_prune(const ChImageStore *store);
