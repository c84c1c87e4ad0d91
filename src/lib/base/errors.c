/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/errors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

G_DEFINE_QUARK(ch - errno, ch_errno)
G_DEFINE_QUARK(ch - error, ch_error)

const char *
ch_errno_print(int errnum, char buffer[CH_ERRNO_TEXT_SIZE])
{
    const char *text = errnum == ESTALE ? "stale NFS file handle" : strerrordesc_np(errnum);

    if (text == NULL)
        (void)snprintf(buffer, CH_ERRNO_TEXT_SIZE, "errno %d", errnum);
    else
        (void)snprintf(buffer, CH_ERRNO_TEXT_SIZE, "%s", text);
    /* A name such as "RFS" stays as it is. */
    if (g_ascii_isupper(buffer[0]) && g_ascii_islower(buffer[1]))
        buffer[0] = g_ascii_tolower(buffer[0]);
    return buffer;
}

void
ch_error_set_errno(GError **error, int errnum, const char *format, ...)
{
    g_autofree char *what = NULL;
    char reason[CH_ERRNO_TEXT_SIZE];
    va_list args;

    if (error == NULL)
        return;
    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, CH_ERRNO, errnum, "%s: %s", what, ch_errno_print(errnum, reason));
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
