/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/cells.h"

#include "lib/base/time.h"
#include "local/apiserver/resource.h"

/* Two units while the second one still matters ("3d4h"), one when it does not ("12d"). */
static char *
two_units(int64_t count, char unit, int64_t rest, char rest_unit)
{
    return rest == 0
               ? g_strdup_printf("%" G_GINT64_FORMAT "%c", count, unit)
               : g_strdup_printf(
                     "%" G_GINT64_FORMAT "%c%" G_GINT64_FORMAT "%c", count, unit, rest, rest_unit);
}

char *
ch_cell_age(const char *timestamp, int64_t now_us)
{
    int64_t then_us, seconds, minutes, hours, days;

    if (timestamp == NULL || !ch_time_parse(timestamp, &then_us, NULL))
        return g_strdup("<unknown>");
    seconds = (now_us - then_us) / CH_SECOND_US;
    minutes = seconds / 60;
    hours = minutes / 60;
    days = hours / 24;
    if (seconds < -1)
        return g_strdup("<invalid>");
    if (seconds < 120)
        return two_units(MAX(seconds, 0), 's', 0, 0);
    if (minutes < 10)
        return two_units(minutes, 'm', seconds % 60, 's');
    if (minutes < 180)
        return two_units(minutes, 'm', 0, 0);
    if (hours < 8)
        return two_units(hours, 'h', minutes % 60, 'm');
    if (hours < 48)
        return two_units(hours, 'h', 0, 0);
    if (days < 8)
        return two_units(days, 'd', hours % 24, 'h');
    if (days < 2 * 365)
        return two_units(days, 'd', 0, 0);
    if (days < 8 * 365)
        return two_units(days / 365, 'y', days % 365, 'd');
    return two_units(days / 365, 'y', 0, 0);
}

char *
ch_cell_node_status(const ChJson *object, int64_t now_us)
{
    const ChJson *ready = ch_resource_lookup(object, "status.conditions.type=Ready.status");
    const char *text = ch_json_as_string(ready);
    const char *word = text == NULL ? "Unknown" : g_str_equal(text, "True") ? "Ready" : "NotReady";

    return g_strconcat(
        word,
        ch_json_bool_at(object, false, "spec", "unschedulable") ? ",SchedulingDisabled" : "",
        NULL);
}

char *
ch_cell_node_roles(const ChJson *object, int64_t now_us)
{
    static const char prefix[] = "node-role.kubernetes.io/";
    g_autoptr(GString) roles = g_string_new(NULL);
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    ch_json_iter_init(&iter, ch_json_at(object, "metadata", "labels"));
    while (ch_json_iter_next(&iter, &key, &value)) {
        if (!g_str_has_prefix(key, prefix) || key[sizeof(prefix) - 1] == '\0')
            continue;
        if (roles->len > 0)
            g_string_append_c(roles, ',');
        g_string_append(roles, key + sizeof(prefix) - 1);
    }
    return g_strdup(roles->len > 0 ? roles->str : "<none>");
}

char *
ch_cell_pod_ready(const ChJson *object, int64_t now_us)
{
    const ChJson *statuses = ch_json_at(object, "status", "containerStatuses");
    guint n_ready = 0;

    for (gsize i = 0; i < ch_json_length(statuses); i++)
        n_ready += ch_json_bool_at(ch_json_item(statuses, i), false, "ready") ? 1 : 0;
    return g_strdup_printf(
        "%u/%" G_GSIZE_FORMAT, n_ready, ch_json_length(ch_json_at(object, "spec", "containers")));
}

