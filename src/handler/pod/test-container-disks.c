/* SPDX-License-Identifier: Apache-2.0 */

/* With the real hands; the node's mount namespace is this program's own. */

#include "handler/pod/container-disks.h"

#include <glib/gstdio.h>

#include "handler/hands/test-fake-disk.h"
#include "lib/base/errors.h"
#include "lib/base/time.h"

#define VMI_UID   "vmi-uid"
#define OTHER_UID "aaaabbbb-0000-4000-8000-000000000002"
#define MINUTE_US (60 * CH_SECOND_US)

typedef struct {
    bool is_ready;
    char *dir, *pods_dir, *disks, *private_dir, *record; /* owned */
    ChHands *hands;
    ChContainerDiskEnv env;
    FakeDisk disk;   /* disk 1: the second volume */
    FakeDisk kernel; /* serves kernel and initrd */
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    f->is_ready = geteuid() == 0;
    if (!f->is_ready)
        return;
    (void)umask(022);
    f->dir = test_tree_new();
    f->pods_dir = g_build_filename(f->dir, "pods", NULL);
    f->disks = g_build_filename(f->pods_dir, FAKE_POD_UID, FAKE_DISKS, NULL);
    f->private_dir = g_build_filename(f->dir, "private", NULL);
    f->record = g_build_filename(f->private_dir, "container-disk-mount-state", VMI_UID, NULL);
    test_tree_mkdir(f->disks, ".");
    test_tree_mkdir(f->disks, "../sockets");
    test_tree_mkdir(f->private_dir, "container-disk-mount-state");
    fake_disk_init(&f->disk, f->dir, f->disks, "disk_1.sock", "image");
    test_tree_write(f->disk.root, "disk/disk.img", "image");
    fake_disk_init(&f->kernel, f->dir, f->disks, "kernel-boot.sock", "kernel");
    test_tree_mkdir(f->kernel.root, "boot");
    test_tree_write(f->kernel.root, "boot/vmlinuz", "kernel");
    test_tree_write(f->kernel.root, "boot/initrd", "initrd");
    f->hands =
        ch_hands_start(NULL, &(ChHandsPlaces){f->pods_dir, "/nonexistent", NULL, getpid()}, &error);
    g_assert_no_error(error);
    f->env = (ChContainerDiskEnv){f->hands, f->private_dir, f->pods_dir};
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    if (!f->is_ready)
        return;
    fake_disk_detach(f->disks);
    fake_disk_clear(&f->disk); /* they hold copies of the hands' channels */
    fake_disk_clear(&f->kernel);
    ch_hands_stop(f->hands);
    test_tree_remove(f->dir);
    g_free(f->dir);
    g_free(f->pods_dir);
    g_free(f->disks);
    g_free(f->private_dir);
    g_free(f->record);
}

#define DISK   "{\"name\":\"other\",\"emptyDisk\":{}},{\"name\":\"root\",\"containerDisk\":{}}"
#define KERNEL "{\"kernelPath\":\"/boot/vmlinuz\",\"initrdPath\":\"/boot/initrd\"}"
#define ONE    "\"" FAKE_POD_UID "\":\"node\""

/* @volumes: JSON, NULL: none; @kernel: JSON of the container, NULL: none */
static ChJson *
vmi_new(const char *volumes, const char *kernel, const char *pods)
{
    g_autofree char *boot =
        kernel != NULL
            ? g_strdup_printf(",\"domain\":{\"firmware\":{\"kernelBoot\":{\"container\":%s}}}",
                              kernel)
            : g_strdup("");
    g_autofree char *text =
        g_strdup_printf("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"vm\",\"uid\":\"" VMI_UID
                        "\"},\"spec\":{\"volumes\":[%s]%s},\"status\":{\"activePods\":{%s}}}",
                        volumes != NULL ? volumes : "",
                        boot,
                        pods);
    g_autoptr(GError) error = NULL;
    ChJson *vmi = ch_json_parse(text, -1, &error);

    g_assert_no_error(error);
    return vmi;
}

