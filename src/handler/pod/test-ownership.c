/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/ownership.h"

#include "handler/hands/test-fake-pod.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/json/test-text.h"

/* --- the plan */

#define KVM       "kvm"
#define INTERFACE "'interfaces':[{'name':'default','masquerade':{}}]"

static char *
describe(const GArray *plan)
{
    static const char *const names[] = {"kvm", "mshv", "vsock", "sev", "vfio", "vhost-net", "tun"};
    static const char *const kinds[] = {
        [CH_OWNERSHIP_HOST_DISK] = "disk",
        [CH_OWNERSHIP_BLOCK] = "block",
        [CH_OWNERSHIP_NO_STATUS] = "no-status",
        [CH_OWNERSHIP_VIRTIOFS] = "virtiofs",
    };
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < plan->len; i++) {
        const ChOwnershipStep *step = &g_array_index(plan, ChOwnershipStep, i);
        gsize length;

        g_string_append(text, i > 0 ? "; " : "");
        if (step->kind != CH_OWNERSHIP_DEVICES) {
            g_string_append_printf(text,
                                   "%s %s",
                                   kinds[step->kind],
                                   step->kind == CH_OWNERSHIP_HOST_DISK ? step->disk.volume
                                                                        : step->name);
            continue;
        }
        length = text->len;
        for (gsize bit = 0; bit < G_N_ELEMENTS(names); bit++)
            if (step->devices & 1u << bit)
                g_string_append_printf(text, "%s%s", text->len > length ? "+" : "", names[bit]);
    }
    return g_string_free(text, FALSE);
}

static const struct PlanCase {
    const char *path;
    const char *vmi;
    bool is_root, use_emulation, is_mshv;
    const char *expect;
} plan_cases[] = {
    /* clang-format off */
    {"one-request-for-most", "{'spec':{'domain':{'devices':{" INTERFACE "}}}}", false, false, false, "kvm+vfio+vhost-net+tun"},
    {"emulation-needs-no-vhost", "{'spec':{'domain':{'devices':{" INTERFACE "}}}}", false, true, false, "kvm+vfio+tun"},
    {"root-owns-the-network-devices", "{'spec':{'domain':{'devices':{" INTERFACE "}}}}", true, false, false, "kvm"},
    {"mshv", "{'spec':{'domain':{'devices':{}}}}", true, false, true, "mshv"},
    {"attached-by-itself", "{'spec':{'domain':{}}}", false, false, false, "kvm+vfio+tun"},
    {"attached-when-told", "{'spec':{'domain':{'devices':{'autoattachPodInterface':true}}}}", false, false, false, "kvm+vfio+tun"},
    {"no-network", "{'spec':{'domain':{'devices':{'autoattachPodInterface':false}}}}", false, false, false, "kvm+vfio"},
    {"slow-models-need-no-vhost", "{'spec':{'domain':{'devices':{'interfaces':[{'model':'e1000'}]}}}}", false, false, false, "kvm+vfio+tun"},
    {"any-virtio-interface", "{'spec':{'domain':{'devices':{'interfaces':[{'model':'e1000'},{'model':'virtio'}]}}}}", false, false, false, "kvm+vfio+vhost-net+tun"},
    {"vsock", "{'spec':{'domain':{'devices':{'autoattachVSOCK':true}}}}", true, false, false, "kvm+vsock"},
    {"no-vsock", "{'spec':{'domain':{'devices':{'autoattachVSOCK':false}}}}", true, false, false, "kvm"},
    {"sev", "{'spec':{'domain':{'launchSecurity':{'sev':{}}}}}", true, false, false, "kvm+sev"},
    {"snp", "{'spec':{'domain':{'launchSecurity':{'snp':{}}}}}", true, false, false, "kvm+sev"},
    {"tdx-has-no-device", "{'spec':{'domain':{'launchSecurity':{'tdx':{}}}}}", true, false, false, "kvm"},
    {"block-claim",
     "{'spec':{'volumes':[{'name':'a','persistentVolumeClaim':{'claimName':'c'}},{'name':'b','dataVolume':{'name':'d'}}]},"
     "'status':{'volumeStatus':[{'name':'b','persistentVolumeClaimInfo':{'volumeMode':'Block'}},"
     "{'name':'a','persistentVolumeClaimInfo':{'volumeMode':'Block'}}]}}",
     false, true, false, "kvm; block a; vfio+tun"},
    {"filesystem-claim",
     "{'spec':{'volumes':[{'name':'a','persistentVolumeClaim':{'claimName':'c'}}]},"
     "'status':{'volumeStatus':[{'name':'a','persistentVolumeClaimInfo':{'volumeMode':'Filesystem'}}]}}",
     false, true, false, "kvm+vfio+tun"},
    {"claim-without-status", "{'spec':{'volumes':[{'name':'a','persistentVolumeClaim':{'claimName':'c'}}]}}", false, true, false,
     "kvm; no-status a; vfio+tun"},
    {"claim-of-root", "{'spec':{'volumes':[{'name':'a','persistentVolumeClaim':{'claimName':'c'}}]}}", true, true, false, "kvm"},
    {"host-disks", "{'spec':{'volumes':[{'name':'a','hostDisk':{'path':'/a/d','type':'DiskOrCreate','capacity':'1Mi'}},"
     "{'name':'b','hostDisk':{'path':'/b/d','type':'Disk'}}]}}", false, true, false, "kvm; disk a; disk b; vfio+tun"},
    {"host-disks-of-root", "{'spec':{'volumes':[{'name':'a','hostDisk':{'path':'/a/d','type':'DiskOrCreate','capacity':'1Mi'}},"
     "{'name':'b','hostDisk':{'path':'/b/d','type':'Disk'}}],'domain':{'launchSecurity':{'sev':{}}}}}", true, true, false, "kvm; disk a; sev"},
    {"file-systems", "{'spec':{'domain':{'devices':{'filesystems':[{'name':'x','virtiofs':{}},{'name':'y','virtiofs':{}}]}}}}",
     true, true, false, "kvm; virtiofs x; virtiofs y"},
    /* clang-format on */
};

