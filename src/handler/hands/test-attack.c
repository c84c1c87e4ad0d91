/* SPDX-License-Identifier: Apache-2.0 */

/* A hostile pod against what brings its VM up: sockets, pipes, devices, images, container disks. */

#include "handler/hands/test-attack-reach.h"
#include "handler/hands/test-fake-passt.h"

typedef struct {
    Enemy enemy;
    FakeDisk disk; /* serves disk_0.sock */
    FakeDisk boot; /* serves kernel-boot.sock */
    int qemu_fd;   /* listens in the pod; takes no connection: what fails then is no matter */
    int decoy_fd;  /* listens at outside/dir/downwardmetrics.sock */
    pid_t passt;   /* takes connections, and asks for nothing */
} Stage;

static const EnemyPlace places[] = {
    {.path = ENEMY_EMPTY_DIRS},
    {.path = ENEMY_EMPTY_DIRS "/sockets"},
    {.path = ENEMY_EMPTY_DIRS "/sockets/launcher-sock", .bait = "socket"},
    {.path = ENEMY_EMPTY_DIRS "/sockets/launcher-unresponsive", .bait = "new"},
    {.path = ENEMY_EMPTY_DIRS "/container-disks"},
    {.path = ENEMY_EMPTY_DIRS "/container-disks/disk_0.sock", .bait = "socket"},
    {.path = ENEMY_EMPTY_DIRS "/container-disks/disk_0.img", .bait = "secret"},
    {.path = ENEMY_EMPTY_DIRS "/container-disks/kernel-boot"},
    {.path = ENEMY_EMPTY_DIRS "/container-disks/kernel-boot/vmlinuz", .bait = "secret"},
    {.path = ENEMY_EMPTY_DIRS "/container-disks/kernel-boot.sock", .bait = "socket"},
    {.path = "image/disk"},
    {.path = "image/disk/file", .bait = "secret"},
    {.path = "image/boot"},
    {.path = "image/boot/vmlinuz", .bait = "secret"},
    {.path = "root/run"},
    {.path = "root/run/kubevirt"},
    {.path = "root/run/kubevirt/domain-notify-pipe.sock", .bait = "socket"},
    {.path = "root/run/kubevirt-private"},
    {.path = "root/run/kubevirt-private/vif-cache-eth0.json", .bait = "secret"},
    {.path = "root/run/kubevirt-private/secret-disks/v.iso", .bait = "secret"},
    {.path = "root/run/kubevirt-private/downwardapi-disks"},
    {.path = "root/run/kubevirt-private/downwardapi-disks/vhostmd0", .bait = "secret"},
    {.path = "root/run/kubevirt-private/downwardmetrics-channel"},
    {.path = "root/run/kubevirt-private/downwardmetrics-channel/downwardmetrics.sock",
     .bait = "socket"},
    {.path = "root/run/libvirt/qemu/run"},
    {.path = "root/" FAKE_PASST_DIR},
    {.path = "root/" FAKE_PASST_DIR "/vm.socket.repair", .bait = "socket"},
    {.path = "root/dev"},
    {.path = "root/dev/kvm", .bait = "device"},
    {.path = "root/dev/net"},
    {.path = "root/dev/net/tun", .bait = "dir/net/tun"},
    {.path = "root/var/run"},
};

static const char *const shadowed[] = {FAKE_PASST_DIR,
                                       "run/kubevirt",
                                       "run/kubevirt/sockets",
                                       "run/kubevirt-private",
                                       "dev",
                                       "dev/net",
                                       NULL};

