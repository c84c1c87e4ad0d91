/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/metrics-disk.h"

#include <string.h>

#define SIGNATURE   "mvbd"
#define HEADER_SIZE 16

static void
put_uint32(char *out, guint32 value)
{
    value = GUINT32_TO_BE(value);
    memcpy(out, &value, sizeof(value));
}

/* Signature, whether it is being written, sum of the body's bytes, its length; then the body. */
static void
fill(char *disk)
{
    static const char body[] = "<metrics>\n</metrics>\n";
    guint32 sum = 0;

    for (gsize i = 0; i < sizeof(body) - 1; i++)
        sum += (guint8)body[i];
    memcpy(disk, SIGNATURE, sizeof(SIGNATURE) - 1);
    put_uint32(disk + 8, sum);
    put_uint32(disk + 12, sizeof(body) - 1);
    memcpy(disk + HEADER_SIZE, body, sizeof(body) - 1);
}

bool
ch_metrics_disk_make(const char *path, GError **error)
{
    g_autofree char *disk = NULL;

    if (g_file_test(path, G_FILE_TEST_EXISTS))
        return true;
    disk = g_malloc0(CH_METRICS_DISK_SIZE);
    fill(disk);
    return g_file_set_contents_full(
        path, disk, CH_METRICS_DISK_SIZE, G_FILE_SET_CONTENTS_CONSISTENT, 0640, error);
}
