/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/xml-walk.h"

#include "lib/base/errors.h"

typedef struct {
    const ChXmlHandlers *handlers;
    gpointer data;
    GPtrArray *names; /* owned strings, of the elements that are open */
    GString *text;
} Walk;

static ChXmlElement
element_of(const Walk *walk)
{
    return (ChXmlElement){.names = (const char *const *)walk->names->pdata,
                          .depth = walk->names->len};
}

static void
on_start(GMarkupParseContext *context,
         const char *name,
         const char **names,
         const char **values,
         gpointer data,
         GError **error)
{
    Walk *walk = data;
    ChXmlElement element;

    if (walk->names->len == CH_XML_MAX_DEPTH) {
        ch_fail(error, CH_ERROR_LIMIT, "elements nested deeper than %d", CH_XML_MAX_DEPTH);
        return;
    }
    g_ptr_array_add(walk->names, g_strdup(name));
    g_string_truncate(walk->text, 0);
    element = element_of(walk);
    element.attribute_names = names;
    element.attribute_values = values;
    (void)walk->handlers->on_start(walk->data, &element, error); /* GMarkup looks at error */
}

static void
on_text(GMarkupParseContext *context, const char *text, gsize length, gpointer data, GError **error)
{
    Walk *walk = data;

    g_string_append_len(walk->text, text, (gssize)length);
}

static void
on_end(GMarkupParseContext *context, const char *name, gpointer data, GError **error)
{
    Walk *walk = data;
    const ChXmlElement element = element_of(walk);

    walk->handlers->on_end(walk->data, &element, g_strstrip(walk->text->str));
    g_string_truncate(walk->text, 0);
    g_ptr_array_set_size(walk->names, (int)walk->names->len - 1);
}

bool
ch_xml_walk(const char *xml,
            gsize length,
            const char *what,
            const ChXmlHandlers *handlers,
            gpointer data,
            GError **error)
{
    static const GMarkupParser callbacks = {
        .start_element = on_start, .end_element = on_end, .text = on_text};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) text = g_string_new(NULL);
    Walk walk = {handlers, data, names, text};
    g_autoptr(GMarkupParseContext) context = NULL;
    g_autoptr(GError) reason = NULL;

    if (length > CH_XML_MAX_BYTES)
        return ch_fail(error, CH_ERROR_LIMIT, "%s of %" G_GSIZE_FORMAT " bytes", what, length);
    context = g_markup_parse_context_new(&callbacks, 0, &walk, NULL);
    if (g_markup_parse_context_parse(context, xml, (gssize)length, &reason) &&
        g_markup_parse_context_end_parse(context, &reason))
        return true;
    return ch_fail(error,
                   g_error_matches(reason, CH_ERROR, CH_ERROR_LIMIT) ? CH_ERROR_LIMIT
                                                                     : CH_ERROR_INVALID,
                   "%s: %s",
                   what,
                   reason->message);
}

const char *
ch_xml_attribute(const ChXmlElement *element, const char *name)
{
    for (gsize i = 0; element->attribute_names[i] != NULL; i++) {
        if (g_str_equal(element->attribute_names[i], name))
            return element->attribute_values[i];
    }
    return NULL;
}

int
ch_xml_depth_below(const ChXmlElement *element, const char *const *path, gsize n)
{
    if (element->depth < n)
        return -1;
    for (gsize i = 0; i < n; i++) {
        if (!g_str_equal(element->names[i], path[i]))
            return -1;
    }
    return (int)(element->depth - n);
}
