/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/vmi.h"

#include "local/apiserver/test-support.h"

#define DOMAIN(devices) "{'spec':{'domain':{'devices':{" devices "}}}}"
#define WITH_VOLUMES(disks, volumes)                                                               \
    "{'spec':{'domain':{'devices':{'disks':[" disks "]}},'volumes':[" volumes "]}}"
#define NETWORK(interface)                                                                         \
    "{'spec':{'domain':{'devices':{'interfaces':[{'name':'n'," interface "}]}},"                   \
    "'networks':[{'name':'n','pod':{}}]}}"
#define EMPTY_DISK "'emptyDisk':{'capacity':'1Gi'}"

static const struct Case {
    const char *path;
    const char *vmi;
    const char *field; /* of the only cause; NULL: it passes */
    const char *reason;
} cases[] = {
    {"/vmi/least", DOMAIN(""), NULL, NULL},
    {"/vmi/unknown-fields",
     "{'x':1,'spec':{'y':{},'domain':{'z':[],'devices':{'q':1}}}}",
     NULL,
     NULL},
    {"/vmi/null-is-absent", DOMAIN("'disks':null"), NULL, NULL},
    {"/vmi/disk-with-volume",
     WITH_VOLUMES("{'name':'a','disk':{'bus':'virtio'}}", "{'name':'a'," EMPTY_DISK "}"),
     NULL,
     NULL},
    {"/vmi/interface",
     NETWORK("'bridge':{},'macAddress':'02:00:00:00:00:01','ports':[{'port':1},{'port':65535}]"),
     NULL,
     NULL},
    {"/vmi/interface-without-binding", NETWORK("'macAddress':''"), NULL, NULL},
    {"/vmi/interface-of-two-bindings",
     NETWORK("'bridge':{},'masquerade':{}"),
     "spec.domain.devices.interfaces[0]",
     "FieldValueInvalid"},
    {"/vmi/port-0",
     NETWORK("'ports':[{'port':0}]"),
     "spec.domain.devices.interfaces[0].ports[0].port",
     "FieldValueInvalid"},
    {"/vmi/port-too-large",
     NETWORK("'ports':[{'port':80},{'port':65536}]"),
     "spec.domain.devices.interfaces[0].ports[1].port",
     "FieldValueInvalid"},
    {"/vmi/port-no-number",
     NETWORK("'ports':[{'port':'80'}]"),
     "spec.domain.devices.interfaces[0].ports[0].port",
     "FieldValueInvalid"},
    {"/vmi/mac",
     NETWORK("'macAddress':'02:00:00:00:00'"),
     "spec.domain.devices.interfaces[0].macAddress",
     "FieldValueInvalid"},
    {"/vmi/mac-of-many",
     NETWORK("'macAddress':'01:00:5e:00:00:01'"),
     "spec.domain.devices.interfaces[0].macAddress",
     "FieldValueInvalid"},
    {"/vmi/no-spec", "{}", "spec", "FieldValueRequired"},
    {"/vmi/spec-no-object", "{'spec':[]}", "spec", "FieldValueInvalid"},
    {"/vmi/no-domain", "{'spec':{}}", "spec.domain", "FieldValueRequired"},
    {"/vmi/no-devices", "{'spec':{'domain':{}}}", "spec.domain.devices", "FieldValueRequired"},
    {"/vmi/disks-no-array", DOMAIN("'disks':{}"), "spec.domain.devices.disks", "FieldValueInvalid"},
    {"/vmi/disk-no-object",
     DOMAIN("'disks':[1]"),
     "spec.domain.devices.disks[0]",
     "FieldValueInvalid"},
    {"/vmi/disk-without-name",
     DOMAIN("'disks':[{}]"),
     "spec.domain.devices.disks[0].name",
     "FieldValueRequired"},
    {"/vmi/disk-without-volume",
     WITH_VOLUMES("{'name':'a'},{'name':'b'}", "{'name':'a'," EMPTY_DISK "}"),
     "spec.domain.devices.disks[1].name",
     "FieldValueInvalid"},
    {"/vmi/disk-twice",
     WITH_VOLUMES("{'name':'a'},{'name':'a'}", "{'name':'a'," EMPTY_DISK "}"),
     "spec.domain.devices.disks[1].name",
     "FieldValueDuplicate"},
    {"/vmi/disk-bus",
     WITH_VOLUMES("{'name':'a','disk':{'bus':'ide'}}", "{'name':'a'," EMPTY_DISK "}"),
     "spec.domain.devices.disks[0].disk.bus",
     "FieldValueNotSupported"},
    {"/vmi/volume-twice",
     WITH_VOLUMES("", "{'name':'a'," EMPTY_DISK "},{'name':'a'," EMPTY_DISK "}"),
     "spec.volumes[1].name",
     "FieldValueDuplicate"},
    {"/vmi/volume-name",
     WITH_VOLUMES("", "{'name':'a_b'," EMPTY_DISK "}"),
     "spec.volumes[0].name",
     "FieldValueInvalid"},
    {"/vmi/volume-without-source",
     WITH_VOLUMES("", "{'name':'a'}"),
     "spec.volumes[0]",
     "FieldValueRequired"},
    {"/vmi/volume-with-two-sources",
     WITH_VOLUMES("", "{'name':'a'," EMPTY_DISK ",'secret':{}}"),
     "spec.volumes[0]",
     "FieldValueInvalid"},
    {"/vmi/container-disk-without-image",
     WITH_VOLUMES("", "{'name':'a','containerDisk':{}}"),
     "spec.volumes[0].containerDisk.image",
     "FieldValueRequired"},
    {"/vmi/capacity",
     WITH_VOLUMES("", "{'name':'a','emptyDisk':{'capacity':'lots'}}"),
     "spec.volumes[0].emptyDisk.capacity",
     "FieldValueInvalid"},
    {"/vmi/memory-number",
     "{'spec':{'domain':{'memory':{'guest':134217728},'devices':{}}}}",
     NULL,
     NULL},
    {"/vmi/memory",
     "{'spec':{'domain':{'memory':{'guest':'128Mo'},'devices':{}}}}",
     "spec.domain.memory.guest",
     "FieldValueInvalid"},
    {"/vmi/memory-none",
     "{'spec':{'domain':{'memory':{'guest':0},'devices':{}}}}",
     "spec.domain.memory.guest",
     "FieldValueInvalid"},
    {"/vmi/memory-negative",
     "{'spec':{'domain':{'resources':{'limits':{'memory':'-1'}},'devices':{}}}}",
     "spec.domain.resources.limits[memory]",
     "FieldValueInvalid"},
    {"/vmi/memory-request-none", /* as on a cluster: the guest's memory may be named beside it */
     "{'spec':{'domain':{'resources':{'requests':{'memory':'0'}},'devices':{}}}}",
     NULL,
     NULL},
    {"/vmi/capacity-none",
     WITH_VOLUMES("", "{'name':'a','emptyDisk':{'capacity':'0'}}"),
     "spec.volumes[0].emptyDisk.capacity",
     "FieldValueInvalid"},
    {"/vmi/request",
     "{'spec':{'domain':{'resources':{'requests':{'memory':true}},'devices':{}}}}",
     "spec.domain.resources.requests[memory]",
     "FieldValueInvalid"},
    {"/vmi/cores",
     "{'spec':{'domain':{'cpu':{'cores':'2'},'devices':{}}}}",
     "spec.domain.cpu.cores",
     "FieldValueInvalid"},
    {"/vmi/network-without-interface",
     "{'spec':{'domain':{'devices':{}},'networks':[{'name':'n','pod':{}}]}}",
     "spec.networks[0].name",
     "FieldValueInvalid"},
    {"/vmi/interface-without-network",
     DOMAIN("'interfaces':[{'name':'n','masquerade':{}}]"),
     "spec.domain.devices.interfaces[0].name",
     "FieldValueInvalid"},
    {"/vmi/network-and-interface",
     "{'spec':{'domain':{'devices':{'interfaces':[{'name':'n','masquerade':{}}]}},"
     "'networks':[{'name':'n','pod':{}}]}}",
     NULL,
     NULL},
    {"/vmi/condition-time",
     "{'spec':{'domain':{'devices':{}}},'status':{'conditions':[{'type':'Ready','status':'True',"
     "'lastProbeTime':'yesterday'}]}}",
     "status.conditions[0].lastProbeTime",
     "FieldValueInvalid"},
    {"/vmi/cpu-negative",
     "{'spec':{'domain':{'cpu':{'cores':-1},'devices':{}}}}",
     "spec.domain.cpu.cores",
     "FieldValueInvalid"},
    {"/vmi/cpu-too-large",
     "{'spec':{'domain':{'cpu':{'sockets':4294967296},'devices':{}}}}",
     "spec.domain.cpu.sockets",
     "FieldValueInvalid"},
    {"/vmi/cpu-largest",
     "{'spec':{'domain':{'cpu':{'threads':4294967295},'devices':{}}}}",
     NULL,
     NULL},
};

