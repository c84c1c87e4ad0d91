/* SPDX-License-Identifier: Apache-2.0 */

/*
 * resource: which kinds the server knows, as one table of plain facts.
 *
 * A kind is added by adding a row to resource.c; no other file names one. Pure, static storage.
 * Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#include "lib/json/json.h"

/* A column of `kubectl get`. */
typedef struct {
    const char *name;
    const char *type; /* "string", "integer", "date" */
    int priority;     /* 0: always shown; 1: with -o wide */
    const char
        *path; /* of the cell in the object, see ch_resource_lookup(); NULL: `cell` makes it */
    char *(*cell)(const ChJson *object, int64_t now_us); /* (transfer full) */
} ChColumn;

/* How a strategic merge treats a list: by the member that identifies an item, or ("") as a set. */
typedef struct {
    const char *path; /* dotted, list items without a step of their own: "spec.containers.env" */
    const char *key;
} ChMergeKey;

/* What is wrong with one field of an object; all members owned. */
typedef struct {
    const char *reason; /* "FieldValueRequired", ...; static */
    char *field;
    char *message;
} ChCause;

/* Appends a ChCause for everything that is wrong with @object. */
typedef void (*ChResourceValidate)(const ChJson *object, GPtrArray *causes);

/* (transfer full) (element-type utf8): paths of fields that are stored, but that nobody knows. */
typedef GPtrArray *(*ChResourceUnknown)(const ChJson *object);

/* Brings what was sent into the form that is stored. */
typedef void (*ChResourceNormalize)(ChJson *object);

typedef struct {
    const char *group; /* "" for the core group */
    const char *version;
    const char *plural;
    const char *singular;
    const char *kind;
    const char *const *short_names; /* (nullable) NULL-terminated */
    bool is_in_all;                 /* `kubectl get all` shows it */
    bool is_namespaced;
    bool has_status;  /* /status exists, and the main URL leaves status alone */
    bool is_custom;   /* defined by a CRD on a cluster: generation is kept, an update needs a
                         resourceVersion, no strategic merge */
    bool is_graceful; /* a DELETE waits for the kubelet (pods) */
    const char
        *initial_phase; /* (nullable): status.phase of a new object, whatever its maker says */
    int64_t ttl_us;     /* objects vanish this long after their last write; 0: never */
    const ChColumn *columns;
    gsize n_columns;
    const char *const *fields;     /* (nullable) selectable beside metadata.name and .namespace */
    const ChMergeKey *merge_keys;  /* (nullable) ends with a NULL path */
    ChResourceNormalize normalize; /* (nullable) before `validate` */
    ChResourceValidate validate;   /* (nullable) */
    ChResourceUnknown unknown;     /* (nullable) */
} ChResource;

/* All of them; @out_n rows. Rows of one group version are neighbours. */
const ChResource *ch_resource_table(gsize *out_n);

/* (nullable): @group "" for core. */
const ChResource *ch_resource_find(const char *group, const char *version, const char *plural);

/* (transfer full): "v1" or "kubevirt.io/v1" */
char *ch_resource_api_version(const ChResource *resource);
/* (transfer full): "nodes" or "virtualmachineinstances.kubevirt.io", as messages name it */
char *ch_resource_qualified(const ChResource *resource);

/**
 * ch_resource_lookup:
 * @path: steps by dots; a list step is a number or `type=VALUE`, which picks the item whose member
 * has that value: "status.conditions.type=Ready.status"
 *
 * Returns: (transfer none) (nullable): the value there
 */
const ChJson *ch_resource_lookup(const ChJson *object, const char *path);

void ch_cause_free(ChCause *cause);
/* Appends to @causes; @field is copied. A few dozen causes say enough: what comes later is left
 * out. */
void ch_cause_add(GPtrArray *causes, const char *reason, const char *field, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
