/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/linux/channel.h"
#include "lib/linux/pidfd.h"

#define PROGRAM       "virt-handler-hands"
#define CALL_EXTRA_US (3 * CH_SECOND_US) /* beyond what the hands give an operation */
#define STOP_WAIT_MS  1000
#define MAX_UNTOLD    16384 /* more than there are pods, a few times over */

struct ChHands {
    char *pods_dir; /* owned */
    pid_t pid;
    int pidfd;                         /* owned */
    int channels[CH_HANDS_N_CHANNELS]; /* owned */
    void (*end)(void);                 /* (nullable) */

    pthread_mutex_t mutex; /* guards what follows; never held across I/O that waits */
    pthread_cond_t idle;   /* signalled when a channel is put back */
    unsigned idle_channels[CH_HANDS_N_CHANNELS];
    unsigned n_idle;
    uint32_t last_sequence;
    GArray *untold; /* ChHandsRequest: in order, for want of room in their channel */
};

static bool
make_channels(int out_ours[CH_HANDS_N_CHANNELS],
              int out_theirs[CH_HANDS_N_CHANNELS],
              GError **error)
{
    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++) {
        int pair[2];
        const int result = ch_channel_pair(pair);

        if (result < 0)
            return ch_fail_errno(error, -result, "make a channel to the hands");
        out_ours[i] = pair[0];
        /* Above all the numbers that they get in the program, so that none overwrites another. */
        out_theirs[i] = fcntl(pair[1], F_DUPFD_CLOEXEC, CH_HANDS_FIRST_FD + CH_HANDS_N_CHANNELS);
        if (out_theirs[i] < 0)
            ch_fail_errno(error, errno, "duplicate a channel to the hands");
        close(pair[1]);
        if (out_theirs[i] < 0)
            return false;
    }
    return true;
}

static void
close_channels(int channels[CH_HANDS_N_CHANNELS])
{
    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
        ch_close_fd(&channels[i]);
}

static void
set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;

    sigemptyset(&none);
    sigfillset(&all);
    (void)posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(attributes, &none);
    (void)posix_spawnattr_setsigdefault(attributes, &all);
}

