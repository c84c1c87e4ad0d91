/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/dhcp.h"

#include <string.h>

#define OPTIONS 240

typedef struct {
    uint8_t bytes[1500];
    gsize n_bytes;
} Message;

static void
assert_bytes(const void *a, gsize n_a, const void *b, gsize n_b)
{
    g_assert_cmpuint(n_a, ==, n_b);
    g_assert_cmpint(memcmp(a, b, n_a), ==, 0);
}

static ChIp
ip(const char *text)
{
    ChIp result = {0};

    g_assert_true(ch_ip_parse(text, &result));
    return result;
}

static ChDhcpLease
new_lease(void)
{
    return (ChDhcpLease){
        .mac = {2, 0, 0, 0, 0, 9},
        .address = ip("10.0.2.2"),
        .prefix = 24,
        .server = ip("10.0.2.1"),
        .gateway = ip("10.0.2.1"),
        .name_servers = {ip("9.9.9.9"), ip("1.1.1.1")},
        .n_name_servers = 2,
        .mtu = 1450,
        .hostname = "vm",
        .search = "a.lab lab",
    };
}

static void
put(Message *message, uint8_t code, const void *bytes, uint8_t n_bytes)
{
    message->bytes[message->n_bytes++] = code;
    message->bytes[message->n_bytes++] = n_bytes;
    memcpy(message->bytes + message->n_bytes, bytes, n_bytes);
    message->n_bytes += n_bytes;
}

/* From the guest of new_lease(), without its end option. */
static Message
new_message(uint8_t type)
{
    static const uint8_t cookie[] = {99, 130, 83, 99};
    const ChDhcpLease lease = new_lease();
    Message message = {.bytes = {1, 1, 6, 0, 0xde, 0xad, 0xbe, 0xef}, .n_bytes = OPTIONS};

    memcpy(message.bytes + 28, lease.mac, sizeof(lease.mac));
    memcpy(message.bytes + 236, cookie, sizeof(cookie));
    put(&message, 53, &type, 1);
    return message;
}

static void
put_ip(Message *message, uint8_t code, const char *text)
{
    const ChIp address = ip(text);

    put(message, code, address.bytes, 4);
}

/* The option of an answer; NULL: it has none. */
static const uint8_t *
find(const ChDhcpAnswer *answer, uint8_t code, uint8_t *out_length)
{
    gsize at = OPTIONS;

    while (at + 1 < answer->n_bytes && answer->bytes[at] != 255) {
        if (answer->bytes[at] == code) {
            *out_length = answer->bytes[at + 1];
            return answer->bytes + at + 2;
        }
        at += 2 + (gsize)answer->bytes[at + 1];
    }
    return NULL;
}

static void
assert_option(const ChDhcpAnswer *answer, uint8_t code, const void *bytes, uint8_t n_bytes)
{
    uint8_t length = 0;
    const uint8_t *found = find(answer, code, &length);

    g_assert_nonnull(found);
    assert_bytes(found, length, bytes, n_bytes);
}

static void
test_offer(void)
{
    const ChDhcpLease lease = new_lease();
    Message message = new_message(1);
    ChDhcpAnswer answer;

    g_assert_true(ch_dhcp_answer(&lease, message.bytes, message.n_bytes, &answer));
    g_assert_cmpint(answer.to.family, ==, 0);
    g_assert_cmpuint(answer.n_bytes, >=, 300);
    g_assert_cmpuint(answer.bytes[0], ==, 2);
    assert_bytes(answer.bytes + 4, 4, message.bytes + 4, 4);
    assert_bytes(answer.bytes + 16, 4, "\x0a\x00\x02\x02", 4);
    assert_bytes(answer.bytes + 28, 6, lease.mac, 6);
    assert_option(&answer, 53, "\x02", 1);
    assert_option(&answer, 54, "\x0a\x00\x02\x01", 4);
    assert_option(&answer, 51, "\xff\xff\xff\xff", 4);
    assert_option(&answer, 1, "\xff\xff\xff\x00", 4);
    assert_option(&answer, 3, "\x0a\x00\x02\x01", 4);
    assert_option(&answer, 6, "\x09\x09\x09\x09\x01\x01\x01\x01", 8);
    assert_option(&answer, 26, "\x05\xaa", 2);
    assert_option(&answer, 12, "vm", 2);
    assert_option(&answer, 15, "a.lab", 5);
    assert_option(&answer, 119, "\001a\003lab\000\003lab\000", 12);
}

