/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/memory-lock.h"

#include <string.h>

#define MI (INT64_C(1) << 20)
#define GI (INT64_C(1) << 30)

/* Text with single quotes for double ones. */
static ChJson *
vmi_of(const char *domain, const char *more)
{
    g_autofree char *text = g_strdup_printf("{'spec':{'domain':%s%s}}", domain, more);
    g_autoptr(GError) error = NULL;
    ChJson *vmi = ch_json_parse(g_strdelimit(text, "'", '"'), -1, &error);

    g_assert_no_error(error);
    return vmi;
}

#define REQUEST "'resources':{'requests':{'memory':'1Gi'}}"
#define PLAIN   "{" REQUEST "}"

/* What a plain VM of 1Gi and one CPU has. */
#define BASE (2 * MI + 268 * MI)

static const struct OverheadCase {
    const char *path, *domain, *more, *ratio;
    int64_t bytes;
} overheads[] = {
    {"/memory-lock/overhead/base", PLAIN, "", NULL, BASE}, /* spec:05-16.9#160 */
    /* spec:05-16.9#161 */
    {"/memory-lock/overhead/cpus",
     "{'cpu':{'cores':2,'sockets':2,'threads':2}," REQUEST "}",
     "",
     NULL,
     BASE + 56 * MI},
    {"/memory-lock/overhead/zero-is-left-out",
     "{'cpu':{'cores':2,'sockets':0}," REQUEST "}",
     "",
     NULL,
     BASE + 8 * MI},
    {"/memory-lock/overhead/no-topology", "{'cpu':{}," REQUEST "}", "", NULL, BASE},
    /* spec:05-16.9#162 */
    {"/memory-lock/overhead/cpu-limits",
     "{'resources':{'requests':{'memory':'1Gi','cpu':'3'},'limits':{'cpu':'5'}}}",
     "",
     NULL,
     BASE + 32 * MI},
    {"/memory-lock/overhead/cpu-requests",
     "{'resources':{'requests':{'memory':'1Gi','cpu':3}}}",
     "",
     NULL,
     BASE + 16 * MI},
    {"/memory-lock/overhead/cpu-part",
     "{'resources':{'requests':{'memory':'1Gi','cpu':'2500m'}}}",
     "",
     NULL,
     BASE + 16 * MI},
    /* spec:05-16.9#163 */
    {"/memory-lock/overhead/no-graphics",
     "{'devices':{'autoattachGraphicsDevice':false}," REQUEST "}",
     "",
     NULL,
     BASE - 32 * MI},
    /* spec:05-16.9#164 */
    {"/memory-lock/overhead/arm64", PLAIN, ",'architecture':'arm64'", NULL, BASE + 128 * MI},
    {"/memory-lock/overhead/amd64", PLAIN, ",'architecture':'amd64'", NULL, BASE},
    /* spec:05-16.9#165 */
    {"/memory-lock/overhead/host-device",
     "{'devices':{'hostDevices':[{'name':'a'}]}," REQUEST "}",
     "",
     NULL,
     BASE + GI},
    {"/memory-lock/overhead/gpus",
     "{'devices':{'gpus':[{'name':'a'},{'name':'b'}]}," REQUEST "}",
     "",
     NULL,
     BASE + GI},
    {"/memory-lock/overhead/sriov",
     "{'devices':{'interfaces':[{'name':'a','sriov':{}},{'name':'b','bridge':{}}]}," REQUEST "}",
     "",
     NULL,
     BASE + GI},
    /* spec:05-16.9#166 */
    {"/memory-lock/overhead/downward-metrics",
     PLAIN,
     ",'volumes':[{'name':'a','emptyDisk':{}},{'name':'b','downwardMetrics':{}}]",
     NULL,
     BASE + MI},
    /* spec:05-16.9#167 */
    {"/memory-lock/overhead/liveness",
     PLAIN,
     ",'livenessProbe':{'exec':{}}",
     NULL,
     BASE + 110 * MI},
    {"/memory-lock/overhead/readiness",
     PLAIN,
     ",'readinessProbe':{'exec':{}}",
     NULL,
     BASE + 110 * MI},
    {"/memory-lock/overhead/both-probes",
     PLAIN,
     ",'readinessProbe':{'exec':{}},'livenessProbe':{'exec':{}}",
     NULL,
     BASE + 120 * MI},
    {"/memory-lock/overhead/other-probe", PLAIN, ",'livenessProbe':{'tcpSocket':{}}", NULL, BASE},
    /* spec:05-16.9#168 */
    {"/memory-lock/overhead/sev",
     "{'launchSecurity':{'sev':{}}," REQUEST "}",
     "",
     NULL,
     BASE + 256 * MI},
    {"/memory-lock/overhead/snp",
     "{'launchSecurity':{'snp':{}}," REQUEST "}",
     "",
     NULL,
     BASE + 256 * MI},
    /* spec:05-16.9#169 */
    {"/memory-lock/overhead/tpm", "{'devices':{'tpm':{}}," REQUEST "}", "", NULL, BASE + 53 * MI},
    {"/memory-lock/overhead/tpm-off",
     "{'devices':{'tpm':{'enabled':false}}," REQUEST "}",
     "",
     NULL,
     BASE},
    /* spec:05-16.9#170: 283115520 bytes are 283116 thousand; 2.2 of these */
    {"/memory-lock/overhead/ratio", PLAIN, "", "3.2", BASE + INT64_C(622855000)},
    {"/memory-lock/overhead/ratio-is-no-number", PLAIN, "", "no_float", BASE},
    {"/memory-lock/overhead/ratio-with-more", PLAIN, "", "2.0x", BASE},
    {"/memory-lock/overhead/ratio-empty", PLAIN, "", "", BASE},
    {"/memory-lock/overhead/ratio-one", PLAIN, "", "1.0", BASE},
    {"/memory-lock/overhead/ratio-infinite", PLAIN, "", "inf", BASE},
    /* spec:05-16.9#171 */
    {"/memory-lock/overhead/dedicated",
     "{'cpu':{'dedicatedCpuPlacement':true}," REQUEST "}",
     "",
     NULL,
     BASE + 100 * MI},
    {"/memory-lock/overhead/guaranteed",
     "{'resources':{'requests':{'memory':'1Gi','cpu':1},'limits':{'memory':'1024Mi','cpu':'1'}}}",
     "",
     NULL,
     BASE + 100 * MI},
    {"/memory-lock/overhead/not-guaranteed",
     "{'resources':{'requests':{'memory':'1Gi','cpu':1},'limits':{'memory':'2Gi','cpu':'1'}}}",
     "",
     NULL,
     BASE},
    /* spec:05-16.9#172 */
    {"/memory-lock/overhead/reserved",
     "{'memory':{'reservedOverhead':{'addedOverhead':'100G'}}," REQUEST "}",
     "",
     NULL,
     BASE + INT64_C(100000000000)},
    {"/memory-lock/overhead/reserved-none",
     "{'memory':{'reservedOverhead':{'addedOverhead':'0'}}," REQUEST "}",
     "",
     NULL,
     BASE},
    {"/memory-lock/overhead/nothing-at-all", "{}", "", NULL, 268 * MI},
};

