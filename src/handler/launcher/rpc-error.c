/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher/rpc-error.h"

#include <string.h>

#define MAX_TEXT 16384 /* bytes of a launcher's message that go into events and conditions */

static ChLauncherErrorCode
code_of(const GError *reason)
{
    if (reason->code == CH_GRPC_CANCELED)
        return CH_LAUNCHER_ERROR_DISCONNECTED;
    return reason->code == CH_GRPC_UNIMPLEMENTED ? CH_LAUNCHER_ERROR_UNIMPLEMENTED
                                                 : CH_LAUNCHER_ERROR_CALL;
}

bool
ch_rpc_fail_call(GError **error, const ChRpcRow *row, const GError *reason)
{
    const ChLauncherErrorCode code = code_of(reason);

    g_set_error(error,
                CH_LAUNCHER_ERROR,
                (int)code,
                "rpc error: code = %s desc = %s",
                ch_grpc_status_name((ChGrpcStatus)reason->code),
                reason->message);
    if (row->errors == CH_RPC_ERRORS_CHECKPOINT)
        g_prefix_error(error, "RedefineCheckpoint call failed: ");
    else if (row->errors == CH_RPC_ERRORS_LABELLED && code == CH_LAUNCHER_ERROR_CALL)
        g_prefix_error(error, "unknown error encountered sending command %s: ", row->label);
    return false;
}

/* (transfer full): @text, which is UTF-8, in double quotes as Go's %q prints it; what is far too
 * long is cut */
static char *
quote(const char *text)
{
    GString *quoted = g_string_new("\"");

    for (const char *p = text; *p != '\0'; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);

        if (quoted->len >= MAX_TEXT) {
            g_string_append(quoted, "...");
            break;
        }
        switch (c) {
        case '"':
        case '\\':
            g_string_append_printf(quoted, "\\%c", (char)c);
            break;
        case '\a':
            g_string_append(quoted, "\\a");
            break;
        case '\b':
            g_string_append(quoted, "\\b");
            break;
        case '\f':
            g_string_append(quoted, "\\f");
            break;
        case '\n':
            g_string_append(quoted, "\\n");
            break;
        case '\r':
            g_string_append(quoted, "\\r");
            break;
        case '\t':
            g_string_append(quoted, "\\t");
            break;
        case '\v':
            g_string_append(quoted, "\\v");
            break;
        default:
            if (c < 0x20 || c == 0x7f)
                g_string_append_printf(quoted, "\\x%02x", c);
            else if (g_unichar_isprint(c) && (c == ' ' || !g_unichar_isspace(c)))
                g_string_append_unichar(quoted, c);
            else if (c < 0x10000)
                g_string_append_printf(quoted, "\\u%04x", c);
            else
                g_string_append_printf(quoted, "\\U%08x", c);
        }
    }
    g_string_append_c(quoted, '"');
    return g_string_free(quoted, FALSE);
}

/* (transfer full): @text, which is UTF-8; what is far too long is cut */
static char *
bound(const char *text)
{
    if (strlen(text) <= MAX_TEXT)
        return g_strdup(text);
    return g_strndup(text, (gsize)(g_utf8_find_prev_char(text, text + MAX_TEXT) - text));
}

bool
ch_rpc_fail_refused(GError **error,
                    const ChRpcRow *row,
                    const char *message,
                    bool is_invalid_checkpoint)
{
    g_autofree char *quoted = NULL;

    if (row->errors == CH_RPC_ERRORS_CHECKPOINT) {
        g_autofree char *cut = bound(message);

        g_set_error(error,
                    CH_LAUNCHER_ERROR,
                    is_invalid_checkpoint ? CH_LAUNCHER_ERROR_CHECKPOINT
                                          : CH_LAUNCHER_ERROR_REFUSED,
                    "RedefineCheckpoint failed: %s",
                    cut);
        return false;
    }
    quoted = quote(message);
    g_set_error(error,
                CH_LAUNCHER_ERROR,
                CH_LAUNCHER_ERROR_REFUSED,
                "server error. command %s failed: %s",
                row->label,
                quoted);
    return false;
}
