/* SPDX-License-Identifier: Apache-2.0 */

/*
 * guest-agent: is the agent in the guest good enough?
 *
 * Pure. Thread: any. Spec: 01 §24.4, 02 §8.6.
 */

#pragma once

#include "lib/json/json.h"

typedef struct {
    char *version;     /* owned; "" when not reported */
    GTree *is_enabled; /* owned: command name -> GINT_TO_POINTER(bool), the last one wins */
} ChGuestInfo;

/**
 * ch_guest_info_parse: decodes the reply of GetGuestInfo (keys by case; null and absent are empty,
 * and so is an empty text: launchers without agent support answer that).
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID or CH_ERROR_LIMIT
 */
ChGuestInfo *ch_guest_info_parse(const char *text, gssize length, GError **error);
void ch_guest_info_free(ChGuestInfo *info);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChGuestInfo, ch_guest_info_free)

/**
 * ch_guest_agent_unsupported_reason:
 * @vmi: the document; its access credentials ask for more commands
 * @version_patterns: (nullable): NULL-terminated, for agents that do not list their commands; NULL:
 *   KubeVirt's default. A pattern that is no regular expression matches nothing.
 *
 * Returns: (transfer full) (nullable): the sentence for the condition; NULL: supported
 */
char *ch_guest_agent_unsupported_reason(const ChGuestInfo *info,
                                        const ChJson *vmi,
                                        const char *const *version_patterns);