/* spec:05-16.9#173: whatever the ratio, the document stays. */
static void
test_overhead(gconstpointer data)
{
    const struct OverheadCase *c = data;
    const ChMemoryLockOptions options = {c->ratio, false, false};
    g_autoptr(ChJson) vmi = vmi_of(c->domain, c->more);
    g_autoptr(ChJson) before = ch_json_dup(vmi);

    g_assert_cmpint(ch_memory_lock_overhead(vmi, &options), ==, c->bytes);
    g_assert_true(ch_json_equal(vmi, before));
}

static void
test_node_architecture(void)
{
    const ChMemoryLockOptions options = {NULL, true, false};
    g_autoptr(ChJson) vmi = vmi_of(PLAIN, "");

    g_assert_cmpint(ch_memory_lock_overhead(vmi, &options), ==, BASE + 128 * MI);
}

/* 05 §13.1: with that hypervisor whatever the VMI says. */
static void
test_node_architecture_of_mshv(void)
{
    const ChMemoryLockOptions amd64 = {NULL, false, true};
    const ChMemoryLockOptions arm64 = {NULL, true, true};
    g_autoptr(ChJson) vmi = vmi_of(PLAIN, ",'architecture':'arm64'");
    g_autoptr(ChJson) other = vmi_of(PLAIN, ",'architecture':'amd64'");

    g_assert_cmpint(ch_memory_lock_overhead(vmi, &amd64), ==, BASE);
    g_assert_cmpint(ch_memory_lock_overhead(other, &arm64), ==, BASE + 128 * MI);
}

