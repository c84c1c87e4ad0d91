/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/cgroup.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "handler/hands/test-fake-cgroup.h"
#include "lib/base/fd.h"
#include "lib/linux/cgroup-path.h"

#define V1   "/sys/fs/cgroup/devices"
#define V2   "/sys/fs/cgroup/unified"
#define SKIP "needs root and the hierarchy"

typedef struct {
    FakeCgroup fake;
    pid_t pid;
    int pidfd;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    const char *parent = data;

    fake_cgroup_init(&f->fake, parent, "cgroup.procs");
    f->pid = fork();
    if (f->pid == 0) {
        alarm(120);
        for (;;)
            pause();
    }
    f->pidfd = (int)syscall(SYS_pidfd_open, f->pid, 0);
    g_assert_cmpint(f->pidfd, >=, 0);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    close(f->pidfd);
    fake_cgroup_clear(&f->fake);
}

/* @controller: one that there is none of leads to v2. Returns whether it was opened, with the
 * answer. */
static bool
open_it(const Fixture *f, const char *controller, ChCgroup *out, ChHandsReply *reply)
{
    *out = CH_CGROUP_INIT;
    *reply = (ChHandsReply){0};
    return ch_cgroup_open(f->pid, f->pidfd, controller, out, reply);
}

static void
assert_is(int fd, const char *path)
{
    struct stat opened, expected;

    g_assert_cmpint(fstat(fd, &opened), ==, 0);
    g_assert_cmpint(g_stat(path, &expected), ==, 0);
    g_assert_cmpuint(opened.st_dev, ==, expected.st_dev);
    g_assert_cmpuint(opened.st_ino, ==, expected.st_ino);
}

static void
test_v1(Fixture *f, gconstpointer data)
{
    ch_autocgroup ChCgroup cgroup = CH_CGROUP_INIT;
    ChHandsReply reply;

    if (fake_cgroup_skip(&f->fake, SKIP))
        return;
    fake_cgroup_take(&f->fake, f->pid);
    g_assert_true(open_it(f, "devices", &cgroup, &reply));
    assert_is(cgroup.dir_fd, f->fake.dir);
    g_assert_false(cgroup.is_unified);
    g_assert_false(cgroup.is_ours);
    g_assert_cmpint(cgroup.scope_fd, <, 0);
}

static void
test_v2(Fixture *f, gconstpointer data)
{
    ch_autocgroup ChCgroup cgroup = CH_CGROUP_INIT;
    ChHandsReply reply;

    if (fake_cgroup_skip(&f->fake, SKIP))
        return;
    fake_cgroup_take(&f->fake, f->pid);
    g_assert_true(open_it(f, "no-such-controller", &cgroup, &reply));
    assert_is(cgroup.dir_fd, f->fake.dir);
    g_assert_true(cgroup.is_unified);
    g_assert_false(cgroup.is_ours);
}

/* A process that has no cgroup of its own has the agent's. */
static void
test_ours(Fixture *f, gconstpointer data)
{
    ch_autocgroup ChCgroup cgroup = CH_CGROUP_INIT;
    ChHandsReply reply;

    if (fake_cgroup_skip(&f->fake, SKIP))
        return;
    g_assert_true(open_it(f, "devices", &cgroup, &reply));
    g_assert_true(cgroup.is_ours);
}

/* spec:05-16.5#131: in `housekeeping`, as this agent leaves it: the container is its parent. */
static void
test_housekeeping(Fixture *f, gconstpointer data)
{
    ch_autocgroup ChCgroup cgroup = CH_CGROUP_INIT;
    FakeCgroup child = {NULL};
    ChHandsReply reply;

    if (fake_cgroup_skip(&f->fake, SKIP))
        return;
    child.dir = g_build_filename(f->fake.dir, CH_CGROUP_HOUSEKEEPING, NULL);
    g_assert_cmpint(mkdir(child.dir, 0755), ==, 0);
    fake_cgroup_take(&child, f->pid);
    g_assert_true(open_it(f, "no-such-controller", &cgroup, &reply));
    assert_is(cgroup.dir_fd, f->fake.dir);
    ch_cgroup_close(&cgroup);
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    fake_cgroup_clear(&child);
}

