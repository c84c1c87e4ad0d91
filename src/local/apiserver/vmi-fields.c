/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/vmi-fields.h"

#include <string.h>

#define MAX_NAME 64 /* of a type or a field; longer ones are unknown */

/* The types of KubeVirt's API that a VMI is made of: "field", or "field=Type" where the
 * value is an object, or a list of objects, of that type. A map's keys are anybody's. */
/* clang-format off */
static const struct {
    const char *type, *fields;
} types[] = {
    {"VirtualMachineInstance", "apiVersion kind metadata spec=Spec status"},
    {"Spec",
     "accessCredentials=AccessCredential affinity=Affinity architecture "
     "dnsConfig=PodDNSConfig dnsPolicy domain=DomainSpec evictionStrategy hostname "
     "livenessProbe=Probe networks=Network nodeSelector priorityClassName "
     "readinessProbe=Probe resourceClaims=VirtualMachineInstanceResourceClaim "
     "schedulerName serviceAccountName startStrategy subdomain "
     "terminationGracePeriodSeconds tolerations=Toleration "
     "topologySpreadConstraints=TopologySpreadConstraint "
     "utilityVolumes=UtilityVolume volumes=Volume"},
    {"ACPI",
     "msdmNameRef slicNameRef"},
    {"AccessCredential",
     "sshPublicKey=SSHPublicKeyAccessCredential "
     "userPassword=UserPasswordAccessCredential"},
    {"AccessCredentialSecretSource",
     "secretName"},
    {"Affinity",
     "nodeAffinity=NodeAffinity podAffinity=PodAffinity "
     "podAntiAffinity=PodAntiAffinity"},
    {"BIOS",
     "useSerial"},
    {"BlockSize",
     "custom=CustomBlockSize matchVolume=FeatureState"},
    {"Bootloader",
     "bios=BIOS efi=EFI"},
    {"CDRomTarget",
     "bus readonly tray"},
    {"CPU",
     "cores dedicatedCpuPlacement features=CPUFeature isolateEmulatorThread "
     "maxSockets model numa=NUMA realtime=Realtime sockets threads"},
    {"CPUFeature",
     "name policy"},
    {"Chassis",
     "asset manufacturer serial sku version"},
    {"ClaimRequest",
     "claimName requestName"},
    {"Clock",
     "timer=Timer timezone utc=ClockOffsetUTC"},
    {"ClockOffsetUTC",
     "offsetSeconds"},
    {"CloudInitConfigDriveSource",
     "networkData networkDataBase64 networkDataSecretRef=LocalObjectReference "
     "secretRef=LocalObjectReference userData userDataBase64"},
    {"CloudInitNoCloudSource",
     "networkData networkDataBase64 networkDataSecretRef=LocalObjectReference "
     "secretRef=LocalObjectReference userData userDataBase64"},
    {"ConfigMapVolumeSource",
     "name optional volumeLabel"},
    {"ContainerDiskSource",
     "image imagePullPolicy imagePullSecret path"},
    {"ContainerPathVolumeSource",
     "path readOnly"},
    {"CorePersistentVolumeClaimVolumeSource",
     "claimName hotpluggable readOnly"},
    {"CustomBlockSize",
     "discardGranularity logical physical"},
    {"DHCPOptions",
     "bootFileName ntpServers privateOptions=DHCPPrivateOptions tftpServerName"},
    {"DHCPPrivateOptions",
     "option value"},
    {"DataVolumeSource",
     "hotpluggable name"},
    {"Devices",
     "autoattachGraphicsDevice autoattachInputDevice autoattachMemBalloon "
     "autoattachPodInterface autoattachSerialConsole autoattachVSOCK blockMultiQueue "
     "clientPassthrough=Empty disableHotplug disks=Disk downwardMetrics=Empty "
     "filesystems=Filesystem gpus=GPU hostDevices=HostDevice inputs=Input "
     "interfaces=Interface logSerialConsole networkInterfaceMultiqueue "
     "panicDevices=PanicDevice rng=Empty sound=SoundDevice tpm=TPMDevice "
     "useVirtioTransitional video=VideoDevice watchdog=Watchdog"},
    {"Diag288Watchdog",
     "action"},
    {"Disk",
     "blockSize=BlockSize bootOrder cache cdrom=CDRomTarget changedBlockTracking "
     "dedicatedIOThread disk=DiskTarget errorPolicy io lun=LunTarget name serial "
     "shareable tag"},
    {"DiskIOThreads",
     "supplementalPoolThreadCount"},
    {"DiskTarget",
     "bus pciAddress readonly"},
    {"DomainSpec",
     "chassis=Chassis clock=Clock cpu=CPU devices=Devices features=Features "
     "firmware=Firmware ioThreads=DiskIOThreads ioThreadsPolicy "
     "launchSecurity=LaunchSecurity machine=Machine memory=Memory rebootPolicy "
     "resources=ResourceRequirements"},
    {"DownwardAPIVolumeFile",
     "fieldRef=ObjectFieldSelector mode path resourceFieldRef=ResourceFieldSelector"},
    {"DownwardAPIVolumeSource",
     "fields=DownwardAPIVolumeFile volumeLabel"},
    {"EFI",
     "persistent secureBoot"},
    {"EmptyDiskSource",
     "capacity"},
    {"EphemeralVolumeSource",
     "persistentVolumeClaim=PersistentVolumeClaimVolumeSource"},
    {"ExecAction",
     "command"},
    {"FeatureAPIC",
     "enabled endOfInterrupt"},
    {"FeatureHyperv",
     "evmcs=FeatureState frequencies=FeatureState ipi=FeatureState "
     "reenlightenment=FeatureState relaxed=FeatureState reset=FeatureState "
     "runtime=FeatureState spinlocks=FeatureSpinlocks synic=FeatureState "
     "synictimer=SyNICTimer tlbflush=TLBFlush vapic=FeatureState "
     "vendorid=FeatureVendorID vpindex=FeatureState"},
    {"FeatureKVM",
     "hidden"},
    {"FeatureSpinlocks",
     "enabled spinlocks"},
    {"FeatureState",
     "enabled"},
    {"FeatureVendorID",
     "enabled vendorid"},
    {"Features",
     "acpi=FeatureState apic=FeatureAPIC hyperv=FeatureHyperv "
     "hypervPassthrough=HyperVPassthrough kvm=FeatureKVM pvspinlock=FeatureState "
     "smm=FeatureState"},
    {"Filesystem",
     "name virtiofs=Empty"},
    {"Firmware",
     "acpi=ACPI bootloader=Bootloader kernelBoot=KernelBoot serial uuid"},
    {"GPU",
     "claimName deviceName name requestName tag virtualGPUOptions=VGPUOptions"},
    {"HPETTimer",
     "present tickPolicy"},
    {"HTTPGetAction",
     "host httpHeaders=HTTPHeader path port scheme"},
    {"HTTPHeader",
     "name value"},
    {"HostDevice",
     "claimName deviceName name requestName tag"},
    {"HostDisk",
     "capacity path shared type"},
    {"Hugepages",
     "pageSize"},
    {"HyperVPassthrough",
     "enabled"},
    {"HypervTimer",
     "present"},
    {"I6300ESBWatchdog",
     "action"},
    {"Input",
     "bus name type"},
    {"Interface",
     "acpiIndex binding=PluginBinding bootOrder bridge=Empty dhcpOptions=DHCPOptions "
     "macAddress macvtap=Empty masquerade=Empty model name passt=Empty "
     "passtBinding=Empty pciAddress portRanges=PortRange ports=Port slirp=Empty "
     "sriov=Empty state tag"},
    {"KVMTimer",
     "present"},
    {"KernelBoot",
     "container=KernelBootContainer kernelArgs"},
    {"KernelBootContainer",
     "image imagePullPolicy imagePullSecret initrdPath kernelPath"},
    {"LabelSelector",
     "matchExpressions=LabelSelectorRequirement matchLabels"},
    {"LabelSelectorRequirement",
     "key operator values"},
    {"LaunchSecurity",
     "sev=SEV snp=Empty tdx=Empty"},
    {"LocalObjectReference",
     "name"},
    {"LunTarget",
     "bus readonly reservation"},
    {"Machine",
     "type"},
    {"Memory",
     "guest hugepages=Hugepages maxGuest reservedOverhead=ReservedOverhead"},
    {"MemoryDumpVolumeSource",
     "claimName hotpluggable readOnly"},
    {"MultusNetwork",
     "default networkName"},
    {"NUMA",
     "guestMappingPassthrough=Empty"},
    {"Network",
     "multus=MultusNetwork name pod=PodNetwork resourceClaim=ClaimRequest"},
    {"NodeAffinity",
     "preferredDuringSchedulingIgnoredDuringExecution=PreferredSchedulingTerm "
     "requiredDuringSchedulingIgnoredDuringExecution=NodeSelector"},
    {"NodeSelector",
     "nodeSelectorTerms=NodeSelectorTerm"},
    {"NodeSelectorRequirement",
     "key operator values"},
    {"NodeSelectorTerm",
     "matchExpressions=NodeSelectorRequirement matchFields=NodeSelectorRequirement"},
    {"ObjectFieldSelector",
     "apiVersion fieldPath"},
    {"PITTimer",
     "present tickPolicy"},
    {"PanicDevice",
     "model"},
    {"PersistentVolumeClaimVolumeSource",
     "claimName readOnly"},
    {"PluginBinding",
     "name"},
    {"PodAffinity",
     "preferredDuringSchedulingIgnoredDuringExecution=WeightedPodAffinityTerm "
     "requiredDuringSchedulingIgnoredDuringExecution=PodAffinityTerm"},
    {"PodAffinityTerm",
     "labelSelector=LabelSelector matchLabelKeys mismatchLabelKeys "
     "namespaceSelector=LabelSelector namespaces topologyKey"},
    {"PodAntiAffinity",
     "preferredDuringSchedulingIgnoredDuringExecution=WeightedPodAffinityTerm "
     "requiredDuringSchedulingIgnoredDuringExecution=PodAffinityTerm"},
    {"PodDNSConfig",
     "nameservers options=PodDNSConfigOption searches"},
    {"PodDNSConfigOption",
     "name value"},
    {"PodNetwork",
     "vmIPv6NetworkCIDR vmNetworkCIDR"},
    {"Port",
     "name port protocol"},
    {"PortRange",
     "end protocol start"},
    {"PreferredSchedulingTerm",
     "preference=NodeSelectorTerm weight"},
    {"Probe",
     "exec=ExecAction failureThreshold guestAgentPing=Empty httpGet=HTTPGetAction "
     "initialDelaySeconds periodSeconds successThreshold tcpSocket=TCPSocketAction "
     "timeoutSeconds"},
    {"QemuGuestAgentSSHPublicKeyAccessCredentialPropagation",
     "users"},
    {"RTCTimer",
     "present tickPolicy track"},
    {"Realtime",
     "mask"},
    {"ReservedOverhead",
     "addedOverhead memLock"},
    {"ResourceFieldSelector",
     "containerName divisor resource"},
    {"ResourceRequirements",
     "limits overcommitGuestOverhead requests"},
    {"SEV",
     "attestation=Empty dhCert policy=SEVPolicy session"},
    {"SEVPolicy",
     "encryptedState"},
    {"SSHPublicKeyAccessCredential",
     "propagationMethod=SSHPublicKeyAccessCredentialPropagationMethod "
     "source=SSHPublicKeyAccessCredentialSource"},
    {"SSHPublicKeyAccessCredentialPropagationMethod",
     "configDrive=Empty noCloud=Empty "
     "qemuGuestAgent=QemuGuestAgentSSHPublicKeyAccessCredentialPropagation"},
    {"SSHPublicKeyAccessCredentialSource",
     "secret=AccessCredentialSecretSource"},
    {"SecretVolumeSource",
     "optional secretName volumeLabel"},
    {"ServiceAccountVolumeSource",
     "serviceAccountName"},
    {"SoundDevice",
     "model name"},
    {"SyNICTimer",
     "direct=FeatureState enabled"},
    {"SysprepSource",
     "configMap=LocalObjectReference secret=LocalObjectReference"},
    {"TCPSocketAction",
     "host port"},
    {"TLBFlush",
     "direct=FeatureState enabled extended=FeatureState"},
    {"TPMDevice",
     "enabled persistent"},
    {"Timer",
     "hpet=HPETTimer hyperv=HypervTimer kvm=KVMTimer pit=PITTimer rtc=RTCTimer"},
    {"Toleration",
     "effect key operator tolerationSeconds value"},
    {"TopologySpreadConstraint",
     "labelSelector=LabelSelector matchLabelKeys maxSkew minDomains "
     "nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable"},
    {"UserPasswordAccessCredential",
     "propagationMethod=UserPasswordAccessCredentialPropagationMethod "
     "source=UserPasswordAccessCredentialSource"},
    {"UserPasswordAccessCredentialPropagationMethod",
     "qemuGuestAgent=Empty"},
    {"UserPasswordAccessCredentialSource",
     "secret=AccessCredentialSecretSource"},
    {"UtilityVolume",
     "claimName name readOnly type"},
    {"VGPUDisplayOptions",
     "enabled ramFB=FeatureState"},
    {"VGPUOptions",
     "display=VGPUDisplayOptions"},
    {"VideoDevice",
     "type"},
    {"VirtualMachineInstanceResourceClaim",
     "name resourceClaimName resourceClaimTemplateName"},
    {"Volume",
     "cloudInitConfigDrive=CloudInitConfigDriveSource "
     "cloudInitNoCloud=CloudInitNoCloudSource configMap=ConfigMapVolumeSource "
     "containerDisk=ContainerDiskSource containerPath=ContainerPathVolumeSource "
     "dataVolume=DataVolumeSource downwardAPI=DownwardAPIVolumeSource "
     "downwardMetrics=Empty emptyDisk=EmptyDiskSource "
     "ephemeral=EphemeralVolumeSource hostDisk=HostDisk "
     "memoryDump=MemoryDumpVolumeSource name "
     "persistentVolumeClaim=CorePersistentVolumeClaimVolumeSource "
     "secret=SecretVolumeSource serviceAccount=ServiceAccountVolumeSource "
     "sysprep=SysprepSource"},
    {"Watchdog",
     "diag288=Diag288Watchdog i6300esb=I6300ESBWatchdog name"},
    {"WeightedPodAffinityTerm",
     "podAffinityTerm=PodAffinityTerm weight"},
    {"Empty", ""},
};
/* clang-format on */

