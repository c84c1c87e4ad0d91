/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/image.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/linux/command.h"
#include "lib/linux/safe-path.h"
#include "local/podrunner/image-content.h"

#define TAR_TIMEOUT_US     (300 * CH_SECOND_US)
#define MAX_DOCUMENT_BYTES (4u << 20)
#define MAX_NAME_BYTES     512
#define SOURCE             "source" /* a file in a layer's cache; what the layer has lies in folders */
#define STAGING            "staging"
#define REF_NAME           "org.opencontainers.image.ref.name"

/* --- names ------------------------------------------------------------------------------------ */

void
ch_image_name_clear(ChImageName *name)
{
    g_clear_pointer(&name->name, g_free);
    g_clear_pointer(&name->tag, g_free);
}

/* Each part between slashes must be a name that stays where it is. */
static bool
is_safe_path(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);

    for (gsize i = 0; parts[i] != NULL; i++) {
        if (*parts[i] == '\0' || *parts[i] == '.')
            return false;
    }
    return *path != '\0' && strlen(path) <= MAX_NAME_BYTES;
}

bool
ch_image_name_parse(const char *image, ChImageName *out_name, GError **error)
{
    g_autofree char *name = g_strdup(image);
    char *digest = strchr(name, '@');
    char *slash;
    char *colon;

    if (digest != NULL)
        *digest = '\0';
    slash = strrchr(name, '/');
    colon = strchr(slash != NULL ? slash : name, ':'); /* before the slash it is a port's */
    if (colon != NULL)
        *colon++ = '\0';
    if (!is_safe_path(name) || (colon != NULL && !is_safe_path(colon)))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is no name of an image", image);
    out_name->tag = g_strdup(colon != NULL ? colon : "latest");
    out_name->name = g_steal_pointer(&name);
    return true;
}

/* --- documents of the layout ------------------------------------------------------------------ */

const char *
ch_image_index_find(const ChJson *index, const char *tag, GError **error)
{
    const ChJson *manifests = ch_json_at(index, "manifests");
    const gsize n_manifests = ch_json_length(manifests);
    const char *digest = NULL;

    for (gsize i = 0; i < n_manifests && digest == NULL; i++) {
        const ChJson *entry = ch_json_item(manifests, i);
        const char *name = ch_json_string_at(entry, "annotations", REF_NAME);

        if (name == NULL ? n_manifests == 1 : g_str_equal(name, tag))
            digest = ch_json_string_at(entry, "digest");
    }
    if (digest == NULL)
        ch_fail(error, CH_ERROR_NOT_FOUND, "its index.json has no manifest for tag '%s'", tag);
    return digest;
}

GPtrArray *
ch_image_manifest_layers(const ChJson *manifest, GError **error)
{
    const ChJson *layers = ch_json_at(manifest, "layers");
    g_autoptr(GPtrArray) digests = g_ptr_array_new();

    if (ch_json_length(layers) > CH_IMAGE_MAX_LAYERS) {
        ch_fail(error, CH_ERROR_LIMIT, "the image has more than %d layers", CH_IMAGE_MAX_LAYERS);
        return NULL;
    }
    for (gsize i = ch_json_length(layers); i > 0; i--) {
        const char *digest = ch_json_string_at(ch_json_item(layers, i - 1), "digest");

        if (digest == NULL) {
            ch_fail(error, CH_ERROR_INVALID, "a layer in the image's manifest has no digest");
            return NULL;
        }
        g_ptr_array_add(digests, (char *)digest);
    }
    if (digests->len == 0) {
        ch_fail(error, CH_ERROR_INVALID, "the image's manifest names no layer");
        return NULL;
    }
    return g_steal_pointer(&digests);
}

char *
ch_image_blob_path(const char *digest, GError **error)
{
    const char *hex = g_str_has_prefix(digest, "sha256:") ? digest + strlen("sha256:") : "";

    if (strlen(hex) != 64 || strspn(hex, "0123456789abcdef") != 64) {
        ch_fail(error, CH_ERROR_INVALID, "'%s' is no sha256 digest", digest);
        return NULL;
    }
    return g_strconcat("blobs/sha256/", hex, NULL);
}

/* "./disk/a.img" and "/disk/a.img" are "disk/a.img". */
static const char *
without_root(const char *path)
{
    while (g_str_has_prefix(path, "./") || *path == '/')
        path += *path == '/' ? 1 : 2;
    return path;
}

