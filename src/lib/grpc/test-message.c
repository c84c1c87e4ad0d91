/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/grpc/message.h"

#include <string.h>

#include "cmd-info.pb-c.h"
#include "cmd.pb-c.h"
#include "notify.pb-c.h"

static GBytes *
bytes_from_hex(const char *hex)
{
    GByteArray *bytes = g_byte_array_new();

    for (; g_ascii_isxdigit(hex[0]) && g_ascii_isxdigit(hex[1]); hex += 2) {
        const guint8 byte =
            (guint8)(g_ascii_xdigit_value(hex[0]) << 4 | g_ascii_xdigit_value(hex[1]));

        g_byte_array_append(bytes, &byte, 1);
    }
    return g_byte_array_free_to_bytes(bytes);
}

static char *
hex_of_message(const ProtobufCMessage *message)
{
    g_autoptr(GBytes) frame = ch_grpc_message_pack(message, NULL);
    gsize length;
    const guint8 *data;
    GString *hex = g_string_new(NULL);

    g_assert_nonnull(frame);
    data = g_bytes_get_data(frame, &length);
    for (gsize i = CH_GRPC_PREFIX_BYTES; i < length; i++)
        g_string_append_printf(hex, "%02x", data[i]);
    return g_string_free(hex, FALSE);
}

static void
assert_round_trip(const ProtobufCMessageDescriptor *type, const char *hex, const char *expect)
{
    g_autoptr(GBytes) bytes = bytes_from_hex(hex);
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *message = ch_grpc_message_unpack(type, bytes, &error);
    g_autofree char *again = NULL;

    g_assert_no_error(error);
    again = hex_of_message(message);
    g_assert_cmpstr(again, ==, expect);
    protobuf_c_message_free_unpacked(message, NULL);
}

/* Bytes that spec 03 §2.3 gives. */
static void
test_wire_facts(void)
{
    assert_round_trip(
        &kubevirt__cmd__v1__vmirequest__descriptor, "0a040a027b7d1200", "0a040a027b7d1200");
    assert_round_trip(&kubevirt__cmd__v1__vmirequest__descriptor, "0a00", "0a00");
    assert_round_trip(&kubevirt__cmd__v1__domain_response__descriptor, "0a020801", "0a020801");
    assert_round_trip(&kubevirt__notify__v1__domain_event_request__descriptor,
                      "0a027b7d1a054144444544",
                      "0a027b7d1a054144444544");
    assert_round_trip(&kubevirt__cmd__v1__exec_response__descriptor,
                      "10ffffffffffffffffff01",
                      "10ffffffffffffffffff01");
    /* packed is sent, unpacked is taken too */
    assert_round_trip(&kubevirt__cmd__info__cmd_info_response__descriptor, "0801", "0a0101");
    /* the last scalar wins */
    assert_round_trip(&kubevirt__cmd__v1__response__descriptor, "120161120162", "120162");
}

static void
test_negative_dirty_rate(void)
{
    Kubevirt__Cmd__V1__DirtyRateStatsResponse response =
        KUBEVIRT__CMD__V1__DIRTY_RATE_STATS_RESPONSE__INIT;
    g_autofree char *hex = NULL;

    response.dirty_rate_mbs = -1;
    hex = hex_of_message(&response.base);
    g_assert_cmpstr(hex, ==, "10ffffffffffffffffff01");
}

