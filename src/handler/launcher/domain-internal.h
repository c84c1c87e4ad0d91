/* SPDX-License-Identifier: Apache-2.0 */

/*
 * domain-internal: reading members of a Domain document; what domain*.c share.
 *
 * Null and absent are zero, another type is refused: each function that can fail returns false with
 * CH_ERROR_INVALID. Thread: any.
 */

#pragma once

#include <stddef.h>

#include "handler/launcher/domain.h"

typedef enum {
    FIELD_STRING, /* const char *, "" when absent */
    FIELD_BOOL,   /* bool */
    FIELD_INT,    /* int64_t */
    FIELD_UINT,   /* uint64_t */
    FIELD_TIME,   /* ChDomainTime, RFC 3339 */
    FIELD_EXISTS, /* bool: a member that is not null, an object */
} ChDomainFieldType;

typedef struct {
    const char *key;
    ChDomainFieldType type;
    gsize offset; /* in the struct that the table describes */
} ChDomainField;

#define FIELD(key, type, record, member)                                                           \
    {                                                                                              \
        key, FIELD_##type, offsetof(record, member)                                                \
    }

/* Returns: always false */
bool ch_domain_wrong_type(const char *key, const char *wanted, GError **error);

/* Borrowed from the domain. A text with a NUL in it is none in C. It stands for "something else":
 * it matches nothing, and is not empty. Guests choose some of these texts, so that refusing the
 * document is no way out. */
const char *ch_domain_keep_text(ChDomain *domain, const ChJson *value);

bool
ch_domain_read_time(const ChJson *value, const char *key, ChDomainTime *out_time, GError **error);

/* Fills @record, which is zeroed, from the members of @object (NULL: all absent). */
bool ch_domain_read_fields(ChDomain *domain,
                           const ChJson *object,
                           const ChDomainField *fields,
                           gsize n_fields,
                           void *record,
                           GError **error);

/* Of `domain`. */
#define READ_FIELDS(object, table, record, error)                                                  \
    ch_domain_read_fields(domain, object, table, G_N_ELEMENTS(table), record, error)

/* @out_child is NULL when absent or null. */
bool ch_domain_read_object(const ChJson *parent,
                           const char *key,
                           const ChJson **out_child,
                           GError **error);

/* @item: NULL: null */
typedef bool (*ChDomainReadItem)(ChDomain *domain, const ChJson *item, GError **error);

/* Of a list of objects; it is read to a limit. */
bool ch_domain_read_list(ChDomain *domain,
                         const ChJson *parent,
                         const char *key,
                         ChDomainReadItem read_item,
                         GError **error);

/* domain-spec.c, domain-status.c: those members of the document. */
bool ch_domain_read_spec(ChDomain *domain, const ChJson *document, GError **error);
bool ch_domain_read_status(ChDomain *domain, const ChJson *document, GError **error);