static bool
is_wanted(const char *member, const char *wanted)
{
    const char *path = without_root(member);
    const gsize n_wanted = strlen(wanted);
    const char *name = path + n_wanted;

    if (!g_str_has_suffix(wanted, "/"))
        return g_str_equal(path, wanted);
    if (strncmp(path, wanted, n_wanted) != 0 || *name == '\0' || *name == '.')
        return false; /* the directory itself, or hidden: white-outs of other layers too */
    return strchr(name, '/') == NULL;
}

char *
ch_image_listing_find(const char *listing, const char *wanted, GError **error)
{
    g_auto(GStrv) members = g_strsplit(listing, "\n", -1);
    const char *found = NULL;

    wanted = without_root(wanted);
    for (gsize i = 0; members[i] != NULL; i++) {
        if (!is_wanted(members[i], wanted))
            continue;
        if (found != NULL && !g_str_equal(found, members[i])) {
            ch_fail(error,
                    CH_ERROR_INVALID,
                    "more than one file in /%s of the image: say which by 'path'",
                    wanted);
            return NULL;
        }
        found = members[i];
    }
    return g_strdup(found);
}

/* --- an image that is a layout ---------------------------------------------------------------- */

static ChJson *
load_document(const char *dir, const char *name, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *text = NULL;
    gsize length = 0;
    GStatBuf st;
    ChJson *json;

    if (g_stat(path, &st) == 0 && st.st_size > MAX_DOCUMENT_BYTES) {
        ch_fail(error, CH_ERROR_LIMIT, "'%s' is too large", path);
        return NULL;
    }
    if (!g_file_get_contents(path, &text, &length, error))
        return NULL;
    json = ch_json_parse(text, (gssize)length, error);
    if (json == NULL)
        g_prefix_error(error, "'%s': ", path);
    return json;
}

static ChJson *
load_manifest(const char *layout, const char *tag, GError **error)
{
    g_autoptr(ChJson) index = load_document(layout, "index.json", error);
    const char *digest = index != NULL ? ch_image_index_find(index, tag, error) : NULL;
    g_autofree char *path = digest != NULL ? ch_image_blob_path(digest, error) : NULL;

    return path != NULL ? load_document(layout, path, error) : NULL;
}

static char *
list_layer(const char *blob, GError **error)
{
    const char *const argv[] = {"tar", "--list", "--quoting-style=literal", "--file", blob, NULL};
    char *listing = NULL;

    if (!ch_command_run(&(ChCommand){argv, TAR_TIMEOUT_US, 0, 0}, &listing, error))
        return NULL;
    return listing;
}