static void
test_string_must_be_utf8(void)
{
    char bad[] = "\xff";
    Kubevirt__Cmd__V1__Response response = KUBEVIRT__CMD__V1__RESPONSE__INIT;
    Kubevirt__Cmd__V1__DomainResponse nested = KUBEVIRT__CMD__V1__DOMAIN_RESPONSE__INIT;
    g_autoptr(GBytes) bytes = bytes_from_hex("0a031201ff");
    g_autoptr(GError) pack_error = NULL;
    g_autoptr(GError) unpack_error = NULL;

    response.message = bad;
    nested.response = &response;
    g_assert_null(ch_grpc_message_pack(&nested.base, &pack_error));
    g_assert_error(pack_error, CH_GRPC_ERROR, CH_GRPC_INTERNAL);
    g_assert_cmpstr(pack_error->message,
                    ==,
                    "grpc: error while marshaling: string field contains invalid UTF-8");

    g_assert_null(ch_grpc_message_unpack(
        &kubevirt__cmd__v1__domain_response__descriptor, bytes, &unpack_error));
    g_assert_error(unpack_error, CH_GRPC_ERROR, CH_GRPC_INTERNAL);
    g_assert_cmpstr(unpack_error->message, ==, "string field contains invalid UTF-8");
}

static void
test_bytes_may_be_anything(void)
{
    assert_round_trip(&kubevirt__cmd__v1__vmi__descriptor, "0a02ff00", "0a02ff00");
}

static void
test_garbage_is_refused(void)
{
    static const char *const rows[] = {"0a", "0a05", "ff", "0b", "08ffffffffffffffffffffff01"};

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GBytes) bytes = bytes_from_hex(rows[i]);
        g_autoptr(GError) error = NULL;

        g_assert_null(
            ch_grpc_message_unpack(&kubevirt__cmd__v1__vmirequest__descriptor, bytes, &error));
        g_assert_error(error, CH_GRPC_ERROR, CH_GRPC_INTERNAL);
        g_assert_cmpstr(error->message, ==, "proto: cannot parse invalid wire-format data");
    }
}

/* Two bytes a cell: four megabytes of them would ask for some hundred of memory. */
static void
test_amplification_is_bounded(void)
{
    g_autoptr(GByteArray) cells = g_byte_array_new();
    g_autoptr(GBytes) bytes = NULL;
    g_autoptr(GError) error = NULL;

    g_byte_array_set_size(cells, CH_GRPC_MAX_MESSAGE_BYTES);
    for (guint i = 0; i < cells->len; i += 2) {
        cells->data[i] = 0x0a;
        cells->data[i + 1] = 0;
    }
    bytes = g_byte_array_free_to_bytes(g_steal_pointer(&cells));
    g_assert_null(ch_grpc_message_unpack(&kubevirt__cmd__v1__topology__descriptor, bytes, &error));
    g_assert_error(error, CH_GRPC_ERROR, CH_GRPC_INTERNAL);
}

static void
test_golden_options(gconstpointer data)
{
    g_autofree char *path = NULL;
    g_autofree char *text = NULL;
    g_autoptr(GRegex) regex = g_regex_new("\"[A-Za-z]+:([0-9a-f]{8,})\"", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    const char *shared = g_getenv("CH_SHARED");
    int n_checked = 0;

    if (shared == NULL || !g_file_test(shared, G_FILE_TEST_IS_DIR)) {
        g_test_skip("the shared folder with the golden traces is not here");
        return;
    }
    path = g_build_filename(shared, "golden", data, NULL);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    for (g_regex_match(regex, text, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL), n_checked++) {
        g_autofree char *hex = g_match_info_fetch(match, 1);

        assert_round_trip(&kubevirt__cmd__v1__virtual_machine_options__descriptor, hex, hex);
    }
    g_assert_cmpint(n_checked, >, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/grpc/message/wire-facts", test_wire_facts);
    g_test_add_func("/grpc/message/negative-dirty-rate", test_negative_dirty_rate);
    g_test_add_func("/grpc/message/string-must-be-utf8", test_string_must_be_utf8);
    g_test_add_func("/grpc/message/bytes-may-be-anything", test_bytes_may_be_anything);
    g_test_add_func("/grpc/message/garbage-is-refused", test_garbage_is_refused);
    g_test_add_func("/grpc/message/amplification-is-bounded", test_amplification_is_bounded);
    g_test_add_data_func("/grpc/message/golden-plain", "start_plain.json", test_golden_options);
    g_test_add_data_func(
        "/grpc/message/golden-masquerade", "start_masquerade.json", test_golden_options);
    return g_test_run();
}
