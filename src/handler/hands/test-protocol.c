/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/protocol.h"

#include <errno.h>
#include <string.h>

/* A request that is fine for each operation. */
static ChHandsRequest
good_request(ChHandsOp op)
{
    ChHandsRequest request = {.version = CH_HANDS_VERSION, .op = op, .sequence = 7};

    if ((op >= CH_HANDS_OP_LOOK && op <= CH_HANDS_OP_CONNECT) || op == CH_HANDS_OP_CACHE_OWN ||
        (op >= CH_HANDS_OP_SOURCE_LOOK && op <= CH_HANDS_OP_IMAGE_SUM) ||
        (op >= CH_HANDS_OP_NODE_LOOK && op <= CH_HANDS_OP_SWEEP))
        g_strlcpy(request.uid, "aaaabbbb-0000-4000-8000-000000000001", sizeof(request.uid));
    else if (op != CH_HANDS_OP_HELLO && op < CH_HANDS_OP_MULTIPATH_WATCH)
        request.handle = 0x10000;
    if (op == CH_HANDS_OP_DEVICES_OWN)
        request.devices = CH_HANDS_DEVICE_KVM | CH_HANDS_DEVICE_TUN;
    if (op == CH_HANDS_OP_PIPE_CLOSE)
        request.ino = 12;
    if (op == CH_HANDS_OP_NET_OPEN || op == CH_HANDS_OP_NET_SEND)
        request.net = CH_HANDS_NET_ROUTE;
    if (op == CH_HANDS_OP_NET_SEND || op == CH_HANDS_OP_DHCP_STORE ||
        op == CH_HANDS_OP_DEVICES_SET || op == CH_HANDS_OP_MEMLOCK_SET ||
        op == CH_HANDS_OP_HOUSE_KEEP || op == CH_HANDS_OP_REALTIME_SET ||
        op == CH_HANDS_OP_DISK_PREPARE || op == CH_HANDS_OP_METRICS_WRITE)
        request.n_bytes = 3;
    if (op == CH_HANDS_OP_TAP_MAKE || op == CH_HANDS_OP_DHCP_STORE || op == CH_HANDS_OP_CACHE_OWN ||
        op == CH_HANDS_OP_DHCP_REMOVE || op == CH_HANDS_OP_BLOCK_OWN ||
        op == CH_HANDS_OP_VIRTIOFS_OWN || op == CH_HANDS_OP_DISK_PREPARE)
        g_strlcpy(request.name, "tap0", sizeof(request.name));
    if (op == CH_HANDS_OP_IMAGE_STAT) {
        request.image = CH_HANDS_IMAGE_NO_CLOUD;
        g_strlcpy(request.uid, "default", sizeof(request.uid));
        g_strlcpy(request.name, "my.vm-1", sizeof(request.name));
    }
    if (op >= CH_HANDS_OP_SOURCE_LOOK && op <= CH_HANDS_OP_IMAGE_SUM) {
        request.mount = CH_HANDS_MOUNT_HOTPLUG_FILE;
        g_strlcpy(request.name, "volume", sizeof(request.name));
    }
    if (op >= CH_HANDS_OP_NODE_LOOK && op <= CH_HANDS_OP_NODE_REMOVE)
        g_strlcpy(request.name, "volume", sizeof(request.name));
    if (op == CH_HANDS_OP_MOUNT || op == CH_HANDS_OP_NODE_MAKE)
        g_strlcpy(request.source_uid, "attach", sizeof(request.source_uid));
    if (op == CH_HANDS_OP_SYSCTLS_SET)
        request.sysctls = CH_HANDS_SYSCTL_ARP_IGNORE;
    return request;
}

static int
check(const ChHandsRequest *request)
{
    ChHandsRequest copy;
    g_autofree char *bytes = g_malloc0(sizeof(*request) + request->n_bytes);
    int result;

    memcpy(bytes, request, sizeof(*request));
    result = ch_hands_request_check(bytes, sizeof(*request) + request->n_bytes, &copy);
    g_assert_cmpint(memcmp(&copy, request, sizeof(copy)), ==, 0);
    return result;
}

