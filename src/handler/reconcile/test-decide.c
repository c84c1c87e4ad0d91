/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/decide.h"

#include "handler/reconcile/test-decide-model.h"
#include "handler/reconcile/test-support.h"
#include "lib/base/time.h"

/* --- the scenarios of spec 01 §30 (numbers), as far as they are decisions --- */

#define HERE                                                                                       \
    "'metadata':{'namespace':'ns','name':'vm','uid':'u1','labels':{'kubevirt.io/"                  \
    "nodeName':'node01'}}"
#define DELETING                                                                                   \
    "'metadata':{'namespace':'ns','name':'vm','uid':'u1','deletionTimestamp':"                     \
    "'2026-11-29T00:00:00Z','labels':{'kubevirt.io/nodeName':'node01'}}"
#define ELSEWHERE                                                                                  \
    "'metadata':{'namespace':'ns','name':'vm','uid':'u1','labels':{'kubevirt.io/"                  \
    "nodeName':'node02'}}"
#define STARTED "'migrationState':{'startTimestamp':'2026-11-28T00:00:00Z'}"

#define DOMAIN(uid, status, reason)                                                                \
    "{'Spec':{'Metadata':{'KubeVirt':{'UID':'" uid "'}}},'Status':{'Status':'" status              \
    "','Reason':'" reason "'}}"
#define DOMAIN_WITH(metadata, status, reason)                                                      \
    "{'Spec':{'Metadata':{'KubeVirt':{'UID':'u1'," metadata "}}},'Status':{'Status':'" status      \
    "','Reason':'" reason "'}}"

