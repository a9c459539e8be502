"""Settings of containerd, of the CNI plugins and of the kubelet for a node that lives in one folder.

Only what differs from their defaults. containerd's are those of version 4 of its file, as ``containerd config default``
of 2.4 prints it; the kubelet's are of kubelet.config.k8s.io/v1beta1.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.node import images, machine

if TYPE_CHECKING:
    from pathlib import Path

_SERVICES = "10.96.0.0/12"
_KUBELET_PORT = 10250
_HEALTH_PORT = 10248


@dataclass(frozen=True, kw_only=True)
class Files:
    """Where a node keeps what.

    Args:
        number: The node's number on this machine.
        folder: State folder.
        containerd: Folder of containerd's programs.
        cni: Folder of the CNI plugins.
        runc: The program that starts containers.
        kubelet: The kubelet.
    """

    number: int
    folder: Path
    containerd: Path
    cni: Path
    runc: Path
    kubelet: Path

    @property
    def address(self) -> str:
        """Of the node, on its bridge: a kubelet refuses loopback."""
        return f"{machine.subnet_of(self.number)}.1"

    @property
    def health_url(self) -> str:
        """Where the kubelet answers 200 once it works."""
        return f"http://{self.address}:{_HEALTH_PORT}/healthz"

    @property
    def socket(self) -> Path:
        """Socket of containerd."""
        return self.folder / "containerd.sock"

    @property
    def kubelet_root(self) -> Path:
        """Where the kubelet keeps pods, and looks for the sockets of drivers."""
        return self.folder / "kubelet"

    @property
    def cdi(self) -> Path:
        """Where containerd looks for CDI specs."""
        return self.folder / "cdi"

    @property
    def containerd_settings(self) -> Path:
        """File of containerd's settings."""
        return self.folder / "containerd.toml"

    @property
    def kubelet_settings(self) -> Path:
        """File of the kubelet's settings."""
        return self.folder / "kubelet.json"

    def write(self) -> None:
        """Make the folders and write all settings."""
        network = self.folder / "cni"
        for folder in (self.cdi, self.kubelet_root, network):
            folder.mkdir()
        (network / "10-bridge.conflist").write_text(json.dumps(self._network()))
        self.containerd_settings.write_text(self._containerd())
        self.kubelet_settings.write_text(json.dumps(self._kubelet(), indent=2))

    def _network(self) -> dict[str, Any]:
        addresses = {
            "type": "host-local",
            "dataDir": str(self.folder / "addresses"),
            "ranges": [[{"subnet": f"{machine.subnet_of(self.number)}.0/24", "gateway": self.address}]],
            # Of services there is the API server's. Nothing else is reached from pods, the machine's network least.
            "routes": [{"dst": _SERVICES}],
        }
        plugin = {
            "type": "bridge",
            "bridge": machine.name_of(self.number),
            "isGateway": True,
            "ipMasq": False,
            "ipam": addresses,
        }
        return {"cniVersion": "1.0.0", "name": "dra-infra", "plugins": [plugin]}

    def _containerd(self) -> str:
        here = self.folder
        runtime = 'plugins."io.containerd.cri.v1.runtime"'
        return f"""\
version = 4
root = "{here}/containerd"
state = "{here}/containerd-state"
imports = []
# Opens a socket of the machine's.
disabled_plugins = ["io.containerd.nri.v1.nri"]

[plugins."io.containerd.server.v1.grpc"]
address = "{self.socket}"
[plugins."io.containerd.server.v1.ttrpc"]
address = "{self.socket}.ttrpc"
[plugins."io.containerd.shim.v1.manager"]
socket_dir = "{here}/shims"
[plugins."io.containerd.internal.v1.opt"]
path = "{here}/opt"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{images.PAUSE}"
[{runtime}]
cdi_spec_dirs = ["{self.cdi}"]
disable_apparmor = true
# Root in a virtual machine or a container may not lower its score, and no sandbox would start.
restrict_oom_score_adj = true
[{runtime}.cni]
bin_dirs = ["{self.cni}"]
conf_dir = "{here}/cni"
use_internal_loopback = true
[{runtime}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{runtime}.containerd.runtimes.runc.options]
BinaryName = "{self.runc}"
Root = "{here}/runc"
SystemdCgroup = false
"""

    def _kubelet(self) -> dict[str, Any]:
        endpoint = f"unix://{self.socket}"
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": endpoint,
            "imageServiceEndpoint": endpoint,
            "address": self.address,
            "port": _KUBELET_PORT,
            "healthzBindAddress": self.address,
            "healthzPort": _HEALTH_PORT,
            "readOnlyPort": 0,
            # The API server has no client certificate, and nobody else reaches the bridge.
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{machine.name_of(self.number)}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "localStorageCapacityIsolation": False,
            "makeIPTablesUtilChains": False,
            "oomScoreAdj": 0,
            "maxOpenFiles": 16384,
            "maxPods": 250,
            # When it looks at a pod again whose devices could not be prepared; a minute would be the default.
            "syncFrequency": "10s",
            # When it looks at what is allocatable, which changes as device plugins come and go; ten seconds would be the default. It
            # writes what has changed, and else as often as it would have.
            "nodeStatusUpdateFrequency": "1s",
            "nodeStatusReportFrequency": "5m",
            # Silences an event about DNS on each pod.
            "clusterDNS": ["10.96.0.10"],
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
            },
            # Imported images cannot be pulled again.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "podLogsDir": str(self.folder / "pod-logs"),
            "volumePluginDir": str(self.folder / "volume-plugins"),
            "resolvConf": "",
            "registerNode": True,
        }
