/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/bpf.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/linux/mount-tree.h"

/* Runs @func in a child behind the sandbox. Returns its wait status. */
static int
run_sandboxed(void (*func)(void))
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        if (ch_sandbox_drop_capabilities() < 0 || ch_sandbox_filter_calls() < 0)
            syscall(SYS_exit_group, 99);
        func();
        syscall(SYS_exit_group, 0);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    return status;
}

static void
call_inet_socket(void)
{
    (void)socket(AF_INET, SOCK_STREAM, 0);
}

static void
call_netlink_socket(void)
{
    (void)socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT);
}

static void
call_mount(void)
{
    (void)mount(NULL, "/", NULL, MS_PRIVATE, NULL);
}

static void
call_setns(void)
{
    (void)setns(-1, CLONE_NEWUSER);
}

static void
call_fsopen(void)
{
    (void)fsopen("tmpfs", 0);
}

static void
call_pivot_root(void)
{
    (void)syscall(SYS_pivot_root, "/", "/");
}

/* --- by a child that touches no mounts */

static void
call_mounts_setns(void)
{
    if (ch_sandbox_forbid_mounts() == 0)
        (void)setns(-1, CLONE_NEWNS);
}

static void
call_mounts_open_tree(void)
{
    if (ch_sandbox_forbid_mounts() == 0)
        (void)open_tree(-1, "", AT_EMPTY_PATH);
}

static void
call_mounts_move(void)
{
    if (ch_sandbox_forbid_mounts() == 0)
        (void)move_mount(-1, "", -1, "", MOVE_MOUNT_F_EMPTY_PATH);
}

static void
call_mounts_setattr(void)
{
    if (ch_sandbox_forbid_mounts() == 0)
        (void)mount_setattr(-1, "", AT_EMPTY_PATH, NULL, 0);
}

static void
call_mounts_mount(void)
{
    if (ch_sandbox_forbid_mounts() == 0)
        (void)mount(NULL, "/nonexistent", NULL, CH_MOUNT_RESTRICT_FLAGS, NULL);
}

static void
call_mounts_umount(void)
{
    if (ch_sandbox_forbid_mounts() == 0)
        (void)umount2("/nonexistent", MNT_DETACH);
}

static void
call_unshare(void)
{
    (void)unshare(CLONE_FS);
}

static void
call_new_namespace(void)
{
    (void)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
}

static void
call_exec(void)
{
    (void)execl("/bin/true", "true", (char *)NULL);
}

