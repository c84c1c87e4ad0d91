/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cni-call: runs one CNI plugin for one pod. Thread: a worker's. Blocks: CH_CNI_TIMEOUT_US at most.
 * Spec: CNI specification 1.0 (environment, exit status).
 */

#pragma once

#include "local/podrunner/record.h"

#define CH_CNI_TIMEOUT_US (20 * CH_SECOND_US)

typedef struct {
    const char *command; /* "ADD", "DEL" */
    const char *plugin;
    const char *link;   /* in the pod */
    const char *config; /* JSON */
    const char *args;   /* (nullable): CNI_ARGS */
} ChCniCall;

/* Returns: false with one sentence for people: there is no such program in @cni_path */
bool ch_cni_check_plugin(const char *cni_path, const char *plugin, GError **error);

/**
 * ch_cni_call:
 * @cni_path: directories by colon, in which plugins are looked for
 * @record: of the pod; its namespace may be gone, as DEL may be told
 * @out_text: (out) (optional) (transfer full): what the plugin printed
 *
 * Returns: false with one sentence for people
 */
bool ch_cni_call(const char *cni_path,
                 const ChRecord *record,
                 const ChCniCall *call,
                 char **out_text,
                 GError **error);