static const struct DecideCase {
    const char *path;
    const char *vmi;    /* NULL: gone */
    const char *domain; /* NULL: none */
    const char *ghost_uid;
    ChLauncherState launcher, stale;
    ChIoRetry io_retry;
    ChAction expect;
    int64_t expect_requeue_ms;
    bool expect_status;
} cases[] = {
    /* clang-format off */
    {"/decide/01-dead-domain-without-vmi", NULL, DOMAIN("u1", "", ""), NULL, 0, 0, 0, CH_ACTION_DELETE, 0, false},
    {"/decide/02-live-domain-without-vmi", NULL, DOMAIN("u1", "Running", "Unknown"), NULL, 0, 0, 0, CH_ACTION_SHUT_DOWN, 0, false},
    {"/decide/03-crashed-domain-without-vmi", NULL, DOMAIN_WITH("'GracePeriod':{'DeletionGracePeriodSeconds':1}", "Crashed", "Unknown"), NULL, 0, 0, 0, CH_ACTION_DELETE, 0, false},
    {"/decide/08-another-vms-domain-is-probed", "{" HERE ",'status':{'phase':'Scheduled'}}", DOMAIN("old", "Running", ""), NULL, 0, 0, 0, CH_ACTION_PROBE_STALE, 0, false},
    {"/decide/08-another-vms-domain-runs", "{" HERE ",'status':{'phase':'Scheduled'}}", DOMAIN("old", "Running", ""), NULL, 0, CH_LAUNCHER_RESPONSIVE, 0, CH_ACTION_IGNORE, 0, false},
    {"/decide/another-vms-domain-starts", "{" HERE ",'status':{'phase':'Scheduled'}}", DOMAIN("old", "Running", ""), NULL, 0, CH_LAUNCHER_NOT_INITIALIZED, 0, CH_ACTION_IGNORE, 1000, false},
    {"/decide/107-another-vms-domain-is-cleaned", "{" HERE ",'status':{'phase':'Scheduled'}}", DOMAIN("old", "Running", ""), NULL, 0, CH_LAUNCHER_UNRESPONSIVE, 0, CH_ACTION_CLEAN_UP_STALE, 5000, false},
    {"/decide/a-domain-without-uid-is-another-vms", "{" HERE ",'status':{'phase':'Running'}}", "{'Status':{'Status':'Running'}}", NULL, 0, 0, 0, CH_ACTION_PROBE_STALE, 0, false},
    {"/decide/09-not-initialized", "{" HERE ",'status':{'phase':'Scheduled'}}", NULL, NULL, CH_LAUNCHER_NOT_INITIALIZED, 0, 0, CH_ACTION_NONE, 1000, true},
    {"/decide/10-unresponsive-is-failed", "{" HERE ",'status':{'phase':'Scheduled'}}", NULL, NULL, CH_LAUNCHER_UNRESPONSIVE, 0, 0, CH_ACTION_NONE, 0, true},
    {"/decide/11-succeeded-without-domain", "{" HERE ",'status':{'phase':'Succeeded'}}", NULL, NULL, 0, 0, 0, CH_ACTION_DELETE, 0, false},
    {"/decide/12-deleting-without-domain", "{" DELETING ",'status':{'phase':'Scheduled'}}", NULL, NULL, CH_LAUNCHER_RESPONSIVE, 0, 0, CH_ACTION_DELETE, 0, true},
    {"/decide/12-its-phase-may-need-the-launcher", "{" DELETING ",'status':{'phase':'Scheduled'}}", NULL, NULL, 0, 0, 0, CH_ACTION_PROBE_LAUNCHER, 0, false},
    {"/decide/16-postcopy-failed", "{" HERE ",'status':{'phase':'Running','migrationState':{}}}", DOMAIN("u1", "Paused", "PostcopyFailed"), NULL, 0, 0, 0, CH_ACTION_DESTROY, 0, true},
    {"/decide/17-deleting-while-migrating", "{" DELETING ",'status':{'phase':'Running'," STARTED "}}", DOMAIN("u1", "Running", ""), NULL, 0, 0, 0, CH_ACTION_SHUT_DOWN, 0, true},
    {"/decide/18-scheduled-starts", "{" HERE ",'status':{'phase':'Scheduled'}}", NULL, "u1", CH_LAUNCHER_RESPONSIVE, 0, 0, CH_ACTION_START, 0, true},
    {"/decide/19-running-updates", "{" HERE ",'status':{'phase':'Running'}}", DOMAIN("u1", "Running", ""), NULL, CH_LAUNCHER_RESPONSIVE, 0, 0, CH_ACTION_UPDATE, 0, true},
    {"/decide/22-phase-changes-first", "{" HERE ",'status':{'phase':'Scheduled'}}", DOMAIN("u1", "Running", ""), NULL, 0, 0, 0, CH_ACTION_NONE, 0, true},
    {"/decide/24-running-without-domain", "{" HERE ",'status':{'phase':'Running'}}", NULL, NULL, 0, 0, 0, CH_ACTION_NONE, 0, true},
    {"/decide/37-elsewhere", "{" ELSEWHERE ",'status':{'phase':'Running','nodeName':'node02'}}", NULL, NULL, 0, 0, 0, CH_ACTION_IGNORE, 0, false},
    {"/decide/38-migration-in-progress", "{" HERE ",'status':{'phase':'Running'," STARTED "}}", DOMAIN_WITH("'Migration':{'StartTimestamp':'2026-11-28T00:00:00Z'}", "Running", ""), NULL, 0, 0, 0, CH_ACTION_LISTEN, 0, false},
    {"/decide/paused-to-start-is-listened-to", "{" HERE ",'status':{'phase':'Scheduled'}}", DOMAIN("u1", "Paused", "StartingUp"), NULL, 0, 0, 0, CH_ACTION_LISTEN, 0, false},
    {"/decide/92-unreachable-and-deleting", "{" DELETING ",'status':{'phase':'Running'}}", DOMAIN("u1", "Unknown", ""), NULL, 0, 0, 0, CH_ACTION_IGNORE, 0, false},
    {"/decide/93-migrated-away", "{" ELSEWHERE ",'status':{'phase':'Running'}}", DOMAIN("u1", "Shutoff", "Migrated"), NULL, 0, 0, 0, CH_ACTION_DELETE, 0, false},
    {"/decide/94-failed-while-migrating", "{" HERE ",'status':{'phase':'Failed'," STARTED "}}", NULL, NULL, 0, 0, 0, CH_ACTION_CLEAN_UP_FAILED, 0, false},
    {"/decide/105-io-error-asks", "{" HERE ",'status':{'phase':'Running'}}", DOMAIN("u1", "Paused", "IOError"), NULL, 0, 0, 0, CH_ACTION_ASK_IO_RETRY, 0, false},
    {"/decide/105-io-error-waits", "{" HERE ",'status':{'phase':'Running'}}", DOMAIN("u1", "Paused", "IOError"), NULL, 0, 0, CH_IO_RETRY_LATER, CH_ACTION_NONE, 7000, true},
    {"/decide/105-io-error-retries", "{" HERE ",'status':{'phase':'Running'}}", DOMAIN("u1", "Paused", "IOError"), NULL, CH_LAUNCHER_RESPONSIVE, 0, CH_IO_RETRY_NOW, CH_ACTION_UPDATE, 0, true},
    {"/decide/108-old-record-is-probed", "{" HERE ",'status':{'phase':'Scheduled'}}", NULL, "old", 0, 0, 0, CH_ACTION_PROBE_STALE, 0, false},
    {"/decide/108-old-record-is-cleaned", "{" HERE ",'status':{'phase':'Scheduled'}}", NULL, "old", 0, CH_LAUNCHER_UNRESPONSIVE, 0, CH_ACTION_CLEAN_UP_STALE, 5000, false},
    {"/decide/old-record-whose-launcher-lives-stays", "{" HERE ",'status':{'phase':'Scheduled'}}", NULL, "old", CH_LAUNCHER_RESPONSIVE, CH_LAUNCHER_RESPONSIVE, 0, CH_ACTION_START, 0, true},
    {"/decide/old-record-of-a-vmi-elsewhere", "{" ELSEWHERE ",'status':{'phase':'Running'}}", NULL, "old", 0, CH_LAUNCHER_UNRESPONSIVE, 0, CH_ACTION_CLEAN_UP_STALE, 5000, false},
    {"/decide/b01-record-of-a-vm-that-left-is-probed", "{" ELSEWHERE ",'status':{'phase':'Running'}}", NULL, "u1", 0, 0, 0, CH_ACTION_PROBE_STALE, 0, false},
    {"/decide/b01-record-of-a-vm-that-left-is-cleaned", "{" ELSEWHERE ",'status':{'phase':'Running'}}", NULL, "u1", 0, CH_LAUNCHER_UNRESPONSIVE, 0, CH_ACTION_CLEAN_UP_STALE, 5000, false},
    {"/decide/b01-its-launcher-lives", "{" ELSEWHERE ",'status':{'phase':'Running'}}", NULL, "u1", 0, CH_LAUNCHER_RESPONSIVE, 0, CH_ACTION_IGNORE, 0, false},
    {"/decide/b01-not-during-a-migration", "{" ELSEWHERE ",'status':{'phase':'Running'," STARTED "}}", NULL, "u1", 0, 0, 0, CH_ACTION_IGNORE, 0, false},
    {"/decide/a-domain-without-uid-is-the-recorded-vms", "{" HERE ",'status':{'phase':'Running'}}", "{'Status':{'Status':'Running'}}", "u1", CH_LAUNCHER_RESPONSIVE, 0, 0, CH_ACTION_UPDATE, 0, true},
    {"/decide/update-of-a-dead-launcher-is-refused", "{" HERE ",'status':{'phase':'Running'}}", DOMAIN("u1", "Running", ""), NULL, CH_LAUNCHER_UNRESPONSIVE, 0, 0, CH_ACTION_REFUSE_UPDATE, 0, true},
    {"/decide/marked-for-shutdown", "{" HERE ",'status':{'phase':'Running'}}", DOMAIN_WITH("'GracePeriod':{'MarkedForGracefulShutdown':true}", "Running", ""), NULL, 0, 0, 0, CH_ACTION_SHUT_DOWN, 0, true},
    {"/decide/dead-domain-of-a-running-vmi", "{" HERE ",'status':{'phase':'Running'}}", DOMAIN("u1", "Shutoff", "Shutdown"), NULL, 0, 0, 0, CH_ACTION_DELETE, 0, true},
    {"/decide/unstarted-domain-is-to-start", "{" HERE ",'status':{'phase':'Scheduled'}}", DOMAIN("u1", "Shutoff", "Unknown"), NULL, CH_LAUNCHER_RESPONSIVE, 0, 0, CH_ACTION_START, 0, true},
    {"/decide/unstarted-domain-of-a-dead-launcher", "{" HERE ",'status':{'phase':'Scheduled'}}", DOMAIN("u1", "Shutoff", "Unknown"), NULL, CH_LAUNCHER_UNRESPONSIVE, 0, 0, CH_ACTION_REFUSE_UPDATE, 0, true},
    {"/decide/unstarted-domain-that-nobody-wants", "{" DELETING ",'status':{'phase':'Scheduled'}}", DOMAIN("u1", "Shutoff", "Unknown"), NULL, 0, 0, 0, CH_ACTION_DELETE, 0, true},
    {"/decide/unstarted-domain-of-a-running-vmi", "{" HERE ",'status':{'phase':'Running'}}", DOMAIN("u1", "Shutoff", "Unknown"), NULL, 0, 0, 0, CH_ACTION_DELETE, 0, true},
    {"/decide/domain-that-failed-to-start", "{" HERE ",'status':{'phase':'Scheduled'}}", DOMAIN("u1", "Shutoff", "Failed"), NULL, 0, 0, 0, CH_ACTION_DELETE, 0, true},
    {"/decide/final-with-live-domain", "{" HERE ",'status':{'phase':'Failed'}}", DOMAIN("u1", "Running", ""), NULL, 0, 0, 0, CH_ACTION_DELETE, 0, false},
    {"/decide/leaving-for-another-cluster", "{" HERE ",'status':{'phase':'Running','migrationState':{'targetState':{'syncAddress':'a','nodeAddress':'b'}}}}", DOMAIN("u1", "Running", ""), NULL, 0, 0, 0, CH_ACTION_IGNORE, 0, false},
    {"/decide/pending-migration-of-the-source", "{" HERE ",'status':{'phase':'Running','nodeName':'node01','migrationState':{'sourceNode':'node01'}}}", DOMAIN("u1", "Running", ""), NULL, 0, 0, 0, CH_ACTION_MIGRATE_SOURCE, 0, true},
    {"/decide/target-of-a-migration", "{'metadata':{'uid':'u1','labels':{'kubevirt.io/nodeName':'node02','kubevirt.io/migrationTargetNodeName':'node01'}},'status':{'phase':'Running','migrationState':{}}}", NULL, NULL, 0, 0, 0, CH_ACTION_MIGRATE_TARGET, 0, false},
    /* clang-format on */
};

