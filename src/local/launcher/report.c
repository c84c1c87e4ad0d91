/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/report.h"

#include <libvirt/virterror.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "local/launcher/domain-stats.h"

#define MAX_VCPUS     4096
#define MAX_HOST_CPUS 4096

#define NO_STATS "empty DomainStats"

/* What was read of a living domain. */
typedef struct {
    xmlDoc *doc; /* (nullable): libvirt may be about to drop the domain */
    ChDomainState state;
} Reading;

static void
reading_clear(Reading *reading)
{
    g_clear_pointer(&reading->doc, xmlFreeDoc);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Reading, reading_clear)

static bool
read_xml(virDomainPtr domain, xmlDoc **out_doc, GError **error)
{
    char *text = virDomainGetXMLDesc(domain, 0);

    if (text == NULL)
        return virGetLastErrorCode() == VIR_ERR_NO_DOMAIN ||
               virGetLastErrorCode() == VIR_ERR_OPERATION_INVALID || ch_virt_fail(error);
    *out_doc = ch_xml_parse(text, error);
    free(text); /* libvirt's, not GLib's */
    return *out_doc != NULL;
}

/* Outcomes as of ch_virt_lookup(): a domain that vanishes while it is read is missing. */
static ChVirtLookup
read_domain(const ChReporter *reporter, Reading *reading, GError **error)
{
    g_autoptr(virDomain) domain = NULL;
    int state = 0;
    int reason = 0;
    const ChVirtLookup lookup =
        ch_virt_lookup(reporter->virt, reporter->domain_name, &domain, error);

    if (lookup != CH_VIRT_LOOKUP_FOUND)
        return lookup;
    if (virDomainGetState(domain, &state, &reason, 0) < 0) {
        if (virGetLastErrorCode() == VIR_ERR_NO_DOMAIN)
            return CH_VIRT_LOOKUP_MISSING;
        ch_virt_fail(error);
        return CH_VIRT_LOOKUP_FAILED;
    }
    reading->state = ch_domain_state(state, reason);
    return read_xml(domain, &reading->doc, error) ? CH_VIRT_LOOKUP_FOUND : CH_VIRT_LOOKUP_FAILED;
}

static const xmlNode *
root_of(xmlDoc *doc)
{
    return doc == NULL ? NULL : xmlDocGetRootElement(doc);
}

char *
ch_report_domain(const ChReporter *reporter, GError **error)
{
    g_auto(Reading) reading = {0};
    const ChVirtLookup lookup = read_domain(reporter, &reading, error);

    if (lookup != CH_VIRT_LOOKUP_FOUND)
        return lookup == CH_VIRT_LOOKUP_MISSING ? g_strdup("") : NULL;
    g_autoptr(ChJson) metadata = ch_metadata_to_json(reporter->metadata);
    g_autoptr(ChJson) interfaces = ch_guest_store_dup(reporter->guest, CH_GUEST_INTERFACES);
    g_autoptr(ChJson) os_info = ch_guest_store_dup(reporter->guest, CH_GUEST_OS);
    const ChDomainView view = {
        .name = reporter->name,
        .namespace_ = reporter->namespace_,
        .xml = root_of(reading.doc),
        .metadata = metadata,
        .state = reading.state,
        .interfaces = interfaces,
        .os_info = os_info,
    };
    g_autoptr(ChJson) json = ch_domain_json_build(&view);
    return ch_json_print(json, NULL);
}

/* A domain that is gone keeps nothing but whose it was. */
static ChJson *
build_bare_metadata(const ChReporter *reporter)
{
    g_autoptr(ChMetadata) bare = ch_metadata_new(NULL, NULL);

    ch_metadata_set_uid(bare, reporter->uid);
    return ch_metadata_to_json(bare);
}

bool
ch_report_event(const ChReporter *reporter, char **out_text, bool *out_is_deleted, GError **error)
{
    g_auto(Reading) reading = {0};
    const ChVirtLookup lookup = read_domain(reporter, &reading, error);
    const bool is_deleted = lookup == CH_VIRT_LOOKUP_MISSING;

    if (lookup == CH_VIRT_LOOKUP_FAILED)
        return false;
    g_autoptr(ChJson) metadata =
        is_deleted ? build_bare_metadata(reporter) : ch_metadata_to_json(reporter->metadata);
    g_autoptr(ChJson) interfaces = ch_guest_store_dup(reporter->guest, CH_GUEST_INTERFACES);
    g_autoptr(ChJson) os_info = ch_guest_store_dup(reporter->guest, CH_GUEST_OS);
    g_autoptr(ChJson) freeze = ch_guest_store_dup(reporter->guest, CH_GUEST_FREEZE);
    const ChDomainView view = {
        .name = reporter->name,
        .namespace_ = reporter->namespace_,
        .uid = reporter->uid,
        .deletion_us = is_deleted ? ch_time_wall_us() : 0,
        .xml = root_of(reading.doc),
        .metadata = metadata,
        .state = is_deleted ? ch_domain_state_non_existent : reading.state,
        .interfaces = interfaces,
        .os_info = os_info,
        .freeze_status = ch_json_as_string(freeze),
    };
    g_autoptr(ChJson) json = ch_domain_json_build(&view);
    *out_text = ch_json_print(json, NULL);
    *out_is_deleted = is_deleted;
    return true;
}

