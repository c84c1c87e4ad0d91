/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cells: the cells of `kubectl get` that are more than a member of the object.
 *
 * Each returns (transfer full) text; an integer column's text is a number. Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

/* (transfer full): "5m", "3d4h": an age as kubectl shows it; "<unknown>" when @timestamp is none */
char *ch_cell_age(const char *timestamp, int64_t now_us);

char *ch_cell_node_status(const ChJson *object, int64_t now_us);
char *ch_cell_node_roles(const ChJson *object, int64_t now_us);
char *ch_cell_pod_ready(const ChJson *object, int64_t now_us);
char *ch_cell_pod_status(const ChJson *object, int64_t now_us);
char *ch_cell_pod_restarts(const ChJson *object, int64_t now_us);
char *ch_cell_event_last_seen(const ChJson *object, int64_t now_us);
char *ch_cell_event_first_seen(const ChJson *object, int64_t now_us);
char *ch_cell_event_object(const ChJson *object, int64_t now_us);
char *ch_cell_event_source(const ChJson *object, int64_t now_us);
char *ch_cell_event_count(const ChJson *object, int64_t now_us);
char *ch_cell_data_count(const ChJson *object, int64_t now_us);
char *ch_cell_secrets_count(const ChJson *object, int64_t now_us);
char *ch_cell_access_modes(const ChJson *object, int64_t now_us);
