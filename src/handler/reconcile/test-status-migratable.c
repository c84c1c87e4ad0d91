/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/test-support.h"

#define RUNNING "{'Status':{'Status':'Running'}}"
#define NOT_SHARED                                                                                 \
    "live migration requires that all PVCs must be shared (using ReadWriteMany access mode)"

#define PVC(name)         "{'name':'" name "','persistentVolumeClaim':{'claimName':'" name "-claim'}}"
#define EPHEMERAL         "{'name':'eph','ephemeral':{}}"
#define HOST_DISK(shared) "{'name':'hd','hostDisk':{'path':'/x','shared':" shared "}}"
#define CLAIM(name, mode)                                                                          \
    "{'name':'" name "','persistentVolumeClaimInfo':{'claimName':'" name                           \
    "-claim','accessModes':['" mode "']}}"
#define POD_NETWORK        "'networks':[{'name':'default','pod':{}}]"
#define DEVICES(devices)   "'domain':{'devices':{" devices "}}"
#define FEATURES(features) "'domain':{'features':{" features "}}"

typedef enum { LIVE, BLOCK } Method;

/* NULL reason: the condition is True. */
static const struct MigratableCase {
    const char *path;
    const char *spec, *status;
    const char *reason, *message;
    Method method;
    const char *storage_message; /* NULL: True */
} cases[] = {
    /* clang-format off */
    /* spec:02-14.7#1 spec:01#45 */
    {"/migratable/01-ephemeral-is-copied", "'volumes':[" EPHEMERAL "]", "", NULL, NULL, BLOCK, NULL},
    /* spec:02-14.7#2 */
    {"/migratable/02-shared-claim", "'volumes':[" PVC("a") "]", "'volumeStatus':[" CLAIM("a", "ReadWriteMany") "]", NULL, NULL, LIVE, NULL},
    /* spec:02-14.7#3 */
    {"/migratable/03-unshared-claim", "'volumes':[" PVC("a") "]", "'volumeStatus':[" CLAIM("a", "ReadWriteOnce") "]",
     "DisksNotLiveMigratable", "cannot migrate VMI: PVC a-claim is not shared, " NOT_SHARED, BLOCK, NULL},
    {"/migratable/claim-without-info", "'volumes':[" PVC("a") "]", "",
     "DisksNotLiveMigratable", "cannot migrate VMI: Unable to determine if PVC a-claim is shared, " NOT_SHARED, BLOCK, NULL},
    {"/migratable/unshared-but-migrated-itself", "'volumes':[" PVC("a") "]",
     "'volumeStatus':[" CLAIM("a", "ReadWriteOnce") "],'migratedVolumes':[{'volumeName':'a'}]", NULL, NULL, BLOCK, NULL},
    /* spec:02-14.7#4 */
    {"/migratable/04-unshared-data-volume", "'volumes':[{'name':'a','dataVolume':{'name':'dv'}}]", "'volumeStatus':[" CLAIM("a", "ReadWriteOnce") "]",
     "DisksNotLiveMigratable", "cannot migrate VMI: PVC dv is not shared, " NOT_SHARED, BLOCK, NULL},
    /* spec:02-14.7#5 */
    {"/migratable/05-shared-then-ephemeral", "'volumes':[" PVC("a") "," EPHEMERAL "]", "'volumeStatus':[" CLAIM("a", "ReadWriteMany") "]", NULL, NULL, BLOCK, NULL},
    /* spec:02-14.7#6 */
    {"/migratable/06-ephemeral-then-shared", "'volumes':[" EPHEMERAL "," PVC("a") "]", "'volumeStatus':[" CLAIM("a", "ReadWriteMany") "]", NULL, NULL, BLOCK, NULL},
    /* spec:02-14.7#7 */
    {"/migratable/07-shared-host-disk", "'volumes':[" HOST_DISK("true") "]", "", NULL, NULL, LIVE, NULL},
    /* spec:02-14.7#8 */
    {"/migratable/08-unshared-host-disk", "'volumes':[" HOST_DISK("true") "," HOST_DISK("false") "]", "",
     "DisksNotLiveMigratable", "cannot migrate VMI with non-shared HostDisk", BLOCK, NULL},
    {"/migratable/host-disk-of-a-claim", "'volumes':[" HOST_DISK("true") "]", "'volumeStatus':[" CLAIM("hd", "ReadWriteOnce") "]",
     "DisksNotLiveMigratable", "cannot migrate VMI: PVC hd-claim is not shared, " NOT_SHARED, BLOCK, NULL},
    /* spec:02-14.7#9 */
    {"/migratable/09-host-model-known", "'domain':{'cpu':{'model':'host-model'}}", "", NULL, NULL, LIVE, NULL},
    /* spec:02-14.7#11 */
    {"/migratable/11-virtiofs-device", DEVICES("'filesystems':[{'name':'f','virtiofs':{}}]"), "", NULL, NULL, LIVE, NULL},
    /* spec:02-14.7#12 */
    {"/migratable/12-virtiofs-claim-of-one-node", DEVICES("'filesystems':[{'name':'a','virtiofs':{}}]") ",'volumes':[" PVC("a") "]", "'volumeStatus':[" CLAIM("a", "ReadWriteOnce") "]",
     "DisksNotLiveMigratable", "cannot migrate VMI: PVC a-claim is not shared, " NOT_SHARED, BLOCK, NULL},
    /* spec:02-14.7#12 */
    {"/migratable/12-virtiofs-data-volume-of-one-node", DEVICES("'filesystems':[{'name':'a','virtiofs':{}}]") ",'volumes':[{'name':'a','dataVolume':{'name':'dv'}}]", "'volumeStatus':[" CLAIM("a", "ReadWriteOnce") "]",
     "DisksNotLiveMigratable", "cannot migrate VMI: PVC dv is not shared, " NOT_SHARED, BLOCK, NULL},
    /* spec:02-14.7#12 */
    {"/migratable/12-virtiofs-shared", DEVICES("'filesystems':[{'name':'a','virtiofs':{}}]") ",'volumes':[" PVC("a") "]", "'volumeStatus':[" CLAIM("a", "ReadWriteMany") "]", NULL, NULL, LIVE, NULL},
    /* spec:02-14.7#12 */
    {"/migratable/12-virtiofs-unshared", DEVICES("'filesystems':[{'name':'a','virtiofs':{}}]") ",'volumes':[" PVC("a") "]", "'volumeStatus':[" CLAIM("a", "ReadOnlyMany") "]",
     "DisksNotLiveMigratable", "cannot migrate VMI: PVC a-claim is not shared, " NOT_SHARED, BLOCK, NULL},
    /* spec:02-14.7#13 */
    {"/migratable/13-virtiofs-configMap", DEVICES("'filesystems':[{'name':'c','virtiofs':{}}]") ",'volumes':[{'name':'c','configMap':{}}]", "", NULL, NULL, LIVE, NULL},
    /* spec:02-14.7#13 */
    {"/migratable/13-virtiofs-secret", DEVICES("'filesystems':[{'name':'c','virtiofs':{}}]") ",'volumes':[{'name':'c','secret':{}}]", "", NULL, NULL, LIVE, NULL},
    /* spec:02-14.7#13 */
    {"/migratable/13-virtiofs-serviceAccount", DEVICES("'filesystems':[{'name':'c','virtiofs':{}}]") ",'volumes':[{'name':'c','serviceAccount':{}}]", "", NULL, NULL, LIVE, NULL},
    /* spec:02-14.7#13 */
    {"/migratable/13-virtiofs-downwardAPI", DEVICES("'filesystems':[{'name':'c','virtiofs':{}}]") ",'volumes':[{'name':'c','downwardAPI':{}}]", "", NULL, NULL, LIVE, NULL},
    /* spec:02-14.7#15 spec:02-14.7#17 */
    {"/migratable/15-host-device", DEVICES("'hostDevices':[{'name':'h'}]"), "",
     "HostDeviceNotLiveMigratable", "VMI specifies non-migratable generic PCI host device", LIVE,
     "HostDeviceNotLiveMigratable: VMI specifies non-migratable generic PCI host device"},
    /* spec:02-14.7#16 */
    {"/migratable/16-vgpu-without-gate", DEVICES("'gpus':[{'name':'g','deviceName':'mdev'}]"), "",
     "HostDeviceNotLiveMigratable", "VMI specifies a GPU but feature gate VGPULiveMigration is not enabled", LIVE,
     "HostDeviceNotLiveMigratable: VMI specifies a GPU but feature gate VGPULiveMigration is not enabled"},
    /* spec:02-14.7#19 */
    {"/migratable/19-two-gpus", DEVICES("'gpus':[{'name':'g'},{'name':'h'}]"), "",
     "HostDeviceNotLiveMigratable", "VMI specifies too many GPUs", LIVE, "HostDeviceNotLiveMigratable: VMI specifies too many GPUs"},
    /* spec:02-14.7#20 */
    {"/migratable/20-sev", "'domain':{'launchSecurity':{'sev':{}}}", "", "SEVNotLiveMigratable", "VMI uses SEV", LIVE, "SEVNotLiveMigratable: VMI uses SEV"},
    {"/migratable/20-snp", "'domain':{'launchSecurity':{'snp':{}}}", "", "SEVNotLiveMigratable", "VMI uses SEV", LIVE, "SEVNotLiveMigratable: VMI uses SEV"},
    /* spec:02-14.7#21 */
    {"/migratable/21-secure-execution", "'architecture':'s390x','domain':{'launchSecurity':{}}", "",
     "SecureExecutionNotLiveMigratable", "VMI uses Secure Execution", LIVE, NULL},
    /* spec:02-14.7#22 */
    {"/migratable/22-tdx", "'domain':{'launchSecurity':{'tdx':{}}}", "", "TDXNotLiveMigratable", "VMI uses TDX", LIVE, "TDXNotLiveMigratable: VMI uses TDX"},
    /* spec:02-14.7#23 spec:02-14.7#24 */
    {"/migratable/23-24-reservation", DEVICES("'disks':[{'name':'d','lun':{'reservation':true}}]"), "", NULL, NULL, LIVE,
     "PersistentReservationNotLiveMigratable: VMI uses SCSI persistent reservation"},
    /* spec:02-14.7#25 spec:04-23.8#4b */
    {"/migratable/14-bridge-on-the-pod-network", POD_NETWORK "," DEVICES("'interfaces':[{'name':'default','bridge':{}}]"), "",
     "InterfaceNotLiveMigratable", "cannot migrate VMI which does not use masquerade or a migratable plugin to connect to the pod network", LIVE,
     "InterfaceNotLiveMigratable: cannot migrate VMI which does not use masquerade or a migratable plugin to connect to the pod network"},
    /* spec:02-14.7#25 spec:04-23.8#4a */
    {"/migratable/25-masquerade", POD_NETWORK "," DEVICES("'interfaces':[{'name':'default','masquerade':{}}]"), "", NULL, NULL, LIVE, NULL},
    /* spec:02-14.7#25 spec:04-23.8#4c */
    {"/migratable/25-bridge-on-multus", "'networks':[{'name':'m','multus':{}}]," DEVICES("'interfaces':[{'name':'m','bridge':{}}]"), "", NULL, NULL, LIVE, NULL},
    {"/migratable/no-primary-interface", POD_NETWORK "," DEVICES("'interfaces':[{'name':'other','masquerade':{}}]"), "",
     "InterfaceNotLiveMigratable", "no primary interface found for network default", LIVE, "InterfaceNotLiveMigratable: no primary interface found for network default"},
    /* spec:02-14.7#26 */
    {"/migratable/26-cdrom-readonly-unset", DEVICES("'disks':[{'name':'c','cdrom':{}}]") ",'volumes':[{'name':'c','containerDisk':{}}]", "", NULL, NULL, LIVE, NULL},
    /* spec:02-14.7#26 */
    {"/migratable/26-cdrom-writable", DEVICES("'disks':[{'name':'c','cdrom':{'readonly':false}}]") ",'volumes':[{'name':'c','containerDisk':{}}]", "", NULL, NULL, BLOCK, NULL},
    /* spec:02-14.7#27 */
    {"/migratable/27-reenlightenment", FEATURES("'hyperv':{'reenlightenment':{'enabled':true}}"), "",
     "NoTSCFrequencyNotLiveMigratable", "HyperV Reenlightenment VMIs cannot migrate when TSC Frequency is not exposed on the cluster: guest timers might be inconsistent", LIVE,
     "NoTSCFrequencyNotLiveMigratable: HyperV Reenlightenment VMIs cannot migrate when TSC Frequency is not exposed on the cluster: guest timers might be inconsistent"},
    /* spec:02-14.7#28 */
    {"/migratable/28-passthrough", FEATURES("'hypervPassthrough':{'enabled':true}"), "",
     "HypervPassthroughNotLiveMigratable", "VMI uses hyperv passthrough", LIVE, "HypervPassthroughNotLiveMigratable: VMI uses hyperv passthrough"},
    {"/migratable/passthrough-that-is-null", FEATURES("'hypervPassthrough':{'enabled':null}"), "", NULL, NULL, LIVE, NULL},
    {"/migratable/claim-without-name", "'volumes':[{'name':'a','persistentVolumeClaim':{}}]", "",
     "DisksNotLiveMigratable", "cannot migrate VMI: Unable to determine if PVC  is shared, " NOT_SHARED, BLOCK, NULL},
    /* spec:04-23.8#4b */
    {"/migratable/unknown-plugin", POD_NETWORK "," DEVICES("'interfaces':[{'name':'default','binding':{'name':'plug'}}]"), "",
     "InterfaceNotLiveMigratable", "cannot migrate VMI which does not use masquerade or a migratable plugin to connect to the pod network", LIVE,
     "InterfaceNotLiveMigratable: cannot migrate VMI which does not use masquerade or a migratable plugin to connect to the pod network"},
    /* spec:04-23.8#4a */
    {"/migratable/passt", POD_NETWORK "," DEVICES("'interfaces':[{'name':'default','passtBinding':{}}]"), "", NULL, NULL, LIVE, NULL},
    {"/migratable/27-frequency-is-known", FEATURES("'hyperv':{'reenlightenment':{'enabled':true}}"), "'topologyHints':{'tscFrequency':2100000000}", NULL, NULL, LIVE, NULL},
    {"/migratable/27-invtsc-required", "'domain':{'cpu':{'features':[{'name':'invtsc','policy':'require'}]},'features':{'hyperv':{'reenlightenment':{'enabled':true}}}}", "", NULL, NULL, LIVE, NULL},
    /* spec:02-14.13#12 */
    {"/migratable/28-passthrough-and-sev", "'domain':{'features':{'hypervPassthrough':{'enabled':true}},'launchSecurity':{'sev':{}}}", "",
     "SEVNotLiveMigratable", "VMI uses SEV", LIVE, "SEVNotLiveMigratable: VMI uses SEV, HypervPassthroughNotLiveMigratable: VMI uses hyperv passthrough"},
    /* spec:02-14.7#29 */
    {"/migratable/29-utility-volumes", "'utilityVolumes':[" PVC("a") "]", "", NULL, NULL, LIVE, NULL},
    /* clang-format on */
};

