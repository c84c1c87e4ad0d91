/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/waterfall.h"

#include "lib/base/time.h"
#include "local/cli/stage-log.h"

static const struct {
    const char *stage, *text;
} texts[] = {
    {"accepted", "VMI accepted"},
    {"created", "pod created"},
    {"pod-network", "pod has an address"},
    {"serving", "launcher serves"},
    {"seen", "VMI seen by the agent"},
    {"connected", "notify pipe connected"},
    {"network", "network set up"},
    {"synced", "launcher has the VMI"},
    {"defined", "domain defined"},
    {"started", "domain started"},
    {"running", "VMI Running"},
    {"agent", "guest agent connected"},
};

static const char *
text_of(const char *stage)
{
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (g_str_equal(texts[i].stage, stage))
            return texts[i].text;
    }
    return stage; /* of a newer agent */
}

typedef struct {
    const char *text;
    int64_t ms;
} Bar;

/* The agent's clock is the finer one: its own stages count by it. */
static GArray *
make_bars(const GArray *lines)
{
    GArray *bars = g_array_new(FALSE, FALSE, sizeof(Bar));
    int64_t seen_us = lines->len > 0 ? g_array_index(lines, ChStageLine, 0).wall_us : 0;

    for (guint i = 0; i < lines->len; i++) {
        const ChStageLine *line = &g_array_index(lines, ChStageLine, i);

        if (g_str_equal(line->stage, "seen"))
            seen_us = line->wall_us;
    }
    for (guint i = 0; i < lines->len; i++) {
        const ChStageLine *line = &g_array_index(lines, ChStageLine, i);
        const Bar bar = {text_of(line->stage),
                         line->elapsed_ms >= 0 ? line->elapsed_ms
                                               : (line->wall_us - seen_us) / CH_MS_US};

        g_array_append_val(bars, bar);
    }
    return bars;
}

static int
compare_bars(gconstpointer a, gconstpointer b)
{
    const int64_t x = ((const Bar *)a)->ms;
    const int64_t y = ((const Bar *)b)->ms;

    return x < y ? -1 : x > y;
}

static int
column(int64_t ms, int64_t first_ms, int64_t last_ms)
{
    const int64_t span_ms = MAX(last_ms - first_ms, 1);

    return (int)((ms - first_ms) * CH_WATERFALL_COLUMNS / span_ms);
}

char *
ch_waterfall_render(const GArray *lines)
{
    g_autoptr(GArray) bars = make_bars(lines);
    GString *out = g_string_new(NULL);
    int64_t first_ms, last_ms;

    if (bars->len == 0)
        return g_string_free(out, FALSE);
    g_array_sort(bars, compare_bars);
    first_ms = g_array_index(bars, Bar, 0).ms;
    last_ms = g_array_index(bars, Bar, bars->len - 1).ms;
    for (guint i = 0; i < bars->len; i++) {
        const Bar *bar = &g_array_index(bars, Bar, i);
        const int64_t from_ms = i > 0 ? g_array_index(bars, Bar, i - 1).ms : bar->ms;
        const int from = column(from_ms, first_ms, last_ms);
        const int to = column(bar->ms, first_ms, last_ms);

        g_string_append_printf(
            out, "  %-22s %8" G_GINT64_FORMAT " ms  %*s", bar->text, bar->ms, from, "");
        for (int c = from; c < to; c++)
            g_string_append(out, "━");
        g_string_append(out, "╸\n");
    }
    return g_string_free(out, FALSE);
}
