/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-injection-cases: one request and more for each operation of the hands, with what makes the
 * hands do all of their work again. For test programs only.
 */

#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "handler/hands/test-injector.h"

#define CASE_DISKS FAKE_POD_UID "/" FAKE_DISKS
#define CASE_PLUGS FAKE_POD_UID "/" FAKE_HOTPLUG

/* --- files */

/* What is mounted there goes too. */
static inline void
case_drop(const Injector *injector, const char *below)
{
    g_autofree char *path = fake_all_path(&injector->all, below);

    while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        ;
    if (g_file_test(path, G_FILE_TEST_IS_DIR))
        test_tree_remove(path);
    (void)unlink(path);
}

static inline void
case_give_back(const Injector *injector, const char *below, mode_t mode)
{
    g_autofree char *path = fake_all_path(&injector->all, below);

    g_assert_cmpint(lchown(path, 0, 0), ==, 0);
    g_assert_cmpint(chmod(path, mode), ==, 0);
}

static inline void
case_must(Injector *injector, const ChHandsRequest *request, const char *bytes)
{
    const InjectorAnswer answer =
        injector_ask(injector, request, bytes, bytes != NULL ? strlen(bytes) : 0, false);

    if (!answer.has_come || answer.reply.errnum != 0)
        g_error("%s: %s", ch_hands_op_name(request->op), answer.reply.text);
}

/* --- launchers and pipes */

static inline void
case_no_marker(Injector *injector, ChHandsRequest *request)
{
    case_drop(injector, "pods/" FAKE_POD_UID "/" CH_HANDS_SOCKETS_DIR "/launcher-unresponsive");
}

static inline void
case_connect(Injector *injector, ChHandsRequest *request)
{
    const ChHandsRequest connect = {.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID};

    request->handle = injector_do(injector, &connect).reply.handle;
    g_assert_cmpuint(request->handle, !=, 0);
}

static inline void
case_no_pipe(Injector *injector, ChHandsRequest *request)
{
    case_drop(injector, "root/run/kubevirt/domain-notify-pipe.sock");
}

static inline void
case_pipe(Injector *injector, ChHandsRequest *request)
{
    const ChHandsRequest open = {.op = CH_HANDS_OP_PIPE_OPEN, .handle = injector->handle};
    const ChHandsReply reply = injector_do(injector, &open).reply;

    request->dev = reply.dev;
    request->ino = reply.ino;
}

/* --- owners */

static inline void
case_devices(Injector *injector, ChHandsRequest *request)
{
    static const char *const paths[] = {
        "kvm", "mshv", "vhost-vsock", "sev", "vfio/vfio", "vfio/7", "vhost-net", "net/tun"};

    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *below = g_build_filename("root/dev", paths[i], NULL);

        case_give_back(injector, below, 0600);
    }
}

static inline void
case_block(Injector *injector, ChHandsRequest *request)
{
    case_give_back(injector, "root/dev/block", 0600);
}

static inline void
case_virtiofs(Injector *injector, ChHandsRequest *request)
{
    case_give_back(injector, "root/run/kubevirt/virtiofs-containers/share.sock", 0600);
}

static inline void
case_cache(Injector *injector, ChHandsRequest *request)
{
    case_give_back(injector, "private/" CH_HANDS_CACHE_DIR "/" FAKE_ALL_VMI "/.net.new", 0600);
}

static inline void
case_no_image(Injector *injector, ChHandsRequest *request)
{
    case_drop(injector, "root/" FAKE_ALL_PRIVATE "/vmi-disks/data/disk.img");
    case_give_back(injector, "root/" FAKE_ALL_PRIVATE "/vmi-disks/data", 0755);
}

static inline void
case_old_metrics(Injector *injector, ChHandsRequest *request)
{
    test_tree_write(injector->all.pod.root, FAKE_ALL_PRIVATE "/downwardapi-disks/vhostmd0", "1");
}

static inline void
case_reservation(Injector *injector, ChHandsRequest *request)
{
    g_autofree char *dir = fake_all_path(&injector->all, "share/daemons/pr");
    g_autofree char *socket = g_build_filename(dir, "pr-helper.sock", NULL);

    case_give_back(injector, "share/daemons/pr", 0755);
    case_give_back(injector, "share/daemons/pr/pr-helper.sock", 0755);
    (void)lremovexattr(dir, "security.selinux");
    (void)lremovexattr(socket, "security.selinux");
}

static inline void
case_describe_labels(const Injector *injector, GString *out)
{
    static const char *const paths[] = {"share/daemons/pr", "share/daemons/pr/pr-helper.sock"};

    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *path = fake_all_path(&injector->all, paths[i]);
        char text[128] = "";

        (void)lgetxattr(path, "security.selinux", text, sizeof(text) - 1);
        g_string_append_printf(out, "%s\n", text);
    }
}

