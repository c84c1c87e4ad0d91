/* SPDX-License-Identifier: Apache-2.0 */

/*
 * api-internal: what api.c and the verbs (api-read.c, api-write.c) share.
 */

#pragma once

#include "local/apiserver/api.h"
#include "local/apiserver/meta.h"
#include "local/apiserver/route.h"

struct ChApi {
    ChStore *store;     /* owned */
    ChHistory *history; /* owned */
    bool keeps_given;
};

/* One request while it is worked on. */
typedef struct {
    ChApi *api;
    const ChApiRequest *request;
    ChRoute route;
    GHashTable *params;
    ChView view;
    bool is_dry; /* everything but the write */
    int64_t now_us;
    char *resource_key; /* owned: the resource as the store names it */
    ChApiAnswer *answer;
} ChCall;

/* A verb answers into call->answer, or is refused. */
typedef ChRefusal *(*ChVerb)(ChCall *call);

ChRefusal *ch_verb_get(ChCall *call);
ChRefusal *ch_verb_list(ChCall *call); /* and watch */
ChRefusal *ch_verb_create(ChCall *call);
ChRefusal *ch_verb_update(ChCall *call);
ChRefusal *ch_verb_patch(ChCall *call);
ChRefusal *ch_verb_delete(ChCall *call);
ChRefusal *ch_verb_delete_collection(ChCall *call);

/* The key of the URL's object. Borrows from @call. */
ChStoreKey ch_call_key(const ChCall *call);
ChPart ch_call_part(const ChCall *call);

void ch_call_answer_json(ChCall *call, int code, const ChJson *json);
/* In the form that the client asked for. */
void ch_call_answer_object(ChCall *call, int code, ChJson *object);

/* @out_object: (out) (transfer full). Returns: (transfer full) (nullable): 404, 500 */
ChRefusal *
ch_api_load(ChApi *api, const ChResource *resource, const ChStoreKey *key, ChJson **out_object);

/* Removes one object for good, without asking anybody (ch_api_expire()). */
ChRefusal *
ch_api_remove(ChApi *api, const ChResource *resource, const ChStoreKey *key, const ChJson *object);
/* Writes a new object. @object gets its revision. */
ChRefusal *ch_api_add(
    ChApi *api, const ChResource *resource, const ChStoreKey *key, ChJson *object, int64_t now_us);
