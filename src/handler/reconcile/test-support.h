/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-support: documents in tests, written with single quotes. Included by test-*.c only.
 */

#pragma once

#include "handler/launcher/domain.h"
#include "handler/reconcile/status.h"
#include "lib/json/test-text.h"

#include <string.h>

/* 2026-11-29T00:00:00Z */
#define TEST_NOW_US G_GINT64_CONSTANT(1795910400000000)

/* NULL gives NULL. */
static inline G_GNUC_UNUSED ChDomain *
parse_domain(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *quoted = text != NULL ? double_quoted(text) : NULL;
    ChDomain *domain = quoted != NULL ? ch_domain_parse(quoted, -1, &error) : NULL;

    g_assert_no_error(error);
    return domain;
}

static const ChStatusNode test_node G_GNUC_UNUSED = {
    .name = "node01",
    .architecture = "amd64",
    .cpu_model = "kvm64",
    .gate_image_volume = true,
};

/* One status pass over a VMI of @spec and @status (members without braces) with @domain (nullable);
 * @node NULL: test_node. */
static inline G_GNUC_UNUSED ChStatusResult *
run_status(const char *spec, const char *status, const char *domain_text, const ChStatusNode *node)
{
    g_autofree char *text = g_strdup_printf(
        "{'metadata':{'namespace':'ns','name':'vm','uid':'u'},'spec':{%s},'status':{%s}}",
        spec,
        status);
    g_autoptr(ChJson) vmi = parse_json(text);
    g_autoptr(ChDomain) domain = parse_domain(domain_text);

    return ch_status(
        &(ChStatusInput){
            .vmi = vmi,
            .domain = domain,
            .launcher = CH_LAUNCHER_RESPONSIVE,
            .local_timestamp = "20261129-010203",
            .now_us = TEST_NOW_US,
        },
        node != NULL ? node : &test_node);
}

/* The condition of the type in the new document, borrowed; NULL when there is none. */
static inline G_GNUC_UNUSED const ChJson *
condition_of(const ChStatusResult *result, const char *type)
{
    return ch_json_find(ch_json_at(result->vmi, "status", "conditions"), "type", type);
}
