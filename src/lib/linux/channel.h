/* SPDX-License-Identifier: Apache-2.0 */

/*
 * channel: whole records over SOCK_SEQPACKET, with a descriptor or two.
 *
 * Allocates nothing, errors are -errno, safe in a forked child. Thread: any; one reader and one
 * writer at a time per descriptor.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Two connected ends, close-on-exec. Returns 0 or -errno. */
int ch_channel_pair(int out_fds[2]);

/**
 * ch_channel_send: sends one record without waiting.
 * @pass_fd: a descriptor to send along (borrowed), or negative
 *
 * Returns: 0 or -errno: -EAGAIN (the queue is full), -EPIPE or -ECONNRESET (the other end is gone)
 */
int ch_channel_send(int channel_fd, const void *record, size_t n_bytes, int pass_fd);

/**
 * ch_channel_receive: takes one record without waiting.
 * @buffer: of @size bytes
 * @out_fd: (optional): the descriptor sent along, close-on-exec, else -EBADF; NULL: none is taken,
 *   a record with one is refused and the kernel drops it
 *
 * Returns: the record's bytes, 0 when the other end is gone, -EAGAIN (none there), -EMSGSIZE
 * (larger than @size), -EPROTO (descriptors beyond those wanted), or another -errno; a refused
 * record is consumed
 */
ssize_t ch_channel_receive(int channel_fd, void *buffer, size_t size, int *out_fd);

#define CH_CHANNEL_MAX_FDS 2

/* The same with @n_fds descriptors, all of them there, up to CH_CHANNEL_MAX_FDS. */
int ch_channel_send_fds(
    int channel_fd, const void *record, size_t n_bytes, const int *pass_fds, size_t n_fds);

/* The same with room for @n_fds, up to CH_CHANNEL_MAX_FDS, in the order in which they were sent;
 * those that were not are -EBADF. */
ssize_t
ch_channel_receive_fds(int channel_fd, void *buffer, size_t size, int *out_fds, size_t n_fds);

/* Waits until a record or the end is there. @deadline_us: monotonic. Returns 0, -ETIMEDOUT or
 * another -errno. */
int ch_channel_wait(int channel_fd, int64_t deadline_us);