static void
test_decide(gconstpointer data)
{
    const struct DecideCase *c = data;
    g_autoptr(ChJson) document = c->vmi != NULL ? parse_json(c->vmi) : NULL;
    g_autoptr(ChDomain) domain = parse_domain(c->domain);
    ChVmiView vmi;
    ChDecision decision;

    ch_vmi_view_init(&vmi, document);
    decision = ch_decide(&(ChFacts){
        .node = "node01",
        .vmi = document != NULL ? &vmi : NULL,
        .existence = document != NULL ? CH_EXISTENCE_EXISTS : CH_EXISTENCE_GONE,
        .domain = domain,
        .ghost_uid = c->ghost_uid,
        .expectations_satisfied = true,
        .launcher = c->launcher,
        .stale_launcher = c->stale,
        .io_retry = c->io_retry,
        .io_retry_delay_us = 7 * CH_SECOND_US,
        .stopping_for_us = -1,
        .now_us = TEST_NOW_US,
    });
    g_assert_cmpstr(ch_action_text(decision.action), ==, ch_action_text(c->expect));
    g_assert_cmpint(decision.requeue_us, ==, c->expect_requeue_ms * CH_MS_US);
    g_assert_true(decision.updates_status == c->expect_status);
    g_assert_true(decision.drops_expectations == (document == NULL));
    if (decision.action == CH_ACTION_CLEAN_UP_STALE || decision.action == CH_ACTION_PROBE_STALE)
        g_assert_cmpstr(decision.uid, ==, domain != NULL ? domain->uid : c->ghost_uid);
    else
        g_assert_cmpstr(decision.uid, ==, "u1");
}

