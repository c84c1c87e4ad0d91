/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher/domain.h"

#include <stdatomic.h>

#include "handler/launcher/domain-internal.h"

#define CHUNK_BYTES 512 /* of texts; most domains have less */

/* --- what is read of the document: the rest is a dozen kilobytes --- */

#define PART(name, within)                                                                         \
    {                                                                                              \
        name, within                                                                               \
    }
#define PARTS_END                                                                                  \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }

static const ChJsonPart disk_parts[] = {
    PART("Alias", NULL), PART("Source", NULL), PART("Target", NULL), PARTS_END};

static const ChJsonPart nic_parts[] = {PART("Alias", NULL),
                                       PART("MAC", NULL),
                                       PART("Driver", NULL),
                                       PART("LinkState", NULL),
                                       PARTS_END};

static const ChJsonPart host_device_parts[] = {PART("Alias", NULL), PARTS_END};

static const ChJsonPart channel_parts[] = {PART("Target", NULL), PARTS_END};

static const ChJsonPart device_parts[] = {
    PART("Disks", disk_parts),
    PART("Interfaces", nic_parts),
    PART("HostDevices", host_device_parts),
    PART("Channels", channel_parts),
    PARTS_END,
};

static const ChJsonPart os_parts[] = {PART("Type", NULL), PARTS_END};

static const ChJsonPart metadata_parts[] = {PART("KubeVirt", NULL), PARTS_END};

static const ChJsonPart spec_parts[] = {
    PART("Type", NULL),
    PART("CurrentMemory", NULL),
    PART("OS", os_parts),
    PART("Features", NULL),
    PART("CPUTune", NULL),
    PART("Devices", device_parts),
    PART("Metadata", metadata_parts),
    PARTS_END,
};

static const ChJsonPart domain_parts[] = {
    PART("ObjectMeta", NULL),
    PART("Spec", spec_parts),
    PART("Status", NULL),
    PARTS_END,
};

static bool
read_object_meta(ChDomain *domain, const ChJson *document, GError **error)
{
    static const ChDomainField fields[] = {
        FIELD("namespace", STRING, ChDomain, namespace_),
        FIELD("name", STRING, ChDomain, name),
        FIELD("uid", STRING, ChDomain, object_uid),
    };
    const ChJson *meta;
    ChDomainTime deletion = {0};

    if (!ch_domain_read_object(document, "ObjectMeta", &meta, error) ||
        !READ_FIELDS(meta, fields, domain, error))
        return false;
    if (ch_json_at(meta, "deletionTimestamp") != NULL &&
        !ch_domain_read_time(
            ch_json_at(meta, "deletionTimestamp"), "deletionTimestamp", &deletion, error))
        return false;
    domain->is_deleted = deletion.is_set;
    return true;
}

typedef struct {
    ChDomain domain;
    atomic_int n_refs;
} Counted;

static void
clear_guest_nic(gpointer nic)
{
    g_free(((ChGuestNic *)nic)->ips);
}

static ChDomain *
domain_new(void)
{
    Counted *counted = g_new0(Counted, 1);
    ChDomain *domain = &counted->domain;

    atomic_init(&counted->n_refs, 1);
    domain->texts = g_string_chunk_new(CHUNK_BYTES);
    domain->disks = g_array_new(FALSE, FALSE, sizeof(ChDomainDisk));
    domain->nics = g_array_new(FALSE, FALSE, sizeof(ChDomainNic));
    domain->host_devices = g_ptr_array_new();
    domain->guest_nics = g_array_new(FALSE, FALSE, sizeof(ChGuestNic));
    g_array_set_clear_func(domain->guest_nics, clear_guest_nic);
    return domain;
}

ChDomain *
ch_domain_parse(const char *text, gssize length, GError **error)
{
    g_autoptr(ChJson) document = ch_json_parse_parts(text, length, domain_parts, error);
    g_autoptr(ChDomain) domain = NULL;

    if (document == NULL)
        return NULL;
    if (!ch_json_is_object(document)) {
        ch_domain_wrong_type("document", "object", error);
        return NULL;
    }
    domain = domain_new();
    if (!read_object_meta(domain, document, error) ||
        !ch_domain_read_spec(domain, document, error) ||
        !ch_domain_read_status(domain, document, error))
        return NULL;
    return g_steal_pointer(&domain);
}

ChDomain *
ch_domain_ref(ChDomain *domain)
{
    atomic_fetch_add(&((Counted *)domain)->n_refs, 1);
    return domain;
}

void
ch_domain_unref(ChDomain *domain)
{
    if (domain == NULL || atomic_fetch_sub(&((Counted *)domain)->n_refs, 1) > 1)
        return;
    g_array_unref(domain->disks);
    g_array_unref(domain->nics);
    g_ptr_array_unref(domain->host_devices);
    g_array_unref(domain->guest_nics);
    g_string_chunk_free(domain->texts);
    g_free(domain);
}

const ChDomain *
ch_domain_live(const ChDomain *domain)
{
    return domain != NULL && !domain->is_deleted ? domain : NULL;
}

bool
ch_domain_is_alive(const ChDomain *domain)
{
    return ch_domain_live(domain) != NULL && domain->status != CH_DOMAIN_SHUTOFF &&
           domain->status != CH_DOMAIN_CRASHED && domain->status_text[0] != '\0';
}

bool
ch_domain_is_unstarted(const ChDomain *domain)
{
    return ch_domain_live(domain) != NULL && domain->status == CH_DOMAIN_SHUTOFF &&
           domain->reason == CH_REASON_OTHER && g_strcmp0(domain->reason_text, "Unknown") == 0;
}

bool
ch_domain_is_migrated(const ChDomain *domain)
{
    return ch_domain_live(domain) != NULL && domain->status == CH_DOMAIN_SHUTOFF &&
           domain->reason == CH_REASON_MIGRATED;
}

bool
ch_domain_is_migrating(const ChDomain *domain)
{
    if (ch_domain_live(domain) == NULL)
        return false;
    if (domain->migration.start.is_set && !domain->migration.end.is_set)
        return true;
    return domain->status == CH_DOMAIN_PAUSED &&
           (domain->reason == CH_REASON_MIGRATION || domain->reason == CH_REASON_STARTING_UP ||
            domain->reason == CH_REASON_POSTCOPY);
}
