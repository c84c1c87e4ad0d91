/* SPDX-License-Identifier: Apache-2.0 */

/*
 * command: runs one helper program (crun, tar, qemu-img) to its end, with a deadline.
 *
 * No shell. What the program leaves running is not waited for. Thread: a worker's.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CH_COMMAND_MAX_TEXT_BYTES (8u << 20)

typedef struct {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
    int64_t timeout_us;
    int out_fd; /* becomes its stdout, borrowed; 0: collected */
    int err_fd; /* becomes its stderr, borrowed; 0: collected for the error's message */
    bool reads_hostile_input;       /* limited to 1 GiB of address space and 30 s of CPU time */
    const char *input;              /* (nullable): what it reads from stdin; NULL: /dev/null */
    const char *const *environment; /* (nullable): all of it, "NAME=value"; NULL: as ours */
    bool is_group; /* at the deadline also what it started is killed, unless that left its group */
} ChCommand;

/* How a program ended; for those that tell of their failure in words of their own. */
typedef struct {
    int status; /* 128 and the signal that killed it */
    char *out;  /* owned: what was collected, any bytes before the first NUL */
    char *err;
} ChCommandEnd;

void ch_command_end_clear(ChCommandEnd *end);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChCommandEnd, ch_command_end_clear)

/**
 * ch_command_run:
 * @out_text: (out) (optional) (transfer full): what it wrote to stdout, if collected
 *
 * Returns: false with CH_ERROR_TIMEOUT (it was killed), CH_ERROR_LIMIT (it wrote too much), or
 * CH_ERROR_FAILED (it ended badly: the message has its last words). Blocks: up to
 * @command->timeout_us, and up to 5 s more for a group that was killed
 */
bool ch_command_run(const ChCommand *command, char **out_text, GError **error);

/**
 * ch_command_run_to_end: the same, but a bad end is no error.
 * @out_end: (out): filled on success
 *
 * Returns: false with CH_ERROR_TIMEOUT or CH_ERROR_LIMIT, or when it could not be started. Blocks:
 * as ch_command_run()
 */
bool ch_command_run_to_end(const ChCommand *command, ChCommandEnd *out_end, GError **error);