/* Row 11's final VMI runs its hooks on every pass; one with a live domain does not. */
static void
test_post_stop_hook(void)
{
    const ChVmiView vmi = {.uid = "u",
                           .phase = CH_PHASE_SUCCEEDED,
                           .node_label = "node01",
                           .status_node = "",
                           .target_node_label = ""};
    const ChDomain domain = {.uid = "u", .status = CH_DOMAIN_RUNNING, .status_text = "Running"};
    ChFacts facts = {.node = "node01",
                     .vmi = &vmi,
                     .existence = CH_EXISTENCE_EXISTS,
                     .expectations_satisfied = true};

    g_assert_true(ch_decide(&facts).post_stop_hook);
    facts.domain = &domain;
    g_assert_false(ch_decide(&facts).post_stop_hook);
}

/* A launcher that answered a sync, and did not report yet, is not synced again, but for a second.
 */
static void
test_fresh_sync(void)
{
    const ChVmiView vmi = {.uid = "u",
                           .phase = CH_PHASE_SCHEDULED,
                           .node_label = "node01",
                           .status_node = "",
                           .target_node_label = ""};
    const ChDomain unstarted = {.uid = "u",
                                .status = CH_DOMAIN_SHUTOFF,
                                .status_text = "Shutoff",
                                .reason_text = "Unknown"};
    ChFacts facts = {.node = "node01",
                     .vmi = &vmi,
                     .existence = CH_EXISTENCE_EXISTS,
                     .expectations_satisfied = true,
                     .launcher = CH_LAUNCHER_RESPONSIVE,
                     .is_sync_fresh = true};
    ChDecision decision = ch_decide(&facts);

    g_assert_cmpint(decision.action, ==, CH_ACTION_NONE);
    g_assert_cmpint(decision.requeue_us, ==, CH_SECOND_US);
    g_assert_true(decision.updates_status);
    facts.domain = &unstarted;
    g_assert_cmpint(ch_decide(&facts).action, ==, CH_ACTION_NONE);
    facts.launcher = CH_LAUNCHER_UNRESPONSIVE; /* it died */
    g_assert_cmpint(ch_decide(&facts).action, ==, CH_ACTION_REFUSE_UPDATE);
    facts.launcher = CH_LAUNCHER_RESPONSIVE;
    facts.is_sync_fresh = false;
    g_assert_cmpint(ch_decide(&facts).action, ==, CH_ACTION_START);
}

