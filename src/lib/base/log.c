/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/log.h"

#include "lib/base/json-text.h"
#include "lib/base/time.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_VERBOSITY 2
/* component, level, timestamp, pos, controller, namespace, name, kind, uid, reason, msg */
#define N_STANDARD_KEYS 11

typedef struct {
    ChLogField items[N_STANDARD_KEYS + CH_LOG_MAX_FIELDS];
    gsize n_items;
} Fields;

static const char *component = ""; /* set once, before threads */
static int verbosity_limit = DEFAULT_VERBOSITY;

static const char *const level_names[] = {
    [CH_LOG_INFO] = "info",
    [CH_LOG_WARNING] = "warning",
    [CH_LOG_ERROR] = "error",
    [CH_LOG_FATAL] = "fatal",
};

void
ch_log_set_verbosity(int verbosity)
{
    if (verbosity >= 0)
        g_atomic_int_set(&verbosity_limit, verbosity);
}

bool
ch_log_wants(int verbosity)
{
    return verbosity <= g_atomic_int_get(&verbosity_limit);
}

/* A later field replaces an earlier one of the same key. */
static void
put(Fields *fields, ChLogField field)
{
    gsize i = 0;

    while (i < fields->n_items && strcmp(fields->items[i].key, field.key) < 0)
        i++;
    if (i == fields->n_items || !g_str_equal(fields->items[i].key, field.key)) {
        memmove(&fields->items[i + 1],
                &fields->items[i],
                (fields->n_items - i) * sizeof fields->items[0]);
        fields->n_items++;
    }
    fields->items[i] = field;
}

static void
put_text(Fields *fields, const char *key, const char *text)
{
    put(fields, (ChLogField){.key = key, .text = text != NULL ? text : ""});
}

static void
put_context(Fields *fields, const ChLogContext *context)
{
    if (context->controller != NULL)
        put_text(fields, "controller", context->controller);
    if (context->name != NULL) {
        if (context->namespace_ != NULL && *context->namespace_ != '\0')
            put_text(fields, "namespace", context->namespace_);
        put_text(fields, "name", context->name);
        put_text(fields, "kind", context->kind);
        put_text(fields, "uid", context->uid);
    }
    for (gsize i = 0; i < context->n_fields; i++)
        put(fields, context->fields[i]);
}

static void
append_text(GString *line, const char *text)
{
    const gsize length = strlen(text);
    g_autofree char *cut = NULL;
    gsize keep = CH_LOG_MAX_TEXT;

    if (length <= keep) {
        ch_json_text_append(line, text, length);
        return;
    }
    while (keep > 0 && ((unsigned char)text[keep] & 0xc0) == 0x80)
        keep--; /* not within a character */
    cut = g_strdup_printf("%.*s... (%zu more bytes)", (int)keep, text, length - keep);
    ch_json_text_append(line, cut, strlen(cut));
}

static void
append_field(GString *line, const ChLogField *field)
{
    g_string_append_c(line, line->len == 0 ? '{' : ',');
    ch_json_text_append(line, field->key, strlen(field->key));
    g_string_append_c(line, ':');
    if (field->text != NULL)
        append_text(line, field->text);
    else
        g_string_append_printf(line, "%" G_GINT64_FORMAT, field->number);
}

/* Errors are ignored: there is nowhere to report them. Should stderr be a non-blocking pipe that is
 * full, then lines up to PIPE_BUF are dropped whole. */
static void
write_line(const GString *line)
{
    gsize done = 0;

    while (done < line->len) {
        const gssize n = write(STDERR_FILENO, line->str + done, line->len - done);

        if (n < 0 && errno != EINTR)
            return;
        done += n > 0 ? (gsize)n : 0;
    }
}

static void
emit(ChLogLevel level,
     const char *position,
     const ChLogContext *context,
     const GError *reason,
     const char *message)
{
    const int saved_errno = errno;
    g_autofree char *timestamp = ch_time_format_micro(ch_time_wall_us());
    g_autoptr(GString) line = g_string_sized_new(512);
    Fields fields = {.n_items = 0};

    put_text(&fields, "component", component);
    put_text(&fields, "level", level_names[level]);
    put_text(&fields, "timestamp", timestamp);
    put_text(&fields, "pos", position);
    if (reason != NULL)
        put_text(&fields, "reason", reason->message);
    if (context != NULL)
        put_context(&fields, context);
    put_text(&fields, "msg", message);

    for (gsize i = 0; i < fields.n_items; i++)
        append_field(line, &fields.items[i]);
    g_string_append(line, "}\n");
    write_line(line);
    errno = saved_errno;
}

