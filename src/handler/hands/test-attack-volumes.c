/* SPDX-License-Identifier: Apache-2.0 */

/* A hostile pod, and hostile attachment pods, against what gives a VM its volumes and devices:
 * block nodes, hotplugged file systems, the sweep after them, images on claims, sockets of file
 * systems, owners, cgroups. */

#include "handler/hands/test-attack-reach.h"
#include "handler/hands/test-fake-cgroup.h"
#include "lib/linux/device-rules.h"

#define ATTACH_UID  "aaaabbbb-0000-4000-8000-000000000009"
#define ATTACH_DIR  "pods/" ATTACH_UID "/volumes/kubernetes.io~empty-dir"
#define VOLUMES     ENEMY_EMPTY_DIRS "/hotplug-disks"
#define VMI_DISKS   "run/kubevirt-private/vmi-disks"
#define VIRTIOFS    "run/kubevirt/virtiofs-containers"
#define MAJOR       482 /* of nothing: nodes are made, never opened */
#define VFIO_NUMBER makedev(511, 1048575)
#define DISK_SIZE   (UINT64_C(1) << 20)

typedef struct {
    Enemy enemy;
    FakeDisk volume;            /* serves hp.sock of the attachment pod, and /fs */
    FakeCgroup devices, cpuset; /* each with the cgroups "pod" and "other" */
} Stage;

static const EnemyPlace places[] = {
    {.path = ENEMY_EMPTY_DIRS},
    {.path = VOLUMES},
    {.path = VOLUMES},
    {.path = VOLUMES},
    {.path = VOLUMES}, /* many operations begin with it */
    {.path = VOLUMES "/vol", .bait = "block", .is_made = true},
    {.path = VOLUMES "/vol", .bait = "block"},
    {.path = VOLUMES "/fs.img", .bait = "secret", .is_made = true},
    {.path = VOLUMES "/fs"},
    {.path = ATTACH_DIR},
    {.path = ATTACH_DIR "/hotplug-disks"},
    {.path = ATTACH_DIR "/hotplug-disks/hp.sock", .bait = "socket"},
    {.path = ATTACH_DIR "/hotplug-disks/vol"},
    {.path = ATTACH_DIR "/hotplug-disks/vol/pvc", .bait = "block"},
    {.path = "image/fs/disk.img", .bait = "secret"},
    {.path = "root/run"},
    {.path = "root/run/kubevirt"},
    {.path = "root/run/kubevirt-private"},
    {.path = "root/" VMI_DISKS},
    {.path = "root/" VMI_DISKS "/data"},
    {.path = "root/" VMI_DISKS "/data/disk.img", .bait = "new", .is_made = true},
    {.path = "root/" VMI_DISKS "/data/.chandler-new-image", .bait = "new", .is_made = true},
    {.path = "root/" VIRTIOFS},
    {.path = "root/" VIRTIOFS "/share.sock", .bait = "socket"},
    {.path = "root/dev"},
    {.path = "root/dev/block", .bait = "block"},
    {.path = "root/dev/vfio"},
    {.path = "root/dev/vfio/vfio", .bait = "dir/vfio"},
    {.path = "root/dev/vfio/7", .bait = "dir/7"},
    {.path = "root/var/run"},
};

static const char *const shadowed[] = {
    "run/kubevirt", "run/kubevirt-private", VMI_DISKS, VIRTIOFS, "dev", "dev/vfio", NULL};

static const ChHandsDisk disk = {DISK_SIZE, 0, 10, 1, "disk.img"};
static const ChDeviceRule allow[] = {{.major_number = MAJOR,
                                      .minor_number = 64,
                                      .access = CH_DEVICE_ALL,
                                      .type = 'b',
                                      .is_allowed = 1}};
static const ChDeviceRule deny[] = {{.major_number = MAJOR,
                                     .minor_number = 64,
                                     .access = CH_DEVICE_ALL,
                                     .type = 'b',
                                     .is_allowed = 0}};
static const uint8_t first_cpu[] = {1};

