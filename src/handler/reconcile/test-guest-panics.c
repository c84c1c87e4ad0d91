/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/guest-panics.h"

#include "handler/reconcile/test-support.h"

#define REPORT(count, info)                                                                        \
    "{'Status':{'Status':'Running','PanicCount':" count ",'GuestPanicInfo':" info "}}"

static void
note(ChGuestPanics *panics, const char *text)
{
    g_autoptr(ChDomain) domain = parse_domain(text);

    ch_guest_panics_note(panics, "ns", "vm", "u", domain);
}

static uint64_t
count_of(const ChGuestPanics *panics, const char *type, const char *code)
{
    return ch_counter_read(ch_guest_panics_peek_counter(panics),
                           (const char *const[]){"ns", "vm", type, code, NULL});
}

static char *
print(const ChGuestPanics *panics)
{
    GString *page = g_string_new(NULL);

    ch_counter_print(ch_guest_panics_peek_counter(panics), page);
    return g_string_free(page, FALSE);
}

/* One report each; NULL: nothing is counted. */
static const struct PanicCase {
    const char *path, *report;
    const char *type, *code;
} cases[] = {
    /* clang-format off */
    /* spec:02-14.4#1 spec:01#42 */
    {"/guest-panics/hyper-v", REPORT("1", "{'Type':'hyper-v','Arg1':126}"), "hyper-v", "0x7e"},
    /* spec:02-14.4#2 */
    {"/guest-panics/none-yet", REPORT("0", "{'Type':'hyper-v','Arg1':126}"), NULL, NULL},
    /* spec:02-14.4#5 */
    {"/guest-panics/empty-info", REPORT("1", "{}"), "unknown", "unknown"},
    {"/guest-panics/no-info", REPORT("1", "null"), "unknown", "unknown"},
    /* spec:02-14.4#6 */
    {"/guest-panics/empty-type", REPORT("1", "{'Type':'','Arg1':80}"), "unknown", "0x50"},
    {"/guest-panics/beyond-a-double", REPORT("1", "{'Type':'s390','Arg1':18446744073709551615}"), "s390", "0xffffffffffffffff"},
    /* spec:02-14.4#7 */
    {"/guest-panics/no-domain", NULL, NULL, NULL},
    {"/guest-panics/deleted-domain", "{'ObjectMeta':{'deletionTimestamp':'2026-01-01T00:00:00Z'},'Status':{'PanicCount':1}}", NULL, NULL},
    {"/guest-panics/negative-count", REPORT("-1", "{}"), NULL, NULL},
    /* clang-format on */
};

static void
test_report(gconstpointer data)
{
    const struct PanicCase *c = data;
    g_autoptr(ChGuestPanics) panics = ch_guest_panics_new();
    g_autofree char *page = NULL;

    note(panics, c->report);
    page = print(panics);
    if (c->type == NULL)
        g_assert_cmpstr(page, ==, "");
    else
        g_assert_cmpuint(count_of(panics, c->type, c->code), ==, 1);
}

/* spec:02-14.4#3 spec:02-14.4#4 spec:01#42: a count that was seen is no news, a higher one is one
 * more panic, however much higher. */
static void
test_each_panic_counts_once(void)
{
    g_autoptr(ChGuestPanics) panics = ch_guest_panics_new();

    note(panics, REPORT("1", "{}"));
    note(panics, REPORT("1", "{}"));
    g_assert_cmpuint(count_of(panics, "unknown", "unknown"), ==, 1);
    note(panics, REPORT("2", "{}"));
    g_assert_cmpuint(count_of(panics, "unknown", "unknown"), ==, 2);
    note(panics, REPORT("7", "{}"));
    g_assert_cmpuint(count_of(panics, "unknown", "unknown"), ==, 3);
    note(panics, REPORT("3", "{}"));
    g_assert_cmpuint(count_of(panics, "unknown", "unknown"), ==, 3);
}

static void
test_clean_up_forgets_what_was_seen(void)
{
    g_autoptr(ChGuestPanics) panics = ch_guest_panics_new();

    note(panics, REPORT("1", "{}"));
    ch_guest_panics_forget(panics, "u");
    g_assert_cmpuint(count_of(panics, "unknown", "unknown"), ==, 1);
    note(panics, REPORT("1", "{}"));
    g_assert_cmpuint(count_of(panics, "unknown", "unknown"), ==, 2);
}

/* The name, help and labels that alerts rely on. */
static void
test_page(void)
{
    g_autoptr(ChGuestPanics) panics = ch_guest_panics_new();
    g_autofree char *page = NULL;

    note(panics, REPORT("1", "{'Type':'hyper-v','Arg1':126}"));
    page = print(panics);
    g_assert_cmpstr(
        page,
        ==,
        "# HELP kubevirt_vmi_guest_os_panic_total Total number of guest OS panic events "
        "detected, partitioned by VMI and panic type.\n"
        "# TYPE kubevirt_vmi_guest_os_panic_total counter\n"
        "kubevirt_vmi_guest_os_panic_total{namespace=\"ns\",name=\"vm\",type=\"hyper-v\","
        "bugcheck_code=\"0x7e\"} 1\n");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_report);
    g_test_add_func("/guest-panics/each-panic-counts-once", test_each_panic_counts_once);
    g_test_add_func("/guest-panics/clean-up-forgets-what-was-seen",
                    test_clean_up_forgets_what_was_seen);
    g_test_add_func("/guest-panics/page", test_page);
    return g_test_run();
}
