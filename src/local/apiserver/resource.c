/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/resource.h"

#include "lib/base/time.h"
#include "local/apiserver/cells.h"
#include "local/apiserver/secret.h"
#include "local/apiserver/vmi-fields.h"
#include "local/apiserver/vmi.h"

/* An answer names each with some hundred bytes. */
#define MAX_CAUSES 64

#define COLUMNS(array) .columns = (array), .n_columns = G_N_ELEMENTS(array)
#define NAMES(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* clang-format off */

#define NAME_COLUMN {"Name", "string", 0, "metadata.name"}
#define AGE_COLUMN  {"Age",  "date",   0, "metadata.creationTimestamp"}

static const ChColumn default_columns[] = {NAME_COLUMN, AGE_COLUMN};

static const ChColumn vmi_columns[] = {
    NAME_COLUMN,
    AGE_COLUMN,
    {"Phase",          "string", 0, "status.phase"},
    {"IP",             "string", 0, "status.interfaces.0.ipAddress"},
    {"NodeName",       "string", 0, "status.nodeName"},
    {"Ready",          "string", 0, "status.conditions.type=Ready.status"},
    {"Live-Migratable","string", 1, "status.conditions.type=LiveMigratable.status"},
    {"Paused",         "string", 1, "status.conditions.type=Paused.status"},
};

static const ChColumn kubevirt_columns[] = {
    NAME_COLUMN,
    AGE_COLUMN,
    {"Phase", "string", 0, "status.phase"},
};

static const ChColumn migration_columns[] = {
    NAME_COLUMN,
    {"Phase", "string", 0, "status.phase"},
    {"VMI",   "string", 0, "spec.vmiName"},
};

static const ChColumn namespace_columns[] = {
    NAME_COLUMN,
    {"Status", "string", 0, "status.phase"},
    AGE_COLUMN,
};

static const ChColumn node_columns[] = {
    NAME_COLUMN,
    {"Status",            "string", 0, NULL, ch_cell_node_status},
    {"Roles",             "string", 0, NULL, ch_cell_node_roles},
    AGE_COLUMN,
    {"Version",           "string", 0, "status.nodeInfo.kubeletVersion"},
    {"Internal-IP",       "string", 1, "status.addresses.type=InternalIP.address"},
    {"External-IP",       "string", 1, "status.addresses.type=ExternalIP.address"},
    {"OS-Image",          "string", 1, "status.nodeInfo.osImage"},
    {"Kernel-Version",    "string", 1, "status.nodeInfo.kernelVersion"},
    {"Container-Runtime", "string", 1, "status.nodeInfo.containerRuntimeVersion"},
};

static const ChColumn pod_columns[] = {
    NAME_COLUMN,
    {"Ready",    "string",  0, NULL, ch_cell_pod_ready},
    {"Status",   "string",  0, NULL, ch_cell_pod_status},
    {"Restarts", "integer", 0, NULL, ch_cell_pod_restarts},
    AGE_COLUMN,
    {"IP",       "string",  1, "status.podIP"},
    {"Node",     "string",  1, "spec.nodeName"},
};

static const ChColumn event_columns[] = {
    {"Last Seen",  "string",  0, NULL, ch_cell_event_last_seen},
    {"Type",       "string",  0, "type"},
    {"Reason",     "string",  0, "reason"},
    {"Object",     "string",  0, NULL, ch_cell_event_object},
    {"Source",     "string",  1, NULL, ch_cell_event_source},
    {"Message",    "string",  0, "message"},
    {"First Seen", "string",  1, NULL, ch_cell_event_first_seen},
    {"Count",      "integer", 1, NULL, ch_cell_event_count},
    {"Name",       "string",  1, "metadata.name"},
};

static const ChColumn configmap_columns[] = {
    NAME_COLUMN,
    {"Data", "integer", 0, NULL, ch_cell_data_count},
    AGE_COLUMN,
};

static const ChColumn secret_columns[] = {
    NAME_COLUMN,
    {"Type", "string",  0, "type"},
    {"Data", "integer", 0, NULL, ch_cell_data_count},
    AGE_COLUMN,
};

static const ChColumn account_columns[] = {
    NAME_COLUMN,
    {"Secrets", "integer", 0, NULL, ch_cell_secrets_count},
    AGE_COLUMN,
};

