/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-status-property: what holds for every VMI and every domain. Documents and observations are
 * put together at random (a fixed seed, so that a failure comes again), and the rules of 02 §2 are
 * checked on each. Included by test-status.c only.
 */

#pragma once

#include "handler/reconcile/test-support.h"

#define N_CASES    4000
#define MAX_PASSES 5 /* of a target: WaitingForSync, Scheduled; of a dump: in progress, done */

/* Members of the status; some are written, some are nobody's. */
static const char *const any_status_members[] = {
    "'guestOSInfo':{},'runtimeUser':107",
    "'guestOSInfo':{'name':'n','version':'old','x-os':1}",
    "'activePods':{'p':'node01'},'qosClass':'Burstable','reason':'r'",
    "'memory':{'guestAtBoot':'1Gi','guestCurrent':'1024Mi','x-memory':[]}",
    "'machine':{'type':'q35','x-machine':null}",
    "'fsFreezeStatus':'frozen'",
    "'migratedVolumes':[{'volumeName':'a','x-migrated':{}}]",
    "'migrationMethod':'BlockMigration'",
    "'migrationState':{'failed':true,'mode':'PostCopy'}",
    "'migrationState':{'mode':'Paused','sourceNode':'node01','targetNodeAddress':'a'}",
    "'changedBlockTracking':{'state':'Initializing','x-tracking':1}",
    "'changedBlockTracking':{'state':'Enabled','backupStatus':{'backupName':'b','completed':true}}",
    "'topologyHints':{'tscFrequency':18446744073709551615}",
    "'kernelBootStatus':{'kernelInfo':{}}",
    "'selinuxContext':'old'",
    "'phaseTransitionTimestamps':[{'phase':'Scheduled','phaseTransitionTimestamp':"
    "'2026-01-01T00:00:00Z'},{'phase':'Running','phaseTransitionTimestamp':null}]",
    "'x-number':1.50,'x-list':[],'x-object':{},'x-null':null",
};

static const char *const any_conditions[] = {
    "{'type':'Ready','status':'True','lastProbeTime':null,'lastTransitionTime':null}",
    "{'type':'EvictionRequested','status':'False','lastTransitionTime':'2026-01-01T00:00:00Z'}",
    "{'type':'x-by-hand','status':'Unknown','x-condition':{'a':[1]}}",
    "{'type':'LiveMigratable','status':'True','lastTransitionTime':'2026-01-01T00:00:00Z'}",
    "{'type':'LiveMigratable','status':'False','reason':'r','message':'m'}",
    "{'type':'StorageLiveMigratable','status':'False','reason':'NotMigratable','message':'m'}",
    "{'type':'AgentConnected','status':'True','lastProbeTime':'2026-01-01T00:00:00Z'}",
    "{'type':'AgentVersionNotSupported','status':'True','reason':'r'}",
    "{'type':'Paused','status':'True','reason':'PausedByUser'}",
    "{'type':'Synchronized','status':'False','reason':'Synchronizing with the Domain failed.'}",
    "{'type':'SoftwareEmulation','status':'True'}",
    "{'type':'AccessCredentialsSynchronized','status':'True','message':'m'}",
};

static const char *const any_volume_states[] = {
    "{'name':'d','target':'vda','x-volume':true}",
    "{'name':'c','target':'','persistentVolumeClaimInfo':{'claimName':'k','accessModes':"
    "['ReadWriteOnce'],'capacity':{'storage':'1024Mi'}}}",
    "{'name':'b','target':'','phase':'Bound','hotplugVolume':{'attachPodUID':'x'}}",
    "{'name':'a','target':'sdb','phase':'Ready','hotplugVolume':{}}",
    "{'name':'m','target':'','phase':'AttachedToNode','hotplugVolume':{},'memoryDumpVolume':"
    "{'claimName':'k'}}",
    "{'name':'n','target':'','phase':'MemoryDumpInProgress','memoryDumpVolume':{'claimName':'k',"
    "'targetFileName':'f'}}",
    "{'name':'k','target':'','containerDiskVolume':{'checksum':7}}",
};

