/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/status-internal.h"
#include "handler/reconcile/test-support.h"

/* Spec 02 §2.2. Another order, another form, missing and null are no news. */
static const struct EqualCase {
    const char *a, *b;
    bool expect;
} cases[] = {
    {"{}", "{'conditions':[],'phase':'','n':0,'f':false,'z':null}", true},
    {"{'a':1,'b':2}", "{'b':2,'a':1}", true},
    {"{'a':1,'b':[{'c':2,'d':null}]}", "{'b':[{'c':2.0}],'a':1.0}", true},
    {"{'conditions':[1,2]}", "{'conditions':[2,1]}", false},
    {"{'conditions':[1]}", "{'conditions':[1,1]}", false},
    {"{'guestOSInfo':{},'activePods':{}}", "{}", true},
    {"{'memory':{}}", "{}", false},
    {"{'machine':{}}", "{'machine':null}", false},
    {"{'memory':{'guestCurrent':'1Gi'}}", "{'memory':{'guestCurrent':'1024Mi'}}", true},
    {"{'memory':{'guestCurrent':'1Gi'}}", "{'memory':{'guestCurrent':'1G'}}", false},
    {"{'x':'1Gi'}", "{'x':'1024Mi'}", false},
    {"{'startTimestamp':'2026-01-01T01:00:00+01:00'}",
     "{'startTimestamp':'2026-01-01T00:00:00Z'}",
     true},
    {"{'lastProbeTime':'2026-01-01T00:00:00Z'}", "{'lastProbeTime':'2026-01-01T00:00:01Z'}", false},
    {"{'lastProbeTime':null}", "{}", true},
    {"{'message':'2026-01-01T01:00:00+01:00'}", "{'message':'2026-01-01T00:00:00Z'}", false},
    {"{'n':1}", "{'n':'1'}", false},
    {"{'n':18446744073709551615}", "{'n':18446744073709551614}", false},
    {"{'x':'a\\u0000b'}", "{'x':'a\\u0000c'}", false},
    {"{'x':'a\\u0000b'}", "{'x':'a'}", false},
    {"{'f':true}", "{}", false},
    {"{'n':0.5}", "{}", false},
};

static void
test_equal(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(ChJson) a = parse_json(cases[i].a);
        g_autoptr(ChJson) b = parse_json(cases[i].b);

        g_test_message("%s %s", cases[i].a, cases[i].b);
        g_assert_true(ch_status_is_equal(a, b) == cases[i].expect);
        g_assert_true(ch_status_is_equal(b, a) == cases[i].expect);
        g_assert_true(ch_status_is_equal(a, a));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/status-equal/rule", test_equal);
    return g_test_run();
}
