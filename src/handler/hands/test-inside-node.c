/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes are made, never opened: their devices need not exist. */

#include "handler/hands/inside-node.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>

#include "handler/hands/target.h"
#include "handler/hands/test-fake-disk.h"
#include "lib/base/fd.h"

#define ATTACH_UID "aaaabbbb-0000-4000-8000-000000000009"
#define MAJOR      482 /* 123456, as numbers of old were put into 16 bits */
#define MINOR      64

typedef struct {
    char *dir;     /* owned; NULL: no root */
    char *hotplug; /* owned; the launcher's directory of volumes */
    char *volume;  /* owned; the attachment pod's directory of the volume */
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    if (geteuid() != 0)
        return;
    (void)umask(022);
    f->dir = test_tree_new();
    f->hotplug = g_build_filename(f->dir, FAKE_POD_UID, FAKE_HOTPLUG, NULL);
    f->volume = g_build_filename(f->dir, ATTACH_UID, FAKE_HOTPLUG, "vol", NULL);
    test_tree_mkdir(f->hotplug, ".");
    test_tree_mkdir(f->volume, ".");
    ch_target_set_pods_dir(f->dir);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    if (f->dir == NULL)
        return;
    test_tree_remove(f->dir);
    g_free(f->dir);
    g_free(f->hotplug);
    g_free(f->volume);
}

static void
make_device(
    const char *dir, const char *name, mode_t mode, unsigned major_number, unsigned minor_number)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_cmpint(mknod(path, mode, makedev(major_number, minor_number)), ==, 0);
    g_assert_cmpint(chmod(path, mode & 07777), ==, 0);
}

static ChHandsRequest
request_for(const char *source_uid)
{
    ChHandsRequest request = {.name = "vol"};

    g_strlcpy(request.uid, FAKE_POD_UID, sizeof(request.uid));
    g_strlcpy(request.source_uid, source_uid, sizeof(request.source_uid));
    return request;
}

static ChHandsReply
look(const char *source_uid)
{
    const ChHandsRequest request = request_for(source_uid);
    ChHandsReply reply = {0};

    g_assert_true(ch_inside_look_at_node(&request, &reply));
    return reply;
}

static ChHandsReply
make_it(bool succeeds)
{
    const ChHandsRequest request = request_for(ATTACH_UID);
    ChHandsReply reply = {0};

    g_assert_cmpint(ch_inside_make_node(&request, &reply), ==, succeeds);
    g_assert_cmpint(reply.errnum == 0, ==, succeeds);
    return reply;
}

static ChHandsReply
remove_it(bool succeeds)
{
    const ChHandsRequest request = request_for("");
    ChHandsReply reply = {0};

    g_assert_cmpint(ch_inside_remove_node(&request, &reply), ==, succeeds);
    return reply;
}

static void
assert_node(const Fixture *f, unsigned major_number, unsigned minor_number, mode_t mode)
{
    const struct stat st = test_tree_stat(f->hotplug, "vol");

    g_assert_true(S_ISBLK(st.st_mode));
    g_assert_cmpuint(major(st.st_rdev), ==, major_number);
    g_assert_cmpuint(minor(st.st_rdev), ==, minor_number);
    g_assert_cmpuint(st.st_mode & 07777, ==, mode);
    g_assert_cmpuint(st.st_uid, ==, 107);
    g_assert_cmpuint(st.st_gid, ==, 107);
}

/* The source's numbers, its permissions less the umask, the launcher's owner. spec:05-16.4#95
 * spec:05-16.4#96 spec:05-16.4#99 */
static void
test_node_is_made_once(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    make_device(f->volume, "pvc-uid", S_IFBLK | 0777, MAJOR, MINOR);
    reply = look(ATTACH_UID);
    g_assert_cmpuint(reply.target.mode, ==, 0);
    g_assert_cmpint(reply.source.errnum, ==, 0);
    g_assert_cmpuint(reply.source.rdev, ==, makedev(MAJOR, MINOR));
    g_assert_cmpuint(reply.source.rdev, ==, 123456);
    g_assert_cmpuint(reply.source.mode & 07777, ==, 0777);
    reply = make_it(true);
    g_assert_cmpuint(reply.size, ==, 1);
    g_assert_cmpuint(reply.dev, ==, 0);
    g_assert_cmpuint(reply.target.rdev, ==, makedev(MAJOR, MINOR));
    assert_node(f, MAJOR, MINOR, 0755);
    reply = make_it(true);
    g_assert_cmpuint(reply.size, ==, 0);
    reply = look("");
    g_assert_true(S_ISBLK(reply.target.mode));
    g_assert_cmpuint(reply.source.rdev, ==, 0);
}

