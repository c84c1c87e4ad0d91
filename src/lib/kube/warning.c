/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/warning.h"

#include <string.h>

char *
ch_kube_warning_text(const char *header)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const char *at = header;

    if (!g_str_has_prefix(at, "299 "))
        return NULL;
    at = strchr(at + strlen("299 "), ' '); /* after who warns */
    if (at == NULL || at[1] != '"')
        return NULL;
    for (at += 2; *at != '"'; at++) {
        if (*at == '\\')
            at++;
        if (*at == '\0')
            return NULL;
        if (text->len < CH_KUBE_MAX_WARNING)
            g_string_append_c(text, g_ascii_iscntrl(*at) ? '?' : *at);
    }
    return g_utf8_make_valid(text->str, (gssize)text->len);
}
