/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/pod.h"

#include <errno.h>

#include "handler/pod/hands-request.h"
#include "handler/pod/pod-internal.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

ChPod *
ch_pod_connect(ChHands *hands, const char *pod_uid, int *out_fd, GError **error)
{
    ch_autofd int fd = -EBADF;
    ChHandsRequest request;
    ChHandsReply reply;
    ChPod *pod = NULL;

    if (!ch_hands_request_for_uid(&request, CH_HANDS_OP_CONNECT, pod_uid, error) ||
        !ch_hands_call(hands, &request, &reply, &fd, error))
        return NULL;
    pod = g_new0(ChPod, 1);
    pod->hands = hands;
    pod->uid = g_strdup(pod_uid);
    pod->handle = reply.handle;
    pod->pid = reply.pid;
    *out_fd = g_steal_fd(&fd);
    return pod;
}

bool
ch_pod_reconnect(const ChPod *pod, int *out_fd, GError **error)
{
    const ChHandsRequest request = {.op = CH_HANDS_OP_RECONNECT, .handle = pod->handle};
    ChHandsReply reply;

    return ch_hands_call(pod->hands, &request, &reply, out_fd, error);
}

void
ch_pod_tell(ChPod *pod, const ChHandsRequest *request)
{
    g_autoptr(GError) error = NULL;

    if (!ch_hands_tell(pod->hands, request, &error))
        ch_log_warning(NULL,
                       error,
                       "telling the hands to %s pod %s failed, ignoring",
                       ch_hands_op_name(request->op),
                       pod->uid);
}

void
ch_pod_free(ChPod *pod)
{
    if (pod == NULL)
        return;
    ch_pod_tell(pod, &(ChHandsRequest){.op = CH_HANDS_OP_RELEASE, .handle = pod->handle});
    g_free(pod->uid);
    g_free(pod->label);
    g_clear_pointer(&pod->sizes, g_hash_table_unref);
    g_free(pod);
}

const char *
ch_pod_peek_uid(const ChPod *pod)
{
    return pod->uid;
}

pid_t
ch_pod_pid(const ChPod *pod)
{
    return pod->pid;
}

bool
ch_pod_open_notify_pipe(ChPod *pod, bool is_non_root, int *out_listen_fd, GError **error)
{
    const ChHandsRequest request = {
        .op = CH_HANDS_OP_PIPE_OPEN,
        .handle = pod->handle,
        .flags = is_non_root ? CH_HANDS_NON_ROOT : 0,
    };
    ChHandsReply reply;

    if (!ch_hands_call(pod->hands, &request, &reply, out_listen_fd, error))
        return false;
    pod->pipe_dev = reply.dev;
    pod->pipe_ino = reply.ino;
    return true;
}

void
ch_pod_close_notify_pipe(ChPod *pod)
{
    const ChHandsRequest request = {
        .op = CH_HANDS_OP_PIPE_CLOSE,
        .handle = pod->handle,
        .dev = pod->pipe_dev,
        .ino = pod->pipe_ino,
    };

    if (pod->pipe_ino == 0)
        return;
    ch_pod_tell(pod, &request);
    pod->pipe_ino = 0;
}

bool
ch_pod_repair_passt(const ChPod *pod, bool is_target, GError **error)
{
    const ChHandsRequest request = {
        .op = CH_HANDS_OP_PASST_REPAIR,
        .handle = pod->handle,
        .flags = is_target ? CH_HANDS_TARGET : 0,
    };

    return ch_hands_call(pod->hands, &request, NULL, NULL, error);
}

bool
ch_pod_write_metrics(const ChPod *pod, const char *text, gsize length, GError **error)
{
    const ChHandsRequest request = {
        .op = CH_HANDS_OP_METRICS_WRITE,
        .handle = pod->handle,
        .n_bytes = (uint32_t)length,
    };

    if (length == 0 || length > CH_HANDS_MAX_BYTES)
        return ch_fail_errno(error, EFBIG, "write %zu bytes of metrics", length);
    return ch_hands_call_with(pod->hands, &request, text, NULL, NULL, error);
}

