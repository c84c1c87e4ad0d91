/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/proc-stat.h"

#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define IS_KERNEL_THREAD 0x00200000ul /* PF_KTHREAD: the same since there is the flag */
#define MAX_NUMBER       (INT64_C(1) << 30)

/* Takes a decimal number off the front of *at, after blanks. -1: there is none. */
static int64_t
take_number(const char **at)
{
    int64_t number = 0;
    const char *start;

    *at += strspn(*at, " \t");
    start = *at;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        number = number * 10 + (**at - '0');
        if (number > 4 * MAX_NUMBER)
            return -1;
    }
    return *at > start ? number : -1;
}

/* Behind the next blank; at the end when there is none. */
static const char *
skip_word(const char *at)
{
    at += strspn(at, " ");
    return at + strcspn(at, " ");
}

bool
ch_proc_stat_parse(const char *text, ChProcStat *out_stat)
{
    const char *open = strchr(text, '('), *name_end, *end = strrchr(text, ')');
    ChProcStat stat = {.parent = 0};
    int64_t parent, flags;

    if (open == NULL || end == NULL || end < open)
        return false;
    name_end = open + 1 + strcspn(open + 1, ")");
    (void)snprintf(stat.name, sizeof(stat.name), "%.*s", (int)(name_end - open - 1), open + 1);
    end = skip_word(end + 1); /* state */
    parent = take_number(&end);
    for (int i = 0; i < 4; i++) /* group, session, terminal, its group */
        end = skip_word(end);
    flags = take_number(&end);
    if (parent < 0 || parent > MAX_NUMBER || flags < 0)
        return false;
    stat.parent = (pid_t)parent;
    stat.is_kernel_thread = ((uint64_t)flags & IS_KERNEL_THREAD) != 0;
    *out_stat = stat;
    return true;
}

pid_t
ch_proc_inner_pid(const char *status, size_t level, size_t *out_n_levels)
{
    static const char key[] = "\nNSpid:";
    const char *at = strstr(status, key);
    pid_t found = -1;
    size_t n = 0;

    if (at == NULL)
        return -1;
    at += sizeof(key) - 1;
    for (;; n++) {
        const int64_t number = take_number(&at);

        if (number < 0 || number > MAX_NUMBER)
            break;
        if (n == level)
            found = (pid_t)number;
    }
    if (out_n_levels != NULL)
        *out_n_levels = n;
    return found;
}

int
ch_proc_vcpu_of(const char *comm, const char *hypervisor)
{
    const char *at;
    char rest[16];
    int64_t number;

    if (strncmp(comm, "CPU ", 4) != 0 || comm[4] < '0' || comm[4] > '9')
        return -1;
    at = comm + 4;
    number = take_number(&at);
    (void)snprintf(rest, sizeof(rest), "/%s\n", hypervisor);
    return number >= 0 && number < 65536 && g_str_equal(at, rest) ? (int)number : -1;
}
