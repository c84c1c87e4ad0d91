/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Addresses that a guest reports: of which family, and whether they mean anything outside.
 */

#include "handler/reconcile/status-internal.h"

#include <arpa/inet.h>

/* What the guest gets behind masquerade, where the VMI says nothing else (04 §7). */
#define DEFAULT_CIDR_V4 "10.0.2.0/24"
#define DEFAULT_CIDR_V6 "fd10:0:2::/120"

typedef struct {
    ChIpFamily family;
    uint8_t bytes[16]; /* 4 of IPv4 */
} Address;

/* Plain addresses only: no prefix length, no zone. A v4-mapped one is IPv4. */
static bool
parse(const char *text, Address *out)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

    *out = (Address){CH_IP_NONE};
    if (inet_pton(AF_INET, text, out->bytes) == 1) {
        out->family = CH_IP_V4;
    } else if (inet_pton(AF_INET6, text, out->bytes) == 1) {
        out->family = CH_IP_V6;
        if (memcmp(out->bytes, mapped, sizeof(mapped)) == 0) {
            out->family = CH_IP_V4;
            memmove(out->bytes, out->bytes + sizeof(mapped), 4);
        }
    }
    return out->family != CH_IP_NONE;
}

ChIpFamily
ch_status_ip_family(const char *text)
{
    Address address;

    (void)parse(text, &address); /* what is none has no family */
    return address.family;
}

static bool
is_prefix_equal(const uint8_t *a, const uint8_t *b, guint n_bits)
{
    const guint n_bytes = n_bits / 8;
    const guint rest = n_bits % 8;

    return memcmp(a, b, n_bytes) == 0 &&
           (rest == 0 || ((a[n_bytes] ^ b[n_bytes]) >> (8 - rest)) == 0);
}

/* @cidr: what cannot be read has no addresses in it */
static bool
is_in(const Address *address, const char *cidr)
{
    g_auto(GStrv) parts = g_strsplit(cidr, "/", 2);
    Address network;
    guint64 n_bits;

    if (g_strv_length(parts) != 2 || !parse(parts[0], &network) ||
        network.family != address->family ||
        !g_ascii_string_to_unsigned(
            parts[1], 10, 0, network.family == CH_IP_V4 ? 32 : 128, &n_bits, NULL))
        return false;
    return is_prefix_equal(address->bytes, network.bytes, (guint)n_bits);
}

static bool
is_link_local(const Address *address)
{
    return is_in(address, "169.254.0.0/16") || is_in(address, "fe80::/10");
}

/* @network: of spec.networks, (nullable) */
bool
ch_status_ip_is_of_guest_only(const char *text, const ChJson *network)
{
    const char *v4 = ch_json_string_at(network, "pod", "vmNetworkCIDR");
    const char *v6 = ch_json_string_at(network, "pod", "vmIPv6NetworkCIDR");
    Address address;

    return !parse(text, &address) || is_link_local(&address) ||
           is_in(&address, v4 != NULL && v4[0] != '\0' ? v4 : DEFAULT_CIDR_V4) ||
           is_in(&address, v6 != NULL && v6[0] != '\0' ? v6 : DEFAULT_CIDR_V6);
}
