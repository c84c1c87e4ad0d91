/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/dhcp-server.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

#define SERVER_PORT   67
#define CLIENT_PORT   68
#define MAX_MESSAGES  32 /* a turn of the loop */
#define MESSAGE_BYTES 1500

/* One link that is served. */
typedef struct {
    ChDhcpServer *server;
    char link[IFNAMSIZ];
    unsigned index; /* of the link: one that was made anew is another */
    ChDhcpLease lease;
    int fd;           /* owned */
    ChFdWatch *watch; /* loop only */
} Service;

struct ChDhcpServer {
    ChLoop *loop;
    GPtrArray *services; /* Service: of the worker, until the end */
};

static void
service_free(gpointer data)
{
    Service *service = data;

    ch_fd_watch_free(service->watch);
    ch_close_fd(&service->fd);
    g_free(service);
}

ChDhcpServer *
ch_dhcp_server_new(ChLoop *loop)
{
    ChDhcpServer *server = g_new0(ChDhcpServer, 1);

    server->loop = loop;
    server->services = g_ptr_array_new_with_free_func(service_free);
    return server;
}

void
ch_dhcp_server_free(ChDhcpServer *server)
{
    if (server == NULL)
        return;
    g_ptr_array_unref(server->services);
    g_free(server);
}

/* What cannot be sent is asked for again by the guest. */
static void
answer(const Service *service, const uint8_t *message, gsize n_bytes)
{
    ChDhcpAnswer reply;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(CLIENT_PORT),
                             .sin_addr.s_addr = htonl(INADDR_BROADCAST)};

    if (!ch_dhcp_answer(&service->lease, message, n_bytes, &reply))
        return;
    if (reply.to.family == AF_INET)
        memcpy(&to.sin_addr, reply.to.bytes, sizeof(to.sin_addr));
    if (sendto(service->fd,
               reply.bytes,
               reply.n_bytes,
               MSG_DONTWAIT,
               (const struct sockaddr *)&to,
               sizeof(to)) < 0)
        ch_log_verbose(3, NULL, "a DHCP answer could not be sent: %s", g_strerror(errno));
}

static void
on_readable(int fd, short what, gpointer data)
{
    const Service *service = data;
    uint8_t message[MESSAGE_BYTES];
    ssize_t n_bytes;

    for (int i = 0; i < MAX_MESSAGES; i++) {
        n_bytes = recv(fd, message, sizeof(message), MSG_DONTWAIT);
        if (n_bytes < 0)
            return;
        answer(service, message, (gsize)n_bytes);
    }
}

static void
watch_on_loop(gpointer data)
{
    Service *service = data;

    service->watch =
        ch_fd_watch_new(service->server->loop, service->fd, EV_READ, on_readable, service);
}

/* Bound to the link before the port: several links may be served. */
static bool
open_socket(const char *link, int *out_fd, GError **error)
{
    ch_autofd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(SERVER_PORT)};

    if (fd < 0)
        return ch_fail_errno(error, errno, "open a socket for DHCP");
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, link, (socklen_t)strlen(link) + 1) < 0)
        return ch_fail_errno(error, errno, "serve DHCP on link %s", link);
    if (setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &yes, sizeof(yes)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
        bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0)
        return ch_fail_errno(error, errno, "listen on port %d for DHCP", SERVER_PORT);
    *out_fd = g_steal_fd(&fd);
    return true;
}

static void
end(gpointer data)
{
    /* Its destroy function does it, on the loop's thread. */
}

/* Of a link that was plugged out, or out and in again, the socket hears nothing. */
static void
end_gone(ChDhcpServer *server)
{
    for (guint i = server->services->len; i-- > 0;) {
        const Service *service = server->services->pdata[i];

        if (if_nametoindex(service->link) != service->index)
            ch_loop_post(
                server->loop, end, g_ptr_array_steal_index_fast(server->services, i), service_free);
    }
}

static bool
is_served(const ChDhcpServer *server, const char *link)
{
    for (guint i = 0; i < server->services->len; i++)
        if (g_str_equal(((const Service *)server->services->pdata[i])->link, link))
            return true;
    return false;
}

bool
ch_dhcp_server_serve(ChDhcpServer *server,
                     const char *link,
                     const ChDhcpLease *lease,
                     GError **error)
{
    const unsigned index = if_nametoindex(link);
    Service *service;
    int fd = -EBADF;

    end_gone(server);
    if (is_served(server, link))
        return true;
    if (!open_socket(link, &fd, error))
        return false;
    service = g_new0(Service, 1);
    *service = (Service){.server = server, .index = index, .lease = *lease, .fd = fd};
    g_strlcpy(service->link, link, sizeof(service->link));
    g_ptr_array_add(server->services, service);
    ch_loop_post(server->loop, watch_on_loop, service, NULL);
    return true;
}
