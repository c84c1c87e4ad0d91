/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-injector: the real hands behind their filter, whose system calls fail one at a time, and
 * what is to be said of each failure: the answer tells it as what it is, nothing stays of it, and
 * the same request a second time does what it does when nothing fails. For test programs only.
 */

#pragma once

#define FAILING_CALLS_OF_LIFE

#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "handler/hands/board.h"
#include "handler/hands/sandbox.h"
#include "handler/hands/server.h"
#include "handler/hands/test-failing-call.h"
#include "handler/hands/test-fake-all.h"
#include "lib/base/fd.h"
#include "lib/linux/channel.h"
#include "lib/linux/clock.h"

/* What the hands share with the test. */
typedef struct {
    FailingRow rows[FAILING_N];
    _Atomic int64_t skew_us; /* of their clock: idle children end when the test wants it */
} InjectorShared;

typedef struct {
    FakeAll all;
    InjectorShared *shared;
    int channels[CH_HANDS_N_CHANNELS];
    pid_t server;
    gsize n_fds;      /* of the hands at rest */
    gsize n_children; /* the same: the process for labels, if there is one */
    uint64_t handle;
    bool is_unified; /* the pod seems to be in the v2 hierarchy only */
    GString *faults; /* what was found */
    unsigned n_tried, n_missed;
} Injector;

typedef struct InjectorCase {
    const char *name; /* NULL: the operation's */
    ChHandsRequest request;
    const void *bytes;
    gsize n_bytes;
    void (*prepare)(Injector *injector,
                    ChHandsRequest *request);                 /* (nullable): what is to be done */
    void (*undo)(Injector *injector);                         /* (nullable): of what was done */
    void (*describe)(const Injector *injector, GString *out); /* (nullable): more of its effect */
    bool (*is_possible)(const Injector *injector);            /* (nullable) */
    int done_errnum; /* what it says when it was done before; 0: nothing */
    bool by_another; /* process, which may do it when its answer cannot be waited for */
    bool may_leave;  /* for an error of the device: what cannot be removed */
} InjectorCase;

/* --- the hands */

#define INJECTOR_FILE "calls" /* what is shared, in the test's directory */

static inline InjectorShared *
injector_map(const char *path)
{
    ch_autofd int fd = open(path, O_RDWR | O_CLOEXEC);
    InjectorShared *shared;

    fake_pod_must(fd >= 0, "open what is shared");
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    fake_pod_must(shared != MAP_FAILED, "map what is shared");
    return shared;
}

static InjectorShared *injector_shared; /* in the hands only */

long injector_clock_gettime(clockid_t clock, struct timespec *out) __asm__("clock_gettime");
long
injector_clock_gettime(clockid_t clock, struct timespec *out)
{
    static long (*real)(clockid_t, struct timespec *);
    long result;

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    result = real(clock, out);
    if (injector_shared != NULL)
        out->tv_sec += injector_shared->skew_us / 1000000;
    return result;
}

/* @start: (nullable): what is done before the filter */
static inline void
injector_serve(InjectorShared *shared, const int theirs[], int (*start)(void))
{
    struct timespec now;

    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
        fake_pod_must(dup2(theirs[i], CH_HANDS_FIRST_FD + i) >= 0, "dup2");
    (void)close_range(CH_HANDS_FIRST_FD + CH_HANDS_N_CHANNELS, ~0u, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGCHLD, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(022);
    fake_pod_must(chdir("/") == 0, "chdir");
    failing_find_real();
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    failing_rows = shared->rows;
    injector_shared = shared;
    fake_pod_must(start == NULL || start() == 0, "start the labeller");
    fake_pod_must(ch_board_init() == 0 && ch_sandbox_drop_capabilities() == 0 &&
                      ch_sandbox_filter_calls() == 0,
                  "enter the sandbox");
    _exit(ch_server_run());
}

static inline void
injector_start_hands(Injector *injector, int (*start)(void))
{
    int theirs[CH_HANDS_N_CHANNELS];

    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++) {
        int pair[2];

        g_assert_cmpint(ch_channel_pair(pair), ==, 0);
        injector->channels[i] = fcntl(pair[0], F_DUPFD_CLOEXEC, 100);
        theirs[i] = fcntl(pair[1], F_DUPFD_CLOEXEC, 200);
        close(pair[0]);
        close(pair[1]);
    }
    injector->server = fork();
    if (injector->server == 0)
        injector_serve(injector->shared, theirs, start);
    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
        close(theirs[i]);
}

/* --- asking */

typedef struct {
    ChHandsReply reply;
    bool has_fd;
    bool has_come;
} InjectorAnswer;

static inline InjectorAnswer
injector_await(Injector *injector, uint32_t sequence, int64_t patience_us)
{
    InjectorAnswer answer = {.has_fd = false};
    ch_autofd int fd = -EBADF;

    while (!answer.has_come) {
        if (ch_channel_wait(injector->channels[0], ch_clock_us() + patience_us) < 0)
            break;
        g_assert_cmpint(
            ch_channel_receive(injector->channels[0], &answer.reply, sizeof(answer.reply), &fd),
            ==,
            sizeof(answer.reply));
        answer.has_come = answer.reply.sequence == sequence;
    }
    answer.has_fd = fd >= 0;
    return answer;
}

