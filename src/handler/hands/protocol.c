/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/protocol.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

typedef enum {
    TAKES_UID = 1u << 0,
    TAKES_HANDLE = 1u << 1,
    TAKES_DEVICES = 1u << 2,
    TAKES_IDENTITY = 1u << 3,
    TAKES_NET = 1u << 4,
    TAKES_SYSCTLS = 1u << 5,
    TAKES_LINK = 1u << 6,
    TAKES_NETWORK = 1u << 8,
    TAKES_BYTES = 1u << 7,
    TAKES_IMAGE = 1u << 9,
    TAKES_MOUNT = 1u << 10, /* with what the kind of mount has: index or name */
    TAKES_SOURCE = 1u << 11,
    MAY_TAKE_SOURCE = 1u << 13,
    TAKES_PATH = 1u << 12, /* with the kinds of mount that have one */
    TAKES_PART = 1u << 14, /* of an image: crc, offset, identity; all 0: the first */
    MAY_TAKE_SYSCTLS = 1u << 16,
} Takes;

#define LINK_NAME_SIZE 16 /* the kernel's IFNAMSIZ */

#define PIPE_FLAGS CH_HANDS_NON_ROOT
#define TAP_FLAGS  (CH_HANDS_NON_ROOT | CH_HANDS_MULTI_QUEUE)
#define DEVS_FLAGS (CH_HANDS_RNG | CH_HANDS_VSOCK)