#define DISK        .uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_DISK
#define BOOT        .uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_BOOT
#define BYTES(text) (text), sizeof(text) - 1
static const EnemyOperation operations[] = {
    {.request = {.op = CH_HANDS_OP_LOOK, .uid = FAKE_POD_UID}},
    {.request = {.op = CH_HANDS_OP_MARK, .uid = FAKE_POD_UID}},
    {.request = {.op = CH_HANDS_OP_PROBE, .uid = FAKE_POD_UID}},
    {.request = {.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID}},
    {.request = {.op = CH_HANDS_OP_RECONNECT}},
    {.request = {.op = CH_HANDS_OP_PIPE_OPEN, .flags = CH_HANDS_NON_ROOT}},
    {.request = {.op = CH_HANDS_OP_DEVICES_OWN,
                 .devices = CH_HANDS_DEVICE_KVM | CH_HANDS_DEVICE_TUN}},
    {.request = {.op = CH_HANDS_OP_PIPE_CLOSE}},
    {{.op = CH_HANDS_OP_DHCP_STORE, .name = "eth0"}, BYTES("{}")},
    {.request = {.op = CH_HANDS_OP_DHCP_REMOVE, .name = "eth0"}},
    {.request = {.op = CH_HANDS_OP_PASST_REPAIR}},
    {.request =
         {.op = CH_HANDS_OP_IMAGE_STAT, .image = CH_HANDS_IMAGE_SECRET, .uid = "ns", .name = "v"}},
    {{.op = CH_HANDS_OP_METRICS_WRITE}, BYTES("<metrics></metrics>\n")},
    {.request = {.op = CH_HANDS_OP_METRICS_CONNECT}},
    {.request = {.op = CH_HANDS_OP_SOURCE_LOOK, DISK}},
    {.request = {.op = CH_HANDS_OP_TARGET_LOOK, DISK}},
    {{.op = CH_HANDS_OP_MOUNT, DISK, .source_uid = FAKE_POD_UID}, BYTES("disk/file")},
    {{.op = CH_HANDS_OP_IMAGE_SUM, DISK}, BYTES("disk/file")},
    {.request = {.op = CH_HANDS_OP_UNMOUNT, DISK}},
    {{.op = CH_HANDS_OP_MOUNT, BOOT, .source_uid = FAKE_POD_UID}, BYTES("boot/vmlinuz")},
    {.request = {.op = CH_HANDS_OP_UNMOUNT, BOOT}},
};

static void
make_outside(Stage *stage)
{
    Enemy *enemy = &stage->enemy;
    g_autofree char *dir = NULL;

    enemy_make_outside(enemy);
    dir = g_build_filename(enemy->outside, "dir", NULL);
    stage->decoy_fd = fake_pod_listen(dir, "downwardmetrics.sock");
    g_assert_cmpint(fcntl(stage->decoy_fd, F_SETFL, O_NONBLOCK), ==, 0);
    test_tree_write(enemy->outside, "dir/vhostmd0", "secret");
    test_tree_mkdir(enemy->outside, "dir/downwardapi-disks");
    test_tree_write(enemy->outside, "dir/downwardapi-disks/vhostmd0", "secret");
    test_tree_mkdir(enemy->outside, "dir/net");
    test_tree_mkdir(enemy->outside, "dir/kubevirt/sockets");
    test_tree_mkdir(enemy->outside, "dir/passt");
    test_tree_mkdir(enemy->outside, "dir/kernel-boot");
    test_tree_mkdir(enemy->outside, "dir/sockets");
    test_tree_write(enemy->outside, "dir/file", "secret");
    test_tree_write(enemy->outside, "dir/disk_0.img", "");
    test_tree_write(enemy->outside, "dir/vmlinuz", "secret");
    test_tree_write(enemy->outside, "dir/v.iso", "secret");
    test_tree_write(enemy->outside, "dir/vif-cache-eth0.json", "secret");
    enemy_make_node(enemy, "dir/kvm", S_IFCHR | 0600, makedev(10, 232));
    enemy_make_node(enemy, "dir/net/tun", S_IFCHR | 0600, makedev(10, 200));
}

static void
start_passt(Stage *stage)
{
    const char *root = stage->enemy.pod.root;
    int fd;

    test_tree_mkdir(root, FAKE_PASST_DIR);
    fd = fake_passt_listen(root, "vm.socket.repair");
    stage->passt = fork();
    if (stage->passt == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fake_pod_serve(fd, true);
    }
    close(fd);
}

