/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/event-correlator.h"

#include <malloc.h>

#include "lib/base/time.h"

#define WALL_NS G_GINT64_CONSTANT(1795969180245147000) /* 2026-11-29T16:19:40.245147Z */
#define UUID    "00000000-0000-4000-8000-000000000000"

static const ChEvent warning = {
    .kind = "VirtualMachineInstance",
    .api_version = "kubevirt.io/v1",
    .namespace_ = "default",
    .name = "vm",
    .uid = "1234",
    .resource_version = "7",
    .type = "Warning",
    .reason = "SyncFailed",
    .message = "no socket",
    .wall_ns = WALL_NS,
};

static ChEventCorrelator *
new_correlator(void)
{
    return ch_event_correlator_new("virt-handler", "node01");
}

/* A second after start; returns whether the event is to be written. */
static bool
take(ChEventCorrelator *correlator, const ChEvent *event, ChEventWrite *out_write)
{
    return ch_event_correlator_take(correlator, event, WALL_NS + 1, CH_SECOND_US, UUID, out_write);
}

static void
take_message(ChEventCorrelator *correlator, const char *message, ChEventWrite *out_write)
{
    ChEvent event = warning;

    event.message = message;
    g_assert_true(take(correlator, &event, out_write));
}

static void
test_first_is_posted_whole(void)
{
    g_autoptr(ChEventCorrelator) correlator = new_correlator();
    g_auto(ChEventWrite) write = {NULL};
    g_autofree char *text = NULL;

    g_assert_true(take(correlator, &warning, &write));
    text = ch_json_print(write.document, NULL);
    g_assert_cmpstr(
        text,
        ==,
        "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"vm.18ec9074380fbd78\","
        "\"namespace\":\"default\"},\"involvedObject\":{\"kind\":\"VirtualMachineInstance\","
        "\"namespace\":\"default\",\"name\":\"vm\",\"uid\":\"1234\",\"apiVersion\":"
        "\"kubevirt.io/v1\",\"resourceVersion\":\"7\"},\"reason\":\"SyncFailed\",\"message\":"
        "\"no socket\",\"source\":{\"component\":\"virt-handler\",\"host\":\"node01\"},"
        "\"firstTimestamp\":\"2026-11-29T16:19:40Z\",\"lastTimestamp\":\"2026-11-29T16:19:40Z\","
        "\"count\":1,\"type\":\"Warning\",\"eventTime\":null,\"reportingComponent\":"
        "\"virt-handler\",\"reportingInstance\":\"node01\"}");
    g_assert_null(write.patch);
    g_assert_cmpstr(write.name, ==, "vm.18ec9074380fbd78");
    g_assert_cmpstr(write.namespace_, ==, "default");
}

static void
test_repetition_is_a_patch(void)
{
    g_autoptr(ChEventCorrelator) correlator = new_correlator();
    g_auto(ChEventWrite) first = {NULL}, second = {NULL};
    ChEvent again = warning;
    g_autofree char *patch = NULL;

    again.wall_ns += 5000000000;
    g_assert_true(take(correlator, &warning, &first));
    g_assert_true(take(correlator, &again, &second));
    patch = ch_json_print(second.patch, NULL);
    g_assert_cmpstr(patch,
                    ==,
                    "{\"count\":2,\"lastTimestamp\":\"2026-11-29T16:19:45Z\",\"message\":\"no "
                    "socket\"}");
    g_assert_cmpstr(second.name, ==, first.name);
    /* what is posted if the server forgot it */
    g_assert_cmpstr(
        ch_json_string_at(second.document, "firstTimestamp"), ==, "2026-11-29T16:19:40Z");
    g_assert_cmpstr(
        ch_json_string_at(second.document, "lastTimestamp"), ==, "2026-11-29T16:19:45Z");
}

/* spec:01#102, first half. spec:02-14.13#32: thirteen messages make nine events, a tenth that
 * combines, and three patches of it. */
static void
test_tenth_message_is_combined(void)
{
    g_autoptr(ChEventCorrelator) correlator = new_correlator();
    g_auto(ChEventWrite) tenth = {NULL}, eleventh = {NULL}, known = {NULL};

    for (int i = 1; i <= 9; i++) {
        g_autofree char *message = g_strdup_printf("m%d", i);
        g_auto(ChEventWrite) write = {NULL};

        take_message(correlator, message, &write);
        g_assert_cmpstr(ch_json_string_at(write.document, "message"), ==, message);
    }
    take_message(correlator, "m10", &tenth);
    g_assert_cmpstr(
        ch_json_string_at(tenth.document, "message"), ==, "(combined from similar events): m10");
    g_assert_cmpstr(ch_json_string_at(tenth.document, "reportingComponent"), ==, "");
    g_assert_cmpstr(ch_json_string_at(tenth.document, "reportingInstance"), ==, "");
    g_assert_cmpstr(ch_json_string_at(tenth.document, "source", "host"), ==, "node01");
    g_assert_cmpstr(tenth.name, ==, "vm.18ec9074380fbd79"); /* the writer's clock */
    g_assert_null(tenth.patch);

    take_message(correlator, "m11", &eleventh);
    g_assert_cmpstr(eleventh.name, ==, tenth.name);
    g_assert_cmpstr(
        ch_json_string_at(eleventh.patch, "message"), ==, "(combined from similar events): m11");
    for (int i = 12; i <= 13; i++) {
        g_autofree char *message = g_strdup_printf("m%d", i);
        g_auto(ChEventWrite) write = {NULL};

        take_message(correlator, message, &write);
        g_assert_nonnull(write.patch);
        g_assert_cmpstr(write.name, ==, tenth.name);
    }
    take_message(correlator, "m3", &known);
    g_assert_cmpstr(ch_json_string_at(known.patch, "message"), ==, "m3");
}

