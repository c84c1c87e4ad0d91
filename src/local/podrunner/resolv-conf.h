/* SPDX-License-Identifier: Apache-2.0 */

/*
 * resolv-conf: what /etc/resolv.conf of a pod says.
 *
 * This machine's, without the name servers that only this machine reaches: a resolver on the
 * loopback interface is none of the pod's. Pure, but for the loading. Thread: any.
 */

#pragma once

#include <glib.h>

#define CH_RESOLV_CONF_MAX_BYTES (64u << 10)

/**
 * ch_resolv_conf_for_pod:
 * @texts: NULL-terminated: the candidates, best first
 *
 * Returns: (transfer full): the first that has a name server left, without those on loopback; else
 * the first without any
 */
char *ch_resolv_conf_for_pod(const char *const *texts);

/* (transfer full): out of this machine's files, also the one that systemd-resolved keeps for
 * others. Blocks: reads them. */
char *ch_resolv_conf_load(void);
