/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-cgroup: cgroups of a test's own, below those that are there. Needs root and the
 * hierarchy. For test programs only.
 */

#pragma once

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    char *dir; /* owned; NULL: there is none, and the test is skipped */
} FakeCgroup;

/* @parent: a directory of a cgroup file system, "/sys/fs/cgroup/devices" say; @file: what must be
 * in it. */
static inline void
fake_cgroup_init(FakeCgroup *cgroup, const char *parent, const char *file)
{
    g_autofree char *probe = g_build_filename(parent, file, NULL);

    cgroup->dir = NULL;
    if (geteuid() != 0 || !g_file_test(probe, G_FILE_TEST_EXISTS))
        return;
    /* A test in a pid namespace of its own has a number that others have too. */
    cgroup->dir = g_strdup_printf("%s/ch-test-%d-%08x", parent, (int)getpid(), g_random_int());
    if (mkdir(cgroup->dir, 0755) < 0)
        g_clear_pointer(&cgroup->dir, g_free);
}

/* For the start of a test; true: return. */
static inline bool
fake_cgroup_skip(const FakeCgroup *cgroup, const char *what)
{
    if (cgroup->dir != NULL)
        return false;
    g_test_skip(what);
    return true;
}

/* @path: below it. */
static inline bool
fake_cgroup_write(const FakeCgroup *cgroup, const char *path, const char *text)
{
    g_autofree char *file = g_build_filename(cgroup->dir, path, NULL);
    const int fd = open(file, O_WRONLY | O_CLOEXEC);
    const bool is_done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return is_done;
}

/* (transfer full) */
static inline char *
fake_cgroup_read(const FakeCgroup *cgroup, const char *path)
{
    g_autofree char *file = g_build_filename(cgroup->dir, path, NULL);
    char *text = NULL;

    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    return text;
}

static inline void
fake_cgroup_take(const FakeCgroup *cgroup, pid_t pid)
{
    g_autofree char *number = g_strdup_printf("%d", (int)pid);

    g_assert_true(fake_cgroup_write(cgroup, "cgroup.procs", number));
}

/* The processes in it have ended: the kernel lets go of it soon. */
static inline void
fake_cgroup_clear(FakeCgroup *cgroup)
{
    const gint64 deadline_us = g_get_monotonic_time() + 30 * G_USEC_PER_SEC;

    while (cgroup->dir != NULL && rmdir(cgroup->dir) < 0 && errno == EBUSY &&
           g_get_monotonic_time() < deadline_us)
        g_usleep(10000);
    g_clear_pointer(&cgroup->dir, g_free);
}

/* Whether a process in it may open a node with these numbers: asked of the kernel by one. The open
 * itself may find no such device. */
static inline bool
fake_cgroup_may_open(const FakeCgroup *cgroup, mode_t type, unsigned major_number, unsigned minor)
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        char path[64];
        int fd;

        fake_cgroup_take(cgroup, getpid());
        (void)snprintf(path, sizeof(path), "/tmp/ch-test-node-%d", (int)getpid());
        (void)unlink(path);
        if (mknod(path, type | 0600, makedev(major_number, minor)) < 0)
            _exit(errno == EPERM ? 1 : 2);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        (void)unlink(path);
        _exit(fd < 0 && errno == EPERM);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 0;
}
