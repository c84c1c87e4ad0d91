/* SPDX-License-Identifier: Apache-2.0 */

/*
 * loop: the event loop on its thread (libevent), work posted to it, timers, signals, descriptor
 * watches.
 *
 * Theory of operation: one ChLoop is one event_base and one thread that runs it. All objects made
 * for a loop (timers, connections, ...) belong to its thread; other threads reach it only by
 * ch_loop_post(), whose queue is guarded by a pthread mutex (TSan sees it, unlike GLib's) and
 * signalled by an eventfd. Loop-only functions assert their thread.
 */

#pragma once

#include <event2/event.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ChLoop ChLoop;
typedef void (*ChLoopFunc)(gpointer data);

/* Thread: any. Aborts when the kernel gives no event base. Also ignores SIGPIPE, process-wide:
 * libevent writes to sockets in a way that raises it. */
ChLoop *ch_loop_new(void);
void
ch_loop_free(ChLoop *loop); /* not running any more; drops posted work by its destroy functions */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChLoop, ch_loop_free)

/* Runs on the calling thread, which becomes the loop's thread, until ch_loop_stop(). */
void ch_loop_run(ChLoop *loop);
/* Runs on a thread of its own; ch_loop_join() waits for it after ch_loop_stop(). */
void ch_loop_start(ChLoop *loop, const char *thread_name);
void ch_loop_join(ChLoop *loop);
void ch_loop_stop(ChLoop *loop); /* Thread: any */

/* For libraries that want the base (evhttp, bufferevents). Borrowed. */
struct event_base *ch_loop_peek_base(ChLoop *loop);
/* Borrowed: bytes for whoever runs on the loop's thread; anybody's again once it returns to the
 * loop. */
#define CH_LOOP_SCRATCH_BYTES (17u << 10)
uint8_t *ch_loop_peek_scratch(ChLoop *loop);
/* True on the loop's thread, and before the loop runs (set-up). */
bool ch_loop_is_current(const ChLoop *loop);

/**
 * ch_loop_post: runs @func(@data) once on the loop's thread, in the order of the posts, then
 * @destroy(@data).
 * @destroy: (nullable): also called, alone, when the loop is freed before the work ran
 * Thread: any, the loop's own included (it runs in a later turn).
 */
void ch_loop_post(ChLoop *loop, ChLoopFunc func, gpointer data, GDestroyNotify destroy);

/* One-shot timers, re-armed by the owner. Loop thread only. Freeing disarms. */
typedef struct ChTimer ChTimer;
ChTimer *ch_timer_new(ChLoop *loop, ChLoopFunc func, gpointer data);
void ch_timer_arm(ChTimer *timer,
                  int64_t delay_us); /* replaces an earlier deadline; <= 0: next turn */
void ch_timer_disarm(ChTimer *timer);
bool ch_timer_is_armed(const ChTimer *timer);
void ch_timer_free(ChTimer *timer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChTimer, ch_timer_free)

/* @func runs on the loop's thread, not in the signal handler. Block the signal in no thread. Only
 * one loop of a process may have signals (libevent keeps that loop in a global). */
typedef struct ChSignal ChSignal;
typedef void (*ChSignalFunc)(int signo, gpointer data);
ChSignal *ch_signal_new(ChLoop *loop, int signo, ChSignalFunc func, gpointer data);
void ch_signal_free(ChSignal *signal);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChSignal, ch_signal_free)

/* Level-triggered readiness of a descriptor that the caller owns and keeps open. @what: EV_READ
 * and/or EV_WRITE. */
typedef struct ChFdWatch ChFdWatch;
typedef void (*ChFdFunc)(int fd, short what, gpointer data);
ChFdWatch *ch_fd_watch_new(ChLoop *loop, int fd, short what, ChFdFunc func, gpointer data);
void ch_fd_watch_free(ChFdWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChFdWatch, ch_fd_watch_free)
