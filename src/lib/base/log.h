/* SPDX-License-Identifier: Apache-2.0 */

/*
 * log: one JSON object a line on stderr, in KubeVirt's format.
 *
 * Keys in alphabetical order, no HTML escaping, one write(2) a line. Spec 08 §11. Thread: any.
 * `lib` rooms log at verbosity 3 and above only; a failure is logged once, by whoever stops it.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    CH_LOG_INFO,
    CH_LOG_WARNING,
    CH_LOG_ERROR,
    CH_LOG_FATAL,
} ChLogLevel;

typedef struct {
    const char *key;
    const char *text; /* NULL: `number` is printed as a JSON number */
    int64_t number;
} ChLogField;

/* Further fields of a context; more is a bug of the caller. */
#define CH_LOG_MAX_FIELDS 16

/* What a line is about; all members borrowed. With a @name an object is attached: its `kind` and
 * `uid` are then printed even when empty, `namespace` only when there is one. */
typedef struct {
    const char *controller; /* "vm", "migration-source", ...; NULL outside of one */
    const char *namespace_;
    const char *name; /* NULL: no object; the other three are ignored */
    const char *kind;
    const char *uid;
    const ChLogField *fields; /* further keys, e.g. `stage` and `elapsedMs` */
    gsize n_fields;
} ChLogContext;

/**
 * ch_log_init:
 * @name: (transfer none): value of the `component` key, static storage
 *
 * Call once before threads start. Also routes GLib's own messages into the same format.
 */
void ch_log_init(const char *name);

/* Highest info verbosity that is written (default 2); negative values change nothing. Thread: any,
 * takes effect at once. */
void ch_log_set_verbosity(int verbosity);
bool ch_log_wants(int verbosity);

/**
 * ch_log_write: use the macros below, they fill in the position.
 * @verbosity: of an info line; ignored for warning and above
 * @context: (nullable): its fields replace standard keys of the same name, except `msg`
 * @reason: (nullable): its message becomes the `reason` key
 *
 * Any bytes may be in the texts; one of more than CH_LOG_MAX_TEXT bytes is cut, and says so. Keeps
 * errno, so that it can be called before errno is looked at. A `fatal` line does not end the
 * process.
 */
#define CH_LOG_MAX_TEXT 16384
void ch_log_write(ChLogLevel level,
                  int verbosity,
                  const char *file,
                  int line,
                  const ChLogContext *context,
                  const GError *reason,
                  const char *format,
                  ...) G_GNUC_PRINTF(7, 8);

/* `context` and `reason` may be NULL everywhere. */
#define ch_log_verbose(verbosity, context, ...)                                                    \
    do {                                                                                           \
        if (ch_log_wants(verbosity))                                                               \
            ch_log_write(CH_LOG_INFO, verbosity, __FILE__, __LINE__, context, NULL, __VA_ARGS__);  \
    } while (0)
#define ch_log_info(context, ...) ch_log_verbose(2, context, __VA_ARGS__)
#define ch_log_info_reason(context, reason, ...)                                                   \
    ch_log_write(CH_LOG_INFO, 2, __FILE__, __LINE__, context, reason, __VA_ARGS__)
#define ch_log_warning(context, reason, ...)                                                       \
    ch_log_write(CH_LOG_WARNING, 0, __FILE__, __LINE__, context, reason, __VA_ARGS__)
#define ch_log_error(context, reason, ...)                                                         \
    ch_log_write(CH_LOG_ERROR, 0, __FILE__, __LINE__, context, reason, __VA_ARGS__)
#define ch_log_fatal(context, reason, ...)                                                         \
    ch_log_write(CH_LOG_FATAL, 0, __FILE__, __LINE__, context, reason, __VA_ARGS__)
