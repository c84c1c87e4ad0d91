/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-injection-try: each system call of one request fails once, and what is to be said of that.
 * For test programs only.
 */

#pragma once

#include "handler/hands/client.h"
#include "handler/hands/test-injector.h"
#include "lib/base/errors.h"

/* --- what fails */

static inline bool
try_is_one_of(int kind, const int *kinds, gsize n_kinds)
{
    for (gsize i = 0; i < n_kinds; i++)
        if (kinds[i] == kind)
            return true;
    return false;
}

/* A sanitizer's build takes its time: it is not asked for all. */
static inline bool
try_is_tried(uint64_t number, int error)
{
#ifdef __SANITIZE_ADDRESS__
    return number % 10 == 1 && error == ENOMEM;
#else
    return true;
#endif
}

/* What the kernel gives of such a call. */
static inline bool
try_fits(int kind, int error)
{
    static const int waits[] = {FAILING_epoll_wait, FAILING_poll, FAILING_recvmsg, FAILING_waitpid};
    static const int interruptible[] = {FAILING_open64,
                                        FAILING_openat64,
                                        FAILING_openat2,
                                        FAILING_read,
                                        FAILING_write,
                                        FAILING_pread64,
                                        FAILING_pwrite64,
                                        FAILING_connect,
                                        FAILING_fsync,
                                        FAILING_sendmsg,
                                        FAILING_ioctl,
                                        FAILING_bpf};
    static const int diskless[] = {FAILING_bind,
                                   FAILING_bpf,
                                   FAILING_close_range,
                                   FAILING_connect,
                                   FAILING_epoll_ctl,
                                   FAILING_fork,
                                   FAILING_getsockopt,
                                   FAILING_inotify_init1,
                                   FAILING_ioctl,
                                   FAILING_listen,
                                   FAILING_peerpidfd,
                                   FAILING_pidfd_open,
                                   FAILING_pidfd_send_signal,
                                   FAILING_prlimit64,
                                   FAILING_reply,
                                   FAILING_sched_getaffinity,
                                   FAILING_sched_setaffinity,
                                   FAILING_sched_setscheduler,
                                   FAILING_sendmsg,
                                   FAILING_setns,
                                   FAILING_setsockopt,
                                   FAILING_socket,
                                   FAILING_socketpair,
                                   FAILING_syscall};

    if (try_is_one_of(kind, waits, G_N_ELEMENTS(waits)))
        return error == EINTR;
    if (error == EINTR)
        return try_is_one_of(kind, interruptible, G_N_ELEMENTS(interruptible));
    return error == ENOMEM || !try_is_one_of(kind, diskless, G_N_ELEMENTS(diskless));
}

/* --- what is said of it */

static inline bool
try_is_passing(int errnum)
{
    g_autoptr(GError) error = g_error_new_literal(CH_ERRNO, errnum, "");

    return ch_hands_is_passing(error);
}

/* @has_size: also how much this very request did. (transfer full) */
static inline char *
try_facts_of(const InjectorAnswer *answer, bool has_size)
{
    const ChHandsReply *reply = &answer->reply;

    return g_strdup_printf("fd %d, pid %d, handle %d, size %lu, look %d %d %d %d %d, device %u, "
                           "source %lx %o %d, step %u, sum %u %lu, target %lx %o %u, text %s",
                           answer->has_fd,
                           reply->pid != 0,
                           reply->handle != 0,
                           has_size ? (unsigned long)reply->size : 0,
                           reply->look.dir_errno,
                           reply->look.socket_errno,
                           reply->look.marker_errno,
                           reply->look.process_errno,
                           reply->look.binary_errno,
                           reply->device,
                           (unsigned long)reply->source.rdev,
                           reply->source.mode,
                           reply->source.errnum,
                           reply->step,
                           reply->crc,
                           (unsigned long)reply->end,
                           (unsigned long)reply->target.rdev,
                           reply->target.mode,
                           reply->target.is_mounted,
                           reply->text);
}

