/* SPDX-License-Identifier: Apache-2.0 */

/* domain-status: what the guest does, and what its agent tells. Spec 02 §11. */

#include "handler/launcher/domain-internal.h"

static const char *const status_texts[] = {
    [CH_DOMAIN_OTHER] = NULL,
    [CH_DOMAIN_NO_STATE] = "NoState",
    [CH_DOMAIN_RUNNING] = "Running",
    [CH_DOMAIN_BLOCKED] = "Blocked",
    [CH_DOMAIN_PAUSED] = "Paused",
    [CH_DOMAIN_SHUTTING_DOWN] = "ShuttingDown",
    [CH_DOMAIN_SHUTOFF] = "Shutoff",
    [CH_DOMAIN_CRASHED] = "Crashed",
    [CH_DOMAIN_PM_SUSPENDED] = "PMSuspended",
    [CH_DOMAIN_UNKNOWN] = "Unknown",
};
G_STATIC_ASSERT(G_N_ELEMENTS(status_texts) == CH_DOMAIN_N);

static const char *const reason_texts[] = {
    [CH_REASON_OTHER] = NULL,
    [CH_REASON_USER] = "User",
    [CH_REASON_SHUTDOWN] = "Shutdown",
    [CH_REASON_DESTROYED] = "Destroyed",
    [CH_REASON_MIGRATED] = "Migrated",
    [CH_REASON_CRASHED] = "Crashed",
    [CH_REASON_PANICKED] = "Panicked",
    [CH_REASON_SAVED] = "Saved",
    [CH_REASON_FROM_SNAPSHOT] = "FromSnapshot",
    [CH_REASON_MIGRATION] = "Migration",
    [CH_REASON_IO_ERROR] = "IOError",
    [CH_REASON_STARTING_UP] = "StartingUp",
    [CH_REASON_POSTCOPY] = "Postcopy",
    [CH_REASON_POSTCOPY_FAILED] = "PostcopyFailed",
};
G_STATIC_ASSERT(G_N_ELEMENTS(reason_texts) == CH_REASON_N);

/* Index of @text in @texts, 0 when it is none of them. */
static unsigned
index_of(const char *const *texts, unsigned n_texts, const char *text)
{
    for (unsigned i = 1; i < n_texts; i++)
        if (g_str_equal(text, texts[i]))
            return i;
    return 0;
}

/* *out_texts: NULL-terminated; what is null is "". */
static bool
read_ips(ChDomain *domain, const ChJson *list, const char ***out_texts, GError **error)
{
    const gsize n = ch_json_length(list);

    if (list != NULL && !ch_json_is_array(list))
        return ch_domain_wrong_type("IPs", "list", error);
    for (gsize i = 0; i < n; i++)
        if (ch_json_item(list, i) != NULL && !ch_json_is_string(ch_json_item(list, i)))
            return ch_domain_wrong_type("IPs", "list of strings", error);
    *out_texts = g_new0(const char *, n + 1);
    for (gsize i = 0; i < n; i++) {
        const ChJson *ip = ch_json_item(list, i);

        (*out_texts)[i] = ip != NULL ? ch_domain_keep_text(domain, ip) : "";
    }
    return true;
}

static bool
read_guest_nic(ChDomain *domain, const ChJson *item, GError **error)
{
    static const ChDomainField fields[] = {
        FIELD("Mac", STRING, ChGuestNic, mac),
        FIELD("Ip", STRING, ChGuestNic, ip),
        FIELD("InterfaceName", STRING, ChGuestNic, interface_name),
    };
    ChGuestNic nic = {0};

    if (!READ_FIELDS(item, fields, &nic, error) ||
        !read_ips(domain, ch_json_at(item, "IPs"), &nic.ips, error))
        return false;
    g_array_append_val(domain->guest_nics, nic);
    return true;
}

static const ChDomainField status_fields[] = {
    FIELD("Status", STRING, ChDomain, status_text),
    FIELD("Reason", STRING, ChDomain, reason_text),
    FIELD("GuestPanicInfo", EXISTS, ChDomain, panic.exists),
    FIELD("PanicCount", INT, ChDomain, panic_count),
};

static const ChDomainField os_fields[] = {
    FIELD("Name", STRING, ChDomain, os.name),
    FIELD("KernelRelease", STRING, ChDomain, os.kernel_release),
    FIELD("Version", STRING, ChDomain, os.version),
    FIELD("PrettyName", STRING, ChDomain, os.pretty_name),
    FIELD("VersionId", STRING, ChDomain, os.version_id),
    FIELD("KernelVersion", STRING, ChDomain, os.kernel_version),
    FIELD("Machine", STRING, ChDomain, os.machine),
    FIELD("Id", STRING, ChDomain, os.id),
};

static const ChDomainField freeze_fields[] = {FIELD("Status", STRING, ChDomain, freeze_status)};

static const ChDomainField panic_fields[] = {
    FIELD("Type", STRING, ChDomain, panic.type),
    FIELD("Arg1", UINT, ChDomain, panic.arg1),
};

bool
ch_domain_read_status(ChDomain *domain, const ChJson *document, GError **error)
{
    const ChJson *status, *os, *freeze, *panic;

    if (!ch_domain_read_object(document, "Status", &status, error) ||
        !READ_FIELDS(status, status_fields, domain, error) ||
        !ch_domain_read_list(domain, status, "Interfaces", read_guest_nic, error) ||
        !ch_domain_read_object(status, "OSInfo", &os, error) ||
        !READ_FIELDS(os, os_fields, domain, error) ||
        !ch_domain_read_object(status, "FSFreezeStatus", &freeze, error) ||
        !READ_FIELDS(freeze, freeze_fields, domain, error) ||
        !ch_domain_read_object(status, "GuestPanicInfo", &panic, error) ||
        !READ_FIELDS(panic, panic_fields, domain, error))
        return false;

    domain->status = index_of(status_texts, CH_DOMAIN_N, domain->status_text);
    domain->reason = index_of(reason_texts, CH_REASON_N, domain->reason_text);
    return true;
}
