/* SPDX-License-Identifier: Apache-2.0 */

/*
 * crash-point: places where a test lets the process die, to see that the next start finishes what
 * was begun.
 *
 * CH_CRASH_POINT("room/what") stands at a step's border, one line, any thread; a name stands once
 * in a program. Without -Dcrash_points (release builds) it is nothing. The names lie in a section
 * of the program, where tests/scenario/test_crash_points.py finds them: a new point is tested by
 * itself. The environment arms one: CH_CRASH=NAME:N ends the process at the Nth time it gets there;
 * CH_CRASH=trace only tells of each. No heap, no further system call: also for
 * the hands.
 */

#pragma once

#include <stdbool.h>

#ifdef CH_CRASH_POINTS

#include <glib.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CH_CRASH_STATUS 99 /* as if killed, but no other end looks like it */

static inline void
ch_crash_point_pass(const char *name, atomic_int *n_passed)
{
    const char *armed = getenv("CH_CRASH");
    const size_t length = strlen(name);
    const int n = 1 + atomic_fetch_add(n_passed, 1);
    char line[128];
    bool dies;

    if (armed == NULL)
        return;
    dies = strncmp(armed, name, length) == 0 && armed[length] == ':' &&
           strtol(armed + length + 1, NULL, 10) == n;
    if (!dies && !g_str_equal(armed, "trace"))
        return;
    (void)snprintf(line, sizeof(line), "crash point %s:%d\n", name, n);
    (void)!write(STDERR_FILENO, line, strlen(line)); /* whole, among other threads' lines */
    if (dies)
        _exit(CH_CRASH_STATUS);
}

#define CH_CRASH_POINT(point_name)                                                                 \
    do {                                                                                           \
        static const char crash_name_[] __attribute__((section("ch_crash_points"), used)) =        \
            point_name;                                                                            \
        static atomic_int crash_n_passed_;                                                         \
        ch_crash_point_pass(crash_name_, &crash_n_passed_);                                        \
    } while (0)

/* Whether a variable of the environment goes on to a program that gets none otherwise. */
static inline bool
ch_crash_point_inherits(const char *variable)
{
    return strncmp(variable, "CH_CRASH=", strlen("CH_CRASH=")) == 0;
}

#else

#define CH_CRASH_POINT(point_name)        ((void)0)
#define ch_crash_point_inherits(variable) false

#endif
