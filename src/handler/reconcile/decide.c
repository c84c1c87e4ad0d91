/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/decide.h"

#include "lib/base/time.h"

static const struct {
    const char *text;
    bool fetches_fact;
} actions[] = {
    /* clang-format off */
    [CH_ACTION_INVALID]         = {"invalid",         false},
    [CH_ACTION_ASK_CLUSTER]     = {"ask cluster",     true},
    [CH_ACTION_PROBE_LAUNCHER]  = {"probe launcher",  true},
    [CH_ACTION_PROBE_STALE]     = {"probe stale",     true},
    [CH_ACTION_CLEAN_UP_FAILED] = {"clean up failed", true},
    [CH_ACTION_ASK_IO_RETRY]    = {"ask I/O retry",   true},
    [CH_ACTION_IGNORE]          = {"ignore",          false},
    [CH_ACTION_LISTEN]          = {"listen",          false},
    [CH_ACTION_CLEAN_UP_STALE]  = {"clean up stale",  false},
    [CH_ACTION_DELETE]          = {"delete",          false},
    [CH_ACTION_SHUT_DOWN]       = {"shut down",       false},
    [CH_ACTION_DESTROY]         = {"destroy",         false},
    [CH_ACTION_START]           = {"start",           false},
    [CH_ACTION_UPDATE]          = {"update",          false},
    [CH_ACTION_REFUSE_UPDATE]   = {"refuse update",   false},
    [CH_ACTION_NONE]            = {"none",            false},
    [CH_ACTION_MIGRATE_SOURCE]  = {"migrate source",  false},
    [CH_ACTION_MIGRATE_TARGET]  = {"migrate target",  false},
    /* clang-format on */
};
G_STATIC_ASSERT(G_N_ELEMENTS(actions) == CH_ACTION_N);

const char *
ch_action_text(ChAction action)
{
    g_return_val_if_fail(action < CH_ACTION_N, "invalid");
    return actions[action].text;
}

bool
ch_action_fetches_fact(ChAction action)
{
    g_return_val_if_fail(action < CH_ACTION_N, false);
    return actions[action].fetches_fact;
}

/* What is true in a pass; the rows below ask for nothing else. */
typedef enum {
    EXISTS = 1u << 0,
    GONE = 1u << 1,
    WRITTEN = 1u << 2, /* by us, and it is on its way back */
    FINAL = 1u << 3,
    RUNNING = 1u << 4, /* the phase, not the domain */

    UNREACHABLE = 1u << 5, /* the domain is there, its launcher does not answer */
    ALIVE = 1u << 6,
    IO_ERROR = 1u << 7,
    POSTCOPY_FAILED = 1u << 8,
    MIGRATED = 1u << 9,

    STALE_DOMAIN = 1u << 10, /* the domain belongs to another VM of this name */
    STALE_RECORD = 1u << 11, /* only a ghost record is left here: of another VM of this name, or
                                of this one, which lives elsewhere */
    STALE_PROBED = 1u << 12,
    STALE_WAIT = 1u << 13,
    STALE_DEAD = 1u << 14,

    FAILED_MIGRATING = 1u << 15, /* and what is left here is not cleaned up yet */
    IN_PROGRESS = 1u << 16,      /* a migration that the owner must not disturb */
    ELSEWHERE = 1u << 17,        /* another node owns the VMI */
    LEAVING = 1u << 18,          /* the VMI is a (decentralised) migration source */
    SOURCE = 1u << 19,           /* roles of this node in a migration */
    TARGET = 1u << 20,

    STOP = 1u << 21,   /* a living domain is to be stopped */
    REMOVE = 1u << 22, /* what is left is to be removed */

    PHASE_CHANGES = 1u << 23,
    PHASE_UNCLEAR = 1u << 24, /* not without the launcher's state */
    PROBED = 1u << 25,
    STARTING = 1u << 26, /* the launcher is not initialized */
    DEAD = 1u << 27,     /* the launcher does not answer */
    IO_ASKED = 1u << 28,
    IO_LATER = 1u << 29,
    SYNCED = 1u << 30, /* and the launcher has had no time to report what runs */
} Truth;

