/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/time.h"

#include "lib/base/errors.h"

#include <string.h>
#include <time.h>

static int64_t
read_clock(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now); /* cannot fail: both clocks always exist */
    return (int64_t)now.tv_sec * CH_SECOND_US + now.tv_nsec / 1000;
}

int64_t
ch_time_now_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t
ch_time_wall_us(void)
{
    return read_clock(CLOCK_REALTIME);
}

/* Splits so that 0 <= micro < 10^6 also before 1970. */
static int64_t
split(int64_t wall_us, struct tm *out_tm)
{
    int64_t micro = wall_us % CH_SECOND_US;
    time_t seconds = wall_us / CH_SECOND_US;

    if (micro < 0) {
        micro += CH_SECOND_US;
        seconds--;
    }
    gmtime_r(&seconds, out_tm);
    return micro;
}

char *
ch_time_format(int64_t wall_us)
{
    struct tm tm;

    split(wall_us, &tm);
    return g_strdup_printf("%04d-%02d-%02dT%02d:%02d:%02dZ",
                           tm.tm_year + 1900,
                           tm.tm_mon + 1,
                           tm.tm_mday,
                           tm.tm_hour,
                           tm.tm_min,
                           tm.tm_sec);
}

char *
ch_time_format_micro(int64_t wall_us)
{
    struct tm tm;
    const int64_t micro = split(wall_us, &tm);

    return g_strdup_printf("%04d-%02d-%02dT%02d:%02d:%02d.%06" G_GINT64_FORMAT "Z",
                           tm.tm_year + 1900,
                           tm.tm_mon + 1,
                           tm.tm_mday,
                           tm.tm_hour,
                           tm.tm_min,
                           tm.tm_sec,
                           micro);
}

/* Reads exactly @n_digits and the separator after them (0: none). */
static bool
take_number(const char **text, int n_digits, char separator, int *out_value)
{
    int value = 0;

    for (int i = 0; i < n_digits; i++) {
        if (!g_ascii_isdigit((*text)[i]))
            return false;
        value = value * 10 + g_ascii_digit_value((*text)[i]);
    }
    *text += n_digits;
    if (separator != 0) {
        if (**text != separator)
            return false;
        ++*text;
    }
    *out_value = value;
    return true;
}

static bool
take_fraction(const char **text, int64_t *out_micro)
{
    int64_t micro = 0;
    int64_t unit = CH_SECOND_US;

    if (**text == '.') {
        ++*text;
        if (!g_ascii_isdigit(**text))
            return false;
        for (; g_ascii_isdigit(**text); ++*text) {
            unit /= 10;
            micro += g_ascii_digit_value(**text) * unit;
        }
    }
    *out_micro = micro;
    return true;
}

static bool
take_offset(const char **text, int64_t *out_seconds)
{
    int hours, minutes, sign;

    if (**text == 'Z') {
        ++*text;
        *out_seconds = 0;
        return true;
    }
    if (**text != '+' && **text != '-')
        return false;
    sign = *(*text)++ == '-' ? -1 : 1;
    if (!take_number(text, 2, ':', &hours) || !take_number(text, 2, 0, &minutes))
        return false;
    if (hours > 23 || minutes > 59)
        return false;
    *out_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool
is_in_range(const struct tm *tm)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const int year = tm->tm_year + 1900;
    const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    if (tm->tm_mon < 0 || tm->tm_mon > 11)
        return false;
    return tm->tm_mday >= 1 &&
           tm->tm_mday <= days[tm->tm_mon] + (tm->tm_mon == 1 && is_leap ? 1 : 0) &&
           tm->tm_hour <= 23 && tm->tm_min <= 59 && tm->tm_sec <= 59;
}

static bool
parse_time(const char *text, int64_t *out_wall_us)
{
    struct tm tm = {0};
    int64_t micro, offset;

    if (!take_number(&text, 4, '-', &tm.tm_year) || !take_number(&text, 2, '-', &tm.tm_mon) ||
        !take_number(&text, 2, 'T', &tm.tm_mday) || !take_number(&text, 2, ':', &tm.tm_hour) ||
        !take_number(&text, 2, ':', &tm.tm_min) || !take_number(&text, 2, 0, &tm.tm_sec))
        return false;
    if (!take_fraction(&text, &micro) || !take_offset(&text, &offset) || *text != '\0')
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    if (!is_in_range(&tm))
        return false;
    *out_wall_us = ((int64_t)timegm(&tm) - offset) * CH_SECOND_US + micro;
    return true;
}

bool
ch_time_parse(const char *text, int64_t *out_wall_us, GError **error)
{
    if (!parse_time(text, out_wall_us))
        return ch_fail(error, CH_ERROR_INVALID, "'%.64s' is no RFC 3339 time", text);
    return true;
}

/* clang-format off */
static const struct Unit {
    const char *name;
    int64_t ns;
} units[] = {
    /* "ms" before "m": the first that fits is taken */
    {"ns", 1},
    {"us", 1000},
    {"\u00b5s", 1000}, /* the micro sign */
    {"\u03bcs", 1000}, /* the Greek letter */
    {"ms", 1000 * 1000},
    {"s", 1000 * 1000 * 1000},
    {"m", G_GINT64_CONSTANT(60) * 1000 * 1000 * 1000},
    {"h", G_GINT64_CONSTANT(3600) * 1000 * 1000 * 1000},
};
/* clang-format on */

static const struct Unit *
take_unit(const char **text)
{
    for (gsize i = 0; i < G_N_ELEMENTS(units); i++) {
        if (g_str_has_prefix(*text, units[i].name)) {
            *text += strlen(units[i].name);
            return &units[i];
        }
    }
    return NULL;
}

/* One "<number><unit>", in nanoseconds; what is finer is cut. False: malformed, or beyond int64. */
static bool
take_component(const char **text, int64_t *out_ns)
{
    int64_t whole = 0;
    int64_t fraction = 0;
    int64_t scale = 1;
    gsize n_digits = 0;
    const struct Unit *unit;

    for (; g_ascii_isdigit(**text); ++*text, n_digits++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, g_ascii_digit_value(**text), &whole))
            return false;
    }
    if (**text == '.') {
        for (++*text; g_ascii_isdigit(**text); ++*text, n_digits++) {
            if (scale < G_GINT64_CONSTANT(1000000000000000)) {
                fraction = fraction * 10 + g_ascii_digit_value(**text);
                scale *= 10;
            }
        }
    }
    unit = n_digits > 0 ? take_unit(text) : NULL;
    if (unit == NULL || __builtin_mul_overflow(whole, unit->ns, &whole))
        return false;
    return !__builtin_add_overflow(whole, (int64_t)((__int128)fraction * unit->ns / scale), out_ns);
}

static bool
parse_duration(const char *text, int64_t *out_us)
{
    int64_t total_ns = 0;
    int64_t sign = 1;

    if (*text == '-' || *text == '+')
        sign = *text++ == '-' ? -1 : 1;
    if (g_str_equal(text, "0")) {
        *out_us = 0;
        return true;
    }
    do {
        int64_t ns;

        if (!take_component(&text, &ns) || __builtin_add_overflow(total_ns, ns, &total_ns))
            return false;
    } while (*text != '\0');
    *out_us = sign * (total_ns / 1000);
    return true;
}

bool
ch_duration_parse(const char *text, int64_t *out_us, GError **error)
{
    if (!parse_duration(text, out_us))
        return ch_fail(error, CH_ERROR_INVALID, "'%.64s' is no duration", text);
    return true;
}