static void
test_plan(gconstpointer data)
{
    const struct PlanCase *c = data;
    const ChOwnershipOptions options = {
        .is_nonroot = !c->is_root, .use_emulation = c->use_emulation, .is_mshv = c->is_mshv};
    g_autoptr(ChJson) vmi = parse_json(c->vmi);
    g_autoptr(GArray) plan = ch_ownership_plan(vmi, &options);
    g_autofree char *text = describe(plan);

    g_assert_cmpstr(text, ==, c->expect);
}

/* --- carried out, by the real hands in a pod */

typedef struct {
    FakePod fake;
    ChHands *hands;
    ChPod *pod;
    int fd;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    if (geteuid() != 0)
        return;
    fake_pod_init(&f->fake);
    fake_pod_start_launcher(&f->fake, false);
    f->hands =
        ch_hands_start(NULL, &(ChHandsPlaces){f->fake.pods_dir, "/nonexistent", NULL, 0}, &error);
    g_assert_no_error(error);
    f->pod = ch_pod_connect(f->hands, FAKE_POD_UID, &f->fd, &error);
    g_assert_no_error(error);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    if (geteuid() != 0)
        return;
    close(f->fd);
    ch_pod_free(f->pod);
    ch_hands_stop(f->hands);
    fake_pod_clear(&f->fake);
}

static void
make_node(const Fixture *f, const char *path, unsigned minor_number)
{
    g_autofree char *full = fake_pod_path(&f->fake, path);

    g_assert_cmpint(mknod(full, S_IFCHR | 0600, makedev(10, minor_number)), ==, 0);
}

static void
check(const Fixture *f,
      const char *text,
      const ChOwnershipOptions *options,
      ChOwnershipOutcome expect,
      const char *message)
{
    g_autoptr(ChJson) vmi = parse_json(text);
    g_autoptr(GPtrArray) tolerated = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(ch_ownership_apply(f->pod, vmi, options, tolerated, &error), ==, expect);
    g_assert_cmpuint(tolerated->len, ==, 0);
    if (message != NULL)
        g_assert_cmpstr(error->message, ==, message);
    else
        g_assert_no_error(error);
}

