/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/forwarding.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/small-file.h"

#define BOOT_ID          "/proc/sys/kernel/random/boot_id"
#define MAX_NUMBER_BYTES 64
#define MAX_CONF_BYTES   (64u << 10)

static const struct {
    const char *path;
    const char *keys[2]; /* in sysctl.d */
} switches[CH_FORWARDING_N] = {
    [CH_FORWARDING_IPV4] = {"/proc/sys/net/ipv4/ip_forward",
                            {"net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding"}},
    [CH_FORWARDING_IPV6] = {"/proc/sys/net/ipv6/conf/all/forwarding",
                            {"net.ipv6.conf.all.forwarding", "net.ipv6.conf.all.forwarding"}},
};

static char *
read_line(const char *path)
{
    char *text = ch_small_file_read(path, MAX_NUMBER_BYTES, NULL, NULL);

    return text != NULL ? g_strchomp(text) : NULL;
}

static bool
is_off(guint i)
{
    g_autofree char *text = read_line(switches[i].path);

    return g_strcmp0(text, "0") == 0;
}

static void
turn(guint i, const char *digit)
{
    ch_autofd int fd = g_open(switches[i].path, O_WRONLY | O_CLOEXEC, 0);

    if (fd < 0 || write(fd, digit, 1) != 1)
        ch_log_warning(NULL,
                       NULL,
                       "ignoring that '%s' does not become %s: %s",
                       switches[i].path,
                       digit,
                       g_strerror(errno));
}

static bool
wants(const ChNodeNetwork *network, guint i)
{
    for (gsize s = 0; network->subnets != NULL && network->subnets[s] != NULL; s++) {
        if ((strchr(network->subnets[s], ':') != NULL) == (i == CH_FORWARDING_IPV6))
            return true;
    }
    return false;
}

void
ch_forwarding_note(const ChNodeNetwork *stored, ChNodeNetwork *network)
{
    g_autofree char *boot = read_line(BOOT_ID);
    const bool counts = stored != NULL && g_strcmp0(stored->boot, boot) == 0;

    g_free(network->boot);
    network->boot = g_steal_pointer(&boot);
    for (guint i = 0; i < CH_FORWARDING_N; i++)
        network->turns_on[i] = wants(network, i) && (is_off(i) || (counts && stored->turns_on[i]));
}

void
ch_forwarding_turn_on(const ChNodeNetwork *network)
{
    for (guint i = 0; i < CH_FORWARDING_N; i++) {
        if (network->turns_on[i] && is_off(i))
            turn(i, "1");
    }
}

/* --- who else ----------------------------------------------------------------------------------
 */

/* Links that somebody makes who leads packets from one to another. */
static const char *
find_user(const ChNetState *machine)
{
    static const char *const kinds[] = {
        "bridge", "tun", "wireguard", "ipvlan", "macvlan", "vxlan", "geneve", "openvswitch", NULL};

    for (guint i = 0; i < machine->links->len; i++) {
        const ChLink *link = &g_array_index(machine->links, ChLink, i);

        if (g_strv_contains(kinds, link->kind))
            return link->name;
    }
    return NULL;
}

/* "net.ipv4.ip_forward = 1", with slashes or dots, maybe after a '-' */
static bool
sets(char *line, guint i)
{
    char *equals = strchr(line, '=');
    char *key;

    if (equals == NULL)
        return false;
    *equals = '\0';
    key = g_strdelimit(g_strstrip(line), "/", '.');
    key += *key == '-';
    return g_str_equal(g_strstrip(equals + 1), "1") &&
           (g_str_equal(key, switches[i].keys[0]) || g_str_equal(key, switches[i].keys[1]));
}

static bool
file_sets(const char *path, guint i)
{
    g_autofree char *text = ch_small_file_read(path, MAX_CONF_BYTES, NULL, NULL);
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);

    for (gsize n = 0; lines[n] != NULL; n++) {
        if (sets(lines[n], i))
            return true;
    }
    return false;
}

static bool
is_configured(guint i)
{
    static const char *const dirs[] = {
        "/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"};

    if (file_sets("/etc/sysctl.conf", i))
        return true;
    for (gsize d = 0; d < G_N_ELEMENTS(dirs); d++) {
        g_autoptr(GDir) dir = g_dir_open(dirs[d], 0, NULL);
        const char *name = NULL;

        while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
            g_autofree char *path = g_build_filename(dirs[d], name, NULL);

            if (file_sets(path, i))
                return true;
        }
    }
    return false;
}

void
ch_forwarding_take_back(const ChNodeNetwork *network, const ChNetState *machine)
{
    g_autofree char *boot = read_line(BOOT_ID);
    const char *user = find_user(machine);

    if (g_strcmp0(network->boot, boot) != 0)
        return; /* of an earlier boot: whatever is on now was turned on by others */
    for (guint i = 0; i < CH_FORWARDING_N; i++) {
        if (!network->turns_on[i] || is_off(i))
            continue;
        if (user != NULL || is_configured(i))
            ch_log_info(NULL,
                        "Leaving '%s' on, as %s may need it by now",
                        switches[i].path,
                        user != NULL ? user : "sysctl.d");
        else
            turn(i, "0");
    }
}
