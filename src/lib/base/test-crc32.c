/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/crc32.h"

#include <glib.h>
#include <string.h>

static void
test_known(void)
{
    static const struct {
        const char *text;
        uint32_t crc;
    } cases[] = {
        {"", 0},
        {"a", 0xE8B7BE43},
        {"123456789", 0xCBF43926},
        {"The quick brown fox jumps over the lazy dog", 0x414FA339},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmphex(ch_crc32(0, cases[i].text, strlen(cases[i].text)), ==, cases[i].crc);
}

/* However it is cut, and against the definition, bit by bit. */
static void
test_pieces(void)
{
    uint8_t bytes[100];
    uint32_t plain = UINT32_MAX;

    for (gsize i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)g_test_rand_int();
        plain ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            plain = plain & 1 ? plain >> 1 ^ 0xEDB88320u : plain >> 1;
    }
    for (gsize cut = 0; cut <= sizeof(bytes); cut++)
        g_assert_cmphex(
            ch_crc32(ch_crc32(0, bytes, cut), bytes + cut, sizeof(bytes) - cut), ==, ~plain);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/crc32/known", test_known);
    g_test_add_func("/crc32/pieces", test_pieces);
    return g_test_run();
}