static inline bool
case_takes_labels(const Injector *injector)
{
    return injector->all.has_label;
}

/* --- the network */

#define CASE_VIF "root/" FAKE_ALL_PRIVATE "/vif-cache-eth0.json"

static inline void
case_no_vif(Injector *injector, ChHandsRequest *request)
{
    case_drop(injector, CASE_VIF);
}

static inline void
case_vif(Injector *injector, ChHandsRequest *request)
{
    test_tree_write(injector->all.pod.dir, CASE_VIF, "{}");
}

/* In the pod's network; what @func returns. */
static inline int
case_in_net(const Injector *injector, int (*func)(void))
{
    g_autofree char *path = g_strdup_printf("/proc/%d/ns/net", (int)injector->all.pod.pid);
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC);

        _exit(fd >= 0 && setns(fd, CLONE_NEWNET) == 0 ? func() : 100);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 100);
    return WEXITSTATUS(status);
}

static inline int
case_remove_tap(void)
{
    struct ifreq request = {.ifr_name = "tap0", .ifr_flags = IFF_TAP | IFF_ONE_QUEUE};
    const int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

    return ioctl(fd, TUNSETIFF, &request) < 0 || ioctl(fd, TUNSETPERSIST, 0ul) < 0;
}

/* Its owner, if it is there for good. */
static inline int
case_tap_owner(void)
{
    struct ifreq request = {.ifr_name = "tap0", .ifr_flags = (short)(IFF_TAP | IFF_TUN_EXCL)};
    const int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

    return ioctl(fd, TUNSETIFF, &request) == 0 ? 0 : errno == EBUSY ? 1 : 2;
}

static inline void
case_no_tap(Injector *injector, ChHandsRequest *request)
{
    (void)case_in_net(injector, case_remove_tap);
}

static inline void
case_describe_tap(const Injector *injector, GString *out)
{
    g_string_append_printf(out, "tap: %d\n", case_in_net(injector, case_tap_owner));
}

static inline bool
case_has_tun(const Injector *injector)
{
    return access("/dev/net/tun", W_OK) == 0;
}

/* Link 1, which is the loopback device, up. */
static const struct {
    struct nlmsghdr header;
    struct ifinfomsg link;
} case_up = {
    .header = {.nlmsg_len = sizeof(case_up),
               .nlmsg_type = RTM_NEWLINK,
               .nlmsg_flags = NLM_F_REQUEST},
    .link = {.ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP},
};

static inline int
case_flags(struct ifreq *request, unsigned long what)
{
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)g_strlcpy(request->ifr_name, "lo", sizeof(request->ifr_name));
    return ioctl(fd, what, request) < 0;
}

static inline int
case_bring_down(void)
{
    return case_flags(&(struct ifreq){.ifr_flags = 0}, SIOCSIFFLAGS);
}

static inline int
case_is_up(void)
{
    struct ifreq request = {.ifr_flags = 0};

    return case_flags(&request, SIOCGIFFLAGS) == 0 && (request.ifr_flags & IFF_UP);
}

static inline void
case_net(Injector *injector, ChHandsRequest *request)
{
    const ChHandsRequest open = {
        .op = CH_HANDS_OP_NET_OPEN, .handle = injector->handle, .net = CH_HANDS_NET_ROUTE};

    g_assert_cmpint(case_in_net(injector, case_bring_down), ==, 0);
    case_must(injector, &open, NULL);
}

static inline void
case_close_net(Injector *injector)
{
    const ChHandsRequest close = {.op = CH_HANDS_OP_NET_CLOSE, .handle = injector->handle};

    (void)injector_do(injector, &close);
}

static inline void
case_describe_up(const Injector *injector, GString *out)
{
    g_string_append_printf(out, "up: %d\n", case_in_net(injector, case_is_up));
}

static const struct {
    const char *path, *value;
} case_sysctls[] = {
    {"/proc/sys/net/ipv4/ip_forward", "0"},
    {"/proc/sys/net/ipv6/conf/all/forwarding", "0"},
    {"/proc/sys/net/ipv4/conf/all/arp_ignore", "0"},
    {"/proc/sys/net/ipv4/ping_group_range", "1 0"},
    {"/proc/sys/net/ipv4/ip_unprivileged_port_start", "1024"},
};

static inline int
case_reset_sysctls(void)
{
    int n_failed = 0;

    for (gsize i = 0; i < G_N_ELEMENTS(case_sysctls); i++) {
        const int fd = open(case_sysctls[i].path, O_WRONLY | O_CLOEXEC);
        const size_t n = strlen(case_sysctls[i].value);

        n_failed += write(fd, case_sysctls[i].value, n) != (ssize_t)n;
        close(fd);
    }
    return n_failed;
}

