/* SPDX-License-Identifier: Apache-2.0 */

/*
 * schema: what known fields of an object must look like, as rows of a table.
 *
 * Fields without a row are nobody's business: they pass. Pure. Thread: any.
 */

#pragma once

#include "local/apiserver/resource.h"

typedef enum {
    CH_FIELD_INVALID,
    CH_FIELD_OBJECT,
    CH_FIELD_ARRAY,
    CH_FIELD_STRING,
    CH_FIELD_INTEGER,
    CH_FIELD_COUNT, /* 0 to UINT32_MAX */
    CH_FIELD_BOOLEAN,
    CH_FIELD_QUANTITY,    /* "128Mi", or a number; 0 or more */
    CH_FIELD_SIZE,        /* the same, more than 0 */
    CH_FIELD_TIME,        /* RFC 3339 */
    CH_FIELD_LABEL,       /* a name: RFC 1123 label */
    CH_FIELD_SUBDOMAIN,   /* RFC 1123 subdomain */
    CH_FIELD_LABEL_VALUE, /* of metadata.labels */
    CH_FIELD_INT_OR_STRING,
    CH_FIELD_PORT, /* 1 to 65535 */
    CH_FIELD_MAC,  /* of one Ethernet device; "" is none */
    CH_FIELD_N,
} ChFieldType;

typedef enum {
    CH_FIELD_REQUIRED = 1u << 0,       /* where the parent exists */
    CH_FIELD_UNIQUE = 1u << 1,         /* among the items of the list that it is in; a string */
    CH_FIELD_ONE_OF = 1u << 2,         /* an object: has exactly one member of `choices` */
    CH_FIELD_QUALIFIED_KEYS = 1u << 3, /* an object: member names are those of labels */
    CH_FIELD_AT_MOST_ONE = 1u << 4,    /* as ONE_OF, or none */
} ChFieldFlags;

typedef struct {
    const char *path; /* "spec.volumes[].name", "metadata.labels{}" (every member's value) */
    ChFieldType type;
    guint flags;
    const char *const *choices; /* (nullable): the values of a string, or see *ONE* */
} ChFieldRule;

/* Of every list that has a row: KubeVirt's webhook allows 256 disks, volumes and the like. */
#define CH_FIELD_MAX_ITEMS 1024

/* Appends a ChCause for every rule that @object breaks. null counts as absent. */
void
ch_schema_check(const ChFieldRule *rules, gsize n_rules, const ChJson *object, GPtrArray *causes);

#define CH_LABEL_HINT                                                                              \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define CH_SUBDOMAIN_HINT                                                                          \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is "                                                                           \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

/* RFC 1123 label: at most 63 lower-case letters, digits, '-'; none of these at the ends */
bool ch_name_is_label(const char *text);
