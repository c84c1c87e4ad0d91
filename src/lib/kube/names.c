/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/names.h"

#include <string.h>

#define MAX_SUBDOMAIN 253
#define MAX_LABEL     63

static bool
is_lower_alnum(char byte)
{
    return g_ascii_isdigit(byte) || g_ascii_islower(byte);
}

/* Labels parted by points: each begins and ends with a letter or digit, '-' may stand between. */
static bool
is_subdomain(const char *text, gsize length)
{
    if (length == 0 || length > MAX_SUBDOMAIN)
        return false;
    for (gsize i = 0; i < length; i++) {
        const bool is_first = i == 0 || text[i - 1] == '.';
        const bool is_last = i + 1 == length || text[i + 1] == '.';

        if (is_lower_alnum(text[i]))
            continue;
        if (is_first || is_last || (text[i] != '-' && text[i] != '.'))
            return false;
        if (text[i] == '.' && (text[i - 1] == '-' || text[i + 1] == '-'))
            return false;
    }
    return true;
}

bool
ch_name_is_dns_subdomain(const char *text)
{
    return is_subdomain(text, strnlen(text, MAX_SUBDOMAIN + 1));
}

static bool
is_qualified_name(const char *text)
{
    const gsize length = strnlen(text, MAX_LABEL + 1);

    if (length == 0 || length > MAX_LABEL)
        return false;
    if (!g_ascii_isalnum(text[0]) || !g_ascii_isalnum(text[length - 1]))
        return false;
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
           length;
}

bool
ch_label_key_is_valid(const char *text)
{
    const char *slash = strchr(text, '/');

    if (slash == NULL)
        return is_qualified_name(text);
    return is_subdomain(text, (gsize)(slash - text)) && is_qualified_name(slash + 1);
}

bool
ch_label_value_is_valid(const char *text)
{
    return *text == '\0' || is_qualified_name(text);
}