static void
assert_outcome(Fixture *f, const ChJson *vmi, int64_t waited_us, const char *expected)
{
    g_autoptr(GError) error = NULL;
    const ChContainerDisksOutcome outcome =
        ch_container_disks_prepare(&f->env, vmi, false, waited_us, &error);

    if (expected == NULL) {
        g_assert_no_error(error);
        g_assert_cmpint(outcome, ==, CH_CONTAINER_DISKS_OK);
    } else if (expected[0] == '\0') {
        g_assert_no_error(error);
        g_assert_cmpint(outcome, ==, CH_CONTAINER_DISKS_WAIT);
    } else {
        g_assert_cmpint(outcome, ==, CH_CONTAINER_DISKS_FAILED);
        g_assert_cmpstr(error->message, ==, expected);
    }
}

static void
assert_cleans_up(Fixture *f, const ChJson *vmi)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_container_disks_clean_up(&f->env, VMI_UID, vmi, &error));
    g_assert_no_error(error);
    g_assert_false(g_file_test(f->record, G_FILE_TEST_EXISTS));
}

static void
assert_content(const char *dir, const char *name, const char *expected)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, expected);
}

/* The path of @name in the pod's directory, as it stands in a record. */
#define ENTRY(target, socket)                                                                      \
    "{\"targetFile\":\"%1$s/" target "\",\"socketFile\":\"%1$s/" socket "\"}"

static void
assert_record(Fixture *f, const char *format)
{
    g_autofree char *text = NULL;
    g_autofree char *expected = NULL;
    g_autoptr(GString) built = g_string_new(format);

    g_assert_true(g_file_get_contents(f->record, &text, NULL, NULL));
    (void)g_string_replace(built, "%1$s", f->disks, 0);
    expected = g_strdup_printf("{\"mountTargetEntries\":[%s],\"usesSafePaths\":true}", built->str);
    g_assert_cmpstr(text, ==, expected);
}

static void
write_record(Fixture *f, const char *format)
{
    g_autoptr(GString) text = g_string_new(format);

    (void)g_string_replace(text, "%1$s", f->disks, 0);
    g_assert_true(g_file_set_contents(f->record, text->str, -1, NULL));
}

/* spec:05-16.3#47 spec:05-16.3#48 spec:05-16.3#49 spec:05-16.3#50 spec:05-16.3#51 spec:05-16.3#52
 * field:FR-E03 */
static void
test_disk_ready(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;

    if (fake_pod_skip_mounts())
        return;
    vmi = vmi_new(DISK, NULL, ONE);
    assert_outcome(f, vmi, 0, "");
    assert_outcome(f, vmi, MINUTE_US, "");
    assert_outcome(f, vmi, MINUTE_US + 1, "containerdisk root still not ready after one minute");
    close(fake_pod_listen(f->disks, "disk_1.sock")); /* nobody listens */
    assert_outcome(f, vmi, 0, "");
    assert_outcome(f, vmi, MINUTE_US + 1, "containerdisk root still not ready after one minute");
    g_assert_false(g_file_test(f->record, G_FILE_TEST_EXISTS));
    fake_disk_start(&f->disk);
    assert_outcome(f, vmi, 0, NULL);
    assert_outcome(f, vmi, 2 * MINUTE_US, NULL);
}

/* spec:05-16.3#53 spec:05-16.3#54 spec:05-16.3#55 spec:05-16.3#56 spec:05-16.3#57 spec:05-16.3#58
 */
static void
test_kernel_ready(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;

    if (fake_pod_skip_mounts())
        return;
    vmi = vmi_new(NULL, KERNEL, ONE);
    assert_outcome(f, vmi, 0, "");
    assert_outcome(f, vmi, MINUTE_US + 1, "kernelboot container still not ready after one minute");
    close(fake_pod_listen(f->disks, "kernel-boot.sock"));
    assert_outcome(f, vmi, 0, "");
    assert_outcome(f, vmi, MINUTE_US + 1, "kernelboot container still not ready after one minute");
    fake_disk_start(&f->kernel);
    assert_outcome(f, vmi, 0, NULL);
    assert_outcome(f, vmi, 2 * MINUTE_US, NULL);
}

