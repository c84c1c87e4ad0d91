/* SPDX-License-Identifier: Apache-2.0 */

/*
 * image-content: what to tell somebody whose image has not what was looked for.
 *
 * Pure. Thread: any.
 */

#pragma once

#include <glib.h>

/**
 * ch_image_content_describe:
 * @listing: names of what is in the image, one a line; directories end with a slash
 * @wanted: "/boot/vmlinuz", or "/disk/" for the one file in it
 *
 * Returns: (transfer full): "it has no file '/boot/vmlinuz'; /boot has config-6.1, vmlinuz-6.1":
 * of the deepest directory on the way that there is
 */
char *ch_image_content_describe(const char *listing, const char *wanted);