static void
assert_condition(const ChJson *condition, const char *reason, const char *message)
{
    g_assert_cmpstr(ch_json_string_at(condition, "status"), ==, reason != NULL ? "False" : "True");
    g_assert_cmpstr(ch_json_string_at(condition, "reason"), ==, reason);
    g_assert_cmpstr(ch_json_string_at(condition, "message"), ==, message);
}

static void
test_migratable(gconstpointer data)
{
    const struct MigratableCase *c = data;
    g_autofree char *status =
        g_strconcat("'phase':'Running'", c->status[0] != '\0' ? "," : "", c->status, NULL);
    g_autoptr(ChStatusResult) result = run_status(c->spec, status, RUNNING, NULL);

    assert_condition(condition_of(result, "LiveMigratable"), c->reason, c->message);
    assert_condition(condition_of(result, "StorageLiveMigratable"),
                     c->storage_message != NULL ? "NotMigratable" : NULL,
                     c->storage_message);
    g_assert_cmpstr(ch_json_string_at(result->vmi, "status", "migrationMethod"),
                    ==,
                    c->method == BLOCK ? "BlockMigration" : "LiveMigration");
}

/* spec:01#45 spec:02-14.7#10 spec:02-14.7#16 spec:02-14.7#18: what the node and the configuration
 * say. */
