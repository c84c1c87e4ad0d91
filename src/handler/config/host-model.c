/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/host-model.h"

#include "handler/config/xml-walk.h"

typedef struct {
    bool is_in_mode; /* inside <mode name='host-model'> */
    char *model;     /* owned; NULL: not seen yet */
} Finder;

static const char *
name_of(const ChXmlElement *element)
{
    return element->names[element->depth - 1];
}

static bool
on_start(gpointer data, const ChXmlElement *element, GError **error)
{
    Finder *finder = data;

    if (g_str_equal(name_of(element), "mode"))
        finder->is_in_mode = g_strcmp0(ch_xml_attribute(element, "name"), "host-model") == 0;
    return true;
}

static void
on_end(gpointer data, const ChXmlElement *element, char *text)
{
    Finder *finder = data;

    if (g_str_equal(name_of(element), "mode"))
        finder->is_in_mode = false;
    else if (finder->is_in_mode && finder->model == NULL && g_str_equal(name_of(element), "model"))
        finder->model = g_strdup(text);
}

char *
ch_host_model_parse(const char *xml, gsize length, GError **error)
{
    static const ChXmlHandlers handlers = {on_start, on_end};
    Finder finder = {0};

    if (!ch_xml_walk(xml, length, "domain capabilities", &handlers, &finder, error)) {
        g_free(finder.model);
        return NULL;
    }
    return finder.model != NULL ? finder.model : g_strdup("");
}
