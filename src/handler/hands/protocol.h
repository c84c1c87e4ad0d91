/* SPDX-License-Identifier: Apache-2.0 */

/*
 * protocol: what the brain may ask of the hands, as fixed-size records.
 *
 * Theory of operation: one SOCK_SEQPACKET datagram is one request or one reply. Brain and hands are
 * built together and run on one machine, so a record is a C struct in native byte order; HELLO
 * tells a mix of builds. At most one request is outstanding on a channel, but for those of an
 * operation that is never answered (see the table). Descriptors travel from the hands to the
 * brain only: a request that carries one is refused, and no request names a pid, a descriptor, or a
 * path but that of a file in an image, whose root confines it. A field that an operation does not
 * use must be zero. Some operations take bytes after the record: netlink messages (net-check.h)
 * and device rules, which are checked, a file's content, which is not looked into, that path, and a
 * host disk's description, another record.
 *
 * Pure. Thread: any. Spec: DESIGN.md §4.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CH_HANDS_VERSION    UINT32_C(0x6368000e) /* "ch", then a number raised with each change */
#define CH_HANDS_UID_SIZE   64                   /* of a pod's UID, its NUL included */
#define CH_HANDS_TEXT_SIZE  192
#define CH_HANDS_NAME_SIZE  128     /* of a link (below IFNAMSIZ) or a network, its NUL included */
#define CH_HANDS_MAX_BYTES  131072u /* after a record */
#define CH_HANDS_N_CHANNELS 32      /* socketpairs, descriptors 3 to 34 of the hands */
#define CH_HANDS_FIRST_FD   3

/* Where a launcher listens, below its pod's directory. */
#define CH_HANDS_CACHE_DIR   "network-info-cache" /* in the private directory */
#define CH_HANDS_SOCKETS_DIR "volumes/kubernetes.io~empty-dir/sockets"
#define CH_HANDS_SOCKET_NAME "launcher-sock"

