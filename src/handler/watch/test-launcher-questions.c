/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/launcher-questions.h"

#include <pthread.h>

#include "lib/base/errors.h"
#include "lib/io/test-wait.h"

#define MAX_AT_ONCE 2

typedef struct {
    ChLoop *loop;
    ChWorkerPool *pool;
    ChLauncherQuestions *questions;
    pthread_mutex_t lock; /* guards the next three; pthread: TSan does not see inside GLib */
    pthread_cond_t opened;
    bool is_open; /* launchers answer */
    int n_asked;
    GString *answers; /* UID:occasion of each that counted */
} Fixture;

static void
ask_slowly(gpointer data, const ChGhostRecord *record, ChLauncherAnswer *out_answer)
{
    Fixture *f = data;

    pthread_mutex_lock(&f->lock);
    f->n_asked++;
    while (!f->is_open)
        pthread_cond_wait(&f->opened, &f->lock);
    pthread_mutex_unlock(&f->lock);
    out_answer->outcome = CH_LAUNCHER_QUERY_UNREACHABLE;
    out_answer->error = g_error_new(CH_ERROR, CH_ERROR_FAILED, "%s is silent", record->uid);
}

static void
take(gpointer data,
     const ChGhostRecord *record,
     ChAskOccasion occasion,
     const ChLauncherAnswer *answer)
{
    Fixture *f = data;

    g_assert_cmpint(answer->outcome, ==, CH_LAUNCHER_QUERY_UNREACHABLE);
    g_assert_true(g_str_has_prefix(answer->error->message, record->uid));
    g_string_append_printf(f->answers, "%s:%d ", record->uid, occasion);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->opened, NULL);
    f->loop = ch_loop_new();
    f->pool = ch_worker_pool_new(1, 8);
    f->questions = ch_launcher_questions_new(f->loop, f->pool, MAX_AT_ONCE, ask_slowly, take, f);
    f->answers = g_string_new(NULL);
}

static void
set_gate(Fixture *f, bool is_open)
{
    pthread_mutex_lock(&f->lock);
    f->is_open = is_open;
    pthread_cond_broadcast(&f->opened);
    pthread_mutex_unlock(&f->lock);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_worker_pool_free(f->pool);
    ch_launcher_questions_free(f->questions);
    ch_loop_free(f->loop);
    g_string_free(f->answers, TRUE);
    (void)pthread_cond_destroy(&f->opened);
    (void)pthread_mutex_destroy(&f->lock);
}

static int
n_asked(Fixture *f)
{
    int n;

    pthread_mutex_lock(&f->lock);
    n = f->n_asked;
    pthread_mutex_unlock(&f->lock);
    return n;
}

static void
ask(Fixture *f, const char *name, const char *uid, ChAskOccasion occasion)
{
    const ChGhostRecord record = {.name = (char *)name,
                                  .namespace_ = (char *)"ns",
                                  .uid = (char *)uid,
                                  .socket_file = (char *)"/s"};

    ch_launcher_questions_ask(f->questions, &record, occasion);
}

static void
test_shared(Fixture *f, gconstpointer data)
{
    ask(f, "vm", "a", CH_ASK_LIST);
    ask(f, "vm", "a", CH_ASK_AGAIN);
    test_wait_until(f->loop, n_asked(f) == 1);
    ask(f, "vm", "a", CH_ASK_RESYNC);
    set_gate(f, true);
    test_wait_until(f->loop, f->answers->len > 0);
    ask(f, "vm", "a", CH_ASK_RESYNC); /* answered before: a question of its own */
    test_wait_until(f->loop, f->answers->len > 4);
    g_assert_cmpstr(f->answers->str, ==, "a:2 a:1 ");
    g_assert_cmpint(n_asked(f), ==, 2);
}

static void
test_outdated(Fixture *f, gconstpointer data)
{
    ask(f, "vm", "a", CH_ASK_LIST);
    ask(f, "other", "b", CH_ASK_RESYNC);
    test_wait_until(f->loop, n_asked(f) == 2);
    ch_launcher_questions_note_event(f->questions, "ns/vm");
    ch_launcher_questions_note_event(f->questions, "ns/nobody");
    set_gate(f, true);
    test_wait_until(f->loop, f->answers->len > 0);
    test_wait_us(f->loop, 1000);
    g_assert_cmpstr(f->answers->str, ==, "b:1 ");
}

/* What is asked after the event wants an answer that is younger than the event. */
static void
test_asked_after_an_event(Fixture *f, gconstpointer data)
{
    ask(f, "vm", "a", CH_ASK_LIST);
    test_wait_until(f->loop, n_asked(f) == 1);
    ch_launcher_questions_note_event(f->questions, "ns/vm");
    ask(f, "vm", "a", CH_ASK_RESYNC);
    ask(f, "vm", "a", CH_ASK_AGAIN);
    set_gate(f, true);
    test_wait_until(f->loop, f->answers->len > 0);
    g_assert_cmpstr(f->answers->str, ==, "a:1 ");
    g_assert_cmpint(n_asked(f), ==, 2);
}

static void
test_successor(Fixture *f, gconstpointer data)
{
    ask(f, "vm", "a", CH_ASK_LIST);
    test_wait_until(f->loop, n_asked(f) == 1);
    ask(f, "vm", "new", CH_ASK_AGAIN);
    set_gate(f, true);
    test_wait_until(f->loop, f->answers->len > 4);
    g_assert_cmpstr(f->answers->str, ==, "a:2 new:0 ");
}

static void
test_at_once(Fixture *f, gconstpointer data)
{
    ask(f, "1", "a", CH_ASK_LIST);
    ask(f, "2", "b", CH_ASK_LIST);
    ask(f, "3", "c", CH_ASK_LIST);
    test_wait_until(f->loop, n_asked(f) == MAX_AT_ONCE);
    test_wait_us(f->loop, 1000);
    g_assert_cmpint(n_asked(f), ==, MAX_AT_ONCE);
    set_gate(f, true);
    test_wait_until(f->loop, f->answers->len == 12);
    g_assert_nonnull(strstr(f->answers->str, "c:2"));
}

/* The end comes while one waits and two are under way. */
static void
test_end(Fixture *f, gconstpointer data)
{
    test_at_once(f, data);
    set_gate(f, false);
    ask(f, "1", "a", CH_ASK_LIST);
    ask(f, "2", "b", CH_ASK_LIST);
    ask(f, "3", "c", CH_ASK_LIST);
    ask(f, "1", "d", CH_ASK_LIST);
    test_wait_until(f->loop, n_asked(f) == 3 + MAX_AT_ONCE);
    set_gate(f, true);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, func)                                                                            \
    g_test_add("/launcher-questions/" path, Fixture, NULL, set_up, func, tear_down)
    ADD("shared", test_shared);
    ADD("outdated", test_outdated);
    ADD("asked-after-an-event", test_asked_after_an_event);
    ADD("successor", test_successor);
    ADD("at-once", test_at_once);
    ADD("end", test_end);
    return g_test_run();
}