/* A part of an answer may be that this part failed: it is not compared. */
static inline void
try_forgive(InjectorAnswer *answer, const InjectorAnswer *clean, int error)
{
    ChHandsLook *look = &answer->reply.look;
    const ChHandsLook *expected = &clean->reply.look;

    look->dir_errno = look->dir_errno == error ? expected->dir_errno : look->dir_errno;
    look->socket_errno = look->socket_errno == error ? expected->socket_errno : look->socket_errno;
    look->marker_errno = look->marker_errno == error ? expected->marker_errno : look->marker_errno;
    look->process_errno =
        look->process_errno == error ? expected->process_errno : look->process_errno;
    look->binary_errno = look->binary_errno == error ? expected->binary_errno : look->binary_errno;
    if (answer->reply.source.errnum == error)
        answer->reply.source = clean->reply.source;
}

/* --- one operation */

/* What it is like when nothing fails. */
typedef struct {
    const InjectorCase *of;
    InjectorAnswer answer;
    char *before_kernel, *after_kernel; /* owned */
    char *after;                        /* owned */
    gsize n_fds_before, n_fds_after;    /* of the hands, at rest */
    uint64_t n_calls[FAILING_N];
} TryClean;

static inline void
try_clear(TryClean *clean)
{
    g_free(clean->before_kernel);
    g_free(clean->after_kernel);
    g_free(clean->after);
}

static inline const char *
try_name_of(const InjectorCase *one)
{
    return one->name != NULL ? one->name : ch_hands_op_name(one->request.op);
}

static inline void try_blame(Injector *injector, const char *format, ...) G_GNUC_PRINTF(2, 3);
static inline void
try_blame(Injector *injector, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_string_append_vprintf(injector->faults, format, args);
    va_end(args);
    g_string_append_c(injector->faults, '\n');
}

static inline ChHandsRequest
try_prepare(Injector *injector, const InjectorCase *one)
{
    ChHandsRequest request = one->request;

    if (request.uid[0] == '\0' || request.image != CH_HANDS_IMAGE_NONE)
        request.handle = injector->handle;
    if (request.op == CH_HANDS_OP_HELLO || request.op == CH_HANDS_OP_MULTIPATH_WATCH ||
        request.op == CH_HANDS_OP_MULTIPATH_SET || request.op == CH_HANDS_OP_RESERVATION_WATCH ||
        request.op == CH_HANDS_OP_RESERVATION_OWN)
        request.handle = 0;
    if (one->prepare != NULL)
        one->prepare(injector, &request);
    (void)injector_settle(injector);
    return request;
}

static inline InjectorAnswer
try_ask(Injector *injector,
        const InjectorCase *one,
        const ChHandsRequest *request,
        bool loses_reply)
{
    const InjectorAnswer answer =
        injector_ask(injector, request, one->bytes, one->n_bytes, loses_reply);

    if (ch_hands_op_is_silent(request->op))
        (void)injector_settle(injector); /* nobody says when it is done */
    return answer;
}

/* A handle that nobody else would give back. */
static inline void
try_take_back(Injector *injector, const InjectorAnswer *answer)
{
    const ChHandsRequest release = {.op = CH_HANDS_OP_RELEASE, .handle = answer->reply.handle};

    if (answer->has_come && release.handle != 0)
        (void)injector_do(injector, &release);
}

/* Returns whether the hands are as they were at first. */
static inline bool
try_end(Injector *injector, const InjectorCase *one, const InjectorAnswer *answer)
{
    try_take_back(injector, answer);
    if (one->undo != NULL)
        one->undo(injector);
    return injector_is_at_rest(injector);
}