#define NOT_OURS(truths) (((truths) & (IN_PROGRESS | ELSEWHERE | LEAVING)) != 0)

typedef struct {
    unsigned all;  /* every one of these holds */
    unsigned none; /* none of these does */
    ChAction action;
    int64_t requeue_us;
    const char *reason;
} Row;

#define S(seconds) ((seconds)*CH_SECOND_US)

/* clang-format off */

/* 01 §17: before it is known that the VMI is this node's to reconcile. First match wins. */
static const Row execute_rows[] = {
    {0, EXISTS | GONE,                 CH_ACTION_ASK_CLUSTER,     0, "not in the local store"},
    {WRITTEN, 0,                       CH_ACTION_IGNORE,          0, "an own write has not come back yet"},
    {STALE_DOMAIN, STALE_PROBED,       CH_ACTION_PROBE_STALE,     0, "the domain is another VM's"},
    {STALE_DOMAIN | STALE_WAIT, 0,     CH_ACTION_IGNORE,       S(1), "another VM of this name starts"},
    {STALE_DOMAIN | STALE_DEAD, 0,     CH_ACTION_CLEAN_UP_STALE, S(5), "another VM of this name is gone"},
    {STALE_DOMAIN, 0,                  CH_ACTION_IGNORE,          0, "another VM of this name runs"},
    {STALE_RECORD, STALE_PROBED,       CH_ACTION_PROBE_STALE,     0, "a ghost record that is not this VM's"},
    {STALE_RECORD | STALE_DEAD, 0,     CH_ACTION_CLEAN_UP_STALE, S(5), "a ghost record of a VM that is gone"},
    {MIGRATED, 0,                      CH_ACTION_DELETE,          0, "the domain was migrated away"},
    {FAILED_MIGRATING, 0,              CH_ACTION_CLEAN_UP_FAILED, 0, "failed while migrating"},
};

/* 01 §15.2, §17 rows 9 to 11: not the owner's business; perhaps this node's in another role. */
static const Row not_ours_rows[] = {
    {TARGET, 0,                        CH_ACTION_MIGRATE_TARGET,  0, "this node is the migration's target"},
    {SOURCE, 0,                        CH_ACTION_MIGRATE_SOURCE,  0, "this node is the migration's source"},
    {IN_PROGRESS | EXISTS | ALIVE, UNREACHABLE | ELSEWHERE, CH_ACTION_LISTEN, 0, "a migration is in progress, or a VM starts"},
    {IN_PROGRESS, 0,                   CH_ACTION_IGNORE,          0, "a migration is in progress"},
    {ELSEWHERE, 0,                     CH_ACTION_IGNORE,          0, "owned by another node"},
    {LEAVING, 0,                       CH_ACTION_IGNORE,          0, "the VMI leaves for another cluster"},
};

/* 01 §18 and §22 step 1: the owner's. The last row matches all that is left. */
static const Row sync_rows[] = {
    {UNREACHABLE, 0,                   CH_ACTION_IGNORE,          0, "the launcher cannot be reached"},
    {PHASE_UNCLEAR, 0,                 CH_ACTION_PROBE_LAUNCHER,  0, "the phase depends on the launcher"},
    {STOP, 0,                          CH_ACTION_SHUT_DOWN,       0, "the domain is to stop"},
    {POSTCOPY_FAILED, 0,               CH_ACTION_DESTROY,         0, "the post-copy migration failed"},
    {REMOVE, 0,                        CH_ACTION_DELETE,          0, "what is left is removed"},
    {PHASE_CHANGES, 0,                 CH_ACTION_NONE,            0, "the phase changes first"},
    {TARGET, 0,                        CH_ACTION_MIGRATE_TARGET,  0, "this node is the migration's target"},
    {SOURCE, 0,                        CH_ACTION_MIGRATE_SOURCE,  0, "this node is the migration's source"},
    {IO_ERROR, IO_ASKED,               CH_ACTION_ASK_IO_RETRY,    0, "paused by an I/O error"},
    {IO_ERROR | IO_LATER, 0,           CH_ACTION_NONE,            0, "paused by an I/O error: not now"},
    {0, PROBED,                        CH_ACTION_PROBE_LAUNCHER,  0, "does the launcher answer"},
    {STARTING, 0,                      CH_ACTION_NONE,         S(1), "the launcher is not initialized"},
    {DEAD, 0,                          CH_ACTION_REFUSE_UPDATE,   0, "the launcher does not answer"},
    {SYNCED, RUNNING,                  CH_ACTION_NONE,         S(1), "what the launcher reports is on its way"},
    {RUNNING, 0,                       CH_ACTION_UPDATE,          0, "the domain follows the VMI"},
    {0, 0,                             CH_ACTION_START,           0, "the VMI is to start"},
};

