/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/hotplug.h"

#include "lib/base/errors.h"
#include "lib/json/test-text.h"

#define PLUGGED(name)                                                                              \
    "{\"name\":\"" name "\",\"persistentVolumeClaim\":{\"claimName\":\"c-" name                    \
    "\",\"hotpluggable\":true}}"
#define SEED                 "{\"name\":\"seed\",\"cloudInitNoCloud\":{}}"
#define VMI(volumes, status) "{\"spec\":{\"volumes\":[" volumes "]},\"status\":{" status "}}"
#define CLAIM                                                                                      \
    "{\"c-v\":{\"metadata\":{\"name\":\"c-v\",\"uid\":\"u-c\"},\"spec\":{\"accessModes\":["        \
    "\"ReadWriteOnce\"],\"volumeMode\":\"Block\",\"resources\":{\"requests\":{\"storage\":"        \
    "\"1Gi\"}}}}}"
#define INFO                                                                                       \
    "\"persistentVolumeClaimInfo\":{\"accessModes\":[\"ReadWriteOnce\"],\"capacity\":{"            \
    "\"storage\":"                                                                                 \
    "\"1Gi\"},\"claimName\":\"c-v\",\"requests\":{\"storage\":\"1Gi\"},\"volumeMode\":\"Block\"}"
#define POD_STARTS    "[{\"volume\":\"v\",\"podName\":\"hp-1\",\"podUID\":\"u-1\"}]"
#define POD_SERVES    "[{\"volume\":\"v\",\"podName\":\"hp-1\",\"podUID\":\"u-1\",\"ready\":true}]"
#define STATUS(phase) "\"volumeStatus\":[{\"name\":\"v\",\"target\":\"\",\"phase\":\"" phase "\"}]"

static const struct PhaseCase {
    const char *name, *vmi, *attachments, *claims, *phase, *uid;
} phases[] = {
    {"no-claim", VMI(PLUGGED("v"), ""), "[]", "{}", "Pending", NULL},
    {"claim", VMI(PLUGGED("v"), ""), "[]", CLAIM, "Bound", NULL},
    {"claim-comes", VMI(PLUGGED("v"), STATUS("Pending")), "[]", CLAIM, "Bound", NULL},
    {"pod-starts", VMI(PLUGGED("v"), STATUS("Bound")), POD_STARTS, CLAIM, "AttachedToNode", NULL},
    {"pod-serves",
     VMI(PLUGGED("v"), STATUS("AttachedToNode")),
     POD_SERVES,
     CLAIM,
     "AttachedToNode",
     "u-1"},
    {"the-agent-knows-more",
     VMI(PLUGGED("v"), STATUS("MountedToPod")),
     POD_SERVES,
     CLAIM,
     "MountedToPod",
     "u-1"},
    {"ready-stays", VMI(PLUGGED("v"), STATUS("Ready")), POD_STARTS, CLAIM, "Ready", NULL},
};

static void
test_phases(gconstpointer data)
{
    const struct PhaseCase *c = data;
    g_autoptr(ChJson) vmi = parse_json(c->vmi);
    g_autoptr(ChJson) attachments = parse_json(c->attachments);
    g_autoptr(ChJson) claims = parse_json(c->claims);
    const ChJson *status;

    (void)ch_hotplug_set_status(vmi, attachments, claims, NULL);
    g_assert_cmpuint(ch_json_length(ch_json_at(vmi, "status", "volumeStatus")), ==, 1);
    status = ch_json_item(ch_json_at(vmi, "status", "volumeStatus"), 0);
    g_assert_cmpstr(ch_json_string_at(status, "phase"), ==, c->phase);
    g_assert_cmpstr(ch_json_string_at(status, "hotplugVolume", "attachPodUID"), ==, c->uid);
    g_assert_nonnull(ch_json_at(status, "hotplugVolume"));
    /* A second look changes nothing. */
    g_assert_false(ch_hotplug_set_status(vmi, attachments, claims, NULL));
}

