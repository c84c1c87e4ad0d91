/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/typed-params.h"

static const virTypedParameter *
find(const ChParams *params, const char *prefix, const char *field)
{
    g_autofree char *name = g_strconcat(prefix, field, NULL);

    return virTypedParamsGet(params->items, params->n_items, name);
}

bool
ch_params_get_unsigned(const ChParams *params,
                       const char *prefix,
                       const char *field,
                       guint64 *out_value)
{
    const virTypedParameter *param = find(params, prefix, field);
    long long value = 0;

    if (param == NULL)
        return false;
    switch (param->type) {
    case VIR_TYPED_PARAM_INT:
        value = param->value.i;
        break;
    case VIR_TYPED_PARAM_UINT:
        value = param->value.ui;
        break;
    case VIR_TYPED_PARAM_LLONG:
        value = param->value.l;
        break;
    case VIR_TYPED_PARAM_ULLONG:
        *out_value = param->value.ul;
        return true;
    default: /* libvirt's enum, not ours: doubles, booleans and texts are no counts */
        return false;
    }
    if (value < 0)
        return false;
    *out_value = (guint64)value;
    return true;
}

char *
ch_params_dup_string(const ChParams *params, const char *prefix, const char *field)
{
    const virTypedParameter *param = find(params, prefix, field);

    if (param == NULL || param->type != VIR_TYPED_PARAM_STRING)
        return NULL;
    return g_utf8_make_valid(param->value.s, -1);
}

guint
ch_params_count(const ChParams *params, const char *prefix, const char *field)
{
    guint64 count = 0;

    if (!ch_params_get_unsigned(params, prefix, field, &count))
        return 0;
    return (guint)MIN(count, CH_PARAMS_MAX_COUNT);
}