/* --- every combination --- */

static const struct {
    ChDomainStatus status;
    ChDomainReason reason;
    const char *status_text;
} domain_kinds[] = {
    {CH_DOMAIN_RUNNING, CH_REASON_OTHER, "Running"},
    {CH_DOMAIN_PAUSED, CH_REASON_IO_ERROR, "Paused"},
    {CH_DOMAIN_PAUSED, CH_REASON_POSTCOPY_FAILED, "Paused"},
    {CH_DOMAIN_PAUSED, CH_REASON_STARTING_UP, "Paused"},
    {CH_DOMAIN_SHUTTING_DOWN, CH_REASON_OTHER, "ShuttingDown"},
    {CH_DOMAIN_SHUTOFF, CH_REASON_SHUTDOWN, "Shutoff"},
    {CH_DOMAIN_SHUTOFF, CH_REASON_MIGRATED, "Shutoff"},
    {CH_DOMAIN_SHUTOFF, CH_REASON_OTHER, "Shutoff"},
    {CH_DOMAIN_NO_STATE, CH_REASON_OTHER, "NoState"},
    {CH_DOMAIN_UNKNOWN, CH_REASON_OTHER, "Unknown"},
    {CH_DOMAIN_OTHER, CH_REASON_OTHER, ""},
};

static const ChPhase phases[] = {
    CH_PHASE_UNSET,
    CH_PHASE_SCHEDULED,
    CH_PHASE_RUNNING,
    CH_PHASE_SUCCEEDED,
    CH_PHASE_FAILED,
};

/* 0: none, 1: pending, 2: running, 3: done, 4: pending with this node as target */
#define N_MIGRATIONS 5

#define N_VMIS    (2 + G_N_ELEMENTS(phases) * 2 * 2 * 2 * N_MIGRATIONS)
#define N_DOMAINS (2 + G_N_ELEMENTS(domain_kinds) * 2 * 2)

/* The digit of a mixed-radix number: takes it off @number. */
static unsigned
take(unsigned *number, unsigned radix)
{
    const unsigned digit = *number % radix;

    *number /= radix;
    return digit;
}

static ChVmiView
make_vmi(unsigned number)
{
    ChVmiView vmi = {
        .namespace_ = "ns",
        .name = "vm",
        .uid = "u1",
        .status_node = "",
        .target_node_label = "",
        .migration = {.mode = "", .source_node = "", .target_node = "", .target_node_address = ""},
    };
    unsigned migration;

    vmi.phase = phases[take(&number, G_N_ELEMENTS(phases))];
    vmi.is_deleting = take(&number, 2);
    vmi.node_label = take(&number, 2) ? "node01" : "node02";
    vmi.is_migration_source = take(&number, 2);
    migration = take(&number, N_MIGRATIONS);
    vmi.migration.exists = migration > 0;
    vmi.migration.source_node = migration > 0 && migration < 4 ? vmi.node_label : "";
    vmi.status_node = vmi.migration.source_node;
    vmi.migration.has_start = migration == 2 || migration == 3;
    vmi.migration.has_end = migration == 3;
    vmi.migration.completed = migration == 3;
    vmi.target_node_label = migration == 4 ? "node01" : "";
    return vmi;
}

