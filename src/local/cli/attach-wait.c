/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/attach-wait.h"

#include <signal.h>
#include <stdio.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "local/cli/vms.h"
#include "local/cli/volume-edit.h"

#define POLL_MS     100
#define PATIENCE_US (2 * CH_SECOND_US) /* what takes no longer needs no words */

/* --- Ctrl-C ----------------------------------------------------------------------------------- */

static volatile sig_atomic_t is_interrupted;

static void
on_interrupt(int signo)
{
    is_interrupted = 1;
}

void
ch_attach_defer_interrupt(void)
{
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

/* --- words ------------------------------------------------------------------------------------ */

/* What undoes it, or goes on with it. */
static char *
advice(const ChAttachWait *wait)
{
    return wait->attaches
               ? g_strdup_printf(
                     "it goes on trying; 'chandler detach %s %s' ends that", wait->vm, wait->volume)
               : g_strdup_printf("it goes on trying; 'chandler detach %s %s' waits again",
                                 wait->vm,
                                 wait->volume);
}

static void
fail_interrupted(const ChAttachWait *wait, GError **error)
{
    g_autofree char *then = advice(wait);

    ch_fail(error,
            CH_ERROR_CLOSED,
            "interrupted before volume '%s' was %s: %s",
            wait->volume,
            wait->attaches ? "attached" : "detached",
            then);
}

static void
fail_late(const ChAttachWait *wait, const char *progress, GError **error)
{
    g_autofree char *then = advice(wait);

    ch_fail(error,
            CH_ERROR_TIMEOUT,
            "volume '%s' is not %s after %d s: %s; %s",
            wait->volume,
            wait->attaches ? "attached" : "detached",
            wait->limit_s,
            progress,
            then);
}

/* What is new, with the seconds since the beginning. */
static void
show(const ChAttachWait *wait, int64_t waited_us, const char *progress, char **last)
{
    if (waited_us < PATIENCE_US || g_strcmp0(*last, progress) == 0)
        return;
    g_free(*last);
    *last = g_strdup(progress);
    printf("%7.1f s  %s: %s\n", (double)waited_us / CH_SECOND_US, wait->volume, progress);
    fflush(stdout);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static bool
is_done(const ChAttachWait *wait, const ChJson *vmi, char **out_target)
{
    const ChJson *status = ch_vmi_volume_status(vmi, wait->volume);
    const char *target = ch_json_string_at(status, "target");

    if (!wait->attaches)
        return status == NULL;
    if (g_strcmp0(ch_json_string_at(status, "phase"), "Ready") != 0 || target == NULL ||
        *target == '\0')
        return false;
    if (out_target != NULL)
        *out_target = g_strdup(target);
    return true;
}

static bool
is_refused(const ChAttachWait *wait, const ChJson *vmi, GError **error)
{
    const ChJson *status = ch_vmi_volume_status(vmi, wait->volume);

    if (!wait->attaches ||
        g_strcmp0(ch_json_string_at(status, "reason"), CH_VOLUME_IN_USE_REASON) != 0)
        return false;
    ch_fail(error,
            CH_ERROR_EXISTS,
            "volume '%s' is refused: %s",
            wait->volume,
            ch_json_string_at(status, "message"));
    return true;
}

ChAttachOutcome
ch_attach_wait(const ChAttachWait *wait, char **out_target, GError **error)
{
    const int64_t begin_us = ch_time_now_us();
    g_autofree char *last = NULL;

    for (;;) {
        g_autoptr(ChJson) vmi = ch_vm_get(wait->client, wait->cli, wait->vm, error);
        const int64_t waited_us = ch_time_now_us() - begin_us;
        g_autofree char *progress = NULL;

        if (vmi == NULL)
            return CH_ATTACH_FAILED;
        if (ch_vm_is_final(vmi)) {
            ch_fail(error, CH_ERROR_INVALID, "the VM '%s' has ended", wait->vm);
            return CH_ATTACH_FAILED;
        }
        if (is_done(wait, vmi, out_target))
            return CH_ATTACH_DONE;
        if (is_refused(wait, vmi, error))
            return CH_ATTACH_REFUSED;
        progress = ch_vmi_volume_progress(vmi, wait->volume, wait->attaches);
        if (is_interrupted || waited_us > wait->limit_s * CH_SECOND_US) {
            is_interrupted ? fail_interrupted(wait, error) : fail_late(wait, progress, error);
            return CH_ATTACH_FAILED;
        }
        show(wait, waited_us, progress, &last);
        ch_cli_wait_ms(POLL_MS);
    }
}
