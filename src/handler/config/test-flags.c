/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/flags.h"

#include "lib/base/errors.h"
#include "lib/base/time.h"

#include <string.h>

#define PARSE(out_flags, error, ...)                                                               \
    ch_flags_parse((const char *const[]){"virt-handler", __VA_ARGS__, NULL}, out_flags, error)

static void
test_defaults(void)
{
    g_autoptr(ChFlags) flags = NULL;
    const char *const argv[] = {"virt-handler", NULL};

    g_assert_cmpint(ch_flags_parse(argv, &flags, NULL), ==, CH_FLAGS_OK);
    g_assert_cmpint(flags->verbosity, ==, 2);
    g_assert_cmpint(flags->port, ==, 8185);
    g_assert_cmpint(flags->console_server_port, ==, 8186);
    g_assert_cmpint(flags->vmstats_server_port, ==, 8187);
    g_assert_cmpstr(flags->kubevirt_share_dir, ==, "/var/run/kubevirt");
    g_assert_cmpstr(flags->kubevirt_private_dir, ==, "/var/run/kubevirt-private");
    g_assert_cmpstr(flags->ca_configmap_name, ==, "kubevirt-ca");
    g_assert_cmpint(flags->watchdog_timeout_us, ==, 30 * CH_SECOND_US);
    g_assert_cmpint(flags->domain_resync_period_seconds, ==, 300);
    g_assert_cmpint(flags->graceful_shutdown_seconds, ==, 300);
    g_assert_true(flags->enable_node_labeller);
    g_assert_false(flags->externally_managed);
    g_assert_cmpuint(flags->migration_cn_types->len, ==, 2);
    g_assert_cmpuint(flags->not_built->len, ==, 0);
}

/* Every way to write a value; operands lie between, and end nothing. */
static void
test_forms(void)
{
    g_autoptr(ChFlags) flags = NULL;
    ChFlagsOutcome outcome = PARSE(&flags,
                                   NULL,
                                   "operand",
                                   "--port",
                                   "1",
                                   "-v3",
                                   "--watchdog-timeout=1m30s",
                                   "-",
                                   "--externally-managed",
                                   "--enable-node-labeller=false",
                                   "--master=",
                                   "--",
                                   "--nope");

    g_assert_cmpint(outcome, ==, CH_FLAGS_OK);
    g_assert_cmpint(flags->port, ==, 1);
    g_assert_cmpint(flags->verbosity, ==, 3);
    g_assert_cmpint(flags->watchdog_timeout_us, ==, 90 * CH_SECOND_US);
    g_assert_true(flags->externally_managed);
    g_assert_false(flags->enable_node_labeller);
    g_assert_cmpstr(flags->master, ==, "");
}

static void
test_verbosity_forms(void)
{
    static const char *const forms[][2] = {{"-v", "7"}, {"-v=7", NULL}, {"--v", "7"}, {"--v=7"}};

    for (gsize i = 0; i < G_N_ELEMENTS(forms); i++) {
        const char *const argv[] = {"virt-handler", forms[i][0], forms[i][1], NULL};
        g_autoptr(ChFlags) flags = NULL;

        g_assert_cmpint(ch_flags_parse(argv, &flags, NULL), ==, CH_FLAGS_OK);
        g_assert_cmpint(flags->verbosity, ==, 7);
    }
}

/* The operator appends: the last value counts; a list's first use replaces its default. */
static void
test_repeated(void)
{
    g_autoptr(ChFlags) flags = NULL;

    g_assert_cmpint(PARSE(&flags,
                          NULL,
                          "--port=1",
                          "--port=2",
                          "--migration-cn-types",
                          "a,b",
                          "--migration-cn-types=c"),
                    ==,
                    CH_FLAGS_OK);
    g_assert_cmpint(flags->port, ==, 2);
    g_assert_cmpuint(flags->migration_cn_types->len, ==, 2);
    g_assert_cmpstr(flags->migration_cn_types->pdata[0], ==, "a,b");
    g_assert_cmpstr(flags->migration_cn_types->pdata[1], ==, "c");
}

