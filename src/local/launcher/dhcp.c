/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/dhcp.h"

#include <string.h>

#define MIN_BYTES 300 /* what old relays and clients expect */
#define INFINITE  0xffffffffu

/* The fixed part (RFC 2131 §2). */
enum {
    AT_OP = 0,
    AT_HTYPE = 1,
    AT_HLEN = 2,
    AT_XID = 4,
    AT_FLAGS = 10,
    AT_CIADDR = 12,
    AT_YIADDR = 16,
    AT_GIADDR = 24,
    AT_CHADDR = 28,
    AT_COOKIE = 236,
    AT_OPTIONS = 240,
};

enum { BOOT_REQUEST = 1, BOOT_REPLY = 2, ETHERNET = 1 };

enum {
    OPTION_PAD = 0,
    OPTION_MASK = 1,
    OPTION_ROUTER = 3,
    OPTION_NAME_SERVERS = 6,
    OPTION_HOSTNAME = 12,
    OPTION_DOMAIN = 15,
    OPTION_MTU = 26,
    OPTION_REQUESTED = 50,
    OPTION_LEASE = 51,
    OPTION_TYPE = 53,
    OPTION_SERVER = 54,
    OPTION_SEARCH = 119,
    OPTION_ROUTES = 121,
    OPTION_END = 255,
};

enum { DISCOVER = 1, OFFER = 2, REQUEST = 3, ACK = 5, NAK = 6, INFORM = 8 };

static const uint8_t cookie[] = {99, 130, 83, 99};

/* --- the request ------------------------------------------------------------------------------ */

typedef struct {
    uint8_t type;
    ChIp client;    /* the address that it has already; family 0: none */
    ChIp requested; /* the address that it asks for */
    ChIp server;    /* the one that it chose */
} Request;

static ChIp
read_ip(const uint8_t bytes[4])
{
    ChIp ip = {.family = AF_INET};

    memcpy(ip.bytes, bytes, 4);
    return bytes[0] == 0 ? (ChIp){0} : ip;
}

static void
take_option(Request *request, uint8_t code, uint8_t n_bytes, const uint8_t *bytes)
{
    if (code == OPTION_TYPE && n_bytes == 1)
        request->type = bytes[0];
    else if (code == OPTION_REQUESTED && n_bytes == 4)
        request->requested = read_ip(bytes);
    else if (code == OPTION_SERVER && n_bytes == 4)
        request->server = read_ip(bytes);
}

/* Returns: false: an option leaves the message */
static bool
take_options(Request *request, const uint8_t *message, gsize n_bytes)
{
    gsize at = AT_OPTIONS;

    while (at < n_bytes && message[at] != OPTION_END) {
        const uint8_t code = message[at];

        if (code == OPTION_PAD) {
            at++;
            continue;
        }
        if (n_bytes - at < 2 || n_bytes - at - 2 < message[at + 1])
            return false;
        take_option(request, code, message[at + 1], message + at + 2);
        at += 2 + (gsize)message[at + 1];
    }
    return true;
}

static bool
read_request(const ChDhcpLease *lease, const uint8_t *message, gsize n_bytes, Request *request)
{
    static const uint8_t no_relay[4] = {0};

    if (n_bytes < AT_OPTIONS || message[AT_OP] != BOOT_REQUEST || message[AT_HTYPE] != ETHERNET ||
        message[AT_HLEN] != CH_MAC_BYTES ||
        memcmp(message + AT_COOKIE, cookie, sizeof(cookie)) != 0 ||
        memcmp(message + AT_CHADDR, lease->mac, CH_MAC_BYTES) != 0 ||
        memcmp(message + AT_GIADDR, no_relay, sizeof(no_relay)) != 0)
        return false;
    request->client = read_ip(message + AT_CIADDR);
    return take_options(request, message, n_bytes);
}

/* The type of the answer; 0: none. */
static uint8_t
decide(const ChDhcpLease *lease, const Request *request)
{
    const ChIp *wanted = request->requested.family != 0 ? &request->requested : &request->client;

    switch (request->type) {
    case DISCOVER:
        return OFFER;
    case INFORM:
        return ACK;
    case REQUEST:
        if (request->server.family != 0 && !ch_ip_equal(&request->server, &lease->server))
            return 0; /* it chose another server */
        return ch_ip_equal(wanted, &lease->address) ? ACK : NAK;
    default:
        return 0;
    }
}

/* --- the answer ------------------------------------------------------------------------------- */

/* What does not fit is left out: what matters most comes first. */
static void
add(ChDhcpAnswer *answer, uint8_t code, const void *bytes, gsize n_bytes)
{
    uint8_t *to = answer->bytes + answer->n_bytes;

    if (n_bytes == 0 || n_bytes > 255 ||
        answer->n_bytes + 2 + n_bytes + 1 > sizeof(answer->bytes)) /* the end's byte too */
        return;
    to[0] = code;
    to[1] = (uint8_t)n_bytes;
    memcpy(to + 2, bytes, n_bytes);
    answer->n_bytes += 2 + n_bytes;
}

