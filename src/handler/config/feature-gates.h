/* SPDX-License-Identifier: Apache-2.0 */

/*
 * feature-gates: the gates of v1.9.0, as far as the agent knows them. Spec 08 §6.7.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

typedef struct ChFeatureGates ChFeatureGates;

/* (transfer full): nothing is listed */
ChFeatureGates *ch_feature_gates_new(void);

/**
 * ch_feature_gates_parse:
 * @developer: (nullable): spec.configuration.developerConfiguration
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID: a list is none, or of other things
 */
ChFeatureGates *ch_feature_gates_parse(const ChJson *developer, GError **error);
void ch_feature_gates_free(ChFeatureGates *gates); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChFeatureGates, ch_feature_gates_free)

/* An unregistered name is off, GA is on; then enabling wins over disabling; then beta is on. */
bool ch_feature_gates_is_on(const ChFeatureGates *gates, const char *gate);

/* Whether the list of gates to switch on has it, whatever it is. */
bool ch_feature_gates_lists(const ChFeatureGates *gates, const char *gate);