/* spec:05-16.3#59 spec:05-16.3#60 spec:05-16.3#81 */
static void
test_image_volume(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *sockets = NULL;

    if (fake_pod_skip_mounts())
        return;
    vmi = vmi_new(DISK, KERNEL, ONE);
    g_assert_cmpint(ch_container_disks_prepare(&f->env, vmi, true, 2 * MINUTE_US, &error),
                    ==,
                    CH_CONTAINER_DISKS_OK); /* kubelet's work */
    g_assert_false(g_file_test(f->record, G_FILE_TEST_EXISTS));
    test_tree_mkdir(f->pods_dir, FAKE_POD_UID "/containers/container-disk-binary");
    g_assert_cmpint(ch_container_disks_prepare(&f->env, vmi, true, 0, &error),
                    ==,
                    CH_CONTAINER_DISKS_WAIT); /* a pod of old */
    g_assert_no_error(error);
    sockets = g_build_filename(f->disks, "../sockets", NULL);
    g_assert_cmpint(g_rmdir(sockets), ==, 0);
    g_assert_cmpint(symlink("/", sockets), ==, 0);
    g_assert_cmpint(
        ch_container_disks_prepare(&f->env, vmi, true, 0, &error), ==, CH_CONTAINER_DISKS_FAILED);
    g_assert_nonnull(strstr(
        error->message, "fail to detect if bind mount needed for vmi: vm in namespace: ns. err: "));
}

/* spec:05-16.3#61 spec:05-16.3#74: a second pass mounts nothing and writes nothing */
static void
test_mount(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;
    struct stat before, after;

    if (fake_pod_skip_mounts())
        return;
    vmi = vmi_new(DISK, NULL, ONE);
    fake_disk_start(&f->disk);
    assert_outcome(f, vmi, 0, NULL);
    assert_content(f->disks, "disk_1.img", "image");
    assert_record(f, ENTRY("disk_1.img", "disk_1.sock"));
    g_assert_cmpint(g_stat(f->record, &before), ==, 0);
    g_assert_cmpint(before.st_mode, ==, S_IFREG | 0600);
    assert_outcome(f, vmi, 0, NULL);
    g_assert_cmpint(g_stat(f->record, &after), ==, 0);
    g_assert_cmpuint(before.st_ino, ==, after.st_ino);
    assert_cleans_up(f, vmi);
    g_assert_false(test_tree_has(f->disks, "disk_1.img"));
    g_assert_false(test_tree_has(f->disks, "disk_1.sock"));
    assert_cleans_up(f, vmi);
}

/* spec:05-16.3#75 */
static void
test_kernel(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;

    if (fake_pod_skip_mounts())
        return;
    vmi = vmi_new(DISK, KERNEL, ONE);
    fake_disk_start(&f->disk);
    fake_disk_start(&f->kernel);
    for (int i = 0; i < 2; i++) {
        assert_outcome(f, vmi, 0, NULL);
        assert_record(
            f, ENTRY("kernel-boot", "kernel-boot.sock") "," ENTRY("disk_1.img", "disk_1.sock"));
    }
    assert_content(f->disks, "kernel-boot/vmlinuz", "kernel");
    assert_content(f->disks, "kernel-boot/initrd", "initrd");
    /* as Go leaves it; and the VMI is gone, so that nobody knows of a kernel */
    write_record(f,
                 "{\"mountTargetEntries\":[" ENTRY("disk_1.img", "disk_1.sock") "],"
                                                                                "\"usesSafePaths\":"
                                                                                "true}");
    assert_cleans_up(f, NULL);
    g_assert_false(test_tree_has(f->disks, "kernel-boot"));
    g_assert_false(test_tree_has(f->disks, "disk_1.img"));
}

/* spec:05-16.1#14 field:FR-E04: what is not asked for is not made */
static void
test_one_kernel_file(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;

    if (fake_pod_skip_mounts())
        return;
    fake_disk_start(&f->kernel);
    vmi = vmi_new(NULL, "{\"initrdPath\":\"/boot/initrd\"}", ONE);
    assert_outcome(f, vmi, 0, NULL);
    assert_content(f->disks, "kernel-boot/initrd", "initrd");
    g_assert_cmpint(test_tree_stat(f->disks, "kernel-boot").st_mode, ==, S_IFDIR | 0755);
    g_assert_false(test_tree_has(f->disks, "kernel-boot/vmlinuz"));
    assert_cleans_up(f, vmi);
    g_assert_false(test_tree_has(f->disks, "kernel-boot"));
}