char *
ch_cell_pod_status(const ChJson *object, int64_t now_us)
{
    const ChJson *statuses = ch_json_at(object, "status", "containerStatuses");
    const char *word = ch_json_string_at(object, "status", "phase");

    if (ch_json_at(object, "metadata", "deletionTimestamp") != NULL)
        return g_strdup("Terminating");
    for (gsize i = ch_json_length(statuses); i-- > 0;) {
        const ChJson *state = ch_json_at(ch_json_item(statuses, i), "state");
        const char *waiting = ch_json_string_at(state, "waiting", "reason");
        const char *terminated = ch_json_string_at(state, "terminated", "reason");

        if (waiting != NULL || terminated != NULL)
            word = waiting != NULL ? waiting : terminated;
    }
    if (ch_json_string_at(object, "status", "reason") != NULL)
        word = ch_json_string_at(object, "status", "reason");
    return g_strdup(word != NULL ? word : "Unknown");
}

char *
ch_cell_pod_restarts(const ChJson *object, int64_t now_us)
{
    const ChJson *statuses = ch_json_at(object, "status", "containerStatuses");
    int64_t sum = 0, one;

    for (gsize i = 0; i < ch_json_length(statuses); i++) {
        if (ch_json_int_at(ch_json_item(statuses, i), &one, "restartCount"))
            sum += CLAMP(one, 0, G_MAXINT32);
    }
    return g_strdup_printf("%" G_GINT64_FORMAT, sum);
}

char *
ch_cell_event_first_seen(const ChJson *object, int64_t now_us)
{
    const char *first = ch_json_string_at(object, "firstTimestamp");

    return ch_cell_age(first != NULL ? first : ch_json_string_at(object, "eventTime"), now_us);
}

char *
ch_cell_event_last_seen(const ChJson *object, int64_t now_us)
{
    const char *last = ch_json_string_at(object, "lastTimestamp");

    return last != NULL ? ch_cell_age(last, now_us) : ch_cell_event_first_seen(object, now_us);
}

char *
ch_cell_event_object(const ChJson *object, int64_t now_us)
{
    const char *kind = ch_json_string_at(object, "involvedObject", "kind");
    const char *name = ch_json_string_at(object, "involvedObject", "name");
    g_autofree char *lower = g_ascii_strdown(kind != NULL ? kind : "", -1);

    return g_strconcat(lower, name != NULL ? "/" : "", name, NULL);
}

char *
ch_cell_event_source(const ChJson *object, int64_t now_us)
{
    const char *component = ch_json_string_at(object, "source", "component");
    const char *host = ch_json_string_at(object, "source", "host");

    if (component == NULL)
        component = "";
    return g_strconcat(component, host != NULL ? ", " : "", host, NULL);
}

char *
ch_cell_event_count(const ChJson *object, int64_t now_us)
{
    int64_t count = 1;

    (void)ch_json_int_at(object, &count, "count"); /* an event without one happened once */
    return g_strdup_printf("%" G_GINT64_FORMAT, count);
}

char *
ch_cell_data_count(const ChJson *object, int64_t now_us)
{
    return g_strdup_printf("%" G_GSIZE_FORMAT,
                           ch_json_length(ch_json_at(object, "data")) +
                               ch_json_length(ch_json_at(object, "binaryData")));
}

char *
ch_cell_secrets_count(const ChJson *object, int64_t now_us)
{
    return g_strdup_printf("%" G_GSIZE_FORMAT, ch_json_length(ch_json_at(object, "secrets")));
}

char *
ch_cell_access_modes(const ChJson *object, int64_t now_us)
{
    static const struct {
        const char *mode, *brief;
    } modes[] = {
        {"ReadWriteOnce", "RWO"},
        {"ReadOnlyMany", "ROX"},
        {"ReadWriteMany", "RWX"},
        {"ReadWriteOncePod", "RWOP"},
    };
    const ChJson *list = ch_json_at(object, "status", "accessModes");
    g_autoptr(GString) text = g_string_new(NULL);

    for (gsize i = 0; i < ch_json_length(list); i++) {
        const char *mode = ch_json_as_string(ch_json_item(list, i));

        for (gsize m = 0; m < G_N_ELEMENTS(modes); m++) {
            if (g_strcmp0(mode, modes[m].mode) == 0)
                g_string_append_printf(text, "%s%s", text->len > 0 ? "," : "", modes[m].brief);
        }
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}
