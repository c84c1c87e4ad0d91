/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/test-support.h"

#define MEMORY(value, unit)                                                                        \
    "{'Spec':{'CurrentMemory':{'Value':" value ",'Unit':'" unit "'}},"                             \
    "'Status':{'Status':'Running'}}"

/* Spec 02 §6.8. spec:02-14.8#5 spec:02-14.8#6 spec:01#49 spec:02-14.13#17 spec:02-14.13#33 */
static const struct MemoryCase {
    const char *domain, *expect;
} memories[] = {
    {MEMORY("512", "KiB"), "{'guestCurrent':'512Ki'}"},
    {MEMORY("512", "b"), "{'guestCurrent':'512'}"},
    {MEMORY("512", "bytes"), "{'guestCurrent':'512'}"},
    {MEMORY("512", "KB"), "{'guestCurrent':'512k'}"},
    {MEMORY("512", "MB"), "{'guestCurrent':'512M'}"},
    {MEMORY("512", "GB"), "{'guestCurrent':'512G'}"},
    {MEMORY("512", "TB"), "{'guestCurrent':'512T'}"},
    {MEMORY("512", "MiB"), "{'guestCurrent':'512Mi'}"},
    {MEMORY("512", "GiB"), "{'guestCurrent':'512Gi'}"},
    {MEMORY("512", "TiB"), "{'guestCurrent':'512Ti'}"},
    {MEMORY("512", "k"), "{'guestCurrent':'512Ki'}"},
    {MEMORY("512", "M"), "{'guestCurrent':'512Mi'}"},
    {MEMORY("512", "G"), "{'guestCurrent':'512Gi'}"},
    {MEMORY("512", "T"), "{'guestCurrent':'512Ti'}"},
    {MEMORY("2049", "KiB"), "{'guestCurrent':'2049Ki'}"},
    {MEMORY("1048576", "KiB"), "{'guestCurrent':'1Gi'}"},
    {MEMORY("1025", "b"), "{'guestCurrent':'1025'}"},
    {MEMORY("1000", "b"), "{'guestCurrent':'1k'}"},
    {MEMORY("0", "KiB"), "{'guestCurrent':'0'}"},
    {MEMORY("5", "pages"), "{}"},
    {MEMORY("5", ""), "{}"},
};

static void
test_memory(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(memories); i++) {
        g_autoptr(ChStatusResult) result =
            run_status("", "'phase':'Running','memory':{}", memories[i].domain, NULL);

        assert_json(ch_json_at(result->vmi, "status", "memory"), memories[i].expect);
    }
}

/* 02 trap 5: equal by value is no news; a missing domain keeps what is there. */
static void
test_memory_by_value(void)
{
    static const char status[] = "'phase':'Running','migrationMethod':'LiveMigration',"
                                 "'memory':{'guestCurrent':'1024Mi'},'conditions':["
                                 "{'type':'LiveMigratable','status':'True'},"
                                 "{'type':'StorageLiveMigratable','status':'True'}]";
    g_autoptr(ChStatusResult) same = run_status("", status, MEMORY("1048576", "KiB"), NULL);
    g_autoptr(ChStatusResult) other = run_status("", status, MEMORY("1048577", "KiB"), NULL);
    g_autoptr(ChStatusResult) none =
        run_status("", status, "{'Status':{'Status':'Running'}}", NULL);

    g_assert_false(same->changed);
    g_assert_true(other->changed);
    g_assert_false(none->changed);
}

#define BACKUP(status)                                                                             \
    "'phase':'Running','changedBlockTracking':{'state':'Enabled','backupStatus':{" status "}}"
#define REPORT(members)                                                                            \
    "{'Spec':{'Metadata':{'KubeVirt':{'Backup':{" members "}}}},'Status':{'Status':'Running'}}"
#define START "2026-11-29T01:00:00Z"

