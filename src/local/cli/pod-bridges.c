/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/pod-bridges.h"

#include <glib/gstdio.h>

#include "lib/base/log.h"
#include "lib/base/small-file.h"
#include "lib/linux/rtnetlink.h"

#define BOOT_ID        "/proc/sys/kernel/random/boot_id"
#define MAX_FILE_BYTES 256

/* What a note says of a bridge of this boot. Returns: false: it is of an earlier one, or no note */
static bool
read_note(const char *path, int *out_index)
{
    g_autofree char *text = ch_small_file_read(path, MAX_FILE_BYTES, NULL, NULL);
    g_autofree char *boot = ch_small_file_read(BOOT_ID, MAX_FILE_BYTES, NULL, NULL);
    g_auto(GStrv) words = g_strsplit(text != NULL ? g_strchomp(text) : "", " ", 2);
    gint64 index = 0;

    if (words[0] == NULL || words[1] == NULL || boot == NULL ||
        !g_str_equal(words[1], g_strchomp(boot)) ||
        !g_ascii_string_to_signed(words[0], 10, 0, G_MAXINT, &index, NULL))
        return false;
    *out_index = (int)index;
    return true;
}

static bool
has_ports(const ChNetState *machine, int index)
{
    for (guint i = 0; i < machine->links->len; i++) {
        if (g_array_index(machine->links, ChLink, i).master == index)
            return true;
    }
    return false;
}

static void
remove_one(ChNetlink *netlink, const ChNetState *machine, const char *name, const char *path)
{
    const ChLink *link = ch_net_state_find_link(machine, name);
    g_autoptr(GError) failure = NULL;
    ChNetlinkMessage message;
    int index = 0;

    if (!read_note(path, &index) || link == NULL || !g_str_equal(link->kind, "bridge") ||
        (index != 0 && index != link->index))
        return;
    if (has_ports(machine, link->index)) {
        ch_log_info(NULL, "Leaving the bridge %s, which others use by now", name);
        return;
    }
    ch_rtnl_compose_delete_link(&message, link->index);
    if (!ch_netlink_request(netlink, &message, message.header.nlmsg_len, &failure))
        ch_log_warning(NULL, failure, "ignoring that the bridge %s cannot be removed", name);
}

void
ch_pod_bridges_remove(const ChCli *cli)
{
    g_autofree char *folder = ch_cli_path(cli, "podrunner/bridges");
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(ChNetlink) netlink = dir != NULL ? ch_netlink_open(NETLINK_ROUTE, NULL) : NULL;
    g_autoptr(ChNetState) machine = netlink != NULL ? ch_rtnl_read(netlink, false, NULL) : NULL;
    const char *name = NULL;

    while (machine != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);

        remove_one(netlink, machine, name, path);
        (void)g_unlink(path);
    }
    if (machine != NULL)
        (void)g_rmdir(folder);
}
