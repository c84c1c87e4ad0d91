/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/device-rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool
number_is_valid(int64_t number)
{
    return number >= CH_DEVICE_ANY && number <= (int64_t)UINT32_MAX;
}

bool
ch_device_rule_is_valid(const ChDeviceRule *rule)
{
    static const uint8_t zero[sizeof(rule->zero)];

    return number_is_valid(rule->major_number) && number_is_valid(rule->minor_number) &&
           rule->access != 0 && (rule->access & ~CH_DEVICE_ALL) == 0 &&
           (rule->type == 'b' || rule->type == 'c') && rule->is_allowed <= 1 &&
           memcmp(rule->zero, zero, sizeof(zero)) == 0;
}

bool
ch_device_rule_has_key_of(const ChDeviceRule *a, const ChDeviceRule *b)
{
    return a->type == b->type && a->major_number == b->major_number &&
           a->minor_number == b->minor_number;
}

static ChDeviceRule *
find(ChDeviceRules *list, size_t n_rules, const ChDeviceRule *key)
{
    for (size_t i = 0; i < n_rules; i++)
        if (ch_device_rule_has_key_of(&list->rules[i], key))
            return &list->rules[i];
    return NULL;
}

int
ch_device_rules_add(ChDeviceRules *list, const ChDeviceRule *rule)
{
    if (list->n_rules >= CH_DEVICE_RULES_MAX)
        return -ENOSPC;
    list->rules[list->n_rules++] = *rule;
    return 0;
}

int
ch_device_rules_merge(ChDeviceRules *list, const ChDeviceRules *current)
{
    const size_t n_won = list->n_rules; /* those of @current do not hide one another */
    int result = 0;

    for (size_t i = 0; i < current->n_rules && result == 0; i++)
        if (find(list, n_won, &current->rules[i]) == NULL)
            result = ch_device_rules_add(list, &current->rules[i]);
    return result;
}

int
ch_device_rules_add_defaults(ChDeviceRules *list, uint8_t access)
{
    static const struct {
        int64_t major_number, minor_number;
    } singles[] = {
        {5, 2},    /* ptmx */
        {1, 3},    /* null */
        {10, 200}, /* tun */
        {10, 238}, /* vhost-net */
    };
    int result = 0;

    for (size_t i = 0; i < sizeof(singles) / sizeof(singles[0]) && result == 0; i++)
        result = ch_device_rules_add(
            list,
            &CH_DEVICE_RULE('c', singles[i].major_number, singles[i].minor_number, access, 1));
    for (int64_t major = 136; major <= 151 && result == 0; major++) /* slaves of ptys */
        result = ch_device_rules_add(list, &CH_DEVICE_RULE('c', major, CH_DEVICE_ANY, access, 1));
    return result;
}

/* --- lines of devices.list */

typedef struct {
    const char *text;
    size_t length;
} Word;

/* Splits at blanks and ':', as the kernel prints them: each separates. Returns their number, at
 * most one more than there is room for. */
static size_t
split(const char *line, size_t length, Word words[4])
{
    size_t n = 0;
    size_t start = 0;

    for (size_t i = 0; i <= length; i++) {
        if (i < length && line[i] != ' ' && line[i] != ':')
            continue;
        if (n < 4)
            words[n] = (Word){line + start, i - start};
        n++;
        start = i + 1;
    }
    return n;
}

static bool
parse_number(const Word *word, int64_t *out_number)
{
    int64_t number = 0;

    if (word->length == 1 && word->text[0] == '*') {
        *out_number = CH_DEVICE_ANY;
        return true;
    }
    for (size_t i = 0; i < word->length; i++) {
        if (word->text[i] < '0' || word->text[i] > '9')
            return false;
        number = number * 10 + (word->text[i] - '0');
        if (number > (int64_t)UINT32_MAX)
            return false;
    }
    *out_number = number;
    return word->length > 0;
}

static uint8_t
parse_access(const Word *word)
{
    uint8_t access = 0;

    for (size_t i = 0; i < word->length; i++) {
        if (word->text[i] == 'r')
            access |= CH_DEVICE_READ;
        else if (word->text[i] == 'w')
            access |= CH_DEVICE_WRITE;
        else if (word->text[i] == 'm')
            access |= CH_DEVICE_MKNOD;
        else
            return 0;
    }
    return access;
}

ChDeviceLine
ch_device_line_parse(const char *line, size_t length, ChDeviceRule *out_rule)
{
    Word words[4];
    ChDeviceRule rule = {.is_allowed = 1};

    if (split(line, length, words) != 4)
        return CH_DEVICE_LINE_MALFORMED;
    if (words[0].length != 1 || words[0].text[0] < 'a' || words[0].text[0] > 'c')
        return CH_DEVICE_LINE_TYPE;
    if (words[0].text[0] == 'a')
        return CH_DEVICE_LINE_ALL;
    rule.type = (uint8_t)words[0].text[0];
    if (!parse_number(&words[1], &rule.major_number))
        return CH_DEVICE_LINE_MAJOR;
    if (!parse_number(&words[2], &rule.minor_number))
        return CH_DEVICE_LINE_MINOR;
    rule.access = parse_access(&words[3]);
    if (rule.access == 0)
        return CH_DEVICE_LINE_MALFORMED;
    *out_rule = rule;
    return CH_DEVICE_LINE_RULE;
}