static void
add_number(ChDhcpAnswer *answer, uint8_t code, uint32_t number, gsize n_bytes)
{
    uint8_t bytes[4];

    for (gsize i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(number >> (8 * (n_bytes - 1 - i)));
    add(answer, code, bytes, n_bytes);
}

static void
add_ip(ChDhcpAnswer *answer, uint8_t code, const ChIp *ip)
{
    if (ip->family == AF_INET)
        add(answer, code, ip->bytes, 4);
}

static void
add_name_servers(ChDhcpAnswer *answer, const ChDhcpLease *lease)
{
    uint8_t bytes[4 * CH_DHCP_MAX_SERVERS];

    for (guint i = 0; i < lease->n_name_servers; i++)
        memcpy(bytes + (gsize)4 * i, lease->name_servers[i].bytes, 4);
    add(answer, OPTION_NAME_SERVERS, bytes, (gsize)4 * lease->n_name_servers);
}

/* Prefix, the destination's bytes that count, gateway (RFC 3442). All or none: with this option
 * clients forget the router. */
static void
add_routes(ChDhcpAnswer *answer, const ChDhcpLease *lease)
{
    uint8_t bytes[9 * CH_DHCP_MAX_ROUTES];
    gsize n_bytes = 0;

    for (guint i = 0; i < lease->n_routes; i++) {
        const ChDhcpRoute *route = &lease->routes[i];
        const gsize n_kept = ((gsize)route->prefix + 7) / 8;

        bytes[n_bytes++] = route->prefix;
        memcpy(bytes + n_bytes, route->destination.bytes, n_kept);
        memcpy(bytes + n_bytes + n_kept, route->gateway.bytes, 4);
        n_bytes += n_kept + 4;
    }
    add(answer, OPTION_ROUTES, bytes, n_bytes);
}

/* A name as DNS writes it. Returns: false: it does not fit, or is none */
static bool
append_name(uint8_t bytes[255], gsize *n_bytes, const char *name)
{
    g_auto(GStrv) labels = g_strsplit(name, ".", -1);
    gsize at = *n_bytes;

    for (gsize i = 0; labels[i] != NULL && *labels[i] != '\0'; i++) {
        const gsize length = strlen(labels[i]);

        if (length > 63 || at + 1 + length + 1 > 255)
            return false;
        bytes[at] = (uint8_t)length;
        memcpy(bytes + at + 1, labels[i], length);
        at += 1 + length;
    }
    if (at == *n_bytes)
        return false;
    bytes[at] = 0;
    *n_bytes = at + 1;
    return true;
}

static void
add_search(ChDhcpAnswer *answer, const char *search)
{
    g_auto(GStrv) names = g_strsplit(search, " ", -1);
    uint8_t bytes[255];
    gsize n_bytes = 0;

    for (gsize i = 0; names[i] != NULL && append_name(bytes, &n_bytes, names[i]); i++)
        ;
    add(answer, OPTION_SEARCH, bytes, n_bytes);
}

static void
add_settings(ChDhcpAnswer *answer, const ChDhcpLease *lease)
{
    const uint32_t mask = lease->prefix == 0 ? 0 : INFINITE << (32 - lease->prefix);

    add_number(answer, OPTION_MASK, mask, 4);
    add_ip(answer, OPTION_ROUTER, &lease->gateway);
    add_name_servers(answer, lease);
    if (lease->mtu != 0)
        add_number(answer, OPTION_MTU, lease->mtu, 2);
    add_routes(answer, lease);
    add(answer, OPTION_HOSTNAME, lease->hostname, strlen(lease->hostname));
    add(answer, OPTION_DOMAIN, lease->search, strcspn(lease->search, " "));
    add_search(answer, lease->search);
}

static void
begin(ChDhcpAnswer *answer, const uint8_t *message)
{
    static const struct {
        gsize at, n_bytes;
    } kept[] = {{AT_HTYPE, 2}, {AT_XID, 4}, {AT_FLAGS, 2}, {AT_GIADDR, 4}, {AT_CHADDR, 16}};

    memset(answer, 0, sizeof(*answer));
    answer->bytes[AT_OP] = BOOT_REPLY;
    for (gsize i = 0; i < G_N_ELEMENTS(kept); i++)
        memcpy(answer->bytes + kept[i].at, message + kept[i].at, kept[i].n_bytes);
    memcpy(answer->bytes + AT_COOKIE, cookie, sizeof(cookie));
    answer->n_bytes = AT_OPTIONS;
}

bool
ch_dhcp_answer(const ChDhcpLease *lease,
               const uint8_t *message,
               gsize n_bytes,
               ChDhcpAnswer *out_answer)
{
    Request request = {0};
    uint8_t type;

    if (!read_request(lease, message, n_bytes, &request))
        return false;
    type = decide(lease, &request);
    if (type == 0)
        return false;
    begin(out_answer, message);
    add_number(out_answer, OPTION_TYPE, type, 1);
    add_ip(out_answer, OPTION_SERVER, &lease->server);
    if (type != NAK && request.type != INFORM) {
        memcpy(out_answer->bytes + AT_YIADDR, lease->address.bytes, 4);
        add_number(out_answer, OPTION_LEASE, INFINITE, 4);
    }
    if (type == ACK)
        memcpy(out_answer->bytes + AT_CIADDR, request.client.bytes, 4);
    if (type != NAK) {
        add_settings(out_answer, lease);
        if (ch_ip_equal(&request.client, &lease->address))
            out_answer->to = request.client; /* it listens there */
    }
    out_answer->bytes[out_answer->n_bytes++] = OPTION_END;
    out_answer->n_bytes = MAX(out_answer->n_bytes, MIN_BYTES); /* the rest is 0: padding */
    return true;
}
