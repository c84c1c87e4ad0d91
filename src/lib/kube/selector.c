/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/selector.h"

#include "lib/base/errors.h"
#include "lib/kube/names.h"

#include <string.h>

typedef enum {
    OP_INVALID = 0,
    OP_EXISTS,
    OP_NOT_EXISTS,
    OP_EQUALS,
    OP_NOT_EQUALS,
    OP_IN,
    OP_NOT_IN,
} Op;

typedef struct {
    char *key;
    Op op;
    GPtrArray *values; /* char *; one for EQUALS and NOT_EQUALS, none for the first two */
} Requirement;

struct ChSelector {
    bool is_fields;
    GPtrArray *requirements; /* Requirement * */
};

static void
requirement_free(gpointer data)
{
    Requirement *requirement = data;

    g_free(requirement->key);
    g_ptr_array_unref(requirement->values);
    g_free(requirement);
}

static Requirement *
add_requirement(ChSelector *selector, Op op)
{
    Requirement *requirement = g_new0(Requirement, 1);

    requirement->op = op;
    requirement->values = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(selector->requirements, requirement);
    return requirement;
}

static ChSelector *
selector_new(bool is_fields)
{
    ChSelector *selector = g_new0(ChSelector, 1);

    selector->is_fields = is_fields;
    selector->requirements = g_ptr_array_new_with_free_func(requirement_free);
    return selector;
}

void
ch_selector_free(ChSelector *selector)
{
    if (selector == NULL)
        return;
    g_ptr_array_unref(selector->requirements);
    g_free(selector);
}

/* -- label selectors: each take_ function leaves *text behind what it took, spaces included -- */

static void
skip_space(const char **text)
{
    *text += strspn(*text, " \t\r\n");
}

static bool
take(const char **text, const char *token)
{
    if (!g_str_has_prefix(*text, token))
        return false;
    *text += strlen(token);
    skip_space(text);
    return true;
}

/* (transfer full): everything up to a special character or space; maybe empty */
static char *
take_word(const char **text)
{
    const gsize length = strcspn(*text, "=!(),<> \t\r\n");
    char *word = g_strndup(*text, length);

    *text += length;
    skip_space(text);
    return word;
}

static bool
take_value(const char **text, Requirement *requirement, GError **error)
{
    g_autofree char *value = take_word(text);

    if (!ch_label_value_is_valid(value))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is no valid label value", value);
    g_ptr_array_add(requirement->values, g_steal_pointer(&value));
    return true;
}

static bool
take_value_list(const char **text, Requirement *requirement, GError **error)
{
    if (!take(text, "("))
        return ch_fail(error, CH_ERROR_INVALID, "'(' expected at '%.32s'", *text);
    do {
        if (!take_value(text, requirement, error))
            return false;
    } while (take(text, ","));
    if (!take(text, ")"))
        return ch_fail(error, CH_ERROR_INVALID, "',' or ')' expected at '%.32s'", *text);
    return true;
}

static bool
take_key(const char **text, Requirement *requirement, GError **error)
{
    requirement->key = take_word(text);
    if (!ch_label_key_is_valid(requirement->key))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is no valid label key", requirement->key);
    return true;
}

/* Behind the key. OP_EXISTS: there is no operator. */
static Op
take_operator(const char **text)
{
    g_autofree char *word = NULL;

    if (take(text, "==") || take(text, "="))
        return OP_EQUALS;
    if (take(text, "!="))
        return OP_NOT_EQUALS;
    word = take_word(text);
    if (g_str_equal(word, "in"))
        return OP_IN;
    if (g_str_equal(word, "notin"))
        return OP_NOT_IN;
    return *word == '\0' ? OP_EXISTS : OP_INVALID;
}

static bool
take_requirement(const char **text, Requirement *requirement, GError **error)
{
    if (take(text, "!")) {
        requirement->op = OP_NOT_EXISTS;
        return take_key(text, requirement, error);
    }
    if (!take_key(text, requirement, error))
        return false;
    requirement->op = take_operator(text);
    switch (requirement->op) {
    case OP_EQUALS:
    case OP_NOT_EQUALS:
        return take_value(text, requirement, error);
    case OP_IN:
    case OP_NOT_IN:
        return take_value_list(text, requirement, error);
    case OP_INVALID:
        return ch_fail(error, CH_ERROR_INVALID, "no operator behind '%s'", requirement->key);
    case OP_EXISTS:
    case OP_NOT_EXISTS:
        break;
    }
    return true;
}

static bool
check_length(const char *text, GError **error)
{
    if (strnlen(text, CH_SELECTOR_MAX_TEXT + 1) > CH_SELECTOR_MAX_TEXT)
        return ch_fail(error, CH_ERROR_LIMIT, "selector is too long");
    return true;
}