static const ChColumn claim_columns[] = {
    NAME_COLUMN,
    {"Status",       "string", 0, "status.phase"},
    {"Volume",       "string", 0, "spec.volumeName"},
    {"Capacity",     "string", 0, "status.capacity.storage"},
    {"Access Modes", "string", 0, NULL, ch_cell_access_modes},
    {"StorageClass", "string", 0, "spec.storageClassName"},
    AGE_COLUMN,
    {"VolumeMode",   "string", 1, "spec.volumeMode"},
};

static const ChColumn crd_columns[] = {
    NAME_COLUMN,
    {"Created At", "date", 0, "metadata.creationTimestamp"},
};

static const ChMergeKey node_keys[] = {
    {"metadata.finalizers", ""}, {"metadata.ownerReferences", "uid"},
    {"status.addresses", "type"}, {"status.conditions", "type"}, {NULL},
};

static const ChMergeKey pod_keys[] = {
    {"metadata.finalizers", ""}, {"metadata.ownerReferences", "uid"},
    {"spec.volumes", "name"}, {"spec.imagePullSecrets", "name"}, {"spec.hostAliases", "ip"},
    {"spec.containers", "name"}, {"spec.initContainers", "name"},
    {"spec.containers.env", "name"}, {"spec.initContainers.env", "name"},
    {"spec.containers.ports", "containerPort"}, {"spec.initContainers.ports", "containerPort"},
    {"spec.containers.volumeMounts", "mountPath"}, {"spec.initContainers.volumeMounts", "mountPath"},
    {"spec.containers.volumeDevices", "devicePath"}, {"spec.initContainers.volumeDevices", "devicePath"},
    {"spec.topologySpreadConstraints", "topologyKey"},
    {"status.conditions", "type"}, {"status.podIPs", "ip"}, {NULL},
};

static const ChMergeKey account_keys[] = {
    {"metadata.finalizers", ""}, {"metadata.ownerReferences", "uid"},
    {"secrets", "name"}, {"imagePullSecrets", "name"}, {NULL},
};

static const ChMergeKey plain_keys[] = {
    {"metadata.finalizers", ""}, {"metadata.ownerReferences", "uid"},
    {"status.conditions", "type"}, {NULL},
};

static const char *const event_fields[] = {
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
    "reason", "reportingComponent", "type", NULL,
};

static const char *const pod_fields[] = {
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
    "status.phase", "status.podIP", "status.nominatedNodeName", NULL,
};

static const ChResource resources[] = {
    {"", "v1", "namespaces", "namespace", "Namespace", NAMES("ns"),
     .has_status = true, .initial_phase = "Active", COLUMNS(namespace_columns), .merge_keys = plain_keys,
     .fields = NAMES("status.phase")},
    {"", "v1", "nodes", "node", "Node", NAMES("no"),
     .has_status = true, COLUMNS(node_columns), .merge_keys = node_keys,
     .fields = NAMES("spec.unschedulable")},
    {"", "v1", "events", "event", "Event", NAMES("ev"),
     .is_namespaced = true, COLUMNS(event_columns), .merge_keys = plain_keys,
     .fields = event_fields, .ttl_us = 3600 * CH_SECOND_US},
    {"", "v1", "configmaps", "configmap", "ConfigMap", NAMES("cm"),
     .is_namespaced = true, COLUMNS(configmap_columns), .merge_keys = plain_keys},
    {"", "v1", "secrets", "secret", "Secret", NULL,
     .is_namespaced = true, COLUMNS(secret_columns), .merge_keys = plain_keys,
     .fields = NAMES("type"), .normalize = ch_secret_normalize},
    {"", "v1", "pods", "pod", "Pod", NAMES("po"),
     .is_in_all = true, .is_namespaced = true, .has_status = true, .is_graceful = true, .initial_phase = "Pending",
     COLUMNS(pod_columns), .merge_keys = pod_keys, .fields = pod_fields},
    {"", "v1", "serviceaccounts", "serviceaccount", "ServiceAccount", NAMES("sa"),
     .is_namespaced = true, COLUMNS(account_columns), .merge_keys = account_keys},
    {"", "v1", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim",
     NAMES("pvc"), .is_namespaced = true, .has_status = true, .initial_phase = "Pending",
     COLUMNS(claim_columns), .merge_keys = plain_keys},

    {"apiextensions.k8s.io", "v1", "customresourcedefinitions", "customresourcedefinition",
     "CustomResourceDefinition", NAMES("crd", "crds"),
     .has_status = true, .is_custom = true, COLUMNS(crd_columns)},

    {"backup.kubevirt.io", "v1alpha1", "virtualmachinebackuptrackers",
     "virtualmachinebackuptracker", "VirtualMachineBackupTracker", NAMES("vmbackuptracker"),
     .is_namespaced = true, .has_status = true, .is_custom = true, COLUMNS(default_columns)},

    {"k8s.cni.cncf.io", "v1", "network-attachment-definitions", "network-attachment-definition",
     "NetworkAttachmentDefinition", NAMES("net-attach-def"),
     .is_namespaced = true, .is_custom = true, COLUMNS(default_columns)},

    {"kubevirt.io", "v1", "kubevirts", "kubevirt", "KubeVirt", NAMES("kv", "kvs"),
     .is_in_all = true, .is_namespaced = true, .has_status = true, .is_custom = true, COLUMNS(kubevirt_columns)},
    {"kubevirt.io", "v1", "virtualmachineinstancemigrations", "virtualmachineinstancemigration",
     "VirtualMachineInstanceMigration", NAMES("vmim", "vmims"),
     .is_in_all = true, .is_namespaced = true, .has_status = true, .is_custom = true, COLUMNS(migration_columns)},
    {"kubevirt.io", "v1", "virtualmachineinstances", "virtualmachineinstance",
     "VirtualMachineInstance", NAMES("vmi", "vmis"),
     .is_in_all = true, .is_namespaced = true, .is_custom = true, COLUMNS(vmi_columns), .normalize = ch_vmi_normalize, .validate = ch_vmi_validate, .unknown = ch_vmi_unknown_fields},

    {"migrations.kubevirt.io", "v1alpha1", "migrationpolicies", "migrationpolicy",
     "MigrationPolicy", NULL, .is_custom = true, COLUMNS(default_columns)},

    {"plugin.kubevirt.io", "v1alpha1", "plugins", "plugin", "Plugin", NULL,
     .is_custom = true, COLUMNS(default_columns)},
};

