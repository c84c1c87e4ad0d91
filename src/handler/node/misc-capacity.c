/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/misc-capacity.h"

#include "lib/base/errors.h"
#include "lib/base/small-file.h"

#define MAX_FILE_BYTES (64u << 10)
#define BLANKS         " \t\r\v\f"

/* Returns: (transfer full): the fields of a line, none of them empty */
static GPtrArray *
split(const char *line)
{
    g_auto(GStrv) parts = g_strsplit_set(line, BLANKS, -1);
    GPtrArray *fields = g_ptr_array_new_with_free_func(g_free);

    for (char **part = parts; *part != NULL; part++)
        if ((*part)[0] != '\0')
            g_ptr_array_add(fields, g_strdup(*part));
    return fields;
}

bool
ch_misc_capacity_parse(const char *text, const char *key, int64_t *out_capacity, GError **error)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    *out_capacity = 0;
    for (char **line = lines; *line != NULL; line++) {
        g_autoptr(GPtrArray) fields = split(*line);

        if (fields->len != 2 || !g_str_equal(fields->pdata[0], key))
            continue;
        if (g_ascii_string_to_signed(
                fields->pdata[1], 10, G_MININT64, G_MAXINT64, out_capacity, NULL))
            return true;
        *out_capacity = 0;
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "'%s' is no number of %s in misc.capacity",
                       (const char *)fields->pdata[1],
                       key);
    }
    return ch_fail(error, CH_ERROR_NOT_FOUND, "key %s not found in misc.capacity", key);
}

bool
ch_misc_capacity_read(const char *path, const char *key, int64_t *out_capacity, GError **error)
{
    g_autofree char *text = ch_small_file_read(path, MAX_FILE_BYTES, NULL, error);

    *out_capacity = 0;
    return text != NULL && ch_misc_capacity_parse(text, key, out_capacity, error);
}