static void
test_good(void)
{
    for (ChHandsOp op = CH_HANDS_OP_HELLO; op < CH_HANDS_OP_N; op++) {
        const ChHandsRequest request = good_request(op);

        g_assert_cmpint(check(&request), ==, 0);
        g_assert_cmpstr(ch_hands_op_name(op), !=, "unknown");
    }
}

/* A field set that the operation does not take is refused, and one it takes but is not there. */
static void
test_fields(void)
{
    for (ChHandsOp op = CH_HANDS_OP_HELLO; op < CH_HANDS_OP_N; op++) {
        const ChHandsRequest good = good_request(op);
        ChHandsRequest bad = good;

        bad.handle = good.handle != 0 ? 0 : 1;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.devices = good.devices != 0 ? 0 : CH_HANDS_DEVICE_KVM;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.devices = CH_HANDS_DEVICES + 1;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.ino = good.ino != 0 ? 0 : 1;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.flags = CH_HANDS_NON_ROOT;
        g_assert_cmpint(check(&bad),
                        ==,
                        op == CH_HANDS_OP_PIPE_OPEN || op == CH_HANDS_OP_TAP_MAKE ||
                                op == CH_HANDS_OP_DISK_PREPARE
                            ? 0
                            : EINVAL);
        bad.flags = CH_HANDS_MULTI_QUEUE;
        g_assert_cmpint(check(&bad), ==, op == CH_HANDS_OP_TAP_MAKE ? 0 : EINVAL);
        bad.flags = CH_HANDS_TARGET;
        g_assert_cmpint(check(&bad), ==, op == CH_HANDS_OP_PASST_REPAIR ? 0 : EINVAL);
        bad.flags = CH_HANDS_OWN;
        g_assert_cmpint(check(&bad), ==, op == CH_HANDS_OP_MOUNT ? 0 : EINVAL);
        bad.flags = CH_HANDS_REMOVE;
        g_assert_cmpint(check(&bad),
                        ==,
                        op == CH_HANDS_OP_UNMOUNT || op == CH_HANDS_OP_MULTIPATH_SET ? 0 : EINVAL);
        bad.flags = CH_HANDS_EMULATION;
        g_assert_cmpint(check(&bad), ==, op == CH_HANDS_OP_DEVICES_OWN ? 0 : EINVAL);
        bad.flags = 64;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.mount = good.mount != 0 ? 0 : CH_HANDS_MOUNT_DISK;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad.mount = CH_HANDS_MOUNT_N;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.index = 1;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.source_uid[0] = good.source_uid[0] != '\0' ? '\0' : 'a';
        g_assert_cmpint(check(&bad), ==, op == CH_HANDS_OP_NODE_LOOK ? 0 : EINVAL);
        bad.source_uid[1] = '/';
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.net = good.net != 0 ? 0 : CH_HANDS_NET_ROUTE;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad.net = CH_HANDS_NET_N;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.image = good.image != 0 ? 0 : CH_HANDS_IMAGE_SECRET;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad.image = CH_HANDS_IMAGE_N;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.crc = 1;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.offset = 1;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.sysctls = good.sysctls != 0 ? 0 : 1;
        g_assert_cmpint(check(&bad), ==, op == CH_HANDS_OP_NET_OPEN ? 0 : EINVAL);
        bad.sysctls = CH_HANDS_SYSCTLS + 1;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.n_bytes = good.n_bytes != 0 ? 0 : 1;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad.n_bytes = CH_HANDS_MAX_BYTES + 1;
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.name[0] = good.name[0] != '\0' ? '\0' : 'a';
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.name[CH_HANDS_NAME_SIZE - 1] = 'x';
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.uid[0] = good.uid[0] != '\0' ? '\0' : 'a';
        g_assert_cmpint(check(&bad), ==, EINVAL);
        bad = good;
        bad.uid[CH_HANDS_UID_SIZE - 1] = 'x'; /* hidden behind the NUL */
        g_assert_cmpint(check(&bad), ==, EINVAL);
    }
}

