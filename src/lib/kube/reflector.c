/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/reflector.h"

#include "lib/base/time.h"
#include "lib/io/http-client.h"
#include "lib/kube/api-status.h"

#define WATCH_TIMEOUT_MIN_S 300

static void
set_text(char **slot, const char *text)
{
    char *copy = g_strdup(text); /* before the free: @text may be *slot */

    g_free(*slot);
    *slot = copy;
}

void
ch_reflector_init(ChReflector *reflector)
{
    *reflector = (ChReflector){.last_version = g_strdup(""), .list_version = g_strdup("")};
}

void
ch_reflector_clear(ChReflector *reflector)
{
    g_clear_pointer(&reflector->last_version, g_free);
    g_clear_pointer(&reflector->list_version, g_free);
    g_clear_pointer(&reflector->result_version, g_free);
    g_clear_pointer(&reflector->token, g_free);
}

static const char *
version_to_list_at(const ChReflector *reflector)
{
    if (reflector->is_version_unavailable)
        return "";
    return *reflector->last_version == '\0' ? "0" : reflector->last_version;
}

/* One walk over the pages, from the first. */
static void
restart_pages(ChReflector *reflector, const char *version, guint limit)
{
    set_text(&reflector->list_version, version);
    reflector->limit = limit;
    reflector->kept_bytes = 0;
    g_clear_pointer(&reflector->token, g_free);
    g_clear_pointer(&reflector->result_version, g_free);
}

void
ch_reflector_begin_list(ChReflector *reflector)
{
    const char *version = version_to_list_at(reflector);
    /* With a concrete version the watch cache can answer, but only unlimited requests. */
    const bool is_concrete = *version != '\0' && !g_str_equal(version, "0");
    const bool pages = reflector->is_paginated || !is_concrete;

    restart_pages(reflector, version, pages ? CH_REFLECTOR_PAGE_SIZE : 0);
    reflector->is_full_retry = false;
    reflector->is_second_try = false;
    reflector->was_paged = false;
    reflector->is_initial = g_str_equal(version, "0");
}

ChListQuery
ch_reflector_list_query(const ChReflector *reflector)
{
    return (ChListQuery){
        .limit = reflector->limit,
        /* The token stands for the version of its first page; servers refuse both together. */
        .version = reflector->token != NULL ? "" : reflector->list_version,
        .token = reflector->token,
    };
}

bool
ch_reflector_may_keep(ChReflector *reflector, gsize n_bytes)
{
    reflector->kept_bytes += n_bytes;
    return reflector->kept_bytes <= CH_REFLECTOR_MAX_BYTES;
}

static void
finish_list(ChReflector *reflector)
{
    /* Only the initial list (version "0") tells whether the server pages on its own. */
    if (reflector->was_paged && reflector->is_initial)
        reflector->is_paginated = true;
    reflector->is_version_unavailable = false;
    set_text(&reflector->last_version, reflector->result_version);
    g_clear_pointer(&reflector->token, g_free);
}

ChListReaction
ch_reflector_page_done(ChReflector *reflector, const char *version, const char *token)
{
    const bool has_next = token != NULL && *token != '\0' && !reflector->is_full_retry;

    if (reflector->result_version == NULL)
        reflector->result_version = g_strdup(version != NULL ? version : "");
    if (!has_next) {
        finish_list(reflector);
        return CH_LIST_DONE;
    }
    reflector->was_paged = true;
    set_text(&reflector->token, token);
    return CH_LIST_NEXT_PAGE;
}

ChListReaction
ch_reflector_page_failed(ChReflector *reflector, const GError *error)
{
    const guint page_size = reflector->is_full_retry ? CH_REFLECTOR_PAGE_SIZE : reflector->limit;
    const bool has_token_expired =
        reflector->token != NULL && g_str_equal(ch_kube_error_reason(error), "Expired");

    if (has_token_expired) {
        reflector->is_full_retry = true;
        restart_pages(reflector, reflector->list_version, 0);
        return CH_LIST_RESTART;
    }
    if (!ch_kube_error_is_expired(error) && !ch_kube_error_is_too_large_version(error))
        return CH_LIST_FAILED;
    reflector->is_version_unavailable = true;
    if (reflector->is_second_try)
        return CH_LIST_FAILED;
    reflector->is_second_try = true;
    reflector->is_full_retry = false;
    reflector->was_paged = false;
    restart_pages(reflector, "", page_size);
    return CH_LIST_RESTART;
}

void
ch_reflector_saw(ChReflector *reflector, const char *version)
{
    if (version != NULL && *version != '\0')
        set_text(&reflector->last_version, version);
}

