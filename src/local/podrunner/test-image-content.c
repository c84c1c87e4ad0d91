/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/image-content.h"

#define DISK                                                                                       \
    "it has no file in /disk/, where a disk is looked for unless the volume's 'path' names it; "

static const struct Case {
    const char *name, *listing, *wanted, *text;
} cases[] = {
    {"no-directory",
     "./\n./etc/\n./etc/passwd\n./image.qcow2\n",
     "/disk/",
     DISK "/ has etc/, image.qcow2"},
    {"empty-directory", "disk/\netc/\n", "/disk/", DISK "/disk has nothing"},
    {"folder-in-it", "disk/sub/a.img\n", "/disk/", DISK "/disk has sub/"},
    {"empty-image", "", "/disk/", DISK "/ has nothing"},
    {"file",
     "boot/\nboot/vmlinuz-6.1\nboot/config-6.1\n",
     "/boot/vmlinuz",
     "it has no file '/boot/vmlinuz'; /boot has config-6.1, vmlinuz-6.1"},
    {"way-ends-early",
     "a/\na/b/\na/b/x\n",
     "/a/b/c/d/e",
     "it has no file '/a/b/c/d/e'; /a/b has x"},
    {"file-in-the-root", "vmlinuz\n", "kernel", "it has no file 'kernel'; / has vmlinuz"},
    {"many",
     "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
     "/x",
     "it has no file '/x'; / has 1, 10, 2, 3, 4, 5, 6, 7 and 2 more"},
    {"in-two-layers", "a\na\n", "/x", "it has no file '/x'; / has a"},
    {"alike", "disks/a\n", "/disk/", DISK "/ has disks/"},
    {"no-utf-8", "\xff\n", "/x", "it has no file '/x'; / has \xef\xbf\xbd"},
};

static void
test_describe(gconstpointer data)
{
    const struct Case *c = data;
    g_autofree char *text = ch_image_content_describe(c->listing, c->wanted);

    g_assert_cmpstr(text, ==, c->text);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/image-content/", cases[i].name, NULL);

        g_test_add_data_func(path, &cases[i], test_describe);
    }
    return g_test_run();
}
