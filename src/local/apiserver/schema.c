/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/schema.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/quantity.h"
#include "lib/base/time.h"
#include "lib/kube/names.h"
#include "lib/linux/mac.h"

typedef struct {
    const ChFieldRule *rule;
    GPtrArray *causes;
    GString *path;    /* where the walk is */
    GHashTable *seen; /* UNIQUE: values met in the list that is walked; NULL otherwise */
} Walk;

bool
ch_name_is_label(const char *text)
{
    const gsize length = strlen(text);

    if (length == 0 || length > 63 || text[0] == '-' || text[length - 1] == '-')
        return false;
    for (; *text != '\0'; text++) {
        if (!g_ascii_islower(*text) && !g_ascii_isdigit(*text) && *text != '-')
            return false;
    }
    return true;
}

/* (transfer none); NULL: it is one, of at least @min_nano */
static const char *
quantity_complaint(const ChJson *value, int min_nano)
{
    static const char grammar[] = "must be a quantity, such as 128Mi";
    g_autofree char *text = NULL;
    g_autoptr(GError) failure = NULL;
    ChQuantity quantity;

    if (!ch_json_is_string(value) && !ch_json_is_number(value))
        return grammar;
    text =
        ch_json_is_string(value) ? g_strdup(ch_json_as_string(value)) : ch_json_print(value, NULL);
    if (!ch_quantity_parse(text, &quantity, &failure))
        return g_error_matches(failure, CH_ERROR, CH_ERROR_LIMIT) &&
                       strlen(text) < CH_QUANTITY_MAX_TEXT
                   ? "must be less than 2^63, which is 8Ei"
                   : grammar;
    if (quantity.nano >= min_nano)
        return NULL;
    return min_nano > 0 ? "must be greater than 0" : "must be greater than or equal to 0";
}

static bool
is_time(const ChJson *value)
{
    int64_t when_us;

    return ch_json_is_string(value) && ch_time_parse(ch_json_as_string(value), &when_us, NULL);
}

static bool
is_port(const ChJson *value)
{
    int64_t port = 0;

    return ch_json_as_int(value, &port) && port >= 1 && port <= UINT16_MAX;
}

static bool
is_count(const ChJson *value)
{
    int64_t count = 0;

    return ch_json_as_int(value, &count) && count >= 0 && count <= UINT32_MAX;
}

static bool
is_mac(const char *text)
{
    uint8_t mac[CH_MAC_BYTES];

    return text != NULL && (*text == '\0' || (ch_mac_parse(text, mac) && (mac[0] & 1) == 0));
}

/* What is wrong with a value of this type. (transfer none); NULL: nothing */
static const char *
type_complaint(ChFieldType type, const ChJson *value)
{
    const char *text = ch_json_as_string(value);

    switch (type) {
    case CH_FIELD_OBJECT:
        return ch_json_is_object(value) ? NULL : "must be of type object";
    case CH_FIELD_ARRAY:
        return ch_json_is_array(value) ? NULL : "must be of type array";
    case CH_FIELD_STRING:
        return text != NULL ? NULL : "must be of type string";
    case CH_FIELD_INTEGER:
        return ch_json_is_integer(value) ? NULL : "must be of type integer";
    case CH_FIELD_COUNT:
        return !ch_json_is_integer(value) ? "must be of type integer"
               : is_count(value)          ? NULL
                                          : "must be 0 to 4294967295";
    case CH_FIELD_BOOLEAN:
        return ch_json_is_bool(value) ? NULL : "must be of type boolean";
    case CH_FIELD_QUANTITY:
        return quantity_complaint(value, 0);
    case CH_FIELD_SIZE:
        return quantity_complaint(value, 1);
    case CH_FIELD_TIME:
        return is_time(value) ? NULL : "must be a time, such as 2006-01-02T15:04:05Z";
    case CH_FIELD_LABEL:
        return text != NULL && ch_name_is_label(text) ? NULL : CH_LABEL_HINT;
    case CH_FIELD_SUBDOMAIN:
        return text != NULL && ch_name_is_dns_subdomain(text) ? NULL : CH_SUBDOMAIN_HINT;
    case CH_FIELD_LABEL_VALUE:
        return text != NULL && ch_label_value_is_valid(text)
                   ? NULL
                   : "a valid label must be an empty string or consist of at most 63 alphanumeric "
                     "characters, '-', '_' or '.', and must start and end with an alphanumeric "
                     "character";
    case CH_FIELD_INT_OR_STRING:
        return text != NULL || ch_json_is_integer(value) ? NULL
                                                         : "must be of type integer or string";
    case CH_FIELD_PORT:
        return is_port(value) ? NULL : "must be a port, 1 to 65535";
    case CH_FIELD_MAC:
        return is_mac(text) ? NULL : "must be a unicast MAC address, such as 02:00:00:00:00:01";
    case CH_FIELD_INVALID:
    case CH_FIELD_N:
        break;
    }
    g_return_val_if_reached(NULL);
}

