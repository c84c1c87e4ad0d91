/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/netlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"

#define BUFFER_BYTES  32768 /* what the kernel fills a dump's datagram up to */
#define DEADLINE_US   (5 * CH_SECOND_US)
#define MAX_DATAGRAMS 4096 /* of one answer */
#define MAX_ERRNO     4095 /* the kernel's limit, which it does not export */

/* The kernel's macros for these are of a signed type. */
#define ATTRIBUTE_TYPE(attribute) ((guint)((attribute)->nla_type & 0x3fffu))
#define ATTRIBUTE_HEADER_BYTES    sizeof(struct nlattr)
#define ALIGNED(n_bytes)          (((gsize)(n_bytes) + 3) & ~(gsize)3)

struct ChNetlink {
    int fd;             /* owned */
    ChNetlinkSend send; /* with send_data */
    gpointer send_data;
    bool sends_dumps;
    uint32_t sequence; /* of the last message sent */
    char *buffer;      /* owned; BUFFER_BYTES */
};

ChNetlink *
ch_netlink_new(int fd, ChNetlinkSend send, gpointer data)
{
    static const int options[] = {NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK};
    const int on = 1;
    ChNetlink *netlink = g_new0(ChNetlink, 1);

    netlink->fd = fd;
    netlink->send = send;
    netlink->send_data = data;
    netlink->buffer = g_malloc(BUFFER_BYTES);
    /* Kernels that lack one do without. */
    for (gsize i = 0; i < G_N_ELEMENTS(options); i++)
        (void)setsockopt(fd, SOL_NETLINK, options[i], &on, sizeof(on));
    return netlink;
}

static bool
send_self(gpointer data, const void *bytes, gsize n_bytes, GError **error)
{
    const ChNetlink *netlink = data;

    return send(netlink->fd, bytes, n_bytes, 0) == (ssize_t)n_bytes ||
           ch_fail_errno(error, errno, "send to the kernel");
}

void
ch_netlink_send_dumps(ChNetlink *netlink)
{
    netlink->sends_dumps = true;
}

ChNetlink *
ch_netlink_open(int protocol, GError **error)
{
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    ChNetlink *netlink;

    if (fd < 0) {
        ch_fail_errno(error, errno, "open a netlink socket");
        return NULL;
    }
    netlink = ch_netlink_new(fd, send_self, NULL);
    netlink->send_data = netlink;
    return netlink;
}

void
ch_netlink_free(ChNetlink *netlink)
{
    if (netlink == NULL)
        return;
    ch_close_fd(&netlink->fd);
    g_free(netlink->buffer);
    g_free(netlink);
}

/* --- reading what the kernel says */

bool
ch_netlink_parse(const void *bytes,
                 gsize n_bytes,
                 const ChNetlinkRule policy[],
                 gsize n_rules,
                 const struct nlattr *out_attributes[],
                 GError **error)
{
    const char *next = bytes;
    gsize left = n_bytes;

    memset(out_attributes, 0, n_rules * sizeof(*out_attributes));
    while (left >= sizeof(struct nlattr)) {
        const struct nlattr *attribute = (const struct nlattr *)(gconstpointer)next;
        const guint type = ATTRIBUTE_TYPE(attribute);
        gsize payload;

        if (attribute->nla_len < sizeof(*attribute) || attribute->nla_len > left)
            return ch_fail(
                error, CH_ERROR_INVALID, "netlink attribute %u leaves its message", type);
        payload = attribute->nla_len - ATTRIBUTE_HEADER_BYTES;
        if (type < n_rules && policy[type].max_bytes != 0) {
            if (payload < policy[type].min_bytes || payload > policy[type].max_bytes)
                return ch_fail(
                    error, CH_ERROR_INVALID, "netlink attribute %u has %zu bytes", type, payload);
            out_attributes[type] = attribute;
        }
        payload = MIN(ALIGNED(attribute->nla_len), left);
        next += payload;
        left -= payload;
    }
    return true;
}

bool
ch_netlink_parse_nested(const struct nlattr *nest,
                        const ChNetlinkRule policy[],
                        gsize n_rules,
                        const struct nlattr *out_attributes[],
                        GError **error)
{
    return ch_netlink_parse((const char *)nest + ATTRIBUTE_HEADER_BYTES,
                            (gsize)nest->nla_len - ATTRIBUTE_HEADER_BYTES,
                            policy,
                            n_rules,
                            out_attributes,
                            error);
}

