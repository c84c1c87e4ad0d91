/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/troubles.h"

ChJson *
ch_trouble_new(const char *of, const char *reason, const char *message)
{
    ChJson *trouble = ch_json_new_object();

    ch_json_set_string(trouble, "of", of);
    ch_json_set_string(trouble, "reason", reason);
    ch_json_set_string(trouble, "message", message);
    return trouble;
}

bool
ch_troubles_have(const ChJson *troubles, const char *of)
{
    return ch_json_find(troubles, "of", of) != NULL;
}

static bool
contains(const ChJson *troubles, const ChJson *trouble)
{
    for (gsize i = 0; i < ch_json_length(troubles); i++) {
        if (ch_json_equal(ch_json_item(troubles, i), trouble))
            return true;
    }
    return false;
}

ChJson *
ch_troubles_news(ChJson *told, const ChJson *troubles)
{
    ChJson *news = ch_json_new_array();

    for (gsize i = ch_json_length(told); i > 0; i--) {
        if (!ch_troubles_have(troubles, ch_json_string_at(ch_json_item(told, i - 1), "of")))
            ch_json_remove_item(told, i - 1);
    }
    for (gsize i = 0; i < ch_json_length(troubles); i++) {
        const ChJson *trouble = ch_json_item(troubles, i);

        if (contains(told, trouble))
            continue;
        ch_json_append(news, ch_json_dup(trouble));
        ch_json_append(told, ch_json_dup(trouble));
    }
    while (ch_json_length(told) > CH_TROUBLES_MAX)
        ch_json_remove_item(told, 0);
    return news;
}