/* clang-format off */
static const ChWatchRule watch_rules[] = {
    /*                                                           quiet */
    [CH_WATCH_OPEN_REFUSED]    = { CH_REACT_PAUSE_REOPEN,        true,  "the API server refuses connections" },
    [CH_WATCH_OPEN_THROTTLED]  = { CH_REACT_PAUSE_REOPEN,        true,  "the API server is busy" },
    [CH_WATCH_OPEN_FAILED]     = { CH_REACT_PAUSE_RELIST,        false, "failed to watch" },
    [CH_WATCH_ENDED]           = { CH_REACT_REOPEN,              true,  "watch closed" },
    [CH_WATCH_ENDED_EARLY]     = { CH_REACT_PAUSE_RELIST,        false, "very short watch" },
    [CH_WATCH_ENDED_OFTEN]     = { CH_REACT_PAUSE_REOPEN,        true,  "watches end at once" },
    [CH_WATCH_ERROR_EXPIRED]   = { CH_REACT_PAUSE_RELIST,        true,  "watch expired" },
    [CH_WATCH_ERROR_THROTTLED] = { CH_REACT_PAUSE_REOPEN,        true,  "the API server is busy" },
    [CH_WATCH_ERROR_OTHER]     = { CH_REACT_PAUSE_RELIST,        false, "watch ended with error" },
};
/* clang-format on */
G_STATIC_ASSERT(G_N_ELEMENTS(watch_rules) == CH_WATCH_N);

const ChWatchRule *
ch_watch_rule(ChWatchOutcome outcome)
{
    g_assert(outcome > CH_WATCH_INVALID && outcome < CH_WATCH_N);
    return &watch_rules[outcome];
}

ChWatchOutcome
ch_watch_outcome_of_open(const GError *error)
{
    if (g_error_matches(error, CH_HTTP_ERROR, CH_HTTP_ERROR_REFUSED))
        return CH_WATCH_OPEN_REFUSED;
    if (g_error_matches(error, CH_KUBE_ERROR, 429))
        return CH_WATCH_OPEN_THROTTLED;
    return CH_WATCH_OPEN_FAILED;
}

/* Lost connections and time-outs just end a stream; bytes that are no HTTP, and a reset of this
 * stream alone, are an error in it. */
static bool
is_plain_end(const GError *error)
{
    return !g_error_matches(error, CH_HTTP_ERROR, CH_HTTP_ERROR_PROTOCOL) &&
           !g_error_matches(error, CH_HTTP_ERROR, CH_HTTP_ERROR_LIMIT) &&
           !g_error_matches(error, CH_HTTP_ERROR, CH_HTTP_ERROR_STREAM);
}

ChWatchOutcome
ch_watch_outcome_of_end(const GError *error, guint64 n_events, int64_t duration_us)
{
    if (!is_plain_end(error))
        return CH_WATCH_ERROR_OTHER;
    return n_events > 0 || duration_us >= CH_SECOND_US ? CH_WATCH_ENDED : CH_WATCH_ENDED_EARLY;
}

ChWatchOutcome
ch_watch_outcome_of_event(const GError *error)
{
    if (ch_kube_error_is_expired(error))
        return CH_WATCH_ERROR_EXPIRED;
    if (g_error_matches(error, CH_KUBE_ERROR, 429))
        return CH_WATCH_ERROR_THROTTLED;
    return CH_WATCH_ERROR_OTHER;
}

guint
ch_reflector_watch_timeout(double random)
{
    return (guint)(WATCH_TIMEOUT_MIN_S * (1.0 + random));
}

/* Appends "name=value" in the form encoding: everything but unreserved characters is escaped, a
 * space is "+". Nothing for an empty value. */
static void
append_parameter(GString *path, const char *name, const char *value)
{
    if (value == NULL || *value == '\0')
        return;
    g_string_append_c(path, strchr(path->str, '?') == NULL ? '?' : '&');
    g_string_append_printf(path, "%s=", name);
    for (const char *c = value; *c != '\0'; c++) {
        if (g_ascii_isalnum(*c) || strchr("-_.~", *c) != NULL)
            g_string_append_c(path, *c);
        else if (*c == ' ')
            g_string_append_c(path, '+');
        else
            g_string_append_printf(path, "%%%02X", (guint)(guchar)*c);
    }
}

static void
append_number(GString *path, const char *name, guint value)
{
    g_autofree char *text = g_strdup_printf("%u", value);

    append_parameter(path, name, value > 0 ? text : "");
}

char *
ch_reflector_list_path(const ChListQuery *query,
                       const char *path,
                       const char *label_selector,
                       const char *field_selector)
{
    GString *text = g_string_new(path);

    append_parameter(text, "continue", query->token);
    append_parameter(text, "fieldSelector", field_selector);
    append_parameter(text, "labelSelector", label_selector);
    append_number(text, "limit", query->limit);
    append_parameter(text, "resourceVersion", query->version);
    return g_string_free(text, FALSE);
}

char *
ch_reflector_watch_path(const char *version,
                        guint timeout_s,
                        const char *path,
                        const char *label_selector,
                        const char *field_selector)
{
    GString *text = g_string_new(path);

    append_parameter(text, "allowWatchBookmarks", "true");
    append_parameter(text, "fieldSelector", field_selector);
    append_parameter(text, "labelSelector", label_selector);
    append_parameter(text, "resourceVersion", version);
    append_number(text, "timeoutSeconds", timeout_s);
    append_parameter(text, "watch", "true");
    return g_string_free(text, FALSE);
}