typedef enum {
    CH_HANDS_OP_INVALID = 0,
    CH_HANDS_OP_HELLO,        /* are you there, and of my build? */
    CH_HANDS_OP_LOOK,         /* uid -> facts about the launcher's socket and its directory */
    CH_HANDS_OP_MARK,         /* uid: make the marker `launcher-unresponsive` */
    CH_HANDS_OP_PROBE,        /* uid: does the launcher's socket take a connection? */
    CH_HANDS_OP_CONNECT,      /* uid -> handle, pid and the connected socket */
    CH_HANDS_OP_PIPE_OPEN,    /* handle, flags -> identity and the listening socket */
    CH_HANDS_OP_PIPE_CLOSE,   /* handle, identity; never answered */
    CH_HANDS_OP_DEVICES_OWN,  /* handle, devices, flags; which one failed */
    CH_HANDS_OP_RELEASE,      /* handle; never answered */
    CH_HANDS_OP_NET_OPEN,     /* handle, net, sysctls or none -> a netlink socket in the pod */
    CH_HANDS_OP_NET_SEND,     /* handle, net, bytes: sends messages on that socket */
    CH_HANDS_OP_NET_CLOSE,    /* handle: forgets the pod's netlink sockets; never answered */
    CH_HANDS_OP_TAP_MAKE,     /* handle, name, flags: a persistent tap */
    CH_HANDS_OP_SYSCTLS_SET,  /* handle, sysctls */
    CH_HANDS_OP_DHCP_STORE,   /* handle, name, bytes: vif-cache-NAME.json in the pod */
    CH_HANDS_OP_DHCP_REMOVE,  /* handle, name: that file of DHCP_STORE */
    CH_HANDS_OP_CACHE_OWN,    /* uid (of a VMI), name: the network's new cache file */
    CH_HANDS_OP_RECONNECT,    /* handle -> another connection to the very same launcher */
    CH_HANDS_OP_IMAGE_STAT,   /* handle, image, uid (the VMI's namespace), name -> its size */
    CH_HANDS_OP_LABEL_READ,   /* handle -> the text of the root's SELinux label */
    CH_HANDS_OP_PASST_REPAIR, /* handle, flags: helps passt through a migration; takes a minute */
    CH_HANDS_OP_SOURCE_LOOK,  /* uid, mount, index -> who serves it; changes nothing */
    CH_HANDS_OP_TARGET_LOOK,  /* uid, mount, index, name, path -> what is there; changes nothing */
    CH_HANDS_OP_MOUNT,        /* uid, mount, index, name, source_uid, path, flags */
    CH_HANDS_OP_UNMOUNT,      /* uid, mount, index, name, flags */
    CH_HANDS_OP_IMAGE_SUM,   /* uid, mount, index, path, crc, offset, dev, ino -> a part's CRC-32 */
    CH_HANDS_OP_NODE_LOOK,   /* uid, name, maybe source_uid -> the node and its source */
    CH_HANDS_OP_NODE_MAKE,   /* uid, name, source_uid: a block volume's node */
    CH_HANDS_OP_NODE_REMOVE, /* uid, name */
    CH_HANDS_OP_SWEEP,       /* uid: all mounts and nodes in its directories */
    CH_HANDS_OP_DEVICES_LOOK, /* handle, flags: are the devices there that the VM needs? */
    CH_HANDS_OP_DEVICES_SET,  /* handle, flags, bytes (ChDeviceRule each): what its cgroup allows */
    CH_HANDS_OP_MEMLOCK_SET,  /* handle, flags, bytes (uint64_t): of virtqemud, or of QEMU */
    CH_HANDS_OP_HOUSE_KEEP,   /* handle, flags, bytes (set of CPUs): a cgroup for all else */
    CH_HANDS_OP_REALTIME_SET, /* handle, flags, bytes (set of virtual CPUs) */
    CH_HANDS_OP_PIT_SET,      /* handle, flags: the kernel's thread of QEMU's timer */
    CH_HANDS_OP_BLOCK_OWN,    /* handle, name: a volume's block device */
    CH_HANDS_OP_VIRTIOFS_OWN, /* handle, name: a file system's socket */
    CH_HANDS_OP_DISK_PREPARE, /* handle, name, flags, bytes (ChHandsDisk) -> the new image's size */
    CH_HANDS_OP_METRICS_WRITE,     /* handle, bytes: the body of the pod's vhostmd disk */
    CH_HANDS_OP_METRICS_CONNECT,   /* handle -> a connection to QEMU's channel of metrics */
    CH_HANDS_OP_MULTIPATH_WATCH,   /* -> an inotify descriptor of the node's /run */
    CH_HANDS_OP_MULTIPATH_SET,     /* multipathd's socket is mounted; flags: CH_HANDS_REMOVE: not */
    CH_HANDS_OP_RESERVATION_WATCH, /* -> an inotify descriptor of the directory for it */
    CH_HANDS_OP_RESERVATION_OWN,   /* the directory and pr-helper's socket in it: owner, label */
    CH_HANDS_OP_N,
} ChHandsOp;

/* Devices that have one place in every pod, as bits, in the order in which they are prepared. */
typedef enum {
    CH_HANDS_DEVICE_KVM = 1u << 0,         /* /dev/kvm */
    CH_HANDS_DEVICE_MSHV = 1u << 1,        /* /dev/mshv */
    CH_HANDS_DEVICE_VHOST_VSOCK = 1u << 2, /* /dev/vhost-vsock */
    CH_HANDS_DEVICE_SEV = 1u << 3,         /* /dev/sev */
    CH_HANDS_DEVICE_VFIO = 1u << 4,        /* all of /dev/vfio, if it is there */
    CH_HANDS_DEVICE_VHOST_NET = 1u << 5,   /* /dev/vhost-net */
    CH_HANDS_DEVICE_TUN = 1u << 6,         /* /dev/net/tun */
} ChHandsDevice;
#define CH_HANDS_DEVICES ((1u << 7) - 1)

