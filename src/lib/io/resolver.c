/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/resolver.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/io/http-message.h"

/* What the thread and the resolver share; the last one frees it. The eventfd announces the answer,
 * the lock (which ThreadSanitizer can see) hands it over. */
typedef struct {
    pthread_mutex_t lock; /* guards n_refs and what is below it */
    int n_refs;
    ChAddress addresses[CH_RESOLVER_MAX_ADDRESSES];
    gsize n_addresses;
    int verdict; /* of getaddrinfo() */
    char *host;  /* not changed after the start, nor are these */
    char port[8];
    int done_fd; /* -EBADF: no thread was needed */
} Question;

struct ChResolver {
    Question *question;
    ChTimer *soon;    /* the answer is there already, or */
    ChFdWatch *watch; /* the thread will announce it */
    ChResolverFunc func;
    gpointer data;
};

static void
question_unref(Question *question)
{
    int n_refs;

    pthread_mutex_lock(&question->lock);
    n_refs = --question->n_refs;
    pthread_mutex_unlock(&question->lock);
    if (n_refs > 0)
        return;
    pthread_mutex_destroy(&question->lock);
    ch_close_fd(&question->done_fd);
    g_free(question->host);
    g_free(question);
}

/* Any thread. */
static void
question_ask(Question *question, const char *host, int flags)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    const int verdict = getaddrinfo(host, question->port, &hints, &list);

    pthread_mutex_lock(&question->lock);
    question->verdict = verdict;
    for (struct addrinfo *info = list; info != NULL; info = info->ai_next) {
        ChAddress *address = &question->addresses[question->n_addresses];

        if (question->n_addresses == CH_RESOLVER_MAX_ADDRESSES)
            break;
        memcpy(&address->storage, info->ai_addr, info->ai_addrlen);
        address->length = info->ai_addrlen;
        question->n_addresses++;
    }
    pthread_mutex_unlock(&question->lock);
    if (list != NULL)
        freeaddrinfo(list);
}

/* Without any file or server. Returns: false: the name needs a look-up */
static bool
question_ask_locally(Question *question)
{
    if (g_ascii_strcasecmp(question->host, "localhost") == 0) {
        question_ask(question, "127.0.0.1", AI_NUMERICHOST);
        question_ask(question, "::1", AI_NUMERICHOST);
        return true;
    }
    question_ask(question, question->host, AI_NUMERICHOST);
    return question->verdict == 0;
}

static void *
thread_main(void *data)
{
    Question *question = data;
    const uint64_t one = 1;

    pthread_setname_np(pthread_self(), "resolver");
    question_ask(question, question->host, AI_ADDRCONFIG);
    (void)!write(question->done_fd, &one, sizeof one); /* a counter of 1 always fits */
    question_unref(question);
    return NULL;
}

static void
deliver(ChResolver *resolver)
{
    Question *question = resolver->question;
    ChAddress addresses[CH_RESOLVER_MAX_ADDRESSES];
    g_autoptr(GError) error = NULL;
    gsize n_addresses;

    pthread_mutex_lock(&question->lock);
    n_addresses = question->n_addresses;
    memcpy(addresses, question->addresses, sizeof addresses);
    if (n_addresses == 0)
        error = g_error_new(CH_HTTP_ERROR,
                            CH_HTTP_ERROR_CONNECT,
                            "look up '%s': %s",
                            question->host,
                            gai_strerror(question->verdict));
    pthread_mutex_unlock(&question->lock);
    resolver->func(resolver->data, addresses, n_addresses, error);
}

static void
on_soon(gpointer data)
{
    deliver(data);
}

static void
on_done(int fd, short what, gpointer data)
{
    ChResolver *resolver = data;

    g_clear_pointer(&resolver->watch, ch_fd_watch_free); /* once */
    deliver(resolver);
}

/* Returns: false: the system has no descriptor or no thread to spare */
static bool
start_thread(Question *question)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int errnum;

    question->verdict = EAI_AGAIN;
    question->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (question->done_fd < 0)
        return false;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    question->n_refs++;
    errnum = pthread_create(&thread, &attributes, thread_main, question);
    pthread_attr_destroy(&attributes);
    if (errnum == 0)
        return true;
    question->n_refs--;
    return false;
}

ChResolver *
ch_resolver_new(ChLoop *loop, const char *host, uint16_t port, ChResolverFunc func, gpointer data)
{
    ChResolver *resolver = g_new0(ChResolver, 1);
    Question *question = g_new0(Question, 1);

    pthread_mutex_init(&question->lock, NULL);
    question->n_refs = 1;
    question->host = g_strdup(host);
    g_snprintf(question->port, sizeof question->port, "%u", port);
    question->done_fd = -EBADF;

    resolver->question = question;
    resolver->func = func;
    resolver->data = data;
    if (!question_ask_locally(question) && start_thread(question)) {
        resolver->watch = ch_fd_watch_new(loop, question->done_fd, EV_READ, on_done, resolver);
    } else {
        resolver->soon = ch_timer_new(loop, on_soon, resolver);
        ch_timer_arm(resolver->soon, 0);
    }
    return resolver;
}

void
ch_resolver_free(ChResolver *resolver)
{
    if (resolver == NULL)
        return;
    ch_timer_free(resolver->soon);
    ch_fd_watch_free(resolver->watch);
    question_unref(resolver->question);
    g_free(resolver);
}