/* field:FR-Q14 */
static void
test_order_says_nothing(void)
{
    static const char *const orders[][5] = {
        {"--port=1", "-v", "3", "--master", "m"},
        {"--master=m", "--v=3", "--port", "1"},
        {"-v=3", "--port=1", "--master=m", "--port=1"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(orders); i++) {
        const char *const argv[] = {"virt-handler",
                                    orders[i][0],
                                    orders[i][1],
                                    orders[i][2],
                                    orders[i][3],
                                    orders[i][4],
                                    NULL};
        g_autoptr(ChFlags) flags = NULL;

        g_assert_cmpint(ch_flags_parse(argv, &flags, NULL), ==, CH_FLAGS_OK);
        g_assert_cmpint(flags->port, ==, 1);
        g_assert_cmpint(flags->verbosity, ==, 3);
        g_assert_cmpstr(flags->master, ==, "m");
    }
}

static void
test_not_built_is_named_once(void)
{
    g_autoptr(ChFlags) flags = NULL;

    g_assert_cmpint(
        PARSE(&flags, NULL, "--max-devices=1", "--max-devices=2", "--v=1"), ==, CH_FLAGS_OK);
    g_assert_cmpuint(flags->not_built->len, ==, 1);
    g_assert_cmpstr(flags->not_built->pdata[0], ==, "max-devices");
    g_assert_cmpint(flags->max_devices, ==, 2);
}

static const struct BadCase {
    const char *path;
    const char *arguments[3];
    const char *message;
} bad_cases[] = {
    {"unknown", {"--nope"}, "unknown flag: --nope"},
    {"unknown-with-value", {"--nope=1"}, "unknown flag: --nope"},
    {"prefix-is-unknown", {"--por", "1"}, "unknown flag: --por"},
    {"unknown-short", {"-x"}, "unknown shorthand flag: 'x' in -x"},
    {"value-missing", {"--port"}, "flag needs an argument: --port"},
    {"short-value-missing", {"-v"}, "flag needs an argument: --v"},
    {"no-integer", {"--port", "http"}, NULL},
    {"integer-too-large", {"--port", "99999999999"}, NULL},
    {"integer-empty", {"--port="}, NULL},
    {"no-duration", {"--watchdog-timeout", "30"}, NULL},
    {"no-boolean", {"--externally-managed=maybe"}, NULL},
};

static void
test_bad(gconstpointer data)
{
    const struct BadCase *c = data;
    const char *const argv[] = {
        "virt-handler", c->arguments[0], c->arguments[1], c->arguments[2], NULL};
    ChFlags *flags = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(ch_flags_parse(argv, &flags, &error), ==, CH_FLAGS_ERROR);
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_assert_null(flags);
    if (c->message != NULL)
        g_assert_cmpstr(error->message, ==, c->message);
    else
        g_assert_true(g_str_has_prefix(error->message, "invalid argument \""));
}

static void
test_help(void)
{
    ChFlags *flags = NULL;

    g_assert_cmpint(PARSE(&flags, NULL, "--port=1", "--help"), ==, CH_FLAGS_HELP);
    g_assert_cmpint(PARSE(&flags, NULL, "-h"), ==, CH_FLAGS_HELP);
    g_assert_null(flags);
}

/* Every flag has a line, and the help texts begin in one column. */
static void
test_usage_is_a_table(void)
{
    g_autofree char *usage = ch_flags_usage("/bin/virt-handler");
    g_auto(GStrv) lines = g_strsplit(usage, "\n", -1);
    gsize column = 0;

    g_assert_cmpstr(lines[0], ==, "Usage of /bin/virt-handler:");
    g_assert_true(g_str_has_prefix(lines[1], "  -v, --v int "));
    for (gsize i = 1; lines[i][0] != '\0'; i++) {
        const char *gap = strstr(lines[i] + 6, "   ");
        gsize start;

        g_assert_nonnull(gap);
        start = (gsize)(gap - lines[i]) + strspn(gap, " ");
        g_assert_true(column == 0 || start == column);
        column = start;
    }
    g_assert_nonnull(strstr(usage, "--graceful-shutdown-seconds int"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/flags/defaults", test_defaults);
    g_test_add_func("/flags/forms", test_forms);
    g_test_add_func("/flags/verbosity-forms", test_verbosity_forms);
    g_test_add_func("/flags/repeated", test_repeated);
    g_test_add_func("/flags/order-says-nothing", test_order_says_nothing);
    g_test_add_func("/flags/not-built-is-named-once", test_not_built_is_named_once);
    for (gsize i = 0; i < G_N_ELEMENTS(bad_cases); i++) {
        g_autofree char *path = g_strconcat("/flags/bad/", bad_cases[i].path, NULL);

        g_test_add_data_func(path, &bad_cases[i], test_bad);
    }
    g_test_add_func("/flags/help", test_help);
    g_test_add_func("/flags/usage-is-a-table", test_usage_is_a_table);
    return g_test_run();
}
