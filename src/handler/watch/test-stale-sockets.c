/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/stale-sockets.h"

#include "lib/base/time.h"

static void
record_free(gpointer record)
{
    ch_ghost_record_free(record);
}

/* One round: @refusing names sockets, one letter each. Returns: (transfer full): the dead ones,
 * sorted, or "" */
static char *
judge(ChStaleSockets *sockets, const char *refusing, int64_t now_us)
{
    g_autoptr(GPtrArray) records = g_ptr_array_new_with_free_func(record_free);
    GString *dead = g_string_new(NULL);

    for (const char *c = refusing; *c != '\0'; c++) {
        ChGhostRecord *record = g_new0(ChGhostRecord, 1);

        record->socket_file = g_strdup_printf("/pods/%c/sock", *c);
        g_ptr_array_add(records, record);
    }
    ch_stale_sockets_judge(sockets, records, now_us);
    for (char c = 'a'; c <= 'z'; c++) {
        for (guint i = 0; i < records->len; i++) {
            if (((const ChGhostRecord *)records->pdata[i])->socket_file[6] == c)
                g_string_append_c(dead, c);
        }
    }
    return g_string_free(dead, FALSE);
}

static void
assert_dead(ChStaleSockets *sockets, const char *refusing, int64_t now_s, const char *expect)
{
    g_autofree char *dead = judge(sockets, refusing, now_s * CH_SECOND_US);

    g_assert_cmpstr(dead, ==, expect);
}

/* spec:01#68: 01 §11.4: with 30 s and rounds of 11 s the verdict comes in the fourth refusing
 * round. */
static void
test_fourth_round(void)
{
    g_autoptr(ChStaleSockets) sockets = ch_stale_sockets_new(30 * CH_SECOND_US);

    assert_dead(sockets, "", 1000, "");
    assert_dead(sockets, "a", 1011, "");
    assert_dead(sockets, "a", 1022, "");
    assert_dead(sockets, "ab", 1033, "");
    assert_dead(sockets, "ab", 1044, "a");
    assert_dead(sockets, "ab", 1055, "a");
    assert_dead(sockets, "ab", 1066, "ab");
    assert_dead(sockets, "b", 1077, "b");
}

/* spec:01#69 */
static void
test_recovery_starts_anew(void)
{
    g_autoptr(ChStaleSockets) sockets = ch_stale_sockets_new(2 * CH_SECOND_US);

    assert_dead(sockets, "ab", 10, "");
    assert_dead(sockets, "b", 12, "");
    assert_dead(sockets, "ab", 13, "b");
    assert_dead(sockets, "ab", 15, "b");
    assert_dead(sockets, "ab", 16, "ab");
}

/* 01 trap 25: never by one round alone, even when the watchdog's time is zero or a round came late.
 */
static void
test_one_round_is_no_verdict(void)
{
    g_autoptr(ChStaleSockets) zero = ch_stale_sockets_new(0);
    g_autoptr(ChStaleSockets) late = ch_stale_sockets_new(30 * CH_SECOND_US);

    assert_dead(zero, "a", 0, "");
    assert_dead(zero, "a", 0, "");
    assert_dead(zero, "a", 1, "a");
    assert_dead(late, "", 0, "");
    assert_dead(late, "a", 100000, "");
}

static void
test_seconds_are_whole(void)
{
    g_autoptr(ChStaleSockets) sockets = ch_stale_sockets_new(CH_SECOND_US);
    g_autofree char *first = judge(sockets, "a", 10 * CH_SECOND_US + 900 * CH_MS_US);
    g_autofree char *later = judge(sockets, "a", 11 * CH_SECOND_US + 950 * CH_MS_US);
    g_autofree char *last = judge(sockets, "a", 12 * CH_SECOND_US);

    g_assert_cmpstr(first, ==, "");
    g_assert_cmpstr(later, ==, "");
    g_assert_cmpstr(last, ==, "a");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stale-sockets/verdict-in-the-fourth-round", test_fourth_round);
    g_test_add_func("/stale-sockets/recovery-starts-anew", test_recovery_starts_anew);
    g_test_add_func("/stale-sockets/one-round-is-no-verdict", test_one_round_is_no_verdict);
    g_test_add_func("/stale-sockets/seconds-are-whole", test_seconds_are_whole);
    return g_test_run();
}
