/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/proto-body.h"

#include "lib/base/errors.h"
#include "local/apiserver/test-support.h"

#define TYPE(kind_field) "\x0a" kind_field
#define CONFIGMAP                                                                                  \
    TYPE("\x0f\x0a\x02v1\x12\x09"                                                                  \
         "ConfigMap")

static const struct Case {
    const char *path;
    const char *bytes;
    gsize length;
    const char *json; /* NULL: refused */
} cases[] = {
#define CASE(path, bytes, json)                                                                    \
    {                                                                                              \
        path, bytes, sizeof(bytes) - 1, json                                                       \
    }
    CASE("/proto-body/configmap",
         "k8s\0" CONFIGMAP "\x12\x17"
         "\x0a\x09"
         "\x0a\x01"
         "c"        /* name */
         "\x12\x00" /* generateName, unset */
         "\x42\x00" /* creationTimestamp, unset */
         "\x38\x00" /* generation, unset */
         "\x12\x0a"
         "\x0a\x01"
         "a"
         "\x12\x05"
         "hello",
         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},"
         "\"data\":{\"a\":\"hello\"}}"),
    CASE("/proto-body/secret-data-is-base64",
         "k8s\0"
         "\x0a\x0c\x0a\x02v1\x12\x06"
         "Secret"
         "\x12\x0d"
         "\x12\x07"
         "\x0a\x01"
         "k"
         "\x12\x02\xff\x00"
         "\x1a\x02"
         "Op",
         "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"data\":{\"k\":\"/wA=\"},\"type\":\"Op\"}"),
    CASE("/proto-body/set-unknown-field",
         "k8s\0" CONFIGMAP "\x12\x05\x0a\x03"
         "\x2a\x01u", /* metadata.uid */
         NULL),
    CASE("/proto-body/other-kind",
         "k8s\0"
         "\x0a\x09\x0a\x02v1\x12\x03"
         "Pod"
         "\x12\x00",
         NULL),
    CASE("/proto-body/no-magic", "{\"a\":1}", NULL),
    CASE("/proto-body/empty", "", NULL),
    CASE("/proto-body/truncated", "k8s\0" CONFIGMAP "\x12\x20\x0a", NULL),
    CASE("/proto-body/endless-number",
         "k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
         NULL),
    CASE("/proto-body/no-utf8", "k8s\0" CONFIGMAP "\x12\x05\x0a\x03\x0a\x01\xff", NULL),
    CASE("/proto-body/number-for-a-string", "k8s\0" CONFIGMAP "\x12\x04\x0a\x02\x08\x01", NULL),
};

static void
test_case(gconstpointer data)
{
    const struct Case *c = data;
    g_autofree uint8_t *exact = g_memdup2(c->bytes, c->length); /* so that an overrun is seen */
    g_autoptr(GError) error = NULL;
    g_autoptr(ChJson) object = ch_proto_body_parse(exact, c->length, &error);
    g_autofree char *printed = NULL;

    if (c->json == NULL) {
        g_assert_null(object);
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
        return;
    }
    g_assert_no_error(error);
    printed = ch_json_print(object, NULL);
    g_assert_cmpstr(printed, ==, c->json);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_case);
    return g_test_run();
}
