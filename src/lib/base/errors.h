/* SPDX-License-Identifier: Apache-2.0 */

/*
 * errors: the two error domains of the plumbing, and raising an error in one statement.
 *
 * An error says that the operation failed and the caller cannot repair it (style: outcomes that a
 * caller branches on are enum return values instead). Messages are lower-case, without period,
 * values quoted. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

/* Code is the positive errno. */
#define CH_ERRNO (ch_errno_quark())
GQuark ch_errno_quark(void);

/* For errors without an errno; a code exists only where somebody matches it. */
#define CH_ERROR (ch_error_quark())
GQuark ch_error_quark(void);

typedef enum {
    CH_ERROR_FAILED = 1, /* nothing to match on: the message says it all */
    CH_ERROR_INVALID,    /* bytes from outside are not what they must be */
    CH_ERROR_LIMIT,      /* larger, deeper or more than this program accepts */
    CH_ERROR_TIMEOUT,    /* the deadline passed */
    CH_ERROR_CLOSED,     /* the other side, or our own shutdown, ended it */
    CH_ERROR_NOT_FOUND,
    CH_ERROR_EXISTS,
} ChErrorCode;

#define CH_ERRNO_TEXT_SIZE 64 /* bytes, with the zero at the end */

/**
 * ch_errno_print: the text of an errno as Go has it, since events and log lines end with it: that
 * of the C library, in English whatever the locale, and lower-case. Allocates nothing.
 * @errnum: positive
 *
 * Returns: @buffer
 */
const char *ch_errno_print(int errnum, char buffer[CH_ERRNO_TEXT_SIZE]);

/**
 * ch_fail_errno:
 * @error: (out) (optional): where to put it
 * @errnum: positive errno, captured by the caller right after the failing call
 * @format: what was tried, e.g. "open '%s'"; the text of @errnum is appended after ": "
 *
 * Returns: always false, so that raising is one statement
 */
#define ch_fail_errno(error, errnum, ...)                                                          \
    ({                                                                                             \
        ch_error_set_errno(error, errnum, __VA_ARGS__);                                            \
        false; /* in sight of the compiler and the analyzers */                                    \
    })
void ch_error_set_errno(GError **error, int errnum, const char *format, ...) G_GNUC_PRINTF(3, 4);

/**
 * ch_fail:
 * @error: (out) (optional): where to put it
 * @code: a code of CH_ERROR
 *
 * Returns: always false
 */
#define ch_fail(error, code, ...)                                                                  \
    ({                                                                                             \
        ch_error_set(error, code, __VA_ARGS__);                                                    \
        false;                                                                                     \
    })
void ch_error_set(GError **error, ChErrorCode code, const char *format, ...) G_GNUC_PRINTF(3, 4);