static const char *const any_interface_states[] = {
    "{'name':'prim','mac':'m1','infoSource':'domain, multus-status','podInterfaceName':'eth0'}",
    "{'name':'sec','infoSource':'multus-status','x-interface':1}",
    "{'mac':'g','infoSource':'guest-agent'}",
    "{'name':'gone','mac':'m9'}",
};

static const char *const any_volumes[] = {
    "{'name':'a','persistentVolumeClaim':{'claimName':'k'}}",
    "{'name':'b','dataVolume':{'name':'dv'}}",
    "{'name':'c','hostDisk':{'shared':true}}",
    "{'name':'d','cloudInitNoCloud':{}}",
    "{'name':'k','containerDisk':{}}",
    "{'name':'m','memoryDump':{'claimName':'k'}}",
};

static const char *const any_spec_members[] = {
    "'architecture':'arm64'",
    "'evictionStrategy':'LiveMigrate'",
    "'terminationGracePeriodSeconds':0",
    "'networks':[{'name':'prim','pod':{}},{'name':'sec','multus':{}}]",
    "'accessCredentials':[{'sshPublicKey':{'propagationMethod':{'qemuGuestAgent':{}}}}]",
    "'x-spec':{'n':1e3}",
};

static const char *const any_domain_devices[] = {
    "{'Alias':{'Name':'prim'},'MAC':{'MAC':'m1'}}",
    "{'Alias':{'Name':'sec'},'MAC':{'MAC':'m2'},'Driver':{'Queues':4},'LinkState':{'State':'down'}"
    "}",
    "{'Alias':null,'MAC':null}",
};

static const char *const any_disks[] = {
    "{'Alias':{'Name':'d'},'Source':{'File':'/x'},'Target':{'Device':'vda'}}",
    "{'Alias':{'Name':'b'},'Source':{'Dev':'/y','DataStore':{}},'Target':{'Device':'sda'}}",
    "{'Alias':{'Name':'a'},'Source':null,'Target':{'Device':'sdb'}}",
};

static const char *const any_guest_nics[] = {
    "{'Mac':'m1','Ip':'10.0.2.2','IPs':['10.0.2.2','fe80::1'],'InterfaceName':'eth0'}",
    "{'Mac':'m2','Ip':'','IPs':null,'InterfaceName':''}",
    "{'Mac':'g','Ip':'1.1.1.1','IPs':['1.1.1.1/24'],'InterfaceName':'br0'}",
    "{'Mac':'','Ip':'','IPs':[],'InterfaceName':'lo'}",
};

static const char *const any_metadata_members[] = {
    "'AccessCredential':{'Succeeded':false,'Message':'m'}",
    "'Backup':{'Name':'b','Completed':false,'Volumes':'[{}]'}",
    "'MemoryDump':{'FileName':'f','StartTimestamp':'2026-11-29T01:00:00Z','Completed':true}",
    "'Migration':{'UID':'x','Failed':true}",
};

static const char *const any_domain_status_members[] = {
    "'OSInfo':{'Name':'n2','Version':'v'}",
    "'FSFreezeStatus':{'Status':'thawed'}",
    "'FSFreezeStatus':{'Status':'frozen'}",
    "'GuestPanicInfo':{'Type':'t','Arg1':18446744073709551615},'PanicCount':3",
};

static const char *const any_phases[] = {
    "", "Pending", "Scheduled", "Running", "WaitingForSync", "Succeeded", "Failed", "Foo"};
static const char *const any_states[] = {"Running", "Paused", "Shutoff", "Crashed", "NoState", ""};
static const char *const any_reasons[] = {
    "Unknown", "User", "IOError", "Migration", "Destroyed", "Shutdown", "PostcopyFailed", ""};

typedef struct {
    GRand *rand;
    ChJson *vmi;
    ChDomain *domain; /* (nullable) */
    ChGuestInfo *info;
    ChStatusNode node;
    ChStatusInput input;
} Case;

static bool
toss(GRand *rand)
{
    return g_rand_boolean(rand);
}

#define PICK(rand, list) ((list)[g_rand_int_range((rand), 0, G_N_ELEMENTS(list))])