static void
test_case(gconstpointer data)
{
    const struct Case *c = data;
    g_autofree char *text = g_strdelimit(g_strdup(c->vmi), "'", '"');
    g_autoptr(ChJson) vmi = ch_json_parse(text, -1, NULL);
    g_autoptr(GPtrArray) causes = g_ptr_array_new_with_free_func((GDestroyNotify)ch_cause_free);
    const ChCause *cause;

    g_assert_nonnull(vmi);
    ch_vmi_validate(vmi, causes);
    if (c->field == NULL) {
        g_assert_cmpuint(causes->len, ==, 0);
        return;
    }
    g_assert_cmpuint(causes->len, ==, 1);
    cause = g_ptr_array_index(causes, 0);
    g_assert_cmpstr(cause->field, ==, c->field);
    g_assert_cmpstr(cause->reason, ==, c->reason);
    g_assert_cmpstr(cause->message, !=, "");
}

static void
test_every_mistake_is_told_at_once(void)
{
    TestApi t;
    g_autoptr(ChJson) refused = NULL;

    test_api_init(&t, NULL);
    refused = test_call(&t,
                        422,
                        "POST",
                        TEST_VMIS,
                        "{'metadata':{'name':'vm'},'spec':{'domain':{'cpu':{'cores':'x'},"
                        "'devices':{'disks':[{'name':'a'}]}}}}");
    g_assert_cmpstr(ch_json_string_at(refused, "reason"), ==, "Invalid");
    g_assert_cmpuint(ch_json_length(ch_json_at(refused, "details", "causes")), ==, 2);
    g_assert_cmpstr(
        ch_json_string_at(refused, "message"),
        ==,
        "VirtualMachineInstance.kubevirt.io \"vm\" is invalid: [spec.domain.cpu.cores: Invalid "
        "value: \"x\": must be of type integer, spec.domain.devices.disks[0].name: Invalid value: "
        "\"a\": there is no volume of this name]");
    test_do(&t, 404, "GET", TEST_VMIS "/vm", NULL);
    test_api_clear(&t);
}