/* spec:05-16.7#147 spec:05-16.7#151 */
static void
test_network_devices(Fixture *f, gconstpointer data)
{
    const ChOwnershipOptions options = {.is_nonroot = true};
    const char *vmi = "{'spec':{'domain':{'devices':{" INTERFACE "}}}}";

    if (fake_pod_skip())
        return;
    check(f,
          vmi,
          &options,
          CH_OWNERSHIP_RETRY,
          "failed to set up file ownership for /dev/kvm: failed opening /dev/kvm: no such file or "
          "directory");
    make_node(f, "dev/kvm", 232);
    check(f,
          vmi,
          &options,
          CH_OWNERSHIP_CRITICAL,
          "Critical network error: failed to set up vhost-net device, failed opening "
          "/dev/vhost-net: no such file or directory");
    make_node(f, "dev/vhost-net", 238);
    check(f,
          vmi,
          &options,
          CH_OWNERSHIP_CRITICAL,
          "Critical network error: failed to set up tun device, failed opening /dev/net/tun: no "
          "such file or directory");
    make_node(f, "dev/net/tun", 200);
    check(f, vmi, &options, CH_OWNERSHIP_OK, NULL);
    g_assert_cmpint(test_tree_stat(f->fake.root, "dev/vhost-net").st_uid, ==, 107);
}

static void
test_refusals(Fixture *f, gconstpointer data)
{
    const ChOwnershipOptions options = {.is_nonroot = true, .use_emulation = true};
    const ChOwnershipOptions root = {.use_emulation = true};

    if (fake_pod_skip())
        return;
    check(f,
          "{'spec':{'volumes':[{'name':'a','persistentVolumeClaim':{}}]}}",
          &options,
          CH_OWNERSHIP_RETRY,
          "missing volume status for volume a");
    check(f,
          "{'spec':{'domain':{'devices':{'filesystems':[{'name':'x'}]}}}}",
          &root,
          CH_OWNERSHIP_RETRY,
          "failed opening /var/run/kubevirt/virtiofs-containers/x.sock: no such file or directory");
    check(f,
          "{'spec':{'domain':{'launchSecurity':{'sev':{}}}}}",
          &root,
          CH_OWNERSHIP_RETRY,
          "failed to set SEV device owner: failed opening /dev/sev: no such file or directory");
    check(f,
          "{'spec':{'domain':{'devices':{'autoattachVSOCK':true}}}}",
          &root,
          CH_OWNERSHIP_RETRY,
          "failed to set up file ownership for /dev/vhost-vsock: failed opening /dev/vhost-vsock: "
          "no such file or directory");
}

#define DISKS "run/kubevirt-private/vmi-disks"

static bool
mount_small(const Fixture *f)
{
    g_autofree char *path = fake_pod_path(&f->fake, DISKS "/v");

    /* Before the launcher starts, whose mount namespace it is then part of. */
    if (mount("small", path, "tmpfs", 0, "size=64m,mode=0755") == 0)
        return true;
    g_test_skip("needs tmpfs mounts");
    return false;
}

/* spec:05-16.6#140 spec:05-16.6#141: the texts */
static void
test_disks(Fixture *f, gconstpointer data)
{
    const char *vmi = "{'spec':{'volumes':[{'name':'v','hostDisk':{'path':'/x/d.img','type':"
                      "'DiskOrCreate','capacity':'64Mi'}}]}}";
    ChOwnershipOptions options = {
        .use_emulation = true, .disk_reserve = 1 << 20, .disk_tolerated_percent = 1};
    g_autoptr(GPtrArray) tolerated = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(ChJson) document = NULL;
    g_autoptr(GError) error = NULL;

    if (fake_pod_skip())
        return;
    fake_pod_kill_launcher(&f->fake);
    test_tree_mkdir(f->fake.root, DISKS "/v");
    if (!mount_small(f))
        return;
    fake_pod_start_launcher(&f->fake, false);
    close(f->fd);
    ch_pod_free(f->pod);
    f->pod = ch_pod_connect(f->hands, FAKE_POD_UID, &f->fd, &error);
    g_assert_no_error(error);
    check(f,
          vmi,
          &options,
          CH_OWNERSHIP_RETRY,
          "preparing host-disks failed: unable to create "
          "/var/run/kubevirt-private/vmi-disks/v/d.img, not enough space, demanded size 67108864 B "
          "is bigger than available space 66060288 B, also after taking 1 % toleration into "
          "account");
    options.disk_tolerated_percent = 10;
    document = parse_json(vmi);
    g_assert_cmpint(
        ch_ownership_apply(f->pod, document, &options, tolerated, &error), ==, CH_OWNERSHIP_OK);
    g_assert_cmpuint(tolerated->len, ==, 1);
    g_assert_cmpstr(tolerated->pdata[0],
                    ==,
                    "PV size too small: expected 67108864 B, found 66060288 B. Using it anyway, "
                    "it is within 10 % toleration");
    check(f, vmi, &options, CH_OWNERSHIP_OK, NULL); /* it is there by now */
    {
        g_autofree char *path = fake_pod_path(&f->fake, DISKS "/v");

        g_assert_cmpint(umount(path), ==, 0);
    }
}