/* (transfer full) (nullable): the kernel's own words after an acknowledgement's header. */
static char *
extended_text(const struct nlmsghdr *message)
{
    static const ChNetlinkRule policy[NLMSGERR_ATTR_MSG + 1] = {[NLMSGERR_ATTR_MSG] = {1, 1024}};
    const struct nlattr *found[G_N_ELEMENTS(policy)];
    const struct nlmsgerr *report = mnl_nlmsg_get_payload(message);
    gsize offset = sizeof(*message) + sizeof(*report);

    if (!(message->nlmsg_flags & NLM_F_ACK_TLVS))
        return NULL;
    if (!(message->nlmsg_flags & NLM_F_CAPPED)) /* the request's payload lies between */
        offset += ALIGNED(MAX(report->msg.nlmsg_len, sizeof(report->msg)) - sizeof(report->msg));
    if (offset >= message->nlmsg_len ||
        !ch_netlink_parse((const char *)message + offset,
                          message->nlmsg_len - offset,
                          policy,
                          G_N_ELEMENTS(policy),
                          found,
                          NULL) ||
        found[NLMSGERR_ATTR_MSG] == NULL)
        return NULL;
    return g_strndup(mnl_attr_get_payload(found[NLMSGERR_ATTR_MSG]),
                     mnl_attr_get_payload_len(found[NLMSGERR_ATTR_MSG]));
}

/* The kernel says -errno. What is none, INT_MIN among them, has no opposite that means anything. */
static int
errno_of(int error)
{
    return error >= -MAX_ERRNO && error < 0 ? -error : EPROTO;
}

static void
fail_refused(const struct nlmsghdr *message, int errnum, GError **error)
{
    g_autofree char *text = extended_text(message);

    ch_fail_errno(error, errnum, CH_NETLINK_REFUSAL);
    if (text != NULL && error != NULL) {
        g_autofree char *valid = g_utf8_make_valid(text, -1);
        g_autofree char *whole = g_strdup_printf("%s (%s)", (*error)->message, valid);

        g_free((*error)->message);
        (*error)->message = g_steal_pointer(&whole);
    }
}

static bool
judge_report(const struct nlmsghdr *message, ChNetlinkAnswer *answer, GError **error)
{
    const struct nlmsgerr *report = mnl_nlmsg_get_payload(message);
    const guint index = message->nlmsg_seq - answer->first_sequence;
    g_autoptr(GError) reason = NULL;

    if (mnl_nlmsg_get_payload_len(message) < sizeof(*report))
        return ch_fail(error, CH_ERROR_INVALID, "netlink acknowledgement is cut off");
    if (report->error == 0) {
        answer->n_acks++;
        return true;
    }
    fail_refused(message, errno_of(report->error), &reason);
    if (answer->excuse != NULL && answer->excuse(answer->excuse_data, index, reason)) {
        answer->n_acks++;
        return true;
    }
    answer->failed = index;
    g_propagate_error(error, g_steal_pointer(&reason));
    return false;
}

static bool
judge_end(const struct nlmsghdr *message, ChNetlinkAnswer *answer, GError **error)
{
    const int *code = mnl_nlmsg_get_payload(message);

    answer->is_done = true;
    if (mnl_nlmsg_get_payload_len(message) < sizeof(*code) || *code >= 0)
        return true;
    return ch_fail_errno(error, errno_of(*code), "the kernel ends its list");
}

static bool
judge_message(const struct nlmsghdr *message,
              ChNetlinkAnswer *answer,
              ChNetlinkItem item,
              gpointer data,
              GError **error)
{
    if (message->nlmsg_flags & NLM_F_DUMP_INTR)
        answer->is_interrupted = true;
    switch (message->nlmsg_type) {
    case NLMSG_NOOP:
        return true;
    case NLMSG_OVERRUN:
        answer->is_interrupted = true;
        return true;
    case NLMSG_ERROR:
        return judge_report(message, answer, error);
    case NLMSG_DONE:
        return judge_end(message, answer, error);
    default:
        return item == NULL || item(data, message, error);
    }
}

bool
ch_netlink_judge(const void *bytes,
                 gsize n_bytes,
                 ChNetlinkAnswer *answer,
                 ChNetlinkItem item,
                 gpointer data,
                 GError **error)
{
    const char *next = bytes;
    gsize left = n_bytes;

    while (left > 0) {
        const struct nlmsghdr *message = (const struct nlmsghdr *)(gconstpointer)next;
        gsize step;

        if (left < sizeof(*message) || message->nlmsg_len < sizeof(*message) ||
            message->nlmsg_len > left)
            return ch_fail(error, CH_ERROR_INVALID, "netlink message leaves its datagram");
        if (message->nlmsg_seq - answer->first_sequence <=
                answer->last_sequence - answer->first_sequence &&
            !judge_message(message, answer, item, data, error))
            return false;
        step = MIN(ALIGNED(message->nlmsg_len), left);
        next += step;
        left -= step;
    }
    return true;
}

/* --- the conversation */

