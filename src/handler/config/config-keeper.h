/* SPDX-License-Identifier: Apache-2.0 */

/*
 * config-keeper: which KubeVirt object counts, and which configuration is in force. Spec 08 §6.1,
 * §6.2.
 *
 * A resource version is looked at once, whether it was good or not; nothing good is ever given up
 * for nothing, be the object invalid, being deleted, or gone.
 *
 * Pure. Thread: the owner's.
 */

#pragma once

#include "handler/config/cluster-config.h"

/* tlsConfiguration, as the object has it: it counts even where the rest is refused. Spec 08 §7.6 */
typedef struct {
    int min_version; /* 10, 11, 12, 13 for TLS 1.0 to 1.3 */
    char **ciphers;  /* Go's names, unknown ones too; empty: the library's choice */
} ChTlsSettings;

typedef struct ChConfigKeeper ChConfigKeeper;

/* @own_namespace: the agent's; only an object there can count */
ChConfigKeeper *ch_config_keeper_new(const char *own_namespace, const char *node_name);
void ch_config_keeper_free(ChConfigKeeper *keeper);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChConfigKeeper, ch_config_keeper_free)

typedef enum {
    CH_CONFIG_UNCHANGED, /* none counts, or it was looked at before */
    CH_CONFIG_UPDATED,
    CH_CONFIG_REFUSED, /* with an error */
} ChConfigOutcome;

/**
 * ch_config_keeper_look:
 * @kubevirts: ChJson, all KubeVirt objects of the cluster
 * @error: why one was refused
 */
ChConfigOutcome
ch_config_keeper_look(ChConfigKeeper *keeper, const GPtrArray *kubevirts, GError **error);

/* Borrowed until the next look. */
ChClusterConfig *ch_config_keeper_peek(const ChConfigKeeper *keeper);
const ChTlsSettings *ch_config_keeper_peek_tls(const ChConfigKeeper *keeper);

/* Of the object that was refused last; "" when none was. Borrowed. */
const char *ch_config_keeper_refused_version(const ChConfigKeeper *keeper);

/**
 * ch_kubevirt_choose: the object that counts: in @own_namespace, with a phase and not being
 * deleted. As in v1.9.0, which looks for a name first, another namespace's object may vouch for it.
 *
 * Returns: (transfer none) (nullable): of several always the same one, the first by name
 */
const ChJson *ch_kubevirt_choose(const GPtrArray *kubevirts, const char *own_namespace);