static void
test_groups_are_forgotten_after_ten_quiet_minutes(void)
{
    g_autoptr(ChEventCorrelator) correlator = new_correlator();
    int64_t now_us = 0;

    for (int i = 0; i < 24; i++) {
        g_autofree char *message = g_strdup_printf("m%d", i);
        g_auto(ChEventWrite) write = {NULL};
        ChEvent event = warning;
        const bool expect_combined = i >= 9 && i < 15;

        event.message = message;
        now_us += i == 15 ? 600 * CH_SECOND_US + 1 : CH_SECOND_US;
        g_assert_true(ch_event_correlator_take(correlator, &event, WALL_NS, now_us, UUID, &write));
        g_assert_cmpint(g_str_has_prefix(ch_json_string_at(write.document, "message"), "(combined"),
                        ==,
                        expect_combined);
    }
}

static void
test_groups_differ_by_reason_type_and_object(void)
{
    g_autoptr(ChEventCorrelator) correlator = new_correlator();
    ChEvent others[] = {warning, warning, warning, warning};

    others[0].reason = "Stopped";
    others[1].type = "Normal";
    others[2].name = "other";
    others[3].uid = "5678"; /* the same name, another life (trap 33) */
    for (int i = 0; i < 9; i++) {
        g_autofree char *message = g_strdup_printf("m%d", i);
        g_auto(ChEventWrite) write = {NULL};

        take_message(correlator, message, &write);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        g_auto(ChEventWrite) write = {NULL};

        g_assert_true(take(correlator, &others[i], &write));
        g_assert_cmpstr(ch_json_string_at(write.document, "message"), ==, "no socket");
    }
}

/* spec:01#102, second half, and trap 34. */
static void
test_storm_is_cut_per_type(void)
{
    g_autoptr(ChEventCorrelator) correlator = new_correlator();
    ChEvent normal = warning;
    g_auto(ChEventWrite) after = {NULL}, other_type = {NULL};
    ChEventWrite dropped = {NULL};
    int64_t value = 0;

    for (int i = 0; i < 25; i++) {
        g_auto(ChEventWrite) write = {NULL};

        g_assert_true(take(correlator, &warning, &write));
    }
    g_assert_false(take(correlator, &warning, &dropped));
    g_assert_null(dropped.document);
    normal.type = "Normal";
    g_assert_true(take(correlator, &normal, &other_type));

    g_assert_true(
        ch_event_correlator_take(correlator, &warning, WALL_NS, 301 * CH_SECOND_US, UUID, &after));
    g_assert_true(ch_json_int_at(after.patch, &value, "count"));
    g_assert_cmpint(value, ==, 27); /* what was dropped was counted */
}

static void
test_servers_answer_is_continued(void)
{
    g_autoptr(ChEventCorrelator) correlator = new_correlator();
    g_auto(ChEventWrite) first = {NULL}, next = {NULL};
    ChJson *metadata;
    int64_t value = 0;

    g_assert_true(take(correlator, &warning, &first));
    metadata = ch_json_ensure_object(first.document, "metadata");
    ch_json_set_string(metadata, "name", "renamed");
    ch_json_set_int(first.document, "count", 41);
    ch_event_correlator_observe(correlator, first.document);
    g_assert_true(take(correlator, &warning, &next));
    g_assert_cmpstr(next.name, ==, "renamed");
    g_assert_true(ch_json_int_at(next.patch, &value, "count"));
    g_assert_cmpint(value, ==, 42);
}

