/* SPDX-License-Identifier: Apache-2.0 */

/* chandler-apiserver: flags, wiring, signals. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/io/tls.h"
#include "local/apiserver/pki.h"
#include "local/apiserver/serve.h"

#define EXPIRE_US (60 * CH_SECOND_US)
#define NO_PORT   (-1)

typedef struct {
    char *state_dir;
    char *address;
    char *kubeconfig;
    char *record;
    int port;
    int insecure_port;
    gboolean keeps_given;
    int verbosity;
} Flags;

typedef struct {
    ChLoop *loop;
    ChApi *api;
    ChRecord *record;
    ChServe *secure;
    ChServe *insecure; /* NULL unless asked for */
    ChTimer *expire;
    ChSignal *terminate;
    ChSignal *interrupt;
} Program;

static bool
parse_flags(int argc, char **argv, Flags *flags, GError **error)
{
    const GOptionEntry entries[] = {
        {"state",
         0,
         0,
         G_OPTION_ARG_FILENAME,
         &flags->state_dir,
         "Where everything is kept",
         "DIR"},
        {"bind",
         0,
         0,
         G_OPTION_ARG_STRING,
         &flags->address,
         "Address to listen on (127.0.0.1)",
         "IP"},
        {"port", 0, 0, G_OPTION_ARG_INT, &flags->port, "Port for HTTPS; 0: any (0)", "PORT"},
        {"kubeconfig",
         0,
         0,
         G_OPTION_ARG_FILENAME,
         &flags->kubeconfig,
         "Write a kubeconfig here (DIR/kubeconfig)",
         "PATH"},
        {"insecure-http",
         0,
         0,
         G_OPTION_ARG_INT,
         &flags->insecure_port,
         "Also serve plain HTTP to everybody on this machine; 0: any port",
         "PORT"},
        {"keep-uid",
         0,
         0,
         G_OPTION_ARG_NONE,
         &flags->keeps_given,
         "Keep UID and status of new objects as given (for tests)",
         NULL},
        {"record",
         0,
         0,
         G_OPTION_ARG_FILENAME,
         &flags->record,
         "Append every write request to this file (for tests)",
         "FILE"},
        {"verbosity", 'v', 0, G_OPTION_ARG_INT, &flags->verbosity, "Log verbosity (2)", "N"},
        {NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) cause = NULL;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &cause))
        return ch_fail(error, CH_ERROR_INVALID, "%s", cause->message);
    if (argc > 1)
        return ch_fail(error, CH_ERROR_INVALID, "unexpected argument '%s'", argv[1]);
    if (flags->state_dir == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "--state DIR is missing");
    if (flags->port < 0 || flags->port > G_MAXUINT16 || flags->insecure_port < NO_PORT ||
        flags->insecure_port > G_MAXUINT16)
        return ch_fail(error, CH_ERROR_INVALID, "a port is a number from 0 to 65535");
    if (flags->address == NULL)
        flags->address = g_strdup("127.0.0.1");
    if (!g_hostname_is_ip_address(flags->address))
        return ch_fail(
            error, CH_ERROR_INVALID, "--bind takes an IP address, not '%s'", flags->address);
    if (flags->kubeconfig == NULL)
        flags->kubeconfig = g_build_filename(flags->state_dir, "kubeconfig", NULL);
    return true;
}

static void
flags_clear(Flags *flags)
{
    g_free(flags->state_dir);
    g_free(flags->address);
    g_free(flags->kubeconfig);
    g_free(flags->record);
}

static void
on_signal(int signo, gpointer data)
{
    Program *program = data;

    ch_log_info(NULL, "%s received, ending", g_strsignal(signo));
    ch_loop_stop(program->loop);
}

static void
on_expire_time(gpointer data)
{
    Program *program = data;

    ch_api_expire(program->api, ch_time_wall_us());
    ch_timer_arm(program->expire, EXPIRE_US);
}

/* Each watch takes a descriptor. */
static void
raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* fewer then; accept copes */
    }
}

