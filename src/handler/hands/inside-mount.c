/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-mount.h"

#include <errno.h>

#include "handler/hands/content.h"
#include "handler/hands/mount-spaces.h"
#include "handler/hands/reply.h"
#include "handler/hands/source.h"
#include "handler/hands/target.h"
#include "lib/base/fd.h"
#include "lib/linux/mount-tree.h"
#include "lib/linux/pidfd.h"
#include "lib/linux/safe-path.h"

#define NON_ROOT_ID 107 /* user and group `qemu` of every launcher image */

/* --- the source */

/* In the mount namespace of the source. Returns a detached clone, or -EBADF with the reply filled
 * in; @out_content: what is its root */
static int
clone_content(const ChHandsRequest *request,
              const char *path,
              const ChSource *source,
              ChFileId *out_content,
              bool *out_is_restricted,
              ChHandsReply *reply)
{
    ch_autofd int content_fd = ch_content_open(request, path, source->root_fd, reply);
    ch_autofd int tree_fd = -EBADF;
    int result;

    if (content_fd < 0)
        return -EBADF;
    tree_fd = ch_mount_tree_clone(content_fd);
    result = tree_fd < 0 ? tree_fd : ch_safe_identify(content_fd, out_content, NULL);
    if (result == 0)
        result = ch_mount_tree_restrict(tree_fd, ch_content_is_data(request->mount));
    *out_is_restricted = result == 0 || !ch_content_is_data(request->mount);
    if (result < 0 && result != -ENOSYS)
        (void)ch_reply_fail_step(reply, CH_HANDS_STEP_MOUNT, result, "take a copy of the mount");
    else if (!ch_pidfd_is_alive(source->pidfd))
        (void)ch_reply_fail_step(reply, CH_HANDS_STEP_PROCESS, ESRCH, "the process that serves it");
    else
        return g_steal_fd(&tree_fd);
    return -EBADF;
}

/* Goes home, to the source, and back to the node. Returns as clone_content(). */
static int
fetch_tree(const ChHandsRequest *request,
           const char *path,
           const ChMountSpaces *spaces,
           ChFileId *out_content,
           bool *out_is_restricted,
           ChHandsReply *reply)
{
    const ChSourceName name = {request->source_uid, request->mount, request->index};
    ChSource source = {-EBADF, -EBADF};
    ch_autofd int tree_fd = -EBADF;

    if (!ch_mount_spaces_join(spaces->home_fd, reply) ||
        !ch_source_open(&name, spaces->node_fd, &source, reply))
        return -EBADF;
    if (ch_mount_spaces_join(source.pidfd, reply))
        tree_fd = clone_content(request, path, &source, out_content, out_is_restricted, reply);
    ch_source_clear(&source);
    if (tree_fd >= 0 && !ch_mount_spaces_join(spaces->node_fd, reply))
        return -EBADF;
    return g_steal_fd(&tree_fd);
}

/* --- the target */

/* In the node's namespace. */
static bool
attach(
    int tree_fd, const ChFileId *content, bool is_restricted, ChTarget *target, ChHandsReply *reply)
{
    int result = ch_mount_tree_attach(tree_fd, target->fd);

    if (result < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_MOUNT, result, "mount it");
    if (!is_restricted)
        result = ch_mount_tree_restrict_attached(tree_fd);
    if (result < 0)
        (void)ch_reply_fail_step(reply, CH_HANDS_STEP_MOUNT, result, "make it read-only");
    else if (ch_target_reopen(target, reply)) {
        if (target->facts.is_mounted && target->facts.dev == content->dev &&
            target->facts.ino == content->ino)
            return true;
        (void)ch_reply_fail_step(
            reply, CH_HANDS_STEP_MOUNT, ESTALE, "the target is another file by now");
    }
    (void)ch_mount_detach_root(tree_fd); /* whatever name it has now */
    return false;
}

static bool
own(const ChTarget *target, ChHandsReply *reply)
{
    const int result = ch_safe_chown(target->fd, NON_ROOT_ID, NON_ROOT_ID);

    return result == 0 ||
           ch_reply_fail_step(
               reply, CH_HANDS_STEP_OWN, result, "change the ownership of what is mounted");
}

static bool
mount_target(const ChHandsRequest *request,
             const char *path,
             const ChMountSpaces *spaces,
             ChTarget *target,
             ChHandsReply *reply)
{
    ch_autofd int tree_fd = -EBADF;
    ChFileId content = {0};
    bool is_restricted = false;

    if (!target->facts.is_mounted) {
        tree_fd = fetch_tree(request, path, spaces, &content, &is_restricted, reply);
        if (tree_fd < 0 || !attach(tree_fd, &content, is_restricted, target, reply))
            return false;
        reply->size = 1;
    }
    reply->target = target->facts;
    return !(request->flags & CH_HANDS_OWN) || own(target, reply);
}

bool
ch_inside_mount(const ChHandsRequest *request, const char *path, ChHandsReply *reply)
{
    ChMountSpaces spaces = CH_MOUNT_SPACES_INIT;
    ChTarget target = CH_TARGET_INIT;
    const bool is_done = ch_mount_spaces_open(&spaces, reply) &&
                         ch_mount_spaces_join(spaces.node_fd, reply) &&
                         ch_target_open(request, path, true, &target, reply) &&
                         mount_target(request, path, &spaces, &target, reply);

    ch_target_clear(&target);
    ch_mount_spaces_clear(&spaces);
    return is_done;
}

bool
ch_inside_look_at_target(const ChHandsRequest *request, const char *path, ChHandsReply *reply)
{
    ChMountSpaces spaces = CH_MOUNT_SPACES_INIT;
    ChTarget target = CH_TARGET_INIT;
    const bool is_done = ch_mount_spaces_open(&spaces, reply) &&
                         ch_mount_spaces_join(spaces.node_fd, reply) &&
                         ch_target_open(request, path, false, &target, reply);

    reply->target = target.facts;
    ch_target_clear(&target);
    ch_mount_spaces_clear(&spaces);
    return is_done;
}
