/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/netlink.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/errors.h"

#define RULES_END 4

static const ChNetlinkRule policy[RULES_END] = {[1] = {4, 4}, [2] = {1, 16}};

/* --- attributes */

typedef struct {
    uint32_t words[16];
} Attributes;

static bool
parse(const Attributes *bytes, gsize n_bytes, const struct nlattr *found[RULES_END], GError **error)
{
    return ch_netlink_parse(bytes, n_bytes, policy, RULES_END, found, error);
}

static void
test_attributes(void)
{
    /* a number of type 1, a text of type 2 that is padded, an unknown type 9 */
    const Attributes bytes = {{1u << 16 | 8, 77, 2u << 16 | 6, 0x6261, 9u << 16 | 4}};
    const struct nlattr *found[RULES_END];
    g_autoptr(GError) error = NULL;

    g_assert_true(parse(&bytes, 20, found, &error));
    g_assert_no_error(error);
    g_assert_nonnull(found[1]);
    g_assert_cmpint(memcmp(found[1] + 1, &(uint32_t){77}, sizeof(uint32_t)), ==, 0);
    g_assert_cmpint(memcmp(found[2] + 1, "ab", 2), ==, 0);
    g_assert_null(found[3]);
    g_assert_true(parse(&bytes, 0, found, NULL));
    g_assert_null(found[1]);
}

