/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/json/json-internal.h"

#include "lib/base/json-text.h"

#include <string.h>

#define COMPACT (-1)

/* @indent: spaces before what follows a line break; COMPACT: none of both */
static void print_value(GString *out, const ChJson *json, int indent);

static void
break_line(GString *out, int indent)
{
    if (indent == COMPACT)
        return;
    g_string_append_c(out, '\n');
    for (int i = 0; i < indent; i++)
        g_string_append_c(out, ' ');
}

static int
deeper(int indent)
{
    return indent == COMPACT ? COMPACT : indent + 2;
}

static void
print_array(GString *out, const ChJson *array, int indent)
{
    const gsize n = ch_json_length(array);

    g_string_append_c(out, '[');
    for (gsize i = 0; i < n; i++) {
        if (i > 0)
            g_string_append_c(out, ',');
        break_line(out, deeper(indent));
        print_value(out, ch_json_item(array, i), deeper(indent));
    }
    if (n > 0)
        break_line(out, indent);
    g_string_append_c(out, ']');
}

static void
print_object(GString *out, const ChJson *object, int indent)
{
    ChJsonIter iter;
    const char *name;
    ChJson *value;
    bool is_first = true;

    g_string_append_c(out, '{');
    ch_json_iter_init(&iter, object);
    while (ch_json_iter_next(&iter, &name, &value)) {
        if (!is_first)
            g_string_append_c(out, ',');
        is_first = false;
        break_line(out, deeper(indent));
        ch_json_text_append(out, name, strlen(name));
        g_string_append(out, indent == COMPACT ? ":" : ": ");
        print_value(out, value, deeper(indent));
    }
    if (!is_first)
        break_line(out, indent);
    g_string_append_c(out, '}');
}

static void
print_value(GString *out, const ChJson *json, int indent)
{
    switch (ch_json_kind(json)) {
    case CH_JSON_KIND_NULL:
        g_string_append(out, "null");
        break;
    case CH_JSON_KIND_FALSE:
        g_string_append(out, "false");
        break;
    case CH_JSON_KIND_TRUE:
        g_string_append(out, "true");
        break;
    case CH_JSON_KIND_NUMBER:
        g_string_append(out, ch_json_text(json));
        break;
    case CH_JSON_KIND_STRING:
        ch_json_text_append(out, ch_json_text(json), ch_json_text_length(json));
        break;
    case CH_JSON_KIND_ARRAY:
        print_array(out, json, indent);
        break;
    case CH_JSON_KIND_OBJECT:
        print_object(out, json, indent);
        break;
    }
}

char *
ch_json_print(const ChJson *json, gsize *out_length)
{
    GString *out = g_string_sized_new(1024);

    print_value(out, json, COMPACT);
    if (out_length != NULL)
        *out_length = out->len;
    return g_string_free(out, FALSE);
}

char *
ch_json_print_pretty(const ChJson *json)
{
    GString *out = g_string_sized_new(1024);

    print_value(out, json, 0);
    return g_string_free(out, FALSE);
}
