/* SPDX-License-Identifier: Apache-2.0 */

/*
 * names: what Kubernetes accepts as a name, a label's key, a label's value.
 *
 * Pure. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

/* RFC 1123 subdomain: lower-case letters, digits, '-', '.'; at most 253 bytes */
bool ch_name_is_dns_subdomain(const char *text);

/* "[prefix/]name": the prefix a subdomain, the name at most 63 of letters, digits, "-_." */
bool ch_label_key_is_valid(const char *text);

/* Empty, or as the name of a label's key. A node's name must be one (spec 01 §1.1). */
bool ch_label_value_is_valid(const char *text);