/* Some of them, in their order; names of members are not repeated. */
static void
append_some(GRand *rand, GString *text, const char *const *list, gsize n, bool members)
{
    g_autoptr(GHashTable) keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    bool has_first = false;

    for (gsize i = 0; i < n; i++) {
        const char *end = members ? strstr(list[i], "':") : NULL;

        if (!toss(rand) ||
            (end != NULL && !g_hash_table_add(keys, g_strndup(list[i], (gsize)(end - list[i])))))
            continue;
        g_string_append_printf(text, "%s%s", has_first ? "," : "", list[i]);
        has_first = true;
    }
}

#define SOME(rand, text, list)    append_some(rand, text, list, G_N_ELEMENTS(list), false)
#define MEMBERS(rand, text, list) append_some(rand, text, list, G_N_ELEMENTS(list), true)

/* Conditions of a type that is there already would not survive: one of each. */
static void
append_conditions(GRand *rand, GString *text)
{
    const gsize alternative = toss(rand) ? 3 : 4;
    bool has_first = false;

    for (gsize i = 0; i < G_N_ELEMENTS(any_conditions); i++) {
        if (((i == 3 || i == 4) && i != alternative) || !toss(rand))
            continue;
        g_string_append_printf(text, "%s%s", has_first ? "," : "", any_conditions[i]);
        has_first = true;
    }
}

static ChJson *
make_vmi(GRand *rand)
{
    g_autoptr(GString) text = g_string_new(
        "{'metadata':{'name':'vm','namespace':'ns','uid':'u','annotations':{'x-note':'1'");

    if (toss(rand))
        g_string_append(text, ",'kubevirt.io/create-migration-target':'true'");
    g_string_append(text, "}},'spec':{'x-first':1,");
    MEMBERS(rand, text, any_spec_members);
    g_string_append(text, g_str_has_suffix(text->str, ",") ? "'volumes':[" : ",'volumes':[");
    SOME(rand, text, any_volumes);
    g_string_append(text,
                    "],'domain':{'devices':{'interfaces':[{'name':'prim','masquerade':{}},"
                    "{'name':'sec','bridge':{}}],'gpus':[{'name':'g','deviceName':'mdev'}]}}},"
                    "'status':{");
    g_string_append_printf(text, "'phase':'%s','conditions':[", PICK(rand, any_phases));
    append_conditions(rand, text);
    g_string_append(text, "],'volumeStatus':[");
    SOME(rand, text, any_volume_states);
    g_string_append(text, "],'interfaces':[");
    SOME(rand, text, any_interface_states);
    g_string_append(text, "],'x-last':{}");
    g_string_append_c(text, ',');
    MEMBERS(rand, text, any_status_members);
    if (text->str[text->len - 1] == ',')
        g_string_truncate(text, text->len - 1);
    g_string_append(text, "}}");
    return parse_json(text->str);
}

static void
append_list(GRand *rand, GString *text, const char *key, const char *const *list, gsize n)
{
    g_string_append_printf(text, "'%s':[", key);
    append_some(rand, text, list, n, false);
    g_string_append(text, "]");
}

static ChDomain *
make_domain(GRand *rand)
{
    g_autoptr(GString) text = g_string_new("{'Spec':{'Type':'qemu','Devices':{");

    if (g_rand_int_range(rand, 0, 4) == 0)
        return NULL;
    append_list(rand, text, "Disks", any_disks, G_N_ELEMENTS(any_disks));
    g_string_append_c(text, ',');
    append_list(rand, text, "Interfaces", any_domain_devices, G_N_ELEMENTS(any_domain_devices));
    g_string_append_printf(text,
                           ",'Channels':[{'Target':{'Name':'org.qemu.guest_agent.0','State':'%s'}}]"
                           "},'OS':{'Type':{'Machine':'%s'}},'Features':%s,'CurrentMemory':%s,"
                           "'Metadata':{'KubeVirt':{",
                           toss(rand) ? "connected" : "disconnected",
                           toss(rand) ? "q35" : "",
                           toss(rand) ? "{'ACPI':{}}" : "null",
                           toss(rand) ? "{'Value':1048576,'Unit':'KiB'}" : "null");
    MEMBERS(rand, text, any_metadata_members);
    g_string_append_printf(text,
                           "}}},'Status':{'Status':'%s','Reason':'%s',",
                           PICK(rand, any_states),
                           PICK(rand, any_reasons));
    append_list(rand, text, "Interfaces", any_guest_nics, G_N_ELEMENTS(any_guest_nics));
    g_string_append_c(text, ',');
    MEMBERS(rand, text, any_domain_status_members);
    if (text->str[text->len - 1] == ',')
        g_string_truncate(text, text->len - 1);
    g_string_append(text, "}}");
    return parse_domain(text->str);
}