#define VOLUME        .uid = FAKE_POD_UID, .source_uid = ATTACH_UID
#define BYTES(object) &(object), sizeof(object)
static const EnemyOperation operations[] = {
    {.request = {.op = CH_HANDS_OP_NODE_LOOK, VOLUME, .name = "vol"}},
    {.request = {.op = CH_HANDS_OP_NODE_MAKE, VOLUME, .name = "vol"}},
    {.request = {.op = CH_HANDS_OP_MOUNT,
                 VOLUME,
                 .mount = CH_HANDS_MOUNT_HOTPLUG_FILE,
                 .name = "fs",
                 .flags = CH_HANDS_OWN}},
    {.request = {.op = CH_HANDS_OP_MOUNT,
                 VOLUME,
                 .mount = CH_HANDS_MOUNT_HOTPLUG_DIR,
                 .name = "fs",
                 .flags = CH_HANDS_OWN}},
    {.request = {.op = CH_HANDS_OP_UNMOUNT,
                 .uid = FAKE_POD_UID,
                 .mount = CH_HANDS_MOUNT_HOTPLUG_DIR,
                 .name = "fs",
                 .flags = CH_HANDS_REMOVE}},
    {.request = {.op = CH_HANDS_OP_SWEEP, .uid = FAKE_POD_UID}},
    {.request = {.op = CH_HANDS_OP_SWEEP, .uid = FAKE_POD_UID}}, /* of an empty directory */
    {.request = {.op = CH_HANDS_OP_NODE_MAKE, VOLUME, .name = "vol"}},
    {.request = {.op = CH_HANDS_OP_NODE_REMOVE, .uid = FAKE_POD_UID, .name = "vol"}},
    {{.op = CH_HANDS_OP_DISK_PREPARE, .name = "data", .flags = CH_HANDS_NON_ROOT}, BYTES(disk)},
    {.request = {.op = CH_HANDS_OP_VIRTIOFS_OWN, .name = "share"}},
    {.request = {.op = CH_HANDS_OP_BLOCK_OWN, .name = "block"}},
    {.request = {.op = CH_HANDS_OP_DEVICES_OWN, .devices = CH_HANDS_DEVICE_VFIO}},
    {.request = {.op = CH_HANDS_OP_DEVICES_LOOK}},
    /* the rest: with cgroups */
    {.request = {.op = CH_HANDS_OP_NODE_MAKE, VOLUME, .name = "vol"}}, /* no rule without it */
    {{.op = CH_HANDS_OP_DEVICES_SET}, BYTES(allow)},
    {{.op = CH_HANDS_OP_HOUSE_KEEP}, BYTES(first_cpu)},
    {{.op = CH_HANDS_OP_DEVICES_SET}, BYTES(deny)},
};
#define N_WITHOUT_CGROUPS 14

/* --- cgroups */

static bool
has_cgroups(const Stage *stage)
{
    return stage->devices.dir != NULL && stage->cpuset.dir != NULL;
}

/* For the attack: it goes on whatever happens. */
static void
move_launcher(const Stage *stage, const FakeCgroup *cgroup, const char *name)
{
    g_autofree char *procs = g_build_filename(name, "cgroup.procs", NULL);
    g_autofree char *pid = g_strdup_printf("%d", (int)stage->enemy.pod.pid);

    (void)fake_cgroup_write(cgroup, procs, pid);
}

/* A cpuset takes nobody before it has this. */
static void
furnish_cpuset(const FakeCgroup *cgroup, const char *parent, const char *name)
{
    static const char *const files[] = {"cpuset.cpus", "cpuset.mems"};

    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *from = g_build_filename(parent, files[i], NULL);
        g_autofree char *to = g_build_filename(name, files[i], NULL);
        g_autofree char *text = fake_cgroup_read(cgroup, from);

        (void)fake_cgroup_write(cgroup, to, text);
    }
}

static void
make_cgroup(const FakeCgroup *cgroup, const char *name)
{
    g_autofree char *dir = g_build_filename(cgroup->dir, name, NULL);

    g_assert_cmpint(mkdir(dir, 0755), ==, 0);
}

static void
make_cgroups(Stage *stage)
{
    fake_cgroup_init(&stage->devices, "/sys/fs/cgroup/devices", "devices.list");
    fake_cgroup_init(&stage->cpuset, "/sys/fs/cgroup/cpuset", "cpuset.cpus");
    if (!has_cgroups(stage)) {
        g_test_message("no controllers of cgroup v1: they are not attacked");
        stage->enemy.n_operations = N_WITHOUT_CGROUPS;
        return;
    }
    furnish_cpuset(&stage->cpuset, "..", ".");
    /* A list holds, so that the hands have something to change; it is the parent's of the others.
     */
    g_assert_true(fake_cgroup_write(&stage->devices, "devices.deny", "a"));
    g_assert_true(fake_cgroup_write(&stage->devices, "devices.allow", "c *:* rwm"));
    g_assert_true(fake_cgroup_write(&stage->devices, "devices.allow", "b 482:64 rwm"));
    for (gsize i = 0; i < 2; i++) {
        const char *name = i == 0 ? "pod" : "other";

        make_cgroup(&stage->devices, name);
        make_cgroup(&stage->cpuset, name);
        furnish_cpuset(&stage->cpuset, ".", name);
    }
    move_launcher(stage, &stage->devices, "pod");
    move_launcher(stage, &stage->cpuset, "pod");
}