/* As bits: those that are as they were. */
static inline int
case_read_sysctls(void)
{
    int bits = 0;

    for (gsize i = 0; i < G_N_ELEMENTS(case_sysctls); i++) {
        g_autofree char *text = NULL;

        (void)g_file_get_contents(case_sysctls[i].path, &text, NULL, NULL);
        bits |= (text == NULL || text[0] == case_sysctls[i].value[0]) << i;
    }
    return bits;
}

static inline void
case_old_sysctls(Injector *injector, ChHandsRequest *request)
{
    g_assert_cmpint(case_in_net(injector, case_reset_sysctls), ==, 0);
}

static inline void
case_describe_sysctls(const Injector *injector, GString *out)
{
    g_string_append_printf(out, "sysctls: %d\n", case_in_net(injector, case_read_sysctls));
}

/* --- mounts and nodes */

static inline void
case_no_mounts(Injector *injector, ChHandsRequest *request)
{
    case_drop(injector, "pods/" CASE_DISKS "/disk_0.img");
    case_drop(injector, "pods/" CASE_DISKS "/kernel-boot/vmlinuz");
    case_drop(injector, "pods/" CASE_DISKS "/kernel-boot");
    case_drop(injector, "pods/" CASE_PLUGS "/fs.img");
    case_drop(injector, "pods/" CASE_PLUGS "/fs");
    case_drop(injector, "pods/" CASE_PLUGS "/vol");
    case_drop(injector, "share/daemons/pr/multipathd.socket");
    case_give_back(injector, "volumes/fs", 0755);
    case_give_back(injector, "volumes/fs/disk.img", 0644);
}

#define CASE_DISK .uid = FAKE_POD_UID, .source_uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_DISK
#define CASE_BOOT .uid = FAKE_POD_UID, .source_uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_BOOT
#define CASE_FILE                                                                                  \
    .uid = FAKE_POD_UID, .source_uid = FAKE_ALL_ATTACHMENT, .mount = CH_HANDS_MOUNT_HOTPLUG_FILE,  \
    .name = "fs"
#define CASE_DIR                                                                                   \
    .uid = FAKE_POD_UID, .source_uid = FAKE_ALL_ATTACHMENT, .mount = CH_HANDS_MOUNT_HOTPLUG_DIR,   \
    .name = "fs"
#define CASE_NODE .uid = FAKE_POD_UID, .source_uid = FAKE_ALL_ATTACHMENT, .name = "vol"

static inline void
case_disk_mounted(Injector *injector, ChHandsRequest *request)
{
    case_no_mounts(injector, request);
    case_must(injector, &(ChHandsRequest){.op = CH_HANDS_OP_MOUNT, CASE_DISK}, NULL);
}

static inline void
case_boot_mounted(Injector *injector, ChHandsRequest *request)
{
    case_no_mounts(injector, request);
    case_must(injector, &(ChHandsRequest){.op = CH_HANDS_OP_MOUNT, CASE_BOOT}, "boot/vmlinuz");
}

static inline void
case_dir_mounted(Injector *injector, ChHandsRequest *request)
{
    case_no_mounts(injector, request);
    case_must(injector, &(ChHandsRequest){.op = CH_HANDS_OP_MOUNT, CASE_DIR}, NULL);
}

static inline void
case_node_made(Injector *injector, ChHandsRequest *request)
{
    case_no_mounts(injector, request);
    case_must(injector, &(ChHandsRequest){.op = CH_HANDS_OP_NODE_MAKE, CASE_NODE}, NULL);
}

/* One with other numbers. */
static inline void
case_old_node(Injector *injector, ChHandsRequest *request)
{
    case_no_mounts(injector, request);
    fake_all_node(&injector->all, "pods/" CASE_PLUGS "/vol", S_IFBLK | 0600, makedev(482, 1));
}

static inline void
case_plugged(Injector *injector, ChHandsRequest *request)
{
    case_dir_mounted(injector, request);
    case_must(injector, &(ChHandsRequest){.op = CH_HANDS_OP_MOUNT, CASE_FILE}, NULL);
    case_must(injector, &(ChHandsRequest){.op = CH_HANDS_OP_NODE_MAKE, CASE_NODE}, NULL);
}

static inline void
case_multipath_mounted(Injector *injector, ChHandsRequest *request)
{
    case_no_mounts(injector, request);
    case_must(injector, &(ChHandsRequest){.op = CH_HANDS_OP_MULTIPATH_SET}, NULL);
}
