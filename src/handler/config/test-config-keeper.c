/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/config-keeper.h"

#include "lib/base/errors.h"

#define DEPLOYED   "'status':{'phase':'Deployed'}"
#define VERBOSE(n) "'developerConfiguration':{'logVerbosity':{'virtHandler':" #n "}}"

static void
unref(gpointer json)
{
    ch_json_unref(json);
}

/* @texts: documents in single quotes, one a line. (transfer full) */
static GPtrArray *
documents(const char *texts)
{
    GPtrArray *array = g_ptr_array_new_with_free_func(unref);
    g_auto(GStrv) lines = g_strsplit(texts, "\n", -1);

    for (char **line = lines; *line != NULL; line++) {
        if ((*line)[0] != '\0') {
            ChJson *json = ch_json_parse(g_strdelimit(*line, "'", '"'), -1, NULL);

            g_assert_nonnull(json);
            g_ptr_array_add(array, json);
        }
    }
    return array;
}

/* (transfer full): a KubeVirt object's text */
static char *
kubevirt(const char *namespace_, const char *name, const char *version, const char *configuration)
{
    return g_strdup_printf(
        "{'metadata':{'namespace':'%s','name':'%s','resourceVersion':'%s'},'spec':"
        "{'configuration':{%s}}," DEPLOYED "}\n",
        namespace_,
        name,
        version,
        configuration);
}

#define OBJECT(namespace_, name, more)                                                             \
    "{'metadata':{'namespace':'" namespace_ "','name':'" name "'" more "}"
#define DELETED ",'deletionTimestamp':'2026-01-01T00:00:00Z'"

static const struct ChooseCase {
    const char *path;
    const char *objects;
    int index; /* -1: none */
} choose_cases[] = {
    {"none", "", -1},
    {"deployed", OBJECT("ns", "a", "") "," DEPLOYED "}", 0},
    {"any-phase", OBJECT("ns", "a", "") ",'status':{'phase':'Deploying'}}", 0},
    {"no-status", OBJECT("ns", "a", "") "}", -1},
    {"empty-phase", OBJECT("ns", "a", "") ",'status':{'phase':''}}", -1},
    {"phase-of-another-type", OBJECT("ns", "a", "") ",'status':{'phase':1}}", -1},
    {"being-deleted", OBJECT("ns", "a", DELETED) "," DEPLOYED "}", -1},
    {"elsewhere", OBJECT("other", "a", "") "," DEPLOYED "}", -1},
    {"second-is-deployed", OBJECT("ns", "a", "") "}\n" OBJECT("ns", "b", "") "," DEPLOYED "}", 1},
    {"two-in-any-order",
     OBJECT("ns", "b", "") "," DEPLOYED "}\n" OBJECT("ns", "a", "") "," DEPLOYED "}",
     1},
    {"ours-before-another's-word",
     OBJECT("other", "a", "") "," DEPLOYED "}\n" OBJECT("ns", "a", "") "}\n" OBJECT(
         "ns", "b", "") "," DEPLOYED "}",
     2},
    {"another's-word", OBJECT("other", "a", "") "," DEPLOYED "}\n" OBJECT("ns", "a", "") "}", 1},
    {"without-metadata", "{" DEPLOYED "}\n[]\n'text'", -1},
};

static void
test_choose(gconstpointer data)
{
    const struct ChooseCase *c = data;
    g_autoptr(GPtrArray) objects = documents(c->objects);
    const ChJson *chosen = ch_kubevirt_choose(objects, "ns");

    g_assert_true(chosen == (c->index < 0 ? NULL : objects->pdata[c->index]));
}

static void
expect(ChConfigKeeper *keeper, const char *objects, ChConfigOutcome outcome, int verbosity)
{
    g_autoptr(GPtrArray) array = documents(objects);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(ch_config_keeper_look(keeper, array, &error), ==, outcome);
    g_assert_true((error != NULL) == (outcome == CH_CONFIG_REFUSED));
    g_assert_cmpint(ch_config_keeper_peek(keeper)->verbosity, ==, verbosity);
}

