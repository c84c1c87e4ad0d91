/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/vmi.h"

#include "handler/reconcile/test-support.h"
#include "lib/base/time.h"

static const char full[] =
    "{'metadata':{'namespace':'ns','name':'vm','uid':'u','deletionTimestamp':'2026-11-29T00:00:00Z'"
    ","
    "'labels':{'kubevirt.io/nodeName':'n1','kubevirt.io/migrationTargetNodeName':'n2'},"
    "'annotations':{'kubevirt.io/create-migration-target':'true','a.b/c':''}},"
    "'spec':{'terminationGracePeriodSeconds':0},"
    "'status':{'phase':'Running','nodeName':'n1','migrationState':{"
    "'startTimestamp':'2026-11-29T00:00:00Z','endTimestamp':'2026-11-29T00:01:00Z',"
    "'sourceNode':'n1','targetNode':'n2','targetNodeAddress':'1.1.1.1','mode':'PreCopy',"
    "'failed':true,'sourceState':{},'targetState':{'syncAddress':'','nodeAddress':'b'}}}}";

static void
test_reads_everything(void)
{
    g_autoptr(ChJson) document = parse_json(full);
    ChVmiView vmi;

    ch_vmi_view_init(&vmi, document);
    g_assert_cmpstr(vmi.namespace_, ==, "ns");
    g_assert_cmpint(vmi.phase, ==, CH_PHASE_RUNNING);
    g_assert_true(vmi.is_deleting);
    g_assert_true(vmi.is_migration_target);
    g_assert_true(vmi.is_migration_source); /* set, even if empty, is set */
    g_assert_true(vmi.is_decentralised);
    g_assert_true(vmi.has_grace);
    g_assert_cmpint(vmi.grace_s, ==, 0);
    g_assert_cmpint(vmi.migration.start_us, ==, TEST_NOW_US);
    g_assert_true(vmi.migration.failed && !vmi.migration.completed);
    g_assert_true(ch_vmi_is_migration_done(&vmi));
    g_assert_true(ch_vmi_is_owned_by(&vmi, "n1"));
    g_assert_false(ch_vmi_is_owned_by(&vmi, "n2"));
    g_assert_true(ch_vmi_has_annotation(&vmi, "a.b/c"));
    g_assert_false(ch_vmi_has_annotation(&vmi, "a"));
    g_assert_true(ch_vmi_has_source_role(&vmi, "n1"));
    g_assert_true(ch_vmi_is_source_of_running_migration(&vmi, "n1"));
    g_assert_false(ch_vmi_is_source_of_running_migration(&vmi, "n2"));
}

static void
test_migrating_by_time(void)
{
    g_autoptr(ChJson) document = parse_json(full);
    ChVmiView vmi;

    ch_vmi_view_init(&vmi, document);
    g_assert_false(ch_vmi_is_migrating(&vmi, TEST_NOW_US - 1));
    g_assert_true(ch_vmi_is_migrating(&vmi, TEST_NOW_US));
    g_assert_false(ch_vmi_is_migrating(&vmi, TEST_NOW_US + 60 * CH_SECOND_US));
}

/* Whatever comes is read: strings are never NULL. */
static void
test_hostile_documents(void)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "{'metadata':[],'spec':'x','status':1}",
        "{'metadata':{'name':1,'labels':'x'},'status':{'phase':[],'migrationState':[]}}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(ChJson) document = parse_json(texts[i]);
        ChVmiView vmi;

        ch_vmi_view_init(&vmi, document);
        g_assert_cmpstr(vmi.name, ==, "");
        g_assert_cmpstr(vmi.node_label, ==, "");
        g_assert_cmpint(vmi.phase, ==, CH_PHASE_UNSET);
        g_assert_false(vmi.migration.exists);
        g_assert_false(ch_vmi_is_owned_by(&vmi, ""));
    }
}

static void
test_phase_texts(void)
{
    for (ChPhase phase = CH_PHASE_UNSET; phase < CH_PHASE_N; phase++)
        g_assert_cmpint(ch_phase_from_text(ch_phase_text(phase)), ==, phase);
    g_assert_cmpint(ch_phase_from_text("running"), ==, CH_PHASE_UNKNOWN);
    g_assert_cmpint(ch_phase_from_text(NULL), ==, CH_PHASE_UNSET);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vmi/reads-everything", test_reads_everything);
    g_test_add_func("/vmi/migrating-by-time", test_migrating_by_time);
    g_test_add_func("/vmi/hostile-documents", test_hostile_documents);
    g_test_add_func("/vmi/phase-texts", test_phase_texts);
    return g_test_run();
}
