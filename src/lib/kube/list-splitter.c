/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/list-splitter.h"

#include "lib/base/errors.h"
#include "lib/json/json.h"
#include "lib/kube/json-scan.h"

#define ITEMS "items"

typedef enum {
    AT_ENVELOPE = 0, /* outside of the items array */
    AT_FIRST,        /* behind its bracket: an item or the end */
    AT_ITEM,         /* within an item */
    AT_SEPARATOR,    /* behind an item: a comma or the end */
    AT_NEXT,         /* behind a comma: an item */
} Place;

struct ChListSplitter {
    ChListItemFunc on_item;
    gpointer data;

    Place place;
    gsize n_bytes;
    bool had_items;     /* the array was seen */
    ChJsonScan scan;    /* of the envelope, or of the item */
    ChJsonScan outer;   /* the envelope's, while in the array */
    GString *envelope;  /* the document with an empty items array */
    GString *item;      /* the begin of an item that spans chunks */
    gsize key_start;    /* where the last string at depth 1 begins in the envelope */
    gsize key_end;      /* behind its closing quote */
    bool is_key_closed; /* a colon followed */
};

ChListSplitter *
ch_list_splitter_new(ChListItemFunc on_item, gpointer data)
{
    ChListSplitter *splitter = g_new0(ChListSplitter, 1);

    splitter->on_item = on_item;
    splitter->data = data;
    splitter->envelope = g_string_new(NULL);
    splitter->item = g_string_new(NULL);
    return splitter;
}

void
ch_list_splitter_free(ChListSplitter *splitter)
{
    if (splitter == NULL)
        return;
    g_string_free(splitter->envelope, TRUE);
    g_string_free(splitter->item, TRUE);
    g_free(splitter);
}

/* The envelope ends with `"items":` (at the top level). */
static bool
is_at_items(const ChListSplitter *splitter)
{
    const char *key = splitter->envelope->str + splitter->key_start;

    return splitter->is_key_closed &&
           splitter->key_end - splitter->key_start == strlen("\"" ITEMS "\"") &&
           strncmp(key, "\"" ITEMS "\"", strlen("\"" ITEMS "\"")) == 0;
}

static void
enter_items(ChListSplitter *splitter)
{
    splitter->had_items = true;
    splitter->outer = splitter->scan;
    splitter->place = AT_FIRST;
}

static void
leave_items(ChListSplitter *splitter)
{
    splitter->scan = splitter->outer;
    (void)ch_json_scan_byte(&splitter->scan, ']');
    g_string_append_c(splitter->envelope, ']');
    splitter->place = AT_ENVELOPE;
}

/* Remembers where strings at the top level are: one of them is the key of the array. */
static void
note_key(ChListSplitter *splitter, bool was_in_string, char byte)
{
    const gsize length = splitter->envelope->len; /* @byte included */

    if (splitter->scan.depth != 1)
        return;
    if (!was_in_string && splitter->scan.in_string)
        splitter->key_start = length - 1;
    else if (was_in_string && !splitter->scan.in_string)
        splitter->key_end = length;
    if (!ch_json_scan_is_space(byte))
        splitter->is_key_closed = byte == ':' && !splitter->scan.in_string;
}

static bool
feed_envelope(ChListSplitter *splitter, char byte, GError **error)
{
    const bool was_in_string = splitter->scan.in_string;
    const bool opens_items =
        byte == '[' && !was_in_string && splitter->scan.depth == 1 && is_at_items(splitter);

    if (splitter->envelope->len >= CH_LIST_MAX_ENVELOPE)
        return ch_fail(error,
                       CH_ERROR_LIMIT,
                       "a list with more than %u bytes besides its items",
                       CH_LIST_MAX_ENVELOPE);
    if (opens_items && splitter->had_items)
        return ch_fail(error, CH_ERROR_INVALID, "a list with two '" ITEMS "' members");
    (void)ch_json_scan_byte(&splitter->scan, byte);
    g_string_append_c(splitter->envelope, byte);
    note_key(splitter, was_in_string, byte);
    if (opens_items)
        enter_items(splitter);
    return true;
}