#define DEVICES(devices) "{'devices':{" devices "}," REQUEST "}"
#define GUEST            INT64_C(1073742000) /* 1Gi, in thousands */

static const struct SizeCase {
    const char *path, *domain;
    bool is_needed;
    int64_t bytes;
} sizes[] = {
    /* spec:05-16.9#174 */
    {"/memory-lock/size/gpu", DEVICES("'gpus':[{}]"), true, INT64_C(2430599344)},
    {"/memory-lock/size/two-gpus", DEVICES("'gpus':[{},{}]"), true, INT64_C(2430599344) + GUEST},
    {"/memory-lock/size/three-gpus",
     DEVICES("'gpus':[{},{},{}]"),
     true,
     INT64_C(2430599344) + 2 * GUEST},
    {"/memory-lock/size/two-host-devices",
     DEVICES("'hostDevices':[{},{}]"),
     true,
     INT64_C(2430599344) + GUEST},
    {"/memory-lock/size/gpu-and-host-device",
     DEVICES("'gpus':[{}],'hostDevices':[{}]"),
     true,
     INT64_C(2430599344) + GUEST},
    {"/memory-lock/size/two-sriov",
     DEVICES("'interfaces':[{'sriov':{}},{'sriov':{}}]"),
     true,
     INT64_C(2430599344) + GUEST},
    {"/memory-lock/size/plain", PLAIN, false, BASE + GUEST},
    {"/memory-lock/size/realtime", "{'cpu':{'realtime':{}}," REQUEST "}", true, BASE + GUEST},
    {"/memory-lock/size/required",
     "{'memory':{'reservedOverhead':{'memLock':'Required'}}," REQUEST "}",
     true,
     BASE + GUEST},
    {"/memory-lock/size/not-required",
     "{'memory':{'reservedOverhead':{'memLock':'NotRequired'}}," REQUEST "}",
     false,
     BASE + GUEST},
    {"/memory-lock/size/sev",
     "{'launchSecurity':{'sev':{}}," REQUEST "}",
     true,
     BASE + 256 * MI + GUEST},
    {"/memory-lock/size/max-guest",
     "{'memory':{'maxGuest':'2G','guest':'1G'}," REQUEST "}",
     false,
     BASE + INT64_C(2000000000)},
    {"/memory-lock/size/guest-only",
     "{'memory':{'guest':'1G'}}",
     false,
     268 * MI + INT64_C(1000000000)},
    {"/memory-lock/size/zero-request",
     "{'memory':{'guest':'1G'},'resources':{'requests':{'memory':'0'}}}",
     false,
     268 * MI + INT64_C(1000000000)},
    {"/memory-lock/size/no-quantity", "{'memory':{'guest':'lots'}}", false, 268 * MI},
};