bool
ch_pod_connect_metrics(const ChPod *pod, int *out_fd, GError **error)
{
    const ChHandsRequest request = {.op = CH_HANDS_OP_METRICS_CONNECT, .handle = pod->handle};

    return ch_hands_call(pod->hands, &request, NULL, out_fd, error);
}

bool
ch_pod_error_is_passing(const GError *error)
{
    return ch_hands_is_passing(error);
}

bool
ch_pod_own_devices(
    ChPod *pod, uint32_t devices, bool may_lack_kvm, ChPodDevice *out_failed, GError **error)
{
    const ChHandsRequest request = {
        .op = CH_HANDS_OP_DEVICES_OWN,
        .handle = pod->handle,
        .devices = devices,
        .flags = may_lack_kvm ? CH_HANDS_EMULATION : 0,
    };
    ChHandsReply reply = {0};
    const bool ok = ch_hands_call(pod->hands, &request, &reply, NULL, error);

    *out_failed = reply.device;
    return ok;
}

static bool
own_named(ChPod *pod, ChHandsOp op, const char *name, GError **error)
{
    ChHandsRequest request = {.op = op, .handle = pod->handle};

    if (!ch_hands_network_name_is_valid(name))
        return ch_fail(error, CH_ERROR_INVALID, "nothing in a pod is called '%s'", name);
    g_strlcpy(request.name, name, sizeof(request.name));
    return ch_hands_call(pod->hands, &request, NULL, NULL, error);
}

bool
ch_pod_own_block(ChPod *pod, const char *volume, GError **error)
{
    return own_named(pod, CH_HANDS_OP_BLOCK_OWN, volume, error);
}

bool
ch_pod_own_virtiofs(ChPod *pod, const char *filesystem, GError **error)
{
    return own_named(pod, CH_HANDS_OP_VIRTIOFS_OWN, filesystem, error);
}

#define DISK_TEXT "preparing host-disks failed: "

/* The space does not do. @available: what there is, less the reserve */
static bool
fail_space(const ChHostDisk *disk, int64_t available, int tolerated_percent, GError **error)
{
    return ch_fail(error,
                   CH_ERROR_FAILED,
                   DISK_TEXT "unable to create /var/run/kubevirt-private/vmi-disks/%s/%s, not "
                             "enough space, demanded size %" G_GINT64_FORMAT
                             " B is bigger than available space %" G_GINT64_FORMAT
                             " B, also after taking %d %% toleration into account",
                   disk->volume,
                   disk->file,
                   disk->capacity,
                   available,
                   tolerated_percent);
}

bool
ch_pod_prepare_disk(ChPod *pod,
                    const ChHostDisk *disk,
                    bool owns_dir,
                    uint64_t reserve,
                    int tolerated_percent,
                    int64_t *out_size,
                    GError **error)
{
    ChHandsRequest request = {
        .op = CH_HANDS_OP_DISK_PREPARE,
        .handle = pod->handle,
        .flags = owns_dir ? CH_HANDS_NON_ROOT : 0,
        .n_bytes = sizeof(ChHandsDisk),
    };
    ChHandsDisk described = {.makes_image = disk->makes_image};
    g_autoptr(GError) reason = NULL;
    ChHandsReply reply = {0};

    if (!ch_hands_network_name_is_valid(disk->volume) ||
        (disk->makes_image && !ch_hands_file_name_is_valid(disk->file)))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       DISK_TEXT "no image can be called '%s' in '%s'",
                       disk->file,
                       disk->volume);
    g_strlcpy(request.name, disk->volume, sizeof(request.name));
    if (disk->makes_image) {
        described.capacity = (uint64_t)disk->capacity;
        described.reserve = reserve;
        described.tolerated_percent = (uint32_t)tolerated_percent;
        g_strlcpy(described.file, disk->file, sizeof(described.file));
    }
    if (ch_hands_call_with(pod->hands, &request, &described, &reply, NULL, &reason)) {
        *out_size = (int64_t)reply.size;
        return true;
    }
    if (g_error_matches(reason, CH_ERRNO, EFBIG))
        return fail_space(disk, (int64_t)reply.size, tolerated_percent, error);
    g_propagate_error(error, g_steal_pointer(&reason));
    return false;
}

