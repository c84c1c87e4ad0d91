/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/connector.h"

#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/io/resolver.h"
#include "lib/io/tls.h"

/* A connection whose peer vanished without a word is found dead after 30 s + 9 * 15 s. */
#define KEEPALIVE_IDLE_SECONDS     30
#define KEEPALIVE_INTERVAL_SECONDS 15
#define KEEPALIVE_PROBES           9

struct ChConnector {
    ChLoop *loop;
    ChConnectorOptions options; /* strings owned; a reference to tls */
    ChConnectorFunc func;
    gpointer data;
    int64_t deadline_us; /* monotonic */
    ChTimer *timer;      /* of the whole; of one address while connecting; or: `failure` is due */
    ChResolver *resolver;
    ChAddress addresses[CH_RESOLVER_MAX_ADDRESSES];
    gsize n_addresses;
    gsize current; /* index of the address that is being tried */
    int fd;
    ChFdWatch *watch;        /* the socket is connecting */
    struct bufferevent *bev; /* the handshake is running */
    GError *failure;         /* of the first address */
};

static void try_address(ChConnector *connector);

/* Outcomes: each is the last thing its caller does, as the owner may free the connector in it. */

static void
succeed(ChConnector *connector, struct bufferevent *bev)
{
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    g_autofree char *alpn = ssl != NULL ? ch_tls_dup_alpn(ssl) : NULL;

    ch_timer_disarm(connector->timer);
    bufferevent_disable(bev, EV_READ); /* until its new owner listens */
    bufferevent_setcb(bev, NULL, NULL, NULL, NULL);
    connector->func(connector->data, bev, alpn, NULL);
}

static void
fail(ChConnector *connector, GError *error /* (transfer full) */)
{
    g_autoptr(GError) owned = error;

    ch_timer_disarm(connector->timer);
    g_clear_pointer(&connector->resolver, ch_resolver_free);
    connector->func(connector->data, NULL, NULL, owned);
}

static void
fail_with(ChConnector *connector, int code, const char *message)
{
    fail(connector, g_error_new_literal(CH_HTTP_ERROR, code, message));
}

/* TLS */

static void
on_handshake(struct bufferevent *bev, short what, void *data)
{
    ChConnector *connector = data;
    const int errnum = EVUTIL_SOCKET_ERROR();

    if (what & BEV_EVENT_CONNECTED)
        succeed(connector, g_steal_pointer(&connector->bev));
    else if (what & BEV_EVENT_EOF)
        fail_with(connector, CH_HTTP_ERROR_EOF, "EOF");
    else if (what & BEV_EVENT_ERROR)
        fail(connector, ch_tls_error_of(bev, errnum));
}

static void
start_handshake(ChConnector *connector)
{
    g_autoptr(GError) error = NULL;
    SSL *ssl = ch_tls_client_new(
        connector->options.tls, connector->options.server_name, connector->options.alpn, &error);

    if (ssl == NULL) {
        fail_with(connector, CH_HTTP_ERROR_TLS, error->message);
        return;
    }
    connector->bev = bufferevent_openssl_socket_new(ch_loop_peek_base(connector->loop),
                                                    g_steal_fd(&connector->fd),
                                                    ssl,
                                                    BUFFEREVENT_SSL_CONNECTING,
                                                    BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(connector->bev, NULL, NULL, on_handshake, connector);
    ch_timer_arm(connector->timer, connector->deadline_us - g_get_monotonic_time());
}

/* The socket */

static void
set_tcp_options(int fd)
{
    const int on = 1;
    const int idle = KEEPALIVE_IDLE_SECONDS;
    const int interval = KEEPALIVE_INTERVAL_SECONDS;
    const int probes = KEEPALIVE_PROBES;

    /* None of these can fail on a TCP socket. Without NODELAY a request waits 40 ms (tried). */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static void
on_connected(ChConnector *connector)
{
    g_clear_pointer(&connector->watch, ch_fd_watch_free);
    if (connector->options.tls != NULL)
        start_handshake(connector);
    else
        succeed(connector,
                bufferevent_socket_new(ch_loop_peek_base(connector->loop),
                                       g_steal_fd(&connector->fd),
                                       BEV_OPT_CLOSE_ON_FREE));
}

/* On to the next address, if there is one. */
static void
address_failed(ChConnector *connector, int errnum)
{
    const bool is_refused = errnum == ECONNREFUSED;
    char text[CH_ERRNO_TEXT_SIZE];

    g_clear_pointer(&connector->watch, ch_fd_watch_free);
    ch_close_fd(&connector->fd);
    if (connector->failure == NULL)
        connector->failure =
            g_error_new(CH_HTTP_ERROR,
                        is_refused ? CH_HTTP_ERROR_REFUSED : CH_HTTP_ERROR_CONNECT,
                        "connect to '%s': %s",
                        connector->options.unix_path != NULL ? connector->options.unix_path
                                                             : connector->options.host,
                        ch_errno_print(errnum, text));
    connector->current++;
    if (connector->current < connector->n_addresses)
        try_address(connector);
    else
        fail(connector, g_steal_pointer(&connector->failure));
}

static void
on_connectable(int fd, short what, gpointer data)
{
    ChConnector *connector = data;
    int errnum = 0;
    socklen_t length = sizeof errnum;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &length) < 0)
        errnum = errno;
    if (errnum != 0)
        address_failed(connector, errnum);
    else
        on_connected(connector);
}