/* 0: none, 1: one that was deleted */
static const ChDomain *
make_domain(unsigned number, ChDomain *domain)
{
    unsigned kind;

    if (number == 0)
        return NULL;
    *domain = (ChDomain){.uid = "u1", .is_deleted = true, .status_text = "NoState"};
    if (number == 1)
        return domain;
    number -= 2;
    kind = take(&number, G_N_ELEMENTS(domain_kinds));
    *domain = (ChDomain){
        .status = domain_kinds[kind].status,
        .reason = domain_kinds[kind].reason,
        .status_text = domain_kinds[kind].status_text,
        .reason_text = domain_kinds[kind].reason == CH_REASON_OTHER ? "Unknown" : "",
        .uid = take(&number, 2) ? "u1" : "old",
        .grace = {.exists = true, .grace_s = 30, .is_marked = take(&number, 2) != 0},
    };
    return domain;
}

/* Asking again after a fact was fetched ends: nothing is asked for that is known. */
static void
assert_fetches_unknown_facts_only(const ChFacts *facts, const ChDecision *decision)
{
    if (decision->action == CH_ACTION_ASK_CLUSTER)
        g_assert_cmpint(facts->existence, ==, CH_EXISTENCE_UNKNOWN);
    if (decision->action == CH_ACTION_PROBE_LAUNCHER)
        g_assert_cmpint(facts->launcher, ==, CH_LAUNCHER_UNKNOWN);
    if (decision->action == CH_ACTION_PROBE_STALE)
        g_assert_cmpint(facts->stale_launcher, ==, CH_LAUNCHER_UNKNOWN);
    if (decision->action == CH_ACTION_CLEAN_UP_FAILED)
        g_assert_false(facts->cleaned_up_failed);
    if (decision->action == CH_ACTION_ASK_IO_RETRY)
        g_assert_cmpint(facts->io_retry, ==, CH_IO_RETRY_UNKNOWN);
}

#define BIT(action) (1u << (action))

/* What may be done for a VMI that is not there, or another node's. */
static const unsigned for_gone = BIT(CH_ACTION_IGNORE) | BIT(CH_ACTION_DELETE) |
                                 BIT(CH_ACTION_SHUT_DOWN) | BIT(CH_ACTION_DESTROY);
static const unsigned for_elsewhere = BIT(CH_ACTION_IGNORE) | BIT(CH_ACTION_DELETE) |
                                      BIT(CH_ACTION_PROBE_STALE) | BIT(CH_ACTION_CLEAN_UP_STALE) |
                                      BIT(CH_ACTION_CLEAN_UP_FAILED) |
                                      BIT(CH_ACTION_MIGRATE_SOURCE) | BIT(CH_ACTION_MIGRATE_TARGET);
static const unsigned needs_launcher = BIT(CH_ACTION_START) | BIT(CH_ACTION_UPDATE);

static void
assert_safe(const ChFacts *facts, const ChDecision *decision)
{
    const ChVmiView *vmi = facts->vmi;
    const unsigned action = BIT(decision->action);

    g_assert_true(decision->action > CH_ACTION_INVALID && decision->action < CH_ACTION_N);
    g_assert_nonnull(decision->reason);
    g_assert_nonnull(decision->uid);
    if (decision->action == CH_ACTION_SHUT_DOWN || decision->action == CH_ACTION_DESTROY) {
        g_assert_true(ch_domain_is_alive(facts->domain));
        g_assert_cmpint(decision->shutdown.step, !=, CH_SHUTDOWN_INVALID);
    }
    g_assert_true(ch_decide_awaits_write(vmi != NULL, facts->expectations_satisfied) ==
                  g_str_equal(decision->reason, "an own write has not come back yet"));
    if (vmi == NULL) {
        g_assert_true(facts->existence == CH_EXISTENCE_UNKNOWN || (action & for_gone) != 0);
        g_assert_false(decision->updates_status);
        return;
    }
    if (ch_decide_awaits_write(vmi != NULL, facts->expectations_satisfied))
        g_assert_cmpint(decision->action, ==, CH_ACTION_IGNORE);
    if (!ch_vmi_is_owned_by(vmi, "node01"))
        g_assert_true((action & for_elsewhere) != 0);
    if ((action & needs_launcher) != 0) {
        g_assert_false(vmi->is_deleting || ch_phase_is_final(vmi->phase));
        g_assert_cmpint(facts->launcher, ==, CH_LAUNCHER_RESPONSIVE);
        g_assert_true((decision->action == CH_ACTION_UPDATE) == (vmi->phase == CH_PHASE_RUNNING));
    }
    if (decision->updates_status)
        g_assert_true(ch_vmi_is_owned_by(vmi, "node01") && !ch_phase_is_final(vmi->phase));
    /* A launcher that cannot be reached suspends everything about its own VM (trap 4). */
    if (ch_domain_live(facts->domain) != NULL && facts->domain->status == CH_DOMAIN_UNKNOWN &&
        g_str_equal(facts->domain->uid, vmi->uid) && !facts->vmi->migration.exists)
        g_assert_true(decision->action == CH_ACTION_IGNORE);
}

