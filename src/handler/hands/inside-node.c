/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-node.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "handler/hands/dir-list.h"
#include "handler/hands/reply.h"
#include "handler/hands/target.h"
#include "lib/base/fd.h"
#include "lib/linux/mount-tree.h"
#include "lib/linux/safe-path.h"

#define NON_ROOT_ID     107  /* user and group `qemu` of every launcher image */
#define MAX_NODES       16   /* names in a source's directory; there is one */
#define MAX_VOLUMES     1024 /* names in a pod's directory that are looked at */
#define PERMISSION_BITS 0777u

/* Opens the directory of a pod, and what has the volume's name in it, if anything. */
static bool
open_volume(const ChHandsRequest *request,
            const char *uid,
            ChTarget *out_target,
            ChHandsReply *reply)
{
    ChHandsRequest volume = *request;

    volume.mount = CH_HANDS_MOUNT_HOTPLUG_DIR;
    memcpy(volume.uid, uid, sizeof(volume.uid));
    return ch_target_open(&volume, "", false, out_target, reply);
}

/* --- the source --- */

/* The first block device by name. The runtime gives it one name: another is not from there. Returns
 * 0 or a positive errno. */
static int
find_device(int dir_fd, ChHandsNode *out_source)
{
    static char names[MAX_NODES][CH_DIR_NAME_SIZE];
    const int n = ch_dir_list(dir_fd, names, MAX_NODES);
    const char *first = NULL;

    if (n < 0)
        return -n;
    for (int i = 0; i < n; i++) {
        ch_autofd int fd = ch_safe_open(dir_fd, names[i], O_PATH, 0, CH_RESOLVE_NO_LINKS);
        struct stat st;
        const int result = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

        if (ch_reply_is_unknown(result))
            return -result;
        if (result < 0 || !S_ISBLK(st.st_mode) || st.st_nlink != 1 ||
            (first != NULL && strcmp(first, names[i]) < 0))
            continue;
        first = names[i];
        *out_source = (ChHandsNode){.rdev = st.st_rdev, .mode = st.st_mode};
    }
    return first != NULL ? 0 : ENODEV;
}

/* What is not there is no failure of the operation. */
static void
look_at_source(const ChHandsRequest *request, ChHandsReply *reply)
{
    ChTarget dir = CH_TARGET_INIT;
    ChHandsReply ignored = {0};
    ch_autofd int list_fd = -EBADF;

    reply->source = (ChHandsNode){0};
    if (!open_volume(request, request->source_uid, &dir, &ignored)) {
        reply->source.errnum = ignored.errnum;
        return;
    }
    if (dir.fd >= 0)
        list_fd =
            ch_safe_open(dir.dir_fd, dir.name, O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    reply->source.errnum = dir.fd < 0    ? ENOENT
                           : list_fd < 0 ? -list_fd
                                         : find_device(list_fd, &reply->source);
    ch_target_clear(&dir);
}

/* --- the target --- */

bool
ch_inside_look_at_node(const ChHandsRequest *request, ChHandsReply *reply)
{
    ChTarget target = CH_TARGET_INIT;

    if (!open_volume(request, request->uid, &target, reply))
        return false;
    reply->target = target.facts;
    ch_target_clear(&target);
    if (request->source_uid[0] != '\0')
        look_at_source(request, reply);
    return true;
}

/* Whether what is there is the node already. A second name of it would be given away too. */
static bool
is_made(const ChTarget *target, const ChHandsNode *source)
{
    struct stat st;

    return source->errnum != 0 ||
           (target->facts.rdev == source->rdev && fstat(target->fd, &st) == 0 && st.st_nlink == 1);
}

/* In the place of one with other numbers, if there is one. */
static bool
make(ChTarget *target, ChHandsReply *reply)
{
    const mode_t mode = S_IFBLK | (reply->source.mode & PERMISSION_BITS);

    if (target->fd >= 0) {
        if (unlinkat(target->dir_fd, target->name, 0) < 0 && errno != ENOENT)
            return ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, errno, "remove the old node");
        if (target->facts.rdev != reply->source.rdev)
            reply->dev = target->facts.rdev;
    }
    if (mknodat(target->dir_fd, target->name, mode, reply->source.rdev) < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, errno, "create the node");
    if (!ch_target_reopen(target, reply))
        return false;
    /* The pod may have put something else there. */
    if (target->fd < 0 || !S_ISBLK(target->facts.mode) || target->facts.rdev != reply->source.rdev)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_TARGET, ESTALE, "something else has the node's name");
    reply->size = 1;
    return true;
}

static bool
make_target(ChTarget *target, ChHandsReply *reply)
{
    int result;

    if (target->fd >= 0 && !S_ISBLK(target->facts.mode))
        return ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, ENOTBLK, "look at the node");
    /* A node that is there stays when its source is gone, but not because nobody could look. */
    if (reply->source.errnum != 0 && (target->fd < 0 || ch_reply_is_unknown(-reply->source.errnum)))
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_IMAGE, reply->source.errnum, "find the device of the volume");
    if ((target->fd < 0 || !is_made(target, &reply->source)) && !make(target, reply))
        return false;
    reply->target = target->facts;
    result = ch_safe_chown(target->fd, NON_ROOT_ID, NON_ROOT_ID);
    return result == 0 ||
           ch_reply_fail_step(reply, CH_HANDS_STEP_OWN, result, "change the ownership of the node");
}