/* RFC 2131, table 3: an offer has no client address, whatever was asked. */
static void
test_offer_has_no_client_address(void)
{
    const ChDhcpLease lease = new_lease();
    Message message = new_message(1);
    ChDhcpAnswer answer;

    memcpy(message.bytes + 12, "\x08\x08\x08\x08", 4);
    g_assert_true(ch_dhcp_answer(&lease, message.bytes, message.n_bytes, &answer));
    assert_option(&answer, 53, "\x02", 1);
    assert_bytes(answer.bytes + 12, 4, "\0\0\0\0", 4);
}

static void
test_request_is_acknowledged(void)
{
    const ChDhcpLease lease = new_lease();
    Message message = new_message(3);
    ChDhcpAnswer answer;

    put_ip(&message, 50, "10.0.2.2");
    put_ip(&message, 54, "10.0.2.1");
    g_assert_true(ch_dhcp_answer(&lease, message.bytes, message.n_bytes, &answer));
    assert_option(&answer, 53, "\x05", 1);
    g_assert_cmpint(answer.to.family, ==, 0);
}

static void
test_renewal_is_answered_there(void)
{
    const ChDhcpLease lease = new_lease();
    Message message = new_message(3);
    ChDhcpAnswer answer;

    memcpy(message.bytes + 12, lease.address.bytes, 4);
    g_assert_true(ch_dhcp_answer(&lease, message.bytes, message.n_bytes, &answer));
    assert_option(&answer, 53, "\x05", 1);
    g_assert_true(ch_ip_equal(&answer.to, &lease.address));
}

static void
test_another_address_is_refused(void)
{
    const ChDhcpLease lease = new_lease();
    Message message = new_message(3);
    ChDhcpAnswer answer;
    uint8_t length = 0;

    put_ip(&message, 50, "10.0.2.77");
    g_assert_true(ch_dhcp_answer(&lease, message.bytes, message.n_bytes, &answer));
    assert_option(&answer, 53, "\x06", 1);
    g_assert_null(find(&answer, 1, &length));
    assert_bytes(answer.bytes + 16, 4, "\0\0\0\0", 4);
    g_assert_cmpint(answer.to.family, ==, 0);
}

/* A guest cannot have packets sent to whom it likes. */
static void
test_strange_client_address_is_not_written_to(void)
{
    const ChDhcpLease lease = new_lease();
    Message message = new_message(8);
    ChDhcpAnswer answer;

    memcpy(message.bytes + 12, "\x08\x08\x08\x08", 4);
    g_assert_true(ch_dhcp_answer(&lease, message.bytes, message.n_bytes, &answer));
    g_assert_cmpint(answer.to.family, ==, 0);
}

static void
test_routes(void)
{
    ChDhcpLease lease = new_lease();
    Message message = new_message(1);
    ChDhcpAnswer answer;

    lease.routes[0] = (ChDhcpRoute){ip("0.0.0.0"), 0, ip("10.0.2.1")};
    lease.routes[1] = (ChDhcpRoute){ip("192.168.7.0"), 23, ip("10.0.2.9")};
    lease.routes[2] = (ChDhcpRoute){ip("10.0.2.9"), 32, {0}};
    lease.n_routes = 3;
    g_assert_true(ch_dhcp_answer(&lease, message.bytes, message.n_bytes, &answer));
    assert_option(&answer,
                  121,
                  "\x00\x0a\x00\x02\x01"
                  "\x17\xc0\xa8\x07\x0a\x00\x02\x09"
                  "\x20\x0a\x00\x02\x09\x00\x00\x00\x00",
                  22);
}

