/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/leases.h"

#include <glib/gstdio.h>

#include "lib/base/log.h"
#include "lib/base/small-file.h"
#include "lib/linux/ip.h"
#include "local/podrunner/record.h"

#define MAX_BYTES 4096

typedef struct {
    const char *uid;
    const char *link; /* "": of an earlier version, which did not say */
} Owner;

typedef bool (*LeaseMatch)(const Owner *owner, gconstpointer data);

static void
free_one(const char *path, LeaseMatch match, gconstpointer data)
{
    g_autofree char *text = ch_small_file_read(path, MAX_BYTES, NULL, NULL);
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", 3);
    const guint n = g_strv_length(lines);
    const Owner owner = {n > 0 ? g_strchomp(lines[0]) : "", n > 1 ? g_strchomp(lines[1]) : ""};

    if (text == NULL || !match(&owner, data))
        return;
    ch_log_info(NULL, "Freeing the address of '%s', which nobody has anymore", path);
    (void)g_unlink(path); /* seen again at the next start */
}

static void
free_matching(const char *lease_dir, LeaseMatch match, gconstpointer data)
{
    g_autoptr(GDir) networks = g_dir_open(lease_dir, 0, NULL);
    const char *network = NULL;

    while (networks != NULL && (network = g_dir_read_name(networks)) != NULL) {
        g_autofree char *path = g_build_filename(lease_dir, network, NULL);
        g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
        const char *name = NULL;

        while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
            g_autofree char *lease = g_build_filename(path, name, NULL);
            ChIp ip;

            if (ch_ip_parse(name, &ip))
                free_one(lease, match, data);
        }
    }
}

static bool
is_of(const Owner *owner, gconstpointer data)
{
    const Owner *wanted = data;

    return g_str_equal(owner->uid, wanted->uid) &&
           (wanted->link == NULL || g_str_equal(owner->link, wanted->link));
}

void
ch_leases_free(const char *lease_dir, const char *uid, const char *link)
{
    free_matching(lease_dir, is_of, &(Owner){uid, link});
}

static bool
is_of_none(const Owner *owner, gconstpointer data)
{
    const GPtrArray *records = data;

    for (guint i = 0; i < records->len; i++) {
        const ChRecord *record = records->pdata[i];

        if (record->network != NULL && g_str_equal(owner->uid, record->uid))
            return false;
    }
    return true;
}

void
ch_leases_sweep(const char *lease_dir, const GPtrArray *records)
{
    free_matching(lease_dir, is_of_none, records);
}
