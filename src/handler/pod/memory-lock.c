/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/memory-lock.h"

#include <math.h>

#include "lib/base/quantity.h"

#define MI (INT64_C(1) << 20)
#define GI (INT64_C(1) << 30)

/* The most that is counted with; beyond it no machine has memory. */
#define MAX_BYTES (INT64_C(1) << 60)

#define domain_at(vmi, ...) ch_json_at(vmi, "spec", "domain", __VA_ARGS__)

/* A quantity is a text, or a number in the document; 0 for what is none, and below 0. */
static bool
read_quantity(const ChJson *json, ChQuantity *out_quantity)
{
    const char *text = ch_json_as_string(json);
    g_autofree char *printed = NULL;

    if (text == NULL && ch_json_is_number(json))
        text = printed = ch_json_print(json, NULL);
    return text != NULL && ch_quantity_parse(text, out_quantity, NULL) && out_quantity->nano > 0;
}

static int64_t
units_at(const ChJson *json)
{
    ChQuantity quantity;

    return read_quantity(json, &quantity) ? MIN(ch_quantity_units(&quantity), MAX_BYTES) : 0;
}

/* As the original adds quantities: in thousands of bytes, rounded up. */
static int64_t
round_to_kilo(int64_t bytes)
{
    return (bytes + 999) / 1000 * 1000;
}

static int64_t
count_devices(const ChJson *vmi)
{
    const ChJson *interfaces = domain_at(vmi, "devices", "interfaces");
    gsize n = ch_json_length(domain_at(vmi, "devices", "gpus")) +
              ch_json_length(domain_at(vmi, "devices", "hostDevices"));

    for (gsize i = 0; i < ch_json_length(interfaces); i++)
        n += ch_json_at(ch_json_item(interfaces, i), "sriov") != NULL;
    return (int64_t)n;
}

static bool
is_confidential(const ChJson *vmi)
{
    return domain_at(vmi, "launchSecurity", "sev") != NULL ||
           domain_at(vmi, "launchSecurity", "snp") != NULL;
}

bool
ch_memory_lock_is_needed(const ChJson *vmi, const ChMemoryLockOptions *options)
{
    return count_devices(vmi) > 0 || domain_at(vmi, "cpu", "realtime") != NULL ||
           is_confidential(vmi) ||
           (!options->is_mshv &&
            g_strcmp0(
                ch_json_string_at(vmi, "spec", "domain", "memory", "reservedOverhead", "memLock"),
                "Required") == 0);
}

/* Those that the guest sees: of the topology, else of what the VM is given. */
static int64_t
count_cpus(const ChJson *vmi)
{
    static const char *const parts[] = {"cores", "sockets", "threads"};
    const ChJson *cpu = domain_at(vmi, "cpu");
    int64_t n = 1;

    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        int64_t value = 0;

        if (ch_json_int_at(cpu, &value, parts[i]) && value > 0)
            n *= CLAMP(value, 1, 65536 / MIN(n, 65536));
    }
    if (cpu != NULL)
        return n;
    n = units_at(domain_at(vmi, "resources", "limits", "cpu"));
    if (n == 0)
        n = units_at(domain_at(vmi, "resources", "requests", "cpu"));
    return CLAMP(n, 1, 65536);
}

static bool
is_same_quantity(const ChJson *resources, const char *name)
{
    ChQuantity request, limit;

    return read_quantity(ch_json_at(resources, "requests", name), &request) &&
           read_quantity(ch_json_at(resources, "limits", name), &limit) &&
           ch_quantity_compare(&request, &limit) == 0;
}

static bool
has_cpus_of_its_own(const ChJson *vmi)
{
    const ChJson *resources = domain_at(vmi, "resources");

    return ch_json_bool_at(vmi, false, "spec", "domain", "cpu", "dedicatedCpuPlacement") ||
           (is_same_quantity(resources, "memory") && is_same_quantity(resources, "cpu"));
}

static bool
has_downward_metrics(const ChJson *vmi)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++)
        if (ch_json_at(ch_json_item(volumes, i), "downwardMetrics") != NULL)
            return true;
    return false;
}