/* What the pod may do in a cgroup that is its own: the launcher moves, cgroups come and go, also
 * that which the hands make. */
static void
cgroups_for_ever(const Enemy *enemy, guint32 seed)
{
    const Stage *stage = (const Stage *)enemy;
    static const char *const names[] = {"pod", "pod/housekeeping", "pod/inner"};
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);

    for (;;) {
        const bool is_cpuset = g_rand_boolean(rand);
        const FakeCgroup *cgroup = is_cpuset ? &stage->cpuset : &stage->devices;
        const char *name = names[g_rand_int_range(rand, 0, G_N_ELEMENTS(names))];
        g_autofree char *dir = g_build_filename(cgroup->dir, name, NULL);

        if (mkdir(dir, 0755) == 0 && is_cpuset)
            furnish_cpuset(cgroup, "pod", name);
        move_launcher(stage, cgroup, name);
        enemy_wait(rand);
        move_launcher(stage, cgroup, "pod");
        if (name != names[0] && rmdir(dir) < 0) {
            g_autofree char *housekeeping = g_build_filename(dir, "housekeeping", NULL);

            (void)rmdir(housekeeping); /* the hands found the launcher there */
        }
        sched_yield();
    }
}

/* Of the cgroups around the pod's: what they allow, and who is in them. */
static void
describe_cgroups(const Enemy *enemy, GString *out)
{
    const Stage *stage = (const Stage *)enemy;
    static const char *const lists[] = {"devices.list", "other/devices.list", "tasks"};
    static const char *const sets[] = {
        "cpuset.cpus", "cpuset.mems", "other/cpuset.cpus", "other/cpuset.mems", "tasks"};
    const char *name;

    for (gsize i = 0; i < G_N_ELEMENTS(lists) + G_N_ELEMENTS(sets) && has_cgroups(stage); i++) {
        const bool is_set = i >= G_N_ELEMENTS(lists);
        const char *file = is_set ? sets[i - G_N_ELEMENTS(lists)] : lists[i];
        g_autofree char *text = fake_cgroup_read(is_set ? &stage->cpuset : &stage->devices, file);

        g_string_append_printf(out, "%s %s\n", file, text);
    }
    for (int i = 0; i < 2 && has_cgroups(stage); i++) {
        const FakeCgroup *cgroup = i == 0 ? &stage->devices : &stage->cpuset;
        g_autoptr(GDir) dir = g_dir_open(cgroup->dir, 0, NULL);

        while ((name = g_dir_read_name(dir)) != NULL) {
            g_autofree char *path = g_build_filename(cgroup->dir, name, NULL);

            if (g_file_test(path, G_FILE_TEST_IS_DIR))
                g_string_append_printf(out, "%s\n", path);
        }
    }
}

static void
clear_cgroups(Stage *stage)
{
    static const char *const names[] = {
        "pod/inner/housekeeping", "pod/housekeeping", "pod/inner", "pod", "other", "."};
    FakeCgroup *const cgroups[] = {&stage->devices, &stage->cpuset};

    for (gsize i = 0; i < G_N_ELEMENTS(cgroups); i++) {
        g_autofree char *dir = g_strdup(cgroups[i]->dir);

        for (gsize k = 0; dir != NULL && k < G_N_ELEMENTS(names); k++) {
            FakeCgroup part = {.dir = g_canonicalize_filename(names[k], dir)};

            fake_cgroup_clear(&part);
        }
        g_assert_false(dir != NULL && g_file_test(dir, G_FILE_TEST_EXISTS));
        g_clear_pointer(&cgroups[i]->dir, g_free);
    }
}

/* --- the pods */