ChSelector *
ch_selector_parse_labels(const char *text, GError **error)
{
    g_autoptr(ChSelector) selector = selector_new(false);

    if (!check_length(text, error))
        return NULL;
    skip_space(&text);
    if (*text == '\0')
        return g_steal_pointer(&selector);
    do {
        if (!take_requirement(&text, add_requirement(selector, OP_EXISTS), error))
            return NULL;
    } while (take(&text, ","));
    if (*text != '\0') {
        ch_fail(error, CH_ERROR_INVALID, "',' expected at '%.32s'", text);
        return NULL;
    }
    return g_steal_pointer(&selector);
}

/* -- field selectors -- */

/* (transfer full): up to the next bare comma or end, unescaped; NULL on error */
static char *
take_field_value(const char **text, GError **error)
{
    g_autoptr(GString) value = g_string_new(NULL);

    for (; **text != '\0' && **text != ','; ++*text) {
        if (**text == '=') {
            ch_fail(error, CH_ERROR_INVALID, "bare '=' in the value of a field selector");
            return NULL;
        }
        if (**text == '\\') {
            ++*text;
            if (**text == '\0' || strchr("\\,=", **text) == NULL) {
                ch_fail(error, CH_ERROR_INVALID, "unknown escape in a field selector");
                return NULL;
            }
        }
        g_string_append_c(value, **text);
    }
    return g_string_free(g_steal_pointer(&value), FALSE);
}

static bool
take_field_term(const char **text, ChSelector *selector, GError **error)
{
    const gsize key_length = strcspn(*text, "=!,\\");
    Requirement *requirement;
    const char *rest = *text + key_length;
    Op op = OP_EQUALS;
    char *value;

    if (g_str_has_prefix(rest, "!=")) {
        op = OP_NOT_EQUALS;
        rest += 2;
    } else if (*rest == '=') {
        rest += rest[1] == '=' ? 2 : 1;
    } else {
        op = OP_INVALID;
    }
    if (op == OP_INVALID || key_length == 0)
        return ch_fail(error, CH_ERROR_INVALID, "no field selector at '%.32s'", *text);
    requirement = add_requirement(selector, op);
    requirement->key = g_strndup(*text, key_length);
    value = take_field_value(&rest, error);
    if (value == NULL)
        return false;
    g_ptr_array_add(requirement->values, value);
    *text = rest;
    return true;
}

ChSelector *
ch_selector_parse_fields(const char *text, GError **error)
{
    g_autoptr(ChSelector) selector = selector_new(true);

    if (!check_length(text, error))
        return NULL;
    while (*text != '\0') {
        if (*text == ',') /* empty terms are allowed */
            text++;
        else if (!take_field_term(&text, selector, error))
            return NULL;
    }
    return g_steal_pointer(&selector);
}

/* -- matching -- */

/* @value: (nullable): the object's; NULL: it has none */
static bool
holds(const Requirement *requirement, const char *value)
{
    const bool is_listed = value != NULL && g_ptr_array_find_with_equal_func(
                                                requirement->values, value, g_str_equal, NULL);

    switch (requirement->op) {
    case OP_EXISTS:
        return value != NULL;
    case OP_NOT_EXISTS:
        return value == NULL;
    case OP_EQUALS:
    case OP_IN:
        return is_listed;
    case OP_NOT_EQUALS:
    case OP_NOT_IN:
        return !is_listed;
    case OP_INVALID:
        break;
    }
    g_return_val_if_reached(false);
}

/* (transfer full) */
static char *
field_text(const ChJson *object, const char *path)
{
    g_auto(GStrv) steps = g_strsplit(path, ".", -1);
    const ChJson *value = object;

    for (guint i = 0; steps[i] != NULL; i++)
        value = ch_json_at(value, steps[i]);
    if (ch_json_is_string(value))
        return g_strdup(ch_json_as_string(value) != NULL ? ch_json_as_string(value) : "");
    if (value == NULL || ch_json_is_object(value) || ch_json_is_array(value))
        return g_strdup("");
    return ch_json_print(value, NULL);
}

bool
ch_selector_matches_labels(const ChSelector *selector, const ChJson *labels)
{
    g_return_val_if_fail(!selector->is_fields, false);
    for (guint i = 0; i < selector->requirements->len; i++) {
        const Requirement *requirement = selector->requirements->pdata[i];

        if (!holds(requirement, ch_json_string_at(labels, requirement->key)))
            return false;
    }
    return true;
}

bool
ch_selector_matches(const ChSelector *selector, const ChJson *object)
{
    if (!selector->is_fields)
        return ch_selector_matches_labels(selector, ch_json_at(object, "metadata", "labels"));
    for (guint i = 0; i < selector->requirements->len; i++) {
        const Requirement *requirement = selector->requirements->pdata[i];
        g_autofree char *value = field_text(object, requirement->key);

        if (!holds(requirement, value))
            return false;
    }
    return true;
}

const char *
ch_selector_key(const ChSelector *selector, guint index)
{
    const Requirement *requirement;

    if (index >= selector->requirements->len)
        return NULL;
    requirement = selector->requirements->pdata[index];
    return requirement->key;
}
