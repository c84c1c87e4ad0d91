/* SPDX-License-Identifier: Apache-2.0 */

/*
 * mac: Ethernet addresses as text. Pure. Thread: any.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CH_MAC_BYTES     6
#define CH_MAC_TEXT_SIZE 18 /* the NUL included */

/**
 * ch_mac_parse: six pairs of hexadecimal digits, all parted by ':' or all by '-'.
 *
 * Returns: false: it is none, @out_mac is not whole
 */
bool ch_mac_parse(const char *text, uint8_t out_mac[CH_MAC_BYTES]);

/* Lower case, by ':'. Returns: @text */
const char *ch_mac_print(const uint8_t mac[CH_MAC_BYTES], char text[CH_MAC_TEXT_SIZE]);