/* Returns the bytes of a datagram of the kernel, 0 for one of somebody else, or -1 with an error.
 */
static gssize
receive(ChNetlink *netlink, int64_t deadline_us, GError **error)
{
    struct sockaddr_nl sender = {0};
    struct iovec part = {netlink->buffer, BUFFER_BYTES};
    struct msghdr header = {
        .msg_name = &sender, .msg_namelen = sizeof(sender), .msg_iov = &part, .msg_iovlen = 1};
    ssize_t n = recvmsg(netlink->fd, &header, MSG_DONTWAIT);

    while (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        struct pollfd wait = {.fd = netlink->fd, .events = POLLIN};
        const int64_t left_us = deadline_us - ch_time_now_us();

        if (left_us <= 0)
            return ch_fail(error, CH_ERROR_TIMEOUT, "the kernel does not answer"), -1;
        (void)poll(&wait, 1, (int)(left_us / 1000 + 1));
        n = recvmsg(netlink->fd, &header, MSG_DONTWAIT);
    }
    if (n < 0)
        return ch_fail_errno(error, errno, "read a netlink socket"), -1;
    if (header.msg_flags & MSG_TRUNC)
        return ch_fail(error, CH_ERROR_INVALID, "netlink datagram is larger than any"), -1;
    return sender.nl_pid == 0 ? n : 0;
}

/* Numbers the messages. Returns how many want an acknowledgement. */
static guint
number(ChNetlink *netlink, void *bytes, gsize n_bytes, ChNetlinkAnswer *out_answer)
{
    char *next = bytes;
    const char *end = next + n_bytes;
    guint n_wanted = 0;

    out_answer->first_sequence = netlink->sequence + 1;
    while (next < end) {
        struct nlmsghdr *message = (struct nlmsghdr *)(gpointer)next;

        message->nlmsg_seq = ++netlink->sequence;
        if (message->nlmsg_flags & NLM_F_ACK)
            n_wanted++;
        next += ALIGNED(message->nlmsg_len);
    }
    out_answer->last_sequence = netlink->sequence;
    return n_wanted;
}

static bool
request(ChNetlink *netlink, void *bytes, gsize n_bytes, ChNetlinkAnswer *answer, GError **error)
{
    const guint n_wanted = number(netlink, bytes, n_bytes, answer);
    int64_t deadline_us;

    if (!netlink->send(netlink->send_data, bytes, n_bytes, error))
        return false;
    deadline_us = ch_time_now_us() + DEADLINE_US;
    for (guint i = 0; answer->n_acks < n_wanted; i++) {
        const gssize n = receive(netlink, deadline_us, error);

        if (n < 0 || !ch_netlink_judge(netlink->buffer, (gsize)n, answer, NULL, NULL, error))
            return false;
        if (i > MAX_DATAGRAMS)
            return ch_fail(error, CH_ERROR_LIMIT, "the kernel's answer does not end");
    }
    return true;
}

bool
ch_netlink_request(ChNetlink *netlink, void *bytes, gsize n_bytes, GError **error)
{
    ChNetlinkAnswer answer = {0};

    return request(netlink, bytes, n_bytes, &answer, error);
}

bool
ch_netlink_request_all(ChNetlink *netlink,
                       void *bytes,
                       gsize n_bytes,
                       ChNetlinkExcuse excuse,
                       gpointer data,
                       guint *out_failed,
                       GError **error)
{
    ChNetlinkAnswer answer = {.excuse = excuse, .excuse_data = data};
    const bool ok = request(netlink, bytes, n_bytes, &answer, error);

    *out_failed = answer.failed;
    return ok;
}

bool
ch_netlink_dump(ChNetlink *netlink,
                ChNetlinkMessage *request,
                ChNetlinkItem item,
                gpointer data,
                GError **error)
{
    const gsize n_bytes = request->header.nlmsg_len;
    ChNetlinkAnswer answer = {0};
    int64_t deadline_us;

    (void)number(netlink, request->bytes, n_bytes, &answer);
    if (!(netlink->sends_dumps ? send_self(netlink, request->bytes, n_bytes, error)
                               : netlink->send(netlink->send_data, request->bytes, n_bytes, error)))
        return false;
    deadline_us = ch_time_now_us() + DEADLINE_US;
    for (guint i = 0; !answer.is_done; i++) {
        const gssize n = receive(netlink, deadline_us, error);

        if (n < 0 || !ch_netlink_judge(netlink->buffer, (gsize)n, &answer, item, data, error))
            return false;
        if (i > MAX_DATAGRAMS)
            return ch_fail(error, CH_ERROR_LIMIT, "the kernel's list does not end");
    }
    return !answer.is_interrupted ||
           ch_fail_errno(error, EINTR, "the kernel's list changed while it was read");
}
