/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/crc32.h"

#define POLYNOMIAL UINT32_C(0xEDB88320)

/* tables[k][b]: what byte @b does to the checksum k bytes later. */
static uint32_t tables[8][256];

static void
fill_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;

        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ POLYNOMIAL : value >> 1;
        tables[0][byte] = value;
    }
    for (int k = 1; k < 8; k++)
        for (int byte = 0; byte < 256; byte++)
            tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 0xff];
}

/* Eight bytes at a time: images are large. */
uint32_t
ch_crc32(uint32_t crc, const void *bytes, size_t n_bytes)
{
    const uint8_t *p = bytes;

    if (tables[0][1] == 0)
        fill_tables();
    crc = ~crc;
    for (; n_bytes >= 8; n_bytes -= 8, p += 8) {
        const uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                                    (uint32_t)p[3] << 24);

        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^
              tables[0][p[7]];
    }
    for (; n_bytes > 0; n_bytes--)
        crc = crc >> 8 ^ tables[0][(crc ^ *p++) & 0xff];
    return ~crc;
}
