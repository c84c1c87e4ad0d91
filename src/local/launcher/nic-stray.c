/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/nic-stray.h"

#include <libvirt/libvirt-qemu.h>
#include <stdlib.h>

#include "lib/base/log.h"
#include "local/launcher/alias.h"
#include "local/launcher/nic-plan.h"

#define MAX_QUEUES 256

char *
ch_nic_stray_command(const char *execute, const char *argument, const char *value)
{
    g_autoptr(ChJson) command = ch_json_new_object();

    ch_json_set_string(command, "execute", execute);
    ch_json_set_string(ch_json_ensure_object(command, "arguments"), argument, value);
    return ch_json_print(command, NULL);
}

/* (transfer full): QEMU's answer; NULL: it did not do it: there was none */
static ChJson *
ask(virDomainPtr domain, const char *execute, const char *argument, const char *value)
{
    g_autofree char *command = ch_nic_stray_command(execute, argument, value);
    g_autoptr(ChJson) json = NULL;
    char *answer = NULL; /* libvirt's: by malloc() */

    if (virDomainQemuMonitorCommand(domain, command, &answer, 0) < 0)
        return NULL;
    json = ch_json_parse(answer, -1, NULL);
    free(answer);
    return json != NULL && !ch_json_has(json, "error") ? g_steal_pointer(&json) : NULL;
}

static bool
run(virDomainPtr domain, const char *execute, const char *argument, const char *value)
{
    g_autoptr(ChJson) answer = ask(domain, execute, argument, value);

    if (answer == NULL)
        return false;
    ch_log_info(NULL, "QEMU had %s, of which libvirt does not know: %s.", value, execute);
    return true;
}

/* Handed to QEMU for the queues, and not used up. @kind: "tapfd", "vhostfd" */
static void
close_descriptors(virDomainPtr domain, const char *kind, const char *name)
{
    for (guint i = 0; i < MAX_QUEUES; i++) {
        g_autofree char *descriptor = g_strdup_printf("%s-ua-%s%u", kind, name, i);

        if (!run(domain, "closefd", "fdname", descriptor))
            return;
    }
}

bool
ch_nic_stray_is_nic(const ChJson *answer)
{
    return ch_json_find(ch_json_at(answer, "return"), "name", "netdev") != NULL;
}

/* Then nothing of that name is stray, or it cannot be told. */
static bool
is_known(virDomainPtr domain, const char *name)
{
    char *live = virDomainGetXMLDesc(domain, 0); /* libvirt's: by malloc() */
    const bool is_taken = live == NULL || ch_nic_plan_is_taken(live, name);

    free(live);
    return is_taken;
}

bool
ch_nic_stray_remove(virDomainPtr domain, const char *name, const char *xml)
{
    /* libvirt's names for what it makes of an interface with the alias ua-NAME. */
    g_autofree char *device = g_strconcat(CH_ALIAS_PREFIX, name, NULL);
    g_autofree char *backend = g_strconcat("host" CH_ALIAS_PREFIX, name, NULL);
    g_autofree char *path = g_strconcat("/machine/peripheral/", device, NULL);
    g_autoptr(ChJson) answer = NULL;
    bool has_device;

    if (is_known(domain, name))
        return false;
    answer = ask(domain, "qom-list", "path", path);
    has_device = answer != NULL && ch_nic_stray_is_nic(answer);
    (void)virDomainDetachDeviceFlags(domain, xml, VIR_DOMAIN_AFFECT_CONFIG);
    if (has_device)
        (void)run(domain, "device_del", "id", device);
    (void)run(domain, "netdev_del", "id", backend);
    close_descriptors(domain, "tapfd", name);
    close_descriptors(domain, "vhostfd", name);
    return has_device;
}
