/* SPDX-License-Identifier: Apache-2.0 */

/*
 * netlink: a conversation on a netlink socket that somebody else opened and somebody else sends on.
 *
 * Theory of operation: the kernel asks CAP_NET_ADMIN of who opened the socket and of who sends each
 * message, not of who reads the answers. So sending is a function given by the caller, and this
 * module numbers the messages, reads and judges. What the kernel does with a message it does before
 * the send returns: the answers are there at once. Only the kernel is listened to: a message from
 * another port is dropped. Replies come from a namespace that a workload had a hand in (names,
 * counts), so every attribute's length is checked against a policy and every list has an end.
 * Uses the heap and GError: not for the hands. Thread: one at a time. Spec: 04 §9; style 3.10.
 */

#pragma once

#include <glib.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>

/* How the text of an error begins that is the kernel's answer; ": " and the errno follow. */
#define CH_NETLINK_REFUSAL "the kernel refuses"

#define CH_NETLINK_MESSAGE_SIZE 512 /* of one request of ours */

/* Room for one request, with the alignment that netlink wants. */
typedef union {
    struct nlmsghdr header;
    char bytes[CH_NETLINK_MESSAGE_SIZE];
} ChNetlinkMessage;

typedef struct ChNetlink ChNetlink;

/* Sends @n_bytes of whole messages to the kernel in one go. */
typedef bool (*ChNetlinkSend)(gpointer data, const void *bytes, gsize n_bytes, GError **error);

/* One message of a dump; returning false with an error ends it. */
typedef bool (*ChNetlinkItem)(gpointer data, const struct nlmsghdr *message, GError **error);

/**
 * ch_netlink_new:
 * @fd: (transfer full): a netlink socket of any protocol, also on failure
 *
 * Turns on strict checking of dump requests, extended and short acknowledgements, where the kernel
 * has them.
 *
 * Returns: (transfer full)
 */
ChNetlink *ch_netlink_new(int fd, ChNetlinkSend send, gpointer data);

/* From now on dumps are sent here and not by the given function: rtnetlink tells everybody who has
 * the socket. (nf_tables does not.) */
void ch_netlink_send_dumps(ChNetlink *netlink);

/**
 * ch_netlink_open: a conversation with the caller's own network namespace, for programs that hold
 * the privilege themselves.
 * @protocol: NETLINK_ROUTE, ...
 *
 * Returns: (transfer full): NULL with CH_ERRNO
 */
ChNetlink *ch_netlink_open(int protocol, GError **error);
void ch_netlink_free(ChNetlink *netlink);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChNetlink, ch_netlink_free)

/**
 * ch_netlink_request: sends messages and waits for the kernel's word on them.
 * @bytes: @n_bytes of whole messages, which are numbered here; those with NLM_F_ACK are waited for,
 *   an error of any of them fails the call
 *
 * Blocks: at most five seconds beyond the send.
 *
 * Returns: false with CH_ERRNO (the kernel's errno; its own words follow in brackets),
 * CH_ERROR_INVALID (it does not speak netlink), CH_ERROR_TIMEOUT, or the error of the send
 */
bool ch_netlink_request(ChNetlink *netlink, void *bytes, gsize n_bytes, GError **error);

/* Whether it is fine that message @index of a request, counted from 0, failed. */
typedef bool (*ChNetlinkExcuse)(gpointer data, guint index, const GError *reason);

/**
 * ch_netlink_request_all: as ch_netlink_request(), of messages that do not need each other: the
 * kernel goes on behind one that it refuses
 * @excuse: (nullable): asked about each that failed, with @data
 * @out_failed: on failure the first message that failed, counted from 0; 0 when it cannot be told
 */
bool ch_netlink_request_all(ChNetlink *netlink,
                            void *bytes,
                            gsize n_bytes,
                            ChNetlinkExcuse excuse,
                            gpointer data,
                            guint *out_failed,
                            GError **error);

/**
 * ch_netlink_dump: sends one message with NLM_F_DUMP and hands out each item of the answer.
 *
 * Returns: false as ch_netlink_request(), or with CH_ERRNO EINTR when something changed meanwhile:
 * what was handed out may have holes, start again
 */
bool ch_netlink_dump(ChNetlink *netlink,
                     ChNetlinkMessage *request,
                     ChNetlinkItem item,
                     gpointer data,
                     GError **error);

/* What one datagram of the kernel says about a request, for ch_netlink_judge(). */
typedef struct {
    uint32_t first_sequence, last_sequence; /* of the request's messages; others are old news */
    ChNetlinkExcuse excuse;                 /* (nullable), with excuse_data */
    gpointer excuse_data;
    guint n_acks;        /* out: how many messages were accepted or excused */
    guint failed;        /* out: the message that failed, from 0 */
    bool is_done;        /* out: the dump is complete */
    bool is_interrupted; /* out: the dump has holes */
} ChNetlinkAnswer;

/**
 * ch_netlink_judge: reads one datagram; pure.
 * @item: (nullable): for the messages that are neither acknowledgement, error nor the end
 *
 * Returns: false with the errors above
 */
bool ch_netlink_judge(const void *bytes,
                      gsize n_bytes,
                      ChNetlinkAnswer *answer,
                      ChNetlinkItem item,
                      gpointer data,
                      GError **error);

/* What an attribute may be: its payload's bytes. max_bytes 0: not looked at. */
typedef struct {
    uint16_t min_bytes, max_bytes;
} ChNetlinkRule;

/**
 * ch_netlink_parse: finds the attributes that a policy names; pure.
 * @bytes: @n_bytes of attributes, aligned to 4
 * @policy: by attribute type, @n_rules of them
 * @out_attributes: by type; NULL where there is none. The last of several counts
 *
 * Returns: false with CH_ERROR_INVALID: a length beyond the policy, or bytes that are none
 */
bool ch_netlink_parse(const void *bytes,
                      gsize n_bytes,
                      const ChNetlinkRule policy[],
                      gsize n_rules,
                      const struct nlattr *out_attributes[],
                      GError **error);

/* The same for what is nested in an attribute. */
bool ch_netlink_parse_nested(const struct nlattr *nest,
                             const ChNetlinkRule policy[],
                             gsize n_rules,
                             const struct nlattr *out_attributes[],
                             GError **error);