static void
check_facts(const ChFacts *facts, unsigned *seen)
{
    const ChDecision decision = ch_decide(facts);

    *seen |= BIT(decision.action);
    assert_fetches_unknown_facts_only(facts, &decision);
    assert_safe(facts, &decision);
}

/* All that the shell may have found out so far. */
static void
check_with_every_fact(ChFacts *facts, unsigned *seen)
{
    static const char *const ghosts[] = {NULL, "u1", "old"};

    for (unsigned combination = 0; combination < 3 * 4 * 4 * 3 * 2 * 2; combination++) {
        unsigned rest = combination;

        facts->ghost_uid = ghosts[take(&rest, 3)];
        facts->launcher = take(&rest, CH_LAUNCHER_N);
        facts->stale_launcher = take(&rest, CH_LAUNCHER_N);
        facts->io_retry = take(&rest, CH_IO_RETRY_N);
        facts->cleaned_up_failed = take(&rest, 2);
        facts->is_sync_fresh = take(&rest, 2);
        check_facts(facts, seen);
    }
}

static void
test_every_combination_has_one_safe_answer(void)
{
    unsigned seen = 0;

    for (unsigned v = 0; v < N_VMIS; v++) {
        const ChVmiView vmi = make_vmi(v >= 2 ? v - 2 : 0);

        for (unsigned d = 0; d < N_DOMAINS; d++) {
            ChDomain storage;
            ChFacts facts = {
                .node = "node01",
                .vmi = v >= 2 ? &vmi : NULL,
                .existence = v == 0   ? CH_EXISTENCE_UNKNOWN
                             : v == 1 ? CH_EXISTENCE_GONE
                                      : CH_EXISTENCE_EXISTS,
                .domain = make_domain(d, &storage),
                .io_retry_delay_us = CH_SECOND_US,
                .stopping_for_us = -1,
                .now_us = TEST_NOW_US,
            };

            check_facts(&facts, &seen); /* an own write is on its way back */
            facts.expectations_satisfied = true;
            check_with_every_fact(&facts, &seen);
        }
    }
    /* No row is dead: every action is somebody's answer. */
    g_assert_cmphex(seen, ==, (1u << CH_ACTION_N) - 2);
}

/* --- where passes end --- */

static ModelWorld
make_world(unsigned v, unsigned d, unsigned hidden)
{
    static const char *const ghosts[] = {NULL, "u1", "old"};
    ModelWorld world = {.vmi = make_vmi(v >= 1 ? v - 1 : 0), .now_us = TEST_NOW_US};

    world.is_stored = v >= 1;
    world.is_listed = v >= 1 && take(&hidden, 2) != 0;
    world.ghost_uid = ghosts[take(&hidden, G_N_ELEMENTS(ghosts))];
    world.launcher = CH_LAUNCHER_NOT_INITIALIZED + take(&hidden, 3);
    world.stale_launcher = CH_LAUNCHER_NOT_INITIALIZED + take(&hidden, 3);
    world.io_retry = CH_IO_RETRY_NOW + take(&hidden, 2);
    world.has_domain = make_domain(d, &world.domain) != NULL;
    if (!world.has_domain)
        world.domain = (ChDomain){.uid = "", .grace = {.exists = true, .grace_s = 30}};
    return world;
}

/* A VMI that this node alone decides about, as far as that can be. */
static bool
is_own_matter(const ModelWorld *world)
{
    const ChVmiView *vmi = &world->vmi;

    return ch_vmi_is_owned_by(vmi, "node01") && !vmi->is_migration_source &&
           (vmi->is_deleting || !ch_decide_migration_in_progress(vmi, NULL));
}

