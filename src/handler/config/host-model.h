/* SPDX-License-Identifier: Apache-2.0 */

/*
 * host-model: the CPU model that a guest with `host-model` gets on this node, from libvirt's domain
 * capabilities
 * (`virsh_domcapabilities.xml`, which the node labeller's init container wrote). Spec 02 §8.4, 07.
 *
 * Pure. Thread: any.
 */

#pragma once

#include <glib.h>

/**
 * ch_host_model_parse:
 * @xml: @length bytes
 *
 * Returns: (transfer full): the model's name, "" when the document names none; NULL with
 * CH_ERROR_INVALID or CH_ERROR_LIMIT
 */
char *ch_host_model_parse(const char *xml, gsize length, GError **error);