static int64_t
probe_bytes(const ChJson *vmi)
{
    const int n = (ch_json_at(vmi, "spec", "livenessProbe", "exec") != NULL) +
                  (ch_json_at(vmi, "spec", "readinessProbe", "exec") != NULL);

    return n * 10 * MI + (n > 0 ? 100 * MI : 0);
}

static bool
is_arm64(const ChJson *vmi, const ChMemoryLockOptions *options)
{
    const char *architecture = ch_json_string_at(vmi, "spec", "architecture");

    return !options->is_mshv && architecture != NULL && architecture[0] != '\0'
               ? g_str_equal(architecture, "arm64")
               : options->is_arm64;
}

static bool
has_tpm(const ChJson *vmi)
{
    const ChJson *tpm = domain_at(vmi, "devices", "tpm");

    return tpm != NULL && ch_json_bool_at(tpm, true, "enabled");
}

/* What the cluster adds to each VM's overhead. */
static int64_t
scale(int64_t bytes, const char *ratio)
{
    const int64_t kilo = round_to_kilo(bytes) / 1000;
    char *end = NULL;
    const double factor = ratio != NULL ? g_ascii_strtod(ratio, &end) : 1.0;

    if (ratio == NULL || end == ratio || *end != '\0' || !isfinite(factor))
        return bytes;
    return bytes + (int64_t)CLAMP((double)kilo * (factor - 1.0), -1e15, 1e15) * 1000;
}

int64_t
ch_memory_lock_overhead(const ChJson *vmi, const ChMemoryLockOptions *options)
{
    const ChJson *devices = domain_at(vmi, "devices");
    int64_t bytes =
        round_to_kilo(units_at(domain_at(vmi, "resources", "requests", "memory"))) / 512;

    bytes += (25 + 100 + 25 + 40 + 30) * MI; /* the programs of the pod */
    bytes += 8 * MI * count_cpus(vmi) + 8 * MI;
    bytes += ch_json_bool_at(devices, true, "autoattachGraphicsDevice") ? 32 * MI : 0;
    bytes += is_arm64(vmi, options) ? 128 * MI : 0; /* firmware in flash */
    bytes += count_devices(vmi) > 0 ? GI : 0;       /* their registers */
    bytes += has_downward_metrics(vmi) ? MI : 0;
    bytes += probe_bytes(vmi);
    bytes += is_confidential(vmi) ? 256 * MI : 0;
    bytes += has_tpm(vmi) ? 53 * MI : 0;
    bytes += has_cpus_of_its_own(vmi) ? 100 * MI : 0;
    if (!options->is_mshv)
        bytes += units_at(domain_at(vmi, "memory", "reservedOverhead", "addedOverhead"));
    return scale(bytes, options->ratio);
}

bool
ch_memory_lock_is_qemus(const ChJson *vmi)
{
    const ChJson *migration = ch_json_at(vmi, "status", "migrationState");

    return g_strcmp0(ch_json_string_at(vmi, "status", "phase"), "Running") == 0 &&
           (migration == NULL || ch_json_bool_at(migration, false, "targetNodeDomainDetected"));
}

static int64_t
guest_bytes(const ChJson *vmi)
{
    const ChJson *const places[] = {
        domain_at(vmi, "memory", "maxGuest"),
        domain_at(vmi, "resources", "requests", "memory"),
        domain_at(vmi, "memory", "guest"),
    };
    int64_t bytes = 0;

    for (gsize i = 0; i < G_N_ELEMENTS(places) && bytes == 0; i++)
        bytes = units_at(places[i]);
    return round_to_kilo(bytes);
}

int64_t
ch_memory_lock_size(const ChJson *vmi, const ChMemoryLockOptions *options)
{
    const ChJson *told = ch_json_at(vmi, "status", "migrationState", "targetMemoryOverhead");
    const int64_t guest = guest_bytes(vmi);
    const int64_t n_devices = options->is_mshv ? 1 : MIN(count_devices(vmi), 1000);
    int64_t bytes =
        told != NULL ? round_to_kilo(units_at(told)) : ch_memory_lock_overhead(vmi, options);

    bytes += guest;
    if (n_devices > 1 &&
        __builtin_add_overflow(bytes, MIN(guest, MAX_BYTES / 1000) * (n_devices - 1), &bytes))
        bytes = INT64_MAX;
    return bytes;
}