static const char *
fields_of(const char *type)
{
    for (gsize i = 0; i < G_N_ELEMENTS(types); i++) {
        if (g_str_equal(types[i].type, type))
            return types[i].fields;
    }
    return NULL;
}

/* Returns: whether @name is among @fields; @out_type: of its value, "" when it has none. */
static bool
find_field(const char *fields, const char *name, char out_type[MAX_NAME])
{
    const gsize length = strlen(name);

    for (const char *at = fields; *at != '\0';) {
        const gsize n_word = strcspn(at, " ");
        const gsize n_name = strcspn(at, " =");

        if (n_name == length && memcmp(at, name, length) == 0) {
            const gsize n_type = n_word > n_name ? n_word - n_name : 1; /* '=' included */

            g_strlcpy(out_type, at + n_name + (n_word > n_name), MIN(n_type, MAX_NAME));
            return true;
        }
        at += n_word;
        at += strspn(at, " ");
    }
    return false;
}

typedef struct {
    GString *path;
    GPtrArray *found;
} Walk;

static void walk_value(Walk *walk, const ChJson *value, const char *type);

/* What goes into a header: no more than it takes, and nothing but printable ASCII. */
static void
add_found(Walk *walk)
{
    char *path = g_strndup(walk->path->str, CH_VMI_MAX_PATH);

    for (char *c = path; *c != '\0'; c++) {
        if (!g_ascii_isprint(*c) || *c == '"' || *c == '\\')
            *c = '?';
    }
    g_ptr_array_add(walk->found, path);
}

