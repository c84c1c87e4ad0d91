/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/secret.h"

#include <string.h>

void
ch_secret_normalize(ChJson *object)
{
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    if (ch_json_string_at(object, "type") == NULL)
        ch_json_set_string(object, "type", "Opaque");
    ch_json_iter_init(&iter, ch_json_at(object, "stringData"));
    while (ch_json_iter_next(&iter, &key, &value)) {
        const char *text = ch_json_as_string(value);
        g_autofree char *encoded = NULL;

        if (text == NULL)
            continue;
        encoded = g_base64_encode((const guchar *)text, strlen(text));
        ch_json_set_string(ch_json_ensure_object(object, "data"), key, encoded);
    }
    ch_json_remove(object, "stringData");
}