/* A value for a message: printed, and not the whole document. */
static char *
brief(const ChJson *value)
{
    g_autofree char *text = ch_json_print(value, NULL);

    if (strlen(text) > 64) {
        char *cut = g_utf8_find_prev_char(text, text + 60);

        memcpy(cut != NULL ? cut : text, "...", 4); /* fits: at least four bytes are cut off */
    }
    return g_steal_pointer(&text);
}

static void
check_choice(const Walk *walk, const ChJson *value)
{
    g_autofree char *shown = NULL;
    g_autofree char *list = NULL;

    if (g_strv_contains(walk->rule->choices, ch_json_as_string(value)))
        return;
    shown = brief(value);
    list = g_strjoinv("\", \"", (char **)walk->rule->choices);
    ch_cause_add(walk->causes,
                 "FieldValueNotSupported",
                 walk->path->str,
                 "Unsupported value: %s: supported values: \"%s\"",
                 shown,
                 list);
}

static void
check_one_of(const Walk *walk, const ChJson *value)
{
    guint n = 0;
    g_autofree char *list = NULL;

    for (const char *const *choice = walk->rule->choices; *choice != NULL; choice++)
        n += ch_json_at(value, *choice) != NULL ? 1 : 0;
    if (n == 1 || (n == 0 && (walk->rule->flags & CH_FIELD_AT_MOST_ONE)))
        return;
    list = g_strjoinv(", ", (char **)walk->rule->choices);
    ch_cause_add(walk->causes,
                 n == 0 ? "FieldValueRequired" : "FieldValueInvalid",
                 walk->path->str,
                 "%s: must have %s one of %s",
                 n == 0 ? "Required value" : "Invalid value",
                 walk->rule->flags & CH_FIELD_AT_MOST_ONE ? "at most" : "exactly",
                 list);
}

static void
check_keys(const Walk *walk, const ChJson *object)
{
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    ch_json_iter_init(&iter, object);
    while (ch_json_iter_next(&iter, &key, &value)) {
        if (!ch_label_key_is_valid(key))
            ch_cause_add(walk->causes,
                         "FieldValueInvalid",
                         walk->path->str,
                         "Invalid value: \"%s\": must be a qualified name: an optional DNS "
                         "subdomain and '/', then at most 63 alphanumeric characters, '-', '_' "
                         "or '.', alphanumeric at both ends",
                         key);
    }
}