/* clang-format on */

static const Row *
first_match(const Row *rows, gsize n_rows, unsigned truths)
{
    for (gsize i = 0; i < n_rows; i++)
        if ((truths & rows[i].all) == rows[i].all && (truths & rows[i].none) == 0)
            return &rows[i];
    return NULL;
}

static unsigned
when(bool condition, unsigned truth)
{
    return condition ? truth : 0;
}

/* --- facts -> truths --- */

bool
ch_decide_awaits_write(bool exists, bool expectations_satisfied)
{
    return exists && !expectations_satisfied;
}

const char *
ch_decide_uid(const ChFacts *facts)
{
    if (facts->vmi != NULL)
        return facts->vmi->uid;
    if (facts->domain != NULL && facts->domain->uid[0] != '\0')
        return facts->domain->uid;
    return facts->ghost_uid != NULL ? facts->ghost_uid : "";
}

bool
ch_decide_migration_in_progress(const ChVmiView *vmi, const ChDomain *domain)
{
    if (vmi != NULL && vmi->migration.has_start && !vmi->migration.has_end)
        return true;
    if (vmi != NULL && vmi->is_migration_target && !vmi->migration.completed)
        return true;
    return ch_domain_is_migrating(domain);
}

static unsigned
truths_of_domain(const ChDomain *domain)
{
    if (domain == NULL)
        return 0;
    return when(domain->status == CH_DOMAIN_UNKNOWN, UNREACHABLE) |
           when(ch_domain_is_alive(domain), ALIVE) | when(ch_domain_is_migrated(domain), MIGRATED) |
           when(domain->status == CH_DOMAIN_PAUSED && domain->reason == CH_REASON_IO_ERROR,
                IO_ERROR) |
           when(domain->status == CH_DOMAIN_PAUSED && domain->reason == CH_REASON_POSTCOPY_FAILED,
                POSTCOPY_FAILED);
}

/* Whose domain it is. A launcher's first reports have no UID; they came from the one on record. */
static const char *
domain_owner(const ChFacts *facts, const ChDomain *domain)
{
    if (domain->uid[0] == '\0' && facts->ghost_uid != NULL)
        return facts->ghost_uid;
    return domain->uid;
}

/* A ghost record without a domain that does not stand for the VMI as this node's own: 01 §28,
 * FR-B01. */
static bool
is_record_stale(const ChFacts *facts, const ChDomain *domain)
{
    const ChVmiView *vmi = facts->vmi;

    if (domain != NULL || facts->ghost_uid == NULL || facts->ghost_uid[0] == '\0')
        return false;
    if (!g_str_equal(facts->ghost_uid, vmi->uid))
        return true;
    return !ch_vmi_is_owned_by(vmi, facts->node) && ch_vmi_is_migration_done(vmi) &&
           !ch_decide_migration_in_progress(vmi, NULL);
}

/* Does the key stand for two VMs: the one in the API and one that is or was here? */
static unsigned
truths_of_predecessor(const ChFacts *facts, const ChDomain *domain)
{
    if (facts->vmi == NULL)
        return 0;
    return when(domain != NULL && !g_str_equal(domain_owner(facts, domain), facts->vmi->uid),
                STALE_DOMAIN) |
           when(is_record_stale(facts, domain), STALE_RECORD) |
           when(facts->stale_launcher != CH_LAUNCHER_UNKNOWN, STALE_PROBED) |
           when(facts->stale_launcher == CH_LAUNCHER_NOT_INITIALIZED, STALE_WAIT) |
           when(facts->stale_launcher == CH_LAUNCHER_UNRESPONSIVE, STALE_DEAD);
}

