/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/reply.h"

#include <errno.h>
#include <string.h>

static void
test_text(void)
{
    const ChHandsRequest request = {.op = CH_HANDS_OP_LOOK, .sequence = 9};
    ChHandsReply reply;

    ch_reply_init(&reply, &request);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.sequence, ==, 9);
    g_assert_false(ch_reply_fail(&reply, -ENOENT, "open '%s'", "x"));
    g_assert_cmpint(reply.errnum, ==, ENOENT);
    g_assert_cmpstr(reply.text, ==, "open 'x': no such file or directory");
    g_assert_false(ch_reply_fail(&reply, 4095, "y"));
    g_assert_cmpstr(reply.text, ==, "y: errno 4095");
}

static void
test_cut(void)
{
    g_autofree char *longer = g_strnfill(CH_HANDS_TEXT_SIZE * 2, 'a');
    g_autofree char *nearly = g_strnfill(CH_HANDS_TEXT_SIZE - 4, 'a');
    ChHandsReply reply = {0};

    g_assert_false(ch_reply_fail(&reply, EIO, "%s", longer));
    g_assert_cmpuint(strlen(reply.text), ==, CH_HANDS_TEXT_SIZE - 1);
    g_assert_false(ch_reply_fail(&reply, EIO, "%s", nearly));
    g_assert_cmpuint(strlen(reply.text), ==, CH_HANDS_TEXT_SIZE - 1);
}

static void
test_shortage(void)
{
    static const int shortages[] = {ENOMEM, ENOBUFS, EMFILE, ENFILE, EAGAIN, EINTR};
    static const int facts[] = {ENOENT, ENOTDIR, ELOOP, EACCES, ECONNREFUSED, ESRCH};

    for (gsize i = 0; i < G_N_ELEMENTS(shortages); i++)
        g_assert_true(ch_reply_is_shortage(shortages[i]) && ch_reply_is_shortage(-shortages[i]));
    for (gsize i = 0; i < G_N_ELEMENTS(facts); i++)
        g_assert_false(ch_reply_is_shortage(facts[i]) || ch_reply_is_shortage(-facts[i]));
}

/* A descriptor or a length may be the number of an errno. */
static void
test_unknown(void)
{
    g_assert_true(ch_reply_is_unknown(-EIO) && ch_reply_is_unknown(-ENOMEM));
    g_assert_false(ch_reply_is_unknown(EIO) || ch_reply_is_unknown(ENOMEM));
    g_assert_false(ch_reply_is_unknown(0) || ch_reply_is_unknown(-ENOENT));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/reply/text-ends-with-the-errno", test_text);
    g_test_add_func("/reply/text-is-cut", test_cut);
    g_test_add_func("/reply/shortage-is-no-fact", test_shortage);
    g_test_add_func("/reply/unknown-is-neither-found-nor-absent", test_unknown);
    return g_test_run();
}