/* clang-format on */

const ChResource *
ch_resource_table(gsize *out_n)
{
    *out_n = G_N_ELEMENTS(resources);
    return resources;
}

const ChResource *
ch_resource_find(const char *group, const char *version, const char *plural)
{
    for (gsize i = 0; i < G_N_ELEMENTS(resources); i++) {
        if (g_str_equal(resources[i].group, group) && g_str_equal(resources[i].version, version) &&
            g_str_equal(resources[i].plural, plural))
            return &resources[i];
    }
    return NULL;
}

char *
ch_resource_api_version(const ChResource *resource)
{
    return resource->group[0] == '\0' ? g_strdup(resource->version)
                                      : g_strconcat(resource->group, "/", resource->version, NULL);
}

char *
ch_resource_qualified(const ChResource *resource)
{
    return resource->group[0] == '\0' ? g_strdup(resource->plural)
                                      : g_strconcat(resource->plural, ".", resource->group, NULL);
}

/* The item that a step names: "3" by position, "type=Ready" by a member's value. */
static const ChJson *
pick_item(const ChJson *array, char *step)
{
    char *value = strchr(step, '=');
    guint64 index;

    if (value == NULL)
        return g_ascii_string_to_unsigned(step, 10, 0, G_MAXINT32, &index, NULL)
                   ? ch_json_item(array, index)
                   : NULL;
    *value++ = '\0';
    return ch_json_find(array, step, value);
}

const ChJson *
ch_resource_lookup(const ChJson *object, const char *path)
{
    g_auto(GStrv) steps = g_strsplit(path, ".", -1);
    const ChJson *at = object;

    for (char **step = steps; *step != NULL && at != NULL; step++)
        at = ch_json_is_array(at) ? pick_item(at, *step) : ch_json_at(at, *step);
    return at;
}

void
ch_cause_free(ChCause *cause)
{
    if (cause == NULL)
        return;
    g_free(cause->field);
    g_free(cause->message);
    g_free(cause);
}

void
ch_cause_add(GPtrArray *causes, const char *reason, const char *field, const char *format, ...)
{
    ChCause *cause;
    va_list args;

    if (causes->len >= MAX_CAUSES)
        return;
    cause = g_new0(ChCause, 1);
    va_start(args, format);
    cause->reason = reason;
    cause->field = g_strdup(field);
    cause->message = g_strdup_vprintf(format, args);
    va_end(args);
    g_ptr_array_add(causes, cause);
}