static void
test_owner_is_put_right(Fixture *f, gconstpointer data)
{
    make_device(f->volume, "pvc-uid", S_IFBLK | 0600, MAJOR, MINOR);
    make_device(f->hotplug, "vol", S_IFBLK | 0600, MAJOR, MINOR);
    g_assert_cmpuint(make_it(true).size, ==, 0);
    assert_node(f, MAJOR, MINOR, 0600);
}

/* Trap 26: a device that was attached again may have other numbers. */
static void
test_old_numbers_are_replaced(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    make_device(f->volume, "pvc-uid", S_IFBLK | 0644, MAJOR, MINOR);
    make_device(f->hotplug, "vol", S_IFBLK | 0644, 7, 1);
    reply = make_it(true);
    g_assert_cmpuint(reply.size, ==, 1);
    g_assert_cmpuint(reply.dev, ==, makedev(7, 1));
    assert_node(f, MAJOR, MINOR, 0644);
}

/* An attachment pod that went takes nothing from the guest. field:FR-G19 */
static void
test_node_stays_without_source(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    make_device(f->hotplug, "vol", S_IFBLK | 0644, 7, 1);
    g_assert_cmpint(make_it(true).source.errnum, ==, ENODEV);
    assert_node(f, 7, 1, 0644);
    test_tree_remove(f->volume);
    reply = make_it(true);
    g_assert_cmpint(reply.source.errnum, ==, ENOENT);
    g_assert_cmpuint(reply.target.rdev, ==, makedev(7, 1));
    assert_node(f, 7, 1, 0644);
}

/* The first one by name; what is no block device is passed over. */
static void
test_first_block_device_counts(Fixture *f, gconstpointer data)
{
    test_tree_write(f->volume, "a", "");
    make_device(f->volume, "b", S_IFCHR | 0666, 1, 3);
    test_tree_link(f->volume, "c", "e");
    make_device(f->volume, "e", S_IFBLK | 0600, 7, 5);
    make_device(f->volume, "d", S_IFBLK | 0600, 7, 4);
    (void)make_it(true);
    assert_node(f, 7, 4, 0600);
}

/* spec:05-16.4#95 */
static void
test_missing_source_is_told(Fixture *f, gconstpointer data)
{
    ChHandsReply reply = look(ATTACH_UID);

    g_assert_cmpint(reply.source.errnum, ==, ENODEV);
    g_assert_cmpint(make_it(false).errnum, ==, ENODEV);
    test_tree_remove(f->volume);
    g_assert_cmpint(look(ATTACH_UID).source.errnum, ==, ENOENT);
    reply = make_it(false);
    g_assert_cmpint(reply.errnum, ==, ENOENT);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_IMAGE);
    g_assert_false(test_tree_has(f->hotplug, "vol"));
}

/* spec:05-16.4#117 */
static void
test_other_files_are_no_nodes(Fixture *f, gconstpointer data)
{
    make_device(f->volume, "pvc-uid", S_IFBLK | 0644, MAJOR, MINOR);
    test_tree_write(f->hotplug, "vol", "");
    g_assert_cmpint(make_it(false).errnum, ==, ENOTBLK);
    g_assert_cmpint(remove_it(false).errnum, ==, ENOTBLK);
    g_assert_true(test_tree_has(f->hotplug, "vol"));
}

