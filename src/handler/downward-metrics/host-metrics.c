/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/host-metrics.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/small-file.h"
#include "lib/base/time.h"

#define MAX_FILE_BYTES (4u << 20) /* /proc/stat has a number for each interrupt */
#define TICKS_A_SECOND 100        /* what the kernel counts in for user space, on every machine */
#define MAX_PACKAGES   4096

/* Returns: (transfer full): NULL when it cannot be read */
static char *
read_file(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) error = NULL;
    char *text = ch_small_file_read(path, MAX_FILE_BYTES, NULL, &error);

    if (text == NULL)
        ch_log_verbose(3, NULL, "no metrics from %s: %s", path, error->message);
    return text;
}

/* --- processors */

/* Returns: false when the processor does not tell */
static bool
read_package(const char *cpus_dir, const char *cpu, int64_t *out_package)
{
    g_autofree char *name = g_build_filename(cpu, "topology", "physical_package_id", NULL);
    g_autofree char *text = read_file(cpus_dir, name);

    return text != NULL && g_ascii_string_to_signed(
                               g_strchomp(text), 10, G_MININT32, G_MAXINT32, out_package, NULL);
}

static bool
is_cpu(const char *name)
{
    return g_str_has_prefix(name, "cpu") && name[3] != '\0' &&
           strspn(name + 3, "0123456789") == strlen(name + 3);
}

/* Returns: -1 when one of them does not tell its package */
static int64_t
count_packages(const char *sys_dir)
{
    g_autofree char *cpus_dir = g_build_filename(sys_dir, "devices/system/cpu", NULL);
    g_autoptr(GDir) dir = g_dir_open(cpus_dir, 0, NULL);
    g_autoptr(GHashTable) packages =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    const char *name;

    if (dir == NULL)
        return -1;
    while ((name = g_dir_read_name(dir)) != NULL) {
        int64_t package;

        if (!is_cpu(name))
            continue;
        if (!read_package(cpus_dir, name, &package))
            return -1;
        if (g_hash_table_size(packages) < MAX_PACKAGES)
            g_hash_table_add(packages, g_memdup2(&package, sizeof(package)));
    }
    return g_hash_table_size(packages);
}

static void
add_packages(ChMetricList *list, const char *sys_dir)
{
    const int64_t n = count_packages(sys_dir);

    if (n >= 0)
        ch_metric_list_add_int(list, CH_METRIC_HOST, "NumberOfPhysicalCPUs", NULL, n);
}

/* --- lines of numbers */

/* The number at *@text, behind blanks, which moves on behind it. */
static bool
take_number(const char **text, uint64_t *out_value)
{
    char *end;

    *text += strspn(*text, " \t");
    if (!g_ascii_isdigit(**text))
        return false;
    *out_value = g_ascii_strtoull(*text, &end, 10);
    *text = end;
    return true;
}

/* user, nice and system of all processors together. */
static bool
parse_cpu_time(const char *text, double *out_seconds)
{
    const char *line = g_str_has_prefix(text, "cpu ") ? text : strstr(text, "\ncpu ");
    uint64_t user, nice_, system;

    if (line == NULL)
        return false;
    line = strchr(line, ' ');
    if (!take_number(&line, &user) || !take_number(&line, &nice_) || !take_number(&line, &system))
        return false;
    *out_seconds = ((double)user + (double)nice_ + (double)system) / TICKS_A_SECOND;
    return true;
}

static void
add_cpu_time(ChMetricList *list, const char *proc_dir)
{
    g_autofree char *text = read_file(proc_dir, "stat");
    double seconds;

    if (text != NULL && parse_cpu_time(text, &seconds))
        ch_metric_list_add_real(list, CH_METRIC_HOST, "TotalCPUTime", "s", seconds);
}

typedef struct {
    const char *name;
    uint64_t value; /* 0: there is no such line */
} Line;

/* Reads lines "NAME NUMBER ..." or "NAME: NUMBER ...". @lines: those that are wanted. Returns:
 * false when one of all is not like that */
static bool
parse_lines(const char *text, Line *lines, gsize n_lines)
{
    while (*text != '\0') {
        const gsize length = strcspn(text, ": \n");
        const char *rest = text + length + strspn(text + length, ":");
        uint64_t value;

        if (length == 0 || !take_number(&rest, &value))
            return false;
        for (gsize i = 0; i < n_lines; i++)
            if (strlen(lines[i].name) == length && memcmp(lines[i].name, text, length) == 0)
                lines[i].value = value;
        rest += strcspn(rest, "\n");
        text = *rest == '\n' ? rest + 1 : rest;
    }
    return true;
}

/* --- memory */

enum { TOTAL, FREE, BUFFERS, CACHED, SWAP_CACHED, SWAP_TOTAL, SWAP_FREE };

/* What is read is not of one moment: a difference is never below 0. */
static uint64_t
less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static void
add_memory(ChMetricList *list, const char *proc_dir)
{
    g_autofree char *text = read_file(proc_dir, "meminfo");
    Line m[] = {[TOTAL] = {"MemTotal", 0},
                [FREE] = {"MemFree", 0},
                [BUFFERS] = {"Buffers", 0},
                [CACHED] = {"Cached", 0},
                [SWAP_CACHED] = {"SwapCached", 0},
                [SWAP_TOTAL] = {"SwapTotal", 0},
                [SWAP_FREE] = {"SwapFree", 0}};
    uint64_t idle;

    if (text == NULL || !parse_lines(text, m, G_N_ELEMENTS(m)))
        return;
    idle = m[FREE].value + m[BUFFERS].value + m[CACHED].value;
    ch_metric_list_add_uint(list, CH_METRIC_HOST, "FreePhysicalMemory", "KiB", m[FREE].value);
    ch_metric_list_add_uint(
        list, CH_METRIC_HOST, "FreeVirtualMemory", "KiB", m[FREE].value + m[SWAP_FREE].value);
    ch_metric_list_add_uint(
        list, CH_METRIC_HOST, "MemoryAllocatedToVirtualServers", "KiB", less(m[TOTAL].value, idle));
    ch_metric_list_add_uint(
        list,
        CH_METRIC_HOST,
        "UsedVirtualMemory",
        "KiB",
        less(m[TOTAL].value + m[SWAP_TOTAL].value, idle + m[SWAP_CACHED].value));
}

/* --- paging */

static uint64_t
pages_to_kib(uint64_t pages)
{
    return pages * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
}

static void
add_paging(ChMetricList *list, const char *proc_dir)
{
    g_autofree char *text = read_file(proc_dir, "vmstat");
    Line pages[] = {{"pswpin", 0}, {"pswpout", 0}};

    if (text == NULL || !parse_lines(text, pages, G_N_ELEMENTS(pages)))
        return;
    ch_metric_list_add_uint(
        list, CH_METRIC_HOST, "PagedInMemory", "KiB", pages_to_kib(pages[0].value));
    ch_metric_list_add_uint(
        list, CH_METRIC_HOST, "PagedOutMemory", "KiB", pages_to_kib(pages[1].value));
}

void
ch_host_metrics_add(ChMetricList *list, const char *proc_dir, const char *sys_dir, int64_t wall_us)
{
    add_packages(list, sys_dir);
    add_cpu_time(list, proc_dir);
    add_memory(list, proc_dir);
    add_paging(list, proc_dir);
    ch_metric_list_add_int(list, CH_METRIC_HOST, "Time", "s", wall_us / CH_SECOND_US);
}