static void
case_init(Case *c, GRand *rand)
{
    static const char *const ips[] = {"10.244.0.3", NULL};
    static const ChPodAddresses addresses = {"prim", "10.244.0.3", ips};
    static const ChVolumeSize size = {"d", 374784};
    static const ChVolumeChecksum disk = {"k", 99};
    static const ChChecksums checksums = {&disk, 1, NULL, NULL};
    static const char *const mounted[] = {"b", "m", NULL};
    static const char *const mdevs[] = {"mdev", NULL};

    *c = (Case){.rand = rand, .vmi = make_vmi(rand), .domain = make_domain(rand)};
    c->info = ch_guest_info_parse(toss(rand) ? "{\"guestAgentVersion\":\"4.2\"}" : "{}", -1, NULL);
    c->node = (ChStatusNode){
        .name = "node01",
        .architecture = "amd64",
        .cpu_model = toss(rand) ? "kvm64" : NULL,
        .gate_vgpu_live_migration = toss(rand),
        .gate_cross_architecture = toss(rand),
        .gate_image_volume = toss(rand),
        .eviction_strategy = toss(rand) ? "LiveMigrate" : NULL,
        .permitted_mdevs = toss(rand) ? mdevs : NULL,
    };
    c->input = (ChStatusInput){
        .vmi = c->vmi,
        .domain = c->domain,
        .launcher =
            CH_LAUNCHER_RESPONSIVE, /* a target's that is not makes its phase flap (02 §4.2) */
        .sync = (ChSyncOutcome)g_rand_int_range(rand, 0, CH_SYNC_N),
        .sync_text = "text",
        .guest_info = ch_status_wants_guest_info(c->domain) ? c->info : NULL,
        .selinux_context = toss(rand) ? "none" : NULL,
        .iso_sizes = &size,
        .n_iso_sizes = toss(rand) ? 1 : 0,
        .pod_addresses = &addresses,
        .n_pod_addresses = toss(rand) ? 1 : 0,
        .mounted_volumes = toss(rand) ? mounted : NULL,
        .checksums = toss(rand) ? &checksums : NULL,
        .trackers_marked = true,
        .local_timestamp = "20261129-010203",
        .now_us = TEST_NOW_US,
    };
}

static void
case_clear(Case *c)
{
    ch_json_unref(c->vmi);
    ch_domain_unref(c->domain);
    ch_guest_info_free(c->info);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Case, case_clear)

/* What a volume's or the VMI's next step may depend on. */
static char *
stages_of(const ChJson *vmi)
{
    const ChJson *list = ch_json_at(vmi, "status", "volumeStatus");
    GString *text = g_string_new(ch_json_string_at(vmi, "status", "phase"));

    for (gsize i = 0; i < ch_json_length(list); i++)
        g_string_append_printf(text, " %s", ch_json_string_at(ch_json_item(list, i), "phase"));
    return g_string_free(text, FALSE);
}

/* Each pass over what the one before wrote, a second later: no news but for a new stage, and soon
 * none at all. */
static void
assert_settles(const Case *c, const ChStatusResult *first)
{
    g_autoptr(ChJson) document = ch_json_ref(first->vmi);
    g_autofree char *stages = stages_of(c->vmi);

    for (int n = 1;; n++) {
        g_autofree char *now = stages_of(document);
        const bool may_change = !g_str_equal(now, stages);
        ChStatusInput input = c->input;
        g_autoptr(ChStatusResult) next = NULL;

        input.vmi = document;
        input.now_us += n * G_GINT64_CONSTANT(1234567);
        next = ch_status(&input, &c->node);
        g_assert_true(n < MAX_PASSES || !next->changed);
        g_assert_true(may_change || !next->changed);
        if (!next->changed)
            return;
        g_free(stages);
        stages = g_steal_pointer(&now);
        ch_json_unref(document);
        document = ch_json_ref(next->vmi);
    }
}