typedef enum {
    CH_HANDS_NET_NONE = 0,
    CH_HANDS_NET_ROUTE,     /* NETLINK_ROUTE */
    CH_HANDS_NET_NETFILTER, /* NETLINK_NETFILTER */
    CH_HANDS_NET_N,
} ChHandsNet;

/* Where the launcher puts an image that it makes; `name` is the VMI's or the volume's. */
typedef enum {
    CH_HANDS_IMAGE_NONE = 0,
    CH_HANDS_IMAGE_NO_CLOUD,     /* of a VMI, by namespace and name */
    CH_HANDS_IMAGE_CONFIG_DRIVE, /* the same */
    CH_HANDS_IMAGE_CONFIG_MAP,   /* of a volume, by name, as the next ones */
    CH_HANDS_IMAGE_DOWNWARD_API,
    CH_HANDS_IMAGE_SECRET,
    CH_HANDS_IMAGE_SYSPREP,
    CH_HANDS_IMAGE_SERVICE_ACCOUNT, /* there is one in a pod */
    CH_HANDS_IMAGE_N,
} ChHandsImage;

/* What is mounted into a pod's emptyDir, as the node's mount namespace sees it, from the root of
 * the process that listens on a socket in an emptyDir (of the same pod or another). Spec: 05 §1.3
 */
typedef enum {
    CH_HANDS_MOUNT_NONE = 0,
    CH_HANDS_MOUNT_DISK, /* container disk `index`: the image at `path`, or the one in /disk */
    CH_HANDS_MOUNT_BOOT, /* kernel-boot/: the file at `path`, by its last component */
    CH_HANDS_MOUNT_HOTPLUG_FILE, /* disk.img of the volume `name` */
    CH_HANDS_MOUNT_HOTPLUG_DIR,  /* the volume `name` */
    CH_HANDS_MOUNT_N,
} ChHandsMount;

/* Which part of a mount's work the errnum of a reply is about. */
typedef enum {
    CH_HANDS_STEP_NONE = 0, /* none of these: refused, the child died, ... */
    CH_HANDS_STEP_DIR,      /* open the pod's directory; ENOENT: there is none */
    CH_HANDS_STEP_TARGET,   /* make or open the target */
    CH_HANDS_STEP_IS_ROOT,  /* find out whether it is mounted */
    CH_HANDS_STEP_SOCKET,   /* find and connect to the source's socket */
    CH_HANDS_STEP_PROCESS,  /* who listens on it */
    CH_HANDS_STEP_ROOT,     /* its root */
    CH_HANDS_STEP_NO_IMAGE, /* /disk is empty */
    CH_HANDS_STEP_IMAGES,   /* /disk holds more than one */
    CH_HANDS_STEP_IMAGE,    /* the file or volume in it */
    CH_HANDS_STEP_MOUNT,
    CH_HANDS_STEP_UNMOUNT,
    CH_HANDS_STEP_OWN, /* give what is mounted to 107:107 */
    CH_HANDS_STEP_N,
} ChHandsMountStep;

#define CH_HANDS_MAX_INDEX 65535u      /* of a volume */
#define CH_HANDS_PATH_SIZE 4096u       /* of a path in an image, a NUL included */
#define CH_HANDS_SUM_BYTES (64u << 20) /* of an image that IMAGE_SUM reads at once */

/* What SYSCTLS_SET may set, each to the one value that a pod network needs. */
#define CH_HANDS_SYSCTL_IPV4_FORWARD (1u << 0) /* net.ipv4.ip_forward = 1 */
#define CH_HANDS_SYSCTL_IPV6_FORWARD (1u << 1) /* net.ipv6.conf.all.forwarding = 1 */
#define CH_HANDS_SYSCTL_ARP_IGNORE   (1u << 2) /* net.ipv4.conf.all.arp_ignore = 1 */
#define CH_HANDS_SYSCTL_PING_GROUPS  (1u << 3) /* net.ipv4.ping_group_range = 107 107 */
#define CH_HANDS_SYSCTL_ALL_PORTS    (1u << 4) /* net.ipv4.ip_unprivileged_port_start = 0 */
#define CH_HANDS_SYSCTLS             ((1u << 5) - 1)