static void
test_odd_answers_are_ignored(void)
{
    static const char *const answers[] = {
        "{}",
        "[]",
        "{\"metadata\":{\"name\":\"x\"},\"involvedObject\":{},\"count\":0,\"firstTimestamp\":"
        "\"2026-11-29T16:19:40Z\"}",
        "{\"metadata\":{\"name\":\"x\"},\"involvedObject\":{},\"count\":1,\"firstTimestamp\":\"?"
        "\"}",
        "{\"metadata\":{\"name\":7},\"involvedObject\":{},\"count\":1,\"firstTimestamp\":"
        "\"2026-11-29T16:19:40Z\"}",
    };
    g_autoptr(ChEventCorrelator) correlator = new_correlator();
    const ChEvent empty = {.type = "Normal", .wall_ns = WALL_NS};
    g_auto(ChEventWrite) write = {NULL};

    for (gsize i = 0; i < G_N_ELEMENTS(answers); i++) {
        g_autoptr(ChJson) answer = ch_json_parse(answers[i], -1, NULL);

        ch_event_correlator_observe(correlator, answer);
    }
    ch_event_correlator_observe(correlator, NULL);
    g_assert_true(take(correlator, &empty, &write));
    g_assert_null(write.patch);
}

static void
test_invalid_name_is_replaced(void)
{
    g_autoptr(ChEventCorrelator) correlator = new_correlator();
    g_auto(ChEventWrite) write = {NULL};
    ChEvent event = warning;

    event.name = "Not_A_Name";
    event.namespace_ = "";
    g_assert_true(take(correlator, &event, &write));
    g_assert_cmpstr(write.name, ==, UUID);
    g_assert_cmpstr(write.namespace_, ==, "default");
    g_assert_cmpstr(ch_json_string_at(write.document, "metadata", "namespace"), ==, "default");
    g_assert_null(ch_json_at(write.document, "involvedObject", "namespace"));
}

static void
test_types(void)
{
    g_assert_true(ch_event_type_is_valid("Normal"));
    g_assert_true(ch_event_type_is_valid("Warning"));
    g_assert_false(ch_event_type_is_valid("normal"));
    g_assert_false(ch_event_type_is_valid("Foo"));
    g_assert_false(ch_event_type_is_valid(NULL));
}

/* The caches are bounded: after 4096 other objects this one is new again. */
static void
test_oldest_is_forgotten(void)
{
    g_autoptr(ChEventCorrelator) correlator = new_correlator();
    g_auto(ChEventWrite) again = {NULL};

    for (int i = 0; i <= 4096; i++) {
        g_autofree char *name = g_strdup_printf("vm%d", i);
        g_auto(ChEventWrite) write = {NULL};
        ChEvent event = warning;

        if (i > 0)
            event.name = name;
        g_assert_true(take(correlator, &event, &write));
    }
    g_assert_true(take(correlator, &warning, &again));
    g_assert_null(again.patch);
}

static gsize
heap_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* What @n objects with long names and one event each leave. */
static void
fill(ChEventCorrelator *correlator, int first, int n)
{
    for (int i = first; i < first + n; i++) {
        g_autofree char *name = g_strdup_printf("a-virtual-machine-with-a-name-%06d", i);
        g_auto(ChEventWrite) write = {NULL};
        ChEvent event = warning;

        event.name = name;
        g_assert_true(take(correlator, &event, &write));
    }
}

/* As the agent holds them for the VMs that were: 350 bytes a VM and event, up to 1.3 MB. */
static void
test_memory_is_bounded(void)
{
    const gsize before = heap_bytes();
    g_autoptr(ChEventCorrelator) correlator = new_correlator();
    gsize full;

    fill(correlator, 0, 5000);
    full = heap_bytes() - before;
    if (heap_bytes() == 0) {
        g_test_skip("this malloc does not tell");
        return;
    }
    g_test_message("%zu bytes", full);
    g_assert_cmpuint(full, <, 1300 * 1000);
    fill(correlator, 5000, 20000);
    g_assert_cmpuint(heap_bytes() - before, <, full + 100000);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/event-correlator/first-is-posted-whole", test_first_is_posted_whole);
    g_test_add_func("/event-correlator/repetition-is-a-patch", test_repetition_is_a_patch);
    g_test_add_func("/event-correlator/tenth-message-is-combined", test_tenth_message_is_combined);
    g_test_add_func("/event-correlator/groups-are-forgotten-after-ten-quiet-minutes",
                    test_groups_are_forgotten_after_ten_quiet_minutes);
    g_test_add_func("/event-correlator/groups-differ-by-reason-type-and-object",
                    test_groups_differ_by_reason_type_and_object);
    g_test_add_func("/event-correlator/storm-is-cut-per-type", test_storm_is_cut_per_type);
    g_test_add_func("/event-correlator/servers-answer-is-continued",
                    test_servers_answer_is_continued);
    g_test_add_func("/event-correlator/odd-answers-are-ignored", test_odd_answers_are_ignored);
    g_test_add_func("/event-correlator/invalid-name-is-replaced", test_invalid_name_is_replaced);
    g_test_add_func("/event-correlator/types", test_types);
    g_test_add_func("/event-correlator/oldest-is-forgotten", test_oldest_is_forgotten);
    g_test_add_func("/event-correlator/memory-is-bounded", test_memory_is_bounded);
    return g_test_run();
}
