/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/phase.h"

#include "handler/reconcile/test-support.h"

#define KEEP CH_PHASE_N

/* 02 §4.2, the domain's table; the VMI is Running, its grace unset. */
static const struct DomainCase {
    const char *status, *reason;
    bool acpi, grace_is_0, postcopy_failed;
    ChPhase expect;
} domain_cases[] = {
    {"Shutoff", "Crashed", 0, 0, 0, CH_PHASE_FAILED},
    {"Crashed", "Panicked", 0, 0, 0, CH_PHASE_FAILED},
    /* spec:02-14.13#19: four rows */
    {"Shutoff", "Destroyed", 1, 0, 0, CH_PHASE_FAILED},
    {"Shutoff", "Destroyed", 1, 1, 0, CH_PHASE_SUCCEEDED},
    {"Shutoff", "Destroyed", 0, 0, 0, CH_PHASE_SUCCEEDED},
    {"Shutoff", "Destroyed", 0, 0, 1, CH_PHASE_FAILED},
    {"Shutoff", "Shutdown", 1, 0, 0, CH_PHASE_SUCCEEDED},
    {"Shutoff", "Saved", 0, 0, 0, CH_PHASE_SUCCEEDED},
    {"Crashed", "FromSnapshot", 0, 0, 0, CH_PHASE_SUCCEEDED},
    {"Shutoff", "Migrated", 0, 0, 0, KEEP},
    {"Shutoff", "Failed", 0, 0, 0, KEEP}, /* spec:02-14.13#8: and the next */
    {"Shutoff", "Unknown", 0, 0, 0, KEEP},
    {"Crashed", "", 0, 0, 0, KEEP},
    {"Paused", "PostcopyFailed", 0, 0, 0, CH_PHASE_FAILED},
    {"Paused", "User", 0, 0, 0, CH_PHASE_RUNNING},
    {"Paused", "IOError", 0, 0, 0, CH_PHASE_RUNNING},
    {"Paused", "", 0, 0, 0, CH_PHASE_RUNNING},
    {"Running", "Unknown", 0, 0, 0, CH_PHASE_RUNNING},
    {"Blocked", "Unknown", 0, 0, 0, CH_PHASE_RUNNING}, /* spec:02-14.13#20: and the next */
    {"PMSuspended", "Unknown", 0, 0, 0, CH_PHASE_RUNNING},
    {"NoState", "NonExistent", 0, 0, 0, KEEP},
    {"ShuttingDown", "User", 0, 0, 0, KEEP},
    {"Unknown", "", 0, 0, 0, KEEP},
    {"", "", 0, 0, 0, KEEP},
    {"Foo", "Bar", 0, 0, 0, KEEP},
};

/* Every row from every phase: the phase matters only where it is kept. */
static void
test_with_domain(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(domain_cases); i++) {
        const struct DomainCase *c = &domain_cases[i];
        g_autofree char *text =
            g_strdup_printf("{'Spec':{'Features':%s},'Status':{'Status':'%s','Reason':'%s'}}",
                            c->acpi ? "{'ACPI':{}}" : "null",
                            c->status,
                            c->reason);
        g_autoptr(ChDomain) domain = parse_domain(text);

        for (ChPhase phase = CH_PHASE_UNSET; phase < CH_PHASE_N; phase++) {
            const ChVmiView vmi = {
                .phase = phase,
                .has_grace = c->grace_is_0,
                .migration = {.failed = c->postcopy_failed,
                              .mode = c->postcopy_failed ? "PostCopy" : ""},
            };
            const ChPhase expect = c->expect == KEEP ? phase : c->expect;
            const ChPhaseVerdict verdict =
                ch_phase_decide(&vmi, domain, CH_LAUNCHER_UNKNOWN, CH_PHASE_UNSET);

            g_assert_cmpint(verdict.phase, ==, expect);
            g_assert_cmpint(verdict.kind,
                            ==,
                            expect == phase ? CH_PHASE_VERDICT_KEEP : CH_PHASE_VERDICT_CHANGE);
        }
    }
}

