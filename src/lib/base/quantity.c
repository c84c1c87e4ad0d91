/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/quantity.h"

#include "lib/base/errors.h"

#include <string.h>

#define NANO         G_GINT64_CONSTANT(1000000000)
#define MAX_EXPONENT 1000 /* beyond it every value is too large, or the smallest there is */

static const struct Suffix {
    const char *text;
    ChQuantityFormat format;
    int power; /* of ten, or of two */
} suffixes[] = {
    {"Ei", CH_QUANTITY_BINARY, 60},
    {"Pi", CH_QUANTITY_BINARY, 50},
    {"Ti", CH_QUANTITY_BINARY, 40},
    {"Gi", CH_QUANTITY_BINARY, 30},
    {"Mi", CH_QUANTITY_BINARY, 20},
    {"Ki", CH_QUANTITY_BINARY, 10},
    {"E", CH_QUANTITY_DECIMAL, 18},
    {"P", CH_QUANTITY_DECIMAL, 15},
    {"T", CH_QUANTITY_DECIMAL, 12},
    {"G", CH_QUANTITY_DECIMAL, 9},
    {"M", CH_QUANTITY_DECIMAL, 6},
    {"k", CH_QUANTITY_DECIMAL, 3},
    {"", CH_QUANTITY_DECIMAL, 0},
    {"m", CH_QUANTITY_DECIMAL, -3},
    {"u", CH_QUANTITY_DECIMAL, -6},
    {"n", CH_QUANTITY_DECIMAL, -9},
};

/* value = 0.d0d1d2... * 10^point * 2^shift */
typedef struct {
    char digits[CH_QUANTITY_MAX_TEXT]; /* values, not letters; no leading zero */
    int n_digits;
    int point;
    int shift;
    bool is_negative;
    ChQuantityFormat format;
} Parts;

static bool
take_digits(const char **text, Parts *parts)
{
    bool seen_point = false;
    bool seen_digit = false;

    for (;; ++*text) {
        if (**text == '.' && !seen_point) {
            seen_point = true;
            continue;
        }
        if (!g_ascii_isdigit(**text))
            return seen_digit;
        seen_digit = true;
        if (parts->n_digits > 0 || **text != '0') {
            parts->digits[parts->n_digits++] = (char)g_ascii_digit_value(**text);
            parts->point += seen_point ? 0 : 1;
        } else {
            parts->point -= seen_point ? 1 : 0;
        }
    }
}

/* "e3", "E-6" */
static bool
take_exponent(const char *text, Parts *parts)
{
    int exponent = 0;
    int sign = 1;

    text++;
    if (*text == '-' || *text == '+')
        sign = *text++ == '-' ? -1 : 1;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (!g_ascii_isdigit(*text))
            return false;
        exponent = MIN(exponent * 10 + g_ascii_digit_value(*text), MAX_EXPONENT);
    }
    parts->format = CH_QUANTITY_EXPONENT;
    parts->point += sign * exponent;
    return true;
}

static bool
take_suffix(const char *text, Parts *parts)
{
    for (gsize i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        if (!g_str_equal(text, suffixes[i].text))
            continue;
        parts->format = suffixes[i].format;
        if (parts->format == CH_QUANTITY_BINARY)
            parts->shift = suffixes[i].power;
        else
            parts->point += suffixes[i].power;
        return true;
    }
    return (*text == 'e' || *text == 'E') && take_exponent(text, parts);
}

static bool
split(const char *text, Parts *out_parts)
{
    Parts parts = {.n_digits = 0};

    if (*text == '-' || *text == '+')
        parts.is_negative = *text++ == '-';
    if (!take_digits(&text, &parts) || !take_suffix(text, &parts))
        return false;
    *out_parts = parts;
    return true;
}

static int
digit_at(const Parts *parts, int index)
{
    return index >= 0 && index < parts->n_digits ? parts->digits[index] : 0;
}

/* The digits before the point, times 2^shift. False: beyond 2^63-1. */
static bool
whole_units(const Parts *parts, int64_t *out_units)
{
    int64_t units = 0;

    for (int i = 0; parts->n_digits > 0 && i < parts->point; i++) {
        if (__builtin_mul_overflow(units, 10, &units) ||
            __builtin_add_overflow(units, digit_at(parts, i), &units))
            return false;
    }
    return !__builtin_mul_overflow(units, (int64_t)1 << parts->shift, out_units);
}

