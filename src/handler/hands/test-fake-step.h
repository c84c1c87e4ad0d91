/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-step: a step in a child, as the hands do it: it ends in another namespace. For test
 * programs only.
 */

#pragma once

#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handler/hands/protocol.h"

/* @path: (nullable) */
typedef bool (*FakeStep)(const ChHandsRequest *request, const char *path, ChHandsReply *reply);

static inline ChHandsReply
fake_step_run(FakeStep step, ChHandsRequest request, const char *path)
{
    ChHandsReply reply = {0};
    int channel[2];
    pid_t child;

    request.n_bytes = path != NULL ? (uint32_t)strlen(path) : 0;
    g_assert_cmpint(pipe2(channel, O_CLOEXEC), ==, 0);
    child = fork();
    if (child == 0) {
        const bool is_done = step(&request, path, &reply);

        if (is_done != (reply.errnum == 0))
            _exit(3);
        _exit(write(channel[1], &reply, sizeof(reply)) == sizeof(reply) ? 0 : 2);
    }
    close(channel[1]);
    g_assert_cmpint(read(channel[0], &reply, sizeof(reply)), ==, sizeof(reply));
    close(channel[0]);
    waitpid(child, NULL, 0);
    if (reply.errnum != 0)
        g_test_message("step %u: %s", reply.step, reply.text);
    return reply;
}