static void
call_ptrace(void)
{
    (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static void
call_kill(void)
{
    (void)kill(getpid(), 0);
}

static void
call_other_limit(void)
{
    (void)prlimit(0, RLIMIT_NOFILE, NULL, &(struct rlimit){0});
}

static void
call_bpf_map(void)
{
    (void)syscall(SYS_bpf, BPF_MAP_CREATE, NULL, 0);
}

static void
call_terminal_ioctl(void)
{
    int n = 0;

    (void)ioctl(STDIN_FILENO, FIONREAD, &n);
}

static void
call_executable_memory(void)
{
    (void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void
call_other_option(void)
{
    const int one = 1;

    (void)setsockopt(-1, SOL_SOCKET, SO_MARK, &one, sizeof(one));
}

static void
call_other_nodes(void)
{
    (void)mknodat(-1, "x", S_IFCHR | 0600, 0);
}

static void
call_prctl(void)
{
    (void)prctl(PR_SET_NAME, "x");
}

static const struct {
    const char *path;
    void (*func)(void);
} forbidden[] = {
    {"inet-socket", call_inet_socket},
    {"other-netlink-socket", call_netlink_socket},
    {"mount", call_mount},
    {"setns-of-users", call_setns},
    {"new-file-system", call_fsopen},
    {"pivot-root", call_pivot_root},
    {"without-mounts/setns", call_mounts_setns},
    {"without-mounts/open-tree", call_mounts_open_tree},
    {"without-mounts/move-mount", call_mounts_move},
    {"without-mounts/mount-setattr", call_mounts_setattr},
    {"without-mounts/mount", call_mounts_mount},
    {"without-mounts/umount", call_mounts_umount},
    {"unshare", call_unshare},
    {"new-namespace", call_new_namespace},
    {"exec", call_exec},
    {"ptrace", call_ptrace},
    {"kill", call_kill},
    {"bpf-map", call_bpf_map},
    {"other-limit", call_other_limit},
    {"other-ioctl", call_terminal_ioctl},
    {"executable-memory", call_executable_memory},
    {"other-socket-option", call_other_option},
    {"other-prctl", call_prctl},
    {"character-device", call_other_nodes},
};

static bool
skip_without_filter(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    g_test_skip("a sanitizer's build has no filter");
    return true;
#else
    return false;
#endif
}

static void
test_forbidden(gconstpointer data)
{
    void (*const *func)(void) = data;
    int status;

    if (skip_without_filter())
        return;
    status = run_sandboxed(*func);
    g_assert_true(WIFSIGNALED(status));
    g_assert_cmpint(WTERMSIG(status), ==, SIGSYS);
}

static void
call_allowed(void)
{
    const pid_t child = fork();
    char text[8];
    struct statfs fs;

    if (child == 0)
        _exit(0);
    if (child < 0 || socket(AF_UNIX, SOCK_STREAM, 0) < 0 || open("/", O_PATH) < 0)
        _exit(3);
    if (socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) < 0 ||
        socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER) < 0)
        _exit(4);
    if (close_range(100, 200, 0) != 0)
        _exit(7);
    if (setns(-1, CLONE_NEWNET) != -1 || errno != EBADF)
        _exit(5);
    if (syscall(SYS_bpf, BPF_PROG_LOAD, NULL, 0) != -1 || errno == ENOSYS)
        _exit(8);
    if (setns(-1, CLONE_NEWCGROUP) != -1 || errno != EBADF)
        _exit(9);
    if (setns(-1, CLONE_NEWPID) != -1 || errno != EBADF)
        _exit(10);
    if (prlimit(0, RLIMIT_MEMLOCK, NULL, &(struct rlimit){0}) != 0)
        _exit(11);
    if (sched_getaffinity(0, sizeof(cpu_set_t), &(cpu_set_t){0}) < 0)
        _exit(12);
    if (fgetxattr(-1, "security.selinux", NULL, 0) != -1 || errno != EBADF)
        _exit(7);
    if (getxattr("/nonexistent", "security.selinux", NULL, 0) != -1 || errno != ENOENT ||
        setxattr("/nonexistent", "security.selinux", NULL, 0, 0) != -1 || errno != ENOENT)
        _exit(7);
    if (inotify_add_watch(-1, "/", IN_CREATE) != -1 || errno != EBADF || inotify_init1(-1) != -1 ||
        errno != EINVAL)
        _exit(7);
    if (readlinkat(-1, "x", text, sizeof(text)) != -1 || getdents64(-1, text, sizeof(text)) != -1 ||
        fchmodat(-1, "x", 0, 0) != -1)
        _exit(8);
    if (fstatfs(-1, &fs) != -1 || pwrite(-1, "", 1, 0) != -1 || linkat(-1, "x", -1, "y", 0) != -1)
        _exit(9);
    if (fsync(-1) != -1 || errno != EBADF)
        _exit(17);
    if (ioctl(-1, TUNSETPERSIST, 1ul) != -1 || errno != EBADF)
        _exit(6);
    if (ioctl(-1, SIOCGSKNS) != -1 || errno != EBADF)
        _exit(8);
    if (setsockopt(-1, IPPROTO_TCP, TCP_REPAIR, NULL, 0) != -1 || errno != EBADF)
        _exit(9);
    if (syscall(SYS_getdents64, -1, NULL, 0) != -1 || errno != EBADF)
        _exit(10);
    if (mknodat(-1, "x", S_IFBLK | 0600, 0) != -1 || errno != EBADF)
        _exit(16);
}

static void
call_mounts(void)
{
    struct statx stx;
    char byte;

    if (setns(-1, CLONE_NEWNS) != -1 || errno != EBADF)
        _exit(8);
    if (open_tree(-1, "", AT_EMPTY_PATH) != -1 || errno != EBADF)
        _exit(9);
    if (move_mount(-1, "", -1, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != -1 ||
        errno == ENOSYS)
        _exit(10);
    if (mount_setattr(-1, "", AT_EMPTY_PATH, NULL, 0) != -1)
        _exit(11);
    if (mount(NULL, "/nonexistent", NULL, CH_MOUNT_RESTRICT_FLAGS, NULL) != -1 || errno != ENOENT)
        _exit(12);
    if (umount2("/nonexistent", MNT_DETACH) != -1 || errno != ENOENT)
        _exit(13);
    if (statx(-1, "", AT_EMPTY_PATH, 0, &stx) != -1 || errno != EBADF || fchmod(-1, 0) != -1 ||
        errno != EBADF || getdents64(-1, &byte, 1) != -1 || errno != EBADF ||
        read(-1, &byte, 1) != -1 || errno != EBADF || pread(-1, &byte, 1, 0) != -1 ||
        errno != EBADF)
        _exit(14);
}

/* A child without mounts does the rest as before. */
static void
call_allowed_without_mounts(void)
{
    if (ch_sandbox_forbid_mounts() != 0)
        _exit(15);
    call_allowed();
}

static void
test_allowed(void)
{
    g_assert_cmpint(run_sandboxed(call_allowed), ==, 0);
    g_assert_cmpint(run_sandboxed(call_allowed_without_mounts), ==, 0);
    g_assert_cmpint(run_sandboxed(call_mounts), ==, 0);
}

/* --- the labeller's */

#define REFUSED(call) ((call) == -1 && errno == ENOSYS)
#define ALLOWED(call) ((call) != -1 || errno != ENOSYS)

static void
call_as_labeller(void)
{
    siginfo_t info;
    int n = 0;

    if (ch_sandbox_enter_labeller() < 0)
        _exit(1);
    if (!REFUSED(socket(AF_UNIX, SOCK_STREAM, 0)) || !REFUSED(socket(AF_INET, SOCK_STREAM, 0)) ||
        !REFUSED(mount(NULL, "/", NULL, MS_PRIVATE, NULL)) ||
        !REFUSED(umount2("/nonexistent", MNT_DETACH)) ||
        !REFUSED(open_tree(-1, "", AT_EMPTY_PATH)) || !REFUSED(fsopen("tmpfs", 0)))
        _exit(2);
    if (!REFUSED(setns(-1, CLONE_NEWNS)) || !REFUSED(setns(-1, CLONE_NEWUSER)) ||
        !REFUSED(setns(-1, 0)) || !REFUSED(unshare(CLONE_FS)) ||
        !REFUSED(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)) ||
        !REFUSED(syscall(SYS_clone3, NULL, 0)))
        _exit(3);
    if (!REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL)) || !REFUSED(kill(getpid(), 0)) ||
        !REFUSED(syscall(SYS_bpf, BPF_PROG_LOAD, NULL, 0)) ||
        !REFUSED(ioctl(STDIN_FILENO, FIONREAD, &n)) || !REFUSED(ioctl(-1, SIOCGSKNS)) ||
        !REFUSED(mknodat(-1, "x", S_IFBLK | 0600, 0)) || !REFUSED(chown("/nonexistent", 0, 0)) ||
        !REFUSED(unlink("/nonexistent")) || !REFUSED(rename("/nonexistent", "/nonexistent2")))
        _exit(4);
    if (!ALLOWED(setns(-1, CLONE_NEWNET)) || !ALLOWED(ioctl(-1, TUNSETIFF, NULL)) ||
        !ALLOWED(ioctl(-1, TUNSETPERSIST, 1ul)) || !ALLOWED(execl("/nonexistent", "x", NULL)) ||
        !ALLOWED(waitid(P_ALL, 0, &info, WEXITED | WNOHANG)))
        _exit(5);
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0)
        _exit(6);
}

static void
test_labeller(void)
{
    int status = 0;
    pid_t child;

    if (skip_without_filter())
        return;
    if (geteuid() != 0) {
        g_test_skip("needs root: a filter without no_new_privs");
        return;
    }
    child = fork();
    if (child == 0) {
        call_as_labeller();
        _exit(0);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(forbidden); i++) {
        g_autofree char *path = g_strconcat("/sandbox/kills-on/", forbidden[i].path, NULL);

        g_test_add_data_func(path, &forbidden[i].func, test_forbidden);
    }
    g_test_add_func("/sandbox/allows-what-is-needed", test_allowed);
    g_test_add_func("/sandbox/labeller", test_labeller);
    return g_test_run();
}
