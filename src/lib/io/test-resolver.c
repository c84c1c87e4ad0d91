/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/resolver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/io/http-message.h"
#include "lib/io/test-wait.h"

typedef struct {
    ChResolver *resolver;
    GString *addresses; /* "127.0.0.1:80 " */
    GError *error;
    bool is_done;
} Probe;

static void
on_done(gpointer data, const ChAddress *addresses, gsize n_addresses, const GError *error)
{
    Probe *probe = data;

    g_assert_false(probe->is_done);
    probe->is_done = true;
    probe->error = error != NULL ? g_error_copy(error) : NULL;
    for (gsize i = 0; i < n_addresses; i++) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&addresses[i].storage;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&addresses[i].storage;
        const bool is_v4 = in->sin_family == AF_INET;
        char text[INET6_ADDRSTRLEN];

        g_assert_cmpuint(addresses[i].length, ==, is_v4 ? sizeof *in : sizeof *in6);
        inet_ntop(in->sin_family,
                  is_v4 ? (const void *)&in->sin_addr : (const void *)&in6->sin6_addr,
                  text,
                  sizeof text);
        g_string_append_printf(
            probe->addresses, "%s:%u ", text, ntohs(is_v4 ? in->sin_port : in6->sin6_port));
    }
    g_clear_pointer(&probe->resolver, ch_resolver_free);
}

static void
resolve(const char *host, Probe *probe)
{
    g_autoptr(ChLoop) loop = ch_loop_new();

    *probe = (Probe){.addresses = g_string_new(NULL)};
    probe->resolver = ch_resolver_new(loop, host, 80, on_done, probe);
    g_assert_false(probe->is_done);
    test_wait_until(loop, probe->is_done);
}

static void
clear(Probe *probe)
{
    g_string_free(probe->addresses, TRUE);
    g_clear_error(&probe->error);
}

static void
test_no_lookup(void)
{
    static const struct {
        const char *host;
        const char *addresses;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1:80 "},
        {"::1", "::1:80 "},
        {"localhost", "127.0.0.1:80 ::1:80 "},
        {"LOCALHOST", "127.0.0.1:80 ::1:80 "},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Probe probe;

        resolve(cases[i].host, &probe);
        g_assert_no_error(probe.error);
        g_assert_cmpstr(probe.addresses->str, ==, cases[i].addresses);
        clear(&probe);
    }
}

/* A name that cannot be one needs no network to fail, but goes the long way. */
static void
test_failed_lookup(void)
{
    g_autofree char *host = g_strnfill(300, 'x');
    Probe probe;

    resolve(host, &probe);
    g_assert_error(probe.error, CH_HTTP_ERROR, CH_HTTP_ERROR_CONNECT);
    clear(&probe);
}

/* The host's own name is in /etc/hosts as a rule, and if not, the failure must be as above. */
static void
test_lookup(void)
{
    char host[256];
    Probe probe;

    g_assert_no_errno(gethostname(host, sizeof host));
    if (access("/etc/hosts", R_OK) != 0) {
        g_test_skip("no /etc/hosts");
        return;
    }
    resolve(host, &probe);
    if (probe.error != NULL)
        g_test_skip("the host's own name is not in /etc/hosts");
    else
        g_assert_cmpuint(probe.addresses->len, >, 0);
    clear(&probe);
}

static void
test_freed_while_asking(void)
{
    g_autofree char *host = g_strnfill(300, 'x');

    for (int i = 0; i < 20; i++) {
        ChLoop *loop = ch_loop_new();
        Probe probe = {0};

        ch_resolver_free(ch_resolver_new(loop, host, 80, on_done, &probe));
        ch_loop_free(loop); /* the thread does not know of it */
        g_assert_false(probe.is_done);
    }
}

/* No descriptor is to be had: numbers need none, names fail instead of ending the process. */
static void
test_out_of_descriptors(void)
{
    g_autofree char *host = g_strnfill(300, 'x');
    g_autoptr(ChLoop) loop = ch_loop_new();
    Probe probes[2] = {{.addresses = g_string_new(NULL)}, {.addresses = g_string_new(NULL)}};
    struct rlimit before, none;

    g_assert_no_errno(getrlimit(RLIMIT_NOFILE, &before));
    none = (struct rlimit){0, before.rlim_max};
    g_assert_no_errno(setrlimit(RLIMIT_NOFILE, &none));
    probes[0].resolver = ch_resolver_new(loop, "127.0.0.1", 80, on_done, &probes[0]);
    probes[1].resolver = ch_resolver_new(loop, host, 80, on_done, &probes[1]);
    test_wait_until(loop, probes[0].is_done && probes[1].is_done);
    g_assert_no_errno(setrlimit(RLIMIT_NOFILE, &before));
    g_assert_no_error(probes[0].error);
    g_assert_cmpstr(probes[0].addresses->str, ==, "127.0.0.1:80 ");
    g_assert_error(probes[1].error, CH_HTTP_ERROR, CH_HTTP_ERROR_CONNECT);
    clear(&probes[0]);
    clear(&probes[1]);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/resolver/no-lookup", test_no_lookup);
    g_test_add_func("/resolver/failed-lookup", test_failed_lookup);
    g_test_add_func("/resolver/lookup", test_lookup);
    g_test_add_func("/resolver/freed-while-asking", test_freed_while_asking);
    g_test_add_func("/resolver/out-of-descriptors", test_out_of_descriptors);
    return g_test_run();
}
