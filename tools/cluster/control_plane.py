"""Start and stop a Kubernetes control plane on loopback."""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar

import httpx

from tools import build
from tools.cluster import components as parts
from tools.cluster import credentials, ports
from tools.cluster.api import Api
from tools.cluster.connection import Connection, tls_context
from tools.cluster.supervision import Supervision
from tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

T = TypeVar("T")

_CHECK_SECONDS = 0.05
_HOLD_SECONDS = 3600.0
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)


class ControlPlane:
    """A throw-away control plane: etcd, API server, controller manager and scheduler with keys of its own.

    Listens on 127.0.0.1 only, on free ports, so several run side by side. Ready means that the API server serves,
    the other servers are healthy and, with the controller manager, that pods can be created in the namespace
    ``default``. All processes and the state folder go when the context is left or `stop` is called, and also when
    this process is killed.

    Args:
        components: Servers to run; etcd and kube-apiserver are always needed.
        binaries: Finds the executable of a server; the default takes what ``make tools`` built.
        feature_gates: Gates for all Kubernetes servers.
        emulated_version: Minor to behave like, from ``"1.34"`` on; see `--emulated-version` of the API server.
        serves_dra: Whether resource.k8s.io is served at all.
        more_apis: Group versions to serve beside those that are served by default.
        nodes: Names of real nodes that will join; each gets a user, see `node_kubeconfig`.
        people: Users beside the administrator, with their groups; see `person_kubeconfig`.
        ready_seconds: How long starting may take before it is given up.

    Raises:
        ToolError: From `start`, when a binary is missing, a server ends or is not ready in time.

    Example:
        >>> with ControlPlane() as plane:  # doctest: +SKIP
        ...     plane.api().list("v1/Namespace")
    """

    def __init__(
        self,
        *,
        components: Iterable[str] = parts.ALL,
        binaries: Callable[[str], Path] = build.binary,
        feature_gates: Mapping[str, bool] | None = None,
        emulated_version: str | None = None,
        serves_dra: bool = True,
        more_apis: Iterable[str] = (),
        nodes: Iterable[str] = (),
        people: Mapping[str, Iterable[str]] | None = None,
        ready_seconds: float = 180.0,
    ) -> None:
        chosen = set(components)
        if unknown := chosen - set(parts.ALL):
            raise ValueError(f"components: {sorted(unknown)} not in {list(parts.ALL)}")
        if missing := {parts.ETCD, parts.APISERVER} - chosen:
            raise ValueError(f"components: {sorted(missing)} are always needed")
        self.components = tuple(name for name in parts.ALL if name in chosen)
        self._find_binary = binaries
        self._feature_gates = dict(feature_gates or {})
        self._emulated_version = emulated_version
        self._serves_dra = serves_dra
        self._more_apis = tuple(more_apis)
        self._nodes = tuple(nodes)
        self._people = {name: tuple(groups) for name, groups in (people or {}).items()}
        self._ready_seconds = ready_seconds
        self._supervision: Supervision | None = None
        self._layout: parts.Layout | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def connection(self) -> Connection:
        """Address and credentials of the cluster's administrator."""
        if self._connection is None:
            raise ToolError(
                "the control plane is not running", hint="use it as `with ControlPlane() as plane:`"
            )
        return self._connection

    @property
    def url(self) -> str:
        """Address of the API server, ``https://127.0.0.1:PORT``."""
        return self.connection.url

    @property
    def token(self) -> str:
        """Bearer token of the administrator."""
        return self.connection.token

    @property
    def ca(self) -> Path:
        """File with the certificate authority of the API server."""
        return self._running_layout.ca

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator; gone after `stop`."""
        return self._running_layout.kubeconfig(credentials.ADMIN)

    def node_kubeconfig(self, node: str) -> Path:
        """Kubeconfig of the kubelet of *node*, one of `nodes`; gone after `stop`."""
        return self._running_layout.kubeconfig(credentials.of_node(node))

    def person_kubeconfig(self, person: str) -> Path:
        """Kubeconfig of *person*, one of `people`; gone after `stop`."""
        return self._running_layout.kubeconfig(credentials.of_person(person))

    @property
    def folder(self) -> Path:
        """State folder; gone after `stop`."""
        return self._running_layout.folder

    @property
    def pids(self) -> dict[str, int]:
        """Process id of each running server, and of their ``supervisor``."""
        supervision = self._running_supervision
        return {**supervision.pids, "supervisor": supervision.pid}

    def api(self) -> Api:
        """A client for the administrator; the caller closes it."""
        return Api(self.connection)

    def log(self, component: str) -> str:
        """What one of the servers has printed so far."""
        return self._running_supervision.log(component)

    def metrics(self, name: str) -> str:
        """The metrics of the Kubernetes server called *name*, in the text format of Prometheus."""
        layout = self._running_layout
        context = tls_context(self._authority(name, time.monotonic() + self._ready_seconds))
        headers = {"Authorization": f"Bearer {self.token}"}
        with httpx.Client(verify=context, headers=headers, trust_env=False, timeout=30.0) as client:
            return client.get(layout.metrics_url(name)).raise_for_status().text

    def hold(self) -> NoReturn:
        """Do nothing for as long as all servers run; raises ToolError when one of them ends by itself."""
        while True:
            self._running_supervision.pause(_HOLD_SECONDS)

    @contextlib.contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Kill one of the servers, and start it again where the block ends; returns when it is ready.

        Nobody else gets its port meanwhile, so clients are refused until then.
        """
        supervision, layout = self._running_supervision, self._running_layout
        # Held before it is free: the kernel gives it to whoever asks next.
        with ports.held(layout.ports[name]):
            supervision.end(name)
            try:
                yield
            finally:
                self._start_server(name, self._find_binary(name))
                deadline = time.monotonic() + self._ready_seconds
                token = self.token if name == parts.APISERVER else None
                if name != parts.ETCD:
                    self._wait_healthy(name, deadline, token=token)

    def start(self) -> None:
        """Start all servers and return when they are ready."""
        if self._supervision is not None:
            raise ToolError("the control plane is already running")
        binaries = {name: self._find_binary(name) for name in self.components}
        deadline = time.monotonic() + self._ready_seconds
        self._supervision = Supervision()
        try:
            with ports.reserved([*self.components, "etcd-peer"]) as reserved:
                self._start_servers(binaries, reserved, deadline)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all servers and remove the state folder; harmless when repeated."""
        supervision = self._supervision
        self._supervision = None
        self._layout = self._connection = None
        if supervision is not None:
            supervision.stop()

    @property
    def _running_supervision(self) -> Supervision:
        if self._supervision is None:
            raise ToolError(
                "the control plane is not running", hint="use it as `with ControlPlane() as plane:`"
            )
        return self._supervision

    @property
    def _running_layout(self) -> parts.Layout:
        if self._layout is None:
            raise ToolError(
                "the control plane is not running", hint="use it as `with ControlPlane() as plane:`"
            )
        return self._layout

    def _start_servers(self, binaries: Mapping[str, Path], reserved: dict[str, int], deadline: float) -> None:
        supervision = self._running_supervision
        layout = self._layout = parts.Layout(
            folder=supervision.folder,
            ports=dict(reserved),
            components=self.components,
            feature_gates=self._feature_gates,
            emulated_version=self._emulated_version,
            serves_dra=self._serves_dra,
            more_apis=self._more_apis,
            nodes=self._nodes,
        )
        tokens = credentials.write_tokens(layout.tokens, self._nodes, self._people)
        credentials.write_signing_key(layout.service_account_key)
        for name in (parts.ETCD, parts.APISERVER):
            self._start_server(name, binaries[name])
        authority = self._authority(parts.APISERVER, deadline)
        layout.ca.write_text(authority)
        for user, token in tokens.items():
            connection = Connection(url=layout.url, token=token, ca=authority)
            layout.kubeconfig(user).write_text(connection.kubeconfig())
            if user == credentials.ADMIN:
                self._connection = connection
        self._wait_healthy(parts.APISERVER, deadline, token=tokens[credentials.ADMIN])
        controllers = [name for name in self.components if name not in (parts.ETCD, parts.APISERVER)]
        for name in controllers:
            self._start_server(name, binaries[name])
        for name in controllers:
            self._wait_healthy(name, deadline)
        if parts.CONTROLLER_MANAGER in self.components:
            with self.api() as api:
                left = max(0.1, deadline - time.monotonic())
                api.wait_until("v1/ServiceAccount", "default", bool, namespace="default", timeout=left)

    def _authority(self, name: str, deadline: float) -> str:
        """The authority that *name* made for its own certificate, once it has made it.

        The file holds the server's certificate and then the authority. The whole file would do for clients, but not
        for the controller manager, which publishes it to pods and rejects certificates that are no authority.
        """
        path = self._running_layout.serving_certificate(name)

        def read() -> str | None:
            certificates = _CERTIFICATE.findall(path.read_text()) if path.exists() else []
            return certificates[1] if len(certificates) > 1 else None

        return self._wait_for(read, f"{name} made no certificate", deadline)

    def _start_server(self, name: str, binary: Path) -> None:
        layout = self._running_layout
        self._running_supervision.start(
            name, layout.command(name, binary), environment=layout.environment(name)
        )

    def _wait_healthy(self, name: str, deadline: float, *, token: str | None = None) -> None:
        url = self._running_layout.health_url(name)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        context = tls_context(self._authority(name, deadline))
        with httpx.Client(verify=context, headers=headers, trust_env=False, timeout=5.0) as client:

            def is_healthy() -> bool | None:
                with contextlib.suppress(httpx.TransportError):
                    return client.get(url).status_code == httpx.codes.OK or None
                return None

            self._wait_for(is_healthy, f"{name} is not healthy", deadline)

    def _wait_for(self, probe: Callable[[], T | None], failure: str, deadline: float) -> T:
        while (result := probe()) is None:
            if time.monotonic() > deadline:
                raise ToolError(
                    f"{failure} after {self._ready_seconds:g} s",
                    hint="is the machine overloaded? give ControlPlane(ready_seconds=...) more",
                )
            self._running_supervision.pause(_CHECK_SECONDS)
        return result
