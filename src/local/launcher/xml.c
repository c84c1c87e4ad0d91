/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/xml.h"

#include <libxml/parser.h>
#include <string.h>

#include "lib/base/errors.h"

/* libxml2's strings are unsigned char; the conversions of one to the other are here alone. */
static const xmlChar *
from_text(const char *text)
{
    return (const xmlChar *)text;
}

static char *
take_text(xmlChar *text)
{
    return (char *)text; /* allocated by GLib, see ch_xml_init() */
}

static void
ignore_message(void *data, const char *format, ...)
{
}

void
ch_xml_init(void)
{
    xmlMemSetup(g_free, g_malloc, g_realloc, g_strdup);
    xmlInitParser();
    xmlSetGenericErrorFunc(NULL, ignore_message);
}

xmlDoc *
ch_xml_parse(const char *text, GError **error)
{
    const gsize length = strlen(text);

    if (length > CH_XML_MAX_BYTES) {
        ch_fail(error, CH_ERROR_LIMIT, "XML document of %zu bytes", length);
        return NULL;
    }

    xmlDoc *doc = xmlReadMemory(text,
                                (int)length,
                                "domain.xml",
                                NULL,
                                XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
                                    XML_PARSE_NOBLANKS);
    if (doc == NULL || xmlDocGetRootElement(doc) == NULL) {
        g_clear_pointer(&doc, xmlFreeDoc);
        ch_fail(error, CH_ERROR_INVALID, "not a well-formed XML document");
    }
    return doc;
}

char *
ch_xml_print(xmlDoc *doc)
{
    xmlChar *text = NULL;
    int length = 0;

    /* The root element alone: libvirt needs no XML declaration, and golden files read better. */
    xmlBuffer *buffer = xmlBufferCreate();
    xmlNodeDump(buffer, doc, xmlDocGetRootElement(doc), 0, 1);
    length = xmlBufferLength(buffer);
    text = xmlBufferDetach(buffer);
    xmlBufferFree(buffer);
    return length == 0 ? g_strdup("") : take_text(text);
}

char *
ch_xml_print_node(xmlNode *node)
{
    g_autoptr(xmlDoc) doc = xmlNewDoc(BAD_CAST "1.0");

    xmlDocSetRootElement(doc, xmlDocCopyNode(node, doc, 1));
    return ch_xml_print(doc);
}

xmlDoc *
ch_xml_new(const char *root_name)
{
    xmlDoc *doc = xmlNewDoc(from_text("1.0"));

    xmlDocSetRootElement(doc, xmlNewDocNode(doc, NULL, from_text(root_name), NULL));
    return doc;
}

xmlNode *
ch_xml_add(xmlNode *parent, const char *name, ...)
{
    xmlNode *node = xmlNewChild(parent, NULL, from_text(name), NULL);
    va_list args;

    va_start(args, name);
    for (const char *key = va_arg(args, const char *); key != NULL;
         key = va_arg(args, const char *)) {
        const char *value = va_arg(args, const char *);

        if (value != NULL)
            ch_xml_set(node, key, value);
    }
    va_end(args);
    return node;
}

xmlNode *
ch_xml_add_text(xmlNode *parent, const char *name, const char *text)
{
    return xmlNewTextChild(parent, NULL, from_text(name), from_text(text));
}

void
ch_xml_set(xmlNode *node, const char *attribute, const char *value)
{
    xmlSetProp(node, from_text(attribute), from_text(value));
}

void
ch_xml_set_uint(xmlNode *node, const char *attribute, guint64 value)
{
    char text[24];

    g_snprintf(text, sizeof(text), "%" G_GUINT64_FORMAT, value);
    ch_xml_set(node, attribute, text);
}

static xmlNode *
find_element(xmlNode *node, const xmlChar *name)
{
    for (; node != NULL; node = node->next)
        if (node->type == XML_ELEMENT_NODE && xmlStrEqual(node->name, name))
            break;
    return node;
}

xmlNode *
ch_xml_child(const xmlNode *node, const char *name)
{
    return node == NULL ? NULL : find_element(node->children, from_text(name));
}

xmlNode *
ch_xml_next(const xmlNode *node)
{
    return find_element(node->next, node->name);
}

char *
ch_xml_dup_attribute(const xmlNode *node, const char *name)
{
    return node == NULL ? NULL : take_text(xmlGetNoNsProp((xmlNode *)node, from_text(name)));
}

char *
ch_xml_dup_text(const xmlNode *node)
{
    return node == NULL ? NULL : take_text(xmlNodeGetContent(node));
}
