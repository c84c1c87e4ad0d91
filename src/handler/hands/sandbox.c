/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/sandbox.h"

#include <errno.h>
#include <glib.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/linux/capabilities.h"
#include "lib/linux/mount-tree.h"

static const unsigned kept_capabilities[] = {
    CAP_CHOWN,        /* the notify pipe and device nodes become the launcher's */
    CAP_DAC_OVERRIDE, /* the launcher's socket and directories belong to another user */
    CAP_FOWNER,       /* an old pipe in a directory with the sticky bit; mode of /dev/vfio/vfio */
    CAP_SYS_PTRACE,   /* /proc/PID/root of the launcher, and its namespaces by pidfd */
    CAP_NET_ADMIN,    /* links, addresses, nf_tables, taps and sysctls in the pod's network */
    CAP_SYS_ADMIN,    /* a child joins that network namespace, or a mount namespace, and mounts;
                         cgroups */
    CAP_SYS_CHROOT,   /* joining a mount namespace */
    CAP_MKNOD,        /* the nodes of hotplugged block volumes */
    CAP_SYS_RESOURCE, /* limits of locked memory */
    CAP_SYS_NICE,     /* how a VM's threads are scheduled */
};

int
ch_sandbox_drop_capabilities(void)
{
    return ch_capabilities_keep(kept_capabilities, G_N_ELEMENTS(kept_capabilities));
}

static const unsigned labeller_capabilities[] = {
    CAP_NET_ADMIN,  /* the tap */
    CAP_SYS_ADMIN,  /* joining the pod's network; a filter without `no_new_privs` */
    CAP_SYS_PTRACE, /* that network by pidfd, of another user's process */
    CAP_SETPCAP,    /* what is executed gets none of these but the first */
};

static int filter_labeller(void);

int
ch_sandbox_enter_labeller(void)
{
    const int result =
        ch_capabilities_limit(labeller_capabilities, G_N_ELEMENTS(labeller_capabilities));

    return result < 0 ? result : filter_labeller();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

int
ch_sandbox_filter_calls(void)
{
    return 0;
}

int
ch_sandbox_forbid_mounts(void)
{
    return 0;
}

static int
filter_labeller(void)
{
    return 0;
}

#else

#ifdef __s390x__
#define CLONE_FLAGS_ARGUMENT 1
#else
#define CLONE_FLAGS_ARGUMENT 0
#endif

#define NAMESPACE_FLAGS                                                                            \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

static const int allowed_calls[] = {
    /* the loop and the channels */
    SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait), /* what epoll_wait() is on new architectures */
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendmsg),
    SCMP_SYS(socketpair),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(close),
    SCMP_SYS(close_range), /* a child, of what the hands have open */
    /* files */
    SCMP_SYS(openat),
    SCMP_SYS(openat2),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(fgetxattr), /* the SELinux label of a pod's root */
    SCMP_SYS(getxattr),  /* that of pr-helper's socket */
    SCMP_SYS(setxattr),
    SCMP_SYS(inotify_init1), /* when multipathd and pr-helper come and go */
    SCMP_SYS(inotify_add_watch),
    SCMP_SYS(getdents64), /* passt's sockets have names of its own, as has an image's one file, a
                             pod's /dev */
    SCMP_SYS(readlinkat), /* a device's name in sysfs */
    SCMP_SYS(fchmodat),   /* /dev/vfio/vfio */
    SCMP_SYS(pwrite64),   /* a disk image's last byte */
    SCMP_SYS(linkat),     /* its name, where no rename leaves an existing file alone (NFS) */
    SCMP_SYS(unlinkat),
    SCMP_SYS(fchownat),
    SCMP_SYS(mkdirat),
    SCMP_SYS(renameat),
    SCMP_SYS(renameat2), /* what renameat() is on new architectures */
    SCMP_SYS(write),
    SCMP_SYS(fsync), /* a metrics disk's header, before its body changes */
    /* mounts; mount itself, and setns, below */
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(umount2),
    SCMP_SYS(statx),              /* what is the root of a mount */
    SCMP_SYS(fchmod),             /* the directory for kernels, whatever pod made it before */
    SCMP_SYS(sched_setscheduler), /* virtual CPUs, the timer's thread */
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_setaffinity),
    SCMP_SYS(fstatfs), /* a pod's devices; the space for a disk image */
    SCMP_SYS(pread64), /* an image, for its checksum */
    SCMP_SYS(read), /* mountinfo, for where a container has the socket of its disk; cgroup files */
    /* sockets; socket itself below */
    SCMP_SYS(bind),
    SCMP_SYS(listen),
    SCMP_SYS(connect),
    SCMP_SYS(getsockopt),
    /* processes; clone and prctl below */
    SCMP_SYS(pidfd_open),
    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(getpid),
    SCMP_SYS(geteuid),
    SCMP_SYS(exit_group),
    /* what fork(), free() and an interrupted call do by themselves */
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(brk),
    SCMP_SYS(munmap),
};

