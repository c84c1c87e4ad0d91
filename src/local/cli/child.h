/* SPDX-License-Identifier: Apache-2.0 */

/*
 * child: a program that is kept running, or ends once.
 *
 * Its output goes to a file. It ends with the supervisor. Thread: the loop's.
 */

#pragma once

#include "lib/io/loop.h"

typedef struct ChChild ChChild;

typedef enum {
    CH_CHILD_ONCE,    /* its end is reported */
    CH_CHILD_FOREVER, /* it is started anew, with growing delays */
} ChChildKind;

typedef struct {
    const char *name; /* for the log */
    char *const *argv;
    const char *log_path;
    ChChildKind kind;
    bool reports_readiness; /* by its first bytes on stdout */
} ChChildSpec;              /* all copied */

typedef struct {
    void (*on_ready)(gpointer data); /* (nullable) each time it is started */
    /* @status: as of waitpid. ONCE: it ended. FOREVER: it ended because ch_child_stop() was called,
     * or before it was ready for the first time. May free the child. */
    void (*on_end)(gpointer data, int status);
} ChChildHandlers;

ChChild *ch_child_new(ChLoop *loop,
                      const ChChildSpec *spec,
                      const ChChildHandlers *handlers,
                      gpointer data,
                      GError **error);
/* SIGTERM, SIGKILL @limit_us later. on_end comes, at once when it does not run. */
void ch_child_stop(ChChild *child, int64_t limit_us);
void ch_child_free(ChChild *child); /* kills it if it runs */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChChild, ch_child_free)