/* @loses_reply: the answer fails to be sent, and is not waited for */
static inline InjectorAnswer
injector_ask(Injector *injector,
             const ChHandsRequest *request,
             const void *bytes,
             gsize n_bytes,
             bool loses_reply)
{
    static uint32_t sequence;
    char record[sizeof(*request) + 4096] __attribute__((aligned(8)));
    ChHandsRequest *sent = (ChHandsRequest *)(gpointer)record;

    *sent = *request;
    sent->version = CH_HANDS_VERSION;
    sent->sequence = ++sequence;
    sent->n_bytes = (uint32_t)n_bytes;
    if (n_bytes > 0)
        memcpy(record + sizeof(*sent), bytes, n_bytes);
    g_assert_cmpint(
        ch_channel_send(injector->channels[0], record, sizeof(*sent) + n_bytes, -1), ==, 0);
    if (ch_hands_op_is_silent(request->op))
        return (InjectorAnswer){.has_come = true};
    return injector_await(injector, sequence, loses_reply ? 20000 : 20000000);
}

static inline InjectorAnswer
injector_do(Injector *injector, const ChHandsRequest *request)
{
    return injector_ask(injector, request, NULL, 0, false);
}

/* --- what stays */

static inline gsize
injector_count_fds(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int)pid);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    gsize n = 0;

    while (dir != NULL && g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

/* And theirs. */
static inline gsize
injector_count_children(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", (int)pid, (int)pid);
    g_autofree char *text = NULL;
    g_auto(GStrv) numbers = NULL;
    gsize n = 0;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return 0;
    numbers = g_strsplit(text, " ", -1);
    for (gsize i = 0; numbers[i] != NULL && numbers[i][0] != '\0'; i++)
        n += 1 + injector_count_children((pid_t)strtol(numbers[i], NULL, 10));
    return n;
}

/* Idle children end. Their clock makes a leap for that when all that was asked has begun, and
 * another one where that is not enough: a step that is under way has 5 s. Returns false when
 * something else stays. */
static inline bool
injector_settle(Injector *injector)
{
    const ChHandsRequest hello = {.op = CH_HANDS_OP_HELLO};

    (void)injector_do(injector, &hello);
    for (int n_leaps = 0; n_leaps < 20; n_leaps++) {
        const int64_t next_us = ch_clock_us() + 200000;

        injector->shared->skew_us += 3000000;
        do {
            (void)injector_do(injector, &hello);
            if (injector_count_children(injector->server) == injector->n_children)
                return true;
            g_usleep(200);
        } while (ch_clock_us() < next_us);
    }
    return false;
}

/* After an operation: whether the hands are as they were at first. */
static inline bool
injector_is_at_rest(Injector *injector)
{
    return injector_settle(injector) && injector_count_fds(injector->server) == injector->n_fds;
}

/* --- what is there */

static inline gint
injector_compare(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline void
injector_describe_tree(GString *out, const char *path)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *text = NULL;
    struct stat st;
    GDir *dir;
    const char *name;

    if (lstat(path, &st) < 0)
        return;
    if (S_ISREG(st.st_mode) && st.st_size < 4096)
        (void)g_file_get_contents(path, &text, NULL, NULL);
    g_string_append_printf(out,
                           "%s %o %u:%u %lx %ld %u\n",
                           path,
                           st.st_mode,
                           st.st_uid,
                           st.st_gid,
                           (unsigned long)st.st_rdev,
                           S_ISREG(st.st_mode) ? (long)st.st_size : 0,
                           text != NULL ? g_str_hash(text) : 0);
    dir = S_ISDIR(st.st_mode) ? g_dir_open(path, 0, NULL) : NULL;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL)
        g_ptr_array_add(names, g_strdup(name));
    if (dir != NULL)
        g_dir_close(dir);
    g_ptr_array_sort(names, injector_compare);
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *child = g_build_filename(path, names->pdata[i], NULL);

        injector_describe_tree(out, child);
    }
}

/* Of a process: mount points below the test's directory, and links. */
static inline void
injector_describe_spaces(const Injector *injector, pid_t pid, GString *out)
{
    g_autofree char *mounts_path = g_strdup_printf("/proc/%d/mountinfo", (int)pid);
    g_autofree char *links_path = g_strdup_printf("/proc/%d/net/dev", (int)pid);
    g_autofree char *mounts = NULL;
    g_autofree char *links = NULL;
    g_auto(GStrv) lines = NULL;

    g_assert_true(g_file_get_contents(mounts_path, &mounts, NULL, NULL));
    g_assert_true(g_file_get_contents(links_path, &links, NULL, NULL));
    lines = g_strsplit(mounts, "\n", -1);
    for (gsize i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], " ", 6);

        if (g_strv_length(fields) == 6)
            g_string_append_printf(out, "%s on %s\n", fields[3], fields[4]);
    }
    g_clear_pointer(&lines, g_strfreev);
    lines = g_strsplit(links, "\n", -1);
    for (gsize i = 2; i < g_strv_length(lines); i++)
        if (strchr(lines[i], ':') != NULL)
            g_string_append_printf(out, "link %.*s\n", (int)strcspn(lines[i], ":"), lines[i]);
}

/* (transfer full): mounts and links, nothing of which may be left half done */
static inline char *
injector_describe_kernel(const Injector *injector)
{
    GString *out = g_string_new(NULL);

    injector_describe_spaces(injector, getpid(), out);
    injector_describe_spaces(injector, injector->all.pod.pid, out);
    injector_describe_spaces(injector, injector->all.disk.pid, out);
    return g_string_free(out, FALSE);
}

/* (transfer full): all that an operation may change */
static inline char *
injector_describe(const Injector *injector, const InjectorCase *one)
{
    static const char *const trees[] = {"pods", "root", "share", "private"};
    g_autofree char *kernel = injector_describe_kernel(injector);
    GString *out = g_string_new(kernel);

    for (gsize i = 0; i < G_N_ELEMENTS(trees); i++) {
        g_autofree char *path = fake_all_path(&injector->all, trees[i]);

        injector_describe_tree(out, path);
    }
    if (one->describe != NULL)
        one->describe(injector, out);
    return g_string_free(out, FALSE);
}