bool
ch_inside_make_node(const ChHandsRequest *request, ChHandsReply *reply)
{
    ChTarget target = CH_TARGET_INIT;
    bool is_done;

    if (!open_volume(request, request->uid, &target, reply))
        return false;
    look_at_source(request, reply);
    is_done = make_target(&target, reply);
    ch_target_clear(&target);
    return is_done;
}

/* --- devices of volumes --- */

/* The number of a node; one that is mounted is no volume's. Returns 1, 0: it is none, or -errno:
 * that cannot be told. */
static int
look_at_name(int dir_fd, const char *name, dev_t *out_rdev)
{
    ch_autofd int fd = ch_safe_open(dir_fd, name, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    bool is_mounted = true;
    struct stat st;
    int result = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

    if (result == 0 && S_ISBLK(st.st_mode))
        result = ch_mount_is_root(fd, &is_mounted);
    if (result < 0)
        return ch_reply_is_unknown(result) ? result : 0;
    *out_rdev = st.st_rdev;
    return !is_mounted;
}

/* The numbers of the nodes in an open directory. Returns how many, or -errno. */
static int
list_nodes(int dir_fd, dev_t rdevs[MAX_VOLUMES])
{
    static char names[MAX_VOLUMES][CH_DIR_NAME_SIZE];
    ch_autofd int list_fd =
        ch_safe_open(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    const int n = list_fd < 0 ? list_fd : ch_dir_list(list_fd, names, MAX_VOLUMES);
    int n_nodes = 0;

    for (int i = 0; i < n; i++) {
        const int is_node = look_at_name(dir_fd, names[i], &rdevs[n_nodes]);

        if (is_node < 0)
            return is_node;
        n_nodes += is_node;
    }
    return n < 0 ? n : n_nodes;
}

static bool
is_of_node(const ChDeviceRule *rule, const dev_t *rdevs, int n_nodes)
{
    for (int i = 0; i < n_nodes && rule->type == 'b'; i++)
        if (rule->major_number == (int64_t)major(rdevs[i]) &&
            rule->minor_number == (int64_t)minor(rdevs[i]))
            return true;
    return false;
}

/* The rules of the base are about one device each, and allow everything. */
static bool
is_in_base(const ChDeviceRule *rule, const ChDeviceRules *base)
{
    for (size_t i = 0; i < base->n_rules; i++)
        if (ch_device_rule_has_key_of(rule, &base->rules[i]))
            return true;
    return false;
}

/* Those that allow something that is not the pod's anyhow. */
static void
take_claims(const ChDeviceRules *rules, const ChDeviceRules *base, ChDeviceRules *out_claims)
{
    out_claims->n_rules = 0;
    for (size_t i = 0; i < rules->n_rules; i++)
        if (rules->rules[i].is_allowed && !is_in_base(&rules->rules[i], base))
            out_claims->rules[out_claims->n_rules++] = rules->rules[i];
}

bool
ch_inside_has_volumes(const char *pod_uid,
                      const ChDeviceRules *rules,
                      const ChDeviceRules *base,
                      ChHandsReply *reply)
{
    static ChDeviceRules claims;
    static dev_t rdevs[MAX_VOLUMES];
    ch_autofd int dir_fd = -EBADF;
    int n_nodes;

    take_claims(rules, base, &claims);
    if (claims.n_rules == 0)
        return true;
    dir_fd = ch_target_open_dir(pod_uid, CH_HANDS_MOUNT_HOTPLUG_DIR);
    if (dir_fd < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_DIR, dir_fd, "open the pod's directory");
    n_nodes = list_nodes(dir_fd, rdevs);
    if (n_nodes < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, n_nodes, "list the volumes");
    for (size_t i = 0; i < claims.n_rules; i++) {
        char line[CH_DEVICE_LINE_SIZE];

        if (is_of_node(&claims.rules[i], rdevs, n_nodes))
            continue;
        ch_device_line_print(line, &claims.rules[i]);
        return ch_reply_fail(reply, EPERM, "device '%s' is of no volume of the pod", line);
    }
    return true;
}

bool
ch_inside_remove_node(const ChHandsRequest *request, ChHandsReply *reply)
{
    ChTarget target = CH_TARGET_INIT;
    bool is_done = true;

    if (!open_volume(request, request->uid, &target, reply))
        return false;
    if (target.fd >= 0 && !S_ISBLK(target.facts.mode))
        is_done = ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, ENOTBLK, "look at the node");
    else if (target.fd >= 0 && unlinkat(target.dir_fd, target.name, 0) < 0 && errno != ENOENT)
        is_done = ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, errno, "remove the node");
    ch_target_clear(&target);
    return is_done;
}