/*
 * The digits behind the point, times 2^shift * 10^9, rounded up. Horner's scheme from the last
 * digit on: floor((a + floor(b)) / 10) = floor((a + b) / 10) for a whole a, so cutting at every
 * step gives the exact floor; whether anything was cut decides the rounding. Fits: below 10 * 2^60
 * * 10^9.
 */
static __int128
fraction_nano(const Parts *parts)
{
    const __int128 scale = ((__int128)1 << parts->shift) * NANO;
    __int128 nano = 0;
    bool was_cut = false;

    for (int i = parts->n_digits - 1; i >= parts->point; i--) {
        nano += digit_at(parts, i) * scale;
        was_cut |= nano % 10 != 0;
        nano /= 10;
    }
    return nano + (was_cut ? 1 : 0);
}

bool
ch_quantity_parse(const char *text, ChQuantity *out_quantity, GError **error)
{
    const __int128 max = (__int128)G_MAXINT64 * NANO;
    __int128 nano = max + 1;
    int64_t units;
    Parts parts;

    if (strnlen(text, CH_QUANTITY_MAX_TEXT) == CH_QUANTITY_MAX_TEXT)
        return ch_fail(error, CH_ERROR_LIMIT, "quantity '%.32s...' is too long", text);
    if (!split(text, &parts))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is no quantity", text);
    if (whole_units(&parts, &units))
        nano = (__int128)units * NANO + fraction_nano(&parts);
    if (nano > max) {
        if (parts.format != CH_QUANTITY_BINARY)
            return ch_fail(error, CH_ERROR_LIMIT, "quantity '%s' is too large", text);
        nano = max;
    }
    /* Less than one in binary would print as a fraction. */
    if (parts.format == CH_QUANTITY_BINARY && nano > 0 && nano < NANO)
        parts.format = CH_QUANTITY_DECIMAL;
    out_quantity->nano = parts.is_negative ? -nano : nano;
    out_quantity->format = parts.format;
    return true;
}

int
ch_quantity_compare(const ChQuantity *a, const ChQuantity *b)
{
    return (a->nano > b->nano) - (a->nano < b->nano);
}

int64_t
ch_quantity_units(const ChQuantity *quantity)
{
    const __int128 units = quantity->nano / NANO;
    const __int128 rest = quantity->nano % NANO;

    return (int64_t)(units + (rest > 0) - (rest < 0));
}

static char *
print_binary(int64_t units)
{
    for (gsize i = 0; i < G_N_ELEMENTS(suffixes) && suffixes[i].format == CH_QUANTITY_BINARY; i++) {
        const int64_t factor = (int64_t)1 << suffixes[i].power;

        if (units % factor == 0)
            return g_strdup_printf("%" G_GINT64_FORMAT "%s", units / factor, suffixes[i].text);
    }
    return g_strdup_printf("%" G_GINT64_FORMAT, units);
}

static const char *
decimal_suffix(int power)
{
    for (gsize i = 0; i < G_N_ELEMENTS(suffixes); i++)
        if (suffixes[i].format == CH_QUANTITY_DECIMAL && suffixes[i].power == power)
            return suffixes[i].text;
    g_return_val_if_reached("");
}

static char *
print_decimal(__int128 nano, bool wants_exponent)
{
    g_autofree char *number = NULL;
    int64_t high, low;
    int power = -9;

    while (power < 18 && nano % 1000 == 0) {
        nano /= 1000;
        power += 3;
    }
    high = (int64_t)(nano / NANO); /* printf() knows no 128 bits, so in two halves */
    low = (int64_t)(nano % NANO);
    if (high != 0)
        number = g_strdup_printf("%" G_GINT64_FORMAT "%09" G_GINT64_FORMAT, high, ABS(low));
    else
        number = g_strdup_printf("%" G_GINT64_FORMAT, low);
    if (wants_exponent && power != 0)
        return g_strdup_printf("%se%d", number, power);
    return g_strconcat(number, decimal_suffix(power), NULL);
}

char *
ch_quantity_print(const ChQuantity *quantity)
{
    const int64_t units = (int64_t)(quantity->nano / NANO);

    if (quantity->nano == 0)
        return g_strdup("0");
    if (quantity->format == CH_QUANTITY_BINARY && quantity->nano % NANO == 0 &&
        (units >= 1024 || units <= -1024))
        return print_binary(units);
    return print_decimal(quantity->nano, quantity->format == CH_QUANTITY_EXPONENT);
}