/* field:FR-C05: a directory that a start which failed left behind, without a record */
static void
test_kernel_without_record(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;

    if (fake_pod_skip_mounts())
        return;
    vmi = vmi_new(NULL, KERNEL, ONE);
    test_tree_mkdir(f->disks, "kernel-boot");
    assert_cleans_up(f, vmi);
    g_assert_false(test_tree_has(f->disks, "kernel-boot"));
    test_tree_mkdir(f->disks, "kernel-boot");
    fake_disk_start(&f->kernel);
    assert_outcome(f, vmi, 0, NULL);
    assert_content(f->disks, "kernel-boot/vmlinuz", "kernel");
}

/* spec:05-16.3#76 spec:05-16.3#77 field:FR-C08 */
static void
test_half_done(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;

    if (fake_pod_skip_mounts())
        return;
    vmi = vmi_new(DISK, NULL, ONE);
    fake_disk_start(&f->disk);
    write_record(f,
                 "{\"mountTargetEntries\":[" ENTRY("disk_1.img", "disk_1.sock") "],"
                                                                                "\"usesSafePaths\":"
                                                                                "true}");
    assert_outcome(f, vmi, 0, NULL);
    assert_content(f->disks, "disk_1.img", "image");
    fake_disk_detach_all(f->disks);
    test_tree_remove(f->disks);
    assert_cleans_up(f, vmi);
}

/* spec:05-16.3#79, and what an earlier Go agent's record looked like */
static void
test_legacy(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(GError) error = NULL;

    if (fake_pod_skip_mounts())
        return;
    vmi = vmi_new(DISK, NULL, ONE);
    fake_disk_start(&f->disk);
    assert_outcome(f, vmi, 0, NULL);
    write_record(f,
                 "{\"mountTargetEntries\":[{\"targetFile\":\"/proc/1/root%1$s/./disk_1.img\","
                 "\"socketFile\":\"%1$s/disk_1.sock\"}]}");
    assert_cleans_up(f, NULL);
    g_assert_false(test_tree_has(f->disks, "disk_1.img"));
    write_record(f, "{\"mountTargetEntries\":[{\"targetFile\":\"relative\"}]}");
    g_assert_false(ch_container_disks_clean_up(&f->env, VMI_UID, NULL, &error));
    g_assert_nonnull(strstr(error->message, "failed converting legacy path to safepath: "));
}

/* spec:05-16.3#78: more is mounted on one name than is taken away at a time: that is told, the
 * record stays as it is, and the next try takes the rest. */
static void
test_unmount_fails(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *target = NULL;
    g_autofree char *prefix = NULL;

    if (fake_pod_skip_mounts())
        return;
    vmi = vmi_new(DISK, NULL, ONE);
    fake_disk_start(&f->disk);
    assert_outcome(f, vmi, 0, NULL);
    target = g_build_filename(f->disks, "disk_1.img", NULL);
    prefix = g_strdup_printf("failed to unmount containerDisk %s: ", target);
    for (int i = 0; i < 20; i++)
        g_assert_cmpint(mount(target, target, NULL, MS_BIND, NULL), ==, 0);
    g_assert_false(ch_container_disks_clean_up(&f->env, VMI_UID, vmi, &error));
    g_assert_true(g_str_has_prefix(error->message, prefix));
    assert_record(f, ENTRY("disk_1.img", "disk_1.sock"));
    g_assert_true(test_tree_has(f->disks, "disk_1.sock"));
    assert_cleans_up(f, vmi);
    g_assert_false(test_tree_has(f->disks, "disk_1.img"));
}

/* What cannot be read keeps the record too; and no path of a record leads elsewhere. */
static void
test_kept(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *victim = NULL;

    if (fake_pod_skip_mounts())
        return;
    test_tree_write(f->dir, "victim", "text");
    victim = g_build_filename(f->dir, "victim", NULL);
    write_record(f,
                 "{\"mountTargetEntries\":[{\"targetFile\":\"%1$s/../../../../../victim\","
                 "\"socketFile\":\"\"}],\"usesSafePaths\":true}");
    g_assert_false(ch_container_disks_clean_up(&f->env, VMI_UID, NULL, &error));
    g_assert_true(
        g_str_has_prefix(error->message, "failed to check mount point for containerDisk "));
    g_assert_true(g_file_test(f->record, G_FILE_TEST_EXISTS));
    assert_content(f->dir, "victim", "text");
    write_record(f, "{\"mountTargetEntries\":[");
    g_clear_error(&error);
    g_assert_false(ch_container_disks_clean_up(&f->env, VMI_UID, NULL, &error));
    g_assert_true(g_str_has_prefix(error->message, "failed to get checkpoint " VMI_UID ", "));
}