static void
walk_object(Walk *walk, const ChJson *object, const char *fields)
{
    const gsize length = walk->path->len;
    const char *key;
    ChJson *value;
    ChJsonIter iter;

    ch_json_iter_init(&iter, object);
    while (walk->found->len < CH_VMI_MAX_UNKNOWN && ch_json_iter_next(&iter, &key, &value)) {
        char type[MAX_NAME] = "";

        g_string_append_printf(walk->path, "%s%.*s", length > 0 ? "." : "", CH_VMI_MAX_PATH, key);
        if (!find_field(fields, key, type))
            add_found(walk);
        else if (*type != '\0')
            walk_value(walk, value, type);
        g_string_truncate(walk->path, length);
    }
}

static void
walk_value(Walk *walk, const ChJson *value, const char *type)
{
    const char *fields = fields_of(type);
    const gsize length = walk->path->len;

    if (ch_json_is_object(value))
        walk_object(walk, value, fields);
    if (!ch_json_is_array(value))
        return;
    for (gsize i = 0; i < ch_json_length(value) && walk->found->len < CH_VMI_MAX_UNKNOWN; i++) {
        g_string_append_printf(walk->path, "[%zu]", i);
        if (ch_json_is_object(ch_json_item(value, i)))
            walk_object(walk, ch_json_item(value, i), fields);
        g_string_truncate(walk->path, length);
    }
}

GPtrArray *
ch_vmi_unknown_fields(const ChJson *vmi)
{
    g_autoptr(GString) path = g_string_new(NULL);
    Walk walk = {path, g_ptr_array_new_with_free_func(g_free)};

    walk_value(&walk, vmi, "VirtualMachineInstance");
    return walk.found;
}

/* Every type that a field names is there, for the test. */
const char *
ch_vmi_fields_broken_link(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(types); i++) {
        g_auto(GStrv) words = g_strsplit(types[i].fields, " ", -1);

        for (gsize k = 0; words[k] != NULL; k++) {
            const char *type = strchr(words[k], '=');

            if (type != NULL && fields_of(type + 1) == NULL)
                return types[i].type;
        }
    }
    return NULL;
}
