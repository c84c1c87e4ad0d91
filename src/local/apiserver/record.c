/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/record.h"

#include <fcntl.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

struct ChRecord {
    int fd;
};

ChRecord *
ch_record_open(const char *path, GError **error)
{
    ChRecord *record;
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0) {
        ch_fail_errno(error, errno, "open '%s'", path);
        return NULL;
    }
    record = g_new0(ChRecord, 1);
    record->fd = fd;
    return record;
}

void
ch_record_close(ChRecord *record)
{
    if (record == NULL)
        return;
    ch_close_fd(&record->fd);
    g_free(record);
}

/* (transfer full) (nullable) */
static ChJson *
body_json(const ChApiRequest *request)
{
    ChJson *body;
    g_autofree char *text = NULL;

    if (request->length == 0)
        return NULL;
    body = ch_json_parse((const char *)request->body, (gssize)request->length, NULL);
    if (body != NULL)
        return body;
    text = g_utf8_make_valid((const char *)request->body, (gssize)request->length);
    return ch_json_new_string(text);
}

void
ch_record_append(
    ChRecord *record, const ChApiRequest *request, const char *user_agent, int code, int64_t now_us)
{
    g_autoptr(ChJson) line = NULL;
    g_autofree char *time = NULL;
    g_autofree char *path = NULL;
    g_autofree char *printed = NULL;
    g_autofree char *text = NULL;
    gsize length;

    if (record == NULL || g_str_equal(request->method, "GET") ||
        g_str_equal(request->method, "HEAD"))
        return;
    line = ch_json_new_object();
    time = ch_time_format_micro(now_us);
    path = g_strconcat(request->path, request->query != NULL ? "?" : "", request->query, NULL);
    ch_json_set_string(line, "time", time);
    ch_json_set_string(line, "method", request->method);
    ch_json_set_string(line, "path", path);
    ch_json_set_string(line, "contentType", request->content_type);
    ch_json_set_string(line, "userAgent", user_agent);
    ch_json_set_int(line, "code", code);
    ch_json_set(line, "body", body_json(request));
    printed = ch_json_print(line, &length);
    text = g_strconcat(printed, "\n", NULL);
    /* one write: lines of two servers on one file do not mix */
    if (write(record->fd, text, length + 1) != (ssize_t)length + 1)
        ch_log_warning(NULL, NULL, "Cannot record a request, ignoring");
}
