/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A whole pure pass: VMI, Domain and guest info, a line each, through the decision and the status.
 * What was written once is no news a second time.
 */

#include "handler/reconcile/decide.h"
#include "handler/reconcile/status.h"

#include <string.h>

#define NOW_US G_GINT64_CONSTANT(1795910400000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ChStatusNode node = {
    .name = "node01",
    .architecture = "amd64",
    .gate_vgpu_live_migration = true,
    .gate_cross_architecture = true,
};

/* Every fact that is asked for is given once: the pass must come to an end. */
static void
fuzz_decide(const ChVmiView *vmi, const ChDomain *domain)
{
    ChFacts facts = {
        .node = "node01",
        .vmi = vmi,
        .existence = CH_EXISTENCE_EXISTS,
        .domain = domain,
        .ghost_uid = "old",
        .expectations_satisfied = true,
        .now_us = NOW_US,
    };
    g_autofree char *line = ch_decide_log_line(vmi, domain);
    int n_asked = 0;

    for (ChDecision decision = ch_decide(&facts); ch_action_fetches_fact(decision.action);
         decision = ch_decide(&facts)) {
        if (decision.action == CH_ACTION_PROBE_LAUNCHER)
            facts.launcher = CH_LAUNCHER_RESPONSIVE;
        else if (decision.action == CH_ACTION_PROBE_STALE)
            facts.stale_launcher = CH_LAUNCHER_RESPONSIVE;
        else if (decision.action == CH_ACTION_CLEAN_UP_FAILED)
            facts.cleaned_up_failed = true;
        else if (decision.action == CH_ACTION_ASK_IO_RETRY)
            facts.io_retry = CH_IO_RETRY_NOW;
        g_assert_cmpint(++n_asked, <=, 4);
    }
}

static void
fuzz_status(const ChJson *vmi, const ChDomain *domain, const ChGuestInfo *info)
{
    static const char *const mounted[] = {"d", NULL};
    static const char *const ips[] = {"10.244.0.3", "fd00::3", NULL};
    static const ChPodAddresses addresses = {"default", "10.244.0.3", ips};
    ChStatusInput input = {
        .vmi = vmi,
        .domain = domain,
        .launcher = CH_LAUNCHER_RESPONSIVE,
        .guest_info = info,
        .selinux_context = "none",
        .pod_addresses = &addresses,
        .n_pod_addresses = 1,
        .mounted_volumes = mounted,
        .local_timestamp = "20261129-000000",
        .now_us = NOW_US,
    };
    g_autoptr(ChStatusResult) first = ch_status(&input, &node);
    g_autoptr(ChStatusResult) second = NULL;

    g_assert_true(ch_json_equal(ch_json_at(vmi, "spec"), ch_json_at(first->vmi, "spec")));
    if (first->phase_changed) /* a phase may lead on to the next */
        return;
    input.vmi = first->vmi;
    second = ch_status(&input, &node);
    g_assert_false(second->changed);
}

/* The text up to the next newline, or to the end; moves on. */
static const char *
take_line(const char **rest, gsize *left, gssize *out_length)
{
    const char *line = *rest;
    const char *end = memchr(line, '\n', *left);
    const gsize length = end != NULL ? (gsize)(end - line) : *left;

    *out_length = (gssize)length;
    *rest += end != NULL ? length + 1 : length;
    *left -= end != NULL ? length + 1 : length;
    return line;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *rest = (const char *)data;
    gsize left = size;
    gssize length;
    const char *line = take_line(&rest, &left, &length);
    g_autoptr(ChJson) document = ch_json_parse(line, length, NULL);
    g_autoptr(ChDomain) domain = NULL;
    g_autoptr(ChGuestInfo) info = NULL;
    ChVmiView vmi;

    if (!ch_json_is_object(document))
        return 0; /* the watch takes objects only */
    line = take_line(&rest, &left, &length);
    domain = ch_domain_parse(line, length, NULL);
    line = take_line(&rest, &left, &length);
    info = ch_guest_info_parse(line, length, NULL);

    ch_vmi_view_init(&vmi, document);
    fuzz_decide(&vmi, domain);
    fuzz_status(document, domain, info);
    return 0;
}
