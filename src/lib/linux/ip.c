/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

gsize
ch_ip_n_bytes(const ChIp *ip)
{
    return ip->family == AF_INET ? 4 : 16;
}

bool
ch_ip_equal(const ChIp *a, const ChIp *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool
ch_ip_parse(const char *text, ChIp *out_ip)
{
    ChIp ip = {.family = AF_INET};
    struct in6_addr v6;

    if (inet_pton(AF_INET, text, ip.bytes) == 1) {
        *out_ip = ip;
        return true;
    }
    if (inet_pton(AF_INET6, text, &v6) != 1)
        return false;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
        memcpy(ip.bytes, &v6.s6_addr[12], 4);
    } else {
        ip.family = AF_INET6;
        memcpy(ip.bytes, v6.s6_addr, 16);
    }
    *out_ip = ip;
    return true;
}

const char *
ch_ip_print(const ChIp *ip, char text[CH_IP_TEXT_SIZE])
{
    if (ip->family == 0 || inet_ntop(ip->family, ip->bytes, text, CH_IP_TEXT_SIZE) == NULL)
        text[0] = '\0';
    return text;
}

bool
ch_ip_is_global_unicast(const ChIp *ip)
{
    const uint8_t *bytes = ip->bytes;
    struct in6_addr v6;

    if (ip->family == AF_INET)
        return (bytes[0] | bytes[1] | bytes[2] | bytes[3]) != 0 && bytes[0] != 127 &&
               (bytes[0] & 0xf0) != 0xe0 && (bytes[0] != 169 || bytes[1] != 254) &&
               (bytes[0] & bytes[1] & bytes[2] & bytes[3]) != 0xff;
    if (ip->family != AF_INET6)
        return false;
    memcpy(&v6, bytes, sizeof(v6));
    return !IN6_IS_ADDR_UNSPECIFIED(&v6) && !IN6_IS_ADDR_LOOPBACK(&v6) &&
           !IN6_IS_ADDR_MULTICAST(&v6) && !IN6_IS_ADDR_LINKLOCAL(&v6);
}

static void
clear_host_bits(ChIp *ip, unsigned prefix)
{
    for (unsigned i = 0; i < sizeof(ip->bytes); i++) {
        const unsigned kept = prefix > i * 8 ? MIN(prefix - i * 8, 8u) : 0;

        ip->bytes[i] = (uint8_t)(ip->bytes[i] & ~(0xffu >> kept));
    }
}

bool
ch_ip_parse_network(const char *text, ChIp *out_ip, uint8_t *out_prefix)
{
    const char *slash = strchr(text, '/');
    g_autofree char *address = slash != NULL ? g_strndup(text, (gsize)(slash - text)) : NULL;
    guint64 prefix;
    ChIp ip;

    if (slash == NULL || !ch_ip_parse(address, &ip) ||
        !g_ascii_string_to_unsigned(slash + 1, 10, 0, ch_ip_n_bytes(&ip) * 8, &prefix, NULL))
        return false;
    clear_host_bits(&ip, (unsigned)prefix);
    *out_ip = ip;
    *out_prefix = (uint8_t)prefix;
    return true;
}

ChIp
ch_ip_plus(const ChIp *ip, unsigned n)
{
    ChIp sum = *ip;

    for (gsize i = ch_ip_n_bytes(ip); i > 0 && n > 0; i--) {
        n += sum.bytes[i - 1];
        sum.bytes[i - 1] = (uint8_t)(n & 0xff);
        n >>= 8;
    }
    return sum;
}

bool
ch_ip_is_network_of(const ChIp *network, const ChIp *ip, uint8_t prefix)
{
    ChIp masked = *ip;

    clear_host_bits(&masked, prefix);
    return ch_ip_equal(network, &masked);
}