static const struct {
    const char *name;
    unsigned takes;
    uint32_t flags; /* that it takes */
    bool is_silent;
} operations[] = {
    /* clang-format off */
    [CH_HANDS_OP_HELLO]        = {"hello",        0,                                    0, false},
    [CH_HANDS_OP_LOOK]         = {"look",         TAKES_UID,                            0, false},
    [CH_HANDS_OP_MARK]         = {"mark",         TAKES_UID,                            0, false},
    [CH_HANDS_OP_PROBE]        = {"probe",        TAKES_UID,                            0, false},
    [CH_HANDS_OP_CONNECT]      = {"connect",      TAKES_UID,                            0, false},
    [CH_HANDS_OP_PIPE_OPEN]    = {"pipe-open",    TAKES_HANDLE,                         PIPE_FLAGS, false},
    [CH_HANDS_OP_PIPE_CLOSE]   = {"pipe-close",   TAKES_HANDLE | TAKES_IDENTITY,        0, true},
    [CH_HANDS_OP_DEVICES_OWN]  = {"devices-own",  TAKES_HANDLE | TAKES_DEVICES,         CH_HANDS_EMULATION, false},
    [CH_HANDS_OP_RELEASE]      = {"release",      TAKES_HANDLE,                         0, true},
    [CH_HANDS_OP_NET_OPEN]     = {"net-open",     TAKES_HANDLE | TAKES_NET | MAY_TAKE_SYSCTLS, 0, false},
    [CH_HANDS_OP_NET_SEND]     = {"net-send",     TAKES_HANDLE | TAKES_NET | TAKES_BYTES, 0, false},
    [CH_HANDS_OP_NET_CLOSE]    = {"net-close",    TAKES_HANDLE,                         0, true},
    [CH_HANDS_OP_TAP_MAKE]     = {"tap-make",     TAKES_HANDLE | TAKES_LINK,            TAP_FLAGS, false},
    [CH_HANDS_OP_SYSCTLS_SET]  = {"sysctls-set",  TAKES_HANDLE | TAKES_SYSCTLS,         0, false},
    [CH_HANDS_OP_DHCP_STORE]   = {"dhcp-store",   TAKES_HANDLE | TAKES_LINK | TAKES_BYTES, 0, false},
    [CH_HANDS_OP_DHCP_REMOVE]  = {"dhcp-remove",  TAKES_HANDLE | TAKES_LINK,            0, false},
    [CH_HANDS_OP_CACHE_OWN]    = {"cache-own",    TAKES_UID | TAKES_NETWORK,            0, false},
    [CH_HANDS_OP_RECONNECT]    = {"reconnect",    TAKES_HANDLE,                         0, false},
    [CH_HANDS_OP_IMAGE_STAT]   = {"image-stat",   TAKES_HANDLE | TAKES_IMAGE | TAKES_UID | TAKES_NETWORK, 0, false},
    [CH_HANDS_OP_LABEL_READ]   = {"label-read",   TAKES_HANDLE,                         0, false},
    [CH_HANDS_OP_PASST_REPAIR] = {"passt-repair", TAKES_HANDLE,                         CH_HANDS_TARGET, false},
    [CH_HANDS_OP_SOURCE_LOOK]  = {"source-look",  TAKES_UID | TAKES_MOUNT,              0, false},
    [CH_HANDS_OP_TARGET_LOOK]  = {"target-look",  TAKES_UID | TAKES_MOUNT | TAKES_PATH, 0, false},
    [CH_HANDS_OP_MOUNT]        = {"mount",        TAKES_UID | TAKES_MOUNT | TAKES_SOURCE | TAKES_PATH, CH_HANDS_OWN, false},
    [CH_HANDS_OP_UNMOUNT]      = {"unmount",      TAKES_UID | TAKES_MOUNT,              CH_HANDS_REMOVE, false},
    [CH_HANDS_OP_NODE_LOOK]    = {"node-look",    TAKES_UID | TAKES_NETWORK | MAY_TAKE_SOURCE, 0, false},
    [CH_HANDS_OP_NODE_MAKE]    = {"node-make",    TAKES_UID | TAKES_NETWORK | TAKES_SOURCE, 0, false},
    [CH_HANDS_OP_NODE_REMOVE]  = {"node-remove",  TAKES_UID | TAKES_NETWORK,            0, false},
    [CH_HANDS_OP_SWEEP] = {"sweep", TAKES_UID,                          0, false},
    [CH_HANDS_OP_IMAGE_SUM]    = {"image-sum",    TAKES_UID | TAKES_MOUNT | TAKES_PATH | TAKES_PART, 0, false},
    [CH_HANDS_OP_DEVICES_LOOK] = {"devices-look", TAKES_HANDLE,                         DEVS_FLAGS, false},
    [CH_HANDS_OP_DEVICES_SET]  = {"devices-set",  TAKES_HANDLE | TAKES_BYTES,           DEVS_FLAGS, false},
    [CH_HANDS_OP_MEMLOCK_SET]  = {"memlock-set",  TAKES_HANDLE | TAKES_BYTES,           CH_HANDS_QEMU, false},
    [CH_HANDS_OP_HOUSE_KEEP]   = {"house-keep",   TAKES_HANDLE | TAKES_BYTES,           CH_HANDS_MSHV, false},
    [CH_HANDS_OP_REALTIME_SET] = {"realtime-set", TAKES_HANDLE | TAKES_BYTES,           CH_HANDS_MSHV, false},
    [CH_HANDS_OP_PIT_SET]      = {"pit-set",      TAKES_HANDLE,                         CH_HANDS_REALTIME, false},
    [CH_HANDS_OP_BLOCK_OWN]    = {"block-own",    TAKES_HANDLE | TAKES_NETWORK,         0, false},
    [CH_HANDS_OP_VIRTIOFS_OWN] = {"virtiofs-own", TAKES_HANDLE | TAKES_NETWORK,         0, false},
    [CH_HANDS_OP_DISK_PREPARE] = {"disk-prepare", TAKES_HANDLE | TAKES_NETWORK | TAKES_BYTES, CH_HANDS_NON_ROOT, false},
    [CH_HANDS_OP_METRICS_WRITE] = {"metrics-write", TAKES_HANDLE | TAKES_BYTES,         0, false},
    [CH_HANDS_OP_METRICS_CONNECT] = {"metrics-connect", TAKES_HANDLE,                   0, false},
    [CH_HANDS_OP_MULTIPATH_WATCH]   = {"multipath-watch",   0,                          0, false},
    [CH_HANDS_OP_MULTIPATH_SET]     = {"multipath-set",     0,                          CH_HANDS_REMOVE, false},
    [CH_HANDS_OP_RESERVATION_WATCH] = {"reservation-watch", 0,                          0, false},
    [CH_HANDS_OP_RESERVATION_OWN]   = {"reservation-own",   0,                          0, false},
    /* clang-format on */
};
G_STATIC_ASSERT(G_N_ELEMENTS(operations) == CH_HANDS_OP_N);

