"""The problems that components report, each with a call that gets it: docs/components.md shows them, a test runs them.

Rows are the code and the call. What the server says of an object is left out, but for what has an argument of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

POD: Final = '{"containers": [{"name": "a"}, {"name": "b"}]}'

PROBLEMS: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "every component": [
        ("unknown-argument", 'dra.GpuClaim("c", device_class="h100", cuont=4)'),
        ("missing-argument", 'dra.GpuClaim(device_class="h100")'),
        ("wrong-type", 'dra.GpuClaim("c", device_class="h100", target="1.36")'),
        ("unknown-kubernetes", 'dra.GpuDeviceClass("h100", target=dra.ClusterTarget(kubernetes="1.33"))'),
        (
            "unknown-gate",
            'dra.GpuDeviceClass("h100", target=dra.ClusterTarget(gates={"DRAAdminAcces": True}))',
        ),
        (
            "locked-gate",
            'dra.GpuDeviceClass("h100", target=dra.ClusterTarget(kubernetes="1.37", gates={"DynamicResourceAllocation": False}))',
        ),
        (
            "gate-needs-gate",
            'dra.GpuDeviceClass("h100", target=dra.ClusterTarget(kubernetes="1.36", gates={"DRADeviceTaints": False, "DRADeviceTaintRules": True}))',
        ),
    ],
    "selectors": [
        ("wrong-type", 'dra.GpuDeviceClass("h100", select="H100")'),
        ("cel-syntax", 'dra.GpuDeviceClass("h100", select=dra.cel("device.driver =="))'),
        ("cel-type", 'dra.GpuDeviceClass("h100", select=dra.cel("device.drivr"))'),
        ("cel-too-long", 'dra.GpuDeviceClass("h100", select=dra.cel("true || " * 2000 + "true"))'),
        (
            "cel-too-costly",
            'dra.GpuDeviceClass("h100", select=dra.cel("device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, true))))"))',
        ),
        ("selector-type", "dra.gpu.memory >= 40"),
        ("selector-invalid-value", 'dra.gpu.memory >= "40 GB"'),
        ("selector-used-as-bool", '(dra.gpu.memory >= "40Gi") and dra.gpu.uuid.exists()'),
        ("selector-used-with-in", '"H100" in dra.gpu.product'),
    ],
    "every claim": [
        ("unknown-driver-gate", 'dra.GpuClaim("c", device_class="h100", driver_gates={"DynamicMg": True})'),
        ("invalid-name", 'dra.GpuClaim("My claim", device_class="h100")'),
        ("wrong-type", 'dra.GpuClaim("c", device_class="h100", labels=["gpu"])'),
        ("missing-argument", 'dra.GpuClaim("c")'),
        ("unknown-driver-release", 'dra.GpuClaim("c", device_class="h100", driver_release="9.9")'),
        (
            "needs-newer-kubernetes",
            'dra.GpuClaim("c", device_class="h100", tolerations=[dra.Toleration()], target=dra.ClusterTarget(kubernetes="1.35"))',
        ),
        (
            "invalid-toleration",
            'dra.GpuClaim("c", device_class="h100", tolerations=[dra.Toleration(value="1")])',
        ),
        (
            "unsupported-value",
            'dra.GpuClaim("c", device_class="h100", tolerations=[dra.Toleration(key="gpu", effect="NoRun")])',
        ),
        (
            "invalid-label",
            'dra.GpuClaim("c", device_class="h100", tolerations=[dra.Toleration(key="my gpu")])',
        ),
        (
            "too-many-tolerations",
            'dra.GpuClaim("c", device_class="h100", tolerations=[dra.Toleration()] * 17)',
        ),
    ],
    "configs": [
        ("wrong-type", 'dra.GpuClaim("c", device_class="gpu.nvidia.com", configs=["MPS"])'),
        (
            "too-many-items",
            'dra.GpuClaim("c", device_class="gpu.nvidia.com", configs=[dra.GpuConfig()] * 33)',
        ),
        (
            "invalid-name",
            'dra.GpuClaim("c", device_class="net", configs=[dra.OpaqueConfig(driver="My NIC", parameters={})])',
        ),
        (
            "invalid-parameters",
            'dra.GpuClaim("c", device_class="net", configs=[dra.OpaqueConfig(driver="nic.example.com", parameters=[])])',
        ),
        (
            "value-too-long",
            'dra.GpuClaim("c", device_class="net", configs=[dra.OpaqueConfig(driver="nic.example.com", parameters={"text": "x" * 20000})])',
        ),
        (
            "unknown-request",
            'dra.GpuClaim("c", device_class="gpu.nvidia.com", configs=[dra.GpuConfig(requests=["gpus"])])',
        ),
        (
            "duplicate-item",
            'dra.GpuClaim("c", device_class="gpu.nvidia.com", configs=[dra.GpuConfig(requests=["gpu", "gpu"])])',
        ),
        (
            "config-kind-not-known",
            'dra.GpuClaim("c", device_class="gpu.nvidia.com", driver_release="25.8", configs=[dra.VfioDeviceConfig()])',
        ),
        (
            "config-field-not-known",
            'dra.GpuClaim("c", device_class="gpu.nvidia.com", driver_release="0.4", configs=[dra.GpuConfig(sharing=dra.Mps(multi_user=True))])',
        ),
        (
            "config-value",
            'dra.GpuClaim("c", device_class="gpu.nvidia.com", configs=[dra.GpuConfig(sharing=dra.Mps(active_thread_percentage=101))])',
        ),
        (
            "config-conflict",
            'dra.GpuClaim("c", device_class="gpu.nvidia.com", configs=[dra.OpaqueConfig(driver="gpu.nvidia.com", parameters={"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing", "mpsConfig": {"defaultActiveThreadPercentage": 50}}})])',
        ),
        (
            "config-not-applied",
            'dra.GpuClaim("c", requests=[dra.DeviceRequest("gpu", first_available=[dra.Alternative("a", device_class="gpu.nvidia.com")])], configs=[dra.GpuConfig(requests=["gpu"])])',
        ),
        ("config-device-type", 'dra.GpuClaim("c", device_class="mig.nvidia.com", configs=[dra.GpuConfig()])'),
        (
            "config-needs-gate",
            'dra.GpuClaim("c", device_class="gpu.nvidia.com", driver_gates={}, configs=[dra.GpuConfig(sharing=dra.TimeSlicing())])',
        ),
        (
            "driver-gate-conflict",
            'dra.GpuClaim("c", device_class="gpu.nvidia.com", driver_gates={"MPSSupport": True, "ConsumableShares": True}, configs=[dra.GpuConfig(sharing=dra.Mps())])',
        ),
        ("field-not-allowed", 'dra.GpuDeviceClass("h100", configs=[dra.GpuConfig(requests=["gpu"])])'),
    ],
    "attach": [
        ("unknown-container", f'dra.GpuClaim("c", device_class="h100").attach({POD}, "c")'),
        ("containers-not-named", f'dra.GpuClaim("c", device_class="h100").attach({POD})'),
        ("unknown-request", f'dra.GpuClaim("c", device_class="h100").attach({POD}, "a", request="nic")'),
        (
            "claim-attached-twice",
            f'(claim := dra.GpuClaim("c", device_class="h100")).attach(claim.attach({POD}, "a"), "a")',
        ),
        (
            "duplicate-claim",
            'dra.GpuClaim("c", device_class="h100").attach({"containers": [{"name": "a"}], "resourceClaims": [{"name": "c", "resourceClaimName": "other"}]})',
        ),
        ("invalid-name", f'dra.GpuClaim("c", device_class="h100").attach({POD}, "a", entry="My entry")'),
        ("wrong-type", 'dra.GpuClaim("c", device_class="h100").attach(["a"])'),
        (
            "missing-argument",
            'dra.GpuClaim("c", device_class="h100").attach({"containers": [{"image": "a:1"}]})',
        ),
    ],
    "GpuDeviceClass": [
        ("invalid-name", 'dra.GpuDeviceClass("My class")'),
        ("unknown-driver-release", 'dra.GpuDeviceClass("h100", driver_release="9.9")'),
        ("unknown-driver-gate", 'dra.GpuDeviceClass("h100", driver_gates={"DynamicMg": True})'),
        ("wrong-type", 'dra.GpuDeviceClass("h100", extended_resource_name=1)'),
        ("invalid-extended-resource", 'dra.GpuDeviceClass("h100", extended_resource_name="gpu")'),
    ],
    "GpuClaimTemplate": [
        ("count-below-one", 'dra.GpuClaimTemplate("t", device_class="h100", count=0)'),
        ("too-many-devices", 'dra.GpuClaimTemplate("t", device_class="h100", count=33)'),
        (
            "shorthand-with-requests",
            'dra.GpuClaimTemplate("t", count=2, requests=[dra.DeviceRequest("gpu", device_class="h100")])',
        ),
        (
            "duplicate-request",
            'dra.GpuClaimTemplate("t", requests=[dra.DeviceRequest("gpu", device_class="h100")] * 2)',
        ),
        (
            "too-many-items",
            'dra.GpuClaimTemplate("t", requests=[dra.DeviceRequest(f"gpu-{n}", device_class="h100") for n in range(33)])',
        ),
        (
            "invalid-attribute-name",
            'dra.GpuClaimTemplate("t", device_class="h100", constraints=[dra.MatchAttribute("productName")])',
        ),
        (
            "unknown-request",
            'dra.GpuClaimTemplate("t", device_class="h100", constraints=[dra.pair("gpu", "nic")])',
        ),
    ],
    "SharedGpu": [
        ("sharing-conflict", 'dra.SharedGpu("s", across="pods", memory="20Gi")'),
        ("too-many-consumers", 'dra.SharedGpu("s", across="pods", consumers=257)'),
        ("config-needs-gate", 'dra.SharedGpu("s", memory="20Gi", driver_release="0.4")'),
        ("config-value", 'dra.SharedGpu("s", sharing=dra.TimeSlicing(interval="Longest"))'),
        (
            "config-device-type",
            'dra.SharedGpu("s", device_class="mig.nvidia.com", sharing=dra.TimeSlicing())',
        ),
        (
            "needs-newer-kubernetes",
            'dra.SharedGpu("s", memory="20Gi", target=dra.ClusterTarget(kubernetes="1.35"))',
        ),
        ("wrong-type", 'dra.SharedGpu("s", across="nodes")'),
    ],
    "MigPartition": [
        ("missing-argument", 'dra.MigPartition("m")'),
        ("arguments-exclude", 'dra.MigPartition("m", profile="1g.10gb", memory="9Gi")'),
        ("mig-profile-not-known", 'dra.MigPartition("m", profile="1g.5gb", gpu="H100-80GB")'),
        ("mig-not-supported", 'dra.MigPartition("m", profile="1g.10gb", gpu="L40S")'),
        ("product-not-known", 'dra.MigPartition("m", profile="1g.10gb", gpu="H101")'),
        ("mig-none-large-enough", 'dra.MigPartition("m", memory="300Gi")'),
        (
            "mig-not-placeable",
            'dra.MigPartition("m", profiles={"4g.40gb": 1, "3g.40gb": 1, "1g.10gb": 1}, same_gpu=True)',
        ),
        ("count-below-one", 'dra.MigPartition("m", profile="1g.10gb", count=0)'),
        ("too-many-devices", 'dra.MigPartition("m", profile="1g.10gb", count=33)'),
        ("invalid-name", 'dra.MigPartition("m", profiles={"My request": "1g.10gb"})'),
        (
            "unknown-driver-gate",
            'dra.MigPartition("m", profile="1g.10gb", dynamic=True, driver_release="25.8")',
        ),
        (
            "needs-newer-kubernetes",
            'dra.MigPartition("m", profile="1g.10gb", dynamic=True, target=dra.ClusterTarget(kubernetes="1.35"))',
        ),
        (
            "attribute-of-other-device",
            'dra.MigPartition("m", profile="1g.10gb", device_class="gpu.nvidia.com")',
        ),
        ("wrong-type", 'dra.MigPartition("m", profile=1)'),
    ],
    "NvlinkGroup": [
        ("missing-argument", 'dra.NvlinkGroup("n", on="hgx-h100")'),
        ("unknown-system", 'dra.NvlinkGroup("n", gpus=8, on="hgx-h10")'),
        ("product-not-known", 'dra.NvlinkGroup("n", gpus=8, gpu="B201")'),
        ("nvlink-not-promised", 'dra.NvlinkGroup("n", gpus=16, on="hgx-h100")'),
        ("nvlink-group-shape", 'dra.NvlinkGroup("n", gpus=10, on="gb200-nvl72", gpus_per_pod=4)'),
        ("compute-domain-option", 'dra.NvlinkGroup("n", gpus=8, on="hgx-h100", allocation_mode="All")'),
        (
            "unsupported-value",
            'dra.NvlinkGroup("n", gpus=72, on="gb200-nvl72", allocation_mode="Double")',
        ),
        (
            "unknown-driver-gate",
            'dra.NvlinkGroup("n", gpus=2, on="hgx-h100", driver_release="0.4", driver_gates={"FabricManagerPartitioning": True})',
        ),
        ("count-below-one", 'dra.NvlinkGroup("n", gpus=0, on="hgx-h100")'),
        ("invalid-name", 'dra.NvlinkGroup("n" * 60, gpus=72, on="gb200-nvl72")'),
        ("wrong-type", 'dra.NvlinkGroup("n", gpus="8", on="hgx-h100")'),
        (
            "claim-attached-twice",
            'dra.NvlinkGroup("n", gpus=72, on="gb200-nvl72").attach(dra.NvlinkGroup("o", gpus=72, on="gb200-nvl72").attach({"spec": {"containers": [{"name": "a"}]}}))',
        ),
    ],
    "every chart": [
        ("unknown-chart-version", 'dra.GpuOperator("o", version="27.0.0.1")'),
        ("unknown-chart-value", 'dra.GpuOperator("o", values={"devicePlugin": {"enable": False}})'),
        ("chart-value-type", 'dra.GpuOperator("o", values={"devicePlugin": {"enabled": "false"}})'),
        ("value-set-twice", 'dra.GpuOperator("o", cdi=True, values={"cdi": {"enabled": True}})'),
        ("unsupported-value", 'dra.GpuOperator("o", mig_strategy="mixd")'),
        ("invalid-name", 'dra.GpuOperator("o", namespace="My namespace")'),
        (
            "namespace-refused",
            'dra.GpuOperator("o", namespace_labels={"pod-security.kubernetes.io/enforce": "baseline"})',
        ),
        ("file-unreadable", 'dra.GpuOperator("o", crds="no-such-folder")'),
        ("wrong-type", 'dra.GpuOperator("o", version=26)'),
    ],
    "GpuOperator": [
        ("chart-template-fails", 'dra.GpuOperator("o", version="26.7.0", gpu_cluster=True)'),
        ("chart-value-unused", 'dra.GpuOperator("o", version="26.7.0", gates={"MPSSupport": True})'),
        ("version-matrix", 'dra.GpuOperator("o", version="26.3.3", dcgm_claims=True)'),
    ],
    "DraDriver": [
        ("gpu-resources-consent", 'dra.DraDriver("d", version="0.4.1")'),
        ("unknown-driver-gate", 'dra.DraDriver("d", version="0.4.1", gpus=False, gates={"DynamicMg": True})'),
        (
            "driver-gate-conflict",
            'dra.DraDriver("d", version="0.4.1", gpus=False, gates={"DynamicMIG": True, "MPSSupport": True})',
        ),
        ("driver-gate-off", 'dra.DraDriver("d", version="0.5.0", gpus=False, imex_mode="hostManaged")'),
        (
            "chart-template-fails",
            'dra.DraDriver("d", version="0.4.1", gpus=False, webhook=True, webhook_tls_mode="secret")',
        ),
        ("chart-upgrade", 'dra.DraDriver("d", version="0.4.1", gpus=False, upgrade_from="25.12.0")'),
        ("namespace-refused", 'dra.DraDriver("d", version="0.4.1", gpus=False, namespace="default")'),
        (
            "needs-newer-kubernetes",
            'dra.DraDriver("d", version="0.4.1", gpus=False, gates={"DynamicMIG": True}, target=dra.ClusterTarget(kubernetes="1.35"))',
        ),
        (
            "device-plugin-beside-dra",
            'dra.DraDriver("d", version="0.4.1", operator=dra.GpuOperator("o", version="26.3.3"), gpu_resources_enabled_override=True)',
        ),
        (
            "platform-conflict",
            'dra.DraDriver("d", version="0.4.1", operator=dra.GpuOperator("o", version="26.3.3", device_plugin=False), nvidia_driver_root="/")',
        ),
        (
            "eviction-label",
            'dra.DraDriver("d", version="0.4.1", operator=dra.GpuOperator("o", version="26.3.3", device_plugin=False, eviction_label="gpu"), plugin_node_selector={"pool": "gpu"})',
        ),
        ("version-matrix", 'dra.DraDriver("d", version="0.4.1", gpus=False, kernel_driver="470.57")'),
    ],
    "ExampleDriver": [
        ("unsupported-value", 'dra.ExampleDriver("e", profile="gpus")'),
    ],
    "NodePlugin": [
        ("missing-argument", 'dra.NodePlugin("n")'),
        ("unsupported-value", 'dra.NodePlugin("n", back_end="nvlm")'),
        ("fleet-count", 'dra.NodePlugin("n", back_end="sim", fleet="hgx-h100 x 4")'),
        ("fleet-unknown", 'dra.NodePlugin("n", back_end="sim", fleet="hgx-h10")'),
        ("field-not-allowed", 'dra.NodePlugin("n", back_end="nvml", fleet="hgx-h100")'),
        ("invalid-name", 'dra.NodePlugin("n", back_end="sim", driver="My driver")'),
        ("value-set-twice", 'dra.NodePlugin("n", back_end="sim", settings={"fleet": "hgx-h100"})'),
        (
            "namespace-refused",
            'dra.NodePlugin("n", back_end="sim", namespace_labels={"pod-security.kubernetes.io/enforce": "baseline"})',
        ),
        ("unknown-argument", 'dra.NodePlugin("n", back_end="sim", node_selectr={})'),
        (
            "invalid-label",
            'dra.NodePlugin("n", back_end="sim", tolerations=[{"key": "a b", "operator": "Exists"}])',
        ),
        ("wrong-type", 'dra.NodePlugin("n", back_end="sim", metrics_port="8080")'),
    ],
    "GpuRoles": [
        ("unsupported-value", 'dra.GpuRoles("r", members={"oncall": ["group:sre"]})'),
        ("invalid-name", 'dra.GpuRoles("r", members={"on-call": ["sre"]})'),
        ("wrong-type", 'dra.GpuRoles("r", members={"on-call": "group:sre"})'),
    ],
    "GpuGuardrails": [
        ("missing-argument", 'dra.GpuGuardrails("g")'),
        ("wrong-type", 'dra.GpuGuardrails("g", classes=["h100"])'),
        ("invalid-name", 'dra.GpuGuardrails("g", admin_access=["Monitoring"])'),
        ("count-below-one", 'dra.GpuGuardrails("g", most_devices=0)'),
        ("too-many-devices", 'dra.GpuGuardrails("g", most_devices=33)'),
        ("field-not-allowed", 'dra.GpuGuardrails("g", host_paths={"vision": ["/dev/nvidia0"]})'),
    ],
    "KueueQueue": [
        ("missing-argument", 'dra.KueueQueue("q", namespaces=["ml"])'),
        ("missing-argument", 'dra.KueueQueue("q", quota={"h100": 8})'),
        ("wrong-type", 'dra.KueueQueue("q", quota={"h100": 8}, namespaces="ml")'),
        ("invalid-name", 'dra.KueueQueue("q", quota={"h100": 8}, namespaces=["ml"], cohort="A")'),
        (
            "invalid-label",
            'dra.KueueQueue("q", quota={"h100": 8}, namespaces=["ml"], node_labels={"a b": "c"})',
        ),
        ("value-set-twice", 'dra.KueueQueue("q", quota={"h100": 8}, namespaces=["ml", "ml"])'),
        ("unsupported-value", 'dra.KueueQueue("q", quota={"h100": 8}, namespaces=["ml"], strategy="FIFO")'),
        (
            "too-many-items",
            'dra.KueueQueue("q", quota={f"c{n}": 1 for n in range(17)}, namespaces=["ml"])',
        ),
    ],
    "DeviceTaint": [
        ("missing-argument", 'dra.DeviceTaint("t", key="example.com/service")'),
        ("wrong-type", 'dra.DeviceTaint("t", key="example.com/service", pool="node-7", device=3)'),
        ("invalid-name", 'dra.DeviceTaint("Rule", key="example.com/service", pool="node-7")'),
        ("invalid-label", 'dra.DeviceTaint("t", key="a b", pool="node-7")'),
        (
            "unsupported-value",
            'dra.DeviceTaint("t", key="example.com/service", pool="node-7", effect="Evict")',
        ),
    ],
    "GpuMonitoring": [
        ("wrong-type", 'dra.GpuMonitoring("m", thresholds={"KubeDRAPrepareSlow": "30s"})'),
        ("unsupported-value", 'dra.GpuMonitoring("m", severities={"KubeDRAPrepareSlow": "page"})'),
        ("invalid-name", 'dra.GpuMonitoring("m", plugin_namespaces=["Plugins"])'),
        ("invalid-label", 'dra.GpuMonitoring("m", selected_by={"release": "a b"})'),
    ],
    "GpuTenant": [
        ("missing-argument", 'dra.GpuTenant("t", members={"developer": ["group:vision"]})'),
        ("invalid-name", 'dra.GpuTenant("Team")'),
        ("unsupported-value", 'dra.GpuTenant("t", pod_security="basic")'),
        ("wrong-type", 'dra.GpuTenant("t", quota={"h100": -1})'),
        (
            "value-set-twice",
            'dra.GpuTenant("t", quota={"h100": 8}, hard={"h100.deviceclass.resource.k8s.io/devices": "9"})',
        ),
        (
            "field-not-allowed",
            'dra.GpuTenant("t", namespace_labels={"resource.kubernetes.io/admin-access": "true"})',
        ),
    ],
    "GpuPlatform": [
        ("unsupported-value", 'dra.GpuPlatform("p", platform="akz")'),
        ("missing-argument", 'dra.GpuPlatform("p", platform="kind", driver=None)'),
        ("unknown-argument", 'dra.GpuPlatform("p", platform="kind", driver={"gatez": {}})'),
        (
            "node-labels-missing",
            'dra.GpuPlatform("p", platform="gke", driver={"gpu_resources_enabled_override": True}, gpu_pools={"h100": {}})',
        ),
        (
            "platform-conflict",
            'dra.GpuPlatform("p", platform="kind", driver=None, example=True, node_plugin="sim")',
        ),
        (
            "device-plugin-beside-dra",
            'dra.GpuPlatform("p", platform="kubeadm", driver=None, operator=True, node_plugin="nvml")',
        ),
    ],
}

ELSEWHERE: Final[Mapping[str, str]] = {
    "channel-template-taken": "said of objects, when all of a program are known",
    "nvlink-not-measured": "a warning of the catalogue's likely facts, in the log",
    "config-overridden": "a warning about several configs",
    "values-not-known": "a warning",
    "image-not-pinned": "a warning",
    "version-not-served": "needs a target that does not serve resource.k8s.io/v1",
    "not-a-crd": "needs a file",
    "not-utf-8": "needs a file",
    "cel-not-decided-here": "said of placement",
    "cel-unguarded-read": "a warning",
    "kueue-refuses": "a warning",
}
"""Codes that modules of components have, and no call above gets: why."""

OWN_MODULES: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    "every component": (["components/component.py", "target.py"], []),
    "selectors": (
        [
            "kubernetes/cel/check.py",
            "selectors/selector.py",
            "selectors/attributes.py",
            "selectors/any_attribute.py",
        ],
        [],
    ),
    "configs": (["specs/config_*.py"], []),
    "attach": (["specs/attachments.py", "components/pod_specs.py", "components/device_claims.py"], []),
    "GpuDeviceClass": (["specs/device_classes.py", "components/device_classes.py"], ["configs"]),
    "GpuClaimTemplate": (
        [
            *("specs/claims.py", "specs/claims.py", "specs/request_records.py", "specs/requests.py"),
            *("specs/claims.py", "specs/object_names.py", "components/claims.py"),
        ],
        ["every claim", "configs"],
    ),
    "MigPartition": (["specs/mig_*.py", "components/mig_partitions.py"], []),
    "NvlinkGroup": (
        [
            "specs/nvlink_*.py",
            "specs/compute_domains.py",
            "components/nvlink_groups.py",
            "components/pod_specs.py",
        ],
        [],
    ),
    "GpuGuardrails": (["specs/guardrails.py", "components/guardrails.py"], ["GpuRoles"]),
    "KueueQueue": (["specs/queues.py", "components/queues.py"], ["GpuTenant"]),
    "GpuTenant": (["specs/tenants.py", "specs/pod_security.py", "components/tenants.py"], ["GpuRoles"]),
    "NodePlugin": (["specs/node_plugin/*.py", "components/node_plugin.py"], ["GpuPlatform"]),
    "GpuPlatform": (
        ["specs/platform/*.py", "components/platform*.py"],
        ["every chart", "GpuOperator", "DraDriver", "ExampleDriver"],
    ),
}
"""Modules whose codes are those of a component, and tables that may list them in its place.

A component that is not here has its own module and that of the same name in specs.
"""
