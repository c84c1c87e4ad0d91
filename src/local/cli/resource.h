/* SPDX-License-Identifier: Apache-2.0 */

/*
 * resource: names of kinds, as people type them and as manifests have them, and their URLs.
 *
 * Pure. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    const char *names[6]; /* what people type; the first is the plural of the URL */
    const char *kind;
    const char *api_version;
    bool is_namespaced;
} ChCliResource;

extern const ChCliResource *const ch_cli_vmis;

const ChCliResource *ch_cli_resource_by_name(const char *name);
/* (transfer full): "vmi, pod, ...": a short name of each */
char *ch_cli_resource_list(void);
const ChCliResource *ch_cli_resource_by_kind(const char *api_version, const char *kind);

/* (transfer full): @namespace_ NULL: of all namespaces; @name NULL: the collection */
char *ch_cli_resource_path(const ChCliResource *resource, const char *namespace_, const char *name);
