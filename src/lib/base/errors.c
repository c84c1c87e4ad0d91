/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/errors.h"

G_DEFINE_QUARK(ch - errno, ch_errno)
G_DEFINE_QUARK(ch - error, ch_error)

void
ch_error_set_errno(GError **error, int errnum, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list args;

    if (error == NULL)
        return;
    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, CH_ERRNO, errnum, "%s: %s", what, g_strerror(errnum));
}

void
ch_error_set(GError **error, ChErrorCode code, const char *format, ...)
{
    va_list args;

    if (error == NULL)
        return;
    va_start(args, format);
    g_propagate_error(error, g_error_new_valist(CH_ERROR, (int)code, format, args));
    va_end(args);
}