static bool
has_source_role(const ChVmiView *vmi, const char *node)
{
    const bool is_over =
        vmi->is_decentralised ? vmi->phase == CH_PHASE_SUCCEEDED : ch_phase_is_final(vmi->phase);

    return !vmi->is_deleting && !is_over && !ch_vmi_is_migration_done(vmi) &&
           ch_vmi_has_source_role(vmi, node);
}

static unsigned
truths_of_migration(const ChFacts *facts, const ChDomain *domain)
{
    const ChVmiView *vmi = facts->vmi;
    const bool is_deleting = vmi != NULL && vmi->is_deleting;
    unsigned truths =
        when(!is_deleting && ch_decide_migration_in_progress(vmi, domain), IN_PROGRESS);

    if (vmi == NULL)
        return truths;
    return truths | when(!ch_vmi_is_owned_by(vmi, facts->node), ELSEWHERE) |
           when(vmi->is_migration_source, LEAVING) |
           when(has_source_role(vmi, facts->node), SOURCE) |
           when(vmi->migration.exists && g_str_equal(vmi->target_node_label, facts->node), TARGET) |
           when(vmi->phase == CH_PHASE_FAILED && !facts->cleaned_up_failed &&
                    ch_vmi_is_migrating(vmi, facts->now_us),
                FAILED_MIGRATING);
}

static unsigned
truths_of_launcher(const ChFacts *facts)
{
    return when(facts->launcher != CH_LAUNCHER_UNKNOWN, PROBED) |
           when(facts->launcher == CH_LAUNCHER_NOT_INITIALIZED, STARTING) |
           when(facts->launcher == CH_LAUNCHER_UNRESPONSIVE, DEAD) |
           when(facts->io_retry != CH_IO_RETRY_UNKNOWN, IO_ASKED) |
           when(facts->io_retry == CH_IO_RETRY_LATER, IO_LATER);
}

/* A launcher's report from the middle of a start, which may be read after it: nothing has ended. */
static bool
is_start_under_way(const ChVmiView *vmi, const ChDomain *domain)
{
    return vmi != NULL && vmi->phase != CH_PHASE_RUNNING && ch_domain_is_unstarted(domain);
}

/* 01 §18.1, the five reasons to shut down or to delete. */
static unsigned
truths_of_ending(const ChVmiView *vmi, const ChDomain *domain)
{
    const bool is_alive = ch_domain_is_alive(domain);
    const bool is_final = vmi != NULL && ch_phase_is_final(vmi->phase);
    const bool is_marked =
        domain != NULL && domain->grace.is_marked && vmi != NULL && vmi->phase == CH_PHASE_RUNNING;
    const bool is_unwanted = vmi == NULL || vmi->is_deleting || is_marked;
    const bool has_ended = domain != NULL && !is_alive && !is_start_under_way(vmi, domain);

    return when(is_unwanted && is_alive, STOP) |
           when((is_unwanted && !is_alive) || is_final || has_ended, REMOVE);
}

static unsigned
truths_of_phase(const ChVmiView *vmi, ChPhaseVerdictKind verdict)
{
    if (vmi == NULL)
        return 0;
    return when(ch_phase_is_final(vmi->phase), FINAL) |
           when(vmi->phase == CH_PHASE_RUNNING, RUNNING) |
           when(verdict == CH_PHASE_VERDICT_CHANGE, PHASE_CHANGES) |
           when(verdict == CH_PHASE_VERDICT_NEEDS_LAUNCHER, PHASE_UNCLEAR);
}

static ChPhaseVerdictKind
phase_verdict(const ChFacts *facts, const ChDomain *domain)
{
    if (facts->vmi == NULL || ch_phase_is_final(facts->vmi->phase))
        return CH_PHASE_VERDICT_KEEP;
    return ch_phase_decide(facts->vmi, domain, facts->launcher, facts->remembered).kind;
}

