/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/vmi/nics.h"

#include <string.h>

bool
ch_nic_name_is_valid(const char *name)
{
    return name != NULL && g_ascii_isalnum(*name) && strlen(name) <= CH_NIC_MAX_NAME_BYTES &&
           name[strspn(name, CH_NIC_NAME_CHARACTERS)] == '\0';
}

bool
ch_nic_is_absent(const ChJson *interface)
{
    return g_strcmp0(ch_json_string_at(interface, "state"), CH_NIC_ABSENT) == 0;
}

bool
ch_nic_has_source(const ChJson *status, const char *source)
{
    const char *text = ch_json_string_at(status, "infoSource");
    g_auto(GStrv) sources = g_strsplit(text != NULL ? text : "", ", ", -1);

    return g_strv_contains((const char *const *)sources, source);
}

bool
ch_vmi_has_disk(const ChJson *vmi, const char *name)
{
    const ChJson *const lists[] = {
        ch_json_at(vmi, "spec", "volumes"),
        ch_json_at(vmi, "spec", "domain", "devices", "disks"),
        ch_json_at(vmi, "status", "volumeStatus"),
    };

    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++) {
        if (ch_json_find(lists[i], "name", name) != NULL)
            return true;
    }
    return false;
}