/* Why its pod does not come is told while the agent has not taken over, and forgotten after. */
static void
test_failures(void)
{
    static const struct {
        const char *status, *attachments, *phase, *reason;
    } cases[] = {
        {"", "[]", "Bound", "VolumeInUse"},
        {STATUS("Bound"), "[]", "Bound", "VolumeInUse"},
        {STATUS("AttachedToNode"), POD_STARTS, "AttachedToNode", "VolumeInUse"},
        {STATUS("Ready"), POD_STARTS, "Ready", NULL},
    };
    g_autoptr(ChJson) claims = parse_json(CLAIM);
    g_autoptr(ChJson) failures =
        parse_json("{\"v\":{\"reason\":\"VolumeInUse\",\"message\":\"by b\"}}");

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(VMI("%s", "%s"), PLUGGED("v"), cases[i].status);
        g_autoptr(ChJson) vmi = parse_json(text);
        g_autoptr(ChJson) attachments = parse_json(cases[i].attachments);
        const ChJson *status;

        (void)ch_hotplug_set_status(vmi, attachments, claims, failures);
        status = ch_json_item(ch_json_at(vmi, "status", "volumeStatus"), 0);
        g_assert_cmpstr(ch_json_string_at(status, "phase"), ==, cases[i].phase);
        g_assert_cmpstr(ch_json_string_at(status, "reason"), ==, cases[i].reason);
        g_assert_cmpstr(
            ch_json_string_at(status, "message"), ==, cases[i].reason != NULL ? "by b" : NULL);
        g_assert_false(ch_hotplug_set_status(vmi, attachments, claims, failures));
        (void)ch_hotplug_set_status(vmi, attachments, claims, NULL);
        status = ch_json_item(ch_json_at(vmi, "status", "volumeStatus"), 0);
        g_assert_cmpstr(ch_json_string_at(status, "message"), !=, "by b");
    }
}

static void
test_list(void)
{
    g_autoptr(ChJson) vmi =
        parse_json(VMI(PLUGGED("v") "," SEED,
                       "\"volumeStatus\":[{\"name\":\"gone\",\"phase\":\"Ready\"},"
                       "{\"name\":\"seed\",\"target\":\"vda\",\"x\":1},"
                       "{\"name\":\"held\",\"phase\":\"UnMountedFromPod\"}]"));
    g_autoptr(ChJson) attachments = parse_json(
        "[{\"volume\":\"held\",\"podName\":\"hp-2\",\"podUID\":\"u-2\",\"ready\":true}]");
    g_autoptr(ChJson) claims = parse_json(CLAIM);

    g_assert_true(ch_hotplug_set_status(vmi, attachments, claims, NULL));
    assert_json(
        ch_json_at(vmi, "status", "volumeStatus"),
        "[{\"name\":\"held\",\"phase\":\"UnMountedFromPod\"},"
        "{\"name\":\"seed\",\"target\":\"vda\",\"x\":1},"
        "{\"name\":\"v\",\"target\":\"\"," INFO ",\"hotplugVolume\":{},\"phase\":\"Bound\","
        "\"reason\":\"PVCNotReady\",\"message\":\"The pod for the claim c-v is not there yet\"}]");
}

static void
test_vm_without_volumes(void)
{
    g_autoptr(ChJson) vmi = parse_json("{\"spec\":{},\"status\":{}}");
    g_autoptr(ChJson) none = ch_json_new_array();

    g_assert_false(ch_hotplug_set_status(vmi, none, NULL, NULL));
    g_assert_false(ch_json_has(ch_json_at(vmi, "status"), "volumeStatus"));
}

static const struct GoCase {
    const char *vmi;
    bool may_go;
} goes[] = {
    {VMI(PLUGGED("v"), STATUS("UnMountedFromPod")), false}, /* wanted again */
    {VMI("", STATUS("Ready")), false},
    {VMI("", STATUS("MountedToPod")), false},
    {VMI("", STATUS("AttachedToNode")), true},
    {VMI("", STATUS("UnMountedFromPod")), true},
    {VMI("", ""), true},
    {VMI("{\"name\":\"v\",\"emptyDisk\":{}}", ""), true}, /* another volume of that name */
};

static void
test_who_may_go(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(goes); i++) {
        g_autoptr(ChJson) vmi = parse_json(goes[i].vmi);

        g_assert_cmpint(ch_hotplug_may_go(vmi, "v"), ==, goes[i].may_go);
    }
}