/* What each kind of mount says of itself, and what it does not take. */
static void
test_mounts(void)
{
    ChHandsRequest request = good_request(CH_HANDS_OP_MOUNT);

    request.n_bytes = 1;
    g_assert_cmpint(check(&request), ==, EINVAL); /* a volume has no path */
    request.mount = CH_HANDS_MOUNT_DISK;
    g_assert_cmpint(check(&request), ==, EINVAL); /* a disk has no name */
    request.name[0] = '\0';
    memset(request.name, 0, sizeof(request.name));
    g_assert_cmpint(check(&request), ==, 0);
    request.index = CH_HANDS_MAX_INDEX;
    request.n_bytes = 0;
    g_assert_cmpint(check(&request), ==, 0);
    request.index++;
    g_assert_cmpint(check(&request), ==, EINVAL);
    request.index = 0;
    request.n_bytes = CH_HANDS_PATH_SIZE - 1;
    g_assert_cmpint(check(&request), ==, 0);
    request.n_bytes++;
    g_assert_cmpint(check(&request), ==, EINVAL);
    request.mount = CH_HANDS_MOUNT_BOOT;
    request.n_bytes = 5;
    g_assert_cmpint(check(&request), ==, 0);
    request.n_bytes = 0;
    g_assert_cmpint(check(&request), ==, EINVAL); /* which kernel? */
}

/* The first part of a checksum goes on from nothing, all others from something. */
static void
test_parts(void)
{
    ChHandsRequest request = good_request(CH_HANDS_OP_IMAGE_SUM);

    request.dev = 1;
    g_assert_cmpint(check(&request), ==, EINVAL);
    request.ino = 2;
    g_assert_cmpint(check(&request), ==, EINVAL);
    request.offset = 3;
    g_assert_cmpint(check(&request), ==, 0);
    request.crc = 4;
    g_assert_cmpint(check(&request), ==, 0);
    request.ino = 0;
    g_assert_cmpint(check(&request), ==, EINVAL);
}

/* field:FR-F05: what the path of a file in an image may look like */
static void
test_paths(void)
{
    static const char *const good[] = {"a", "/a", "a b/c", "../a", "/x/..y", "/...", "\xc3\xa4"};
    static const char *const bad[] = {"", "/", "a/", ".", "..", "/.", "a/.."};
    g_autofree char *name = g_strnfill(255, 'a');
    g_autofree char *too_long = g_strnfill(256, 'a');
    g_autofree char *path = g_strnfill(CH_HANDS_PATH_SIZE, '/');

    for (gsize i = 0; i < G_N_ELEMENTS(good); i++)
        g_assert_true(ch_hands_path_is_valid(good[i], strlen(good[i])));
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(ch_hands_path_is_valid(bad[i], strlen(bad[i])));
    g_assert_true(ch_hands_path_is_valid(name, 255));
    g_assert_false(ch_hands_path_is_valid(too_long, 256));
    g_assert_false(ch_hands_path_is_valid("a\0b", 3));
    path[CH_HANDS_PATH_SIZE - 1] = path[CH_HANDS_PATH_SIZE - 2] = 'a';
    g_assert_true(ch_hands_path_is_valid(path, CH_HANDS_PATH_SIZE - 1));
    g_assert_false(ch_hands_path_is_valid(path, CH_HANDS_PATH_SIZE));
}

