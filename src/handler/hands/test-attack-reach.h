/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-attack-reach: which operations are done while a hostile pod swaps what they touch, and by
 * which program, or why not. A program that attacks others than those that stand here fails, and so
 * does each for an operation that does not stand here. For test programs only.
 */

#pragma once

#include "handler/hands/test-fake-enemy.h"

#define REACH_START   "attack"
#define REACH_VOLUMES "attack-volumes"
#define REACH_DAEMONS "attack-daemons"

#define REACH_NO_PATH                                                                              \
    "it joins the pod's network by pidfd; no path or socket of the pod's is looked up"
#define REACH_NUMBERS                                                                              \
    "processes and threads, by their numbers in our own /proc; no path or socket of the pod's"

/* Either is set. */
static const struct {
    const char *programs; /* with blanks between */
    const char *why_not;
} attack_reach[CH_HANDS_OP_N] = {
    [CH_HANDS_OP_HELLO] = {.why_not = "it touches nothing"},
    [CH_HANDS_OP_LOOK] = {REACH_START},
    [CH_HANDS_OP_MARK] = {REACH_START},
    [CH_HANDS_OP_PROBE] = {REACH_START},
    [CH_HANDS_OP_CONNECT] = {REACH_START},
    [CH_HANDS_OP_RECONNECT] = {REACH_START},
    [CH_HANDS_OP_PIPE_OPEN] = {REACH_START},
    [CH_HANDS_OP_PIPE_CLOSE] = {REACH_START},
    [CH_HANDS_OP_DEVICES_OWN] = {REACH_START " " REACH_VOLUMES},
    [CH_HANDS_OP_RELEASE] = {.why_not = "it touches the table of pods only"},
    [CH_HANDS_OP_NET_OPEN] = {.why_not = REACH_NO_PATH},
    [CH_HANDS_OP_NET_SEND] = {.why_not = REACH_NO_PATH},
    [CH_HANDS_OP_NET_CLOSE] = {.why_not = "it touches the table of pods only"},
    [CH_HANDS_OP_TAP_MAKE] = {.why_not = REACH_NO_PATH},
    [CH_HANDS_OP_SYSCTLS_SET] = {.why_not = REACH_NO_PATH},
    [CH_HANDS_OP_DHCP_STORE] = {REACH_START},
    [CH_HANDS_OP_DHCP_REMOVE] = {REACH_START},
    [CH_HANDS_OP_CACHE_OWN] = {.why_not = "the file is in the agent's own directory"},
    [CH_HANDS_OP_IMAGE_STAT] = {REACH_START},
    [CH_HANDS_OP_LABEL_READ] = {.why_not = "of the root that is held; no name in it is looked up"},
    [CH_HANDS_OP_PASST_REPAIR] = {REACH_START},
    [CH_HANDS_OP_SOURCE_LOOK] = {REACH_START},
    [CH_HANDS_OP_TARGET_LOOK] = {REACH_START},
    [CH_HANDS_OP_MOUNT] = {REACH_START " " REACH_VOLUMES},
    [CH_HANDS_OP_UNMOUNT] = {REACH_START " " REACH_VOLUMES},
    [CH_HANDS_OP_IMAGE_SUM] = {REACH_START},
    [CH_HANDS_OP_NODE_LOOK] = {REACH_VOLUMES},
    [CH_HANDS_OP_NODE_MAKE] = {REACH_VOLUMES},
    [CH_HANDS_OP_NODE_REMOVE] = {REACH_VOLUMES},
    [CH_HANDS_OP_SWEEP] = {REACH_VOLUMES},
    [CH_HANDS_OP_DEVICES_LOOK] = {REACH_VOLUMES},
    [CH_HANDS_OP_DEVICES_SET] = {REACH_VOLUMES},
    [CH_HANDS_OP_MEMLOCK_SET] = {.why_not = REACH_NUMBERS},
    [CH_HANDS_OP_HOUSE_KEEP] = {REACH_VOLUMES},
    [CH_HANDS_OP_REALTIME_SET] = {.why_not = REACH_NUMBERS},
    [CH_HANDS_OP_PIT_SET] = {.why_not = REACH_NUMBERS},
    [CH_HANDS_OP_BLOCK_OWN] = {REACH_VOLUMES},
    [CH_HANDS_OP_VIRTIOFS_OWN] = {REACH_VOLUMES},
    [CH_HANDS_OP_DISK_PREPARE] = {REACH_VOLUMES},
    [CH_HANDS_OP_METRICS_WRITE] = {REACH_START},
    [CH_HANDS_OP_METRICS_CONNECT] = {REACH_START},
    [CH_HANDS_OP_MULTIPATH_WATCH] = {.why_not = "it watches the node's /run, where no pod writes"},
    [CH_HANDS_OP_MULTIPATH_SET] = {REACH_DAEMONS},
    [CH_HANDS_OP_RESERVATION_WATCH] = {REACH_DAEMONS},
    [CH_HANDS_OP_RESERVATION_OWN] = {REACH_DAEMONS},
};

/* @program: whose operations these are */
static inline void
attack_reach_check(const char *program, const EnemyOperation *operations, gsize n_operations)
{
    for (uint32_t op = CH_HANDS_OP_INVALID + 1; op < CH_HANDS_OP_N; op++) {
        const char *programs = attack_reach[op].programs;
        g_auto(GStrv) names = g_strsplit(programs != NULL ? programs : "", " ", -1);
        bool is_asked = false;

        if ((programs != NULL) == (attack_reach[op].why_not != NULL))
            g_error("%s: who attacks it, or why does nobody?", ch_hands_op_name(op));
        for (gsize i = 0; i < n_operations; i++)
            is_asked = is_asked || operations[i].request.op == op;
        if (g_strv_contains((const char *const *)names, program) != is_asked)
            g_error("%s: %s", ch_hands_op_name(op), is_asked ? "is attacked" : "is not attacked");
    }
}