/* spec:05-16.5#125 */
static void
test_scope(Fixture *f, gconstpointer data)
{
    g_autofree char *scope = NULL;
    ch_autocgroup ChCgroup cgroup = CH_CGROUP_INIT;
    FakeCgroup container = {NULL};
    ChHandsReply reply;

    if (fake_cgroup_skip(&f->fake, SKIP))
        return;
    scope = g_build_filename(f->fake.dir, "crio-456.scope", NULL);
    container.dir = g_build_filename(scope, "container", NULL);
    g_assert_cmpint(mkdir(scope, 0755), ==, 0);
    g_assert_cmpint(mkdir(container.dir, 0755), ==, 0);
    fake_cgroup_take(&container, f->pid);
    g_assert_true(open_it(f, "no-such-controller", &cgroup, &reply));
    assert_is(cgroup.dir_fd, container.dir);
    assert_is(cgroup.scope_fd, scope);
    ch_cgroup_close(&cgroup);
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    fake_cgroup_clear(&container);
    g_assert_cmpint(rmdir(scope), ==, 0);
}

/* The number may be another process's by now. */
static void
test_ended(Fixture *f, gconstpointer data)
{
    ch_autocgroup ChCgroup cgroup = CH_CGROUP_INIT;
    ChHandsReply reply;

    kill(f->pid, SIGKILL); /* and still there, as nobody waits for it */
    while (waitid(P_PID, (id_t)f->pid, &(siginfo_t){0}, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    g_assert_false(open_it(f, "devices", &cgroup, &reply));
    g_assert_cmpint(reply.errnum, !=, 0);
    g_assert_cmpint(cgroup.dir_fd, <, 0);
}

static pid_t
start_sleeper(void)
{
    const pid_t pid = fork();

    if (pid == 0) {
        alarm(120);
        for (;;)
            pause();
    }
    return pid;
}

/* The agent. Returns 0, or which step failed. */
static int
look_from_private_namespace(const FakeCgroup *own, const FakeCgroup *pod, pid_t pod_pid)
{
    const Fixture f = {.pid = pod_pid, .pidfd = (int)syscall(SYS_pidfd_open, pod_pid, 0)};
    ch_autocgroup ChCgroup cgroup = CH_CGROUP_INIT;
    g_autofree char *text = NULL;
    g_autofree char *file = g_strdup_printf("/proc/%d/cgroup", (int)pod_pid);
    struct stat opened, expected;
    ChHandsReply reply;

    fake_cgroup_take(own, getpid());
    if (unshare(CLONE_NEWCGROUP) < 0)
        return 2;
    if (!g_file_get_contents(file, &text, NULL, NULL) || strstr(text, "0::/../pod\n") == NULL)
        return 3; /* else nothing is tested here */
    if (!open_it(&f, "no-such-controller", &cgroup, &reply))
        return 4;
    if (fstat(cgroup.dir_fd, &opened) < 0 || stat(pod->dir, &expected) < 0)
        return 5;
    return opened.st_ino == expected.st_ino && !cgroup.is_ours ? 0 : 6;
}

/* A node of its own, whose init this process is. Returns as above. */
static int
run_node(const FakeCgroup *own, const FakeCgroup *pod)
{
    int status = 0;
    pid_t agent_pid, pod_pid;

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", 0, NULL) < 0)
        return 7;
    pod_pid = start_sleeper();
    fake_cgroup_take(pod, pod_pid);
    agent_pid = fork();
    if (agent_pid == 0)
        _exit(look_from_private_namespace(own, pod, pod_pid));
    while (waitpid(agent_pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 8; /* its end ends the pod */
}

static int
wait_status(pid_t pid)
{
    int status = 0;

    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* field:FR-Q02: an agent in a cgroup namespace of its own, whose root is its own cgroup: what the
 * kernel tells of a pod's begins with "/..". The namespace of the node's init shows it. */
static void
test_private_namespace(Fixture *f, gconstpointer data)
{
    FakeCgroup own = {NULL}, pod = {NULL};
    pid_t starter;

    if (fake_cgroup_skip(&f->fake, SKIP))
        return;
    own.dir = g_build_filename(f->fake.dir, "agent", NULL);
    pod.dir = g_build_filename(f->fake.dir, "pod", NULL);
    g_assert_cmpint(mkdir(own.dir, 0755), ==, 0);
    g_assert_cmpint(mkdir(pod.dir, 0755), ==, 0);
    starter = fork();
    if (starter == 0) {
        pid_t init;

        if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
            _exit(9);
        init = fork();
        if (init == 0)
            _exit(run_node(&own, &pod));
        _exit(wait_status(init));
    }
    g_assert_cmpint(wait_status(starter), ==, 0);
    fake_cgroup_clear(&own);
    fake_cgroup_clear(&pod);
}

#define ADD(path, parent, func)                                                                    \
    g_test_add("/cgroup/" path, Fixture, parent, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("v1", V1, test_v1);
    ADD("v2", V2, test_v2);
    ADD("ours", V1, test_ours);
    ADD("housekeeping", V2, test_housekeeping);
    ADD("scope", V2, test_scope);
    ADD("ended", V1, test_ended);
    ADD("private-namespace", V2, test_private_namespace);
    return g_test_run();
}