static void
test_links_are_refused(Fixture *f, gconstpointer data)
{
    g_autofree char *elsewhere = g_build_filename(f->dir, "elsewhere", NULL);

    make_device(f->volume, "pvc-uid", S_IFBLK | 0644, MAJOR, MINOR);
    make_device(f->dir, "elsewhere", S_IFBLK | 0600, MAJOR, MINOR);
    test_tree_link(f->hotplug, "vol", elsewhere);
    g_assert_cmpint(make_it(false).errnum, ==, ELOOP);
    g_assert_cmpuint(test_tree_stat(f->dir, "elsewhere").st_uid, ==, 0);
    g_assert_cmpint(remove_it(false).errnum, ==, ELOOP);
}

/* A second name of a node would change its owner too. */
static void
test_second_names_are_not_given_away(Fixture *f, gconstpointer data)
{
    g_autofree char *elsewhere = g_build_filename(f->dir, "elsewhere", NULL);
    g_autofree char *node = g_build_filename(f->hotplug, "vol", NULL);

    make_device(f->volume, "pvc-uid", S_IFBLK | 0644, MAJOR, MINOR);
    make_device(f->dir, "elsewhere", S_IFBLK | 0600, MAJOR, MINOR);
    g_assert_cmpint(link(elsewhere, node), ==, 0);
    g_assert_cmpuint(make_it(true).size, ==, 1);
    assert_node(f, MAJOR, MINOR, 0644);
    g_assert_cmpuint(test_tree_stat(f->dir, "elsewhere").st_uid, ==, 0);
}

/* Nor are its numbers those of a device that the runtime gave to the source. */
static void
test_source_with_a_second_name(Fixture *f, gconstpointer data)
{
    g_autofree char *elsewhere = g_build_filename(f->dir, "elsewhere", NULL);
    g_autofree char *node = g_build_filename(f->volume, "pvc-uid", NULL);

    make_device(f->dir, "elsewhere", S_IFBLK | 0600, MAJOR, MINOR);
    g_assert_cmpint(link(elsewhere, node), ==, 0);
    g_assert_cmpint(make_it(false).errnum, ==, ENODEV);
    g_assert_false(test_tree_has(f->hotplug, "vol"));
}

#define RULE(type, major_number, minor_number, is_allowed)                                         \
    CH_DEVICE_RULE(type, major_number, minor_number, CH_DEVICE_ALL, is_allowed)

static int
has_volume(ChDeviceRule rule)
{
    const ChDeviceRules rules = {{RULE('b', MAJOR, MINOR, 1), rule}, 2};
    const ChDeviceRules base = {{RULE('c', 10, 232, 1)}, 1};
    ChHandsReply reply = {0};

    g_assert_true(ch_inside_has_volumes(FAKE_POD_UID, &rules, &base, &reply) ==
                  (reply.errnum == 0));
    return reply.errnum;
}

/* A brain that is taken over cannot let a pod use what is none of its volumes. */
static void
test_devices_of_volumes(Fixture *f, gconstpointer data)
{
    g_autofree char *node = g_build_filename(f->hotplug, "vol", NULL);

    make_device(f->hotplug, "vol", S_IFBLK | 0644, MAJOR, MINOR);
    make_device(f->hotplug, "tape", S_IFCHR | 0644, 9, 0);
    test_tree_mkdir(f->hotplug, "fs");
    make_device(f->hotplug, "fs/disk", S_IFBLK | 0644, 8, 0); /* a volume's file system brings it */
    g_assert_cmpint(has_volume(RULE('b', MAJOR, MINOR, 1)), ==, 0);
    g_assert_cmpint(has_volume(RULE('b', 8, 0, 0)), ==, 0);    /* less than it has */
    g_assert_cmpint(has_volume(RULE('c', 10, 232, 1)), ==, 0); /* the pod's anyhow */
    g_assert_cmpint(has_volume(RULE('b', 8, 0, 1)), ==, EPERM);
    g_assert_cmpint(has_volume(RULE('b', MAJOR, MINOR + 1, 1)), ==, EPERM);
    g_assert_cmpint(has_volume(RULE('c', MAJOR, MINOR, 1)), ==, EPERM);
    g_assert_cmpint(has_volume(RULE('c', 9, 0, 1)), ==, EPERM);
    g_assert_cmpint(has_volume(RULE('b', CH_DEVICE_ANY, CH_DEVICE_ANY, 1)), ==, EPERM);
    g_assert_cmpint(unlink(node), ==, 0);
    g_assert_cmpint(has_volume(RULE('b', MAJOR, MINOR, 0)), ==, EPERM);
}

