/* SPDX-License-Identifier: Apache-2.0 */

/* A hostile pod in the directory that the node's daemons share with pods: multipathd's socket,
 * which is mounted there, and pr-helper's, which is given away. */

#include "handler/hands/test-attack-reach.h"

#define RUN     "node-run" /* the node's /run */
#define DAEMONS RUN "/kubevirt/daemons/pr"

/* What a pod can reach: it has the directory, and not what that lies in. */
static const EnemyPlace places[] = {
    {.path = DAEMONS "/multipathd.socket", .bait = "socket", .is_made = true},
    {.path = DAEMONS "/multipathd.socket", .bait = "secret", .is_made = true},
    {.path = DAEMONS "/pr-helper.sock", .bait = "socket"},
};

static const EnemyOperation operations[] = {
    {.request = {.op = CH_HANDS_OP_MULTIPATH_SET}, .is_of_node = true},
    {.request = {.op = CH_HANDS_OP_RESERVATION_WATCH}, .is_of_node = true},
    {.request = {.op = CH_HANDS_OP_RESERVATION_OWN}, .is_of_node = true},
    {.request = {.op = CH_HANDS_OP_MULTIPATH_SET}, .is_of_node = true}, /* again */
    {.request = {.op = CH_HANDS_OP_MULTIPATH_SET, .flags = CH_HANDS_REMOVE}, .is_of_node = true},
};

/* The node's own socket, too. */
static void
describe_run(const Enemy *enemy, GString *out)
{
    g_autofree char *path = g_build_filename(enemy->pod.dir, RUN, "multipathd.socket", NULL);

    enemy_describe(out, path);
}

/* In mounts of its own, as a pod: what the node has mounted there is in nobody's way. */
static void
swap_as_a_pod(const Enemy *enemy, guint32 seed)
{
    fake_pod_must(unshare(CLONE_NEWNS) == 0, "unshare");
    enemy_swap_for_ever(enemy, seed);
}

static void
make_node(Enemy *enemy)
{
    g_autofree char *run = NULL;
    g_autofree char *daemons = NULL;

    fake_pod_init(&enemy->pod);
    run = g_build_filename(enemy->pod.dir, RUN, NULL);
    daemons = g_build_filename(enemy->pod.dir, DAEMONS, NULL);
    test_tree_mkdir(daemons, ".");
    close(fake_pod_listen(run, "multipathd.socket"));
    close(fake_pod_listen(daemons, "pr-helper.sock"));
    fake_pod_must(mount(run, "/run", NULL, MS_BIND, NULL) == 0, "mount the node's /run");
    enemy->pod.accepts = true;
    fake_pod_start_launcher(&enemy->pod, false);
    enemy_make_outside(enemy);
}

static void
end_node(Enemy *enemy)
{
    while (umount2("/run/kubevirt/daemons/pr/multipathd.socket", MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        ;
    g_assert_cmpint(umount2("/run", MNT_DETACH), ==, 0);
    enemy_clear(enemy);
}

static void
test_races(void)
{
    static const EnemyAttack attacks[] = {swap_as_a_pod};
    Enemy enemy = {.places = places,
                   .n_places = G_N_ELEMENTS(places),
                   .operations = operations,
                   .n_operations = G_N_ELEMENTS(operations),
                   .n_asked = 2000, /* most of them mount, for which the kernel waits */
                   .describe = describe_run};

    if (fake_pod_skip_mounts())
        return;
    if (!g_file_test("/var/run", G_FILE_TEST_IS_SYMLINK)) {
        g_test_skip("/var/run is no link to /run, which stands for the node's");
        return;
    }
    make_node(&enemy);
    enemy_fight(&enemy, attacks, G_N_ELEMENTS(attacks));
    end_node(&enemy);
}

static void
test_reach(void)
{
    attack_reach_check(REACH_DAEMONS, operations, G_N_ELEMENTS(operations));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    enemy_leave_node();
    g_test_add_func("/attack-daemons/reach", test_reach);
    g_test_add_func("/attack-daemons/races", test_races);
    return g_test_run();
}