/* Expectations are of backupStatus. */
static const struct BackupCase {
    const char *path, *status, *domain, *expect;
} backups[] = {
    /* clang-format off */
    /* spec:02-14.8#7 */
    {"/status-domain/backup/07-without-tracking", "'phase':'Running'", REPORT("'Name':'b'"), NULL},
    /* spec:02-14.8#8 */
    {"/status-domain/backup/08-without-status", "'phase':'Running','changedBlockTracking':{'state':'Enabled'}", REPORT("'Name':'b'"), NULL},
    /* spec:02-14.8#9 */
    {"/status-domain/backup/09-other-name", BACKUP("'backupName':'a'"), REPORT("'Name':'b','Completed':true"), "{'backupName':'a'}"},
    /* spec:02-14.8#10 */
    {"/status-domain/backup/10-other-start", BACKUP("'backupName':'b','startTimestamp':'" START "'"), REPORT("'Name':'b','Completed':true"), "{'backupName':'b','startTimestamp':'" START "'}"},
    /* spec:02-14.8#11 spec:01#47 */
    {"/status-domain/backup/11-match", BACKUP("'backupName':'b','startTimestamp':'2026-11-29T02:00:00+01:00'"),
     REPORT("'Name':'b','StartTimestamp':'" START "','EndTimestamp':'2026-11-29T01:00:05Z','Completed':true,'BackupMsg':'m','CheckpointName':'c',"
            "'Volumes':'[{\\u0022VolumeName\\u0022:\\u0022v\\u0022,\\u0022diskTarget\\u0022:\\u0022vda\\u0022,\\u0022dataEndpoint\\u0022:\\u0022e\\u0022},{}]'"),
     "{'backupName':'b','startTimestamp':'2026-11-29T02:00:00+01:00','endTimestamp':'2026-11-29T01:00:05Z','completed':true,'backupMsg':'m','checkpointName':'c',"
     "'volumes':[{'volumeName':'v','diskTarget':'vda','dataEndpoint':'e'},{'volumeName':'','diskTarget':''}]}"},
    /* spec:02-14.13#27 */
    {"/status-domain/backup/27-bad-volumes-are-no-news", BACKUP("'backupName':'b','volumes':[1]"), REPORT("'Name':'b','Volumes':'[{'"), "{'backupName':'b','volumes':[1]}"},
    {"/status-domain/backup/volumes-of-the-wrong-type-are-no-news", BACKUP("'backupName':'b','volumes':[1]"), REPORT("'Name':'b','Volumes':'[{\\u0022volumeName\\u0022:1}]'"), "{'backupName':'b','volumes':[1]}"},
    {"/status-domain/backup/null-volume-is-empty", BACKUP("'backupName':'b'"), REPORT("'Name':'b','Volumes':'[null]'"), "{'backupName':'b','volumes':[{'volumeName':'','diskTarget':''}]}"},
    {"/status-domain/backup/back-to-false", BACKUP("'backupName':'b','completed':true"), REPORT("'Name':'b'"), "{'backupName':'b'}"},
    /* clang-format on */
};

static void
test_backup(gconstpointer data)
{
    const struct BackupCase *c = data;
    g_autoptr(ChStatusResult) result = run_status("", c->status, c->domain, NULL);
    const ChJson *status =
        ch_json_at(result->vmi, "status", "changedBlockTracking", "backupStatus");

    if (c->expect == NULL)
        g_assert_null(status);
    else
        assert_json(status, c->expect);
}

#define VOLUMES                                                                                    \
    "'volumes':[{'name':'a','persistentVolumeClaim':{}},{'name':'c','containerDisk':{}}]"
#define STORE(store)                                                                               \
    "{'Spec':{'Devices':{'Disks':[{'Alias':{'Name':'a'},'Source':{'DataStore':" store              \
    "}}]}},'Status':{'Status':'Running'}}"

#define STATE(state) "'changedBlockTracking':{'state':'" state "'}"

