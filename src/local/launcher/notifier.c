/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/notifier.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/grpc/client.h"
#include "local/launcher/worker.h"
#include "notify-info.pb-c.h"
#include "notify.pb-c.h"

#define DIAL_TIMEOUT_US    (2 * CH_SECOND_US)
#define ATTEMPT_TIMEOUT_US (5 * CH_SECOND_US)
#define SEND_LIMIT_US      (20 * CH_SECOND_US)
#define RETRY_US           (1 * CH_SECOND_US)

#define MAX_WAITING 64

struct ChNotifier {
    ChLoop *loop;
    char *socket_path;
    ChReporter reporter;
    ChNotifierFunc func;
    gpointer data;
    ChWorker *worker;
    bool is_known; /* the agent has been told of the domain; the worker's */

    pthread_mutex_t lock;   /* guards all below */
    ChGrpcChannel *channel; /* (nullable): set by the worker alone, which may read it unlocked */
    pthread_cond_t ended;
    bool is_ending;
    bool has_domain;        /* libvirt told of one */
    bool is_change_waiting; /* the last event in the queue is MODIFIED and not begun */
    ChNotifierProgress progress;
};

typedef struct {
    ChNotifier *notifier;
    bool is_added;
} Event;

typedef struct {
    ChNotifier *notifier;
    ChNotifierProgress progress;
} Progress;

static int
connect_socket(const char *path, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ch_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        ch_fail_errno(error, errno, "create a socket");
        return -EBADF;
    }
    if (g_strlcpy(address.sun_path, path, sizeof(address.sun_path)) >= sizeof(address.sun_path)) {
        ch_fail(error, CH_ERROR_INVALID, "socket path '%s' is too long", path);
        return -EBADF;
    }
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        ch_fail_errno(error, errno, "connect to '%s'", path);
        return -EBADF;
    }
    return g_steal_fd(&fd);
}

static bool
negotiate(ChGrpcChannel *channel, GError **error)
{
    const Kubevirt__Notify__Info__NotifyInfoRequest request =
        KUBEVIRT__NOTIFY__INFO__NOTIFY_INFO_REQUEST__INIT;
    ProtobufCMessage *message = NULL;
    bool knows_us = false;

    if (!ch_grpc_call(channel,
                      "/kubevirt.notify.info.NotifyInfo/Info",
                      &request.base,
                      &kubevirt__notify__info__notify_info_response__descriptor,
                      ATTEMPT_TIMEOUT_US,
                      &message,
                      error)) {
        g_prefix_error(error, "could not check cmd server version: ");
        return false;
    }
    const Kubevirt__Notify__Info__NotifyInfoResponse *response =
        (const Kubevirt__Notify__Info__NotifyInfoResponse *)message;
    for (size_t i = 0; i < response->n_supported_notify_versions; i++)
        knows_us = knows_us || response->supported_notify_versions[i] == 1;
    protobuf_c_message_free_unpacked(message, NULL);
    return knows_us || ch_fail(error, CH_ERROR_FAILED, "no compatible version found, client: [1]");
}

static void
disconnect(ChNotifier *notifier)
{
    ChGrpcChannel *channel;

    pthread_mutex_lock(&notifier->lock);
    channel = g_steal_pointer(&notifier->channel);
    pthread_mutex_unlock(&notifier->lock);
    if (channel == NULL)
        return;
    ch_grpc_channel_close(channel);
    ch_grpc_channel_unref(channel);
}

static bool
is_ending(ChNotifier *notifier)
{
    pthread_mutex_lock(&notifier->lock);
    const bool is_ending = notifier->is_ending;
    pthread_mutex_unlock(&notifier->lock);
    return is_ending;
}

static bool
ensure_connected(ChNotifier *notifier, GError **error)
{
    if (notifier->channel != NULL)
        return true;
    const int fd = connect_socket(notifier->socket_path, error);
    if (fd < 0)
        return false;
    pthread_mutex_lock(&notifier->lock);
    notifier->channel = ch_grpc_channel_new(notifier->loop, fd, "localhost");
    if (notifier->is_ending)
        ch_grpc_channel_close(notifier->channel);
    pthread_mutex_unlock(&notifier->lock);
    if (ch_grpc_channel_wait_ready(notifier->channel, DIAL_TIMEOUT_US, error) &&
        negotiate(notifier->channel, error))
        return true;
    disconnect(notifier);
    return false;
}

