/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-root: the root of a fake pod, opened as children of the hands get it, beside a file of
 * the host's that no pod may change. For test programs only; without root there is none.
 */

#pragma once

#include "handler/hands/test-fake-pod.h"
#include "lib/base/fd.h"

#define FAKE_VICTIM "victim" /* the host's file, in pod.dir */

typedef struct {
    FakePod pod;
    int root_fd; /* owned; -EBADF: not root */
} FakeRoot;

/* This and the next one as a fixture's. */
static inline void
fake_root_set_up(FakeRoot *f, gconstpointer data)
{
    f->root_fd = -EBADF;
    if (geteuid() != 0)
        return;
    (void)umask(022);
    fake_pod_init(&f->pod);
    test_tree_write(f->pod.dir, FAKE_VICTIM, "the host's");
    f->root_fd = open(f->pod.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(f->root_fd, >=, 0);
}

static inline void
fake_root_tear_down(FakeRoot *f, gconstpointer data)
{
    if (f->root_fd < 0)
        return;
    /* Whatever the pod did, the host's file is as it was. */
    g_assert_cmpint(test_tree_stat(f->pod.dir, FAKE_VICTIM).st_uid, ==, 0);
    ch_close_fd(&f->root_fd);
    fake_pod_clear(&f->pod);
}