#define HOST_DISK(name, capacity)                                                                  \
    "{'name':'" name                                                                               \
    "','hostDisk':{'path':'/x/disk.img','type':'DiskOrCreate','capacity':'" capacity "'}}"

/* spec:05-16.6#138: the first is made, the second wants too much, the third's turn does not come.
 */
static void
test_disks_in_order(Fixture *f, gconstpointer data)
{
    const ChOwnershipOptions options = {.use_emulation = true, .disk_tolerated_percent = 10};
    g_autoptr(GPtrArray) tolerated = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(GError) error = NULL;

    if (fake_pod_skip())
        return;
    vmi = parse_json("{'spec':{'volumes':[" HOST_DISK("a", "1Mi") "," HOST_DISK(
        "b", "1E") "," HOST_DISK("c", "1Mi") "]}}");
    test_tree_mkdir(f->fake.root, DISKS "/a");
    test_tree_mkdir(f->fake.root, DISKS "/b");
    test_tree_mkdir(f->fake.root, DISKS "/c");
    g_assert_cmpint(
        ch_ownership_apply(f->pod, vmi, &options, tolerated, &error), ==, CH_OWNERSHIP_RETRY);
    g_assert_true(g_str_has_prefix(error->message,
                                   "preparing host-disks failed: unable to create "
                                   "/var/run/kubevirt-private/vmi-disks/b/disk.img, not enough "
                                   "space, demanded size 1000000000000000000 B "));
    g_assert_cmpint(test_tree_stat(f->fake.root, DISKS "/a/disk.img").st_size, ==, 1 << 20);
    g_assert_false(test_tree_has(f->fake.root, DISKS "/b/disk.img"));
    g_assert_false(test_tree_has(f->fake.root, DISKS "/c/disk.img"));
}

/* field:FR-F04: a path as a name */
static void
test_disk_names(Fixture *f, gconstpointer data)
{
    const ChOwnershipOptions options = {.use_emulation = true};

    if (fake_pod_skip())
        return;
    check(f,
          "{'spec':{'volumes':[{'name':'v','hostDisk':{'path':'/x/..','type':'DiskOrCreate'}}]}}",
          &options,
          CH_OWNERSHIP_RETRY,
          "preparing host-disks failed: no image can be called '' in 'v'");
    check(f,
          "{'spec':{'volumes':[{'name':'../v','hostDisk':{'path':'/x/d','type':'DiskOrCreate'}}]}}",
          &options,
          CH_OWNERSHIP_RETRY,
          "preparing host-disks failed: no image can be called 'd' in '../v'");
}

/* A launcher that is gone, like hands that are, says nothing about the network. */
static void
test_dead_launcher(Fixture *f, gconstpointer data)
{
    const ChOwnershipOptions options = {.is_nonroot = true, .use_emulation = true};
    g_autoptr(ChJson) vmi = parse_json("{'spec':{}}");
    g_autoptr(GPtrArray) tolerated = g_ptr_array_new();
    g_autoptr(GError) error = NULL;

    if (fake_pod_skip())
        return;
    fake_pod_kill_launcher(&f->fake);
    g_assert_cmpint(
        ch_ownership_apply(f->pod, vmi, &options, tolerated, &error), ==, CH_OWNERSHIP_RETRY);
    g_assert_nonnull(error);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(plan_cases); i++) {
        g_autofree char *path = g_strconcat("/ownership/plan/", plan_cases[i].path, NULL);

        g_test_add_data_func(path, &plan_cases[i], test_plan);
    }
    g_test_add(
        "/ownership/network-devices", Fixture, NULL, set_up, test_network_devices, tear_down);
    g_test_add("/ownership/refusals", Fixture, NULL, set_up, test_refusals, tear_down);
    g_test_add("/ownership/disks", Fixture, NULL, set_up, test_disks, tear_down);
    g_test_add("/ownership/disks-in-order", Fixture, NULL, set_up, test_disks_in_order, tear_down);
    g_test_add("/ownership/disk-names", Fixture, NULL, set_up, test_disk_names, tear_down);
    g_test_add("/ownership/dead-launcher", Fixture, NULL, set_up, test_dead_launcher, tear_down);
    return g_test_run();
}
