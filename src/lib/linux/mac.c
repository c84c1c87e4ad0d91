/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/mac.h"

#include <glib.h>
#include <string.h>

bool
ch_mac_parse(const char *text, uint8_t out_mac[CH_MAC_BYTES])
{
    if (strlen(text) != CH_MAC_BYTES * 3 - 1)
        return false;
    for (gsize i = 0; i < CH_MAC_BYTES; i++) {
        const int high = g_ascii_xdigit_value(text[i * 3]);
        const int low = g_ascii_xdigit_value(text[i * 3 + 1]);
        const char end = text[i * 3 + 2];

        if (high < 0 || low < 0 ||
            (i + 1 < CH_MAC_BYTES && (end != text[2] || (end != ':' && end != '-'))))
            return false;
        out_mac[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

const char *
ch_mac_print(const uint8_t mac[CH_MAC_BYTES], char text[CH_MAC_TEXT_SIZE])
{
    (void)g_snprintf(text,
                     CH_MAC_TEXT_SIZE,
                     "%02x:%02x:%02x:%02x:%02x:%02x",
                     mac[0],
                     mac[1],
                     mac[2],
                     mac[3],
                     mac[4],
                     mac[5]);
    return text;
}
