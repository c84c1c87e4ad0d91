/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/device-change.h"

#include <libvirt/virterror.h>

#include "local/launcher/virt.h"

#define EVERYWHERE (VIR_DOMAIN_AFFECT_LIVE | VIR_DOMAIN_AFFECT_CONFIG)

bool
ch_device_attach(virDomainPtr domain, const char *xml, GError **error)
{
    return virDomainAttachDeviceFlags(domain, xml, EVERYWHERE) == 0 || ch_virt_fail(error);
}

/* Gone already, or asked for by an earlier Sync and not answered by the guest yet. */
static bool
is_under_way(void)
{
    const int code = virGetLastErrorCode();

    return code == VIR_ERR_DEVICE_MISSING || code == VIR_ERR_OPERATION_FAILED ||
           code == VIR_ERR_OPERATION_TIMEOUT;
}

bool
ch_device_detach(virDomainPtr domain, const char *xml, GError **error)
{
    /* Apart: after the first try only the living domain has it. */
    if (virDomainDetachDeviceFlags(domain, xml, VIR_DOMAIN_AFFECT_CONFIG) < 0 && !is_under_way())
        return ch_virt_fail(error);
    return virDomainDetachDeviceFlags(domain, xml, VIR_DOMAIN_AFFECT_LIVE) == 0 || is_under_way() ||
           ch_virt_fail(error);
}

bool
ch_device_update(virDomainPtr domain, const char *xml, GError **error)
{
    if (virDomainUpdateDeviceFlags(domain, xml, VIR_DOMAIN_AFFECT_CONFIG) < 0 &&
        virGetLastErrorCode() != VIR_ERR_DEVICE_MISSING)
        return ch_virt_fail(error);
    return virDomainUpdateDeviceFlags(domain, xml, VIR_DOMAIN_AFFECT_LIVE) == 0 ||
           ch_virt_fail(error);
}