/* One byte between items. */
static bool
feed_between(ChListSplitter *splitter, char byte, GError **error)
{
    const bool may_begin = splitter->place == AT_FIRST || splitter->place == AT_NEXT;

    if (ch_json_scan_is_space(byte))
        return true;
    if (byte == ']' && splitter->place != AT_NEXT) {
        leave_items(splitter);
        return true;
    }
    if (byte == ',' && splitter->place == AT_SEPARATOR) {
        splitter->place = AT_NEXT;
        return true;
    }
    if (byte == '{' && may_begin) {
        splitter->scan = (ChJsonScan){.depth = 1};
        splitter->place = AT_ITEM;
        g_string_assign(splitter->item, "{");
        return true;
    }
    return ch_fail(error,
                   CH_ERROR_INVALID,
                   "unexpected byte 0x%02x between a list's items",
                   (guint)(guchar)byte);
}

/* Takes the item's bytes of this chunk in one piece. Returns: how many; 0 with @error set */
static gsize
feed_item(ChListSplitter *splitter, const char *bytes, gsize length, GError **error)
{
    gsize n = 0;
    bool is_whole = false;

    while (n < length && !is_whole)
        is_whole = ch_json_scan_byte(&splitter->scan, bytes[n++]);
    if (splitter->item->len + n > CH_LIST_MAX_ITEM) {
        ch_fail(error, CH_ERROR_LIMIT, "a list item of more than %u bytes", CH_LIST_MAX_ITEM);
        return 0;
    }
    g_string_append_len(splitter->item, bytes, (gssize)n);
    if (is_whole) {
        splitter->place = AT_SEPARATOR;
        if (!splitter->on_item(splitter->data, splitter->item->str, splitter->item->len, error))
            return 0;
    }
    return n;
}

bool
ch_list_splitter_feed(ChListSplitter *splitter, const char *bytes, gsize length, GError **error)
{
    splitter->n_bytes += length;
    if (splitter->n_bytes > CH_LIST_MAX_BYTES)
        return ch_fail(error, CH_ERROR_LIMIT, "a list of more than %u bytes", CH_LIST_MAX_BYTES);

    for (gsize i = 0; i < length;) {
        gsize n = 1;

        if (splitter->place == AT_ITEM)
            n = feed_item(splitter, bytes + i, length - i, error);
        else if (splitter->place == AT_ENVELOPE)
            n = feed_envelope(splitter, bytes[i], error);
        else
            n = feed_between(splitter, bytes[i], error);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

bool
ch_list_splitter_finish(ChListSplitter *splitter,
                        char **out_version,
                        char **out_token,
                        GError **error)
{
    g_autoptr(ChJson) envelope = NULL;
    const char *kind, *version, *token;

    if (splitter->place != AT_ENVELOPE)
        return ch_fail(error, CH_ERROR_INVALID, "a list that ends within its items");
    envelope = ch_json_parse(splitter->envelope->str, (gssize)splitter->envelope->len, error);
    if (envelope == NULL) {
        g_prefix_error(error, "list: ");
        return false;
    }
    /* Another kind of document, or an array that hid from the splitter (an escaped key), must not
     * read as an empty list: every cached object would be deleted. */
    kind = ch_json_string_at(envelope, "kind");
    if (kind == NULL || !g_str_has_suffix(kind, "List") ||
        ch_json_length(ch_json_at(envelope, ITEMS)) > 0 ||
        !(splitter->had_items || ch_json_at(envelope, ITEMS) == NULL))
        return ch_fail(error, CH_ERROR_INVALID, "the answer is no list");
    version = ch_json_string_at(envelope, "metadata", "resourceVersion");
    token = ch_json_string_at(envelope, "metadata", "continue");
    *out_version = g_strdup(version != NULL ? version : "");
    *out_token = g_strdup(token != NULL ? token : "");
    return true;
}