static bool
open_api(Program *program, const Flags *flags, GError **error)
{
    const ChApiOptions options = {.keeps_given = flags->keeps_given};
    g_autofree char *path = g_build_filename(flags->state_dir, "objects.db", NULL);
    ChStore *store;

    if (g_mkdir_with_parents(flags->state_dir, 0700) < 0)
        return ch_fail_errno(error, errno, "make directory '%s'", flags->state_dir);
    store = ch_store_open(path, error);
    if (store == NULL)
        return false;
    program->api = ch_api_new(store, &options, error);
    if (program->api == NULL || flags->record == NULL)
        return program->api != NULL;
    program->record = ch_record_open(flags->record, error);
    return program->record != NULL;
}

/* (transfer full) */
static char *
server_url(const char *scheme, const char *address, uint16_t port)
{
    const bool is_v6 = strchr(address, ':') != NULL;

    return g_strdup_printf(
        "%s://%s%s%s:%u", scheme, is_v6 ? "[" : "", address, is_v6 ? "]" : "", port);
}

static bool
listen_secure(Program *program, const Flags *flags, GError **error)
{
    static const char *const protocols[] = {"http/1.1", NULL};
    ChHttpServerOptions options = {.address = flags->address, .port = (uint16_t)flags->port};
    g_auto(ChPki) pki = {0};
    g_autoptr(SSL_CTX) tls = NULL;
    g_autofree char *url = NULL;

    if (!ch_pki_load(flags->state_dir, flags->address, &pki, error))
        return false;
    tls = ch_tls_server_context_new(pki.cert_pem, pki.key_pem, error);
    if (tls == NULL)
        return false;
    ch_tls_server_set_alpn(tls, protocols);
    options.tls = tls;
    program->secure =
        ch_serve_new(program->loop, program->api, &options, pki.token, program->record, error);
    if (program->secure == NULL)
        return false;
    url = server_url("https", flags->address, ch_serve_port(program->secure));
    if (!ch_pki_write_kubeconfig(&pki, flags->kubeconfig, url, error))
        return false;
    printf("%s\n", url);
    return true;
}

static bool
listen_insecure(Program *program, const Flags *flags, GError **error)
{
    const ChHttpServerOptions options = {
        .address = "127.0.0.1", /* never further, whatever --bind says */
        .port = (uint16_t)flags->insecure_port,
    };
    g_autofree char *url = NULL;

    program->insecure =
        ch_serve_new(program->loop, program->api, &options, NULL, program->record, error);
    if (program->insecure == NULL)
        return false;
    url = server_url("http", options.address, ch_serve_port(program->insecure));
    printf("%s\n", url);
    return true;
}

static bool
start(Program *program, const Flags *flags, GError **error)
{
    program->loop = ch_loop_new();
    if (!open_api(program, flags, error) || !listen_secure(program, flags, error) ||
        (flags->insecure_port != NO_PORT && !listen_insecure(program, flags, error)))
        return false;
    program->expire = ch_timer_new(program->loop, on_expire_time, program);
    ch_timer_arm(program->expire, EXPIRE_US);
    program->terminate = ch_signal_new(program->loop, SIGTERM, on_signal, program);
    program->interrupt = ch_signal_new(program->loop, SIGINT, on_signal, program);
    fflush(stdout); /* whoever started us may be waiting for the URLs */
    return true;
}

static void
program_clear(Program *program)
{
    ch_serve_free(program->insecure);
    ch_serve_free(program->secure);
    /* libevent frees a stream whose callback is due in the next turn only */
    if (program->loop != NULL)
        event_base_loop(ch_loop_peek_base(program->loop), EVLOOP_NONBLOCK);
    g_clear_pointer(&program->expire, ch_timer_free);
    g_clear_pointer(&program->terminate, ch_signal_free);
    g_clear_pointer(&program->interrupt, ch_signal_free);
    ch_record_close(program->record);
    ch_api_free(program->api);
    g_clear_pointer(&program->loop, ch_loop_free);
}

int
main(int argc, char **argv)
{
    Flags flags = {.insecure_port = NO_PORT, .verbosity = 2};
    Program program = {0};
    g_autoptr(GError) error = NULL;
    int status = EXIT_SUCCESS;

    ch_log_init("chandler-apiserver");
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    if (parse_flags(argc, argv, &flags, &error)) {
        ch_log_set_verbosity(flags.verbosity);
        if (start(&program, &flags, &error))
            ch_loop_run(program.loop);
    }
    if (error != NULL) {
        fprintf(stderr, "chandler-apiserver: %s\n", error->message);
        status = EXIT_FAILURE;
    }
    program_clear(&program);
    flags_clear(&flags);
    return status;
}
