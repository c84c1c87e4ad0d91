/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pod: a launcher's pod as the hands hold it: identity checked once, then acted on by handle.
 *
 * A ChPod stands for one entry of the hands' table (pidfd and root of the process that listens on
 * the launcher's socket). It is made together with a connection to the launcher and outlives it.
 * Thread: any but the loop's, unless said otherwise; one thread at a time per ChPod. Blocks: for
 * the hands, normally below 1 ms, at worst 8 s. Spec: 01 §13, §14.2; 05 §5.2, §10.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "handler/hands/client.h"
#include "handler/pod/host-disk.h"

typedef struct ChPod ChPod;

/* Devices that have one place in every pod, as bits. */
typedef enum {
    CH_POD_DEVICE_KVM = CH_HANDS_DEVICE_KVM,
    CH_POD_DEVICE_MSHV = CH_HANDS_DEVICE_MSHV,
    CH_POD_DEVICE_VHOST_VSOCK = CH_HANDS_DEVICE_VHOST_VSOCK,
    CH_POD_DEVICE_SEV = CH_HANDS_DEVICE_SEV,
    CH_POD_DEVICE_VFIO = CH_HANDS_DEVICE_VFIO, /* all of /dev/vfio, if it is there */
    CH_POD_DEVICE_VHOST_NET = CH_HANDS_DEVICE_VHOST_NET,
    CH_POD_DEVICE_TUN = CH_HANDS_DEVICE_TUN,
} ChPodDevice;

/* Whether this error of an operation on a pod says nothing about the pod, so that the same may do
 * later: see ch_hands_is_passing(). Thread: any; never blocks. */
bool ch_pod_error_is_passing(const GError *error);

/**
 * ch_pod_connect: connects to the launcher's command socket and checks who listens on it.
 * @hands: borrowed, outlives the pod
 * @pod_uid: from status.activePods or a ghost record's path
 * @out_fd: the connected stream socket, non-blocking and close-on-exec
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID (no pod UID), or CH_ERRNO: ENOENT (no socket
 * or no pod), ECONNREFUSED, EAGAIN (backlog full), or "failed to detect isolation for launcher pod
 * when setting up notify pipe: ..." when the listener is not a living process whose root holds this
 * very socket
 */
ChPod *ch_pod_connect(ChHands *hands, const char *pod_uid, int *out_fd, GError **error);

/**
 * ch_pod_reconnect: another connection to the launcher that @pod was made for, if the same process
 * still listens on the same socket.
 * @out_fd: as ch_pod_connect()
 *
 * Returns: false with CH_ERRNO: ESTALE (another launcher listens, or this one ended), ENOENT,
 * ECONNREFUSED, EAGAIN. Thread: as ch_pod_connect(), but also several at a time.
 */
bool ch_pod_reconnect(const ChPod *pod, int *out_fd, GError **error);

/* Forgets it in the hands; a notify pipe that is open stays. NULL is fine. Thread: any; never
 * blocks. */
void ch_pod_free(ChPod *pod);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChPod, ch_pod_free)

const char *ch_pod_peek_uid(const ChPod *pod);
pid_t ch_pod_pid(const ChPod *pod); /* of the launcher, for log lines only */

/**
 * ch_pod_open_notify_pipe: makes the listening socket `domain-notify-pipe.sock` in the pod's
 * /var/run/kubevirt, in the place of an earlier one.
 * @is_non_root: the VMI runs as 107:107, which then owns the socket
 * @out_listen_fd: listening, non-blocking and close-on-exec
 *
 * Returns: false with CH_ERRNO, "failed to create unix socket for proxy service: ..." or "unable to
 * change ownership for domain notify: ..."
 */
bool ch_pod_open_notify_pipe(ChPod *pod, bool is_non_root, int *out_listen_fd, GError **error);

/* Removes the socket of the last ch_pod_open_notify_pipe(), unless the name meanwhile holds another
 * one. Nothing open: nothing done. Thread: any; never blocks. */
void ch_pod_close_notify_pipe(ChPod *pod);

/* An image that the launcher makes of data in the VMI or the cluster. */
typedef enum {
    CH_POD_IMAGE_INVALID = 0,
    CH_POD_IMAGE_NO_CLOUD,     /* of a VMI */
    CH_POD_IMAGE_CONFIG_DRIVE, /* of a VMI */
    CH_POD_IMAGE_CONFIG_MAP,   /* of a volume, as the next ones */
    CH_POD_IMAGE_DOWNWARD_API,
    CH_POD_IMAGE_SECRET,
    CH_POD_IMAGE_SYSPREP,
    CH_POD_IMAGE_SERVICE_ACCOUNT,
    CH_POD_IMAGE_N,
} ChPodImage;

