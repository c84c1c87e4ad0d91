/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/json-fields.h"

#include "lib/base/errors.h"

static gpointer
member_of(const ChField *field, gpointer record)
{
    return (char *)record + field->offset;
}

static void
preset_text(const ChField *field, gpointer member)
{
    if (field->kind == CH_FIELD_STRINGS) {
        *(char ***)member = field->preset_text != NULL ? g_strsplit(field->preset_text, ",", -1)
                                                       : g_new0(char *, 1);
    } else if (field->kind == CH_FIELD_QUANTITY) {
        const bool is_valid = ch_quantity_parse(
            field->preset_text != NULL ? field->preset_text : "0", (ChQuantity *)member, NULL);

        g_assert(is_valid);
    } else {
        *(char **)member = g_strdup(field->preset_text);
    }
}

static void
set_number(const ChField *field, gpointer member, int64_t number)
{
    if (field->kind == CH_FIELD_INT64)
        *(int64_t *)member = number;
    else if (field->kind == CH_FIELD_UINT64)
        *(uint64_t *)member = (uint64_t)number;
    else if (field->kind == CH_FIELD_UINT32)
        *(uint32_t *)member = (uint32_t)number;
    else if (field->kind == CH_FIELD_TRISTATE)
        *(ChTristate *)member = (ChTristate)number;
    else
        *(bool *)member = number != 0;
}

static bool
is_text(ChFieldKind kind)
{
    return kind == CH_FIELD_STRING || kind == CH_FIELD_STRINGS || kind == CH_FIELD_QUANTITY ||
           kind == CH_FIELD_OBJECT;
}

void
ch_fields_preset(const ChField *fields, gsize n_fields, gpointer record)
{
    for (gsize i = 0; i < n_fields; i++) {
        if (is_text(fields[i].kind))
            preset_text(&fields[i], member_of(&fields[i], record));
        else
            set_number(&fields[i], member_of(&fields[i], record), fields[i].preset);
    }
}

void
ch_fields_clear(const ChField *fields, gsize n_fields, gpointer record)
{
    for (gsize i = 0; i < n_fields; i++) {
        gpointer member = member_of(&fields[i], record);

        if (fields[i].kind == CH_FIELD_STRINGS)
            g_clear_pointer((char ***)member, g_strfreev);
        else if (fields[i].kind == CH_FIELD_STRING || fields[i].kind == CH_FIELD_OBJECT)
            g_clear_pointer((char **)member, g_free);
    }
}

static bool
fail_type(const char *path, const char *wanted, GError **error)
{
    return ch_fail(error, CH_ERROR_INVALID, "'%s' is no %s", path, wanted);
}

char **
ch_json_strings(const ChJson *list, const char *name, GError **error)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();

    if (list != NULL && !ch_json_is_array(list)) {
        fail_type(name, "list", error);
        return NULL;
    }
    for (gsize i = 0; i < ch_json_length(list); i++) {
        const char *text = ch_json_as_string(ch_json_item(list, i));

        if (text == NULL) {
            ch_fail(error, CH_ERROR_INVALID, "'%s' has an item that is no string", name);
            return NULL;
        }
        g_strv_builder_add(builder, text);
    }
    return g_strv_builder_end(builder);
}

static bool
read_bool(const ChField *field, const ChJson *value, gpointer member, GError **error)
{
    bool is_true;

    if (!ch_json_is_bool(value))
        return fail_type(field->path, "boolean", error);
    is_true = ch_json_as_bool(value, false);
    if (field->kind == CH_FIELD_TRISTATE)
        *(ChTristate *)member = is_true ? CH_TRISTATE_YES : CH_TRISTATE_NO;
    else if (is_true || field->keeps_zero)
        *(bool *)member = is_true;
    return true;
}

static bool
read_number(const ChField *field, const ChJson *value, gpointer member, GError **error)
{
    int64_t number;

    if (!ch_json_as_int(value, &number))
        return fail_type(field->path, "integer", error);
    if (field->kind != CH_FIELD_INT64 &&
        (number < 0 || (field->kind == CH_FIELD_UINT32 && number > G_MAXUINT32)))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is out of range", field->path);
    if (number != 0 || field->keeps_zero)
        set_number(field, member, number);
    return true;
}

static bool
read_string(const ChField *field, const ChJson *value, gpointer member, GError **error)
{
    const char *text = ch_json_as_string(value);

    if (text == NULL)
        return fail_type(field->path, "string", error);
    if (text[0] != '\0' || field->keeps_zero) {
        g_free(*(char **)member);
        *(char **)member = g_strdup(text);
    }
    return true;
}

static bool
read_strings(const ChField *field, const ChJson *value, gpointer member, GError **error)
{
    g_auto(GStrv) strings = ch_json_strings(value, field->path, error);

    if (strings == NULL)
        return false;
    if (strings[0] != NULL || field->keeps_zero) {
        g_strfreev(*(char ***)member);
        *(char ***)member = g_steal_pointer(&strings);
    }
    return true;
}

static bool
read_quantity(const ChField *field, const ChJson *value, gpointer member, GError **error)
{
    g_autofree char *number = ch_json_is_number(value) ? ch_json_print(value, NULL) : NULL;
    const char *text = number != NULL ? number : ch_json_as_string(value);

    if (text == NULL || !ch_quantity_parse(text, (ChQuantity *)member, NULL))
        return fail_type(field->path, "quantity", error);
    return true;
}

static bool
read_object(const ChField *field, const ChJson *value, gpointer member, GError **error)
{
    if (!ch_json_is_object(value))
        return fail_type(field->path, "object", error);
    if (field->kind == CH_FIELD_PRESENCE) {
        *(bool *)member = true;
    } else {
        g_free(*(char **)member);
        *(char **)member = ch_json_print(value, NULL);
    }
    return true;
}

static bool
read_value(const ChField *field, const ChJson *value, gpointer member, GError **error)
{
    switch (field->kind) {
    case CH_FIELD_BOOL:
    case CH_FIELD_TRISTATE:
        return read_bool(field, value, member, error);
    case CH_FIELD_INT64:
    case CH_FIELD_UINT32:
    case CH_FIELD_UINT64:
        return read_number(field, value, member, error);
    case CH_FIELD_STRING:
        return read_string(field, value, member, error);
    case CH_FIELD_STRINGS:
        return read_strings(field, value, member, error);
    case CH_FIELD_QUANTITY:
        return read_quantity(field, value, member, error);
    case CH_FIELD_PRESENCE:
    case CH_FIELD_OBJECT:
        return read_object(field, value, member, error);
    case CH_FIELD_INVALID:
        break;
    }
    g_assert_not_reached();
}

/* The value at the path, NULL when there is none. An object that is none on the way is an error. */
static bool
find_value(const ChField *field, const ChJson *object, const ChJson **out_value, GError **error)
{
    g_auto(GStrv) steps = g_strsplit(field->path, ".", -1);

    for (char **step = steps; *step != NULL && object != NULL; step++) {
        if (!ch_json_is_object(object))
            return ch_fail(error, CH_ERROR_INVALID, "what holds '%s' is no object", field->path);
        object = ch_json_at(object, *step);
    }
    *out_value = object;
    return true;
}

bool
ch_fields_read(
    const ChField *fields, gsize n_fields, const ChJson *object, gpointer record, GError **error)
{
    for (gsize i = 0; i < n_fields; i++) {
        const ChJson *value;

        if (!find_value(&fields[i], object, &value, error))
            return false;
        if (value != NULL && !read_value(&fields[i], value, member_of(&fields[i], record), error))
            return false;
    }
    return true;
}
