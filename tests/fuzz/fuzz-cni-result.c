/* SPDX-License-Identifier: Apache-2.0 */

/* What a CNI plugin prints: as a result, and as a failure. */

#include <string.h>

#include "lib/base/errors.h"
#include "local/podrunner/cni.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* It is passed on to the next plugin: what we took is taken again, and says the same. */
static void
check_result(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_auto(ChCniResult) result = {0};
    g_auto(ChCniResult) again = {0};

    if (!ch_cni_result_parse(text, &result, &error)) {
        g_assert_true(g_error_matches(error, CH_ERROR, CH_ERROR_INVALID) ||
                      g_error_matches(error, CH_ERROR, CH_ERROR_LIMIT));
        g_assert_null(result.text);
        return;
    }
    g_assert_no_error(error);
    g_assert_true(result.n_ips == 1 || result.n_ips == 2);
    g_assert_cmpuint(strlen(result.text), <=, CH_CNI_MAX_RESULT_BYTES);
    for (guint i = 0; i < result.n_ips; i++) {
        ChIp ip;

        g_assert_true(ch_ip_parse(result.ips[i], &ip) && ch_ip_is_global_unicast(&ip));
    }
    g_assert_true(ch_cni_result_parse(result.text, &again, NULL));
    g_assert_cmpstr(again.text, ==, result.text);
    g_assert_cmpuint(again.n_ips, ==, result.n_ips);
}

static void
check_failure(const char *text)
{
    g_autofree char *words = ch_cni_failure_text("bridge", 1, text, text);

    g_assert_true(g_utf8_validate(words, -1, NULL));
    g_assert_cmpuint(strlen(words), <, 2048);
    for (const char *c = words; *c != '\0'; c = g_utf8_next_char(c))
        g_assert_true(g_unichar_isprint(g_utf8_get_char(c)));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);

    check_result(text);
    check_failure(text);
    return 0;
}
