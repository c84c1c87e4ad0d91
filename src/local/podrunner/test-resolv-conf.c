/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/resolv-conf.h"

static const struct ConfCase {
    const char *path;
    const char *texts[3];
    const char *expect;
} cases[] = {
    {"/resolv-conf/others-stay",
     {"search lab\nnameserver 9.9.9.9\noptions edns0\n"},
     "search lab\nnameserver 9.9.9.9\noptions edns0\n"},
    {"/resolv-conf/loopback-goes",
     {"nameserver 127.0.0.53\nnameserver ::1\nnameserver\t10.0.0.1"},
     "nameserver\t10.0.0.1\n"},
    {"/resolv-conf/stub-is-replaced",
     {"nameserver 127.0.0.53\nsearch a\n", "nameserver 10.0.0.1\nsearch b\n"},
     "nameserver 10.0.0.1\nsearch b\n"},
    {"/resolv-conf/nobody-left", {"nameserver 127.0.0.53\nsearch a\n", "search b\n"}, "search a\n"},
    {"/resolv-conf/link-local-goes",
     {"nameserver fe80::1%eth0\nnameserver fd00::53\n"},
     "nameserver fd00::53\n"},
    {"/resolv-conf/nothing", {NULL}, ""},
    {"/resolv-conf/garbage",
     {"nameserver\nnameserver $(x)\nnameservers 1.2.3.4\n"},
     "nameservers 1.2.3.4\n"},
};

static void
test_case(gconstpointer data)
{
    const struct ConfCase *c = data;
    g_autofree char *text = ch_resolv_conf_for_pod(c->texts);

    g_assert_cmpstr(text, ==, c->expect);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_case);
    return g_test_run();
}