static void
try_address(ChConnector *connector)
{
    const ChAddress *address = &connector->addresses[connector->current];
    const struct sockaddr *sockaddr = (const struct sockaddr *)&address->storage;
    const int64_t left_us = connector->deadline_us - g_get_monotonic_time();
    const int64_t share = (int64_t)(connector->n_addresses - connector->current);

    connector->fd = socket(sockaddr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connector->fd < 0) {
        address_failed(connector, errno);
        return;
    }
    if (sockaddr->sa_family != AF_UNIX)
        set_tcp_options(connector->fd);
    /* A UNIX listener whose backlog is full says EAGAIN: as good as not there. */
    if (connect(connector->fd, sockaddr, address->length) < 0 && errno != EINPROGRESS) {
        address_failed(connector, errno);
        return;
    }
    ch_timer_arm(connector->timer, left_us / share);
    connector->watch =
        ch_fd_watch_new(connector->loop, connector->fd, EV_WRITE, on_connectable, connector);
}

static void
on_resolved(gpointer data, const ChAddress *addresses, gsize n_addresses, const GError *error)
{
    ChConnector *connector = data;

    g_clear_pointer(&connector->resolver, ch_resolver_free);
    if (error != NULL) {
        fail(connector, g_error_copy(error));
        return;
    }
    memcpy(connector->addresses, addresses, n_addresses * sizeof addresses[0]);
    connector->n_addresses = n_addresses;
    try_address(connector);
}

static void
on_timer(gpointer data)
{
    ChConnector *connector = data;

    if (connector->watch != NULL)
        address_failed(connector, ETIMEDOUT);
    else if (connector->bev != NULL)
        fail_with(connector, CH_HTTP_ERROR_CONNECT, "TLS handshake timed out");
    else if (connector->resolver != NULL)
        fail_with(connector, CH_HTTP_ERROR_CONNECT, "look-up timed out");
    else
        try_address(connector); /* the first turn of a UNIX target */
}

static void
set_unix_address(ChConnector *connector)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    const bool fits = g_strlcpy(sun.sun_path, connector->options.unix_path, sizeof sun.sun_path) <
                      sizeof sun.sun_path;

    memcpy(&connector->addresses[0].storage, &sun, sizeof sun);
    /* An address without a path is refused as invalid, a cut path would be another's. */
    connector->addresses[0].length =
        fits ? sizeof sun : (socklen_t)offsetof(struct sockaddr_un, sun_path);
    connector->n_addresses = 1;
}

ChConnector *
ch_connector_new(ChLoop *loop,
                 const ChConnectorOptions *options,
                 ChConnectorFunc func,
                 gpointer data)
{
    ChConnector *connector = g_new0(ChConnector, 1);

    connector->loop = loop;
    connector->options = *options;
    connector->options.host = g_strdup(options->host);
    connector->options.unix_path = g_strdup(options->unix_path);
    connector->options.server_name = g_strdup(options->server_name);
    if (options->tls != NULL)
        SSL_CTX_up_ref(options->tls);
    connector->func = func;
    connector->data = data;
    connector->fd = -EBADF;
    connector->deadline_us = g_get_monotonic_time() + options->timeout_us;
    connector->timer = ch_timer_new(loop, on_timer, connector);
    if (options->unix_path != NULL) {
        set_unix_address(connector);
        ch_timer_arm(connector->timer, 0);
    } else {
        ch_timer_arm(connector->timer, options->timeout_us);
        connector->resolver =
            ch_resolver_new(loop, options->host, options->port, on_resolved, connector);
    }
    return connector;
}

void
ch_connector_free(ChConnector *connector)
{
    if (connector == NULL)
        return;
    ch_timer_free(connector->timer);
    ch_resolver_free(connector->resolver);
    ch_fd_watch_free(connector->watch);
    ch_close_fd(&connector->fd);
    g_clear_pointer(&connector->bev, bufferevent_free);
    g_clear_error(&connector->failure);
    SSL_CTX_free(connector->options.tls);
    g_free((char *)connector->options.host);
    g_free((char *)connector->options.unix_path);
    g_free((char *)connector->options.server_name);
    g_free(connector);
}