void
ch_log_write(ChLogLevel level,
             int verbosity,
             const char *file,
             int line,
             const ChLogContext *context,
             const GError *reason,
             const char *format,
             ...)
{
    const int saved_errno = errno;
    const char *slash = strrchr(file, '/');
    g_autofree char *position = NULL;
    g_autofree char *message = NULL;
    va_list args;

    g_return_if_fail(context == NULL || context->n_fields <= CH_LOG_MAX_FIELDS);
    if (level == CH_LOG_INFO && !ch_log_wants(verbosity))
        return;
    position = g_strdup_printf("%s:%d", slash != NULL ? slash + 1 : file, line);
    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    emit(level, position, context, reason, message);
    errno = saved_errno;
}

/* GLib's levels; `verbosity` counts for info only. The first bit that is set decides. */
static const struct GlibLevel {
    GLogLevelFlags flag;
    ChLogLevel level;
    int verbosity;
} glib_levels[] = {
    {G_LOG_LEVEL_ERROR, CH_LOG_FATAL, 0},
    {G_LOG_LEVEL_CRITICAL, CH_LOG_ERROR, 0},
    {G_LOG_LEVEL_WARNING, CH_LOG_WARNING, 0},
    {G_LOG_LEVEL_MESSAGE, CH_LOG_INFO, 2},
    {G_LOG_LEVEL_INFO, CH_LOG_INFO, 3},
    {G_LOG_LEVEL_DEBUG, CH_LOG_INFO, 4},
};

static const struct GlibLevel *
glib_level(GLogLevelFlags flags)
{
    for (gsize i = 0; i < G_N_ELEMENTS(glib_levels); i++)
        if (flags & glib_levels[i].flag)
            return &glib_levels[i];
    return &glib_levels[G_N_ELEMENTS(glib_levels) - 1];
}

/* (transfer full): the value of a structured field, which need not be NUL-terminated */
static char *
dup_glib_field(const GLogField *fields, gsize n_fields, const char *key)
{
    for (gsize i = 0; i < n_fields; i++) {
        if (!g_str_equal(fields[i].key, key))
            continue;
        if (fields[i].length < 0)
            return g_strdup(fields[i].value);
        return g_strndup(fields[i].value, (gsize)fields[i].length);
    }
    return NULL;
}

/* GLib itself aborts after an ERROR (and, in tests, after a WARNING). */
static GLogWriterOutput
write_glib(GLogLevelFlags flags, const GLogField *fields, gsize n_fields, gpointer data)
{
    const struct GlibLevel *level = glib_level(flags);
    g_autofree char *message = dup_glib_field(fields, n_fields, "MESSAGE");
    g_autofree char *domain = dup_glib_field(fields, n_fields, "GLIB_DOMAIN");
    g_autofree char *file = dup_glib_field(fields, n_fields, "CODE_FILE");
    g_autofree char *line = dup_glib_field(fields, n_fields, "CODE_LINE");
    const ChLogField domain_field = {"subcomponent", domain, 0};
    const ChLogContext context = {.fields = &domain_field, .n_fields = domain != NULL ? 1 : 0};
    const guint64 line_number = line != NULL ? g_ascii_strtoull(line, NULL, 10) : 0;

    ch_log_write(level->level,
                 level->verbosity,
                 file != NULL ? file : "glib.c", /* callers of g_log() do not say */
                 (int)MIN(line_number, G_MAXINT),
                 &context,
                 NULL,
                 "%s",
                 message != NULL ? message : "");
    return G_LOG_WRITER_HANDLED;
}

void
ch_log_init(const char *name)
{
    static bool is_routed; /* GLib allows one writer, for good */

    component = name;
    if (!is_routed)
        g_log_set_writer_func(write_glib, NULL, NULL);
    is_routed = true;
}
