/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/tdx.h"

#include <glib.h>

#include "handler/node/misc-capacity.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"

#define CAPACITY_FILE "sys/fs/cgroup/misc.capacity"
#define KEY           "tdx"

void
ch_tdx_look(ChTdx *out_tdx, const char *host_root)
{
    g_autofree char *path = g_build_filename(host_root, CAPACITY_FILE, NULL);
    g_autoptr(GError) error = NULL;

    *out_tdx = (ChTdx){0};
    if (!ch_misc_capacity_read(path, KEY, &out_tdx->n_guests, &error))
        out_tdx->reason = g_strdup(error->message);
}

void
ch_tdx_clear(ChTdx *tdx)
{
    g_free(tdx->reason);
    *tdx = (ChTdx){0};
}

static void
tell_lack(const ChTdx *tdx)
{
    g_autoptr(GError) error = NULL;

    if (tdx->reason != NULL)
        (void)ch_fail(&error,
                      CH_ERROR_FAILED,
                      "failed to get TDX capacity from misc.capacity: %s",
                      tdx->reason);
    else
        (void)ch_fail(&error,
                      CH_ERROR_FAILED,
                      "an invalid device capacity of %" G_GINT64_FORMAT " was report for " KEY,
                      tdx->n_guests);
    ch_log_error(NULL, error, "failed to configure the TDX-QGS device plugin");
}

void
ch_tdx_configure(ChTdx *tdx, bool is_asked)
{
    const bool is_new = is_asked && !tdx->is_asked;

    tdx->is_asked = is_asked;
    if (is_new && tdx->n_guests <= 0)
        tell_lack(tdx);
    else if (is_new)
        ch_log_warning(
            NULL,
            NULL,
            "ignoring the gate WorkloadEncryptionTDX: the device plugin for %" G_GINT64_FORMAT
            " guests at a time is not part of this agent yet",
            tdx->n_guests);
}