/* Returns 0 or a positive errno. Only standard error and the channels reach the program. */
static int
spawn(const char *program, const ChHandsPlaces *places, const int theirs[], pid_t *out_pid)
{
    g_autofree char *node_pid =
        g_strdup_printf("%d", places->node_pid > 0 ? (int)places->node_pid : 1);
    const char *node_pods_dir =
        places->node_pods_dir != NULL ? places->node_pods_dir : places->pods_dir;

    char *environment[] = {NULL, NULL}; /* none, but for what a test armed */
    char *const argv[] = {(char *)program,
                          (char *)places->pods_dir,
                          (char *)places->private_dir,
                          (char *)node_pods_dir,
                          node_pid,
                          NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int result;

    for (char **variable = environ; *variable != NULL; variable++)
        if (ch_crash_point_inherits(*variable))
            environment[0] = *variable;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    set_attributes(&attributes);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
        (void)posix_spawn_file_actions_adddup2(&actions, theirs[i], CH_HANDS_FIRST_FD + i);
    /* Also what our own parent left open in us. */
    (void)posix_spawn_file_actions_addclosefrom_np(&actions,
                                                   CH_HANDS_FIRST_FD + CH_HANDS_N_CHANNELS);
    result = posix_spawn(out_pid, program, &actions, &attributes, argv, environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return result;
}

/* (transfer full): beside the running program, else in its ../libexec. */
static char *
find_program(GError **error)
{
    static const char *const places[] = {".", "../libexec", "../libexec/chandler"};
    g_autoptr(GError) link_error = NULL;
    g_autofree char *self = g_file_read_link("/proc/self/exe", &link_error);
    g_autofree char *dir = NULL;

    if (self == NULL) {
        ch_fail(error, CH_ERROR_NOT_FOUND, "find '%s': %s", PROGRAM, link_error->message);
        return NULL;
    }
    dir = g_path_get_dirname(self);
    for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *path = g_build_filename(dir, places[i], PROGRAM, NULL);

        if (g_file_test(path, G_FILE_TEST_IS_EXECUTABLE))
            return g_steal_pointer(&path);
    }
    ch_fail(error, CH_ERROR_NOT_FOUND, "find '%s' beside '%s'", PROGRAM, self);
    return NULL;
}

static ChHands *
hands_new(const char *pods_dir)
{
    ChHands *hands = g_new0(ChHands, 1);

    hands->pods_dir = g_strdup(pods_dir);
    hands->pidfd = -EBADF;
    for (unsigned i = 0; i < CH_HANDS_N_CHANNELS; i++) {
        hands->channels[i] = -EBADF;
        /* The last one out is channel 0, so that it mostly has room for what is only told. */
        hands->idle_channels[i] = i;
    }
    hands->n_idle = CH_HANDS_N_CHANNELS;
    hands->untold = g_array_new(FALSE, FALSE, sizeof(ChHandsRequest));
    pthread_mutex_init(&hands->mutex, NULL);
    return hands;
}

static void
init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

ChHands *
ch_hands_start(const char *program, const ChHandsPlaces *places, GError **error)
{
    g_autofree char *found = program != NULL ? g_strdup(program) : find_program(error);
    g_autoptr(ChHands) hands = NULL;
    int theirs[CH_HANDS_N_CHANNELS];
    int result = 0;

    if (found == NULL)
        return NULL;
    hands = hands_new(places->pods_dir);
    init_condition(&hands->idle);
    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
        theirs[i] = -EBADF;
    if (!make_channels(hands->channels, theirs, error)) {
        close_channels(theirs);
        return NULL;
    }
    result = spawn(found, places, theirs, &hands->pid);
    close_channels(theirs);
    if (result != 0) {
        hands->pid = 0;
        ch_fail_errno(error, result, "start '%s'", found);
        return NULL;
    }
    /* Our own child, not reaped yet: the number is still its. */
    hands->pidfd = (int)syscall(SYS_pidfd_open, hands->pid, 0);
    if (hands->pidfd < 0) {
        ch_fail_errno(error, errno, "open a pidfd of '%s'", found);
        return NULL;
    }
    return g_steal_pointer(&hands);
}

static void
reap(ChHands *hands)
{
    struct pollfd poll_fd = {.fd = hands->pidfd, .events = POLLIN};

    /* Without a pidfd it has just been started, and ends as it sees no channels. */
    if (hands->pidfd >= 0 && poll(&poll_fd, 1, STOP_WAIT_MS) != 1)
        (void)ch_pidfd_kill(hands->pidfd, SIGKILL);
    while (waitpid(hands->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void
ch_hands_stop(ChHands *hands)
{
    if (hands == NULL)
        return;
    close_channels(hands->channels);
    if (hands->pid > 0)
        reap(hands);
    ch_close_fd(&hands->pidfd);
    pthread_cond_destroy(&hands->idle);
    pthread_mutex_destroy(&hands->mutex);
    g_array_unref(hands->untold);
    g_free(hands->pods_dir);
    g_free(hands);
}

int
ch_hands_peek_death_fd(const ChHands *hands)
{
    return hands->pidfd;
}

void
ch_hands_on_end(ChHands *hands, void (*end)(void))
{
    hands->end = end;
}

const char *
ch_hands_peek_pods_dir(const ChHands *hands)
{
    return hands->pods_dir;
}

/* Takes an idle channel, waiting for one until the deadline. */
static bool
check_out(ChHands *hands,
          int64_t deadline_us,
          unsigned *out_index,
          uint32_t *out_sequence,
          GError **error)
{
    const struct timespec deadline = {
        .tv_sec = deadline_us / CH_SECOND_US,
        .tv_nsec = deadline_us % CH_SECOND_US * 1000,
    };
    bool is_taken = false;
    int result = 0;

    pthread_mutex_lock(&hands->mutex);
    while (hands->n_idle == 0 && result == 0)
        result = pthread_cond_timedwait(&hands->idle, &hands->mutex, &deadline);
    if (hands->n_idle > 0) {
        *out_index = hands->idle_channels[--hands->n_idle];
        *out_sequence = ++hands->last_sequence;
        is_taken = true;
    }
    pthread_mutex_unlock(&hands->mutex);
    return is_taken || ch_fail(error, CH_ERROR_TIMEOUT, "all channels to the hands are busy");
}

/* Called with the mutex held. A record is sent whole, and these are never answered: the channel may
 * be in use. All go through one, so that they keep their order. Returns 0, or a positive errno:
 * EAGAIN: some are left. */
static int
tell_waiting(ChHands *hands)
{
    int result = 0;
    guint n = 0;

    while (n < hands->untold->len && result == 0) {
        result = -ch_channel_send(hands->channels[0],
                                  &g_array_index(hands->untold, ChHandsRequest, n),
                                  sizeof(ChHandsRequest),
                                  -1);
        n += result == 0;
    }
    if (n > 0)
        g_array_remove_range(hands->untold, 0, n);
    return result;
}

static void
put_back(ChHands *hands, unsigned index)
{
    pthread_mutex_lock(&hands->mutex);
    (void)tell_waiting(hands); /* failing, the next one finds out as well */
    hands->idle_channels[hands->n_idle++] = index;
    pthread_cond_signal(&hands->idle);
    pthread_mutex_unlock(&hands->mutex);
}

/* No mode and no owner keeps the hands from anything (CAP_DAC_OVERRIDE). Field report Q06 */
static bool
fail_as_told(const ChHandsReply *reply, GError **error)
{
    g_set_error(error,
                CH_ERRNO,
                reply->errnum,
                "%s%s",
                reply->text,
                reply->errnum == EACCES
                    ? " (a policy of this host forbids it? its audit log tells: AppArmor, SELinux)"
                    : "");
    return false;
}

static bool
fail_call(const ChHands *hands, const char *name, int errnum, GError **error)
{
    if (errnum == ETIMEDOUT)
        return ch_fail(error, CH_ERROR_TIMEOUT, "the hands do not answer '%s'", name);
    if (errnum == EPIPE || errnum == ECONNRESET) {
        if (hands->end != NULL)
            hands->end();
        return ch_fail(error, CH_ERROR_CLOSED, "the hands have ended");
    }
    return ch_fail_errno(error, errnum, "ask the hands for '%s'", name);
}

bool
ch_hands_is_silence(const GError *error)
{
    return g_error_matches(error, CH_ERROR, CH_ERROR_TIMEOUT) ||
           g_error_matches(error, CH_ERROR, CH_ERROR_CLOSED);
}

bool
ch_hands_is_passing(const GError *error)
{
    static const int passing[] = {
        ETIMEDOUT, ECHILD, ESRCH, EAGAIN, ENOMEM, ENOBUFS, EMFILE, ENFILE, EINTR};

    for (gsize i = 0; i < G_N_ELEMENTS(passing); i++)
        if (g_error_matches(error, CH_ERRNO, passing[i]))
            return true;
    return ch_hands_is_silence(error);
}

/* A pod that nobody will ever name: its reply came too late, or its socket did not fit into our
 * descriptor table. */
static void
give_back(ChHands *hands, const ChHandsReply *reply)
{
    const ChHandsRequest release = {.op = CH_HANDS_OP_RELEASE, .handle = reply->handle};

    if (reply->op == CH_HANDS_OP_CONNECT && reply->handle != 0)
        (void)ch_hands_tell(hands, &release, NULL); /* failing, it stays until the hands end */
}

/* Takes the reply with this sequence number; earlier ones belong to callers that gave up. Returns 0
 * or a positive errno. */
static int
take_reply(ChHands *hands,
           unsigned index,
           uint32_t sequence,
           int64_t deadline_us,
           ChHandsReply *out_reply,
           int *out_fd)
{
    const int channel_fd = hands->channels[index];

    for (;;) {
        ch_autofd int fd = -EBADF;
        ChHandsReply reply = {0};
        ssize_t n;
        int result = ch_channel_wait(channel_fd, deadline_us);

        if (result < 0)
            return -result;
        n = ch_channel_receive(channel_fd, &reply, sizeof(reply), &fd);
        if (n == -EAGAIN)
            continue;
        if (n == 0 || n == -ECONNRESET)
            return EPIPE;
        if (n != (ssize_t)sizeof(reply) || reply.version != CH_HANDS_VERSION) {
            give_back(hands, &reply);
            return n == -EPROTO ? EMFILE : EPROTO;
        }
        if (reply.sequence != sequence) {
            give_back(hands, &reply);
            continue;
        }
        reply.text[sizeof(reply.text) - 1] = '\0';
        *out_reply = reply;
        *out_fd = g_steal_fd(&fd);
        return 0;
    }
}

bool
ch_hands_call(ChHands *hands,
              const ChHandsRequest *request,
              ChHandsReply *out_reply,
              int *out_fd,
              GError **error)
{
    return ch_hands_call_with(hands, request, NULL, out_reply, out_fd, error);
}

/* Returns 0 or a positive errno. */
static int
send_request(int channel_fd, const ChHandsRequest *request, const void *bytes)
{
    g_autofree char *record = NULL;

    if (bytes == NULL || request->n_bytes == 0)
        return -ch_channel_send(channel_fd, request, sizeof(*request), -1);
    record = g_malloc(sizeof(*request) + request->n_bytes);
    memcpy(record, request, sizeof(*request));
    memcpy(record + sizeof(*request), bytes, request->n_bytes);
    return -ch_channel_send(channel_fd, record, sizeof(*request) + request->n_bytes, -1);
}

bool
ch_hands_call_with(ChHands *hands,
                   const ChHandsRequest *request,
                   const void *bytes,
                   ChHandsReply *out_reply,
                   int *out_fd,
                   GError **error)
{
    const int64_t deadline_us =
        ch_time_now_us() + ch_hands_op_deadline_us(request->op) + CALL_EXTRA_US;
    const char *name = ch_hands_op_name(request->op);
    ChHandsRequest sent = *request;
    ch_autofd int fd = -EBADF;
    ChHandsReply reply = {0};
    unsigned index = 0;
    int result;

    sent.version = CH_HANDS_VERSION;
    if (!check_out(hands, deadline_us, &index, &sent.sequence, error))
        return false;
    result = send_request(hands->channels[index], &sent, bytes);
    if (result == 0)
        result = take_reply(hands, index, sent.sequence, deadline_us, &reply, &fd);
    put_back(hands, index);
    CH_CRASH_POINT("hands/answered");
    if (result != 0)
        return fail_call(hands, name, result, error);
    if (out_reply != NULL)
        *out_reply = reply;
    if (reply.errnum != 0)
        return fail_as_told(&reply, error);
    if (out_fd != NULL)
        *out_fd = g_steal_fd(&fd);
    return true;
}

bool
ch_hands_tell(ChHands *hands, const ChHandsRequest *request, GError **error)
{
    ChHandsRequest sent = *request;
    int result;

    sent.version = CH_HANDS_VERSION;
    pthread_mutex_lock(&hands->mutex);
    result = tell_waiting(hands);
    if (result == 0)
        result = -ch_channel_send(hands->channels[0], &sent, sizeof(sent), -1);
    if (result == EAGAIN && hands->untold->len < MAX_UNTOLD) {
        g_array_append_val(hands->untold, sent);
        result = 0;
    }
    pthread_mutex_unlock(&hands->mutex);
    return result == 0 || fail_call(hands, ch_hands_op_name(request->op), result, error);
}