static void
test_node_decides(void)
{
    static const char *const mdevs[] = {"mdev", NULL};
    static const char *const plugins[] = {"plug", NULL};
    ChStatusNode node = {.name = "node01", .gate_vgpu_live_migration = true};
    g_autoptr(ChStatusResult) host_model = run_status("'domain':{'cpu':{'model':'host-model'}}",
                                                      "'phase':'Running','nodeName':'node01'",
                                                      RUNNING,
                                                      &node);
    g_autoptr(ChStatusResult) pci = run_status(
        DEVICES("'gpus':[{'name':'g','deviceName':'mdev'}]"), "'phase':'Running'", RUNNING, &node);
    g_autoptr(ChStatusResult) mdev = NULL;
    g_autoptr(ChStatusResult) plugin = NULL;

    node.permitted_mdevs = mdevs;
    node.migratable_plugins = plugins;
    mdev = run_status(
        DEVICES("'gpus':[{'name':'g','deviceName':'mdev'}]"), "'phase':'Running'", RUNNING, &node);
    plugin = run_status(POD_NETWORK
                        "," DEVICES("'interfaces':[{'name':'default','binding':{'name':'plug'}}]"),
                        "'phase':'Running'",
                        RUNNING,
                        &node);

    assert_condition(condition_of(host_model, "LiveMigratable"),
                     "CPUModeLiveMigratable",
                     "the node \"node01\" does not allow migration with host-model");
    assert_condition(condition_of(pci, "LiveMigratable"),
                     "HostDeviceNotLiveMigratable",
                     "VMI specifies non-migratable GPU device");
    assert_condition(condition_of(mdev, "LiveMigratable"), NULL, NULL);
    assert_condition(condition_of(plugin, "LiveMigratable"), NULL, NULL);
}

