/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/config-keeper.h"

#include <string.h>

struct ChConfigKeeper {
    char *own_namespace, *node_name;
    ChClusterConfig *config;
    char *valid_version;   /* last looked at and found good; NULL: none */
    char *refused_version; /* "": none */
    ChTlsSettings tls;
};

ChConfigKeeper *
ch_config_keeper_new(const char *own_namespace, const char *node_name)
{
    ChConfigKeeper *keeper = g_new0(ChConfigKeeper, 1);

    keeper->own_namespace = g_strdup(own_namespace);
    keeper->node_name = g_strdup(node_name);
    keeper->config = ch_cluster_config_new_default();
    keeper->refused_version = g_strdup("");
    keeper->tls = (ChTlsSettings){.min_version = 12, .ciphers = g_new0(char *, 1)};
    return keeper;
}

void
ch_config_keeper_free(ChConfigKeeper *keeper)
{
    if (keeper == NULL)
        return;
    g_free(keeper->own_namespace);
    g_free(keeper->node_name);
    g_free(keeper->valid_version);
    g_free(keeper->refused_version);
    g_strfreev(keeper->tls.ciphers);
    ch_cluster_config_unref(keeper->config);
    g_free(keeper);
}

/* --- which one counts */

static bool
counts(const ChJson *kubevirt)
{
    const char *phase = ch_json_string_at(kubevirt, "status", "phase");

    return ch_json_at(kubevirt, "metadata", "deletionTimestamp") == NULL && phase != NULL &&
           phase[0] != '\0';
}

static const char *
name_of(const ChJson *kubevirt)
{
    const char *name = ch_json_string_at(kubevirt, "metadata", "name");

    return name != NULL ? name : "";
}

/* Whether it counts itself, or one of its name elsewhere does. */
static bool
is_vouched_for(const ChJson *kubevirt, const GPtrArray *kubevirts)
{
    for (guint i = 0; i < kubevirts->len; i++) {
        if (counts(kubevirts->pdata[i]) &&
            g_str_equal(name_of(kubevirts->pdata[i]), name_of(kubevirt)))
            return true;
    }
    return false;
}

static const ChJson *
first(const ChJson *best, const ChJson *other)
{
    return best == NULL || strcmp(name_of(other), name_of(best)) < 0 ? other : best;
}

const ChJson *
ch_kubevirt_choose(const GPtrArray *kubevirts, const char *own_namespace)
{
    const ChJson *best = NULL, *vouched = NULL;

    for (guint i = 0; i < kubevirts->len; i++) {
        const ChJson *kubevirt = kubevirts->pdata[i];

        if (g_strcmp0(ch_json_string_at(kubevirt, "metadata", "namespace"), own_namespace) != 0)
            continue;
        if (counts(kubevirt))
            best = first(best, kubevirt);
        else if (is_vouched_for(kubevirt, kubevirts))
            vouched = first(vouched, kubevirt);
    }
    return best != NULL ? best : vouched;
}

/* --- what it says */

static int
tls_version(const char *name)
{
    static const struct {
        const char *name;
        int version;
    } versions[] = {{"VersionTLS10", 10}, {"VersionTLS11", 11}, {"VersionTLS13", 13}};

    for (gsize i = 0; i < G_N_ELEMENTS(versions); i++) {
        if (g_strcmp0(versions[i].name, name) == 0)
            return versions[i].version;
    }
    return 12;
}

static void
take_tls(ChTlsSettings *tls, const ChJson *kubevirt)
{
    const ChJson *object = ch_json_at(kubevirt, "spec", "configuration", "tlsConfiguration");
    char **ciphers = ch_json_strings(ch_json_at(object, "ciphers"), "ciphers", NULL);

    tls->min_version = tls_version(ch_json_string_at(object, "minTLSVersion"));
    g_strfreev(tls->ciphers);
    tls->ciphers = ciphers != NULL ? ciphers : g_new0(char *, 1);
}

ChConfigOutcome
ch_config_keeper_look(ChConfigKeeper *keeper, const GPtrArray *kubevirts, GError **error)
{
    const ChJson *kubevirt = ch_kubevirt_choose(kubevirts, keeper->own_namespace);
    const char *version = ch_json_string_at(kubevirt, "metadata", "resourceVersion");
    ChClusterConfig *config;

    if (kubevirt == NULL || version == NULL)
        return CH_CONFIG_UNCHANGED;
    take_tls(&keeper->tls, kubevirt);
    if (g_strcmp0(version, keeper->valid_version) == 0 ||
        g_str_equal(version, keeper->refused_version))
        return CH_CONFIG_UNCHANGED;
    config = ch_cluster_config_parse(kubevirt, keeper->node_name, error);
    if (config == NULL) {
        g_free(keeper->refused_version);
        keeper->refused_version = g_strdup(version);
        return CH_CONFIG_REFUSED;
    }
    ch_cluster_config_unref(keeper->config);
    keeper->config = config;
    g_free(keeper->valid_version);
    keeper->valid_version = g_strdup(version);
    return CH_CONFIG_UPDATED;
}

ChClusterConfig *
ch_config_keeper_peek(const ChConfigKeeper *keeper)
{
    return keeper->config;
}

const ChTlsSettings *
ch_config_keeper_peek_tls(const ChConfigKeeper *keeper)
{
    return &keeper->tls;
}

const char *
ch_config_keeper_refused_version(const ChConfigKeeper *keeper)
{
    return keeper->refused_version;
}