/* Members that are nobody's, wherever they stand. In lists by the name of the item. */
static void
assert_foreign_survive(const ChJson *before, const ChJson *after)
{
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    ch_json_iter_init(&iter, before);
    while (ch_json_iter_next(&iter, &key, &value)) {
        const ChJson *other = ch_json_at(after, key);

        if (g_str_has_prefix(key, "x-")) {
            g_assert_true(ch_json_has(after, key));
            g_assert_true(value == other || ch_json_equal(value, other));
        } else if (ch_json_is_object(value)) {
            assert_foreign_survive(value, other);
        }
    }
}

static const ChJson *
item_of(const ChJson *list, const char *key, const char *value)
{
    for (gsize i = 0; i < ch_json_length(list); i++)
        if (g_strcmp0(ch_json_string_at(ch_json_item(list, i), key), value) == 0)
            return ch_json_item(list, i);
    return NULL;
}

static void
assert_items_survive(const ChJson *before, const ChJson *after, const char *list, const char *key)
{
    const ChJson *items = ch_json_at(before, "status", list);

    for (gsize i = 0; i < ch_json_length(items); i++) {
        const ChJson *item = ch_json_item(items, i);
        const ChJson *other =
            item_of(ch_json_at(after, "status", list), key, ch_json_string_at(item, key));

        if (other != NULL)
            assert_foreign_survive(item, other);
    }
}

/* They stay in their order; an absent time is null after a write. */
static void
assert_foreign_conditions_survive(const ChJson *before, const ChJson *after)
{
    static const char *const foreign[] = {"Ready", "EvictionRequested", "x-by-hand"};
    const ChJson *old_list = ch_json_at(before, "status", "conditions");
    const ChJson *new_list = ch_json_at(after, "status", "conditions");

    for (gsize i = 0; i < G_N_ELEMENTS(foreign); i++) {
        const ChJson *old_entry = item_of(old_list, "type", foreign[i]);
        const ChJson *new_entry = item_of(new_list, "type", foreign[i]);
        ChJsonIter iter;
        const char *key;
        ChJson *value;

        g_assert_true((old_entry == NULL) == (new_entry == NULL));
        ch_json_iter_init(&iter, old_entry);
        while (ch_json_iter_next(&iter, &key, &value))
            g_assert_true(value == ch_json_at(new_entry, key) ||
                          ch_json_equal(value, ch_json_at(new_entry, key)));
        g_assert_null(ch_json_at(new_entry, "lastProbeTime"));
    }
}

/* Nobody may see two conditions of one type. */
static void
assert_types_once(const ChJson *vmi)
{
    const ChJson *list = ch_json_at(vmi, "status", "conditions");

    for (gsize i = 0; i < ch_json_length(list); i++)
        g_assert_true(item_of(list, "type", ch_json_string_at(ch_json_item(list, i), "type")) ==
                      ch_json_item(list, i));
}

static void
check(const Case *c)
{
    g_autoptr(ChJson) before = ch_json_dup(c->vmi);
    g_autoptr(ChStatusResult) result = ch_status(&c->input, &c->node);

    g_assert_true(ch_json_equal(c->vmi, before));
    g_assert_true(ch_json_equal(ch_json_at(result->vmi, "spec"), ch_json_at(before, "spec")));
    g_assert_true(
        ch_json_equal(ch_json_at(result->vmi, "metadata"), ch_json_at(before, "metadata")));
    if (ch_phase_is_final(ch_phase_from_text(ch_json_string_at(before, "status", "phase"))))
        g_assert_true(!result->changed && ch_json_equal(result->vmi, before));
    assert_foreign_survive(ch_json_at(before, "status"), ch_json_at(result->vmi, "status"));
    assert_items_survive(before, result->vmi, "volumeStatus", "name");
    assert_items_survive(before, result->vmi, "interfaces", "name");
    assert_foreign_conditions_survive(before, result->vmi);
    assert_types_once(result->vmi);
    assert_settles(c, result);
}

static void
test_any_vmi_and_domain(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(20261129);

    for (guint i = 0; i < N_CASES; i++) {
        g_auto(Case) c = {0};

        case_init(&c, rand);
        if (g_test_verbose()) {
            g_autofree char *text = ch_json_print(c.vmi, NULL);

            g_test_message("%u: %s", i, text);
        }
        check(&c);
    }
}
