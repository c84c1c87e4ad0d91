/* SPDX-License-Identifier: Apache-2.0 */

/* test-support: an API on a store in a temporary directory, and calls to it in one line. */

#pragma once

#include <glib/gstdio.h>
#include <string.h>

#include "local/apiserver/api.h"

#define TEST_NOW_US G_GINT64_CONSTANT(1800000000000000) /* 2027-01-15T08:00:00Z */

typedef struct {
    char *dir;
    char *path; /* of the database */
    ChApi *api;
    int64_t now_us;
} TestApi;

static inline void
test_api_open(TestApi *t, const ChApiOptions *options)
{
    g_autoptr(GError) error = NULL;
    ChStore *store = ch_store_open(t->path, &error);

    g_assert_no_error(error);
    t->api = ch_api_new(store, options, &error);
    g_assert_no_error(error);
}

static inline void
test_api_init(TestApi *t, const ChApiOptions *options)
{
    static const ChApiOptions none = {0};

    *t = (TestApi){.now_us = TEST_NOW_US};
    t->dir = g_dir_make_tmp("chandler-api-XXXXXX", NULL);
    t->path = g_build_filename(t->dir, "objects.db", NULL);
    test_api_open(t, options != NULL ? options : &none);
}

static inline void
test_remove_dir(const char *dir)
{
    g_autoptr(GDir) entries = g_dir_open(dir, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(entries)) != NULL) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        g_unlink(path);
    }
    g_rmdir(dir);
}

static inline void
test_api_clear(TestApi *t)
{
    ch_api_free(t->api);
    test_remove_dir(t->dir);
    g_free(t->dir);
    g_free(t->path);
}

/* The answer to @request; asserts its status. */
static inline void
test_ask(TestApi *t, ChApiRequest *request, int code, ChApiAnswer *out_answer)
{
    char *query = strchr(request->path, '?');
    g_autofree char *path = NULL;

    if (query != NULL) {
        path = g_strndup(request->path, (gsize)(query - request->path));
        request->query = query + 1;
        request->path = path;
    }
    ch_api_handle(t->api, request, t->now_us, out_answer);
    if (out_answer->code != code)
        g_error("%s %s?%s: %d instead of %d: %s",
                request->method,
                request->path,
                request->query,
                out_answer->code,
                code,
                out_answer->body != NULL ? (const char *)g_bytes_get_data(out_answer->body, NULL)
                                         : "");
}

/* (transfer full): the answer's document. @body: (nullable) JSON; single quotes stand for double
 * ones. */
static inline ChJson *
test_call_as(TestApi *t,
             int code,
             const char *method,
             const char *path,
             const char *content_type,
             const char *accept,
             const char *body)
{
    g_autofree char *text = g_strdelimit(g_strdup(body != NULL ? body : ""), "'", '"');
    ChApiRequest request = {
        .method = method,
        .path = path,
        .content_type = content_type,
        .accept = accept,
        .body = (const uint8_t *)text,
        .length = strlen(text),
    };
    g_auto(ChApiAnswer) answer = {0};
    g_autoptr(GError) error = NULL;
    ChJson *json;

    test_ask(t, &request, code, &answer);
    json = ch_json_parse(
        g_bytes_get_data(answer.body, NULL), (gssize)g_bytes_get_size(answer.body), &error);
    g_assert_no_error(error);
    return json;
}

static inline ChJson *
test_call(TestApi *t, int code, const char *method, const char *path, const char *body)
{
    return test_call_as(t, code, method, path, "application/json", NULL, body);
}

/* The same for who does not look at the document. */
static inline void
test_do(TestApi *t, int code, const char *method, const char *path, const char *body)
{
    ch_json_unref(test_call(t, code, method, path, body));
}

#define TEST_CONFIGMAPS "/api/v1/namespaces/default/configmaps"
#define TEST_NODES      "/api/v1/nodes"
#define TEST_PODS       "/api/v1/namespaces/default/pods"
#define TEST_VMIS       "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
#define TEST_MIGRATIONS "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations"

/* A VMI that passes; @rest: more members after metadata, each with a comma before it. */
#define TEST_VMI(name, rest)                                                                       \
    "{'metadata':{'name':'" name "'},'spec':{'domain':{'devices':{}}}" rest "}"
