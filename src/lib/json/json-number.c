/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/json/json-internal.h"

#include <string.h>

static gsize
digits_span(const char *text, gsize length)
{
    gsize n = 0;

    while (n < length && g_ascii_isdigit(text[n]))
        n++;
    return n;
}

/* "0", or digits without leading zero; 0: neither */
static gsize
whole_span(const char *text, gsize length)
{
    if (length > 0 && text[0] == '0')
        return 1;
    return digits_span(text, length);
}

static gsize
fraction_span(const char *text, gsize length)
{
    gsize n;

    if (length == 0 || text[0] != '.')
        return 0;
    n = digits_span(text + 1, length - 1);
    return n > 0 ? 1 + n : 0;
}

static gsize
exponent_span(const char *text, gsize length)
{
    gsize sign, n;

    if (length == 0 || (text[0] != 'e' && text[0] != 'E'))
        return 0;
    sign = length > 1 && (text[1] == '+' || text[1] == '-') ? 1 : 0;
    n = digits_span(text + 1 + sign, length - 1 - sign);
    return n > 0 ? 1 + sign + n : 0;
}

gsize
ch_json_number_span(const char *text, gsize length)
{
    const gsize sign = length > 0 && text[0] == '-' ? 1 : 0;
    const gsize whole = whole_span(text + sign, length - sign);
    gsize n = sign + whole;

    if (whole == 0)
        return 0;
    n += fraction_span(text + n, length - n);
    return n + exponent_span(text + n, length - n);
}

/* value = 0.d0d1d2... * 10^point, without zeros at either end of the digits */
typedef struct {
    char digits[CH_JSON_MAX_NUMBER + 1];
    gsize n_digits;
    int64_t point;
    bool is_negative;
} Decimal;

static void
decimal_init(Decimal *decimal, const char *text)
{
    bool seen_point = false;

    *decimal = (Decimal){.is_negative = *text == '-'};
    for (text += *text == '-' ? 1 : 0; *text != '\0' && *text != 'e' && *text != 'E'; text++) {
        if (*text == '.') {
            seen_point = true;
            continue;
        }
        if (decimal->n_digits == 0 && *text == '0') {
            decimal->point -= seen_point ? 1 : 0;
            continue;
        }
        decimal->digits[decimal->n_digits++] = *text;
        decimal->point += seen_point ? 0 : 1;
    }
    while (decimal->n_digits > 0 && decimal->digits[decimal->n_digits - 1] == '0')
        decimal->n_digits--;
    if (*text != '\0') /* saturates: such exponents are all the same to us */
        decimal->point += CLAMP(g_ascii_strtoll(text + 1, NULL, 10), -G_MAXINT32, G_MAXINT32);
    if (decimal->n_digits == 0)
        *decimal = (Decimal){.n_digits = 0}; /* one zero, whatever its sign and exponent */
}

bool
ch_json_number_equal(const ChJson *a, const ChJson *b)
{
    const char *text_a = ch_json_text(a);
    const char *text_b = ch_json_text(b);
    Decimal x, y;

    if (g_str_equal(text_a, text_b))
        return true;
    decimal_init(&x, text_a);
    decimal_init(&y, text_b);
    return x.is_negative == y.is_negative && x.point == y.point && x.n_digits == y.n_digits &&
           memcmp(x.digits, y.digits, x.n_digits) == 0;
}
