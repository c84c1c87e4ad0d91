/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/device-rules.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#define BLOCK(major, minor) CH_DEVICE_RULE('b', major, minor, CH_DEVICE_ALL, 1)
#define DENY(major, minor)  CH_DEVICE_RULE('b', major, minor, CH_DEVICE_ALL, 0)

static void
assert_rule(const ChDeviceRule *rule, const char *expected)
{
    char line[CH_DEVICE_LINE_SIZE];

    ch_device_line_print(line, rule);
    g_assert_cmpstr(line, ==, expected);
}

/* spec:05-16.5#122: a rule, and the twenty that each pod has, with the version's access. */
static void
test_defaults(void)
{
    static const struct {
        uint8_t access;
        const char *ptmx, *last;
    } versions[] = {
        {CH_DEVICE_ALL, "c 5:2 rwm", "c 151:* rwm"},
        {CH_DEVICE_READ | CH_DEVICE_WRITE, "c 5:2 rw", "c 151:* rw"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(versions); i++) {
        g_autofree ChDeviceRules *list = g_new0(ChDeviceRules, 1);
        g_autofree ChDeviceRules *defaults = g_new0(ChDeviceRules, 1);

        g_assert_cmpint(ch_device_rules_add(list, &BLOCK(8, 16)), ==, 0);
        g_assert_cmpint(ch_device_rules_add_defaults(defaults, versions[i].access), ==, 0);
        g_assert_cmpint(ch_device_rules_merge(list, defaults), ==, 0);
        g_assert_cmpuint(list->n_rules, ==, 21);
        assert_rule(&list->rules[0], "b 8:16 rwm");
        assert_rule(&list->rules[1], versions[i].ptmx);
        assert_rule(&list->rules[20], versions[i].last);
    }
}

/* spec:05-16.5#123: what was there stays; spec:05-16.5#124: unless it is asked for anew. */
static void
test_merge(void)
{
    g_autofree ChDeviceRules *list = g_new0(ChDeviceRules, 1);
    g_autofree ChDeviceRules *current = g_new0(ChDeviceRules, 1);

    (void)ch_device_rules_add(current, &BLOCK(8, 16));
    (void)ch_device_rules_add(current, &BLOCK(8, 32));
    (void)ch_device_rules_add(list, &CH_DEVICE_RULE('b', 8, 16, CH_DEVICE_READ, 1));
    g_assert_cmpint(ch_device_rules_merge(list, current), ==, 0);
    g_assert_cmpuint(list->n_rules, ==, 2);
    assert_rule(&list->rules[0], "b 8:16 r");
    assert_rule(&list->rules[1], "b 8:32 rwm");
}

static const struct LineCase {
    const char *path, *line;
    ChDeviceLine kind;
    ChDeviceRule rule;
} lines[] = {
    /* spec:05-16.5#127 */
    {"/device-rules/line/block", "b 1:2 rwm", CH_DEVICE_LINE_RULE, {1, 2, 7, 'b', 1, {0}}},
    {"/device-rules/line/char", "c 5:2 rw", CH_DEVICE_LINE_RULE, {5, 2, 6, 'c', 1, {0}}},
    {"/device-rules/line/any", "b *:* m", CH_DEVICE_LINE_RULE, {-1, -1, 1, 'b', 1, {0}}},
    {"/device-rules/line/any-major", "c *:0 r", CH_DEVICE_LINE_RULE, {-1, 0, 2, 'c', 1, {0}}},
    {"/device-rules/line/any-minor", "c 5:* w", CH_DEVICE_LINE_RULE, {5, -1, 4, 'c', 1, {0}}},
    {"/device-rules/line/all", "a *:* rwm", CH_DEVICE_LINE_ALL, {0}},
    {"/device-rules/line/empty", "", CH_DEVICE_LINE_MALFORMED, {0}},
    {"/device-rules/line/few", "b 8:1", CH_DEVICE_LINE_MALFORMED, {0}},
    {"/device-rules/line/many", "b 8:1 rwm x", CH_DEVICE_LINE_MALFORMED, {0}},
    {"/device-rules/line/no-access", "b 8:1 ", CH_DEVICE_LINE_MALFORMED, {0}},
    {"/device-rules/line/access", "b 8:1 rx", CH_DEVICE_LINE_MALFORMED, {0}},
    {"/device-rules/line/type", "x 8:1 rwm", CH_DEVICE_LINE_TYPE, {0}},
    {"/device-rules/line/major", "b x:1 rwm", CH_DEVICE_LINE_MAJOR, {0}},
    {"/device-rules/line/minor", "b 8:y rwm", CH_DEVICE_LINE_MINOR, {0}},
    {"/device-rules/line/negative", "b 8:-1 rwm", CH_DEVICE_LINE_MINOR, {0}},
    {"/device-rules/line/huge", "b 8:4294967296 rwm", CH_DEVICE_LINE_MINOR, {0}},
};

static void
test_line(gconstpointer data)
{
    const struct LineCase *c = data;
    ChDeviceRule rule = {0};

    g_assert_cmpint(ch_device_line_parse(c->line, strlen(c->line), &rule), ==, c->kind);
    g_assert_true(memcmp(&rule, &c->rule, sizeof(rule)) == 0);
    if (c->kind == CH_DEVICE_LINE_RULE) {
        g_assert_true(ch_device_rule_is_valid(&rule));
        assert_rule(&rule, c->line);
    }
}

static int
evaluate(const ChDeviceRule *rules, gsize n, ChDeviceRules *out, ChDeviceRule *conflict)
{
    g_autofree ChDeviceRules *list = g_new0(ChDeviceRules, 1);

    for (gsize i = 0; i < n; i++)
        g_assert_cmpint(ch_device_rules_add(list, &rules[i]), ==, 0);
    return ch_device_rules_evaluate(list, out, conflict);
}

static void
test_evaluate(void)
{
    const ChDeviceRule rules[] = {
        BLOCK(8, 16),
        CH_DEVICE_RULE('c', 1, 3, CH_DEVICE_READ, 1),
        CH_DEVICE_RULE('c', 1, 3, CH_DEVICE_WRITE, 1),
        BLOCK(7, 0),
        DENY(7, 0),
        CH_DEVICE_RULE('b', 8, 16, CH_DEVICE_MKNOD, 0),
    };
    g_autofree ChDeviceRules *allowed = g_new0(ChDeviceRules, 1);
    ChDeviceRule conflict;

    g_assert_cmpint(evaluate(rules, G_N_ELEMENTS(rules), allowed, &conflict), ==, 0);
    g_assert_cmpuint(allowed->n_rules, ==, 2);
    assert_rule(&allowed->rules[0], "c 1:3 rw");
    assert_rule(&allowed->rules[1], "b 8:16 rw");
}

/* spec:05-16.5#132: the denial comes first, and takes nothing from the wildcard after it. */
static void
test_deny_before_wildcard(void)
{
    const ChDeviceRule rules[] = {DENY(8, 0), BLOCK(CH_DEVICE_ANY, CH_DEVICE_ANY)};
    g_autofree ChDeviceRules *allowed = g_new0(ChDeviceRules, 1);
    ChDeviceRule conflict;

    g_assert_cmpint(evaluate(rules, G_N_ELEMENTS(rules), allowed, &conflict), ==, 0);
    g_assert_cmpuint(allowed->n_rules, ==, 1);
    assert_rule(&allowed->rules[0], "b *:* rwm");
}

static void
test_deny_after_wildcard(void)
{
    const ChDeviceRule rules[] = {
        CH_DEVICE_RULE('b', 8, CH_DEVICE_ANY, CH_DEVICE_ALL, 1),
        DENY(8, 0),
    };
    g_autofree ChDeviceRules *allowed = g_new0(ChDeviceRules, 1);
    ChDeviceRule conflict = {0};

    g_assert_cmpint(evaluate(rules, G_N_ELEMENTS(rules), allowed, &conflict), ==, -EINVAL);
    assert_rule(&conflict, "b 8:* rwm");
}

static void
test_subtract(void)
{
    const ChDeviceRule wanted_rules[] = {BLOCK(8, 16), BLOCK(8, 32), BLOCK(8, 48)};
    const ChDeviceRule present_rules[] = {
        CH_DEVICE_RULE('b', 8, 32, CH_DEVICE_READ, 1),
        BLOCK(8, 48),
        BLOCK(7, 1),
    };
    g_autofree ChDeviceRules *wanted = g_new0(ChDeviceRules, 1);
    g_autofree ChDeviceRules *present = g_new0(ChDeviceRules, 1);
    g_autofree ChDeviceRules *missing = g_new0(ChDeviceRules, 1);
    ChDeviceRule conflict;

    (void)evaluate(wanted_rules, G_N_ELEMENTS(wanted_rules), wanted, &conflict);
    (void)evaluate(present_rules, G_N_ELEMENTS(present_rules), present, &conflict);
    ch_device_rules_subtract(wanted, present, missing);
    g_assert_cmpuint(missing->n_rules, ==, 2);
    assert_rule(&missing->rules[0], "b 8:16 rwm");
    assert_rule(&missing->rules[1], "b 8:32 wm");
}

static void
test_bounds(void)
{
    g_autofree ChDeviceRules *list = g_new0(ChDeviceRules, 1);
    g_autofree ChDeviceRules *one = g_new0(ChDeviceRules, 1);

    for (int i = 0; i < CH_DEVICE_RULES_MAX; i++)
        g_assert_cmpint(ch_device_rules_add(list, &BLOCK(8, i)), ==, 0);
    g_assert_cmpint(ch_device_rules_add(list, &BLOCK(9, 0)), ==, -ENOSPC);
    (void)ch_device_rules_add(one, &BLOCK(9, 0));
    g_assert_cmpint(ch_device_rules_merge(list, one), ==, -ENOSPC);
    g_assert_cmpuint(list->n_rules, ==, CH_DEVICE_RULES_MAX);
}

static const struct InvalidCase {
    const char *path;
    ChDeviceRule rule;
} invalid[] = {
    {"/device-rules/invalid/type", {1, 2, 7, 'a', 1, {0}}},
    {"/device-rules/invalid/major", {-2, 2, 7, 'b', 1, {0}}},
    {"/device-rules/invalid/minor", {1, INT64_C(1) << 32, 7, 'b', 1, {0}}},
    {"/device-rules/invalid/no-access", {1, 2, 0, 'b', 1, {0}}},
    {"/device-rules/invalid/access", {1, 2, 8, 'b', 1, {0}}},
    {"/device-rules/invalid/allowed", {1, 2, 7, 'b', 2, {0}}},
    {"/device-rules/invalid/rest", {1, 2, 7, 'b', 1, {0, 1}}},
};

static void
test_invalid(gconstpointer data)
{
    const struct InvalidCase *c = data;

    g_assert_false(ch_device_rule_is_valid(&c->rule));
}

static void
test_only_allow_all(void)
{
    g_autofree ChDeviceRules *list = g_new0(ChDeviceRules, 1);

    (void)ch_device_rules_add(list, &BLOCK(8, 16));
    g_assert_true(ch_device_rules_only_allow_all(list));
    list->rules[0].access = CH_DEVICE_READ;
    g_assert_false(ch_device_rules_only_allow_all(list));
    list->rules[0] = DENY(8, 16);
    g_assert_false(ch_device_rules_only_allow_all(list));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/device-rules/defaults", test_defaults);
    g_test_add_func("/device-rules/merge", test_merge);
    for (gsize i = 0; i < G_N_ELEMENTS(lines); i++)
        g_test_add_data_func(lines[i].path, &lines[i], test_line);
    g_test_add_func("/device-rules/evaluate", test_evaluate);
    g_test_add_func("/device-rules/deny-before-wildcard", test_deny_before_wildcard);
    g_test_add_func("/device-rules/deny-after-wildcard", test_deny_after_wildcard);
    g_test_add_func("/device-rules/subtract", test_subtract);
    g_test_add_func("/device-rules/bounds", test_bounds);
    for (gsize i = 0; i < G_N_ELEMENTS(invalid); i++)
        g_test_add_data_func(invalid[i].path, &invalid[i], test_invalid);
    g_test_add_func("/device-rules/only-allow-all", test_only_allow_all);
    return g_test_run();
}