static void
make_pod(Stage *stage)
{
    FakePod *pod = &stage->enemy.pod;
    g_autofree char *disks = NULL;
    g_autofree char *channel = NULL;
    g_autofree char *kvm = NULL;
    g_autofree char *tun = NULL;

    fake_pod_init(pod);
    disks = g_build_filename(pod->dir, ENEMY_EMPTY_DIRS, "container-disks", NULL);
    test_tree_mkdir(disks, ".");
    test_tree_mkdir(pod->root, "shadow/sockets");
    test_tree_mkdir(pod->root, "run/kubevirt-private/secret-disks");
    test_tree_write(pod->root, "run/kubevirt-private/secret-disks/v.iso", "1");
    test_tree_mkdir(pod->root, "run/kubevirt-private/downwardapi-disks");
    test_tree_write(pod->root, "run/kubevirt-private/downwardapi-disks/vhostmd0", "1");
    test_tree_mkdir(pod->root, "run/kubevirt-private/downwardmetrics-channel");
    channel = fake_pod_path(pod, "run/kubevirt-private/downwardmetrics-channel");
    stage->qemu_fd = fake_pod_listen(channel, "downwardmetrics.sock");
    kvm = fake_pod_path(pod, "dev/kvm");
    tun = fake_pod_path(pod, "dev/net/tun");
    g_assert_cmpint(mknod(kvm, S_IFCHR | 0600, makedev(10, 232)), ==, 0);
    g_assert_cmpint(mknod(tun, S_IFCHR | 0600, makedev(10, 200)), ==, 0);
    start_passt(stage);
    pod->accepts = true;
    fake_pod_start_launcher(pod, false);
    fake_disk_init(&stage->disk, pod->dir, disks, "disk_0.sock", "image");
    fake_disk_init(&stage->boot, pod->dir, disks, "kernel-boot.sock", "image");
    test_tree_write(stage->disk.root, "disk/file", "image");
    test_tree_mkdir(stage->disk.root, "boot");
    test_tree_write(stage->disk.root, "boot/vmlinuz", "kernel");
    stage->disk.accepts = stage->boot.accepts = true;
    fake_disk_start(&stage->disk);
    fake_disk_start(&stage->boot);
}

static void
end_stage(Stage *stage)
{
    static const char *const mounted[] = {"disk_0.img", "kernel-boot/vmlinuz"};

    for (gsize i = 0; i < G_N_ELEMENTS(mounted); i++) {
        g_autofree char *path = g_build_filename(stage->disk.empty_dir, mounted[i], NULL);

        while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
            ;
    }
    fake_disk_clear(&stage->disk);
    fake_disk_clear(&stage->boot);
    enemy_stop_attack(stage->passt);
    close(stage->decoy_fd);
    close(stage->qemu_fd);
    enemy_clear(&stage->enemy);
}

static void
test_races(void)
{
    static const EnemyAttack attacks[] = {enemy_swap_for_ever, enemy_shadow_for_ever};
    Stage stage = {.enemy = {.places = places,
                             .n_places = G_N_ELEMENTS(places),
                             .shadowed = shadowed,
                             .operations = operations,
                             .n_operations = G_N_ELEMENTS(operations)}};

    if (fake_pod_skip_mounts())
        return;
    make_pod(&stage);
    make_outside(&stage);
    enemy_fight(&stage.enemy, attacks, G_N_ELEMENTS(attacks));
    g_assert_cmpint(accept4(stage.decoy_fd, NULL, NULL, SOCK_CLOEXEC), ==, -1);
    g_assert_cmpint(errno, ==, EAGAIN);
    end_stage(&stage);
}

static void
test_reach(void)
{
    attack_reach_check(REACH_START, operations, G_N_ELEMENTS(operations));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    enemy_leave_node();
    g_test_add_func("/attack/reach", test_reach);
    g_test_add_func("/attack/races", test_races);
    return g_test_run();
}