/* Rows that expect a change: once the trackers are marked. */
static const struct TrackingCase {
    const char *spec, *status, *domain;
    bool expect;
} trackings[] = {
    /* clang-format off */
    {VOLUMES, STATE("Initializing"), STORE("{}"), true},    /* spec:02-14.9#1 spec:02-14.9#3 spec:01#86 */
    {VOLUMES, STATE("Initializing"), STORE("null"), false}, /* spec:02-14.9#2 */
    {"'volumes':[{'name':'c','containerDisk':{}}]", STATE("Initializing"), STORE("null"), true}, /* spec:02-14.9#4 */
    {"'x':1", STATE("Initializing"), STORE("null"), true},
    {VOLUMES, STATE("Initializing"), "{'Status':{'Status':'Running'}}", false}, /* spec:02-14.9#5 */
    {"'volumes':[{'name':'h','hostDisk':{}}]", STATE("Initializing"), STORE("{}"), false},
    {"'volumes':[{'name':'d','dataVolume':{}}]", STATE("Initializing"), STORE("{}"), false},
    {VOLUMES, STATE("Initializing"), NULL, false}, /* spec:02-14.9#6 */
    {VOLUMES, "'x':1", STORE("{}"), false},        /* spec:02-14.9#7 */
    {VOLUMES, STATE(""), STORE("{}"), false},      /* spec:02-14.9#8 */
    {VOLUMES, STATE("Undefined"), STORE("{}"), false},
    {VOLUMES, STATE("Enabled"), STORE("{}"), false},        /* spec:02-14.9#9 spec:01#87 */
    {VOLUMES, STATE("Disabled"), STORE("{}"), false},       /* spec:02-14.9#10 */
    {VOLUMES, STATE("PendingRestart"), STORE("{}"), false}, /* spec:02-14.9#11 */
    {VOLUMES, STATE("IncrementalBackupFeatureGateDisabled"), STORE("{}"), false}, /* spec:02-14.9#12 */
    /* clang-format on */
};

static bool
is_same(const ChJson *a, const ChJson *b)
{
    return a == b || (a != NULL && b != NULL && ch_json_equal(a, b));
}

/* The state follows the trackers, never precedes them. */
static void
test_block_tracking(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(trackings); i++) {
        const struct TrackingCase *c = &trackings[i];

        for (int marked = 0; marked < 2; marked++) {
            g_autofree char *text = g_strdup_printf(
                "{'spec':{%s},'status':{'phase':'Running',%s}}", c->spec, c->status);
            g_autoptr(ChJson) vmi = parse_json(text);
            g_autoptr(ChDomain) domain = parse_domain(c->domain);
            g_autoptr(ChStatusResult) result = NULL;
            ChVmiView view;

            ch_vmi_view_init(&view, vmi);
            g_assert_true(ch_status_wants_trackers_marked(&view, domain) == c->expect);
            result = ch_status(
                &(ChStatusInput){
                    .vmi = vmi,
                    .domain = domain,
                    .trackers_marked = marked != 0,
                    .now_us = TEST_NOW_US,
                },
                &test_node);
            if (c->expect && marked)
                assert_json(ch_json_at(result->vmi, "status", "changedBlockTracking"),
                            "{'state':'Enabled'}");
            else
                g_assert_true(is_same(ch_json_at(result->vmi, "status", "changedBlockTracking"),
                                      ch_json_at(vmi, "status", "changedBlockTracking")));
        }
    }
}

/* spec:02-14.1#17; what is not reported stays. */
static void
test_machine(void)
{
    g_autoptr(ChStatusResult) set =
        run_status("",
                   "'phase':'Running'",
                   "{'Spec':{'OS':{'Type':{'Machine':'q35-123'}}},'Status':{'Status':'Running'}}",
                   NULL);
    g_autoptr(ChStatusResult) kept = run_status("",
                                                "'phase':'Running','machine':{'type':'q35-123'}",
                                                "{'Status':{'Status':'Running'}}",
                                                NULL);

    assert_json(ch_json_at(set->vmi, "status", "machine"), "{'type':'q35-123'}");
    assert_json(ch_json_at(kept->vmi, "status", "machine"), "{'type':'q35-123'}");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/status-domain/memory", test_memory);
    g_test_add_func("/status-domain/memory-by-value", test_memory_by_value);
    for (gsize i = 0; i < G_N_ELEMENTS(backups); i++)
        g_test_add_data_func(backups[i].path, &backups[i], test_backup);
    g_test_add_func("/status-domain/block-tracking", test_block_tracking);
    g_test_add_func("/status-domain/machine", test_machine);
    return g_test_run();
}
