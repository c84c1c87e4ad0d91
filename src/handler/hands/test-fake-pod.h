/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-pod: a pod for tests: kubelet's directory for it, and a launcher process with a root of
 * its own that listens on the command socket. Needs root. For test programs only.
 */

#pragma once

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/linux/test-tree.h"

#define FAKE_POD_BACKLOG 16 /* connections that wait, where nobody accepts them */

typedef struct {
    char *dir;      /* temporary: pods/ and root/ */
    char *pods_dir; /* dir/pods */
    char *root;     /* dir/root, the launcher's root */
    char *sockets;  /* kubelet's directory `sockets` of the pod */
    pid_t pid;      /* of the launcher, 0: none */
    pid_t heir;     /* of its child that kept the listening socket, 0: none */
    bool accepts;   /* the launcher takes connections and closes them; else they wait */
} FakePod;

#define FAKE_POD_UID "aaaabbbb-0000-4000-8000-000000000001"

/* For the start of a test that needs it; true: return. */
static inline bool
fake_pod_skip(void)
{
    if (geteuid() == 0)
        return false;
    g_test_skip("needs root: mounts, chown, device nodes");
    return true;
}

/* The same for a test in which mount namespaces are joined. */
static inline bool
fake_pod_skip_mounts(void)
{
#ifdef __SANITIZE_THREAD__
    g_test_skip("ThreadSanitizer's own thread keeps a process from joining mount namespaces");
    return true;
#else
    return fake_pod_skip();
#endif
}

static inline void
fake_pod_init(FakePod *pod)
{
    pod->dir = test_tree_new();
    pod->pods_dir = g_build_filename(pod->dir, "pods", NULL);
    pod->root = g_build_filename(pod->dir, "root", NULL);
    pod->sockets = g_build_filename(
        pod->pods_dir, FAKE_POD_UID, "volumes/kubernetes.io~empty-dir/sockets", NULL);
    pod->pid = pod->heir = 0;
    pod->accepts = false;
    test_tree_mkdir(pod->sockets, ".");
    /* As in a launcher image: /var/run is a link. */
    test_tree_mkdir(pod->root, "run/kubevirt/sockets");
    test_tree_mkdir(pod->root, "var");
    test_tree_mkdir(pod->root, "dev/net");
    test_tree_link(pod->root, "var/run", "/run");
}

static inline void
fake_pod_must(bool is_fine, const char *what)
{
    if (is_fine)
        return;
    g_printerr("fake pod: %s: %s\n", what, g_strerror(errno));
    _exit(1);
}

/* @dir: of any length; there is no /proc below the launcher's root, and none is needed */
static inline int
fake_pod_listen_with(const char *dir, const char *name, int backlog)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    g_autofree char *path = strlen(dir) < 60 ? g_build_filename(dir, name, NULL)
                                             : g_strdup_printf("/proc/self/fd/%d/%s", dir_fd, name);

    fake_pod_must(g_strlcpy(address.sun_path, path, sizeof(address.sun_path)) <
                      sizeof(address.sun_path),
                  "socket path");
    (void)unlink(path);
    fake_pod_must(bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0, "bind");
    fake_pod_must(listen(fd, backlog) == 0, "listen");
    close(dir_fd);
    return fd;
}

static inline int
fake_pod_listen(const char *dir, const char *name)
{
    return fake_pod_listen_with(dir, name, FAKE_POD_BACKLOG);
}

/* On a busy machine who accepts may be late by a whole test. */
static inline int
fake_pod_backlog(bool accepts)
{
    return accepts ? SOMAXCONN : FAKE_POD_BACKLOG;
}

static inline void
fake_pod_serve(int fd, bool accepts)
{
    while (accepts)
        close(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
    for (;;)
        pause();
}

static inline void
fake_pod_mount(const FakePod *pod)
{
    g_autofree char *target = g_build_filename(pod->root, "run/kubevirt/sockets", NULL);

    fake_pod_must(mount(pod->sockets, target, NULL, MS_BIND, NULL) == 0, "bind mount");
}

/* The launcher: a mount namespace and root of its own, the emptyDir mounted in it. */
static inline void
fake_pod_launcher(const FakePod *pod, int ready_fd, bool leaves_listener)
{
    pid_t self;
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fake_pod_must(unshare(CLONE_NEWNS) == 0, "unshare");
    fake_pod_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "make private");
    fake_pod_mount(pod);
    fake_pod_must(chroot(pod->root) == 0 && chdir("/") == 0, "chroot");
    fd = fake_pod_listen_with(
        "/var/run/kubevirt/sockets", "launcher-sock", fake_pod_backlog(pod->accepts));
    if (leaves_listener && fork() != 0)
        _exit(0); /* the child keeps the listening socket, whose owner is gone */
    if (leaves_listener)
        alarm(60); /* an heir has no parent whose end would end it */
    self = getpid();
    fake_pod_must(write(ready_fd, &self, sizeof(self)) == sizeof(self), "say ready");
    fake_pod_serve(fd, pod->accepts);
}

/* Starts the launcher and waits until it listens. */
static inline void
fake_pod_start_launcher(FakePod *pod, bool leaves_listener)
{
    int ready[2];
    pid_t listener;

    g_assert_cmpint(pipe2(ready, O_CLOEXEC), ==, 0);
    pod->pid = fork();
    if (pod->pid == 0)
        fake_pod_launcher(pod, ready[1], leaves_listener);
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &listener, sizeof(listener)), ==, sizeof(listener));
    close(ready[0]);
    pod->heir = leaves_listener ? listener : 0;
}

static inline void
fake_pod_kill_launcher(FakePod *pod)
{
    if (pod->pid > 0) {
        kill(pod->pid, SIGKILL);
        waitpid(pod->pid, NULL, 0);
    }
    if (pod->heir > 0)
        kill(pod->heir, SIGKILL);
    pod->pid = pod->heir = 0;
}

static inline void
fake_pod_clear(FakePod *pod)
{
    fake_pod_kill_launcher(pod);
    test_tree_remove(pod->dir);
    g_free(pod->dir);
    g_free(pod->pods_dir);
    g_free(pod->root);
    g_free(pod->sockets);
}

/* (transfer full) */
static inline char *
fake_pod_path(const FakePod *pod, const char *in_root)
{
    return g_build_filename(pod->root, in_root, NULL);
}