static bool is_filtered;

static const unsigned long tap_ioctls[] = {TUNSETIFF, TUNSETOWNER, TUNSETGROUP, TUNSETPERSIST};
static const int allowed_netlinks[] = {NETLINK_ROUTE, NETLINK_NETFILTER};

static int
add_mount_rules(scmp_filter_ctx filter)
{
    int result = seccomp_rule_add(
        filter, SCMP_ACT_ALLOW, SCMP_SYS(setns), 1, SCMP_A1(SCMP_CMP_EQ, CLONE_NEWNS));

    if (result == 0) /* to make one read-only, before Linux 5.12 */
        result = seccomp_rule_add(filter,
                                  SCMP_ACT_ALLOW,
                                  SCMP_SYS(mount),
                                  1,
                                  SCMP_A3(SCMP_CMP_EQ, CH_MOUNT_RESTRICT_FLAGS));
    if (result == 0) /* the filter of children that touch no mounts */
        result = seccomp_rule_add(filter,
                                  SCMP_ACT_ALLOW,
                                  SCMP_SYS(seccomp),
                                  1,
                                  SCMP_A0(SCMP_CMP_EQ, SECCOMP_SET_MODE_FILTER));
    return result;
}

/* A device program: made, looked at, put in the place of others. No maps, no other objects. */
static const unsigned long allowed_bpf_commands[] = {
    BPF_PROG_LOAD,
    BPF_PROG_ATTACH,
    BPF_PROG_DETACH,
    BPF_PROG_QUERY,
    BPF_PROG_GET_FD_BY_ID,
    BPF_OBJ_GET_INFO_BY_FD,
};

/* Calls that a pod's cgroup needs. */
static int
add_cgroup_rules(scmp_filter_ctx filter)
{
    int result = seccomp_rule_add(/* the node's, to see where the pod's is */
                                  filter,
                                  SCMP_ACT_ALLOW,
                                  SCMP_SYS(setns),
                                  1,
                                  SCMP_A1(SCMP_CMP_EQ, CLONE_NEWCGROUP));

    if (result == 0) /* the pod's: only its own processes have numbers there */
        result = seccomp_rule_add(
            filter, SCMP_ACT_ALLOW, SCMP_SYS(setns), 1, SCMP_A1(SCMP_CMP_EQ, CLONE_NEWPID));
    if (result == 0)
        result = seccomp_rule_add(
            filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A1(SCMP_CMP_EQ, RLIMIT_MEMLOCK));
    for (gsize i = 0; result == 0 && i < G_N_ELEMENTS(allowed_bpf_commands); i++)
        result = seccomp_rule_add(filter,
                                  SCMP_ACT_ALLOW,
                                  SCMP_SYS(bpf),
                                  1,
                                  SCMP_A0(SCMP_CMP_EQ, allowed_bpf_commands[i]));
    return result;
}

static int
allow_tap_ioctls(scmp_filter_ctx filter)
{
    int result = 0;

    for (gsize i = 0; result == 0 && i < G_N_ELEMENTS(tap_ioctls); i++)
        result = seccomp_rule_add(
            filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, tap_ioctls[i]));
    return result;
}

/* Never into a namespace of its own. */
static int
allow_fork(scmp_filter_ctx filter)
{
    return seccomp_rule_add(filter,
                            SCMP_ACT_ALLOW,
                            SCMP_SYS(clone),
                            1,
                            SCMP_CMP(CLONE_FLAGS_ARGUMENT, SCMP_CMP_MASKED_EQ, NAMESPACE_FLAGS, 0));
}

/* Calls that the pod's network needs, each with the arguments it needs. */
static int
add_network_rules(scmp_filter_ctx filter)
{
    int result = seccomp_rule_add(
        filter, SCMP_ACT_ALLOW, SCMP_SYS(setns), 1, SCMP_A1(SCMP_CMP_EQ, CLONE_NEWNET));

    if (result == 0) /* on passt's sockets, which has no right to */
        result = seccomp_rule_add(filter,
                                  SCMP_ACT_ALLOW,
                                  SCMP_SYS(setsockopt),
                                  2,
                                  SCMP_A1(SCMP_CMP_EQ, IPPROTO_TCP),
                                  SCMP_A2(SCMP_CMP_EQ, TCP_REPAIR));
    if (result == 0)
        result = allow_tap_ioctls(filter);
    if (result == 0) /* which network a socket of passt's is in */
        result = seccomp_rule_add(
            filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, SIOCGSKNS));
    for (gsize i = 0; result == 0 && i < G_N_ELEMENTS(allowed_netlinks); i++)
        result = seccomp_rule_add(filter,
                                  SCMP_ACT_ALLOW,
                                  SCMP_SYS(socket),
                                  2,
                                  SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                                  SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)allowed_netlinks[i]));
    return result;
}

