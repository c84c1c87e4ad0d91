/* SPDX-License-Identifier: Apache-2.0 */

/*
 * json-scan: finds the end of a JSON value in a stream, without parsing it.
 *
 * It only counts brackets outside of strings; whether the value is JSON is for the parser to say,
 * once it is whole. Pure. Thread: the owner's.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    guint depth;
    bool in_string;
    bool is_escaped; /* the byte before was a backslash within a string */
} ChJsonScan;

/* Takes the value's next byte. Returns: true when the scan is outside of every bracket and string
 * after it: for an object or array that this was its last byte. */
static inline bool
ch_json_scan_byte(ChJsonScan *scan, char byte)
{
    if (scan->in_string) {
        if (scan->is_escaped)
            scan->is_escaped = false;
        else if (byte == '\\')
            scan->is_escaped = true;
        else if (byte == '"')
            scan->in_string = false;
    } else if (byte == '"') {
        scan->in_string = true;
    } else if (byte == '{' || byte == '[') {
        scan->depth++;
    } else if ((byte == '}' || byte == ']') && scan->depth > 0) {
        scan->depth--;
    }
    return scan->depth == 0 && !scan->in_string;
}

static inline bool
ch_json_scan_is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}