/* 02 trap 8: a foreign writer's times go, and the entry moves to the end; then it is left alone. */
static void
test_times_are_removed_once(void)
{
    g_autoptr(ChStatusResult) result =
        run_status("",
                   "'phase':'Running','conditions':[{'type':'LiveMigratable','status':'True',"
                   "'lastProbeTime':null,'lastTransitionTime':'2026-01-01T00:00:00Z'},"
                   "{'type':'Ready','status':'True'}]",
                   RUNNING,
                   NULL);

    g_assert_true(result->changed);
    assert_json(ch_json_at(result->vmi, "status", "conditions"),
                "[{'type':'Ready','status':'True','lastProbeTime':null,'lastTransitionTime':null},"
                "{'type':'LiveMigratable','status':'True','lastProbeTime':null,"
                "'lastTransitionTime':null},"
                "{'type':'StorageLiveMigratable','status':'True','lastProbeTime':null,"
                "'lastTransitionTime':null}]");
}

/* spec:02-14.13#11: the reason is the same, so the old message stays. */
static void
test_storage_message_is_not_refreshed(void)
{
    g_autoptr(ChStatusResult) result =
        run_status("'domain':{'launchSecurity':{'sev':{}}}",
                   "'phase':'Running','conditions':[{'type':'StorageLiveMigratable',"
                   "'status':'False','reason':'NotMigratable','message':'old'}]",
                   RUNNING,
                   NULL);

    g_assert_cmpstr(
        ch_json_string_at(condition_of(result, "StorageLiveMigratable"), "message"), ==, "old");
}