static int
add_rules(scmp_filter_ctx filter)
{
    int result = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

    for (gsize i = 0; result == 0 && i < G_N_ELEMENTS(allowed_calls); i++)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed_calls[i], 0);
    if (result == 0)
        result = seccomp_rule_add(
            filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
    if (result == 0)
        result = seccomp_rule_add(
            filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG));
    if (result == 0)
        result = add_network_rules(filter);
    if (result == 0)
        result = add_mount_rules(filter);
    if (result == 0) /* of hotplugged volumes: block devices only */
        result = seccomp_rule_add(filter,
                                  SCMP_ACT_ALLOW,
                                  SCMP_SYS(mknodat),
                                  1,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT, S_IFBLK));
    if (result == 0)
        result = add_cgroup_rules(filter);
    if (result == 0)
        result = allow_fork(filter);
    return result;
}

/* @action: for all other calls */
static int
load(uint32_t action, int (*add)(scmp_filter_ctx filter))
{
    scmp_filter_ctx filter = seccomp_init(action);
    int result;

    if (filter == NULL)
        return -ENOMEM;
    result = add(filter);
    if (result == 0)
        result = seccomp_load(filter);
    seccomp_release(filter);
    return result;
}

int
ch_sandbox_filter_calls(void)
{
    const int result = load(SCMP_ACT_KILL_PROCESS, add_rules);

    is_filtered = result == 0;
    return result;
}

/* --- of the labeller */

static const int labeller_calls[] = {
    /* channels and children */
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendmsg),
    SCMP_SYS(socketpair),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(close),
    SCMP_SYS(pidfd_open),
    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(wait4),
    SCMP_SYS(waitid),
    SCMP_SYS(rt_sigaction), /* SIGCHLD's, of a child that has one */
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(exit_group),
    /* labels, networks, taps */
    SCMP_SYS(openat),
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(execve),
    /* the loader of what is executed, and the start of its libraries */
    SCMP_SYS(access),
    SCMP_SYS(faccessat),
    SCMP_SYS(arch_prctl),
    SCMP_SYS(brk),
    SCMP_SYS(fstatfs),
    SCMP_SYS(statfs),
    SCMP_SYS(futex),
    SCMP_SYS(getrandom),
    SCMP_SYS(lseek),
    SCMP_SYS(mmap),
    SCMP_SYS(mprotect),
    SCMP_SYS(munmap),
    SCMP_SYS(pread64),
    SCMP_SYS(prctl),
    SCMP_SYS(prlimit64),
    SCMP_SYS(readlink),
    SCMP_SYS(readlinkat),
    SCMP_SYS(rseq),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(set_tid_address),
    SCMP_SYS(capget), /* libcap-ng's start */
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
};

static int
add_labeller_rules(scmp_filter_ctx filter)
{
    int result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);

    for (gsize i = 0; result == 0 && i < G_N_ELEMENTS(labeller_calls); i++)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, labeller_calls[i], 0);
    if (result == 0)
        result = allow_fork(filter);
    if (result == 0)
        result = seccomp_rule_add(
            filter, SCMP_ACT_ALLOW, SCMP_SYS(setns), 1, SCMP_A1(SCMP_CMP_EQ, CLONE_NEWNET));
    if (result == 0)
        result = allow_tap_ioctls(filter);
    return result;
}

static int
filter_labeller(void)
{
    return load(SCMP_ACT_ERRNO(ENOSYS), add_labeller_rules);
}

/* What the kernel sees of an argument first: its lower half is enough for flags, and those bits of
 * the upper half that are set make the first filter end the process. */
#define LOW_HALF(argument)                                                                         \
    ((unsigned)(offsetof(struct seccomp_data, args) + 8u * (argument) +                            \
                (G_BYTE_ORDER == G_BIG_ENDIAN ? 4u : 0u)))
#define LOAD(offset)              BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
/* Goes on to the next instruction when it is not @value, else skips @n_skipped. */
#define SKIP_IF(value, n_skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (n_skipped), 0)
#define RETURN(action)            BPF_STMT(BPF_RET | BPF_K, (action))

int
ch_sandbox_forbid_mounts(void)
{
    /* Architectures are told apart by the first filter; libseccomp would take memory. */
    static struct sock_filter program[] = {
        LOAD(offsetof(struct seccomp_data, nr)),
        SKIP_IF(__NR_open_tree, 9),
        SKIP_IF(__NR_move_mount, 8),
        SKIP_IF(__NR_mount_setattr, 7),
        SKIP_IF(__NR_mount, 6),
        SKIP_IF(__NR_umount2, 5),
        SKIP_IF(__NR_setns, 1),
        RETURN(SECCOMP_RET_ALLOW),
        LOAD(LOW_HALF(1)),
        SKIP_IF(CLONE_NEWNS, 1),
        RETURN(SECCOMP_RET_ALLOW),
        RETURN(SECCOMP_RET_KILL_PROCESS),
    };
    static const struct sock_fprog filter = {G_N_ELEMENTS(program), program};

    if (!is_filtered)
        return 0;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, &filter) < 0 ? -errno : 0;
}

#endif