/* Request flags. */
#define CH_HANDS_NON_ROOT    (1u << 0)  /* PIPE_OPEN, TAP_MAKE, DISK_PREPARE: not run as root */
#define CH_HANDS_MULTI_QUEUE (1u << 1)  /* TAP_MAKE */
#define CH_HANDS_TARGET      (1u << 2)  /* PASST_REPAIR: of the migration; passt may still come */
#define CH_HANDS_OWN         (1u << 3)  /* MOUNT: what is mounted becomes 107:107 */
#define CH_HANDS_REMOVE      (1u << 4)  /* UNMOUNT: the file under the mount goes, and the socket */
#define CH_HANDS_EMULATION   (1u << 5)  /* DEVICES_OWN: KVM and MSHV may be missing */
#define CH_HANDS_RNG         (1u << 8)  /* DEVICES_...: the VM has a random number generator */
#define CH_HANDS_VSOCK       (1u << 9)  /* DEVICES_...: the VM has a vsock */
#define CH_HANDS_QEMU        (1u << 10) /* MEMLOCK_SET: of QEMU */
#define CH_HANDS_MSHV        (1u << 11) /* HOUSE_KEEP, REALTIME_SET: the hypervisor is not KVM */
#define CH_HANDS_REALTIME    (1u << 12) /* PIT_SET: with a priority */

typedef struct {
    uint32_t version;
    uint32_t op;
    uint32_t sequence; /* returned in the reply */
    uint32_t flags;
    uint32_t devices;
    uint32_t net;
    uint32_t sysctls;
    uint32_t n_bytes; /* that follow the record */
    uint32_t image;
    uint32_t mount;
    uint32_t index; /* of the volume in the VMI's spec */
    uint32_t crc;   /* IMAGE_SUM: of what is before offset */
    uint64_t handle;
    uint64_t offset; /* IMAGE_SUM: where the part begins */
    uint64_t dev;    /* identity of a notify pipe, as its PIPE_OPEN returned it, or of an image */
    uint64_t ino;
    char uid[CH_HANDS_UID_SIZE];        /* letters, digits, '-'; rest zero */
    char source_uid[CH_HANDS_UID_SIZE]; /* the pod that serves what MOUNT mounts */
    char name[CH_HANDS_NAME_SIZE];      /* as ch_hands_..._name_is_valid(); rest zero */
} ChHandsRequest;

#define CH_HANDS_FILE_SIZE 256 /* of a file's name, its NUL included */

/* What follows DISK_PREPARE: a volume's image. */
typedef struct {
    uint64_t capacity; /* bytes; 0: none that an image can have */
    uint64_t reserve;  /* bytes of the volume that stay free, unless it has enough */
    uint32_t tolerated_percent;
    uint32_t makes_image;          /* 0: nothing but the directory's owner matters, the rest is 0 */
    char file[CH_HANDS_FILE_SIZE]; /* one component; rest zero */
} ChHandsDisk;

/* What LOOK or SOURCE_LOOK saw; each is 0 (it exists) or the errno of its lookup. No link is
 * followed. */
typedef struct {
    int32_t dir_errno;     /* the directory of the sockets */
    int32_t socket_errno;  /* the socket in it; any type of file counts */
    int32_t marker_errno;  /* LOOK: `launcher-unresponsive` in it */
    int32_t process_errno; /* SOURCE_LOOK: the process that listens */
    int32_t binary_errno;  /* LOOK: the logs of a container `container-disk-binary`, which pods have
                            * whose disks are to be mounted */
} ChHandsLook;

