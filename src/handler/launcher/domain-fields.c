/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher/domain-internal.h"

#include "lib/base/errors.h"
#include "lib/base/time.h"

/* Of a list. How many interfaces a guest shows is its own affair: the rest of them is not told. */
#define MAX_ITEMS 4096

bool
ch_domain_wrong_type(const char *key, const char *wanted, GError **error)
{
    ch_fail(error, CH_ERROR_INVALID, "domain: '%s' is no %s", key, wanted);
    return false; /* spelled out: the compiler is to see that outputs are not used then */
}

const char *
ch_domain_keep_text(ChDomain *domain, const ChJson *value)
{
    const char *text = ch_json_as_string(value);

    if (text == NULL)
        return "\xEF\xBF\xBD"; /* U+FFFD */
    return text[0] != '\0' ? g_string_chunk_insert(domain->texts, text) : "";
}

static bool
read_integer(const ChJson *value, const char *key, int64_t *out_value, GError **error)
{
    return ch_json_as_int(value, out_value) || ch_domain_wrong_type(key, "64-bit integer", error);
}

/* Beyond int64 as well: panic arguments are addresses. */
static bool
read_unsigned(const ChJson *value, const char *key, uint64_t *out_value, GError **error)
{
    g_autofree char *text = ch_json_is_string(value) ? NULL : ch_json_print(value, NULL);

    return (text != NULL &&
            g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, out_value, NULL)) ||
           ch_domain_wrong_type(key, "unsigned 64-bit integer", error);
}

bool
ch_domain_read_time(const ChJson *value, const char *key, ChDomainTime *out_time, GError **error)
{
    const char *text = ch_json_as_string(value);

    out_time->is_set = text != NULL && ch_time_parse(text, &out_time->wall_us, NULL);
    return out_time->is_set || ch_domain_wrong_type(key, "time", error);
}

static bool
read_field(
    ChDomain *domain, const ChJson *value, const ChDomainField *field, void *target, GError **error)
{
    switch (field->type) {
    case FIELD_STRING:
        if (!ch_json_is_string(value))
            return ch_domain_wrong_type(field->key, "string", error);
        *(const char **)target = ch_domain_keep_text(domain, value);
        return true;
    case FIELD_BOOL:
        if (!ch_json_is_bool(value))
            return ch_domain_wrong_type(field->key, "boolean", error);
        *(bool *)target = ch_json_as_bool(value, false);
        return true;
    case FIELD_INT:
        return read_integer(value, field->key, target, error);
    case FIELD_UINT:
        return read_unsigned(value, field->key, target, error);
    case FIELD_TIME:
        return ch_domain_read_time(value, field->key, target, error);
    case FIELD_EXISTS:
        if (!ch_json_is_object(value))
            return ch_domain_wrong_type(field->key, "object", error);
        *(bool *)target = true;
        return true;
    }
    g_assert_not_reached();
}

bool
ch_domain_read_fields(ChDomain *domain,
                      const ChJson *object,
                      const ChDomainField *fields,
                      gsize n_fields,
                      void *record,
                      GError **error)
{
    for (gsize i = 0; i < n_fields; i++) {
        void *target = (char *)record + fields[i].offset;
        const ChJson *value = ch_json_at(object, fields[i].key);

        if (fields[i].type == FIELD_STRING)
            *(const char **)target = "";
        if (value != NULL && !read_field(domain, value, &fields[i], target, error))
            return false;
    }
    return true;
}

bool
ch_domain_read_object(const ChJson *parent,
                      const char *key,
                      const ChJson **out_child,
                      GError **error)
{
    const ChJson *child = ch_json_at(parent, key);

    if (child != NULL && !ch_json_is_object(child))
        return ch_domain_wrong_type(key, "object", error);
    *out_child = child;
    return true;
}

bool
ch_domain_read_list(ChDomain *domain,
                    const ChJson *parent,
                    const char *key,
                    ChDomainReadItem read_item,
                    GError **error)
{
    const ChJson *list = ch_json_at(parent, key);

    if (list != NULL && !ch_json_is_array(list))
        return ch_domain_wrong_type(key, "list", error);
    for (gsize i = 0; i < MIN(ch_json_length(list), MAX_ITEMS); i++) {
        const ChJson *item = ch_json_item(list, i);

        if (item != NULL && !ch_json_is_object(item))
            return ch_domain_wrong_type(key, "list of objects", error);
        if (!read_item(domain, item, error))
            return false;
    }
    return true;
}
