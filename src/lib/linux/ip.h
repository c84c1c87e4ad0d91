/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ip: addresses of both families as values. Pure. Thread: any. Spec: 04 §7.2, trap 22, 23.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

typedef struct {
    uint8_t family;    /* AF_INET or AF_INET6; 0: none */
    uint8_t bytes[16]; /* network order; for AF_INET the first four, the rest is 0 */
} ChIp;

gsize ch_ip_n_bytes(const ChIp *ip); /* 4 or 16 */
bool ch_ip_equal(const ChIp *a, const ChIp *b);
/* False when @text is no address. A v4-mapped one is IPv4. */
bool ch_ip_parse(const char *text, ChIp *out_ip);
#define CH_IP_TEXT_SIZE 46
const char *ch_ip_print(const ChIp *ip, char text[CH_IP_TEXT_SIZE]);
/* Neither unspecified, loopback, multicast, link-local nor the broadcast address. */
bool ch_ip_is_global_unicast(const ChIp *ip);
/* "10.0.2.0/24"; the host bits are cleared. False when @text is none. */
bool ch_ip_parse_network(const char *text, ChIp *out_ip, uint8_t *out_prefix);
/* The address @n after @ip. */
ChIp ch_ip_plus(const ChIp *ip, unsigned n);
/* Whether @network/@prefix is exactly the network that @ip/@prefix lies in. */
bool ch_ip_is_network_of(const ChIp *network, const ChIp *ip, uint8_t prefix);