/* Which blob a layer's cache is of. */
static bool
note_source(const ChImageStore *store, const char *digest, const char *blob, GError **error)
{
    g_autofree char *dir = g_build_filename(store->cache_dir, digest, NULL);
    g_autofree char *path = g_build_filename(dir, SOURCE, NULL);

    if (g_mkdir_with_parents(dir, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", dir);
    return g_file_set_contents(path, blob, -1, error);
}

/* A place of its own for each who extracts: pods that start at the same moment want the same files.
 * Without a SOURCE of its own, what a crash leaves there goes with the next prune. */
static int
open_staging(const ChImageStore *store, char **out_path, GError **error)
{
    g_autofree char *dir = g_build_filename(store->cache_dir, STAGING, NULL);
    g_autofree char *path = g_build_filename(dir, "XXXXXX", NULL);
    int fd = -EBADF;

    if (g_mkdir_with_parents(dir, 0755) < 0) {
        ch_fail_errno(error, errno, "create directory '%s'", dir);
        return -EBADF;
    }
    fd = g_mkstemp_full(path, O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0)
        ch_fail_errno(error, errno, "create a file in '%s'", dir);
    else
        *out_path = g_steal_pointer(&path);
    return fd;
}

static bool
extract_to(int fd, const char *blob, const char *member, GError **error)
{
    const char *const argv[] = {
        "tar", "--extract", "--to-stdout", "--no-wildcards", "--file", blob, "--", member, NULL};
    ChCommand command = {argv, TAR_TIMEOUT_US, 0, 0};

    command.out_fd = fd;
    if (!ch_command_run(&command, NULL, error))
        return false;
    if (lseek(fd, 0, SEEK_END) <= 0)
        return ch_fail(error, CH_ERROR_INVALID, "'%s' in the image is no file, or empty", member);
    return true;
}

/* The file appears under its name only when it is complete, and once: VMs run from it. */
static bool
publish(const char *staging, const char *path, GError **error)
{
    g_autofree char *dir = g_path_get_dirname(path);

    if (g_mkdir_with_parents(dir, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", dir);
    if (link(staging, path) < 0 && errno != EEXIST)
        return ch_fail_errno(error, errno, "link '%s'", path);
    return true;
}

static bool
extract(const ChImageStore *store,
        const char *blob,
        const char *member,
        const char *path,
        GError **error)
{
    g_autofree char *staging = NULL;
    ch_autofd int fd = open_staging(store, &staging, error);
    bool ok;

    if (fd < 0)
        return false;
    ok = extract_to(fd, blob, member, error) && publish(staging, path, error);
    (void)g_unlink(staging); /* at worst the next start does */
    return ok;
}

/* NULL without error: not in this layer, whose members come to @seen. */
static char *
find_in_layer(const ChImageStore *store,
              const char *layout,
              const char *digest,
              const char *wanted,
              GString *seen,
              GError **error)
{
    g_autofree char *blob_path = ch_image_blob_path(digest, error);
    g_autofree char *blob = blob_path != NULL ? g_build_filename(layout, blob_path, NULL) : NULL;
    g_autofree char *listing = blob != NULL ? list_layer(blob, error) : NULL;
    g_autofree char *member = NULL;
    g_autofree char *flat = NULL;
    g_autofree char *path = NULL;
    g_autoptr(GError) failure = NULL;

    if (listing == NULL)
        return NULL;
    member = ch_image_listing_find(listing, wanted, &failure);
    if (member == NULL) {
        g_string_append(seen, listing);
        if (failure != NULL)
            g_propagate_error(error, g_steal_pointer(&failure));
        return NULL;
    }
    /* The base name is kept: the launcher knows kernels by it. */
    flat = g_path_get_dirname(without_root(member));
    g_strdelimit(flat, "/", '_');
    path = g_build_filename(store->cache_dir, digest, flat, NULL);
    g_autofree char *base = g_path_get_basename(member);
    g_autofree char *file = g_build_filename(path, base, NULL);
    if (!g_file_test(file, G_FILE_TEST_EXISTS) &&
        (!note_source(store, digest, blob, error) || !extract(store, blob, member, file, error)))
        return NULL;
    return g_steal_pointer(&file);
}

static char *
find_in_layout(const ChImageStore *store,
               const char *layout,
               const char *tag,
               const char *wanted,
               GError **error)
{
    g_autoptr(ChJson) manifest = load_manifest(layout, tag, error);
    g_autoptr(GPtrArray) layers =
        manifest != NULL ? ch_image_manifest_layers(manifest, error) : NULL;
    g_autoptr(GString) seen = g_string_new(NULL);
    g_autofree char *content = NULL;

    for (guint i = 0; layers != NULL && i < layers->len; i++) {
        g_autoptr(GError) failure = NULL;
        char *file = find_in_layer(store, layout, layers->pdata[i], wanted, seen, &failure);

        if (file != NULL)
            return file;
        if (failure != NULL) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return NULL;
        }
    }
    if (layers == NULL)
        return NULL;
    content = ch_image_content_describe(seen->str, wanted);
    ch_fail(error, CH_ERROR_NOT_FOUND, "%s", content);
    return NULL;
}

/* --- an image that is a plain directory ------------------------------------------------------- */

static char *
list_directory(const char *path, const char *wanted)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    GString *listing = g_string_new(NULL);
    const char *name = NULL;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL)
        g_string_append_printf(listing, "%s%s\n", wanted, name);
    return g_string_free(listing, FALSE);
}

/* @dir: "", "disk/" */
static void
append_directory(GString *listing, const char *root, const char *dir)
{
    g_autofree char *path = g_build_filename(root, dir, NULL);
    g_autoptr(GDir) opened = g_dir_open(path, 0, NULL);
    const char *name = NULL;

    if (opened != NULL)
        g_string_append_printf(listing, "%s\n", dir);
    while (opened != NULL && (name = g_dir_read_name(opened)) != NULL) {
        g_autofree char *child = g_build_filename(path, name, NULL);
        const bool is_dir = g_file_test(child, G_FILE_TEST_IS_DIR);

        g_string_append_printf(listing, "%s%s%s\n", dir, name, is_dir ? "/" : "");
    }
}

/* What is in the directories on the way to @wanted, as far as no link is among them. */
static bool
fail_not_in_directory(int root_fd, const char *root, const char *wanted, GError **error)
{
    g_autofree char *way = g_strdup(without_root(wanted));
    g_autoptr(GString) listing = g_string_new(NULL);
    g_autofree char *content = NULL;

    append_directory(listing, root, "");
    for (char *slash = strchr(way, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        g_autofree char *dir = g_strndup(way, (gsize)(slash - way) + 1);

        if (ch_safe_lookup(root_fd, dir) == 0)
            append_directory(listing, root, dir);
    }
    content = ch_image_content_describe(listing->str, wanted);
    return ch_fail(error, CH_ERROR_NOT_FOUND, "%s", content);
}

static char *
find_in_directory(const char *root, const char *wanted, GError **error)
{
    g_autofree char *path = g_build_filename(root, wanted, NULL);
    g_autofree char *listing = NULL;
    g_autofree char *member = NULL;
    g_autoptr(GError) failure = NULL;
    ch_autofd int root_fd = -EBADF;
    int result;

    if (g_str_has_suffix(wanted, "/"))
        listing = list_directory(path, wanted);
    member = listing != NULL ? ch_image_listing_find(listing, wanted, &failure) : g_strdup(wanted);
    if (failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return NULL;
    }
    root_fd = g_open(root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    result =
        member != NULL && root_fd >= 0 ? ch_safe_lookup(root_fd, without_root(member)) : -ENOENT;
    if (result == -ELOOP) {
        ch_fail(error, CH_ERROR_NOT_FOUND, "links are not followed: '%s' is one", wanted);
        return NULL;
    }
    if (result < 0) {
        (void)fail_not_in_directory(root_fd, root, wanted, error);
        return NULL;
    }
    return g_build_filename(root, without_root(member), NULL);
}

/* --- */

/* QEMU runs as a user that owns nothing here. */
static bool
check_readable(const char *file, GError **error)
{
    GStatBuf st;

    if (g_stat(file, &st) < 0)
        return ch_fail_errno(error, errno, "look at '%s'", file);
    if (!S_ISREG(st.st_mode))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is no file", file);
    if ((st.st_mode & S_IROTH) == 0)
        return ch_fail(
            error, CH_ERROR_INVALID, "'%s' is not readable for QEMU's user: try chmod a+r", file);
    return true;
}

static char *
find_image(const ChImageStore *store, const ChImageName *name)
{
    g_autofree char *tagged = g_strconcat(name->name, ":", name->tag, NULL);
    const char *const candidates[] = {tagged, name->name};

    for (gsize i = 0; i < G_N_ELEMENTS(candidates); i++) {
        g_autofree char *path = g_build_filename(store->images_dir, candidates[i], NULL);

        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            return g_steal_pointer(&path);
    }
    return NULL;
}

char *
ch_image_find_file(const ChImageStore *store, const char *image, const char *wanted, GError **error)
{
    g_auto(ChImageName) name = {0};
    g_autofree char *root = NULL;
    g_autofree char *marker = NULL;
    g_autofree char *file = NULL;

    if (!is_safe_path(without_root(wanted)) && !g_str_has_suffix(wanted, "/")) {
        ch_fail(error, CH_ERROR_INVALID, "'%s' is no path of a file in an image", wanted);
        return NULL;
    }
    if (!ch_image_name_parse(image, &name, error))
        return NULL;
    root = find_image(store, &name);
    if (root == NULL) {
        ch_fail(error,
                CH_ERROR_NOT_FOUND,
                "image '%s' is not on this machine: neither '%s/%s:%s' nor '%s/%s' exists (an OCI "
                "image layout, or a directory with the image's files)",
                image,
                store->images_dir,
                name.name,
                name.tag,
                store->images_dir,
                name.name);
        return NULL;
    }
    marker = g_build_filename(root, "oci-layout", NULL);
    file = g_file_test(marker, G_FILE_TEST_EXISTS)
               ? find_in_layout(store, root, name.tag, wanted, error)
               : find_in_directory(root, wanted, error);
    if (file == NULL) {
        g_prefix_error(error, "image '%s': ", image);
        return NULL;
    }
    return check_readable(file, error) ? g_steal_pointer(&file) : NULL;
}

/* --- the cache -------------------------------------------------------------------------------- */

static void
prune_layer(const char *dir)
{
    g_autofree char *source = g_build_filename(dir, SOURCE, NULL);
    g_autofree char *blob = NULL;
    g_autoptr(GError) failure = NULL;
    const char *const argv[] = {"rm", "-rf", "--one-file-system", "--", dir, NULL};

    if (g_file_get_contents(source, &blob, NULL, NULL) && g_file_test(blob, G_FILE_TEST_EXISTS))
        return;
    if (!ch_command_run(&(ChCommand){argv, TAR_TIMEOUT_US, 0, 0}, NULL, &failure))
        ch_log_warning(NULL, failure, "ignoring that '%s' could not be removed", dir);
}

void
ch_image_prune(const ChImageStore *store)
{
    g_autoptr(GDir) dir = g_dir_open(store->cache_dir, 0, NULL);
    const char *digest = NULL;

    while (dir != NULL && (digest = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(store->cache_dir, digest, NULL);

        prune_layer(path);
    }
}
