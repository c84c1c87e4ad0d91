/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/host-model.h"

#include "lib/base/errors.h"

#include <string.h>

static const struct ModelCase {
    const char *path;
    const char *xml;
    const char *model;
} model_cases[] = {
    {"named",
     "<domainCapabilities><cpu><mode name='custom'><model>qemu64</model></mode>"
     "<mode name='host-model' supported='yes'><model fallback='forbid'>\n Skylake-Client-IBRS "
     "</model>"
     "<vendor>Intel</vendor></mode></cpu></domainCapabilities>",
     "Skylake-Client-IBRS"},
    {"other-modes-do-not-count",
     "<domainCapabilities><cpu><mode "
     "name='host-passthrough'><model>x</model></mode></cpu></domainCapabilities>",
     ""},
    {"model-outside-of-the-mode", "<domainCapabilities><model>x</model></domainCapabilities>", ""},
    {"empty-mode", "<a><mode name='host-model'/><model>x</model></a>", ""},
};

static void
test_model(gconstpointer data)
{
    const struct ModelCase *c = data;
    g_autoptr(GError) error = NULL;
    g_autofree char *model = ch_host_model_parse(c->xml, strlen(c->xml), &error);

    g_assert_no_error(error);
    g_assert_cmpstr(model, ==, c->model);
}

static void
test_no_xml(void)
{
    static const char *const texts[] = {"", "<a>", "<a></b>", "no xml", "<a>\xff</a>"};

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(ch_host_model_parse(texts[i], strlen(texts[i]), &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

static void
test_too_large(void)
{
    g_autofree char *text = g_strnfill((4u << 20) + 1, ' ');
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_host_model_parse(text, strlen(text), &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(model_cases); i++) {
        g_autofree char *path = g_strconcat("/host-model/", model_cases[i].path, NULL);

        g_test_add_data_func(path, &model_cases[i], test_model);
    }
    g_test_add_func("/host-model/no-xml", test_no_xml);
    g_test_add_func("/host-model/too-large", test_too_large);
    return g_test_run();
}
