/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/phase.h"

#define KEEP CH_PHASE_N /* in the tables below: the phase stays */

/* Without a domain, by phase; Scheduled asks the launcher first. */
static const struct {
    ChPhase plain, migration_target;
} without_domain[] = {
    /* clang-format off */
    [CH_PHASE_UNSET]            = {CH_PHASE_SCHEDULED, CH_PHASE_SCHEDULED},
    [CH_PHASE_PENDING]          = {CH_PHASE_SCHEDULED, CH_PHASE_SCHEDULED},
    [CH_PHASE_SCHEDULING]       = {CH_PHASE_SCHEDULED, CH_PHASE_SCHEDULED},
    [CH_PHASE_SCHEDULED]        = {CH_PHASE_FAILED,    CH_PHASE_WAITING_FOR_SYNC}, /* unresponsive */
    [CH_PHASE_RUNNING]          = {CH_PHASE_FAILED,    CH_PHASE_WAITING_FOR_SYNC},
    [CH_PHASE_SUCCEEDED]        = {KEEP,               KEEP},
    [CH_PHASE_FAILED]           = {KEEP,               KEEP},
    [CH_PHASE_WAITING_FOR_SYNC] = {CH_PHASE_SCHEDULED, CH_PHASE_SCHEDULED},
    [CH_PHASE_UNKNOWN]          = {CH_PHASE_SCHEDULED, CH_PHASE_SCHEDULED},
    /* clang-format on */
};
G_STATIC_ASSERT(G_N_ELEMENTS(without_domain) == CH_PHASE_N);

/* A domain that stopped, by reason; Destroyed depends on more. */
static const ChPhase after_stop[] = {
    /* clang-format off */
    [CH_REASON_OTHER]           = KEEP,
    [CH_REASON_USER]            = KEEP,
    [CH_REASON_SHUTDOWN]        = CH_PHASE_SUCCEEDED,
    [CH_REASON_DESTROYED]       = CH_PHASE_SUCCEEDED,
    [CH_REASON_MIGRATED]        = KEEP,
    [CH_REASON_CRASHED]         = CH_PHASE_FAILED,
    [CH_REASON_PANICKED]        = CH_PHASE_FAILED,
    [CH_REASON_SAVED]           = CH_PHASE_SUCCEEDED,
    [CH_REASON_FROM_SNAPSHOT]   = CH_PHASE_SUCCEEDED,
    [CH_REASON_MIGRATION]       = KEEP,
    [CH_REASON_IO_ERROR]        = KEEP,
    [CH_REASON_STARTING_UP]     = KEEP,
    [CH_REASON_POSTCOPY]        = KEEP,
    [CH_REASON_POSTCOPY_FAILED] = KEEP,
    /* clang-format on */
};
G_STATIC_ASSERT(G_N_ELEMENTS(after_stop) == CH_REASON_N);

static ChPhaseVerdict
verdict_of(const ChVmiView *vmi, ChPhase next)
{
    if (next == KEEP || next == vmi->phase)
        return (ChPhaseVerdict){CH_PHASE_VERDICT_KEEP, vmi->phase};
    return (ChPhaseVerdict){CH_PHASE_VERDICT_CHANGE, next};
}

static ChPhaseVerdict
decide_without_domain(const ChVmiView *vmi, ChLauncherState launcher, ChPhase remembered)
{
    if (ch_phase_is_final(remembered))
        return verdict_of(vmi, remembered);
    if (vmi->is_migration_target && vmi->migration.failed)
        return verdict_of(vmi, KEEP);

    if (vmi->phase == CH_PHASE_SCHEDULED) {
        if (launcher == CH_LAUNCHER_UNKNOWN)
            return (ChPhaseVerdict){CH_PHASE_VERDICT_NEEDS_LAUNCHER, vmi->phase};
        if (launcher == CH_LAUNCHER_NOT_INITIALIZED)
            return (ChPhaseVerdict){CH_PHASE_VERDICT_KEEP_AND_WAIT, vmi->phase};
        if (launcher == CH_LAUNCHER_RESPONSIVE)
            return verdict_of(vmi, KEEP);
    }
    return verdict_of(vmi,
                      vmi->is_migration_target ? without_domain[vmi->phase].migration_target
                                               : without_domain[vmi->phase].plain);
}

/* Could the guest have been stopped by an ACPI signal? Then a destroyed one did not stop well. */
static bool
is_acpi_stoppable(const ChVmiView *vmi, const ChDomain *domain)
{
    return (!vmi->has_grace || vmi->grace_s != 0) && domain->has_acpi;
}

static ChPhase
decide_after_stop(const ChVmiView *vmi, const ChDomain *domain)
{
    const bool postcopy_failed =
        vmi->migration.failed && g_str_equal(vmi->migration.mode, "PostCopy");

    if (domain->reason == CH_REASON_DESTROYED &&
        (is_acpi_stoppable(vmi, domain) || postcopy_failed))
        return CH_PHASE_FAILED;
    return after_stop[domain->reason];
}

static ChPhase
decide_with_domain(const ChVmiView *vmi, const ChDomain *domain)
{
    switch (domain->status) {
    case CH_DOMAIN_SHUTOFF:
    case CH_DOMAIN_CRASHED:
        return decide_after_stop(vmi, domain);
    case CH_DOMAIN_PAUSED:
        return domain->reason == CH_REASON_POSTCOPY_FAILED ? CH_PHASE_FAILED : CH_PHASE_RUNNING;
    case CH_DOMAIN_RUNNING:
    case CH_DOMAIN_BLOCKED:
    case CH_DOMAIN_PM_SUSPENDED:
        return CH_PHASE_RUNNING;
    case CH_DOMAIN_OTHER:
    case CH_DOMAIN_NO_STATE:
    case CH_DOMAIN_SHUTTING_DOWN:
    case CH_DOMAIN_UNKNOWN:
    case CH_DOMAIN_N:
        break;
    }
    return KEEP;
}

ChPhaseVerdict
ch_phase_decide(const ChVmiView *vmi,
                const ChDomain *domain,
                ChLauncherState launcher,
                ChPhase remembered)
{
    domain = ch_domain_live(domain);
    if (domain == NULL)
        return decide_without_domain(vmi, launcher, remembered);
    return verdict_of(vmi, decide_with_domain(vmi, domain));
}
