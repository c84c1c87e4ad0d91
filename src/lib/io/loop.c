/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Values of `owner` that are no thread: nobody runs the loop; ch_loop_start() was called, but its
 * thread is not there yet. */
#define OWNER_NONE     ((pthread_t)0)
#define OWNER_STARTING (~(pthread_t)0)

typedef struct Post Post;
struct Post {
    Post *next;
    ChLoopFunc func;
    gpointer data;
    GDestroyNotify destroy;
};

struct ChLoop {
    struct event_base *base;
    uint8_t *scratch;
    _Atomic pthread_t owner;
    atomic_bool wants_stop;
    int wake_fd;
    struct event *wake;
    pthread_mutex_t lock; /* guards the queue below; never held while anything of it runs */
    Post *first;
    Post **tail;
    pthread_t thread; /* of ch_loop_start() */
    char *thread_name;
};

/* The whole queue, in order; what is posted from now on belongs to a later turn. */
static Post *
queue_steal(ChLoop *loop)
{
    Post *posts;

    pthread_mutex_lock(&loop->lock);
    posts = loop->first;
    loop->first = NULL;
    loop->tail = &loop->first;
    pthread_mutex_unlock(&loop->lock);
    return posts;
}

static void
post_free(Post *post)
{
    if (post->destroy != NULL)
        post->destroy(post->data);
    g_free(post);
}

static void
wake(ChLoop *loop)
{
    const uint64_t one = 1;
    ssize_t written;

    do
        written = write(loop->wake_fd, &one, sizeof one);
    while (written < 0 && errno == EINTR);
    /* EAGAIN would mean 2^64-2 wake-ups that nobody read: the loop is awake then. */
}

static void
on_wake(evutil_socket_t fd, short what, void *data)
{
    ChLoop *loop = data;
    uint64_t count;
    Post *post;

    (void)!read(fd, &count, sizeof count); /* only resets the counter */
    post = queue_steal(loop);
    while (post != NULL) {
        Post *next = post->next;

        post->func(post->data);
        post_free(post);
        post = next;
    }
    if (atomic_load(&loop->wants_stop))
        event_base_loopbreak(loop->base);
}

static struct event_base *
new_base(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base;

    /* Other threads come in by ch_loop_post() only, so the base needs no locks. Its precise timers
     * would cost a system call in each turn: ours look at the clock themselves, see on_timer(). */
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    base = event_base_new_with_config(config);
    event_config_free(config);
    if (base == NULL)
        g_error("no event base");
    return base;
}

ChLoop *
ch_loop_new(void)
{
    ChLoop *loop = g_new0(ChLoop, 1);

    /* Bufferevents write with writev(2), which knows no MSG_NOSIGNAL. */
    signal(SIGPIPE, SIG_IGN);

    loop->base = new_base();
    loop->scratch = g_malloc(CH_LOOP_SCRATCH_BYTES);
    loop->tail = &loop->first;
    pthread_mutex_init(&loop->lock, NULL);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0)
        g_error("eventfd: %s", g_strerror(errno));
    loop->wake = event_new(loop->base, loop->wake_fd, EV_READ | EV_PERSIST, on_wake, loop);
    event_add(loop->wake, NULL);
    return loop;
}

void
ch_loop_free(ChLoop *loop)
{
    Post *post;

    if (loop == NULL)
        return;
    g_assert(atomic_load(&loop->owner) == OWNER_NONE);

    /* A destroy function may post once more. */
    while ((post = queue_steal(loop)) != NULL) {
        while (post != NULL) {
            Post *next = post->next;

            post_free(post);
            post = next;
        }
    }
    event_free(loop->wake);
    event_base_free(loop->base);
    close(loop->wake_fd);
    pthread_mutex_destroy(&loop->lock);
    g_free(loop->thread_name);
    g_free(loop->scratch);
    g_free(loop);
}

void
ch_loop_run(ChLoop *loop)
{
    atomic_store(&loop->owner, pthread_self());
    event_base_dispatch(loop->base); /* ends by on_wake() only: the wake event never goes away */
    atomic_store(&loop->wants_stop, false);
    atomic_store(&loop->owner, OWNER_NONE);
}

static void *
thread_main(void *data)
{
    ChLoop *loop = data;

    pthread_setname_np(pthread_self(), loop->thread_name);
    ch_loop_run(loop);
    return NULL;
}

void
ch_loop_start(ChLoop *loop, const char *thread_name)
{
    int errnum;

    g_assert(atomic_load(&loop->owner) == OWNER_NONE);

    g_free(loop->thread_name);
    loop->thread_name = g_strndup(thread_name, 15); /* the kernel's limit */
    atomic_store(&loop->owner, OWNER_STARTING);
    errnum = pthread_create(&loop->thread, NULL, thread_main, loop);
    if (errnum != 0)
        g_error("thread '%s': %s", thread_name, g_strerror(errnum));
}

void
ch_loop_join(ChLoop *loop)
{
    pthread_join(loop->thread, NULL);
}