/**
 * ch_pod_stat_image: the size of an image in the pod.
 * @namespace_: of the VMI
 * @name: of the VMI or the volume; at most 127 bytes
 * @out_size: bytes; -1: an earlier call failed with ENOENT
 *
 * The hands are asked once: a launcher makes its images before the VM starts, and then no more.
 *
 * Returns: false with CH_ERROR_INVALID (such names cannot be asked for), or CH_ERRNO: ENOENT (none
 * is there), EINVAL (no regular file), ...
 */
bool ch_pod_stat_image(ChPod *pod,
                       ChPodImage image,
                       const char *namespace_,
                       const char *name,
                       int64_t *out_size,
                       GError **error);

/* The SELinux label of the pod's root; asked for once, since it stays. Borrowed; NULL with
 * CH_ERRNO. */
const char *ch_pod_peek_label(ChPod *pod, GError **error);

/**
 * ch_pod_repair_passt: helps passt, which is the VM's network, through a migration.
 * @is_target: of the migration: passt may not be there yet
 *
 * Thread: as ch_pod_connect(), but also beside other calls of the pod. Blocks: until passt has
 * done, up to 66 s. Spec: 04 §19
 *
 * Returns: false with CH_ERRNO: ENOENT (no socket, or no directory for one), ETIMEDOUT (passt did
 * not end in a minute), EAGAIN (too many of these), ...
 */
bool ch_pod_repair_passt(const ChPod *pod, bool is_target, GError **error);

/**
 * ch_pod_write_metrics: writes what the guest finds on its disk of metrics.
 * @text: @length bytes, at most CH_HANDS_MAX_BYTES
 *
 * Thread: as ch_pod_connect(), but also beside other calls of the pod. Spec: 05 §14
 *
 * Returns: false with CH_ERRNO: ENOENT (the launcher has made no such disk), EINVAL (it is none),
 * EFBIG, ...
 */
bool ch_pod_write_metrics(const ChPod *pod, const char *text, gsize length, GError **error);

/* Connects to the channel on which QEMU waits for who tells its guest metrics. @out_fd:
 * non-blocking and close-on-exec. Thread: as above. Returns: false with CH_ERRNO: ENOENT or
 * ECONNREFUSED (not there yet), EAGAIN (taken), ... */
bool ch_pod_connect_metrics(const ChPod *pod, int *out_fd, GError **error);

/**
 * ch_pod_own_devices: gives device nodes of the pod to 107:107, those that are not already, in the
 * order of their bits up to the first that fails.
 * @devices: of ChPodDevice
 * @may_lack_kvm: the guest can be emulated: KVM and MSHV need not be there
 * @out_failed: (out): which one; 0: none, or none was tried
 *
 * Refuses links, other files, and nodes with other numbers than the device has.
 *
 * Returns: false with CH_ERRNO: ENOENT (no such node), ...
 */
bool ch_pod_own_devices(
    ChPod *pod, uint32_t devices, bool may_lack_kvm, ChPodDevice *out_failed, GError **error);

/* Gives the block device /dev/@volume of the pod to 107:107; fine when it is not there. Returns:
 * false with CH_ERRNO, or CH_ERROR_INVALID (no name of a volume) */
bool ch_pod_own_block(ChPod *pod, const char *volume, GError **error);

/**
 * ch_pod_prepare_disk: makes the image of a host disk if it should be there and is not.
 * @owns_dir: gives its directory to 107:107, too
 * @reserve: bytes of the volume that are not for it, unless there is space enough for all of it
 * @tolerated_percent: 0 to 100: by how much it may be smaller
 * @out_size: (out): of the image that was made; 0: none was
 *
 * An image that is there stays as it is; a link is refused (ELOOP).
 *
 * Returns: false with CH_ERRNO or CH_ERROR_INVALID, "preparing host-disks failed: ..." or "Failed
 * to change ownership of HostDisk dir ..."
 */
bool ch_pod_prepare_disk(ChPod *pod,
                         const ChHostDisk *disk,
                         bool owns_dir,
                         uint64_t reserve,
                         int tolerated_percent,
                         int64_t *out_size,
                         GError **error);

/* Gives virtiofsd's socket of @filesystem to 107:107. Returns: false as above; ENOENT: it is not
 * there yet */
bool ch_pod_own_virtiofs(ChPod *pod, const char *filesystem, GError **error);

/* Asks the hands for something else of this pod, whose handle is filled in. For the other modules
 * of this room; otherwise as ch_hands_call_with(). */
bool ch_pod_ask(const ChPod *pod,
                const ChHandsRequest *request,
                const void *bytes,
                ChHandsReply *out_reply,
                GError **error);

/* Whether the devices that a VM needs are in the pod; asked until they were, since a runtime's
 * nodes stay, and not for none. @flags: CH_HANDS_RNG, CH_HANDS_VSOCK. For cgroup.c. Returns: false
 * with CH_ERRNO */
bool ch_pod_has_devices(ChPod *pod, uint32_t flags, GError **error);
