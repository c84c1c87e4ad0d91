/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/launcher-questions.h"

#include "lib/base/crash-point.h"

struct ChLauncherQuestions {
    ChLoop *loop;
    ChWorkerPool *pool;
    guint max_at_once;
    ChAskFunc ask;
    ChAnswerFunc answer;
    gpointer data;

    GHashTable
        *open;      /* key (borrowed from the value) -> Question, borrowed: waiting or under way */
    GQueue waiting; /* Question, owned; those that no worker has yet */
    guint n_asking; /* those that a worker has */
};

typedef struct {
    ChLauncherQuestions *questions;
    ChGhostRecord *record; /* owned */
    char *key;             /* owned */
    ChAskOccasion occasion;
    bool is_outdated; /* an event told of the domain since: the answer may be older */

    ChGhostRecord *next_record; /* owned (nullable): to be asked about when this one is answered */
    ChAskOccasion next_occasion;

    ChLauncherAnswer given; /* set by the worker */
} Question;

static void
question_free(gpointer data)
{
    Question *question = data;

    ch_ghost_record_free(question->record);
    g_free(question->key);
    ch_ghost_record_free(question->next_record);
    ch_known_domain_unref(question->given.domain);
    g_clear_error(&question->given.error);
    g_free(question);
}

static void ask_next(ChLauncherQuestions *questions);

static void
deliver(gpointer data) /* loop thread */
{
    Question *question = data;
    ChLauncherQuestions *questions = question->questions;

    CH_CRASH_POINT("domain/answered");
    questions->n_asking--;
    (void)g_hash_table_remove(questions->open, question->key); /* the post frees it */
    if (!question->is_outdated)
        questions->answer(questions->data, question->record, question->occasion, &question->given);
    if (question->next_record != NULL)
        ch_launcher_questions_ask(questions, question->next_record, question->next_occasion);
    ask_next(questions);
}

static void
run(gpointer data) /* worker */
{
    Question *question = data;
    ChLauncherQuestions *questions = question->questions;

    questions->ask(questions->data, question->record, &question->given);
    ch_loop_post(questions->loop, deliver, question, question_free);
}

static void
ask_next(ChLauncherQuestions *questions)
{
    while (questions->n_asking < questions->max_at_once && !g_queue_is_empty(&questions->waiting)) {
        questions->n_asking++;
        ch_worker_pool_run(
            questions->pool, run, g_queue_pop_head(&questions->waiting), question_free);
    }
}

static void
ask_afterwards(Question *question, const ChGhostRecord *record, ChAskOccasion occasion)
{
    if (question->next_record == NULL)
        question->next_occasion = occasion;
    question->next_occasion = MAX(question->next_occasion, occasion);
    ch_ghost_record_free(question->next_record);
    question->next_record = ch_ghost_record_copy(record);
}

void
ch_launcher_questions_ask(ChLauncherQuestions *questions,
                          const ChGhostRecord *record,
                          ChAskOccasion occasion)
{
    g_autofree char *key = g_strdup_printf("%s/%s", record->namespace_, record->name);
    Question *question = g_hash_table_lookup(questions->open, key);

    if (question != NULL) {
        if (question->is_outdated || !g_str_equal(question->record->uid, record->uid))
            ask_afterwards(question, record, occasion);
        else
            question->occasion = MAX(question->occasion, occasion);
        return;
    }
    question = g_new0(Question, 1);
    question->questions = questions;
    question->record = ch_ghost_record_copy(record);
    question->key = g_steal_pointer(&key);
    question->occasion = occasion;
    g_hash_table_insert(questions->open, question->key, question);
    g_queue_push_tail(&questions->waiting, question);
    ask_next(questions);
}

void
ch_launcher_questions_note_event(ChLauncherQuestions *questions, const char *key)
{
    Question *question = g_hash_table_lookup(questions->open, key);

    if (question != NULL)
        question->is_outdated = true;
}

ChLauncherQuestions *
ch_launcher_questions_new(ChLoop *loop,
                          ChWorkerPool *pool,
                          guint max_at_once,
                          ChAskFunc ask,
                          ChAnswerFunc answer,
                          gpointer data)
{
    ChLauncherQuestions *questions = g_new0(ChLauncherQuestions, 1);

    questions->loop = loop;
    questions->pool = pool;
    questions->max_at_once = max_at_once;
    questions->ask = ask;
    questions->answer = answer;
    questions->data = data;
    questions->open = g_hash_table_new(g_str_hash, g_str_equal);
    g_queue_init(&questions->waiting);
    return questions;
}

void
ch_launcher_questions_free(ChLauncherQuestions *questions)
{
    if (questions == NULL)
        return;
    g_hash_table_unref(questions->open);
    g_queue_clear_full(&questions->waiting, question_free);
    g_free(questions);
}
