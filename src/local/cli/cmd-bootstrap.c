/* SPDX-License-Identifier: Apache-2.0 */

/* bootstrap: what the API server must have before the others start. Run by the supervisor. */

#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "local/cli/cli.h"
#include "local/cli/client.h"
#include "local/cli/node-objects.h"
#include "local/cli/numa.h"
#include "local/cli/resource.h"

#define SYS_DIR "/sys/devices/system"

static const char *
go_architecture(const char *machine)
{
    static const char *const names[][2] = {
        {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"s390x", "s390x"}, {"ppc64le", "ppc64le"}};

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_str_equal(names[i][0], machine))
            return names[i][1];
    }
    return machine;
}

static bool
store(ChClient *client, const ChJson *object, GError **error)
{
    const ChCliResource *resource = ch_cli_resource_by_kind(ch_json_string_at(object, "apiVersion"),
                                                            ch_json_string_at(object, "kind"));
    const char *namespace_ = ch_json_string_at(object, "metadata", "namespace");
    g_autofree char *collection = ch_cli_resource_path(resource, namespace_, NULL);
    g_autofree char *path =
        ch_cli_resource_path(resource, namespace_, ch_json_string_at(object, "metadata", "name"));
    g_autoptr(ChJson) stored = ch_client_apply(client, collection, path, object, NULL, error);

    return stored != NULL;
}

/* A status has a URL of its own, and is not taken along when the object is made. */
static bool
store_with_status(ChClient *client, const ChJson *object, GError **error)
{
    const ChCliResource *resource = ch_cli_resource_by_kind(ch_json_string_at(object, "apiVersion"),
                                                            ch_json_string_at(object, "kind"));
    g_autofree char *path = ch_cli_resource_path(resource,
                                                 ch_json_string_at(object, "metadata", "namespace"),
                                                 ch_json_string_at(object, "metadata", "name"));
    g_autofree char *status_path = g_strconcat(path, "/status", NULL);
    g_autoptr(ChJson) body = ch_json_new_object();
    g_autoptr(ChJson) stored = NULL;

    if (!store(client, object, error))
        return false;
    ch_json_set(body, "status", ch_json_ref(ch_json_at(object, "status")));
    stored = ch_client_request(client,
                               &(ChClientRequest){.method = "PATCH",
                                                  .path = status_path,
                                                  .body = body,
                                                  .content_type = "application/merge-patch+json"},
                               error);
    return stored != NULL;
}

static bool
write_capabilities(const ChCli *cli, const ChNodeFacts *facts, const char *machine, GError **error)
{
    g_autofree char *path = ch_cli_path(cli, "agent/labeller/capabilities.xml");
    g_autoptr(GArray) cells = ch_numa_load(SYS_DIR, facts->memory_kib);
    g_autofree char *xml = ch_numa_capabilities_xml(cells, machine);

    return g_file_set_contents(path, xml, -1, error);
}

bool
ch_cmd_bootstrap(ChCli *cli, int argc, char **argv, GError **error)
{
    gboolean is_emulated = FALSE;
    const GOptionEntry entries[] = {{"emulated", 0, 0, G_OPTION_ARG_NONE, &is_emulated, NULL, NULL},
                                    G_OPTION_ENTRY_NULL};
    g_auto(GStrv) arguments = NULL;
    g_autoptr(ChClient) client = NULL;
    g_autofree char *os_image = g_get_os_info(G_OS_INFO_KEY_PRETTY_NAME);
    struct utsname machine;
    ChNodeFacts facts = {.name = g_get_host_name(),
                         .os_image = os_image,
                         .n_cpus = sysconf(_SC_NPROCESSORS_ONLN),
                         .memory_kib = sysconf(_SC_PHYS_PAGES) * (sysconf(_SC_PAGESIZE) / 1024)};
    g_autoptr(ChJson) node = NULL;
    g_autoptr(ChJson) kubevirt = NULL;
    static const char *const namespaces[] = {"default", "kubevirt"};

    if (!ch_cli_parse(cli, argc, argv, entries, 0, 0, &arguments, error))
        return false;
    if (uname(&machine) < 0)
        return ch_fail_errno(error, errno, "uname");
    facts.kernel = machine.release;
    facts.architecture = go_architecture(machine.machine);
    client = ch_client_new(cli, error);
    if (client == NULL || !write_capabilities(cli, &facts, machine.machine, error))
        return false;
    for (gsize i = 0; i < G_N_ELEMENTS(namespaces); i++) {
        g_autoptr(ChJson) object = ch_namespace_object_new(namespaces[i]);

        if (!store(client, object, error))
            return false;
    }
    node = ch_node_object_new(&facts, ch_time_wall_us());
    /* Else the agent insists on vhost-net, which some kernels lack; KVM is used all the same. */
    kubevirt =
        ch_kubevirt_object_new(is_emulated || !g_file_test("/dev/vhost-net", G_FILE_TEST_EXISTS));
    return store_with_status(client, node, error) && store_with_status(client, kubevirt, error);
}