/* @message: NULL: there is no event */
static void
assert_warning(const ChStatusResult *result, const char *message)
{
    const ChEvent *event = result->events->len > 0 ? result->events->pdata[0] : NULL;

    g_assert_cmpuint(result->events->len, ==, message != NULL ? 1 : 0);
    if (message == NULL)
        return;
    g_assert_cmpstr(event->type, ==, "Warning");
    g_assert_cmpstr(event->reason, ==, "Migrated");
    g_assert_cmpstr(event->message, ==, message);
}

/* (transfer full): for run_status(): the object's text without braces */
static char *
members_of(const ChJson *object)
{
    g_autofree char *text = ch_json_print(object, NULL);

    text[strlen(text) - 1] = '\0';
    return g_strdup(text + 1);
}

/* spec:02-14.7#14 */
static void
test_eviction_names_the_network(void)
{
    g_autoptr(ChStatusResult) result =
        run_status("'evictionStrategy':'LiveMigrate'," POD_NETWORK
                   "," DEVICES("'interfaces':[{'name':'default','bridge':{}}]"),
                   "'phase':'Running'",
                   RUNNING,
                   NULL);

    assert_warning(result,
                   "EvictionStrategy is set but vmi is not migratable; cannot migrate VMI which "
                   "does not use masquerade or a migratable plugin to connect to the pod network");
}

