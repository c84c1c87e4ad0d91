/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hotplug-ask: the hands' operations on hotplugged volumes.
 */

#include <string.h>

#include "handler/pod/hands-request.h"
#include "handler/pod/hotplug-internal.h"
#include "lib/base/errors.h"

#define SUFFIX ".img"

static const ChHandsMount mounts[] = {
    [CH_HOTPLUG_FILE] = CH_HANDS_MOUNT_HOTPLUG_FILE,
    [CH_HOTPLUG_DIR] = CH_HANDS_MOUNT_HOTPLUG_DIR,
    [CH_HOTPLUG_BLOCK] = CH_HANDS_MOUNT_NONE,
};
G_STATIC_ASSERT(G_N_ELEMENTS(mounts) == CH_HOTPLUG_N);

/* @name: (nullable), @source_uid: (nullable) */
static bool
fill(ChHandsRequest *out_request,
     ChHandsOp op,
     const char *pod_uid,
     const char *name,
     const char *source_uid,
     GError **error)
{
    if (!ch_hands_request_for_uid(out_request, op, pod_uid, error))
        return false;
    if (name != NULL && !ch_hands_network_name_is_valid(name))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' cannot be a volume", name);
    if (name != NULL)
        g_strlcpy(out_request->name, name, sizeof(out_request->name));
    if (source_uid != NULL && !ch_hands_uid_is_valid(source_uid))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' cannot be a pod's UID", source_uid);
    if (source_uid != NULL)
        g_strlcpy(out_request->source_uid, source_uid, sizeof(out_request->source_uid));
    return true;
}

/* Any name will do: it is the same directory, and the same socket, for all volumes. */
static bool
look_at_source(const ChHotplug *hotplug, const char *uid, ChHandsReply *out_reply, GError **error)
{
    ChHandsRequest request;

    if (!fill(&request, CH_HANDS_OP_SOURCE_LOOK, uid, "hp", NULL, error))
        return false;
    request.mount = CH_HANDS_MOUNT_HOTPLUG_FILE;
    return ch_hands_call(hotplug->hands, &request, out_reply, NULL, error);
}

bool
ch_hotplug_ask_dir(const ChHotplug *hotplug, const char *pod_uid, bool *out_exists, GError **error)
{
    ChHandsReply reply;

    if (!look_at_source(hotplug, pod_uid, &reply, error))
        return false;
    *out_exists = reply.look.dir_errno == 0;
    return true;
}

bool
ch_hotplug_ask_source(const ChHotplug *hotplug, const char *source_uid, GError **error)
{
    ChHandsReply reply;

    if (!look_at_source(hotplug, source_uid, &reply, error))
        return false;
    if (reply.look.dir_errno != 0)
        return ch_fail_errno(error, reply.look.dir_errno, "open the directory of its volumes");
    if (reply.look.socket_errno != 0)
        return ch_fail_errno(error, reply.look.socket_errno, "find its socket");
    return reply.look.process_errno == 0 ||
           ch_fail_errno(error, reply.look.process_errno, "find the process at its socket");
}

bool
ch_hotplug_ask_node(const ChHotplug *hotplug,
                    const char *pod_uid,
                    const char *target_name,
                    const char *source_uid,
                    ChHandsReply *out_reply,
                    GError **error)
{
    ChHandsRequest request;

    return fill(&request, CH_HANDS_OP_NODE_LOOK, pod_uid, target_name, source_uid, error) &&
           ch_hands_call(hotplug->hands, &request, out_reply, NULL, error);
}

bool
ch_hotplug_make_node(const ChHotplug *hotplug,
                     const char *pod_uid,
                     const char *volume,
                     const char *source_uid,
                     ChHandsReply *out_reply,
                     GError **error)
{
    ChHandsRequest request;

    return fill(&request, CH_HANDS_OP_NODE_MAKE, pod_uid, volume, source_uid, error) &&
           ch_hands_call(hotplug->hands, &request, out_reply, NULL, error);
}

bool
ch_hotplug_remove_node(const ChHotplug *hotplug,
                       const char *pod_uid,
                       const char *target_name,
                       GError **error)
{
    ChHandsRequest request;

    return fill(&request, CH_HANDS_OP_NODE_REMOVE, pod_uid, target_name, NULL, error) &&
           ch_hands_call(hotplug->hands, &request, NULL, NULL, error);
}

bool
ch_hotplug_ask_target(const ChHotplug *hotplug,
                      const char *pod_uid,
                      const ChHotplugVolume *volume,
                      ChHandsReply *out_reply,
                      GError **error)
{
    ChHandsRequest request;

    if (!fill(&request, CH_HANDS_OP_TARGET_LOOK, pod_uid, volume->name, NULL, error))
        return false;
    request.mount = mounts[volume->kind];
    return ch_hands_call(hotplug->hands, &request, out_reply, NULL, error);
}

bool
ch_hotplug_ask_mount(const ChHotplug *hotplug,
                     const char *pod_uid,
                     const ChHotplugVolume *volume,
                     ChHandsReply *out_reply,
                     GError **error)
{
    ChHandsRequest request;

    *out_reply = (ChHandsReply){0};
    if (!fill(&request, CH_HANDS_OP_MOUNT, pod_uid, volume->name, volume->source_uid, error))
        return false;
    request.mount = mounts[volume->kind];
    request.flags = CH_HANDS_OWN;
    return ch_hands_call(hotplug->hands, &request, out_reply, NULL, error);
}

bool
ch_hotplug_ask_unmount(const ChHotplug *hotplug,
                       const char *pod_uid,
                       const char *target_name,
                       GError **error)
{
    const bool is_file = g_str_has_suffix(target_name, SUFFIX);
    g_autofree char *volume =
        g_strndup(target_name, strlen(target_name) - (is_file ? strlen(SUFFIX) : 0));
    ChHandsRequest request;

    if (!fill(&request, CH_HANDS_OP_UNMOUNT, pod_uid, volume, NULL, error))
        return false;
    request.mount = is_file ? CH_HANDS_MOUNT_HOTPLUG_FILE : CH_HANDS_MOUNT_HOTPLUG_DIR;
    request.flags = CH_HANDS_REMOVE;
    return ch_hands_call(hotplug->hands, &request, NULL, NULL, error);
}

bool
ch_hotplug_sweep(const ChHotplug *hotplug, const char *pod_uid, GError **error)
{
    ChHandsRequest request;

    return fill(&request, CH_HANDS_OP_SWEEP, pod_uid, NULL, NULL, error) &&
           ch_hands_call(hotplug->hands, &request, NULL, NULL, error);
}