static unsigned
truths_of(const ChFacts *facts, const ChDomain *domain)
{
    return when(facts->vmi != NULL, EXISTS) |
           when(facts->vmi == NULL && facts->existence == CH_EXISTENCE_GONE, GONE) |
           when(ch_decide_awaits_write(facts->vmi != NULL, facts->expectations_satisfied),
                WRITTEN) |
           truths_of_domain(domain) | truths_of_predecessor(facts, domain) |
           truths_of_migration(facts, domain) | truths_of_launcher(facts) |
           truths_of_ending(facts->vmi, domain) |
           when(facts->is_sync_fresh && (domain == NULL || ch_domain_is_unstarted(domain)),
                SYNCED) |
           truths_of_phase(facts->vmi, phase_verdict(facts, domain));
}

/* --- the answer --- */

static const char *
uid_of_action(const ChFacts *facts, ChAction action)
{
    const ChDomain *domain = ch_domain_live(facts->domain);

    if (action != CH_ACTION_PROBE_STALE && action != CH_ACTION_CLEAN_UP_STALE)
        return ch_decide_uid(facts);
    return domain != NULL ? domain_owner(facts, domain) : facts->ghost_uid;
}

/* What holds for every action of the owner, whichever it is. */
static void
add_owner_duties(ChDecision *decision, const ChFacts *facts, unsigned truths)
{
    const ChDomain *domain = ch_domain_live(facts->domain);
    int64_t wait_us = 0;

    if (decision->action == CH_ACTION_IGNORE || decision->action == CH_ACTION_CLEAN_UP_STALE ||
        ch_action_fetches_fact(decision->action))
        return;

    decision->updates_status = (truths & EXISTS) && !(truths & FINAL);
    decision->post_stop_hook = (truths & FINAL) && !(truths & ALIVE);
    if (decision->action == CH_ACTION_SHUT_DOWN || decision->action == CH_ACTION_DESTROY)
        decision->shutdown = ch_shutdown_plan(facts->vmi,
                                              domain,
                                              decision->action == CH_ACTION_SHUT_DOWN,
                                              facts->stopping_for_us,
                                              facts->now_us);

    if (phase_verdict(facts, domain) == CH_PHASE_VERDICT_KEEP_AND_WAIT)
        wait_us = CH_SECOND_US;
    else if ((truths & IO_LATER) && (truths & IO_ERROR))
        wait_us = facts->io_retry_delay_us;
    if (decision->requeue_us == 0)
        decision->requeue_us = wait_us;
}

ChDecision
ch_decide(const ChFacts *facts)
{
    const ChDomain *domain = ch_domain_live(facts->domain);
    const unsigned truths = truths_of(facts, domain);
    const Row *row = first_match(execute_rows, G_N_ELEMENTS(execute_rows), truths);
    bool is_owners = false;
    ChDecision decision;

    if (row == NULL && NOT_OURS(truths))
        row = first_match(not_ours_rows, G_N_ELEMENTS(not_ours_rows), truths);
    if (row == NULL) {
        row = first_match(sync_rows, G_N_ELEMENTS(sync_rows), truths);
        is_owners = true;
    }

    decision = (ChDecision){
        .action = row->action,
        .reason = row->reason,
        .uid = uid_of_action(facts, row->action),
        .drops_expectations = (truths & GONE) != 0,
        .requeue_us = row->requeue_us,
    };
    if (is_owners)
        add_owner_duties(&decision, facts, truths);
    return decision;
}

char *
ch_decide_log_line(const ChVmiView *vmi, const ChDomain *domain)
{
    g_autofree char *vmi_half = NULL;
    g_autofree char *domain_half = NULL;

    vmi_half = vmi != NULL ? g_strdup_printf("VMI is in phase: %s", vmi->phase_text)
                           : g_strdup("VMI does not exist");
    domain = ch_domain_live(domain);
    domain_half = domain != NULL ? g_strdup_printf("Domain status: %s, reason: %s",
                                                   domain->status_text,
                                                   domain->reason_text)
                                 : g_strdup("Domain does not exist");
    return g_strconcat(vmi_half, " | ", domain_half, NULL);
}