/* spec:05-16.3#64 spec:05-16.3#65 */
static void
test_pods(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChJson) stranger = NULL;
    g_autofree char *other = NULL;

    if (fake_pod_skip_mounts())
        return;
    vmi = vmi_new(DISK, NULL, "\"" OTHER_UID "\":\"node\"," ONE ",\"../x\":\"node\"");
    fake_disk_start(&f->disk);
    assert_outcome(f, vmi, 0, NULL);
    other = g_build_filename(f->pods_dir, OTHER_UID, FAKE_DISKS, NULL);
    test_tree_mkdir(other, ".");
    assert_outcome(f,
                   vmi,
                   0,
                   "Found multiple pods active for vmi ns/vm. Waiting on outdated pod "
                   "directories to be removed");
    stranger = vmi_new(DISK, NULL, "");
    assert_outcome(f, stranger, 0, ""); /* no pod at all */
}

static const struct ImageCase {
    const char *name;
    const char *volume;
    const char *error;
} image_cases[] = {
    {"two",
     "{\"name\":\"root\",\"containerDisk\":{}}",
     "failed to find a sourceFile in containerDisk root: more than one file found in folder "
     "/disk, only one disk is allowed"},
    {"no-path",
     "{\"name\":\"root\",\"containerDisk\":{\"path\":\"/custom/x\"}}",
     "failed to find a sourceFile in containerDisk root: failed to determine custom image path "
     "/custom/x: find what is to be mounted: no such file or directory"},
    {"bad-path",
     "{\"name\":\"root\",\"containerDisk\":{\"path\":\"/disk/..\"}}",
     "failed to find a sourceFile in containerDisk root: failed to determine custom image path "
     "/disk/..: '/disk/..' is no path of a file: invalid argument"},
};

static void
test_image(Fixture *f, gconstpointer data)
{
    const struct ImageCase *c = data;
    g_autofree char *volumes = NULL;
    g_autoptr(ChJson) vmi = NULL;

    if (fake_pod_skip_mounts())
        return;
    volumes = g_strconcat("{\"name\":\"other\"},", c->volume, NULL);
    vmi = vmi_new(volumes, NULL, ONE);
    test_tree_write(f->disk.root, "disk/second.img", "image");
    fake_disk_start(&f->disk);
    assert_outcome(f, vmi, 0, c->error);
    g_assert_true(g_file_test(f->record, G_FILE_TEST_EXISTS)); /* before the attempt */
    assert_cleans_up(f, vmi);
}

/* A directory for the target that the pod swapped. */
static void
test_swapped(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = NULL;

    if (fake_pod_skip_mounts())
        return;
    vmi = vmi_new(DISK, NULL, ONE);
    fake_disk_start(&f->disk);
    test_tree_link(f->disks, "disk_1.img", "/etc/passwd");
    assert_outcome(f,
                   vmi,
                   0,
                   "failed to create mount point target: open the target: too many levels of "
                   "symbolic links");
    assert_cleans_up(f, vmi);
}

static void
add(const char *name, gconstpointer data, void (*func)(Fixture *f, gconstpointer data))
{
    g_autofree char *path = g_strconcat("/container-disks/", name, NULL);

    g_test_add(path, Fixture, data, set_up, func, tear_down);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (geteuid() == 0)
        g_assert_true(unshare(CLONE_NEWNS) == 0 &&
                      mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    add("disk-ready", NULL, test_disk_ready);
    add("kernel-ready", NULL, test_kernel_ready);
    add("image-volume", NULL, test_image_volume);
    add("mount", NULL, test_mount);
    add("kernel", NULL, test_kernel);
    add("one-kernel-file", NULL, test_one_kernel_file);
    add("kernel-without-record", NULL, test_kernel_without_record);
    add("half-done", NULL, test_half_done);
    add("legacy-record", NULL, test_legacy);
    add("unmount-fails", NULL, test_unmount_fails);
    add("record-is-kept", NULL, test_kept);
    add("pods", NULL, test_pods);
    for (gsize i = 0; i < G_N_ELEMENTS(image_cases); i++)
        add(image_cases[i].name, &image_cases[i], test_image);
    add("swapped-target", NULL, test_swapped);
    return g_test_run();
}
