/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/disk-diff.h"

#include "lib/base/errors.h"
#include "local/launcher/xml.h"

#define DIR "/run/hotplug-disks"

#define FILE_DISK(alias, target, path)                                                             \
    "<disk type='file' device='disk'><source file='" path "'/><target dev='" target                \
    "' bus='virtio'/><alias name='ua-" alias "'/></disk>"
#define BLOCK_DISK(alias, target, path)                                                            \
    "<disk type='block' device='disk'><source dev='" path "'/><target dev='" target                \
    "' bus='virtio'/><alias name='ua-" alias "'/></disk>"

#define ROOT FILE_DISK("root", "vda", "/run/disk-data/root/disk.qcow2")
#define A    FILE_DISK("a", "vdb", DIR "/a.img")
#define B    BLOCK_DISK("b", "vdc", DIR "/b")

static const struct DiffCase {
    const char *name, *live, *wanted;
    const char *attach, *detach; /* paths, by comma */
} cases[] = {
    {"nothing", "", "", "", ""},
    {"same", ROOT A B, ROOT A B, "", ""},
    {"new-file", ROOT, ROOT A, DIR "/a.img", ""},
    {"new-both", ROOT, ROOT A B, DIR "/a.img," DIR "/b", ""},
    {"gone", ROOT A B, ROOT B, "", DIR "/a.img"},
    {"permanent-disks-neither-come", "", ROOT, "", ""},
    {"permanent-disks-nor-go", ROOT, "", "", ""},
    {"swap-waits-for-the-target",
     ROOT A,
     ROOT FILE_DISK("c", "vdb", DIR "/c.img"),
     "",
     DIR "/a.img"},
    {"no-path-no-disk",
     "<disk type='file'><target dev='sda'/><alias name='ua-cd'/></disk>",
     "",
     "",
     ""},
    {"no-alias-not-ours", "<disk type='file'><source file='" DIR "/x'/></disk>", "", "", ""},
    {"beside-the-directory", FILE_DISK("x", "vdx", DIR "-other/x.img"), "", "", ""},
};

static char *
paths_of(const GArray *changes)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < changes->len; i++)
        g_string_append_printf(
            text, "%s%s", i > 0 ? "," : "", g_array_index(changes, ChDiskChange, i).path);
    return g_string_free(text, FALSE);
}

static void
test_diff(gconstpointer data)
{
    const struct DiffCase *c = data;
    g_autofree char *live = g_strconcat("<domain><devices>", c->live, "</devices></domain>", NULL);
    g_autofree char *wanted = g_strconcat("<devices>", c->wanted, "</devices>", NULL);
    g_autoptr(GError) error = NULL;
    g_auto(ChDiskDiff) diff = {0};

    g_assert_true(ch_disk_diff(live, wanted, DIR, &diff, &error));
    g_assert_no_error(error);
    g_autofree char *attach = paths_of(diff.attach);
    g_autofree char *detach = paths_of(diff.detach);
    g_assert_cmpstr(attach, ==, c->attach);
    g_assert_cmpstr(detach, ==, c->detach);
}

/* libvirt is given the whole element, and nothing of the document around it. */
static void
test_what_libvirt_gets(void)
{
    g_auto(ChDiskDiff) diff = {0};
    const ChDiskChange *change;

    g_assert_true(ch_disk_diff("<domain/>", "<devices>" ROOT B "</devices>", DIR, &diff, NULL));
    g_assert_cmpuint(diff.attach->len, ==, 1);
    change = &g_array_index(diff.attach, ChDiskChange, 0);
    g_assert_true(change->is_block);
    g_autoptr(xmlDoc) doc = ch_xml_parse(change->xml, NULL);
    g_assert_cmpstr((const char *)xmlDocGetRootElement(doc)->name, ==, "disk");
    g_autofree char *target =
        ch_xml_dup_attribute(ch_xml_child(xmlDocGetRootElement(doc), "target"), "dev");
    g_assert_cmpstr(target, ==, "vdc");
}

static void
test_no_documents(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(ChDiskDiff) diff = {0};

    g_assert_false(ch_disk_diff("<domain", "<devices/>", DIR, &diff, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_clear_error(&error);
    g_assert_false(ch_disk_diff("<domain/>", "", DIR, &diff, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ch_xml_init();
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/disk-diff/", cases[i].name, NULL);

        g_test_add_data_func(path, &cases[i], test_diff);
    }
    g_test_add_func("/disk-diff/what-libvirt-gets", test_what_libvirt_gets);
    g_test_add_func("/disk-diff/no-documents", test_no_documents);
    return g_test_run();
}