static void
test_size(gconstpointer data)
{
    const struct SizeCase *c = data;
    const ChMemoryLockOptions options = {NULL, false, false};
    g_autoptr(ChJson) vmi = vmi_of(c->domain, "");

    g_assert_cmpint(ch_memory_lock_is_needed(vmi, &options), ==, c->is_needed);
    g_assert_cmpint(ch_memory_lock_size(vmi, &options), ==, c->bytes);
}

/* spec:05-16.9#172, spec:05-16.9#174: the other hypervisor knows less. */
static void
test_mshv(void)
{
    const ChMemoryLockOptions options = {NULL, false, true};
    g_autoptr(ChJson) two = vmi_of(DEVICES("'gpus':[{},{}]"), "");
    g_autoptr(ChJson) reserved = vmi_of(
        "{'memory':{'reservedOverhead':{'addedOverhead':'1G','memLock':'Required'}}," REQUEST "}",
        "");

    g_assert_true(ch_memory_lock_is_needed(two, &options));
    g_assert_cmpint(ch_memory_lock_size(two, &options), ==, INT64_C(2430599344));
    g_assert_false(ch_memory_lock_is_needed(reserved, &options));
    g_assert_cmpint(ch_memory_lock_overhead(reserved, &options), ==, BASE);
}

/* spec:05-16.9#182: a VM that runs elsewhere still, and is to arrive here. */
static void
test_whose_it_is(void)
{
    static const struct {
        const char *status;
        bool is_qemus;
    } states[] = {
        {"'phase':'Running'", true},
        {"'phase':'Running','migrationState':{}", false},
        {"'phase':'Running','migrationState':{'targetNodeDomainDetected':false}", false},
        {"'phase':'Running','migrationState':{'targetNodeDomainDetected':true}", true},
        {"'phase':'Scheduled'", false},
        {"'phase':'Scheduled','migrationState':{'targetNodeDomainDetected':true}", false},
        {"'phase':1", false},
        {"", false},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(states); i++) {
        g_autofree char *text = g_strdup_printf("{'spec':{},'status':{%s}}", states[i].status);
        g_autoptr(ChJson) vmi = ch_json_parse(g_strdelimit(text, "'", '"'), -1, NULL);

        g_assert_cmpint(ch_memory_lock_is_qemus(vmi), ==, states[i].is_qemus);
    }
}

/* What the source's controller computed for the target. */
static void
test_told_overhead(void)
{
    const ChMemoryLockOptions options = {NULL, false, false};
    g_autoptr(ChJson) vmi = vmi_of(DEVICES("'gpus':[{}]"), "");
    ChJson *state = ch_json_ensure_object(ch_json_ensure_object(vmi, "status"), "migrationState");

    ch_json_set_string(state, "targetMemoryOverhead", "1M");
    g_assert_cmpint(ch_memory_lock_size(vmi, &options), ==, INT64_C(1000000) + GUEST);
}

/* Sizes beyond any machine: no overflow. */
static void
test_huge(void)
{
    const ChMemoryLockOptions options = {"1e300", false, false};
    g_autoptr(ChJson) vmi =
        vmi_of("{'memory':{'maxGuest':'9E'},'cpu':{'cores':4294967295,'sockets':"
               "4294967295,'threads':4294967295},'devices':{'gpus':[{},{}]}}",
               "");

    g_assert_cmpint(ch_memory_lock_size(vmi, &options), >, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(overheads); i++)
        g_test_add_data_func(overheads[i].path, &overheads[i], test_overhead);
    g_test_add_func("/memory-lock/node-architecture", test_node_architecture);
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++)
        g_test_add_data_func(sizes[i].path, &sizes[i], test_size);
    g_test_add_func("/memory-lock/told-overhead", test_told_overhead);
    g_test_add_func("/memory-lock/node-architecture-of-mshv", test_node_architecture_of_mshv);
    g_test_add_func("/memory-lock/mshv", test_mshv);
    g_test_add_func("/memory-lock/whose-it-is", test_whose_it_is);
    g_test_add_func("/memory-lock/huge", test_huge);
    return g_test_run();
}
