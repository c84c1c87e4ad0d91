/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/guest-store.h"

#include <pthread.h>

#include "local/launcher/guest-info.h"

/* GetGuestInfo is read at every Sync; the full lists have RPCs of their own. */
#define MAX_LISTED 10

/* Of one part's text: all parts together fit the 4 MiB that the agent takes, so that no guest can
 * keep its own domain from being told of. */
#define MAX_PART_BYTES (256u << 10)

struct ChGuestStore {
    pthread_mutex_t lock; /* guards the values; no reference leaves it */
    ChJson *values[CH_GUEST_N];
};

ChGuestStore *
ch_guest_store_new(void)
{
    ChGuestStore *store = g_new0(ChGuestStore, 1);

    pthread_mutex_init(&store->lock, NULL);
    return store;
}

void
ch_guest_store_free(ChGuestStore *store)
{
    if (store == NULL)
        return;
    for (guint part = 0; part < CH_GUEST_N; part++)
        ch_json_unref(store->values[part]);
    pthread_mutex_destroy(&store->lock);
    g_free(store);
}

static bool
is_too_long(const ChJson *value)
{
    gsize length = 0;
    g_autofree char *text = ch_json_print(value, &length);

    return length > MAX_PART_BYTES;
}

bool
ch_guest_store_put(ChGuestStore *store, ChGuestPart part, ChJson *value)
{
    if (value == NULL)
        return false;
    if (is_too_long(value)) {
        ch_json_unref(value);
        return false;
    }
    pthread_mutex_lock(&store->lock);
    const bool differs = store->values[part] == NULL || !ch_json_equal(store->values[part], value);
    ch_json_unref(store->values[part]);
    store->values[part] = value;
    pthread_mutex_unlock(&store->lock);
    return differs &&
           (part == CH_GUEST_INTERFACES || part == CH_GUEST_OS || part == CH_GUEST_FREEZE);
}

ChJson *
ch_guest_store_dup(ChGuestStore *store, ChGuestPart part)
{
    pthread_mutex_lock(&store->lock);
    ChJson *copy = store->values[part] == NULL ? NULL : ch_json_dup(store->values[part]);
    pthread_mutex_unlock(&store->lock);
    return copy;
}

static void
truncate_list(ChJson *list)
{
    while (ch_json_length(list) > MAX_LISTED)
        ch_json_remove_item(list, ch_json_length(list) - 1);
}

/* Members without a value are left out, but for the three that a Go launcher always sends. */
char *
ch_guest_store_print_info(ChGuestStore *store)
{
    g_autoptr(ChJson) agent = ch_guest_store_dup(store, CH_GUEST_AGENT);
    g_autoptr(ChJson) os_info = ch_guest_store_dup(store, CH_GUEST_OS);
    ChJson *zone = ch_guest_store_dup(store, CH_GUEST_TIMEZONE);
    ChJson *users = ch_guest_store_dup(store, CH_GUEST_USERS);
    ChJson *filesystems = ch_guest_store_dup(store, CH_GUEST_FILESYSTEMS);
    ChJson *hostname = ch_guest_store_dup(store, CH_GUEST_HOSTNAME);
    ChJson *freeze = ch_guest_store_dup(store, CH_GUEST_FREEZE);
    g_autoptr(ChJson) info = ch_json_new_object();

    truncate_list(users);
    truncate_list(filesystems);
    if (agent != NULL) {
        ch_json_set_string(info, "guestAgentVersion", ch_json_string_at(agent, "version"));
        ch_json_set(info, "supportedCommands", ch_json_dup(ch_json_at(agent, "commands")));
    }
    if (hostname != NULL)
        ch_json_set(info, "hostname", hostname);
    ch_json_set(info, "os", ch_guest_info_rename_os(os_info));
    ch_json_set(info, "timezone", zone == NULL ? ch_json_new_string(", 0") : zone);
    if (ch_json_length(users) > 0)
        ch_json_set(info, "userList", users);
    else
        ch_json_unref(users);
    ch_json_set(ch_json_ensure_object(info, "fsInfo"), "disks", filesystems);
    if (freeze != NULL)
        ch_json_set(info, "fsFreezeStatus", freeze);
    return ch_json_print(info, NULL);
}

char *
ch_guest_store_print_list(ChGuestStore *store, ChGuestPart part)
{
    g_autoptr(ChJson) list = ch_guest_store_dup(store, part);

    return list == NULL ? g_strdup("[]") : ch_json_print(list, NULL);
}
