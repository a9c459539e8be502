"""A real node for a throw-away cluster: kubelet, containerd and runc in namespaces of their own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self

import httpx

from tools import build, debian
from tools.cluster.supervision import Supervision
from tools.errors import ToolError
from tools.node import access, configuration, images, machine
from tools.node.processes import NodeProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from tools.cluster.control_plane import ControlPlane

_PROGRAMS = Path(__file__).parent
_PYTHON = [sys.executable, "-I", "-S"]
_CHECK_SECONDS = 0.02
_HOLD_SECONDS = 1.0


class RealNode:
    """A node that runs pods, on this machine, beside a `ControlPlane` that knows its name.

    Kubelet, containerd and all pods live in a mount and a pid namespace of their own, and in the machine's network.
    Sockets and files lie in the state folder and are reached from outside, so a driver may run on either side. Pods
    reach the API server at the address of the service ``kubernetes``, and no other service.

    All of it goes when the context is left, and also when this process is killed: processes, mounts, bridge, control
    groups; kernel settings get their old values. Several such nodes run side by side.

    Args:
        plane: A running control plane with a controller manager, made with ``nodes=(name,)``.
        name: Name of the node.
        binaries: Finds the executables; the default takes what ``make tools`` built.
        more_images: OCI archives to import beside busybox.
        ready_seconds: How long the node may take to be ready.
        on_wait: Called when this machine has as many nodes as it may have.

    Raises:
        ToolError: From `start`, when this is not root, a program is missing, or the node is not ready in time.

    Example:
        >>> with ControlPlane(nodes=("real-node",)) as plane, RealNode(plane) as node:  # doctest: +SKIP
        ...     print(node.ctr("images", "list"))
    """

    def __init__(
        self,
        plane: ControlPlane,
        *,
        name: str = "real-node",
        binaries: Callable[[str], Path] = build.binary,
        more_images: Iterable[Path] = (),
        ready_seconds: float = 180.0,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self._plane = plane
        self._binaries = binaries
        self._images = tuple(more_images)
        self._ready_seconds = ready_seconds
        self._on_wait = on_wait
        self._closing = contextlib.ExitStack()
        self._files: configuration.Files | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def folder(self) -> Path:
        """State folder; gone after `stop`."""
        return self._running.folder

    @property
    def number(self) -> int:
        """Its number on this machine, which its addresses, bridge and control groups have."""
        return self._running.number

    @property
    def kubelet_root(self) -> Path:
        """What is ``/var/lib/kubelet`` elsewhere."""
        return self._running.kubelet_root

    @property
    def cdi_folder(self) -> Path:
        """What is ``/var/run/cdi`` elsewhere."""
        return self._running.cdi

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the kubelet's user, which a driver on this node may use as well."""
        return self._plane.node_kubeconfig(self.name)

    @property
    def mounts(self) -> Path:
        """The node's mount namespace, for ``nsenter --mount=``: what is mounted there goes with the node."""
        starter = self._supervision.pids["inside"]
        child = Path(f"/proc/{starter}/task/{starter}/children").read_text().strip()
        return Path(f"/proc/{child}/ns/mnt")

    @property
    def supervisor(self) -> int:
        """Process id of what ends the node when this process is gone."""
        return self._supervision.pid

    def ctr(self, *arguments: str) -> str:
        """Run containerd's client in the kubelet's namespace of images and return what it printed.

        Raises:
            ToolError: When it fails.
        """
        program = str(self._running.containerd / "ctr")
        command = [program, "--address", str(self._running.socket), "--namespace", "k8s.io", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"`ctr {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout

    def import_images(self, archive: Path) -> None:
        """Give the node the images of an OCI archive."""
        self.ctr("images", "import", "--local", str(archive))

    def hold(self) -> NoReturn:
        """Do nothing for as long as the node runs; raises ToolError when a part of it ends by itself."""
        while True:
            self._supervision.pause(_HOLD_SECONDS)
            for process in (self.containerd, self.kubelet):
                process.wait_ready()

    def start(self) -> None:
        """Start the node and return when it is ready for pods."""
        if self._files is not None:
            raise ToolError("the node is already running")
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything on the node and put the machine back; harmless when repeated."""
        self._files = None
        self._closing.close()

    @property
    def _running(self) -> configuration.Files:
        if self._files is None:
            raise ToolError("the node is not running", hint="use it as `with RealNode(plane) as node:`")
        return self._files

    def _start(self) -> None:
        programs = {name: self._binaries(name) for name in ("containerd", "bridge", "kubelet")}
        runc = debian.program("runc", "usr/sbin/runc")
        archives = (images.archive(), *self._images)
        service = access.service_of(self._plane)
        try:
            number, lock = self._closing.enter_context(machine.numbered(self._on_wait))
            supervision = self._supervision = Supervision(keep_open=[lock])
            self._closing.callback(supervision.stop)
            supervision.at_end([*_PYTHON, str(_PROGRAMS / "machine.py"), "undo", str(number)])
            machine.prepare(number, service=service.address)
        except (OSError, RuntimeError) as error:
            raise ToolError(f"the machine cannot take a node: {error}", hint="run it as root") from error
        files = configuration.Files(
            number=number,
            folder=supervision.folder,
            containerd=programs["containerd"].parent,
            cni=programs["bridge"].parent,
            runc=runc,
            kubelet=programs["kubelet"],
        )
        files.write()
        self._files = files
        supervision.start("relay", [*_PYTHON, str(_PROGRAMS / "service_relay.py"), *service.relayed()])
        self._enter_namespaces(supervision, files)
        self._make_processes(files)
        self.containerd.start()
        for archive in archives:
            self.import_images(archive)
        with self._plane.api() as api:
            access.grant(api)
            if api.find("v1/Node", self.name):
                # What an earlier kubelet said of itself: its pods' logs would be asked for where that one was.
                said = {"conditions": None, "addresses": None}
                api.patch("v1/Node", self.name, {"status": said}, subresource="status")
            self.kubelet.start()
            api.wait_until("v1/Node", self.name, _is_ready, timeout=self._ready_seconds)

    def _enter_namespaces(self, supervision: Supervision, files: configuration.Files) -> None:
        address = files.folder / "inside.sock"
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
        program = [*_PYTHON, str(_PROGRAMS / "inside.py"), str(address), *machine.PRIVATE_FOLDERS]
        supervision.start("inside", [*namespaces, *program])
        deadline = time.monotonic() + self._ready_seconds
        while not address.exists():
            if time.monotonic() > deadline:
                raise ToolError(f"the node's first process made no socket: {supervision.log('inside')}")
            supervision.pause(_CHECK_SECONDS)

    def _make_processes(self, files: configuration.Files) -> None:
        # runc and the plugins call programs of the system; the shim has to lie on containerd's own PATH.
        system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = {"HOME": str(files.folder), "PATH": f"{files.containerd}:{system}"}
        self.containerd = NodeProcess(
            "containerd",
            folder=files.folder,
            argv=[str(files.containerd / "containerd"), "--config", str(files.containerd_settings)],
            environment=environment,
            is_ready=self._containerd_answers,
            ready_seconds=self._ready_seconds,
        )
        self.kubelet = NodeProcess(
            "kubelet",
            folder=files.folder,
            argv=[
                str(files.kubelet),
                f"--config={files.kubelet_settings}",
                f"--kubeconfig={self.kubeconfig}",
                f"--root-dir={files.kubelet_root}",
                f"--cert-dir={files.folder / 'kubelet-certificates'}",
                f"--hostname-override={self.name}",
                f"--node-ip={files.address}",
            ],
            environment=environment,
            is_ready=self._kubelet_is_healthy,
            ready_seconds=self._ready_seconds,
        )

    def _containerd_answers(self) -> bool:
        try:
            self.ctr("version")
        except ToolError:
            return False
        return True

    def _kubelet_is_healthy(self) -> bool:
        try:
            answer = httpx.get(self._running.health_url, trust_env=False, timeout=2.0)
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK


def _is_ready(node: dict[str, object]) -> bool:
    status = node["status"]
    conditions = status.get("conditions", []) if isinstance(status, dict) else []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
