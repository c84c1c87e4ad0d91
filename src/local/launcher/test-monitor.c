/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/monitor.h"

#include <glib.h>
#include <signal.h>
#include <unistd.h>

#define N_LEFT_OVERS 15

/* Every end of a child wakes the monitor; that must not shorten the ten seconds. */
static void
test_left_overs_are_waited_for(void)
{
    int status = -1;

    if (ch_monitor_fork("/no/such/directory", &status)) {
        for (guint i = 1; i <= N_LEFT_OVERS; i++)
            if (fork() == 0) { /* lint: banned-call, no thread exists */
                signal(SIGTERM, SIG_IGN);
                g_usleep(i * 100 * 1000);
                _exit(0);
            }
        _exit(7);
    }
    g_assert_cmpint(status, ==, 7);
}

static void
test_launcher_killed_by_a_signal(void)
{
    int status = -1;

    if (ch_monitor_fork("/no/such/directory", &status)) {
        kill(getpid(), SIGKILL);
        _exit(0);
    }
    g_assert_cmpint(status, ==, 255);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/monitor/left-overs-are-waited-for", test_left_overs_are_waited_for);
    g_test_add_func("/monitor/launcher-killed-by-a-signal", test_launcher_killed_by_a_signal);
    return g_test_run();
}