static const ChHandsImage asked_images[] = {
    [CH_POD_IMAGE_NO_CLOUD] = CH_HANDS_IMAGE_NO_CLOUD,
    [CH_POD_IMAGE_CONFIG_DRIVE] = CH_HANDS_IMAGE_CONFIG_DRIVE,
    [CH_POD_IMAGE_CONFIG_MAP] = CH_HANDS_IMAGE_CONFIG_MAP,
    [CH_POD_IMAGE_DOWNWARD_API] = CH_HANDS_IMAGE_DOWNWARD_API,
    [CH_POD_IMAGE_SECRET] = CH_HANDS_IMAGE_SECRET,
    [CH_POD_IMAGE_SYSPREP] = CH_HANDS_IMAGE_SYSPREP,
    [CH_POD_IMAGE_SERVICE_ACCOUNT] = CH_HANDS_IMAGE_SERVICE_ACCOUNT,
};
G_STATIC_ASSERT(G_N_ELEMENTS(asked_images) == CH_POD_IMAGE_N);

static void
keep_size(ChPod *pod, char *key /* (transfer full) */, int64_t size)
{
    if (pod->sizes == NULL)
        pod->sizes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_hash_table_replace(pod->sizes, key, g_memdup2(&size, sizeof(size)));
}

bool
ch_pod_stat_image(ChPod *pod,
                  ChPodImage image,
                  const char *namespace_,
                  const char *name,
                  int64_t *out_size,
                  GError **error)
{
    g_autofree char *key = g_strdup_printf("%d/%s", (int)image, name);
    const int64_t *known = pod->sizes != NULL ? g_hash_table_lookup(pod->sizes, key) : NULL;
    g_autoptr(GError) reason = NULL;
    ChHandsRequest request = {
        .op = CH_HANDS_OP_IMAGE_STAT,
        .handle = pod->handle,
        .image = asked_images[image],
    };
    ChHandsReply reply;

    if (known != NULL) {
        *out_size = *known;
        return true;
    }
    if (!ch_hands_uid_is_valid(namespace_) || !ch_hands_network_name_is_valid(name))
        return ch_fail(
            error, CH_ERROR_INVALID, "no image can be of '%s' in '%s'", name, namespace_);
    g_strlcpy(request.uid, namespace_, sizeof(request.uid));
    g_strlcpy(request.name, name, sizeof(request.name));
    if (!ch_hands_call(pod->hands, &request, &reply, NULL, &reason)) {
        if (g_error_matches(reason, CH_ERRNO, ENOENT))
            keep_size(pod, g_steal_pointer(&key), -1);
        g_propagate_error(error, g_steal_pointer(&reason));
        return false;
    }
    *out_size = (int64_t)MIN(reply.size, G_MAXINT64);
    keep_size(pod, g_steal_pointer(&key), *out_size);
    return true;
}

const char *
ch_pod_peek_label(ChPod *pod, GError **error)
{
    const ChHandsRequest request = {.op = CH_HANDS_OP_LABEL_READ, .handle = pod->handle};
    ChHandsReply reply;

    if (pod->label == NULL && ch_hands_call(pod->hands, &request, &reply, NULL, error))
        pod->label = g_utf8_make_valid(reply.text, -1);
    return pod->label;
}

bool
ch_pod_ask(const ChPod *pod,
           const ChHandsRequest *request,
           const void *bytes,
           ChHandsReply *out_reply,
           GError **error)
{
    ChHandsRequest asked = *request;

    asked.handle = pod->handle;
    return ch_hands_call_with(pod->hands, &asked, bytes, out_reply, NULL, error);
}

bool
ch_pod_has_devices(ChPod *pod, uint32_t flags, GError **error)
{
    const ChHandsRequest request = {.op = CH_HANDS_OP_DEVICES_LOOK, .flags = flags};

    if (flags == 0 || (pod->has_devices && pod->devices_flags == flags))
        return true;
    if (!ch_pod_ask(pod, &request, NULL, NULL, error))
        return false;
    pod->has_devices = true;
    pod->devices_flags = flags;
    return true;
}