static inline void
try_do_cleanly(Injector *injector, TryClean *out_clean)
{
    const InjectorCase *one = out_clean->of;
    ChHandsRequest request = try_prepare(injector, one);

    out_clean->before_kernel = injector_describe_kernel(injector);
    out_clean->n_fds_before = injector_count_fds(injector->server);
    for (int i = 0; i < FAILING_N; i++)
        out_clean->n_calls[i] = injector->shared->rows[i].n_calls;
    out_clean->answer = try_ask(injector, one, &request, false);
    for (int i = 0; i < FAILING_N; i++)
        out_clean->n_calls[i] = injector->shared->rows[i].n_calls - out_clean->n_calls[i];
    if (!out_clean->answer.has_come || out_clean->answer.reply.errnum != 0)
        g_error("%s fails: %s", try_name_of(one), out_clean->answer.reply.text);
    out_clean->after = injector_describe(injector, one);
    out_clean->after_kernel = injector_describe_kernel(injector);
    try_take_back(injector, &out_clean->answer);
    (void)injector_settle(injector);
    out_clean->n_fds_after = injector_count_fds(injector->server);
    if (!try_end(injector, one, &out_clean->answer))
        try_blame(injector, "%s leaves something", try_name_of(one));
}

static inline void
try_check_answer(Injector *injector,
                 const TryClean *clean,
                 const char *what,
                 const InjectorAnswer *answer,
                 int error)
{
    const int errnum = answer->reply.errnum;
    InjectorAnswer forgiven = *answer;
    g_autofree char *expected = try_facts_of(&clean->answer, true);
    g_autofree char *facts = NULL;
    g_autofree char *now = NULL;

    if (errnum != 0) {
        if (errnum != error && (!try_is_passing(errnum) || errnum == ESRCH)) /* nobody has ended */
            try_blame(injector, "%s: said to be: %s", what, answer->reply.text);
        return;
    }
    try_forgive(&forgiven, &clean->answer, error);
    facts = try_facts_of(&forgiven, true);
    now = injector_describe(injector, clean->of);
    if (!g_str_equal(facts, expected))
        try_blame(injector, "%s: is done, but\n    %s\n    %s", what, facts, expected);
    else if (!g_str_equal(now, clean->after) && !(clean->of->may_leave && error == EIO))
        try_blame(injector, "%s: is said to be done", what);
}

/* Whether each line of @text is one of before, or of what is there after what may have been done.
 */
static inline bool
try_is_known(const TryClean *clean, const char *text, bool may_be_done)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_auto(GStrv) before = g_strsplit(clean->before_kernel, "\n", -1);
    g_auto(GStrv) after = g_strsplit(clean->after_kernel, "\n", -1);

    for (gsize i = 0; lines[i] != NULL; i++)
        if (!g_strv_contains((const char *const *)before, lines[i]) &&
            !(may_be_done && g_strv_contains((const char *const *)after, lines[i])))
            return false;
    return true;
}

static inline void
try_check_kernel(Injector *injector, const TryClean *clean, const char *what, bool may_be_done)
{
    g_autofree char *kernel = injector_describe_kernel(injector);
    gsize n_fds;

    if (!injector_settle(injector))
        try_blame(injector, "%s: a process stays", what);
    n_fds = injector_count_fds(injector->server);
    if (n_fds != clean->n_fds_before && n_fds != clean->n_fds_after)
        try_blame(injector, "%s: a descriptor stays", what);
    if (!try_is_known(clean, kernel, may_be_done))
        try_blame(injector, "%s: a mount or link stays", what);
}

static inline void
try_retry(Injector *injector,
          const TryClean *clean,
          const char *what,
          const ChHandsRequest *request)
{
    const InjectorCase *one = clean->of;
    const InjectorAnswer answer = try_ask(injector, one, request, false);
    g_autofree char *expected = try_facts_of(&clean->answer, false);
    g_autofree char *facts = try_facts_of(&answer, false);
    g_autofree char *now = injector_describe(injector, one);
    const bool was_done =
        one->done_errnum != 0 && answer.has_come && answer.reply.errnum == one->done_errnum;

    if (!was_done && !g_str_equal(facts, expected))
        try_blame(injector, "%s: a retry says\n    %s\n    %s", what, facts, expected);
    if (!g_str_equal(now, clean->after))
        try_blame(injector, "%s: a retry is not enough", what);
    if (!try_end(injector, one, &answer))
        try_blame(injector, "%s: a descriptor or process stays after a retry", what);
}

