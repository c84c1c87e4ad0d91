/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/image.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "lib/linux/command.h"

/* --- names ------------------------------------------------------------------------------------ */

static const struct NameCase {
    const char *image, *name, *tag;
} names[] = {
    {"a", "a", "latest"},
    {"a/b:1", "a/b", "1"},
    {"registry:5000/a/b", "registry:5000/a/b", "latest"},
    {"registry:5000/a/b:2@sha256:00", "registry:5000/a/b", "2"},
};

static const char *const bad_names[] = {
    "", ":1", "a/../b", "../a", "/a", "a//b", "a/", ".hidden", "a:", "a:b/../../c"};

static void
test_names(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_auto(ChImageName) name = {0};

        g_assert_true(ch_image_name_parse(names[i].image, &name, NULL));
        g_assert_cmpstr(name.name, ==, names[i].name);
        g_assert_cmpstr(name.tag, ==, names[i].tag);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(bad_names); i++) {
        g_auto(ChImageName) name = {0};
        g_autoptr(GError) error = NULL;

        g_assert_false(ch_image_name_parse(bad_names[i], &name, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

/* --- documents -------------------------------------------------------------------------------- */

static void
test_index(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChJson) two = ch_json_parse(
        "{\"manifests\":[{\"digest\":\"d1\",\"annotations\":{\"org.opencontainers.image.ref.name\":"
        "\"1\"}},{\"digest\":\"d2\",\"annotations\":{\"org.opencontainers.image.ref.name\":\"2\"}}]"
        "}",
        -1,
        NULL);
    g_autoptr(ChJson) nameless = ch_json_parse("{\"manifests\":[{\"digest\":\"d\"}]}", -1, NULL);

    g_assert_cmpstr(ch_image_index_find(two, "2", NULL), ==, "d2");
    g_assert_cmpstr(ch_image_index_find(nameless, "any", NULL), ==, "d");
    g_assert_null(ch_image_index_find(two, "3", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_NOT_FOUND);
}

static void
test_layers_topmost_first(void)
{
    g_autoptr(ChJson) manifest =
        ch_json_parse("{\"layers\":[{\"digest\":\"low\"},{\"digest\":\"high\"}]}", -1, NULL);
    g_autoptr(GPtrArray) layers = ch_image_manifest_layers(manifest, NULL);

    g_assert_cmpuint(layers->len, ==, 2);
    g_assert_cmpstr(layers->pdata[0], ==, "high");
}

static void
test_digests(void)
{
    static const char *const bad[] = {
        "",
        "sha256:",
        "sha256:../../etc",
        "md5:00",
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg"};
    g_autofree char *path = ch_image_blob_path(
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", NULL);

    g_assert_true(g_str_has_prefix(path, "blobs/sha256/0123"));
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_null(ch_image_blob_path(bad[i], NULL));
}

static void
test_listing(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *one = ch_image_listing_find(
        "etc/passwd\n./disk/\n./disk/.wh.old\n./disk/a.img\n", "/disk/", NULL);
    g_autofree char *file = ch_image_listing_find("boot/\nboot/vmlinuz\n", "/boot/vmlinuz", NULL);
    g_autofree char *none = ch_image_listing_find("disk/sub/a.img\n", "/disk/", NULL);

    g_assert_cmpstr(one, ==, "./disk/a.img");
    g_assert_cmpstr(file, ==, "boot/vmlinuz");
    g_assert_null(none);
    g_assert_null(ch_image_listing_find("disk/a\ndisk/b\n", "/disk/", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

/* --- files ------------------------------------------------------------------------------------ */

typedef struct {
    char *root, *images, *cache;
    ChImageStore store;
} Fixture;

static void
write_file(const char *dir, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);

    g_assert_cmpint(g_mkdir_with_parents(parent, 0755), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    g_assert_cmpint(g_chmod(path, 0644), ==, 0);
}

static void
run(const char *first, ...)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    va_list list;

    va_start(list, first);
    for (const char *text = first; text != NULL; text = va_arg(list, const char *))
        g_ptr_array_add(argv, (char *)text);
    va_end(list);
    g_ptr_array_add(argv, NULL);
    ch_command_run(
        &(ChCommand){(const char *const *)argv->pdata, 60 * CH_SECOND_US, 0, 0}, NULL, &error);
    g_assert_no_error(error);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    f->root = g_dir_make_tmp("image-XXXXXX", NULL);
    f->images = g_build_filename(f->root, "images", NULL);
    f->cache = g_build_filename(f->root, "cache", NULL);
    g_assert_cmpint(g_mkdir(f->images, 0755), ==, 0);
    f->store = (ChImageStore){f->images, f->cache};
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    run("rm", "-rf", f->root, NULL);
    g_free(f->root);
    g_free(f->images);
    g_free(f->cache);
}

#define HEX "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* A layout with two layers: the lower has disk/a.img, the upper etc/x. */
static void
make_layout(const Fixture *f, const char *name)
{
    g_autofree char *layout = g_build_filename(f->images, name, NULL);
    g_autofree char *low = g_build_filename(f->root, "low", NULL);
    g_autofree char *high = g_build_filename(f->root, "high", NULL);
    g_autofree char *low_tar = g_build_filename(layout, "blobs/sha256", HEX "1", NULL);
    g_autofree char *high_tar = g_build_filename(layout, "blobs/sha256", HEX "2", NULL);

    write_file(low, "disk/a.img", "the disk");
    write_file(high, "etc/x", "x");
    write_file(layout, "oci-layout", "{}");
    write_file(layout,
               "blobs/sha256/" HEX "3",
               "{\"layers\":[{\"digest\":\"sha256:" HEX "1\"},{\"digest\":\"sha256:" HEX "2\"}]}");
    write_file(layout, "index.json", "{\"manifests\":[{\"digest\":\"sha256:" HEX "3\"}]}");
    run("tar", "-czf", low_tar, "-C", low, ".", NULL);
    run("tar", "-cf", high_tar, "-C", high, "etc", NULL);
}

static void
assert_content(const char *path, const char *expected)
{
    g_autofree char *text = NULL;

    g_assert_nonnull(path);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, expected);
}

static void
test_layout(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *disk = NULL;
    g_autofree char *again = NULL;

    make_layout(f, "lab/vm:1");
    disk = ch_image_find_file(&f->store, "lab/vm:1", "/disk/", &error);
    g_assert_no_error(error);
    assert_content(disk, "the disk");
    again = ch_image_find_file(&f->store, "lab/vm:1", "/disk/a.img", &error);
    g_assert_cmpstr(again, ==, disk); /* from the cache */
}

#define N_THREADS 8

static gpointer
find_disk(gpointer data)
{
    const Fixture *f = data;

    return ch_image_find_file(&f->store, "lab/vm:1", "/disk/", NULL);
}

/* VMs that start at once find the same file, whole, and nothing else is left. */
static void
test_at_once(Fixture *f, gconstpointer data)
{
    g_autofree char *staging = g_build_filename(f->cache, "staging", NULL);
    GThread *threads[N_THREADS];

    make_layout(f, "lab/vm:1");
    for (gsize i = 0; i < N_THREADS; i++)
        threads[i] = g_thread_new("find", find_disk, f);
    for (gsize i = 0; i < N_THREADS; i++) {
        g_autofree char *disk = g_thread_join(threads[i]);

        assert_content(disk, "the disk");
    }
    g_assert_cmpint(g_rmdir(staging), ==, 0);
}

static void
test_missing(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) no_file = NULL;
    g_autoptr(GError) no_image = NULL;

    make_layout(f, "lab/vm:1");
    g_assert_null(ch_image_find_file(&f->store, "lab/vm:1", "/boot/vmlinuz", &no_file));
    g_assert_error(no_file, CH_ERROR, CH_ERROR_NOT_FOUND);
    g_assert_nonnull(strstr(no_file->message, "no file '/boot/vmlinuz'; / has disk/, etc/"));
    g_assert_null(ch_image_find_file(&f->store, "lab/vm:2", "/disk/", &no_image));
    g_assert_error(no_image, CH_ERROR, CH_ERROR_NOT_FOUND);
    g_assert_nonnull(strstr(no_image->message, f->images)); /* says where it was looked for */
}

static void
test_directory(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) missing = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *plain = g_build_filename(f->images, "plain", NULL);
    g_autofree char *link = g_build_filename(plain, "disk/link.img", NULL);
    g_autofree char *found = NULL;

    write_file(plain, "disk/b.qcow2", "a disk");
    g_assert_null(ch_image_find_file(&f->store, "plain", "/disk/c.img", &missing));
    g_assert_nonnull(strstr(missing->message, "no file '/disk/c.img'; /disk has b.qcow2"));
    found = ch_image_find_file(&f->store, "plain:any", "/disk/", &error);
    g_assert_no_error(error);
    assert_content(found, "a disk");

    g_assert_cmpint(symlink("/etc/shadow", link), ==, 0);
    g_assert_null(ch_image_find_file(&f->store, "plain", "/disk/link.img", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_NOT_FOUND);
    g_clear_error(&error);
    g_assert_null(ch_image_find_file(&f->store, "plain", "/../../etc/passwd", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

static void
test_unreadable_for_qemu(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *plain = g_build_filename(f->images, "plain", NULL);
    g_autofree char *disk = g_build_filename(plain, "disk/b.img", NULL);

    write_file(plain, "disk/b.img", "a disk");
    g_assert_cmpint(g_chmod(disk, 0600), ==, 0);
    g_assert_null(ch_image_find_file(&f->store, "plain", "/disk/", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_assert_nonnull(strstr(error->message, "chmod"));
}

/* A link in a layer is neither followed nor made. */
static void
test_link_in_layer(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *layout = g_build_filename(f->images, "evil", NULL);
    g_autofree char *tree = g_build_filename(f->root, "tree", NULL);
    g_autofree char *link = g_build_filename(tree, "disk/a.img", NULL);
    g_autofree char *tar = g_build_filename(layout, "blobs/sha256", HEX "2", NULL);

    make_layout(f, "evil");
    write_file(tree, "disk/x", "");
    g_assert_cmpint(symlink("/etc/passwd", link), ==, 0);
    run("tar", "-cf", tar, "-C", tree, "disk/a.img", NULL);
    g_assert_null(ch_image_find_file(&f->store, "evil", "/disk/a.img", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

static void
test_prune(Fixture *f, gconstpointer data)
{
    g_autofree char *layout = g_build_filename(f->images, "lab/vm:1", NULL);
    g_autofree char *half = g_build_filename(f->cache, "staging/half", NULL);
    g_autofree char *disk = NULL;

    make_layout(f, "lab/vm:1");
    disk = ch_image_find_file(&f->store, "lab/vm:1", "/disk/", NULL);
    write_file(f->cache, "staging/half", "of a pod runner that was killed");
    ch_image_prune(&f->store);
    g_assert_true(g_file_test(disk, G_FILE_TEST_EXISTS));
    g_assert_false(g_file_test(half, G_FILE_TEST_EXISTS));
    run("rm", "-r", layout, NULL);
    ch_image_prune(&f->store);
    g_assert_false(g_file_test(disk, G_FILE_TEST_EXISTS));
}

#define ADD(name, func) g_test_add("/image/" name, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/image/names", test_names);
    g_test_add_func("/image/index", test_index);
    g_test_add_func("/image/layers-topmost-first", test_layers_topmost_first);
    g_test_add_func("/image/digests", test_digests);
    g_test_add_func("/image/listing", test_listing);
    ADD("layout", test_layout);
    ADD("at-once", test_at_once);
    ADD("missing", test_missing);
    ADD("directory", test_directory);
    ADD("unreadable-for-qemu", test_unreadable_for_qemu);
    ADD("link-in-layer", test_link_in_layer);
    ADD("prune", test_prune);
    return g_test_run();
}
