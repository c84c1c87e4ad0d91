/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/token-source.h"

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/small-file.h"
#include "lib/base/time.h"

#define LIFETIME_US     (50 * CH_SECOND_US) /* a minute minus ten seconds of leeway */
#define MAX_TOKEN_BYTES (64 << 10)

struct ChTokenSource {
    char *file;  /* (nullable) */
    char *token; /* (nullable) */
    int64_t read_us;
    bool is_stale; /* read it anew whatever its age */
};

ChTokenSource *
ch_token_source_new(const char *fixed, const char *file)
{
    ChTokenSource *source = g_new0(ChTokenSource, 1);

    source->token = g_strdup(fixed);
    source->file = g_strdup(file);
    source->is_stale = true;
    return source;
}

void
ch_token_source_free(ChTokenSource *source)
{
    if (source == NULL)
        return;
    g_free(source->file);
    g_free(source->token);
    g_free(source);
}

/* A token goes into a header line: visible ASCII only. */
static bool
is_token(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (!g_ascii_isgraph(*c))
            return false;
    return *text != '\0';
}

/* Returns: (transfer full): NULL with @error set */
static char *
read_token(const char *file, GError **error)
{
    g_autofree char *text = ch_small_file_read(file, MAX_TOKEN_BYTES, NULL, error);

    if (text == NULL)
        return NULL;
    if (!is_token(g_strstrip(text))) {
        ch_fail(error, CH_ERROR_INVALID, "'%s' holds no token", file);
        return NULL;
    }
    return g_steal_pointer(&text);
}

bool
ch_token_source_load(ChTokenSource *source, int64_t now_us, GError **error)
{
    char *token;

    if (source->file == NULL)
        return true;
    token = read_token(source->file, error);
    if (token == NULL)
        return false;
    g_free(source->token);
    source->token = token;
    source->read_us = now_us;
    source->is_stale = false;
    return true;
}

const char *
ch_token_source_get(ChTokenSource *source, int64_t now_us)
{
    g_autoptr(GError) error = NULL;

    if (source->file == NULL || (!source->is_stale && now_us - source->read_us < LIFETIME_US))
        return source->token;
    if (!ch_token_source_load(source, now_us, &error))
        ch_log_verbose(3, NULL, "keeping the old token: %s", error->message);
    return source->token;
}

void
ch_token_source_refused(ChTokenSource *source, int64_t started_us)
{
    if (source->read_us < started_us)
        source->is_stale = true;
}
