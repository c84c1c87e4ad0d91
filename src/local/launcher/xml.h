/* SPDX-License-Identifier: Apache-2.0 */

/*
 * xml: the few libxml2 steps that building and reading a domain document take.
 *
 * libxml2 wants casts and copies at every call; here they are once. Documents are never fetched
 * from anywhere and no entity is resolved. Thread: a document belongs to one thread.
 */

#pragma once

#include <glib.h>
#include <libxml/tree.h>

#define CH_XML_MAX_BYTES (8u << 20)

G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlDoc, xmlFreeDoc)

/* Makes libxml2 allocate by GLib, so that no node is ever NULL. Call once, before threads start. */
void ch_xml_init(void);

/**
 * ch_xml_parse:
 * @text: one document, NUL-terminated
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID or CH_ERROR_LIMIT
 */
xmlDoc *ch_xml_parse(const char *text, GError **error);
/* (transfer full): indented by two */
char *ch_xml_print(xmlDoc *doc);
/* The same of one element, as a document of its own. */
char *ch_xml_print_node(xmlNode *node);

/* A document with its root element. */
xmlDoc *ch_xml_new(const char *root_name);

/**
 * ch_xml_add: appends an element.
 * @...: attribute names and values in turn, then NULL; an attribute whose value is NULL is left out
 *
 * Returns: (transfer none): the new element
 */
xmlNode *ch_xml_add(xmlNode *parent, const char *name, ...) G_GNUC_NULL_TERMINATED;
/* The same for an element that holds text only. */
xmlNode *ch_xml_add_text(xmlNode *parent, const char *name, const char *text);
void ch_xml_set(xmlNode *node, const char *attribute, const char *value);
void ch_xml_set_uint(xmlNode *node, const char *attribute, guint64 value);

/* First child element of that name, or NULL; @node may be NULL. */
xmlNode *ch_xml_child(const xmlNode *node, const char *name);
/* The next sibling element of the same name, or NULL. */
xmlNode *ch_xml_next(const xmlNode *node);
/* (transfer full) (nullable): NULL when there is none */
char *ch_xml_dup_attribute(const xmlNode *node, const char *name);
/* (transfer full) (nullable): the text inside */
char *ch_xml_dup_text(const xmlNode *node);
