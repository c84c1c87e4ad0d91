/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/node-objects.h"

#include "lib/base/time.h"

static ChJson *
new_object(const char *api_version, const char *kind, const char *namespace_, const char *name)
{
    ChJson *object = ch_json_new_object();
    ChJson *metadata;

    ch_json_set_string(object, "apiVersion", api_version);
    ch_json_set_string(object, "kind", kind);
    metadata = ch_json_ensure_object(object, "metadata");
    ch_json_set_string(metadata, "name", name);
    ch_json_set_string(metadata, "namespace", namespace_);
    return object;
}

static void
set_resources(ChJson *status, const char *key, const ChNodeFacts *facts)
{
    g_autofree char *cpus = g_strdup_printf("%" G_GINT64_FORMAT, facts->n_cpus);
    g_autofree char *memory = g_strdup_printf("%" G_GINT64_FORMAT "Ki", facts->memory_kib);
    ChJson *resources = ch_json_ensure_object(status, key);

    ch_json_set_string(resources, "cpu", cpus);
    ch_json_set_string(resources, "memory", memory);
    ch_json_set_string(resources, "pods", "110");
}

static void
set_ready(ChJson *status, int64_t wall_us)
{
    g_autofree char *now = ch_time_format(wall_us);
    ChJson *conditions = ch_json_new_array();
    ChJson *ready = ch_json_new_object();

    ch_json_set_string(ready, "type", "Ready");
    ch_json_set_string(ready, "status", "True");
    ch_json_set_string(ready, "reason", "KubeletReady");
    ch_json_set_string(ready, "message", "chandler is up");
    ch_json_set_string(ready, "lastHeartbeatTime", now);
    ch_json_set_string(ready, "lastTransitionTime", now);
    ch_json_append(conditions, ready);
    ch_json_set(status, "conditions", conditions);
}

ChJson *
ch_node_object_new(const ChNodeFacts *facts, int64_t wall_us)
{
    ChJson *node = new_object("v1", "Node", NULL, facts->name);
    ChJson *labels = ch_json_ensure_object(ch_json_at(node, "metadata"), "labels");
    ChJson *status = ch_json_ensure_object(node, "status");
    ChJson *info = ch_json_ensure_object(status, "nodeInfo");
    ChJson *addresses = ch_json_new_array();
    ChJson *address = ch_json_new_object();

    ch_json_set_string(labels, "kubernetes.io/hostname", facts->name);
    ch_json_set_string(labels, "kubernetes.io/arch", facts->architecture);
    ch_json_set_string(labels, "kubernetes.io/os", "linux");
    (void)ch_json_ensure_object(node, "spec");
    set_resources(status, "capacity", facts);
    set_resources(status, "allocatable", facts);
    set_ready(status, wall_us);
    ch_json_set_string(address, "type", "InternalIP");
    ch_json_set_string(address, "address", "127.0.0.1");
    ch_json_append(addresses, address);
    ch_json_set(status, "addresses", addresses);
    ch_json_set_string(info, "architecture", facts->architecture);
    ch_json_set_string(info, "operatingSystem", "linux");
    ch_json_set_string(info, "kernelVersion", facts->kernel);
    ch_json_set_string(info, "osImage", facts->os_image);
    ch_json_set_string(info, "machineID", facts->machine_id);
    ch_json_set_string(info, "containerRuntimeVersion", "crun");
    return node;
}

ChJson *
ch_namespace_object_new(const char *name)
{
    return new_object("v1", "Namespace", NULL, name);
}

ChJson *
ch_kubevirt_object_new(bool is_emulated)
{
    ChJson *kubevirt = new_object("kubevirt.io/v1", "KubeVirt", "kubevirt", "kubevirt");
    ChJson *configuration =
        ch_json_ensure_object(ch_json_ensure_object(kubevirt, "spec"), "configuration");

    ch_json_set_bool(ch_json_ensure_object(configuration, "developerConfiguration"),
                     "useEmulation",
                     is_emulated);
    ch_json_set_string(ch_json_ensure_object(kubevirt, "status"), "phase", "Deployed");
    return kubevirt;
}
