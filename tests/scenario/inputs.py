# SPDX-License-Identifier: Apache-2.0
"""What scenarios start from: the objects of a small cluster, a VMI as virt-controller hands it over, the node labeller's files."""

CLUSTER = [
    ("/api/v1/namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}}),
    ("/api/v1/namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kubevirt"}}),
    ("/api/v1/nodes", {"kind": "Node", "apiVersion": "v1",
                       "metadata": {"name": "node01", "labels": {"kubernetes.io/hostname": "node01", "kubernetes.io/os": "linux"}},
                       "spec": {}, "status": {"capacity": {"cpu": "2", "memory": "24Gi"}}}),
    ("/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts",
     {"kind": "KubeVirt", "apiVersion": "kubevirt.io/v1", "metadata": {"name": "kubevirt", "namespace": "kubevirt"},
      "spec": {"configuration": {"developerConfiguration": {"useEmulation": True, "featureGates": []}}},
      "status": {"phase": "Deployed"}}),
]

LABELLER_FILES = {
    "capabilities.xml": """<capabilities><host><topology><cells num='1'><cell id='0'><memory unit='KiB'>1048576</memory>
<cpus num='1'><cpu id='0' siblings='0'/></cpus></cell></cells></topology></host></capabilities>
""",
    "virsh_domcapabilities.xml": """<domainCapabilities><cpu><mode name='host-model' supported='yes'>
<model fallback='forbid'>Skylake-Client</model></mode></cpu></domainCapabilities>
""",
}


def vmi():
    return {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {
            "name": "vm", "namespace": "default", "uid": "1111bbbb-0000-4000-8000-000000000001",
            "finalizers": ["foregroundDeleteVirtualMachine"],
            "labels": {"kubevirt.io/nodeName": "node01"}, "annotations": {},
        },
        "spec": {
            "architecture": "amd64", "terminationGracePeriodSeconds": 5,
            "domain": {"machine": {"type": "q35"}, "memory": {"guest": "64Mi"}, "resources": {"requests": {"memory": "64Mi"}},
                       "devices": {"disks": [{"name": "seed", "disk": {"bus": "virtio"}}], "interfaces": []}},
            "volumes": [{"name": "seed", "cloudInitNoCloud": {"userData": "#cloud-config\n"}}], "networks": [],
        },
        "status": {
            "phase": "Scheduled", "nodeName": "node01", "runtimeUser": 107, "guestOSInfo": {},
            "activePods": {"aaaabbbb-0000-4000-8000-000000000001": "node01"},
            "phaseTransitionTimestamps": [{"phase": "Scheduled", "phaseTransitionTimestamp": "2026-11-29T00:00:00Z"}],
        },
    }
