/* SPDX-License-Identifier: Apache-2.0 */

/* What a guest agent replies: the guest chooses every byte. */

#include "local/launcher/guest-info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static ChJson *(*const parsers[])(const char *reply) = {
        ch_guest_info_parse_agent, ch_guest_info_parse_filesystems, ch_guest_info_parse_freeze};
    g_autofree char *reply = g_strndup((const char *)data, size);

    for (gsize i = 0; i < G_N_ELEMENTS(parsers); i++) {
        g_autoptr(ChJson) json = parsers[i](reply);

        if (json != NULL) {
            g_autofree char *text = ch_json_print(json, NULL);
            g_assert_nonnull(text);
        }
    }
    return 0;
}