/* [[bool]]: which host CPUs each virtual CPU may use. (nullable) */
static ChJson *
read_cpu_map(virConnectPtr connection, virDomainPtr domain)
{
    const int n_hosts = virNodeGetCPUMap(connection, NULL, NULL, 0);
    const int n_vcpus = virDomainGetVcpusFlags(domain, VIR_DOMAIN_VCPU_MAXIMUM);

    if (n_hosts <= 0 || n_hosts > MAX_HOST_CPUS || n_vcpus <= 0 || n_vcpus > MAX_VCPUS)
        return NULL;
    const int map_bytes = VIR_CPU_MAPLEN(n_hosts);
    g_autofree unsigned char *maps = g_malloc0((gsize)map_bytes * (gsize)n_vcpus);
    const int n_known = virDomainGetVcpuPinInfo(domain, n_vcpus, maps, map_bytes, 0);
    if (n_known < 0)
        return NULL;
    ChJson *list = ch_json_new_array();
    for (int vcpu = 0; vcpu < n_known; vcpu++) {
        ChJson *row = ch_json_new_array();

        for (int host = 0; host < n_hosts; host++)
            ch_json_append(row, ch_json_new_bool(VIR_CPU_USABLE(maps, map_bytes, vcpu, host) != 0));
        ch_json_append(list, row);
    }
    return list;
}

static char *
print_stats(virConnectPtr connection, virDomainPtr domain, const virDomainStatsRecord *record)
{
    char uuid[VIR_UUID_STRING_BUFLEN] = "";
    xmlDoc *parsed = NULL;

    (void)virDomainGetUUIDString(domain, uuid); /* on failure it stays empty */
    (void)read_xml(domain, &parsed, NULL);      /* without it there are no aliases */
    g_autoptr(xmlDoc) doc = parsed;
    g_autoptr(ChJson) cpu_map = read_cpu_map(connection, domain);
    const ChStatsInput input = {
        .name = virDomainGetName(domain),
        .uuid = uuid,
        .params = {record->params, record->nparams},
        .xml = root_of(doc),
        .cpu_map = cpu_map,
    };
    g_autoptr(ChJson) json = ch_domain_stats_build(&input);
    return ch_json_print(json, NULL);
}

/* Without waiting for a domain that is busy: what cannot be had at once is left out. */
static char *
read_stats(virConnectPtr connection, virDomainPtr domain, GError **error)
{
    virDomainPtr domains[] = {domain, NULL};
    virDomainStatsRecordPtr *records = NULL;
    char *text = NULL;
    const int n_records =
        virDomainListGetStats(domains, 0, &records, VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT);

    if (n_records < 0) {
        ch_virt_fail(error);
        g_prefix_error(error, "failed to get domain stats: ");
        return NULL;
    }
    if (n_records > 0)
        text = print_stats(connection, domain, records[0]);
    else
        ch_fail(error, CH_ERROR_NOT_FOUND, NO_STATS);
    virDomainStatsRecordListFree(records);
    return text;
}

char *
ch_report_stats(const ChReporter *reporter, GError **error)
{
    g_autoptr(virConnect) connection = ch_virt_connect(reporter->virt, error);
    g_autoptr(virDomain) domain = NULL;

    if (connection == NULL)
        return NULL;
    const ChVirtLookup lookup =
        ch_virt_lookup(reporter->virt, reporter->domain_name, &domain, error);
    if (lookup == CH_VIRT_LOOKUP_FOUND && virDomainIsActive(domain) == 1)
        return read_stats(connection, domain, error);
    if (lookup != CH_VIRT_LOOKUP_FAILED)
        ch_fail(error, CH_ERROR_NOT_FOUND, NO_STATS);
    return NULL;
}

char *
ch_report_qemu_version(const ChReporter *reporter, GError **error)
{
    g_autoptr(virConnect) connection = ch_virt_connect(reporter->virt, error);
    unsigned long version = 0;

    if (connection == NULL)
        return NULL;
    if (virConnectGetVersion(connection, &version) < 0) {
        ch_virt_fail(error);
        return NULL;
    }
    return g_strdup_printf(
        "QEMU %lu.%lu.%lu", version / 1000000, version / 1000 % 1000, version % 1000);
}