/* Nothing is left of what nobody wants, unless another VM of the name lives. */
static void
assert_settled(const ModelWorld *world)
{
    const bool other_lives = world->stale_launcher == CH_LAUNCHER_RESPONSIVE;
    const bool has_live = ch_domain_live(model_domain(world)) != NULL;
    const bool is_old = world->has_domain && !g_str_equal(world->domain.uid, "u1");

    if (!world->is_stored) {
        g_assert_false(has_live);
        g_assert_null(world->ghost_uid);
    } else if (is_own_matter(world) && !(is_old && other_lives) &&
               (world->vmi.is_deleting || ch_phase_is_final(world->vmi.phase))) {
        g_assert_false(has_live);
    }
    /* A dead launcher never leaves its VM Running or on its way. */
    if (world->is_stored && is_own_matter(world) && !is_old && !world->vmi.migration.exists &&
        world->launcher == CH_LAUNCHER_UNRESPONSIVE && !(world->ghost_uid != NULL && other_lives))
        g_assert_true(ch_phase_is_final(world->vmi.phase) || world->vmi.is_deleting);
}

static void
test_every_combination_reaches_a_fixed_point(void)
{
    unsigned most = 0, seen = 0;

    for (unsigned v = 0; v < N_VMIS - 1; v++) {
        for (unsigned d = 0; d < N_DOMAINS; d++) {
            for (unsigned hidden = 0; hidden < 2 * 3 * 3 * 3 * 2; hidden++) {
                ModelWorld world = make_world(v, d, hidden);
                const unsigned passes = model_settle(&world);

                assert_settled(&world);
                most = MAX(most, passes);
                seen |= world.seen;
            }
        }
    }
    g_test_message("at most %u passes", most);
    g_assert_cmpuint(most, >, 3); /* the model moves at all */
    g_assert_cmphex(seen, ==, (1u << CH_ACTION_N) - 2);
}

/* --- the operators' line --- */

static void
test_log_line(void)
{
    const ChVmiView vmi = {.phase_text = "Running"};
    const ChDomain domain = {.status_text = "Paused", .reason_text = "User"};
    const ChDomain deleted = {.status_text = "NoState", .reason_text = "", .is_deleted = true};
    g_autofree char *both = ch_decide_log_line(&vmi, &domain);
    g_autofree char *vmi_only = ch_decide_log_line(&vmi, &deleted);
    g_autofree char *domain_only = ch_decide_log_line(NULL, &domain);
    g_autofree char *neither = ch_decide_log_line(NULL, NULL);

    g_assert_cmpstr(both, ==, "VMI is in phase: Running | Domain status: Paused, reason: User");
    g_assert_cmpstr(vmi_only, ==, "VMI is in phase: Running | Domain does not exist");
    g_assert_cmpstr(domain_only, ==, "VMI does not exist | Domain status: Paused, reason: User");
    g_assert_cmpstr(neither, ==, "VMI does not exist | Domain does not exist");
}

static void
test_uid_order(void)
{
    const ChVmiView vmi = {.uid = "vmi"};
    const ChDomain deleted = {.uid = "domain", .is_deleted = true};
    const ChDomain nameless = {.uid = "", .is_deleted = true};

    g_assert_cmpstr(
        ch_decide_uid(&(ChFacts){.vmi = &vmi, .domain = &deleted, .ghost_uid = "g"}), ==, "vmi");
    g_assert_cmpstr(ch_decide_uid(&(ChFacts){.domain = &deleted, .ghost_uid = "g"}), ==, "domain");
    g_assert_cmpstr(ch_decide_uid(&(ChFacts){.domain = &nameless, .ghost_uid = "g"}), ==, "g");
    g_assert_cmpstr(ch_decide_uid(&(ChFacts){.domain = NULL}), ==, "");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_decide);
    g_test_add_func("/decide/post-stop-hook", test_post_stop_hook);
    g_test_add_func("/decide/fresh-sync", test_fresh_sync);
    g_test_add_func("/decide/every-combination-has-one-safe-answer",
                    test_every_combination_has_one_safe_answer);
    g_test_add_func("/decide/every-combination-reaches-a-fixed-point",
                    test_every_combination_reaches_a_fixed_point);
    g_test_add_func("/decide/log-line", test_log_line);
    g_test_add_func("/decide/uid-order", test_uid_order);
    return g_test_run();
}
