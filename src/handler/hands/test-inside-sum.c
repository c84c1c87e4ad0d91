/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-sum.h"

#include "handler/hands/test-fake-mounts.h"
#include "lib/base/crc32.h"
#include "lib/base/fd.h"

static void
test_sum(Fixture *f, gconstpointer data)
{
    const gsize n_bytes = CH_HANDS_SUM_BYTES + 9;
    g_autofree char *path = NULL;
    ChHandsRequest request = disk_0;
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    memset(request.source_uid, 0, sizeof(request.source_uid));
    path = g_build_filename(f->disk.root, "disk/disk.img", NULL);
    test_tree_write(f->disk.root, "disk/disk.img", "123456789");
    fake_disk_start(&f->disk);
    reply = fake_step_run(ch_inside_sum_image, request, NULL);
    g_assert_cmphex(reply.crc, ==, 0xCBF43926);
    g_assert_cmpuint(reply.size, ==, 9);
    g_assert_cmpuint(reply.end, ==, 9);

    /* Nothing but zeros, and then the digits: in two parts. */
    g_assert_cmpint(truncate(path, 0), ==, 0);
    g_assert_cmpint(truncate(path, (off_t)n_bytes), ==, 0);
    {
        ch_autofd int fd = open(path, O_WRONLY | O_CLOEXEC);

        g_assert_cmpint(pwrite(fd, "123456789", 9, CH_HANDS_SUM_BYTES), ==, 9);
    }
    reply = fake_step_run(ch_inside_sum_image, request, NULL);
    g_assert_cmpuint(reply.end, ==, CH_HANDS_SUM_BYTES);
    g_assert_cmpuint(reply.size, ==, n_bytes);
    request.crc = reply.crc;
    request.offset = reply.end;
    request.dev = reply.target.dev;
    request.ino = reply.target.ino + 1;
    g_assert_cmpint(fake_step_run(ch_inside_sum_image, request, NULL).errnum, ==, ESTALE);
    request.ino--;
    reply = fake_step_run(ch_inside_sum_image, request, NULL);
    g_assert_cmpuint(reply.end, ==, n_bytes);
    g_assert_cmphex(reply.crc, ==, ch_crc32(request.crc, "123456789", 9));
    g_assert_cmpint(truncate(path, 5), ==, 0);
    g_assert_cmpint(fake_step_run(ch_inside_sum_image, request, NULL).errnum, ==, ESTALE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    become_node();
    add_for("inside-sum", "parts", NULL, test_sum);
    return g_test_run();
}
