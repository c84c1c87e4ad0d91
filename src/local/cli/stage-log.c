/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/stage-log.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/time.h"
#include "lib/json/json.h"

void
ch_stage_line_clear(gpointer line)
{
    ChStageLine *self = line;

    g_clear_pointer(&self->stage, g_free);
    g_clear_pointer(&self->uid, g_free);
}

bool
ch_stage_line_parse(
    const char *text, gsize length, const char *namespace_, const char *name, ChStageLine *out_line)
{
    g_autoptr(ChJson) json = NULL;
    ChStageLine line = {.elapsed_ms = -1};
    const char *stage, *uid, *timestamp;

    if (length > CH_STAGE_LOG_MAX_LINE || memmem(text, length, "\"stage\"", 7) == NULL)
        return false;
    json = ch_json_parse(text, (gssize)length, NULL);
    stage = ch_json_string_at(json, "stage");
    uid = ch_json_string_at(json, "uid");
    timestamp = ch_json_string_at(json, "timestamp");
    if (stage == NULL || uid == NULL || timestamp == NULL ||
        g_strcmp0(ch_json_string_at(json, "namespace"), namespace_) != 0 ||
        g_strcmp0(ch_json_string_at(json, "name"), name) != 0 ||
        !ch_time_parse(timestamp, &line.wall_us, NULL))
        return false;
    (void)ch_json_int_at(json, &line.elapsed_ms, "elapsedMs");
    line.stage = g_strdup(stage);
    line.uid = g_strdup(uid);
    *out_line = line;
    return true;
}

static void
load_file(const char *path, const char *namespace_, const char *name, GArray *lines)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    ssize_t length;

    if (file == NULL)
        return;
    while ((length = getline(&text, &size, file)) > 0) {
        ChStageLine line;

        if (ch_stage_line_parse(text, (gsize)length, namespace_, name, &line))
            g_array_append_val(lines, line);
    }
    free(text);
    fclose(file);
}

static int
compare_time(gconstpointer a, gconstpointer b)
{
    const int64_t x = ((const ChStageLine *)a)->wall_us;
    const int64_t y = ((const ChStageLine *)b)->wall_us;

    return x < y ? -1 : x > y;
}

GArray *
ch_stage_log_load(const char *const *paths,
                  const char *namespace_,
                  const char *name,
                  const char *uid)
{
    GArray *lines = g_array_new(FALSE, FALSE, sizeof(ChStageLine));
    g_autofree char *last = NULL;

    g_array_set_clear_func(lines, ch_stage_line_clear);
    for (gsize i = 0; paths[i] != NULL; i++)
        load_file(paths[i], namespace_, name, lines);
    g_array_sort(lines, compare_time);
    if (uid == NULL && lines->len > 0)
        last = g_strdup(g_array_index(lines, ChStageLine, lines->len - 1).uid);
    for (guint i = lines->len; i > 0; i--) {
        const ChStageLine *line = &g_array_index(lines, ChStageLine, i - 1);

        if (g_strcmp0(line->uid, uid != NULL ? uid : last) != 0)
            g_array_remove_index(lines, i - 1);
    }
    return lines;
}
