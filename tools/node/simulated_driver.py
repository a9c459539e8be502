"""The node plugin of the product, with simulated devices, beside a real node."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from tools.cluster.supervision import Supervision
from tools.errors import ToolError
from tools.node import access
from tools.node.images import BUSYBOX

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tools.cluster.control_plane import ControlPlane
    from tools.node.real_node import RealNode

_NAME = "dra-infra-plugin"
_PUBLISHED, _REGISTERED = '"published"', '"registered at the kubelet"'


def first_device(fleet: str, node: str) -> str:
    """Name of the first device that a node of a fleet has: known before anything is started for it.

    Raises:
        ToolError: There is no such fleet, or it has no devices.
    """
    from dra_infra.errors import ProblemsError
    from dra_infra.plugin.back_ends.sim_node import simulate_node

    try:
        return next(iter(simulate_node(fleet, node=node).devices))
    except ProblemsError as error:
        raise ToolError("\n".join(map(str, error.problems))) from error


class SimulatedDriver:
    """`dra-infra-plugin --back-end sim` for a node, and the DeviceClasses that the charts of its fleet ship.

    It ends with the context, and also when this process is killed.

    Args:
        plane: The node's control plane.
        node: A node that is ready.
        fleet: Whose devices it has, such as `hgx-h100`.
        ready_seconds: How long it may take to publish and to be registered.

    Raises:
        ToolError: From entering the context, where the plugin does not start; the message holds the end of its log.
    """

    def __init__(
        self, plane: ControlPlane, node: RealNode, fleet: str, *, ready_seconds: float = 180.0
    ) -> None:
        self._plane = plane
        self._node = node
        self._fleet = fleet
        self._ready_seconds = ready_seconds
        self.classes: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        self._supervision = Supervision()
        try:
            with self._plane.api() as api:
                access.grant_binding_conditions(api, self._node.name)
            self._supervision.start(_NAME, self._command())
            self._wait()
            self.classes = self._make_classes()
            self.pod.write_text(json.dumps(_pod(self.classes[0]), indent=1))
        except BaseException:
            self._supervision.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._supervision.stop()

    @property
    def log(self) -> Path:
        """The file of its lines."""
        return self._supervision.folder / f"{_NAME}.log"

    @property
    def commands(self) -> Path:
        """The file of `dra-infra-plugin sim --file`, which says that devices fail."""
        return self._supervision.folder / "sim-commands.yaml"

    @property
    def pod(self) -> Path:
        """A manifest to try it with: a pod that prints the variables of its device."""
        return self._supervision.folder / "pod.json"

    def _command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "dra_infra.plugin.command.main"),
            *("--back-end", "sim", "--fleet", self._fleet, "--node-name", self._node.name),
            *("--kubelet-root", str(self._node.kubelet_root), "--cdi-folder", str(self._node.cdi_folder)),
            *("--kubeconfig", str(self._node.kubeconfig), "--log-format", "json"),
            *("--sim-commands", str(self.commands)),
        ]

    def _wait(self) -> None:
        deadline = time.monotonic() + self._ready_seconds
        while not all(word in self._supervision.log(_NAME) for word in (_PUBLISHED, _REGISTERED)):
            # Raises with the end of the log where the plugin ends.
            self._supervision.pause(0.1)
            if time.monotonic() > deadline:
                log = self._supervision.log(_NAME)[-2000:]
                raise ToolError(f"the node plugin was not ready in {self._ready_seconds:g} s:\n{log}")

    def _make_classes(self) -> tuple[str, ...]:
        from dra_infra.catalog.fleets import load_fleet

        classes = load_fleet(self._fleet).classes
        with self._plane.api() as api:
            for each in classes:
                api.create(each.to_manifest())
        return tuple(each.metadata.name for each in classes)


def _pod(device_class: str) -> dict[str, Any]:
    request = {"name": "device", "exactly": {"deviceClassName": device_class}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "one-device"},
        "spec": {"devices": {"requests": [request]}},
    }
    container = {
        "name": "main",
        "image": BUSYBOX,
        "command": ["sh", "-c", "env | grep -e _DEVICE_ -e NVIDIA | sort; sleep 1000000"],
        "resources": {"claims": [{"name": "device"}]},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one-device"},
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "device", "resourceClaimName": "one-device"}],
            "terminationGracePeriodSeconds": 1,
        },
    }
    return {"apiVersion": "v1", "kind": "List", "items": [claim, pod]}