static void
check_value(const Walk *walk, const ChJson *value)
{
    const ChFieldRule *rule = walk->rule;
    const char *complaint = type_complaint(rule->type, value);

    if (complaint != NULL) {
        g_autofree char *shown = brief(value);

        ch_cause_add(walk->causes,
                     "FieldValueInvalid",
                     walk->path->str,
                     "Invalid value: %s: %s",
                     shown,
                     complaint);
    } else if (rule->type == CH_FIELD_ARRAY && ch_json_length(value) > CH_FIELD_MAX_ITEMS) {
        ch_cause_add(walk->causes,
                     "FieldValueTooMany",
                     walk->path->str,
                     "Too many: %" G_GSIZE_FORMAT ": must have at most %d items",
                     ch_json_length(value),
                     CH_FIELD_MAX_ITEMS);
    } else if (walk->seen != NULL &&
               !g_hash_table_add(walk->seen, (gpointer)ch_json_as_string(value))) {
        ch_cause_add(walk->causes,
                     "FieldValueDuplicate",
                     walk->path->str,
                     "Duplicate value: \"%s\"",
                     ch_json_as_string(value));
    } else if (rule->flags & CH_FIELD_QUALIFIED_KEYS) {
        check_keys(walk, value);
    } else if (rule->flags & (CH_FIELD_ONE_OF | CH_FIELD_AT_MOST_ONE)) {
        check_one_of(walk, value);
    } else if (rule->choices != NULL) {
        check_choice(walk, value);
    }
}

static void walk_value(Walk *walk, const ChJson *value, const char *rest);

static void
walk_items(Walk *walk, const ChJson *array, const char *rest)
{
    const gsize length = walk->path->len;
    const bool is_unique_here = (walk->rule->flags & CH_FIELD_UNIQUE) && strchr(rest, '[') == NULL;

    if (!ch_json_is_array(array))
        return; /* the array's own rule says so */
    if (is_unique_here)
        walk->seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (gsize i = 0; i < ch_json_length(array); i++) {
        g_string_append_printf(walk->path, "[%" G_GSIZE_FORMAT "]", i);
        walk_value(walk, ch_json_item(array, i), rest);
        g_string_truncate(walk->path, length);
    }
    if (is_unique_here)
        g_clear_pointer(&walk->seen, g_hash_table_unref);
}

static void
walk_members(Walk *walk, const ChJson *object, const char *rest)
{
    const gsize length = walk->path->len;
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    ch_json_iter_init(&iter, object);
    while (ch_json_iter_next(&iter, &key, &value)) {
        g_string_append_printf(walk->path, "[%s]", key);
        walk_value(walk, value, rest);
        g_string_truncate(walk->path, length);
    }
}

/* One named step down. */
static void
walk_member(Walk *walk, const ChJson *object, const char *rest)
{
    const gsize length = walk->path->len;
    const gsize n = strcspn(rest, ".[{");
    g_autofree char *key = g_strndup(rest, n);
    const ChJson *value;

    if (!ch_json_is_object(object))
        return;
    g_string_append_printf(walk->path, "%s%s", length > 0 ? "." : "", key);
    value = ch_json_at(object, key);
    if (value != NULL)
        walk_value(walk, value, rest + n);
    else if ((walk->rule->flags & CH_FIELD_REQUIRED) && rest[n] == '\0')
        ch_cause_add(walk->causes, "FieldValueRequired", walk->path->str, "Required value");
    g_string_truncate(walk->path, length);
}

/* @rest: what of the rule's path lies below @value. */
static void
walk_value(Walk *walk, const ChJson *value, const char *rest)
{
    if (*rest == '\0')
        check_value(walk, value);
    else if (g_str_has_prefix(rest, "[]"))
        walk_items(walk, value, rest + 2);
    else if (g_str_has_prefix(rest, "{}"))
        walk_members(walk, value, rest + 2);
    else
        walk_member(walk, value, *rest == '.' ? rest + 1 : rest);
}

void
ch_schema_check(const ChFieldRule *rules, gsize n_rules, const ChJson *object, GPtrArray *causes)
{
    g_autoptr(GString) path = g_string_new(NULL);

    for (gsize i = 0; i < n_rules; i++) {
        Walk walk = {.rule = &rules[i], .causes = causes, .path = path};

        walk_value(&walk, object, rules[i].path);
    }
}
