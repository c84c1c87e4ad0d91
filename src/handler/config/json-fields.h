/* SPDX-License-Identifier: Apache-2.0 */

/*
 * json-fields: members of a JSON object read into a C struct, by a table. As v1.9.0 lays a KubeVirt
 * object over its defaults: spec 08 §6.2.
 *
 * Pure. Thread: any.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/quantity.h"
#include "lib/json/json.h"

/* An optional boolean. */
typedef enum {
    CH_TRISTATE_UNSET = 0,
    CH_TRISTATE_NO,
    CH_TRISTATE_YES,
} ChTristate;

/* What the member is, and so what the JSON must be. */
typedef enum {
    CH_FIELD_INVALID = 0,
    CH_FIELD_BOOL,     /* bool */
    CH_FIELD_TRISTATE, /* ChTristate */
    CH_FIELD_INT64,    /* int64_t */
    CH_FIELD_UINT32,   /* uint32_t */
    CH_FIELD_UINT64,   /* uint64_t, up to G_MAXINT64 */
    CH_FIELD_STRING,   /* char *, owned; NULL only without a preset */
    CH_FIELD_STRINGS,  /* char **, owned; the preset is parted by commas */
    CH_FIELD_QUANTITY, /* ChQuantity; JSON may have it as a number */
    CH_FIELD_PRESENCE, /* bool: there is an object, be it empty */
    CH_FIELD_OBJECT,   /* char *, owned: an object's JSON text; NULL: none */
} ChFieldKind;

typedef struct {
    const char *path; /* "network.defaultNetworkInterface"; no key has a dot in it */
    ChFieldKind kind;
    gsize offset;
    /* Zero, false and "" mean themselves: the original has a pointer there. Otherwise they mean the
     * preset, as they vanish when it writes its configuration down. */
    bool keeps_zero;
    int64_t preset;
    const char *preset_text;
} ChField;

/* Every member gets its preset. What the record held is not freed. */
void ch_fields_preset(const ChField *fields, gsize n_fields, gpointer record);

/**
 * ch_fields_read:
 * @object: (nullable)
 * @record: preset; members that @object lacks, or has as null, are left alone
 *
 * Unknown members are ignored. After a failure the record is valid, with some members read.
 *
 * Returns: false with CH_ERROR_INVALID for a value of another type or out of range
 */
bool ch_fields_read(
    const ChField *fields, gsize n_fields, const ChJson *object, gpointer record, GError **error);

/* Frees what the members own. */
void ch_fields_clear(const ChField *fields, gsize n_fields, gpointer record);

/* (transfer full): the strings of a list, "" too. NULL with CH_ERROR_INVALID: it is no list, or has
 * other items. @list: (nullable): none gives an empty list */
char **ch_json_strings(const ChJson *list, const char *name, GError **error);