static inline void
try_one(Injector *injector, const TryClean *clean, int kind, uint64_t number, int error)
{
    ChHandsRequest request = try_prepare(injector, clean->of);
    FailingRow *row = &injector->shared->rows[kind];
    const uint64_t n_failed = row->n_failed;
    g_autofree char *what = g_strdup_printf("%s: %s %lu: %s",
                                            try_name_of(clean->of),
                                            failing_names[kind],
                                            (unsigned long)number,
                                            strerrorname_np(error));
    InjectorAnswer answer;

    row->error = (uint32_t)error;
    row->fail_at = row->n_calls + number;
    answer = try_ask(injector, clean->of, &request, kind == FAILING_reply);
    row->fail_at = 0;
    injector->n_tried++;
    injector->n_missed += row->n_failed == n_failed;
    if (!answer.has_come && kind != FAILING_reply)
        try_blame(injector, "%s: no answer", what);
    if (answer.has_come && !ch_hands_op_is_silent(request.op))
        try_check_answer(injector, clean, what, &answer, error);
    try_take_back(injector, &answer);
    /* What is mounted stays when it cannot be given away: it may be everybody's. */
    try_check_kernel(injector,
                     clean,
                     what,
                     !answer.has_come || answer.reply.errnum == 0 ||
                         answer.reply.step == CH_HANDS_STEP_OWN || clean->of->by_another);
    try_retry(injector, clean, what, &request);
}

/* As before Linux 6.6, 6.5 and 5.12: it is done all the same. */
static inline void
try_old_kernel(Injector *injector, const InjectorCase *one)
{
    static const struct {
        int kind, error;
    } lacking[] = {{FAILING_fchmodat2, ENOSYS},
                   {FAILING_peerpidfd, ENOPROTOOPT},
                   {FAILING_mount_setattr, ENOSYS}};
    TryClean now = {.of = one}, then = {.of = one};
    g_autofree char *facts_now = NULL;
    g_autofree char *facts_then = NULL;

    if (one->is_possible != NULL && !one->is_possible(injector))
        return;
    try_do_cleanly(injector, &now);
    for (gsize i = 0; i < G_N_ELEMENTS(lacking); i++) {
        injector->shared->rows[lacking[i].kind].error = (uint32_t)lacking[i].error;
        injector->shared->rows[lacking[i].kind].always = 1;
    }
    try_do_cleanly(injector, &then);
    for (gsize i = 0; i < G_N_ELEMENTS(lacking); i++) {
        injector->n_tried += (unsigned)injector->shared->rows[lacking[i].kind].n_failed;
        injector->shared->rows[lacking[i].kind].n_failed = 0;
        injector->shared->rows[lacking[i].kind].always = 0;
    }
    facts_now = try_facts_of(&now.answer, true);
    facts_then = try_facts_of(&then.answer, true);
    if (!g_str_equal(facts_now, facts_then) || !g_str_equal(now.after, then.after))
        try_blame(injector, "%s: an old kernel has it done otherwise", try_name_of(one));
    try_clear(&now);
    try_clear(&then);
}

static inline void
try_inject(Injector *injector, const InjectorCase *one)
{
    static const int errors[] = {ENOMEM, EIO, EINTR};
    TryClean clean = {.of = one};
    const int64_t begin_us = ch_clock_us();
    const unsigned n_before = injector->n_tried;

    if (one->is_possible != NULL && !one->is_possible(injector)) {
        g_test_message("%s: not possible here", try_name_of(one));
        return;
    }
    try_do_cleanly(injector, &clean);
    for (int kind = 0; kind < FAILING_N; kind++)
        for (uint64_t number = 1; number <= clean.n_calls[kind]; number++)
            for (gsize i = 0; i < G_N_ELEMENTS(errors); i++)
                if (try_is_tried(number, errors[i]) && try_fits(kind, errors[i]) &&
                    !(kind == FAILING_reply && ch_hands_op_is_silent(one->request.op)))
                    try_one(injector, &clean, kind, number, errors[i]);
    try_clear(&clean);
    g_test_message("%s: %u in %ld ms",
                   try_name_of(one),
                   injector->n_tried - n_before,
                   (long)(ch_clock_us() - begin_us) / 1000);
}
