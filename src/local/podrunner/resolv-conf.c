/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/resolv-conf.h"

#include <string.h>

#include "lib/base/small-file.h"
#include "lib/linux/ip.h"

static const char *const paths[] = {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"};

/* Whether the line names a server; if so, whether pods reach it. */
static bool
is_server(const char *line, bool *out_is_reachable)
{
    g_auto(GStrv) words = g_strsplit_set(line, " \t\r", -1);
    const char *address = NULL;
    ChIp ip;

    if (words[0] == NULL || !g_str_equal(words[0], "nameserver"))
        return false;
    for (gsize i = 1; words[i] != NULL && address == NULL; i++)
        address = *words[i] != '\0' ? words[i] : NULL;
    /* A link-local one ("fe80::1%eth0") belongs to an interface that the pod has not. */
    *out_is_reachable =
        address != NULL && ch_ip_parse(address, &ip) && ch_ip_is_global_unicast(&ip);
    return true;
}

/* (transfer full): @text without servers that pods do not reach. */
static char *
filter(const char *text, bool *out_has_server)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    GString *kept = g_string_new(NULL);

    *out_has_server = false;
    for (gsize i = 0; lines[i] != NULL; i++) {
        bool is_reachable = false;
        const bool is_one = is_server(lines[i], &is_reachable);

        if (*lines[i] == '\0' || (is_one && !is_reachable))
            continue;
        *out_has_server |= is_one;
        g_string_append(kept, lines[i]);
        g_string_append_c(kept, '\n');
    }
    return g_string_free(kept, FALSE);
}

char *
ch_resolv_conf_for_pod(const char *const *texts)
{
    g_autofree char *first = NULL;

    for (gsize i = 0; texts[i] != NULL; i++) {
        bool has_server = false;
        g_autofree char *kept = filter(texts[i], &has_server);

        if (has_server)
            return g_steal_pointer(&kept);
        if (first == NULL)
            first = g_steal_pointer(&kept);
    }
    return first != NULL ? g_steal_pointer(&first) : g_strdup("");
}

char *
ch_resolv_conf_load(void)
{
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);

    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        char *text = ch_small_file_read(paths[i], CH_RESOLV_CONF_MAX_BYTES, NULL, NULL);

        if (text != NULL)
            g_ptr_array_add(texts, text);
    }
    g_ptr_array_add(texts, NULL);
    return ch_resolv_conf_for_pod((const char *const *)texts->pdata);
}
