/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Is the new status any news? The rule of 02 §2.2, on documents instead of typed values.
 */

#include "handler/reconcile/status-internal.h"

#include "lib/base/quantity.h"
#include "lib/base/time.h"

/* Objects that are no optional structs: empty equals absent. */
static const char *const always_there[] = {
    "guestOSInfo",
    "activePods",
    "targetDirectMigrationNodePorts",
    "directMigrationNodePorts",
    NULL,
};

/* What a typed decoder makes of it is what it makes of nothing. */
static bool
is_zero(const char *key, const ChJson *value)
{
    int64_t number;
    const char *text;

    if (value == NULL)
        return true;
    if (ch_json_is_array(value))
        return ch_json_length(value) == 0;
    if (ch_json_is_object(value))
        return ch_json_length(value) == 0 && g_strv_contains(always_there, key);
    text = ch_json_as_string(value);
    if (text != NULL)
        return text[0] == '\0';
    return ch_json_as_int(value, &number) ? number == 0 : !ch_json_as_bool(value, true);
}

static bool
is_same_instant(const char *a, const char *b)
{
    int64_t a_us, b_us;

    return ch_time_parse(a, &a_us, NULL) && ch_time_parse(b, &b_us, NULL) && a_us == b_us;
}

static bool
is_same_quantity(const char *a, const char *b)
{
    ChQuantity quantity_a, quantity_b;

    return ch_quantity_parse(a, &quantity_a, NULL) && ch_quantity_parse(b, &quantity_b, NULL) &&
           ch_quantity_compare(&quantity_a, &quantity_b) == 0;
}

static bool
is_text_equal(const char *parent, const char *key, const char *a, const char *b)
{
    if (g_str_equal(a, b))
        return true;
    if (g_str_equal(parent, "memory"))
        return is_same_quantity(a, b);
    return (g_str_has_suffix(key, "Timestamp") || g_str_has_suffix(key, "Time")) &&
           is_same_instant(a, b);
}

static bool is_equal(const char *parent, const char *key, const ChJson *a, const ChJson *b);

/* Every member of @a has its equal in @b. */
static bool
contains_members(const char *key, const ChJson *a, const ChJson *b)
{
    ChJsonIter iter;
    const char *member;
    ChJson *value;

    ch_json_iter_init(&iter, a);
    while (ch_json_iter_next(&iter, &member, &value))
        if (!is_equal(key, member, value, ch_json_at(b, member)))
            return false;
    return true;
}

static bool
is_list_equal(const char *key, const ChJson *a, const ChJson *b)
{
    if (ch_json_length(a) != ch_json_length(b))
        return false;
    for (gsize i = 0; i < ch_json_length(a); i++)
        if (!is_equal(key, "", ch_json_item(a, i), ch_json_item(b, i)))
            return false;
    return true;
}

static bool
is_equal(const char *parent, const char *key, const ChJson *a, const ChJson *b)
{
    if (is_zero(key, a) && is_zero(key, b))
        return true;
    if (ch_json_is_object(a) && ch_json_is_object(b))
        return contains_members(key, a, b) && contains_members(key, b, a);
    if (ch_json_is_array(a) && ch_json_is_array(b))
        return is_list_equal(key, a, b);
    if (ch_json_as_string(a) != NULL && ch_json_as_string(b) != NULL)
        return is_text_equal(parent, key, ch_json_as_string(a), ch_json_as_string(b));
    return a != NULL && b != NULL && ch_json_equal(a, b);
}

bool
ch_status_is_equal(const ChJson *old_status, const ChJson *new_status)
{
    return is_equal("", "status", old_status, new_status);
}
