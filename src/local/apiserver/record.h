/* SPDX-License-Identifier: Apache-2.0 */

/*
 * record: every write request as one JSON line in a file, for tests that ask what a client did.
 *
 *   {"time":"...","method":"PUT","path":"/apis/...?x=y","contentType":"application/json",
 *    "userAgent":"...","code":200,"body":{...}}
 *
 * `body` is the document, or a string when it is none. Thread: the loop's.
 */

#pragma once

#include "local/apiserver/api.h"

typedef struct ChRecord ChRecord;

/* Appends to @path, which is made when it is not there. */
ChRecord *ch_record_open(const char *path, GError **error);
void ch_record_close(ChRecord *record); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChRecord, ch_record_close)

/* Reads are left out. A line is in the file when this returns; failure is logged. */
void ch_record_append(ChRecord *record,
                      const ChApiRequest *request,
                      const char *user_agent,
                      int code,
                      int64_t now_us);
