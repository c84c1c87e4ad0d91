/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/options.h"

#include "lib/base/time.h"

static bool
parse(const char *line, ChLauncherOptions *out_options)
{
    g_auto(GStrv) argv = g_strsplit(line, " ", -1);
    g_autoptr(GError) error = NULL;
    const bool is_parsed =
        ch_launcher_options_parse((int)g_strv_length(argv), argv, out_options, &error);

    g_assert_true(is_parsed == (error == NULL));
    return is_parsed;
}

#define WHO "x --name vm --namespace ns --uid u-1"

static void
test_defaults(void)
{
    g_auto(ChLauncherOptions) options = {0};

    g_assert_true(parse(WHO, &options));
    g_assert_cmpstr(options.share_dir, ==, "/var/run/kubevirt");
    g_assert_cmpstr(options.container_disk_dir, ==, "/var/run/kubevirt/container-disks");
    g_assert_cmpint(options.qemu_timeout_us, ==, 180 * CH_SECOND_US);
    g_assert_cmpint(options.grace_us, ==, 30 * CH_SECOND_US);
    g_assert_cmpint(options.agent.freeze_us, ==, 5 * CH_SECOND_US);
    g_assert_cmpint(options.emulation, ==, CH_EMULATION_AUTO);
}

static void
test_values(void)
{
    g_auto(ChLauncherOptions) options = {0};

    g_assert_true(parse(WHO " --emulation off --qemu-timeout=1m30s --run-as-nonroot "
                            "--grace-period-seconds 7 -v 4 --qemu-agent-sys-interval 10s",
                        &options));
    g_assert_cmpint(options.emulation, ==, CH_EMULATION_OFF);
    g_assert_cmpint(options.qemu_timeout_us, ==, 90 * CH_SECOND_US);
    g_assert_cmpint(options.grace_us, ==, 7 * CH_SECOND_US);
    g_assert_cmpint(options.agent.system_us, ==, 10 * CH_SECOND_US);
    g_assert_cmpint(options.verbosity, ==, 4);
}

static const struct Refused {
    const char *path;
    const char *line;
} refused[] = {
    {"/options/refused/no-name", "x --namespace ns --uid u"},
    {"/options/refused/name-that-leaves-its-directory", "x --name ../a --namespace n --uid u"},
    {"/options/refused/unknown-emulation", WHO " --emulation maybe"},
    {"/options/refused/bad-duration", WHO " --qemu-timeout soon"},
    {"/options/refused/interval-of-zero", WHO " --qemu-agent-user-interval 0"},
    {"/options/refused/negative-grace-period", WHO " --grace-period-seconds -1"},
    {"/options/refused/unknown-flag", WHO " --what"},
};

static void
test_refused(gconstpointer data)
{
    const struct Refused *c = data;
    g_auto(ChLauncherOptions) options = {0};

    g_assert_false(parse(c->line, &options));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/options/defaults", test_defaults);
    g_test_add_func("/options/values", test_values);
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++)
        g_test_add_data_func(refused[i].path, &refused[i], test_refused);
    return g_test_run();
}