static void
print_number(char text[16], int64_t number)
{
    if (number == CH_DEVICE_ANY)
        (void)snprintf(text, 16, "*");
    else
        (void)snprintf(text, 16, "%u", (unsigned)number);
}

void
ch_device_line_print(char line[CH_DEVICE_LINE_SIZE], const ChDeviceRule *rule)
{
    char major_text[16], minor_text[16];

    print_number(major_text, rule->major_number);
    print_number(minor_text, rule->minor_number);
    (void)snprintf(line,
                   CH_DEVICE_LINE_SIZE,
                   "%c %s:%s %s%s%s",
                   rule->type,
                   major_text,
                   minor_text,
                   rule->access & CH_DEVICE_READ ? "r" : "",
                   rule->access & CH_DEVICE_WRITE ? "w" : "",
                   rule->access & CH_DEVICE_MKNOD ? "m" : "");
}

/* --- what a list comes to */

static bool
numbers_overlap(int64_t a, int64_t b)
{
    return a == CH_DEVICE_ANY || b == CH_DEVICE_ANY || a == b;
}

/* The rule for a wildcard that a denial of @rule would only take a part of. */
static const ChDeviceRule *
find_conflict(const ChDeviceRules *allowed, const ChDeviceRule *rule)
{
    for (size_t i = 0; i < allowed->n_rules; i++) {
        const ChDeviceRule *other = &allowed->rules[i];
        const bool is_wild =
            other->major_number == CH_DEVICE_ANY || other->minor_number == CH_DEVICE_ANY;

        if (is_wild && other->type == rule->type && (other->access & rule->access) != 0 &&
            !ch_device_rule_has_key_of(other, rule) &&
            numbers_overlap(other->major_number, rule->major_number) &&
            numbers_overlap(other->minor_number, rule->minor_number))
            return other;
    }
    return NULL;
}

static int
allow(ChDeviceRules *allowed, const ChDeviceRule *rule)
{
    ChDeviceRule *found = find(allowed, allowed->n_rules, rule);

    if (found == NULL)
        return ch_device_rules_add(allowed, rule);
    found->access |= rule->access;
    return 0;
}

static int
deny(ChDeviceRules *allowed, const ChDeviceRule *rule, ChDeviceRule *out_conflict)
{
    const ChDeviceRule *conflict = find_conflict(allowed, rule);
    ChDeviceRule *found = find(allowed, allowed->n_rules, rule);

    if (conflict != NULL) {
        *out_conflict = *conflict;
        return -EINVAL;
    }
    if (found != NULL)
        found->access &= (uint8_t)~rule->access;
    return 0;
}

static bool
comes_before(const ChDeviceRule *a, const ChDeviceRule *b)
{
    if (a->major_number != b->major_number)
        return a->major_number < b->major_number;
    if (a->minor_number != b->minor_number)
        return a->minor_number < b->minor_number;
    return a->type < b->type;
}

/* Sorts, and drops what is denied altogether. Short lists: by insertion. */
static void
tidy(ChDeviceRules *allowed)
{
    size_t n = 0;

    for (size_t i = 0; i < allowed->n_rules; i++) {
        const ChDeviceRule rule = allowed->rules[i];
        size_t place = n;

        if (rule.access == 0)
            continue;
        for (; place > 0 && comes_before(&rule, &allowed->rules[place - 1]); place--)
            allowed->rules[place] = allowed->rules[place - 1];
        allowed->rules[place] = rule;
        n++;
    }
    allowed->n_rules = n;
}

int
ch_device_rules_evaluate(const ChDeviceRules *list,
                         ChDeviceRules *out_allowed,
                         ChDeviceRule *out_conflict)
{
    int result = 0;

    out_allowed->n_rules = 0;
    for (size_t i = 0; i < list->n_rules && result == 0; i++) {
        const ChDeviceRule *rule = &list->rules[i];

        result =
            rule->is_allowed ? allow(out_allowed, rule) : deny(out_allowed, rule, out_conflict);
    }
    tidy(out_allowed);
    return result;
}

void
ch_device_rules_subtract(const ChDeviceRules *wanted,
                         const ChDeviceRules *present,
                         ChDeviceRules *out_missing)
{
    out_missing->n_rules = 0;
    for (size_t i = 0; i < wanted->n_rules; i++) {
        ChDeviceRule rule = wanted->rules[i];

        for (size_t j = 0; j < present->n_rules; j++)
            if (ch_device_rule_has_key_of(&present->rules[j], &rule))
                rule.access &= (uint8_t)~present->rules[j].access;
        if (rule.access != 0)
            out_missing->rules[out_missing->n_rules++] = rule;
    }
}

bool
ch_device_rules_only_allow_all(const ChDeviceRules *list)
{
    for (size_t i = 0; i < list->n_rules; i++)
        if (!list->rules[i].is_allowed || list->rules[i].access != CH_DEVICE_ALL)
            return false;
    return true;
}
