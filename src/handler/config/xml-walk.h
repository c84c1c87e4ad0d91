/* SPDX-License-Identifier: Apache-2.0 */

/*
 * xml-walk: a document of libvirt's, element by element, within limits. On GMarkup: libxml2 brings
 * ICU into the agent.
 *
 * Pure. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#define CH_XML_MAX_BYTES (4u << 20)
#define CH_XML_MAX_DEPTH 32

typedef struct {
    const char *const *names; /* of the elements from the root to this one */
    gsize depth;              /* how many: 1 at the root */
    const char **attribute_names, **attribute_values; /* at its start only, NULL-terminated */
} ChXmlElement;

typedef struct {
    /* Returns: false with @error: the walk ends */
    bool (*on_start)(gpointer data, const ChXmlElement *element, GError **error);
    /* @text: what came last in it, without blanks around it; may be changed */
    void (*on_end)(gpointer data, const ChXmlElement *element, char *text);
} ChXmlHandlers;

/**
 * ch_xml_walk:
 * @what: what it is, for messages: "capabilities"
 *
 * Returns: false with CH_ERROR_LIMIT or CH_ERROR_INVALID
 */
bool ch_xml_walk(const char *xml,
                 gsize length,
                 const char *what,
                 const ChXmlHandlers *handlers,
                 gpointer data,
                 GError **error);

/* At the element's start: the attribute's value, borrowed; NULL: it has none. */
const char *ch_xml_attribute(const ChXmlElement *element, const char *name);

/* How far below @path the element stands: 0 is there, -1 is outside. @path: @n names from the root
 */
int ch_xml_depth_below(const ChXmlElement *element, const char *const *path, gsize n);
