/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/event-catalogue.h"

static void
test_every_entry_is_complete(void)
{
    for (ChEventKind kind = CH_EVENT_INVALID + 1; kind < CH_EVENT_N; kind++) {
        g_autoptr(ChEvent) event = ch_event_new(kind, "argument");

        g_assert_true(g_str_equal(event->type, "Normal") || g_str_equal(event->type, "Warning"));
        g_assert_cmpstr(event->reason, !=, "");
        g_assert_true(g_str_has_suffix(event->message, "argument"));
    }
}

/* Spec 01 §26, word for word. */
static void
test_words(void)
{
    g_autoptr(ChEvent) crashed = ch_event_new(CH_EVENT_CRASHED, NULL);
    g_autoptr(ChEvent) failed = ch_event_new(CH_EVENT_SYNC_FAILED, "why");

    g_assert_cmpstr(crashed->type, ==, "Warning");
    g_assert_cmpstr(crashed->reason, ==, "Stopped");
    g_assert_cmpstr(crashed->message, ==, "The VirtualMachineInstance crashed.");
    g_assert_cmpstr(failed->reason, ==, "SyncFailed");
    g_assert_cmpstr(failed->message, ==, "why");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/event-catalogue/every-entry-is-complete", test_every_entry_is_complete);
    g_test_add_func("/event-catalogue/words", test_words);
    return g_test_run();
}