/* What cannot be looked at for want of a descriptor may be the volume. */
static void
test_devices_that_cannot_be_looked_at(Fixture *f, gconstpointer data)
{
    ch_autofd int free_fd = open("/", O_PATH | O_CLOEXEC);
    struct rlimit limit, low;

    make_device(f->hotplug, "vol", S_IFBLK | 0644, MAJOR, MINOR);
    test_tree_link(f->hotplug, "link", "vol");
    g_assert_cmpint(has_volume(RULE('b', MAJOR, MINOR, 1)), ==, 0);
    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    low = (struct rlimit){(rlim_t)free_fd + 2, limit.rlim_max}; /* the directory and its list */
    ch_close_fd(&free_fd);
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &low), ==, 0);
    g_assert_cmpint(has_volume(RULE('b', MAJOR, MINOR, 1)), ==, EMFILE);
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
}

/* What is mounted in the pod's directory may be of any file system. */
static void
test_node_that_is_mounted(Fixture *f, gconstpointer data)
{
    g_autofree char *node = g_build_filename(f->hotplug, "vol", NULL);
    g_autofree char *disk = g_build_filename(f->dir, "disk", NULL);

    make_device(f->hotplug, "vol", S_IFBLK | 0644, MAJOR, MINOR);
    make_device(f->dir, "disk", S_IFBLK | 0644, 8, 0);
    if (mount(disk, node, NULL, MS_BIND, NULL) < 0) {
        g_test_skip("needs a mount namespace of its own");
        return;
    }
    g_assert_cmpint(has_volume(RULE('b', 8, 0, 1)), ==, EPERM);
    g_assert_cmpint(umount(node), ==, 0);
}

/* spec:05-16.4#98 */
static void
test_node_is_removed(Fixture *f, gconstpointer data)
{
    make_device(f->hotplug, "vol", S_IFBLK | 0644, MAJOR, MINOR);
    (void)remove_it(true);
    g_assert_false(test_tree_has(f->hotplug, "vol"));
    (void)remove_it(true);
}

/* spec:05-16.4#112 */
static void
test_pod_without_directory(Fixture *f, gconstpointer data)
{
    const ChHandsRequest request = request_for(ATTACH_UID);
    ChHandsReply reply = {0};

    test_tree_remove(f->hotplug);
    g_assert_false(ch_inside_look_at_node(&request, &reply));
    g_assert_cmpint(reply.errnum, ==, ENOENT);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_DIR);
    g_assert_cmpint(make_it(false).errnum, ==, ENOENT);
    g_assert_cmpint(remove_it(false).errnum, ==, ENOENT);
}

typedef void (*Test)(Fixture *f, gconstpointer data);

static void
run(Fixture *f, gconstpointer data)
{
    if (f->dir == NULL)
        g_test_skip("needs root: device nodes, chown");
    else
        ((Test)data)(f, NULL);
}

#define ADD(name, func)                                                                            \
    g_test_add("/hands/inside-node/" name, Fixture, (gconstpointer)func, set_up, run, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("node-is-made-once", test_node_is_made_once);
    ADD("owner-is-put-right", test_owner_is_put_right);
    ADD("old-numbers-are-replaced", test_old_numbers_are_replaced);
    ADD("node-stays-without-source", test_node_stays_without_source);
    ADD("first-block-device-counts", test_first_block_device_counts);
    ADD("missing-source-is-told", test_missing_source_is_told);
    ADD("other-files-are-no-nodes", test_other_files_are_no_nodes);
    ADD("links-are-refused", test_links_are_refused);
    ADD("second-names-are-not-given-away", test_second_names_are_not_given_away);
    ADD("source-with-a-second-name", test_source_with_a_second_name);
    ADD("devices-of-volumes", test_devices_of_volumes);
    ADD("devices-that-cannot-be-looked-at", test_devices_that_cannot_be_looked_at);
    ADD("node-that-is-mounted", test_node_that_is_mounted);
    ADD("node-is-removed", test_node_is_removed);
    ADD("pod-without-directory", test_pod_without_directory);
    return g_test_run();
}
