/* SPDX-License-Identifier: Apache-2.0 */

/*
 * json-text: a string as JSON text. Apart from lib/json, since the log needs it and links no JSON
 * library.
 *
 * Pure. Thread: any.
 */

#pragma once

#include <glib.h>

/**
 * ch_json_text_append:
 * @out: the quoted string is appended here
 * @text: any bytes, NULs included
 * @length: how many
 *
 * Escapes as Go's encoding/json does with SetEscapeHTML(false): `\"`, `\\`, `\b \f \n \r \t`, other
 * control characters, U+2028 and U+2029 as `\u`; each byte that is no UTF-8 becomes `\ufffd`. Hence
 * the output is always valid JSON in one line, whatever a stranger put into @text.
 */
void ch_json_text_append(GString *out, const char *text, gsize length);
