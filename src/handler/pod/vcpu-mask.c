/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/vcpu-mask.h"

#include <string.h>

#include "lib/base/errors.h"

#define N_CPUS        (CH_CPU_SET_SIZE * 8u)
#define MAX_LIST_CPUS 101 /* one more than the text says, as in the original */

bool
ch_cpu_set_has(const ChCpuSet *set, unsigned cpu)
{
    return cpu < N_CPUS && (set->bits[cpu / 8] & 1u << cpu % 8) != 0;
}

static void
put(ChCpuSet *set, unsigned cpu, bool is_in)
{
    const uint8_t bit = (uint8_t)(1u << cpu % 8);

    set->bits[cpu / 8] = is_in ? set->bits[cpu / 8] | bit : (uint8_t)(set->bits[cpu / 8] & ~bit);
}

/* Takes digits off the front of *at. */
static bool
take_number(const char **at, unsigned *out_number)
{
    unsigned number = 0;
    const char *start = *at;

    for (; g_ascii_isdigit(**at); (*at)++)
        number = MIN(number * 10 + (unsigned)(**at - '0'), N_CPUS); /* beyond: refused below */
    *out_number = number;
    return *at > start;
}

/* `a` or `a-b`, and nothing else. */
static bool
take_range(const char *text, unsigned *out_first, unsigned *out_last)
{
    if (!take_number(&text, out_first))
        return false;
    *out_last = *out_first;
    if (*text == '-') {
        text++;
        if (!take_number(&text, out_last))
            return false;
    }
    return *text == '\0' && *out_first < N_CPUS && *out_last < N_CPUS;
}

static bool
apply_item(
    const char *item, const char *mask, ChCpuSet *enabled, ChCpuSet *mentioned, GError **error)
{
    g_autofree char *word = g_strstrip(g_strdup(item));
    const bool is_negated = word[0] == '^';
    unsigned first, last;

    if (!take_range(word + is_negated, &first, &last) || (is_negated && strchr(word, '-') != NULL))
        return ch_fail(error, CH_ERROR_INVALID, "invalid mask value '%s' in '%s'", item, mask);
    if (first > last)
        return ch_fail(error, CH_ERROR_INVALID, "invalid mask range `%s`", word);
    for (unsigned cpu = first; cpu <= last; cpu++) {
        if (is_negated)
            put(enabled, cpu, false);
        else if (!ch_cpu_set_has(mentioned, cpu))
            put(enabled, cpu, true);
        put(mentioned, cpu, true);
    }
    return true;
}

bool
ch_vcpu_mask_parse(const char *mask, ChCpuSet *out_set, GError **error)
{
    g_auto(GStrv) items = NULL;
    ChCpuSet enabled = {{0}}, mentioned = {{0}};

    if (mask == NULL || mask[0] == '\0') {
        memset(out_set, 0xff, sizeof(*out_set));
        return true;
    }
    items = g_strsplit(mask, ",", -1);
    for (char **item = items; *item != NULL; item++)
        if (!apply_item(*item, mask, &enabled, &mentioned, error))
            return false;
    *out_set = enabled;
    return true;
}

bool
ch_cpu_list_parse(const char *list, ChCpuSet *out_set, GError **error)
{
    g_auto(GStrv) items = g_strsplit(list, ",", -1);
    ChCpuSet set = {{0}};
    unsigned n = 0;

    if (items[0] == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "an empty set of CPUs");
    for (char **item = items; *item != NULL; item++) {
        unsigned first, last;

        if (!take_range(*item, &first, &last) || first > last)
            return ch_fail(error, CH_ERROR_INVALID, "'%s' is no set of CPUs", list);
        for (unsigned cpu = first; cpu <= last; cpu++, n++) {
            if (n >= MAX_LIST_CPUS)
                return ch_fail(error,
                               CH_ERROR_LIMIT,
                               "rejecting expanding CPU array for safety reasons, limit is 100");
            put(&set, cpu, true);
        }
    }
    *out_set = set;
    return true;
}