static void
test_recorded_vmis_pass(void)
{
    static const char *const names[] = {"vmi-plain.json", "vmi-masquerade.json"};
    const char *shared = g_getenv("CH_SHARED");

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path =
            g_build_filename(shared != NULL ? shared : "", "golden", names[i], NULL);
        g_autofree char *text = NULL;
        g_autoptr(ChJson) vmi = NULL;
        g_autoptr(GPtrArray) causes = g_ptr_array_new_with_free_func((GDestroyNotify)ch_cause_free);

        if (!g_file_get_contents(path, &text, NULL, NULL)) {
            g_test_skip("no recordings here");
            return;
        }
        vmi = ch_json_parse(text, -1, NULL);
        ch_vmi_validate(vmi, causes);
        g_assert_cmpuint(causes->len, ==, 0);
    }
}

/* They would be compared all with all; the test's time-out is an assertion too. */
static void
test_too_many_disks(void)
{
    g_autoptr(GString) disks = g_string_new(NULL);
    g_autoptr(GString) volumes = g_string_new(NULL);
    g_autofree char *body = NULL;
    g_autoptr(ChJson) answer = NULL;
    TestApi t;

    for (int i = 0; i < 30000; i++) {
        g_string_append_printf(disks, "%s{'name':'d%d'}", i > 0 ? "," : "", i);
        g_string_append_printf(
            volumes, "%s{'name':'d%d','emptyDisk':{'capacity':1}}", i > 0 ? "," : "", i);
    }
    body = g_strdup_printf("{'metadata':{'name':'vm'},'spec':{'domain':{'devices':{'disks':[%s]}},"
                           "'volumes':[%s]}}",
                           disks->str,
                           volumes->str);
    test_api_init(&t, NULL);
    answer = test_call(&t, 422, "POST", TEST_VMIS, body);
    g_assert_cmpuint(ch_json_length(ch_json_at(answer, "details", "causes")), ==, 2);
    test_api_clear(&t);
}

static void
test_quantities_given_as_numbers(void)
{
    static const char *const paths[] = {"spec.domain.memory.guest",
                                        "spec.domain.memory.hugepages.pageSize",
                                        "spec.domain.resources.requests.memory",
                                        "spec.domain.resources.limits.cpu",
                                        "spec.volumes.0.emptyDisk.capacity"};
    g_autoptr(ChJson) stored = NULL;
    TestApi t;

    test_api_init(&t, NULL);
    stored = test_call(&t,
                       201,
                       "POST",
                       TEST_VMIS,
                       "{'metadata':{'name':'vm'},'spec':{'domain':{'memory':{'guest':134217728,"
                       "'hugepages':{'pageSize':134217728}},'resources':{'requests':{'memory':"
                       "134217728},'limits':{'cpu':134217728}},'devices':{}},'volumes':[{'name':"
                       "'a','emptyDisk':{'capacity':134217728}}]}}");
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++)
        g_assert_cmpstr(ch_json_as_string(ch_resource_lookup(stored, paths[i])), ==, "134217728");
    test_api_clear(&t);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_case);
    g_test_add_func("/vmi/every-mistake", test_every_mistake_is_told_at_once);
    g_test_add_func("/vmi/recordings", test_recorded_vmis_pass);
    g_test_add_func("/vmi/too-many-disks", test_too_many_disks);
    g_test_add_func("/vmi/quantities-given-as-numbers", test_quantities_given_as_numbers);
    return g_test_run();
}
