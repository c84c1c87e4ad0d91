/* SPDX-License-Identifier: Apache-2.0 */

/*
 * launcher-questions: which launchers are being asked for their domains, and which answers count.
 *
 * Theory of operation: a launcher is asked once at a time, some launchers at once. Who asks while
 * the question waits, or is under way, shares its answer. An event that tells of the domain
 * meanwhile makes that answer old: it is dropped, and a question that comes after the event is
 * asked anew, as is one for another VM of that name. Spec 01 §11.1, §11.3. Thread: the loop's.
 */

#pragma once

#include "handler/watch/launcher-query.h"
#include "lib/io/worker-pool.h"

/* Who wants to know; a later one includes the earlier ones. */
typedef enum {
    CH_ASK_AGAIN,  /* what no answer came to before */
    CH_ASK_RESYNC, /* adds what events did not tell */
    CH_ASK_LIST,   /* replaces what was known */
} ChAskOccasion;

typedef struct {
    ChLauncherQueryOutcome outcome;
    ChKnownDomain *domain; /* (nullable) */
    GError *error;         /* (nullable) */
} ChLauncherAnswer;

/* Asks one launcher; fills @out_answer (transfer full). Thread: a worker's. */
typedef void (*ChAskFunc)(gpointer data, const ChGhostRecord *record, ChLauncherAnswer *out_answer);

/* Takes an answer that counts; it is freed afterwards. Thread: the loop's. */
typedef void (*ChAnswerFunc)(gpointer data,
                             const ChGhostRecord *record,
                             ChAskOccasion occasion,
                             const ChLauncherAnswer *answer);

typedef struct ChLauncherQuestions ChLauncherQuestions;

/**
 * ch_launcher_questions_new:
 * @max_at_once: of @pool's workers that may be busy with questions
 * @data: for both functions
 */
ChLauncherQuestions *ch_launcher_questions_new(ChLoop *loop,
                                               ChWorkerPool *pool,
                                               guint max_at_once,
                                               ChAskFunc ask,
                                               ChAnswerFunc answer,
                                               gpointer data);

/* When no worker runs any more. */
void ch_launcher_questions_free(ChLauncherQuestions *questions);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChLauncherQuestions, ch_launcher_questions_free)

/* @record: copied */
void ch_launcher_questions_ask(ChLauncherQuestions *questions,
                               const ChGhostRecord *record,
                               ChAskOccasion occasion);

/* An event told of the domain with this key: answers to what was asked before may be older. */
void ch_launcher_questions_note_event(ChLauncherQuestions *questions, const char *key);