/* spec:04-23.8#4a: a bridge may be migrated when an annotation says so, with any value. */
static void
test_bridge_with_annotation(void)
{
    g_autoptr(ChJson) vmi = parse_json(
        "{'metadata':{'annotations':{'kubevirt.io/allow-pod-bridge-network-live-migration':''}},"
        "'spec':{" POD_NETWORK "," DEVICES(
            "'interfaces':[{'name':'default','bridge':{}}]") "},'status':{'phase':'Running'}}");
    g_autoptr(ChDomain) domain = parse_domain(RUNNING);
    g_autoptr(ChStatusResult) result = ch_status(
        &(ChStatusInput){.vmi = vmi, .domain = domain, .now_us = TEST_NOW_US}, &test_node);

    assert_condition(condition_of(result, "LiveMigratable"), NULL, NULL);
}

static const struct EvictionCase {
    const char *spec, *cluster;
    bool expect;
} evictions[] = {
    {"'evictionStrategy':'LiveMigrate',", NULL, true},
    {"'evictionStrategy':'LiveMigrateIfPossible',", NULL, false},
    {"'evictionStrategy':'None',", "LiveMigrate", false},
    {"", "LiveMigrate", true},
    {"", NULL, false},
};

/* spec:02-14.13#26: said on each pass, also when the condition is an old one. */
static void
test_eviction(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(evictions); i++) {
        const ChStatusNode node = {.name = "n", .eviction_strategy = evictions[i].cluster};
        g_autofree char *spec =
            g_strconcat(evictions[i].spec, "'domain':{'launchSecurity':{'sev':{}}}", NULL);
        g_autofree char *status = g_strdup("'phase':'Running'");

        for (int n = 0; n < 2; n++) {
            g_autoptr(ChStatusResult) result = run_status(spec, status, RUNNING, &node);

            assert_warning(result,
                           evictions[i].expect
                               ? "EvictionStrategy is set but vmi is not migratable; VMI uses SEV"
                               : NULL);
            g_free(status);
            status = members_of(ch_json_at(result->vmi, "status"));
        }
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_migratable);
    g_test_add_func("/migratable/node-decides", test_node_decides);
    g_test_add_func("/migratable/times-are-removed-once", test_times_are_removed_once);
    g_test_add_func("/migratable/storage-message-is-not-refreshed",
                    test_storage_message_is_not_refreshed);
    g_test_add_func("/migratable/eviction", test_eviction);
    g_test_add_func("/migratable/14-eviction-names-the-network", test_eviction_names_the_network);
    g_test_add_func("/migratable/bridge-with-annotation", test_bridge_with_annotation);
    return g_test_run();
}
