/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cni: what is said to CNI plugins, and what they answer.
 *
 * A plugin is a program of somebody else: its answer has limits, and of its failure one sentence is
 * kept. Pure. Thread: any. Spec: CNI specification 1.0.
 */

#pragma once

#include "lib/json/json.h"
#include "lib/linux/ip.h"

#define CH_CNI_MAX_RESULT_BYTES (16u << 10)
#define CH_CNI_MAX_ADDRESSES    16

/* The one network that pods of this machine are on; owned. */
typedef struct {
    char *bridge;    /* the link on this machine, and the network's name */
    char **subnets;  /* "10.213.0.0/20"; one, or one of each family */
    char *lease_dir; /* host-local's */
    guint mtu;       /* 0: the kernel's choice */
} ChCniNetwork;

/* A port of this machine that leads to one of the pod. */
typedef struct {
    uint16_t host, guest;
    const char *protocol; /* "tcp" or "udp"; static */
} ChHostPort;

/* What a pod was given. */
typedef struct {
    char *text;                   /* owned: the result, compact, for the plugins that follow */
    char ips[2][CH_IP_TEXT_SIZE]; /* at most one of each family, IPv4 first */
    guint n_ips;
} ChCniResult;

void ch_cni_result_clear(ChCniResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChCniResult, ch_cni_result_clear)

/* Configurations, each (transfer full). @previous: (nullable): a result's text */
char *ch_cni_loopback_config(void);
char *ch_cni_bridge_config(const ChCniNetwork *network, const char *previous);
char *ch_cni_portmap_config(const ChCniNetwork *network,
                            const ChHostPort *ports,
                            gsize n_ports,
                            const char *previous);

/**
 * ch_cni_result_parse: what a plugin printed after ADD.
 *
 * Returns: false with CH_ERROR_INVALID or CH_ERROR_LIMIT: it is no result, or has no address
 */
bool ch_cni_result_parse(const char *text, ChCniResult *out_result, GError **error);

/**
 * ch_cni_failure_text: one sentence of what a plugin said when it failed.
 * @out, @err: what it printed
 *
 * Returns: (transfer full): its own message where it gave one, else its last line
 */
char *ch_cni_failure_text(const char *plugin, int status, const char *out, const char *err);