static void
test_head(void)
{
    ChHandsRequest request = good_request(CH_HANDS_OP_HELLO);
    ChHandsRequest copy;

    g_assert_cmpint(ch_hands_request_check(&request, 0, &copy), ==, EBADMSG);
    g_assert_cmpint(ch_hands_request_check(&request, sizeof(request) - 1, &copy), ==, EBADMSG);
    request.version++;
    g_assert_cmpint(check(&request), ==, EPROTO);
    request = good_request(CH_HANDS_OP_HELLO);
    request.op = CH_HANDS_OP_INVALID;
    g_assert_cmpint(check(&request), ==, ENOSYS);
    request.op = CH_HANDS_OP_N;
    g_assert_cmpint(check(&request), ==, ENOSYS);
    request.op = UINT32_MAX;
    g_assert_cmpint(check(&request), ==, ENOSYS);
    g_assert_cmpstr(ch_hands_op_name(UINT32_MAX), ==, "unknown");
    g_assert_false(ch_hands_op_is_silent(UINT32_MAX));
    g_assert_false(ch_hands_op_is_silent(CH_HANDS_OP_CONNECT));
    g_assert_true(ch_hands_op_is_silent(CH_HANDS_OP_RELEASE));
}

/* spec:05-16.1#22 */
static void
test_uids(void)
{
    static const char *const bad[] = {
        "", ".", "..", "a/b", "../x", "a b", "a.b", "a_b", "a\n", "\xc3\xa4"};
    g_autofree char *longest = g_strnfill(CH_HANDS_UID_SIZE - 1, 'a');
    g_autofree char *too_long = g_strnfill(CH_HANDS_UID_SIZE, 'a');

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(ch_hands_uid_is_valid(bad[i]));
    g_assert_false(ch_hands_uid_is_valid(too_long));
    g_assert_true(ch_hands_uid_is_valid(longest));
    g_assert_true(ch_hands_uid_is_valid("1234"));
    g_assert_true(ch_hands_uid_is_valid("aaaabbbb-0000-4000-8000-00000000000F"));
}

static void
test_disk(void)
{
    const ChHandsDisk good = {.capacity = 1, .makes_image = 1, .file = "disk.img"};
    static const char *const bad_names[] = {"", ".", "..", "a/b", "/"};
    ChHandsDisk disk = good;
    ChHandsDisk copy;

    g_assert_cmpint(ch_hands_disk_check(&disk, sizeof(disk), &copy), ==, 0);
    g_assert_cmpint(memcmp(&disk, &copy, sizeof(copy)), ==, 0);
    g_assert_cmpint(ch_hands_disk_check(&disk, sizeof(disk) - 1, &copy), ==, EBADMSG);
    for (gsize i = 0; i < G_N_ELEMENTS(bad_names); i++) {
        disk = good;
        memset(disk.file, 0, sizeof(disk.file));
        g_strlcpy(disk.file, bad_names[i], sizeof(disk.file));
        g_assert_cmpint(ch_hands_disk_check(&disk, sizeof(disk), &copy), ==, EINVAL);
    }
    disk = good;
    disk.file[sizeof(disk.file) - 1] = 'x'; /* hidden behind the NUL */
    g_assert_cmpint(ch_hands_disk_check(&disk, sizeof(disk), &copy), ==, EINVAL);
    disk = good;
    disk.tolerated_percent = 101;
    g_assert_cmpint(ch_hands_disk_check(&disk, sizeof(disk), &copy), ==, EINVAL);
    disk = good;
    disk.capacity = (uint64_t)G_MAXINT64 + 1;
    g_assert_cmpint(ch_hands_disk_check(&disk, sizeof(disk), &copy), ==, EINVAL);
    disk = good;
    disk.makes_image = 0; /* and yet there is more */
    g_assert_cmpint(ch_hands_disk_check(&disk, sizeof(disk), &copy), ==, EINVAL);
    disk = (ChHandsDisk){0};
    g_assert_cmpint(ch_hands_disk_check(&disk, sizeof(disk), &copy), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/protocol/each-operation-has-a-good-request", test_good);
    g_test_add_func("/protocol/fields-are-exact", test_fields);
    g_test_add_func("/protocol/kinds-of-mounts", test_mounts);
    g_test_add_func("/protocol/parts-of-images", test_parts);
    g_test_add_func("/protocol/paths-in-images", test_paths);
    g_test_add_func("/protocol/head-is-checked", test_head);
    g_test_add_func("/protocol/uid-is-one-component", test_uids);
    g_test_add_func("/protocol/disk", test_disk);
    return g_test_run();
}