static const struct NilCase {
    const char *path;
    ChPhase phase;
    bool is_target, has_failed;
    ChLauncherState launcher;
    ChPhase remembered;
    ChPhaseVerdictKind kind;
    ChPhase expect;
} nil_cases[] = {
    /* clang-format off */
    {"/phase/nil/unset-is-scheduled",            CH_PHASE_UNSET,      0, 0, 0, 0, CH_PHASE_VERDICT_CHANGE, CH_PHASE_SCHEDULED},
    {"/phase/nil/waiting-is-scheduled",          CH_PHASE_WAITING_FOR_SYNC, 1, 0, 0, 0, CH_PHASE_VERDICT_CHANGE, CH_PHASE_SCHEDULED},
    {"/phase/nil/24-running-is-failed",          CH_PHASE_RUNNING,    0, 0, 0, 0, CH_PHASE_VERDICT_CHANGE, CH_PHASE_FAILED},
    /* spec:02-14.13#18 */
    {"/phase/nil/18-running-target-waits",       CH_PHASE_RUNNING,    1, 0, 0, 0, CH_PHASE_VERDICT_CHANGE, CH_PHASE_WAITING_FOR_SYNC},
    /* spec:02-14.13#18 */
    {"/phase/nil/18-failed-target-stays",        CH_PHASE_RUNNING,    1, 1, 0, 0, CH_PHASE_VERDICT_KEEP, CH_PHASE_RUNNING},
    {"/phase/nil/final-stays",                   CH_PHASE_SUCCEEDED,  0, 0, 0, 0, CH_PHASE_VERDICT_KEEP, CH_PHASE_SUCCEEDED},
    {"/phase/nil/scheduled-asks-the-launcher",   CH_PHASE_SCHEDULED,  0, 0, CH_LAUNCHER_UNKNOWN, 0, CH_PHASE_VERDICT_NEEDS_LAUNCHER, CH_PHASE_SCHEDULED},
    {"/phase/nil/09-not-initialized-waits",      CH_PHASE_SCHEDULED,  0, 0, CH_LAUNCHER_NOT_INITIALIZED, 0, CH_PHASE_VERDICT_KEEP_AND_WAIT, CH_PHASE_SCHEDULED},
    {"/phase/nil/10-unresponsive-is-failed",     CH_PHASE_SCHEDULED,  0, 0, CH_LAUNCHER_UNRESPONSIVE, 0, CH_PHASE_VERDICT_CHANGE, CH_PHASE_FAILED},
    {"/phase/nil/unresponsive-target-waits",     CH_PHASE_SCHEDULED,  1, 0, CH_LAUNCHER_UNRESPONSIVE, 0, CH_PHASE_VERDICT_CHANGE, CH_PHASE_WAITING_FOR_SYNC},
    {"/phase/nil/responsive-stays-scheduled",    CH_PHASE_SCHEDULED,  0, 0, CH_LAUNCHER_RESPONSIVE, 0, CH_PHASE_VERDICT_KEEP, CH_PHASE_SCHEDULED},
    {"/phase/nil/41-what-was-computed-is-kept",  CH_PHASE_RUNNING,    0, 0, 0, CH_PHASE_SUCCEEDED, CH_PHASE_VERDICT_CHANGE, CH_PHASE_SUCCEEDED},
    /* clang-format on */
};

static void
test_nil(gconstpointer data)
{
    const struct NilCase *c = data;
    const ChVmiView vmi = {
        .phase = c->phase,
        .is_migration_target = c->is_target,
        .migration = {.failed = c->has_failed, .mode = ""},
    };
    const ChDomain gone = {
        .is_deleted = true, .status = CH_DOMAIN_NO_STATE, .status_text = "NoState"};
    const ChPhaseVerdict verdict = ch_phase_decide(&vmi, NULL, c->launcher, c->remembered);
    const ChPhaseVerdict same = ch_phase_decide(&vmi, &gone, c->launcher, c->remembered);

    g_assert_cmpint(verdict.kind, ==, c->kind);
    g_assert_cmpint(verdict.phase, ==, c->expect);
    g_assert_cmpint(same.kind, ==, c->kind);
    g_assert_cmpint(same.phase, ==, c->expect);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/phase/with-domain", test_with_domain);
    for (gsize i = 0; i < G_N_ELEMENTS(nil_cases); i++)
        g_test_add_data_func(nil_cases[i].path, &nil_cases[i], test_nil);
    return g_test_run();
}