/* What becomes of one attempt to tell. */
typedef enum {
    TOLD,
    NOT_TOLD, /* nobody took it; the domain may be another when it is tried again */
    REFUSED,  /* by the agent; it is not repeated */
    UNREADABLE,
} Attempt;

static Attempt
send_once(ChNotifier *notifier,
          const Kubevirt__Notify__V1__DomainEventRequest *request,
          GError **error)
{
    ProtobufCMessage *message = NULL;

    if (!ensure_connected(notifier, error))
        return NOT_TOLD;
    if (!ch_grpc_call(notifier->channel,
                      "/kubevirt.notify.v1.Notify/HandleDomainEvent",
                      &request->base,
                      &kubevirt__notify__v1__response__descriptor,
                      ATTEMPT_TIMEOUT_US,
                      &message,
                      error)) {
        disconnect(notifier);
        return NOT_TOLD;
    }
    const Kubevirt__Notify__V1__Response *response =
        (const Kubevirt__Notify__V1__Response *)message;
    const bool is_accepted = response->success;
    if (!is_accepted)
        ch_fail(error, CH_ERROR_FAILED, "failed to notify domain event: %s", response->message);
    protobuf_c_message_free_unpacked(message, NULL);
    return is_accepted ? TOLD : REFUSED;
}

/* Returns: false when the notifier ends meanwhile. */
static bool
pause_before_retry(ChNotifier *notifier)
{
    const int64_t until_us = ch_time_now_us() + RETRY_US;
    const struct timespec until = {until_us / CH_SECOND_US, until_us % CH_SECOND_US * 1000};
    int rc = 0;

    pthread_mutex_lock(&notifier->lock);
    while (!notifier->is_ending && rc == 0)
        rc = pthread_cond_timedwait(&notifier->ended, &notifier->lock, &until);
    const bool goes_on = !notifier->is_ending;
    pthread_mutex_unlock(&notifier->lock);
    return goes_on;
}

/* Reads the domain, and tells of it: the first time that there is one. */
static Attempt
attempt(ChNotifier *notifier, const Event *event, bool *out_is_deleted, GError **error)
{
    static char added[] = "ADDED";
    static char modified[] = "MODIFIED";
    g_autofree char *text = NULL;
    Kubevirt__Notify__V1__DomainEventRequest request =
        KUBEVIRT__NOTIFY__V1__DOMAIN_EVENT_REQUEST__INIT;
    Attempt result;

    if (!ch_report_event(&notifier->reporter, &text, out_is_deleted, error)) {
        g_prefix_error(error, "read the domain: ");
        return UNREADABLE;
    }
    request.domain_json.data = (uint8_t *)text;
    request.domain_json.len = strlen(text);
    request.event_type = event->is_added || !notifier->is_known ? added : modified;
    result = send_once(notifier, &request, error);
    notifier->is_known = notifier->is_known || result == TOLD;
    return result;
}

/* Each attempt tells how the domain is then: an agent that comes back must not take an old state of
 * a guest that has started meanwhile for its end. */
static Attempt
send_event(ChNotifier *notifier, const Event *event, bool *out_is_deleted)
{
    const int64_t deadline_us = ch_time_now_us() + SEND_LIMIT_US;
    g_autoptr(GError) error = NULL;
    Attempt result = attempt(notifier, event, out_is_deleted, &error);

    while (result == NOT_TOLD && ch_time_now_us() + RETRY_US <= deadline_us &&
           pause_before_retry(notifier)) {
        g_clear_error(&error);
        result = attempt(notifier, event, out_is_deleted, &error);
    }
    if (result != TOLD)
        ch_log_warning(NULL, error, "Could not send domain notify event.");
    return result;
}

static void
deliver_progress(gpointer data)
{
    const Progress *progress = data;

    progress->notifier->func(progress->notifier->data, progress->progress);
}