static void
expect_version(ChConfigKeeper *keeper,
               const char *version,
               const char *configuration,
               ChConfigOutcome outcome,
               int verbosity)
{
    g_autofree char *object = kubevirt("ns", "a", version, configuration);

    expect(keeper, object, outcome, verbosity);
}

/* spec:08-13.1#21 spec:08-13.1#22: each resource version is judged once; what was good stays. */
static void
test_versions(void)
{
    g_autoptr(ChConfigKeeper) keeper = ch_config_keeper_new("ns", "node01");

    expect(keeper, "", CH_CONFIG_UNCHANGED, 2);
    g_assert_cmpstr(ch_config_keeper_peek(keeper)->resource_version, ==, "");
    expect_version(keeper, "10", VERBOSE(5), CH_CONFIG_UPDATED, 5);
    g_assert_cmpstr(ch_config_keeper_peek(keeper)->resource_version, ==, "10");
    expect_version(keeper, "10", VERBOSE(6), CH_CONFIG_UNCHANGED, 5);
    expect_version(keeper, "9", VERBOSE(6), CH_CONFIG_UPDATED, 6); /* versions have no order */
    expect_version(keeper, "11", "'imagePullPolicy':'x'," VERBOSE(7), CH_CONFIG_REFUSED, 6);
    g_assert_cmpstr(ch_config_keeper_refused_version(keeper), ==, "11");
    expect_version(keeper, "11", VERBOSE(7), CH_CONFIG_UNCHANGED, 6);
    expect_version(keeper, "9", VERBOSE(7), CH_CONFIG_UNCHANGED, 6);
    g_assert_cmpstr(ch_config_keeper_peek(keeper)->resource_version, ==, "9");
    expect_version(keeper, "12", VERBOSE(7), CH_CONFIG_UPDATED, 7);
    expect(keeper, "", CH_CONFIG_UNCHANGED, 7); /* deleted */
    expect_version(keeper, "13", "", CH_CONFIG_UPDATED, 2);
}

/* After a restart there is nothing good yet: the defaults count. */
static void
test_invalid_at_first(void)
{
    g_autoptr(ChConfigKeeper) keeper = ch_config_keeper_new("ns", "node01");

    expect_version(keeper, "1", "'imagePullPolicy':'x'," VERBOSE(7), CH_CONFIG_REFUSED, 2);
    g_assert_cmpstr(ch_config_keeper_peek(keeper)->resource_version, ==, "");
}

/* Trap 6: TLS settings are those of the object as it is, be the rest of it invalid. */
static void
test_tls(void)
{
    g_autoptr(ChConfigKeeper) keeper = ch_config_keeper_new("ns", "node01");
    const ChTlsSettings *tls = ch_config_keeper_peek_tls(keeper);

    g_assert_cmpint(tls->min_version, ==, 12);
    g_assert_null(tls->ciphers[0]);
    expect_version(keeper,
                   "1",
                   "'tlsConfiguration':{'minTLSVersion':'VersionTLS13','ciphers':['A','B']},"
                   "'imagePullPolicy':'x'",
                   CH_CONFIG_REFUSED,
                   2);
    g_assert_cmpint(tls->min_version, ==, 13);
    g_assert_cmpuint(g_strv_length(tls->ciphers), ==, 2);
    expect_version(keeper,
                   "2",
                   "'tlsConfiguration':{'minTLSVersion':'VersionTLS99','ciphers':'A'}",
                   CH_CONFIG_UPDATED,
                   2);
    g_assert_cmpint(tls->min_version, ==, 12);
    g_assert_null(tls->ciphers[0]);
    expect_version(
        keeper, "3", "'tlsConfiguration':{'minTLSVersion':'VersionTLS10'}", CH_CONFIG_UPDATED, 2);
    g_assert_cmpint(tls->min_version, ==, 10);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(choose_cases); i++) {
        g_autofree char *path = g_strconcat("/config-keeper/choose/", choose_cases[i].path, NULL);

        g_test_add_data_func(path, &choose_cases[i], test_choose);
    }
    g_test_add_func("/config-keeper/versions", test_versions);
    g_test_add_func("/config-keeper/invalid-at-first", test_invalid_at_first);
    g_test_add_func("/config-keeper/tls", test_tls);
    return g_test_run();
}