/* What TARGET_LOOK saw, or MOUNT left; all 0: nothing has the name. */
typedef struct {
    uint64_t dev, ino; /* of the file, or the root of what is mounted on it */
    uint64_t rdev;     /* of a device node */
    uint32_t mode;     /* type and permissions */
    uint32_t is_mounted;
} ChHandsTarget;

/* What NODE_... found in the attachment pod. */
typedef struct {
    uint64_t rdev;
    uint32_t mode;  /* type and permissions */
    int32_t errnum; /* why there is none, else 0; ENODEV: no device in its directory */
} ChHandsNode;

typedef struct {
    uint32_t version;
    uint32_t op;
    uint32_t sequence;
    int32_t errnum; /* 0: done; else a positive errno, `text` says what failed */
    uint32_t has_fd;
    int32_t pid;
    uint64_t handle;
    uint64_t dev;
    uint64_t ino;
    uint64_t size;
    ChHandsLook look;
    uint32_t device; /* DEVICES_OWN: the one that failed */
    ChHandsNode source;
    uint32_t step; /* a ChHandsMountStep */
    uint32_t crc;  /* IMAGE_SUM: of everything up to the part's end */
    uint64_t end;  /* IMAGE_SUM: where the part ends; `size` is the image's */
    ChHandsTarget target;
    char text[CH_HANDS_TEXT_SIZE]; /* NUL-terminated, with the errno's text; LABEL_READ's answer */
} ChHandsReply;

G_STATIC_ASSERT(sizeof(ChHandsRequest) == 80 + 2 * CH_HANDS_UID_SIZE + CH_HANDS_NAME_SIZE);
G_STATIC_ASSERT(sizeof(ChHandsReply) == 144 + CH_HANDS_TEXT_SIZE);
G_STATIC_ASSERT(sizeof(ChHandsDisk) == 24 + CH_HANDS_FILE_SIZE);

/**
 * ch_hands_request_check: decides whether a datagram is a request that may be carried out.
 * @bytes: @n_bytes from the other side, of any alignment
 * @out_request: a copy of its record; the bytes that follow it are not looked at
 *
 * Allocates nothing; the hands' first line.
 *
 * Returns: 0, or a positive errno: EBADMSG (size), EPROTO (version), ENOSYS (operation), EINVAL (an
 * argument that the operation does not take, or not with this value). @out_request is set when
 * there are as many bytes as a record, so that a refusal can carry its sequence
 */
int ch_hands_request_check(const void *bytes, gsize n_bytes, ChHandsRequest *out_request);

/* How long the hands give an operation, in microseconds. */
int64_t ch_hands_op_deadline_us(uint32_t op);

/* Whether the hands never answer it. What they do not know they do answer. */
bool ch_hands_op_is_silent(uint32_t op);

/* 1 to 63 letters, digits and '-': what kubelet names a pod's directory by. */
bool ch_hands_uid_is_valid(const char *uid);

/* Letters, digits, '-', '_' and '.', not beginning with '.': a link (1 to 15) of a pod, a network
 * (1 to 127) of a VMI. */
bool ch_hands_link_name_is_valid(const char *name);
bool ch_hands_network_name_is_valid(const char *name);

/* Whether @n_bytes (1 to CH_HANDS_PATH_SIZE - 1) are a path in an image: no NUL, and a name at its
 * end. What the path leads to is up to the lookup. */
bool ch_hands_path_is_valid(const char *path, gsize n_bytes);

/**
 * ch_hands_disk_check: the same of the bytes that follow DISK_PREPARE.
 *
 * Returns: 0, or a positive errno: EBADMSG (size), EINVAL. @out_disk is a copy then
 */
int ch_hands_disk_check(const void *bytes, gsize n_bytes, ChHandsDisk *out_disk);

/* A file's name: 1 to 255 bytes, no '/', neither "." nor "..". */
bool ch_hands_file_name_is_valid(const char *name);

/* For messages; "unknown" beyond the table. */
const char *ch_hands_op_name(uint32_t op);
