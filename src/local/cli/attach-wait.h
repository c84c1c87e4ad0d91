/* SPDX-License-Identifier: Apache-2.0 */

/*
 * attach-wait: waits until a volume is plugged in, or taken out, and tells what it waits for.
 *
 * Ctrl-C ends the waiting, never a step half done. Thread: the command's. Blocks: for the API
 * server, and until the deadline.
 */

#pragma once

#include "local/cli/client.h"

#define CH_ATTACH_LIMIT_S 180

typedef struct {
    ChClient *client;
    const ChCli *cli;
    const char *vm;
    const char *volume;
    bool attaches; /* false: it goes */
    int limit_s;
} ChAttachWait;

typedef enum {
    CH_ATTACH_DONE,
    CH_ATTACH_FAILED,  /* it goes on without us */
    CH_ATTACH_REFUSED, /* somebody else has the disk */
} ChAttachOutcome;

/* From here on Ctrl-C only ends ch_attach_wait(); a second one ends the program. */
void ch_attach_defer_interrupt(void);

/**
 * ch_attach_wait:
 * @out_target: (out) (optional) (transfer full): what the guest's disk is called
 *
 * Returns: with @error unless it is done
 */
ChAttachOutcome ch_attach_wait(const ChAttachWait *wait, char **out_target, GError **error);