static void
make_outside(Enemy *enemy)
{
    enemy_make_outside(enemy);
    test_tree_mkdir(enemy->outside, "dir/data");
    test_tree_mkdir(enemy->outside, "dir/fs");
    test_tree_mkdir(enemy->outside, "dir/kubevirt/virtiofs-containers");
    test_tree_mkdir(enemy->outside, "dir/kubevirt-private/vmi-disks/data");
    test_tree_mkdir(enemy->outside, "dir/vmi-disks/data");
    test_tree_mkdir(enemy->outside, "dir/hotplug-disks");
    test_tree_mkdir(enemy->outside, "dir/vol");
    test_tree_write(enemy->outside, "dir/fs.img", "");
    enemy_make_node(enemy, "dir/node", S_IFBLK | 0600, makedev(MAJOR, 1));
    enemy_make_node(enemy, "dir/vol/pvc", S_IFBLK | 0600, makedev(MAJOR, 1));
    enemy_make_node(enemy, "dir/hotplug-disks/vol", S_IFBLK | 0600, makedev(MAJOR, 1));
    enemy_make_node(enemy, "dir/block", S_IFBLK | 0600, makedev(MAJOR, 1));
    enemy_make_node(enemy, "dir/vfio", S_IFCHR | 0600, makedev(10, 196));
    enemy_make_node(enemy, "dir/7", S_IFCHR | 0600, VFIO_NUMBER);
    enemy_make_node(enemy, "dir/share.sock", S_IFSOCK | 0600, 0);
}

static void
make_node(const char *dir, const char *name, mode_t mode, dev_t number)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_cmpint(mknod(path, mode, number), ==, 0);
}

static void
make_pod(Stage *stage)
{
    FakePod *pod = &stage->enemy.pod;
    g_autofree char *attachment = NULL;
    g_autofree char *volumes = NULL;

    fake_pod_init(pod);
    volumes = g_build_filename(pod->dir, VOLUMES, NULL);
    attachment = g_build_filename(pod->dir, ATTACH_DIR, "hotplug-disks", NULL);
    test_tree_mkdir(volumes, ".");
    test_tree_mkdir(attachment, "vol");
    make_node(attachment, "vol/pvc", S_IFBLK | 0660, makedev(MAJOR, 64));
    test_tree_mkdir(pod->root, "shadow/data");
    test_tree_mkdir(pod->root, VMI_DISKS "/data");
    test_tree_mkdir(pod->root, VIRTIOFS);
    test_tree_mkdir(pod->root, "dev/vfio");
    make_node(pod->root, VIRTIOFS "/share.sock", S_IFSOCK | 0600, 0);
    make_node(pod->root, "dev/block", S_IFBLK | 0600, makedev(MAJOR, 65));
    make_node(pod->root, "dev/vfio/vfio", S_IFCHR | 0600, makedev(10, 196));
    make_node(pod->root, "dev/vfio/7", S_IFCHR | 0600, VFIO_NUMBER);
    pod->accepts = true;
    fake_pod_start_launcher(pod, false);
    fake_disk_init(&stage->volume, pod->dir, attachment, "hp.sock", "image");
    test_tree_mkdir(stage->volume.root, "fs");
    test_tree_write(stage->volume.root, "fs/disk.img", "image");
    stage->volume.mount = "fs";
    stage->volume.accepts = true;
    fake_disk_start(&stage->volume);
}

static void
end_stage(Stage *stage)
{
    static const char *const mounted[] = {"fs.img", "fs"};

    for (gsize i = 0; i < G_N_ELEMENTS(mounted); i++) {
        g_autofree char *path = g_build_filename(stage->enemy.pod.dir, VOLUMES, mounted[i], NULL);

        while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
            ;
    }
    fake_disk_clear(&stage->volume);
    fake_pod_kill_launcher(&stage->enemy.pod);
    clear_cgroups(stage);
    enemy_clear(&stage->enemy);
}

static void
test_races(void)
{
    static const EnemyAttack attacks[] = {
        enemy_swap_for_ever, enemy_shadow_for_ever, cgroups_for_ever};
    Stage stage = {.enemy = {.places = places,
                             .n_places = G_N_ELEMENTS(places),
                             .shadowed = shadowed,
                             .operations = operations,
                             .n_operations = G_N_ELEMENTS(operations),
                             .describe = describe_cgroups}};

    if (fake_pod_skip_mounts())
        return;
    make_pod(&stage);
    make_outside(&stage.enemy);
    make_cgroups(&stage);
    enemy_fight(&stage.enemy, attacks, G_N_ELEMENTS(attacks) - (has_cgroups(&stage) ? 0 : 1));
    end_stage(&stage);
}

static void
test_reach(void)
{
    attack_reach_check(REACH_VOLUMES, operations, G_N_ELEMENTS(operations));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    enemy_leave_node();
    g_test_add_func("/attack-volumes/reach", test_reach);
    g_test_add_func("/attack-volumes/races", test_races);
    return g_test_run();
}
