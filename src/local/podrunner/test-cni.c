/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/cni.h"

#include <string.h>

#include "lib/base/errors.h"

static char *subnets[] = {(char *)"10.213.0.0/20", (char *)"fd00:213::/64", NULL};

static const ChCniNetwork network = {
    .bridge = (char *)"chandler0",
    .subnets = subnets,
    .lease_dir = (char *)"/s/leases",
    .mtu = 1400,
};

static const char result_text[] =
    "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"fd00:213::2/64\"},"
    "{\"address\":\"10.213.0.2/20\",\"gateway\":\"10.213.0.1\"},{\"address\":\"10.213.0.3/20\"}]}";

static void
assert_json(const char *text, const char *expected)
{
    g_autoptr(ChJson) left = ch_json_parse(text, -1, NULL);
    g_autoptr(ChJson) right = ch_json_parse(expected, -1, NULL);

    g_assert_nonnull(right);
    if (!ch_json_equal(left, right))
        g_error("%s", text);
}

static void
test_configs(void)
{
    static const ChHostPort ports[] = {{8080, 80, "tcp"}, {53, 5353, "udp"}};
    g_autofree char *lo = ch_cni_loopback_config();
    g_autofree char *bridge = ch_cni_bridge_config(&network, NULL);
    g_autofree char *portmap =
        ch_cni_portmap_config(&network, ports, G_N_ELEMENTS(ports), "{\"ips\":[]}");

    assert_json(lo, "{\"cniVersion\":\"1.0.0\",\"name\":\"lo\",\"type\":\"loopback\"}");
    assert_json(bridge,
                "{\"cniVersion\":\"1.0.0\",\"name\":\"chandler0\",\"type\":\"bridge\","
                "\"bridge\":\"chandler0\",\"isGateway\":true,\"ipMasq\":false,\"mtu\":1400,"
                "\"ipam\":{\"type\":\"host-local\",\"dataDir\":\"/s/leases\",\"ranges\":["
                "[{\"subnet\":\"10.213.0.0/20\"}],[{\"subnet\":\"fd00:213::/64\"}]],"
                "\"routes\":[{\"dst\":\"0.0.0.0/0\"},{\"dst\":\"::/0\"}]}}");
    assert_json(portmap,
                "{\"cniVersion\":\"1.0.0\",\"name\":\"chandler0\",\"type\":\"portmap\","
                "\"prevResult\":{\"ips\":[]},\"capabilities\":{\"portMappings\":true},"
                "\"runtimeConfig\":{\"portMappings\":["
                "{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\"},"
                "{\"hostPort\":53,\"containerPort\":5353,\"protocol\":\"udp\"}]}}");
}

static void
test_result(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(ChCniResult) result = {0};

    g_assert_true(ch_cni_result_parse(result_text, &result, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(result.n_ips, ==, 2);
    g_assert_cmpstr(result.ips[0], ==, "10.213.0.2");
    g_assert_cmpstr(result.ips[1], ==, "fd00:213::2");
    assert_json(result.text, result_text);
}

static void
test_hostile_results(void)
{
    static const char *const texts[] = {
        "",
        "null",
        "[]",
        "{}",
        "garbage",
        "{\"ips\":{}}",
        "{\"ips\":[]}",
        "{\"ips\":[null]}",
        "{\"ips\":[{\"address\":5}]}",
        "{\"ips\":[{\"address\":\"10.0.0.1\"}]}",
        "{\"ips\":[{\"address\":\"10.0.0.1/33\"}]}",
        "{\"ips\":[{\"address\":\"10.0.0.1/-1\"}]}",
        "{\"ips\":[{\"address\":\"127.0.0.1/8\"}]}",
        "{\"ips\":[{\"address\":\"$(reboot)/8\"}]}",
        "{\"ips\":[{\"address\":\"10.0.0.1/8\"}]} trailing",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(ChCniResult) result = {0};

        g_assert_false(ch_cni_result_parse(texts[i], &result, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
        g_assert_null(result.text);
    }
}

static void
test_large_results(void)
{
    g_autofree char *spaces = g_strnfill(CH_CNI_MAX_RESULT_BYTES, ' ');
    g_autofree char *large = g_strconcat(result_text, spaces, NULL);
    g_autoptr(GString) grows = g_string_new("{\"ips\":[{\"address\":\"10.0.0.1/8\"}],\"x\":\"");
    g_autoptr(GString) many = g_string_new("{\"ips\":[{\"address\":\"10.0.0.1/8\"}");
    g_auto(ChCniResult) result = {0};

    for (int i = 0; i < CH_CNI_MAX_ADDRESSES; i++)
        g_string_append(many, ",{\"address\":\"10.0.0.1/8\"}");
    g_string_append(many, "]}");
    /* three bytes in, six out */
    for (gsize i = 0; i < CH_CNI_MAX_RESULT_BYTES / 4; i++)
        g_string_append(grows, "\xe2\x80\xa8");
    g_string_append(grows, "\"}");
    g_assert_cmpuint(grows->len, <=, CH_CNI_MAX_RESULT_BYTES);
    const char *const texts[] = {large, many->str, grows->str};
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(ch_cni_result_parse(texts[i], &result, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
        g_assert_null(result.text);
    }
}

static const struct FailureCase {
    const char *path;
    int status;
    const char *out, *err, *expect;
} failures[] = {
    {"/cni/failure/own-words",
     1,
     "{\"code\":7,\"msg\":\"no\\nsuch bridge\",\"details\":\"\"}",
     "noise",
     "the CNI plugin 'bridge' failed: no such bridge"},
    {"/cni/failure/details",
     1,
     "{\"code\":7,\"msg\":\"a\",\"details\":\"b\"}",
     "",
     "the CNI plugin 'bridge' failed: a: b"},
    {"/cni/failure/last-line-of-stderr",
     1,
     "garbage",
     "first\nlast\x1b[2J\n",
     "the CNI plugin 'bridge' failed: last [2J"},
    {"/cni/failure/terminal-controls",
     1,
     "{\"msg\":\"a\\u009b2Jb\\u202ec\\u2028d\\ufeffe \\u00e4\"}",
     "",
     "the CNI plugin 'bridge' failed: a 2Jb c d e \xc3\xa4"},
    {"/cni/failure/silence",
     137,
     "",
     "",
     "the CNI plugin 'bridge' failed: it said nothing (it was killed by a signal)"},
};

static void
test_failure(gconstpointer data)
{
    const struct FailureCase *c = data;
    g_autofree char *text = ch_cni_failure_text("bridge", c->status, c->out, c->err);

    g_assert_cmpstr(text, ==, c->expect);
}

static void
test_long_failure_is_cut(void)
{
    g_autofree char *words = g_strnfill(1u << 20, 'x');
    g_autofree char *text = ch_cni_failure_text("bridge", 1, words, words);

    g_assert_cmpuint(strlen(text), <, 600);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cni/configs", test_configs);
    g_test_add_func("/cni/result", test_result);
    g_test_add_func("/cni/hostile-results", test_hostile_results);
    g_test_add_func("/cni/large-results", test_large_results);
    g_test_add_func("/cni/long-failure-is-cut", test_long_failure_is_cut);
    for (gsize i = 0; i < G_N_ELEMENTS(failures); i++)
        g_test_add_data_func(failures[i].path, &failures[i], test_failure);
    return g_test_run();
}
