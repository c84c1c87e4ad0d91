/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/disk-diff.h"

#include <string.h>

#include "local/launcher/xml.h"

#define MAX_DISKS 1024

static void
change_clear(gpointer data)
{
    ChDiskChange *change = data;

    g_free(change->xml);
    g_free(change->path);
}

static GArray *
new_changes(void)
{
    GArray *changes = g_array_new(FALSE, FALSE, sizeof(ChDiskChange));

    g_array_set_clear_func(changes, change_clear);
    return changes;
}

void
ch_disk_diff_clear(ChDiskDiff *diff)
{
    g_clear_pointer(&diff->attach, g_array_unref);
    g_clear_pointer(&diff->detach, g_array_unref);
}

/* One <disk>; owned but the node. */
typedef struct {
    xmlNode *node;
    char *alias, *target, *path;
    bool is_block;
} Disk;

static void
disk_clear(gpointer data)
{
    Disk *disk = data;

    g_free(disk->alias);
    g_free(disk->target);
    g_free(disk->path);
}

static GArray *
read_disks(const xmlNode *devices)
{
    GArray *disks = g_array_new(FALSE, FALSE, sizeof(Disk));

    g_array_set_clear_func(disks, disk_clear);
    for (xmlNode *node = ch_xml_child(devices, "disk"); node != NULL && disks->len < MAX_DISKS;
         node = ch_xml_next(node)) {
        const xmlNode *source = ch_xml_child(node, "source");
        Disk disk = {
            .node = node,
            .alias = ch_xml_dup_attribute(ch_xml_child(node, "alias"), "name"),
            .target = ch_xml_dup_attribute(ch_xml_child(node, "target"), "dev"),
            .path = ch_xml_dup_attribute(source, "file"),
        };

        if (disk.path == NULL) {
            disk.path = ch_xml_dup_attribute(source, "dev");
            disk.is_block = disk.path != NULL;
        }
        g_array_append_val(disks, disk);
    }
    return disks;
}

static bool
is_plugged(const Disk *disk, const char *hotplug_dir)
{
    const gsize length = strlen(hotplug_dir);

    return disk->alias != NULL && disk->path != NULL &&
           strncmp(disk->path, hotplug_dir, length) == 0 && disk->path[length] == '/';
}

static bool
has_alias(const GArray *disks, const char *alias)
{
    for (guint i = 0; i < disks->len; i++)
        if (g_strcmp0(g_array_index(disks, Disk, i).alias, alias) == 0)
            return true;
    return false;
}

static bool
has_target(const GArray *disks, const char *target)
{
    for (guint i = 0; i < disks->len; i++)
        if (g_strcmp0(g_array_index(disks, Disk, i).target, target) == 0)
            return true;
    return false;
}

static void
add_change(GArray *changes, const Disk *disk)
{
    const ChDiskChange change = {
        ch_xml_print_node(disk->node), g_strdup(disk->path), disk->is_block};

    g_array_append_val(changes, change);
}

bool
ch_disk_diff(const char *live,
             const char *wanted,
             const char *hotplug_dir,
             ChDiskDiff *out_diff,
             GError **error)
{
    g_autoptr(xmlDoc) live_doc = ch_xml_parse(live, error);
    g_autoptr(xmlDoc) wanted_doc = live_doc != NULL ? ch_xml_parse(wanted, error) : NULL;
    g_autoptr(GArray) there = NULL;
    g_autoptr(GArray) wishes = NULL;

    if (wanted_doc == NULL)
        return false;
    there = read_disks(ch_xml_child(xmlDocGetRootElement(live_doc), "devices"));
    wishes = read_disks(xmlDocGetRootElement(wanted_doc));
    *out_diff = (ChDiskDiff){new_changes(), new_changes()};
    for (guint i = 0; i < there->len; i++) {
        const Disk *disk = &g_array_index(there, Disk, i);

        if (is_plugged(disk, hotplug_dir) && !has_alias(wishes, disk->alias))
            add_change(out_diff->detach, disk);
    }
    for (guint i = 0; i < wishes->len; i++) {
        const Disk *disk = &g_array_index(wishes, Disk, i);

        if (is_plugged(disk, hotplug_dir) && !has_alias(there, disk->alias) &&
            !has_target(there, disk->target))
            add_change(out_diff->attach, disk);
    }
    return true;
}