static void
report_progress(ChNotifier *notifier, bool is_deleted)
{
    Progress *progress = g_new0(Progress, 1);

    pthread_mutex_lock(&notifier->lock);
    notifier->progress.n_events++;
    notifier->progress.is_deletion_sent = notifier->progress.is_deletion_sent || is_deleted;
    *progress = (Progress){notifier, notifier->progress};
    pthread_mutex_unlock(&notifier->lock);
    ch_loop_post(notifier->loop, deliver_progress, progress, g_free);
}

static void
process(gpointer data)
{
    const Event *event = data;
    ChNotifier *notifier = event->notifier;
    bool is_deleted = false;

    if (is_ending(notifier))
        return;
    pthread_mutex_lock(&notifier->lock);
    notifier->is_change_waiting = false;
    pthread_mutex_unlock(&notifier->lock);
    if (send_event(notifier, event, &is_deleted) != UNREADABLE)
        report_progress(notifier, is_deleted);
}

ChNotifier *
ch_notifier_new(ChLoop *loop,
                const char *socket_path,
                const ChReporter *reporter,
                ChNotifierFunc func,
                gpointer data)
{
    ChNotifier *notifier = g_new0(ChNotifier, 1);
    pthread_condattr_t attributes;

    notifier->loop = loop;
    notifier->socket_path = g_strdup(socket_path);
    notifier->reporter = *reporter;
    notifier->func = func;
    notifier->data = data;
    pthread_mutex_init(&notifier->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&notifier->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    notifier->worker = ch_worker_new("notify", MAX_WAITING);
    return notifier;
}

typedef struct {
    ChLoop *loop;
    ChLoopFunc func;
    gpointer data;
} Ending;

static void
post_ending(gpointer data) /* the worker's last job */
{
    const Ending *ending = data;

    ch_loop_post(ending->loop, ending->func, ending->data, NULL);
}

void
ch_notifier_end(ChNotifier *notifier, ChLoopFunc func, gpointer data)
{
    Ending *ending = g_new(Ending, 1);

    *ending = (Ending){notifier->loop, func, data};
    pthread_mutex_lock(&notifier->lock);
    notifier->is_ending = true;
    pthread_cond_broadcast(&notifier->ended);
    if (notifier->channel != NULL)
        ch_grpc_channel_close(notifier->channel);
    pthread_mutex_unlock(&notifier->lock);
    if (!ch_worker_push(notifier->worker, post_ending, ending, g_free))
        func(data); /* too much waits: the end does not */
}

void
ch_notifier_free(ChNotifier *notifier)
{
    if (notifier == NULL)
        return;
    pthread_mutex_lock(&notifier->lock);
    notifier->is_ending = true;
    pthread_cond_broadcast(&notifier->ended);
    pthread_mutex_unlock(&notifier->lock);
    g_clear_pointer(&notifier->worker, ch_worker_free);
    disconnect(notifier);
    pthread_cond_destroy(&notifier->ended);
    pthread_mutex_destroy(&notifier->lock);
    g_free(notifier->socket_path);
    g_free(notifier);
}

/* Called with the lock held; the queue's own lock comes after it. */
static void
push(ChNotifier *notifier, bool is_added)
{
    Event *event = g_new(Event, 1);

    *event = (Event){notifier, is_added};
    if (!ch_worker_push(notifier->worker, process, event, g_free))
        ch_log_warning(NULL, NULL, "Too many domain events wait, ignoring one.");
    notifier->is_change_waiting = !is_added;
}

void
ch_notifier_tell_domain(ChNotifier *notifier, bool is_added)
{
    pthread_mutex_lock(&notifier->lock);
    notifier->has_domain = true;
    if (is_added || !notifier->is_change_waiting)
        push(notifier, is_added);
    pthread_mutex_unlock(&notifier->lock);
}

void
ch_notifier_tell_change(ChNotifier *notifier)
{
    pthread_mutex_lock(&notifier->lock);
    if (notifier->has_domain && !notifier->is_change_waiting)
        push(notifier, false);
    pthread_mutex_unlock(&notifier->lock);
}