/* The address matters more than the names. */
static void
test_what_does_not_fit_is_left_out(void)
{
    ChDhcpLease lease = new_lease();
    Message message = new_message(1);
    ChDhcpAnswer answer;
    uint8_t length = 0;

    memset(lease.search, 'x', sizeof(lease.search) - 1);
    memset(lease.hostname, 'h', sizeof(lease.hostname) - 1);
    for (guint i = 0; i < 28; i++)
        lease.routes[i] = (ChDhcpRoute){ip("10.0.2.9"), 32, ip("10.0.2.1")};
    lease.n_routes = 28;
    g_assert_true(ch_dhcp_answer(&lease, message.bytes, message.n_bytes, &answer));
    g_assert_cmpuint(answer.n_bytes, <=, CH_DHCP_MAX_BYTES);
    assert_option(&answer, 1, "\xff\xff\xff\x00", 4);
    g_assert_nonnull(find(&answer, 121, &length));
    g_assert_null(find(&answer, 12, &length));
    g_assert_null(find(&answer, 15, &length));
    g_assert_null(find(&answer, 119, &length));
}

static void
assert_silence(const Message *message)
{
    const ChDhcpLease lease = new_lease();
    ChDhcpAnswer answer;

    g_assert_false(ch_dhcp_answer(&lease, message->bytes, message->n_bytes, &answer));
}

static void
test_what_is_not_answered(void)
{
    static const struct {
        gsize at;
        uint8_t value;
    } wrong[] = {{0, 2}, {1, 7}, {2, 16}, {24, 1}, {28, 0x04}, {33, 0x0a}, {236, 0}};
    static const uint8_t types[] = {0, 2, 4, 5, 6, 7, 9, 255};
    Message other = new_message(3);

    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        Message message = new_message(1);

        message.bytes[wrong[i].at] = wrong[i].value;
        assert_silence(&message);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(types); i++) {
        const Message message = new_message(types[i]);

        assert_silence(&message);
    }
    put_ip(&other, 50, "10.0.2.2");
    put_ip(&other, 54, "10.0.2.3"); /* it chose another server */
    assert_silence(&other);
}

/* Every length, and options that leave the message. */
static void
test_cut_messages(void)
{
    const ChDhcpLease lease = new_lease();
    Message message = new_message(1);
    ChDhcpAnswer answer;

    put_ip(&message, 50, "10.0.2.2");
    for (gsize n = 0; n < OPTIONS + 3; n++) {
        g_autofree uint8_t *bytes = g_memdup2(message.bytes, n);

        g_assert_false(ch_dhcp_answer(&lease, bytes, n, &answer));
    }
    for (gsize n = OPTIONS + 4; n < message.n_bytes; n++) {
        g_autofree uint8_t *bytes = g_memdup2(message.bytes, n);

        g_assert_false(ch_dhcp_answer(&lease, bytes, n, &answer));
    }
    message.bytes[message.n_bytes++] = 0;
    message.bytes[message.n_bytes++] = 43;
    message.bytes[message.n_bytes++] = 200;
    g_assert_false(ch_dhcp_answer(&lease, message.bytes, message.n_bytes, &answer));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/dhcp/offer", test_offer);
    g_test_add_func("/dhcp/offer-has-no-client-address", test_offer_has_no_client_address);
    g_test_add_func("/dhcp/request-is-acknowledged", test_request_is_acknowledged);
    g_test_add_func("/dhcp/renewal-is-answered-there", test_renewal_is_answered_there);
    g_test_add_func("/dhcp/another-address-is-refused", test_another_address_is_refused);
    g_test_add_func("/dhcp/strange-client-address-is-not-written-to",
                    test_strange_client_address_is_not_written_to);
    g_test_add_func("/dhcp/routes", test_routes);
    g_test_add_func("/dhcp/what-does-not-fit-is-left-out", test_what_does_not_fit_is_left_out);
    g_test_add_func("/dhcp/what-is-not-answered", test_what_is_not_answered);
    g_test_add_func("/dhcp/cut-messages", test_cut_messages);
    return g_test_run();
}