void
ch_loop_stop(ChLoop *loop)
{
    atomic_store(&loop->wants_stop, true);
    wake(loop);
}

struct event_base *
ch_loop_peek_base(ChLoop *loop)
{
    return loop->base;
}

uint8_t *
ch_loop_peek_scratch(ChLoop *loop)
{
    return loop->scratch;
}

bool
ch_loop_is_current(const ChLoop *loop)
{
    const pthread_t owner = atomic_load(&loop->owner);

    return owner == OWNER_NONE || owner == pthread_self();
}

void
ch_loop_post(ChLoop *loop, ChLoopFunc func, gpointer data, GDestroyNotify destroy)
{
    Post *post = g_new0(Post, 1);
    bool was_empty;

    post->func = func;
    post->data = data;
    post->destroy = destroy;

    pthread_mutex_lock(&loop->lock);
    was_empty = loop->first == NULL;
    *loop->tail = post;
    loop->tail = &post->next;
    pthread_mutex_unlock(&loop->lock);
    if (was_empty)
        wake(loop);
}

/* Timers */

struct ChTimer {
    ChLoop *loop;
    struct event *event;
    int64_t due_us;
    ChLoopFunc func;
    gpointer data;
};

static void
add_timer(ChTimer *timer, int64_t delay_us)
{
    const struct timeval tv = {.tv_sec = delay_us / G_USEC_PER_SEC,
                               .tv_usec = delay_us % G_USEC_PER_SEC};

    /* Delays count from now, not from when this turn of the loop began. */
    event_base_update_cache_time(timer->loop->base);
    evtimer_add(timer->event, &tv);
}

/* The base's clock is a coarse one: it is up to 4 ms early. */
static void
on_timer(evutil_socket_t fd, short what, void *data)
{
    ChTimer *timer = data;
    const int64_t left_us = timer->due_us - g_get_monotonic_time();

    if (left_us > 0)
        add_timer(timer, left_us);
    else
        timer->func(timer->data); /* may free the timer */
}

ChTimer *
ch_timer_new(ChLoop *loop, ChLoopFunc func, gpointer data)
{
    ChTimer *timer = g_new0(ChTimer, 1);

    g_assert(ch_loop_is_current(loop));
    timer->loop = loop;
    timer->func = func;
    timer->data = data;
    timer->event = evtimer_new(loop->base, on_timer, timer);
    return timer;
}

void
ch_timer_arm(ChTimer *timer, int64_t delay_us)
{
    const int64_t delay = MAX(delay_us, 0);

    g_assert(ch_loop_is_current(timer->loop));
    timer->due_us = g_get_monotonic_time() + delay;
    add_timer(timer, delay);
}

void
ch_timer_disarm(ChTimer *timer)
{
    g_assert(ch_loop_is_current(timer->loop));
    evtimer_del(timer->event);
}

bool
ch_timer_is_armed(const ChTimer *timer)
{
    return evtimer_pending(timer->event, NULL);
}

void
ch_timer_free(ChTimer *timer)
{
    if (timer == NULL)
        return;
    g_assert(ch_loop_is_current(timer->loop));
    event_free(timer->event);
    g_free(timer);
}

/* Signals */

struct ChSignal {
    struct event *event;
    ChSignalFunc func;
    gpointer data;
};

static void
on_signal(evutil_socket_t signo, short what, void *data)
{
    ChSignal *sig = data;

    sig->func(signo, sig->data);
}

ChSignal *
ch_signal_new(ChLoop *loop, int signo, ChSignalFunc func, gpointer data)
{
    ChSignal *sig = g_new0(ChSignal, 1);

    g_assert(ch_loop_is_current(loop));
    sig->func = func;
    sig->data = data;
    sig->event = evsignal_new(loop->base, signo, on_signal, sig);
    evsignal_add(sig->event, NULL);
    return sig;
}

void
ch_signal_free(ChSignal *sig)
{
    if (sig == NULL)
        return;
    event_free(sig->event);
    g_free(sig);
}

/* Descriptor watches */

struct ChFdWatch {
    struct event *event;
    ChFdFunc func;
    gpointer data;
};

static void
on_fd(evutil_socket_t fd, short what, void *data)
{
    ChFdWatch *watch = data;

    watch->func(fd, what, watch->data);
}

ChFdWatch *
ch_fd_watch_new(ChLoop *loop, int fd, short what, ChFdFunc func, gpointer data)
{
    ChFdWatch *watch = g_new0(ChFdWatch, 1);

    g_assert(ch_loop_is_current(loop));
    watch->func = func;
    watch->data = data;
    watch->event = event_new(loop->base, fd, (short)(what | EV_PERSIST), on_fd, watch);
    event_add(watch->event, NULL);
    return watch;
}

void
ch_fd_watch_free(ChFdWatch *watch)
{
    if (watch == NULL)
        return;
    event_free(watch->event);
    g_free(watch);
}