static void
test_hotpluggable(void)
{
    static const char *const no[] = {
        SEED,
        "{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}",
        "{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\",\"hotpluggable\":false}}",
        "{\"name\":\"v\",\"persistentVolumeClaim\":{\"hotpluggable\":true}}",
        "{\"persistentVolumeClaim\":{\"claimName\":\"c\",\"hotpluggable\":true}}",
    };
    g_autoptr(ChJson) yes = parse_json(PLUGGED("v"));

    g_assert_true(ch_hotplug_is_hotpluggable(yes));
    for (gsize i = 0; i < G_N_ELEMENTS(no); i++) {
        g_autoptr(ChJson) volume = parse_json(no[i]);

        g_assert_false(ch_hotplug_is_hotpluggable(volume));
    }
}

#define ANNOTATED(path, spec)                                                                      \
    "{\"metadata\":{\"name\":\"c\",\"uid\":\"u\",\"annotations\":{\"chandler.dev/path\":\"" path   \
    "\"}},\"spec\":{" spec "}}"

static void
test_claims(void)
{
    static const char *const bad[] = {
        "{\"metadata\":{\"name\":\"c\",\"uid\":\"u\"}}",
        ANNOTATED("relative/path", ""),
        ANNOTATED("", ""),
        "{\"metadata\":{\"name\":\"c\",\"uid\":\"../x\",\"annotations\":{\"chandler.dev/path\":\"/"
        "x\"}}}",
    };
    g_autoptr(ChJson) file = parse_json(ANNOTATED("/srv/disk.img", ""));
    g_autoptr(ChJson) block = parse_json(ANNOTATED("/dev/sdb", "\"volumeMode\":\"Block\""));
    ChClaim claim = {0};

    g_assert_true(ch_claim_read(file, &claim, NULL));
    g_assert_cmpstr(claim.path, ==, "/srv/disk.img");
    g_assert_false(claim.is_block);
    g_assert_true(ch_claim_read(block, &claim, NULL));
    g_assert_true(claim.is_block);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ChJson) json = parse_json(bad[i]);

        g_assert_false(ch_claim_read(json, &claim, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
    g_assert_true(ch_claim_bind(block));
    g_assert_cmpstr(ch_json_string_at(block, "status", "phase"), ==, "Bound");
    g_assert_false(ch_claim_bind(block));
}

static void
test_pod(void)
{
    g_autoptr(ChJson) launcher = parse_json(
        "{\"metadata\":{\"name\":\"virt-launcher-vm\",\"namespace\":\"lab\",\"uid\":\"u-l\"}}");
    g_autoptr(ChJson) claim = parse_json(ANNOTATED("/dev/sdb", "\"volumeMode\":\"Block\""));
    g_autoptr(ChJson) pod = ch_hotplug_pod_new(launcher, claim, "hp-volume-1", "v", "node01", "i");
    const ChJson *owner = ch_json_item(ch_json_at(pod, "metadata", "ownerReferences"), 0);
    const ChJson *container = ch_json_item(ch_json_at(pod, "spec", "containers"), 0);

    g_assert_cmpstr(ch_json_string_at(pod, "metadata", "namespace"), ==, "lab");
    g_assert_cmpstr(
        ch_json_string_at(pod, "metadata", "labels", "kubevirt.io"), ==, "hotplug-disk");
    g_assert_cmpstr(ch_json_string_at(owner, "uid"), ==, "u-l");
    assert_json(ch_json_at(container, "volumeDevices"),
                "[{\"name\":\"v\",\"devicePath\":\"/path/v/u\"}]");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(phases); i++) {
        g_autofree char *path = g_strconcat("/hotplug/phase/", phases[i].name, NULL);

        g_test_add_data_func(path, &phases[i], test_phases);
    }
    g_test_add_func("/hotplug/failures", test_failures);
    g_test_add_func("/hotplug/list", test_list);
    g_test_add_func("/hotplug/vm-without-volumes", test_vm_without_volumes);
    g_test_add_func("/hotplug/who-may-go", test_who_may_go);
    g_test_add_func("/hotplug/hotpluggable", test_hotpluggable);
    g_test_add_func("/hotplug/claims", test_claims);
    g_test_add_func("/hotplug/pod", test_pod);
    return g_test_run();
}