static void
test_hostile_attributes(void)
{
    static const struct {
        Attributes bytes;
        gsize n_bytes;
    } cases[] = {
        {{{1u << 16 | 3}}, 4},         /* shorter than its head */
        {{{1u << 16}}, 4},             /* of no length: would loop for ever */
        {{{1u << 16 | 12, 1}}, 8},     /* leaves the message */
        {{{1u << 16 | 0xffff, 1}}, 8}, /* by far */
        {{{1u << 16 | 6, 1}}, 8},      /* shorter than the policy wants */
        {{{1u << 16 | 12, 1, 2}}, 12}, /* longer */
        {{{2u << 16 | 4}}, 4},         /* empty where a byte is needed */
    };
    const struct nlattr *found[RULES_END];

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(parse(&cases[i].bytes, cases[i].n_bytes, found, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

/* --- answers */

typedef struct {
    char bytes[2048];
    gsize n_bytes;
} Datagram;

static struct nlmsghdr *
add_message(Datagram *datagram, uint16_t type, uint16_t flags, uint32_t sequence, gsize n_payload)
{
    struct nlmsghdr *message = (struct nlmsghdr *)(gpointer)(datagram->bytes + datagram->n_bytes);

    *message = (struct nlmsghdr){.nlmsg_len = (uint32_t)(sizeof(*message) + n_payload),
                                 .nlmsg_type = type,
                                 .nlmsg_flags = flags,
                                 .nlmsg_seq = sequence};
    datagram->n_bytes += (message->nlmsg_len + 3) & ~3u;
    return message;
}

/* @text: the kernel's own words; NULL: none */
static void
add_report(Datagram *datagram, uint32_t sequence, int error, const char *text)
{
    const gsize n_text = text != NULL ? strlen(text) + 1 : 0;
    const gsize n_attribute = n_text > 0 ? sizeof(struct nlattr) + n_text : 0;
    struct nlmsghdr *message = add_message(datagram,
                                           NLMSG_ERROR,
                                           NLM_F_CAPPED | (n_text > 0 ? NLM_F_ACK_TLVS : 0),
                                           sequence,
                                           sizeof(struct nlmsgerr) + n_attribute);
    struct nlmsgerr *report = (struct nlmsgerr *)(message + 1);
    struct nlattr *attribute = (struct nlattr *)(report + 1);

    *report = (struct nlmsgerr){.error = error};
    if (n_text == 0)
        return;
    *attribute = (struct nlattr){(uint16_t)n_attribute, NLMSGERR_ATTR_MSG};
    memcpy(attribute + 1, text, n_text);
}

static bool
count_item(gpointer data, const struct nlmsghdr *message, GError **error)
{
    ++*(guint *)data;
    return true;
}

/* Notes what it is asked, and excuses what exists. */
static bool
excuse_existing(gpointer data, guint index, const GError *reason)
{
    g_string_append_printf(data, " %u", index);
    return g_error_matches(reason, CH_ERRNO, EEXIST);
}

static void
test_first_failure_that_has_no_excuse(void)
{
    g_autoptr(GString) asked = g_string_new(NULL);
    ChNetlinkAnswer answer = {.first_sequence = UINT32_MAX - 1,
                              .last_sequence = 3,
                              .excuse = excuse_existing,
                              .excuse_data = asked};
    Datagram datagram = {0};
    g_autoptr(GError) error = NULL;

    add_report(&datagram, UINT32_MAX - 1, 0, NULL);
    add_report(&datagram, UINT32_MAX, -EEXIST, NULL);
    add_report(&datagram, 0, 0, NULL);
    add_report(&datagram, 1, -ENODEV, "no such link");
    add_report(&datagram, 2, -EBUSY, NULL); /* nobody asks for it any more */
    g_assert_false(ch_netlink_judge(datagram.bytes, datagram.n_bytes, &answer, NULL, NULL, &error));
    g_assert_error(error, CH_ERRNO, ENODEV);
    g_assert_cmpuint(answer.n_acks, ==, 3);
    g_assert_cmpuint(answer.failed, ==, 3);
    g_assert_cmpstr(asked->str, ==, " 1 3");
}

static void
test_answers(void)
{
    ChNetlinkAnswer answer = {.first_sequence = 5, .last_sequence = 6};
    Datagram datagram = {0};
    guint n_items = 0;

    add_report(&datagram, 4, -EPERM, NULL); /* of an earlier request */
    add_report(&datagram, 5, 0, NULL);
    (void)add_message(&datagram, 16, NLM_F_MULTI, 6, 8);
    (void)add_message(&datagram, NLMSG_NOOP, 0, 6, 0);
    (void)add_message(&datagram, NLMSG_DONE, NLM_F_MULTI, 6, 4);
    g_assert_true(
        ch_netlink_judge(datagram.bytes, datagram.n_bytes, &answer, count_item, &n_items, NULL));
    g_assert_cmpuint(answer.n_acks, ==, 1);
    g_assert_cmpuint(n_items, ==, 1);
    g_assert_true(answer.is_done);
    g_assert_false(answer.is_interrupted);
}

static void
test_refusal(void)
{
    ChNetlinkAnswer answer = {.first_sequence = 5, .last_sequence = 5};
    g_autoptr(GError) error = NULL;
    Datagram datagram = {0};

    add_report(&datagram, 5, -EOPNOTSUPP, "Unknown device type");
    g_assert_false(ch_netlink_judge(datagram.bytes, datagram.n_bytes, &answer, NULL, NULL, &error));
    g_assert_error(error, CH_ERRNO, EOPNOTSUPP);
    g_assert_nonnull(strstr(error->message, " (Unknown device type)"));
}

static void
test_interrupted(void)
{
    ChNetlinkAnswer answer = {.first_sequence = 5, .last_sequence = 5};
    Datagram datagram = {0};

    (void)add_message(&datagram, NLMSG_DONE, NLM_F_MULTI | NLM_F_DUMP_INTR, 5, 4);
    g_assert_true(ch_netlink_judge(datagram.bytes, datagram.n_bytes, &answer, NULL, NULL, NULL));
    g_assert_true(answer.is_done && answer.is_interrupted);
}

static void
test_hostile_answers(void)
{
    ChNetlinkAnswer answer = {.first_sequence = 5, .last_sequence = 5};
    struct nlmsghdr *message;
    Datagram datagram;

    for (uint32_t length = 0; length < 64; length++) {
        g_autoptr(GError) error = NULL;

        if (length == sizeof(*message) || length == sizeof(*message) + sizeof(struct nlmsgerr))
            continue;
        datagram = (Datagram){0};
        message = add_message(&datagram, NLMSG_ERROR, 0, 5, sizeof(struct nlmsgerr));
        message->nlmsg_len = length;
        if (ch_netlink_judge(datagram.bytes, datagram.n_bytes, &answer, NULL, NULL, &error))
            g_assert_cmpuint(length, >=, sizeof(*message));
        else
            g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
    /* an errno that is none, text that is no text */
    datagram = (Datagram){0};
    add_report(&datagram, 5, 7, "\xff\xfe");
    g_assert_false(ch_netlink_judge(datagram.bytes, datagram.n_bytes, &answer, NULL, NULL, NULL));
}

/* What the kernel's number becomes, in an error report and at the end of a list. */
static void
test_numbers_of_errors(void)
{
    static const struct {
        int said;
        int errnum;
    } cases[] = {{-EPERM, EPERM}, {-4095, 4095}, {-4096, EPROTO}, {INT_MIN, EPROTO}};
    ChNetlinkAnswer answer = {.first_sequence = 5, .last_sequence = 5};

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) refused = NULL;
        g_autoptr(GError) ended = NULL;
        Datagram datagram = {0};

        add_report(&datagram, 5, cases[i].said, NULL);
        g_assert_false(
            ch_netlink_judge(datagram.bytes, datagram.n_bytes, &answer, NULL, NULL, &refused));
        g_assert_error(refused, CH_ERRNO, cases[i].errnum);
        datagram = (Datagram){0};
        memcpy(add_message(&datagram, NLMSG_DONE, NLM_F_MULTI, 5, sizeof(int)) + 1,
               &cases[i].said,
               sizeof(int));
        g_assert_false(
            ch_netlink_judge(datagram.bytes, datagram.n_bytes, &answer, NULL, NULL, &ended));
        g_assert_error(ended, CH_ERRNO, cases[i].errnum);
    }
}

/* --- the conversation: a kernel of our own behind a socketpair */

typedef struct {
    ChNetlink *netlink;
    int fd; /* the kernel's end */
    Datagram sent;
    int errors[4]; /* for each message; the first is repeated when the send is refused */
    bool is_silent;
} Kernel;

static bool
send_to_kernel(gpointer data, const void *bytes, gsize n_bytes, GError **error)
{
    Kernel *kernel = data;
    Datagram reply = {0};
    gsize offset = 0;

    memcpy(kernel->sent.bytes, bytes, n_bytes);
    kernel->sent.n_bytes = n_bytes;
    for (guint i = 0; offset < n_bytes; i++) {
        const struct nlmsghdr *message =
            (const struct nlmsghdr *)(gconstpointer)((const char *)bytes + offset);

        if (message->nlmsg_flags & NLM_F_ACK || kernel->errors[i] != 0)
            add_report(&reply, message->nlmsg_seq, kernel->errors[i], NULL);
        offset += message->nlmsg_len;
    }
    if (!kernel->is_silent)
        g_assert_cmpint((int)send(kernel->fd, reply.bytes, reply.n_bytes, 0), >, 0);
    return true;
}

static void
kernel_init(Kernel *kernel)
{
    int pair[2];

    *kernel = (Kernel){0};
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
    kernel->fd = pair[1];
    kernel->netlink = ch_netlink_new(pair[0], send_to_kernel, kernel);
}

static void
kernel_clear(Kernel *kernel)
{
    ch_netlink_free(kernel->netlink);
    close(kernel->fd);
}

static void
make_request(Datagram *request, uint16_t first_flags)
{
    *request = (Datagram){0};
    (void)add_message(request, 16, NLM_F_REQUEST | first_flags, 0, 4);
    (void)add_message(request, 16, NLM_F_REQUEST | NLM_F_ACK, 0, 4);
}

static void
test_request(void)
{
    Datagram request;
    Kernel kernel;

    kernel_init(&kernel);
    make_request(&request, NLM_F_ACK);
    g_assert_true(ch_netlink_request(kernel.netlink, request.bytes, request.n_bytes, NULL));
    make_request(&request, 0);
    kernel.errors[0] = -EEXIST; /* an error counts also without being asked for */
    {
        g_autoptr(GError) error = NULL;

        g_assert_false(ch_netlink_request(kernel.netlink, request.bytes, request.n_bytes, &error));
        g_assert_error(error, CH_ERRNO, EEXIST);
    }
    /* What is left of the failed one is not taken for the next one's. */
    kernel.errors[0] = 0;
    make_request(&request, NLM_F_ACK);
    g_assert_true(ch_netlink_request(kernel.netlink, request.bytes, request.n_bytes, NULL));
    kernel_clear(&kernel);
}

static void
test_dump_is_sent_here(void)
{
    ChNetlinkMessage request = {
        .header = {.nlmsg_len = 20, .nlmsg_type = 18, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    ChNetlinkMessage seen;
    Datagram answer = {0};
    Kernel kernel;

    kernel_init(&kernel);
    ch_netlink_send_dumps(kernel.netlink);
    (void)add_message(&answer, NLMSG_DONE, NLM_F_MULTI, 1, 4);
    g_assert_cmpint((int)send(kernel.fd, answer.bytes, answer.n_bytes, 0), >, 0);
    g_assert_true(ch_netlink_dump(kernel.netlink, &request, NULL, NULL, NULL));
    g_assert_cmpint((int)recv(kernel.fd, &seen, sizeof(seen), MSG_DONTWAIT), ==, 20);
    g_assert_cmpuint(seen.header.nlmsg_seq, ==, 1);
    g_assert_cmpuint(kernel.sent.n_bytes, ==, 0);
    kernel_clear(&kernel);
}

static void
test_end_of_socket(void)
{
    g_autoptr(GError) error = NULL;
    Datagram request;
    Kernel kernel;

    kernel_init(&kernel);
    kernel.is_silent = true;
    make_request(&request, NLM_F_ACK);
    shutdown(kernel.fd, SHUT_WR);
    g_assert_false(ch_netlink_request(kernel.netlink, request.bytes, request.n_bytes, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT); /* it ends, whatever comes */
    kernel_clear(&kernel);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/netlink/finds-attributes", test_attributes);
    g_test_add_func("/netlink/refuses-hostile-attributes", test_hostile_attributes);
    g_test_add_func("/netlink/reads-answers", test_answers);
    g_test_add_func("/netlink/tells-the-kernels-words", test_refusal);
    g_test_add_func("/netlink/names-the-first-failure-without-excuse",
                    test_first_failure_that_has_no_excuse);
    g_test_add_func("/netlink/sees-interruption", test_interrupted);
    g_test_add_func("/netlink/refuses-hostile-answers", test_hostile_answers);
    g_test_add_func("/netlink/errors-have-fitting-numbers", test_numbers_of_errors);
    g_test_add_func("/netlink/waits-for-acknowledgements", test_request);
    g_test_add_func("/netlink/dump-is-sent-here", test_dump_is_sent_here);
    g_test_add_func("/netlink/answer-has-an-end", test_end_of_socket);
    return g_test_run();
}