typedef enum { NO_PATH = 0, MAY_HAVE_PATH, HAS_PATH } PathRule;

/* What a request about a kind of mount says of it. */
static const struct {
    bool has_index;
    bool has_name;
    PathRule path;
} mounts[] = {
    [CH_HANDS_MOUNT_DISK] = {.has_index = true, .path = MAY_HAVE_PATH},
    [CH_HANDS_MOUNT_BOOT] = {.path = HAS_PATH},
    [CH_HANDS_MOUNT_HOTPLUG_FILE] = {.has_name = true},
    [CH_HANDS_MOUNT_HOTPLUG_DIR] = {.has_name = true},
};
G_STATIC_ASSERT(G_N_ELEMENTS(mounts) == CH_HANDS_MOUNT_N);

static bool
is_zero(const char *bytes, gsize n_bytes)
{
    for (gsize i = 0; i < n_bytes; i++)
        if (bytes[i] != '\0')
            return false;
    return true;
}

bool
ch_hands_uid_is_valid(const char *uid)
{
    const gsize length = strlen(uid);

    /* Neither '.' nor '/' is in the set: it is one component, and not "..". */
    return length > 0 && length < CH_HANDS_UID_SIZE &&
           strspn(uid, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == length;
}

bool
ch_hands_network_name_is_valid(const char *name)
{
    const gsize length = strlen(name);

    /* No '/', and neither "." nor "..": it becomes part of a file's name. */
    return length > 0 && length < CH_HANDS_NAME_SIZE && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
               length;
}

bool
ch_hands_link_name_is_valid(const char *name)
{
    return ch_hands_network_name_is_valid(name) && strlen(name) < LINK_NAME_SIZE;
}

bool
ch_hands_path_is_valid(const char *path, gsize n_bytes)
{
    const char *slash, *name;

    if (n_bytes == 0 || n_bytes >= CH_HANDS_PATH_SIZE || memchr(path, '\0', n_bytes) != NULL)
        return false;
    slash = memrchr(path, '/', n_bytes);
    name = slash == NULL ? path : slash + 1;
    n_bytes -= (gsize)(name - path);
    return n_bytes > 0 && n_bytes <= NAME_MAX && !(n_bytes == 1 && name[0] == '.') &&
           !(n_bytes == 2 && name[0] == '.' && name[1] == '.');
}

bool
ch_hands_file_name_is_valid(const char *name)
{
    const gsize length = strlen(name);

    return length > 0 && length < CH_HANDS_FILE_SIZE && strchr(name, '/') == NULL &&
           !g_str_equal(name, ".") && !g_str_equal(name, "..");
}

/* The field's whole size counts: nothing may hide behind the NUL. */
static bool
text_is_good(const char *text, gsize size, bool is_taken, bool (*is_valid)(const char *text))
{
    const char *end = memchr(text, '\0', size);

    if (end == NULL || !is_zero(end, (gsize)(text + size - end)))
        return false;
    return is_taken ? is_valid(text) : end == text;
}

/* An enumeration is there exactly when it is taken. */
static bool
choice_is_good(uint32_t value, uint32_t end, bool is_taken)
{
    return (value != 0) == is_taken && value < end;
}

/* Of a request that is about a mount, or that is not. */
static bool
path_is_good(const ChHandsRequest *request, unsigned takes)
{
    const PathRule rule = takes & TAKES_PATH ? mounts[request->mount].path : NO_PATH;

    /* The bytes themselves are checked with the operation. */
    return request->n_bytes < CH_HANDS_PATH_SIZE &&
           (rule == MAY_HAVE_PATH || (request->n_bytes > 0) == (rule == HAS_PATH));
}

static bool
mount_is_good(const ChHandsRequest *request, unsigned takes)
{
    if (!choice_is_good(request->mount, CH_HANDS_MOUNT_N, takes & TAKES_MOUNT))
        return false;
    if (!(mounts[request->mount].has_index ? request->index <= CH_HANDS_MAX_INDEX
                                           : request->index == 0))
        return false;
    return takes & TAKES_BYTES ? choice_is_good(request->n_bytes, CH_HANDS_MAX_BYTES + 1, true)
                               : path_is_good(request, takes);
}

/* Of a pipe, or of an image that is read on from somewhere. */
static bool
identity_is_good(const ChHandsRequest *request, unsigned takes)
{
    if (takes & TAKES_PART && request->offset > 0)
        return request->ino != 0;
    if (request->offset != 0 || request->crc != 0)
        return false;
    return takes & TAKES_IDENTITY ? request->ino != 0 : request->dev == 0 && request->ino == 0;
}

static bool
sysctls_are_good(uint32_t sysctls, unsigned takes)
{
    return (takes & MAY_TAKE_SYSCTLS && sysctls == 0) ||
           choice_is_good(
               sysctls, CH_HANDS_SYSCTLS + 1, takes & (TAKES_SYSCTLS | MAY_TAKE_SYSCTLS));
}

static bool
arguments_are_good(const ChHandsRequest *request, unsigned takes, uint32_t flags)
{
    return mount_is_good(request, takes) &&
           text_is_good(
               request->uid, sizeof(request->uid), takes & TAKES_UID, ch_hands_uid_is_valid) &&
           text_is_good(request->source_uid,
                        sizeof(request->source_uid),
                        takes & TAKES_SOURCE ||
                            (takes & MAY_TAKE_SOURCE && request->source_uid[0] != '\0'),
                        ch_hands_uid_is_valid) &&
           text_is_good(request->name,
                        sizeof(request->name),
                        takes & (TAKES_LINK | TAKES_NETWORK) || mounts[request->mount].has_name,
                        takes & TAKES_LINK ? ch_hands_link_name_is_valid
                                           : ch_hands_network_name_is_valid) &&
           (request->handle != 0) == ((takes & TAKES_HANDLE) != 0) &&
           (request->flags & ~flags) == 0 &&
           choice_is_good(request->devices, CH_HANDS_DEVICES + 1, takes & TAKES_DEVICES) &&
           choice_is_good(request->net, CH_HANDS_NET_N, takes & TAKES_NET) &&
           sysctls_are_good(request->sysctls, takes) &&
           choice_is_good(request->image, CH_HANDS_IMAGE_N, takes & TAKES_IMAGE) &&
           identity_is_good(request, takes);
}

int
ch_hands_request_check(const void *bytes, gsize n_bytes, ChHandsRequest *out_request)
{
    if (n_bytes < sizeof(*out_request))
        return EBADMSG;
    memcpy(out_request, bytes, sizeof(*out_request));
    if (n_bytes - sizeof(*out_request) != out_request->n_bytes)
        return EBADMSG;
    if (out_request->version != CH_HANDS_VERSION)
        return EPROTO;
    if (out_request->op == CH_HANDS_OP_INVALID || out_request->op >= CH_HANDS_OP_N)
        return ENOSYS;
    return arguments_are_good(
               out_request, operations[out_request->op].takes, operations[out_request->op].flags)
               ? 0
               : EINVAL;
}

int64_t
ch_hands_op_deadline_us(uint32_t op)
{
    return op == CH_HANDS_OP_PASST_REPAIR ? INT64_C(63000000) : INT64_C(5000000);
}

int
ch_hands_disk_check(const void *bytes, gsize n_bytes, ChHandsDisk *out_disk)
{
    bool is_empty;

    if (n_bytes != sizeof(*out_disk))
        return EBADMSG;
    memcpy(out_disk, bytes, sizeof(*out_disk));
    is_empty =
        out_disk->capacity == 0 && out_disk->reserve == 0 && out_disk->tolerated_percent == 0;
    return out_disk->makes_image <= 1 && (out_disk->makes_image || is_empty) &&
                   out_disk->tolerated_percent <= 100 && out_disk->capacity <= G_MAXINT64 &&
                   text_is_good(out_disk->file,
                                sizeof(out_disk->file),
                                out_disk->makes_image,
                                ch_hands_file_name_is_valid)
               ? 0
               : EINVAL;
}

bool
ch_hands_op_is_silent(uint32_t op)
{
    return op > CH_HANDS_OP_INVALID && op < CH_HANDS_OP_N && operations[op].is_silent;
}

const char *
ch_hands_op_name(uint32_t op)
{
    return op > CH_HANDS_OP_INVALID && op < CH_HANDS_OP_N ? operations[op].name : "unknown";
}
