"""What a kubelet does with a plugin: it calls the sockets, and looks through its folder for those that come and go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from dra_infra.plugin.claims import Claim
from dra_infra.plugin.protocol import dra_v1_pb2, health_v1_pb2, registration_pb2
from tests.support.plugin.protocol import dra_v1beta1_pb2

NODE = {
    "v1": ("k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin", dra_v1_pb2),
    "v1beta1": ("k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin", dra_v1beta1_pb2),
}
SECONDS = 120
"""For what takes some milliseconds on a quiet machine."""


class Connection:
    """A connection to a socket of a plugin."""

    def __init__(self, path: Path, version: str = "v1") -> None:
        # Connections of its own: grpc shares those of one address.
        self.channel = grpc.insecure_channel(f"unix:{path}", [("grpc.use_local_subchannel_pool", 1)])
        self.service, self.messages = NODE[version]

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def prepare(self, *claims: Claim, **options: Any) -> Mapping[str, Any]:
        return self._call("NodePrepareResources", claims, **options)

    def begin_to_prepare(self, *claims: Claim) -> grpc.Future:
        """A call that is not waited for: the kubelet cancels it when the pod is deleted."""
        method, request = self._method("NodePrepareResources", claims)
        return method.future(request, timeout=SECONDS)

    def release(self, *claims: Claim, **options: Any) -> Mapping[str, Any]:
        return self._call("NodeUnprepareResources", claims, **options)

    def raw(self, method: str, request: bytes, *, timeout: float = SECONDS) -> bytes:
        return self.channel.unary_unary(f"/{method}")(request, timeout=timeout)

    def _call(self, method: str, claims: tuple[Claim, ...], *, timeout: float = SECONDS) -> Mapping[str, Any]:
        call, request = self._method(method, claims)
        return dict(call(request, timeout=timeout).claims)

    def _method(self, method: str, claims: tuple[Claim, ...]) -> tuple[Any, Any]:
        module = self.messages
        request = getattr(module, f"{method}Request")(
            claims=[module.Claim(namespace=each.namespace, uid=each.uid, name=each.name) for each in claims]
        )
        call = self.channel.unary_unary(
            f"/{self.service}/{method}",
            type(request).SerializeToString,
            getattr(module, f"{method}Response").FromString,
        )
        return call, request

    @contextmanager
    def watch(self, service: str = "v1.DRAResourceHealth") -> Iterator[Iterator[Any]]:
        call = self.channel.unary_stream(
            f"/{service}/NodeWatchResources",
            health_v1_pb2.NodeWatchResourcesRequest.SerializeToString,
            health_v1_pb2.NodeWatchResourcesResponse.FromString,
        )
        stream = call(health_v1_pb2.NodeWatchResourcesRequest(), timeout=SECONDS)
        try:
            yield stream
        finally:
            stream.cancel()

    def get_info(self) -> registration_pb2.PluginInfo:
        return self._registration("GetInfo", registration_pb2.InfoRequest(), registration_pb2.PluginInfo)

    def notify(self, *, registered: bool, error: str = "") -> None:
        status = registration_pb2.RegistrationStatus(plugin_registered=registered, error=error)
        self._registration("NotifyRegistrationStatus", status, registration_pb2.RegistrationStatusResponse)

    def _registration(self, method: str, request: Any, answer: Any) -> Any:
        call = self.channel.unary_unary(
            f"/pluginregistration.Registration/{method}",
            type(request).SerializeToString,
            answer.FromString,
        )
        return call(request, timeout=SECONDS)


class Kubelet:
    """Registers what comes into the folder of sockets, forgets what goes, and calls the one that came last."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.registry = root / "plugins_registry"
        self.registry.mkdir(parents=True)
        (root / "plugins").mkdir()
        self.plugins: dict[str, Connection] = {}
        self.calls = threading.Lock()

    def look(self) -> None:
        """What the real one does once a second."""
        found = {path.name for path in self.registry.iterdir() if not path.name.startswith(".")}
        with self.calls:
            for name in self.plugins.keys() - found:
                self.plugins.pop(name).channel.close()
            for name in sorted(found - self.plugins.keys()):
                with Connection(self.registry / name) as registration:
                    info = registration.get_info()
                    registration.notify(registered=True)
                self.plugins[name] = Connection(Path(info.endpoint))

    def call(self, ask: Callable[[Connection], Any]) -> Any:
        with self.calls:
            return ask(list(self.plugins.values())[-1])

    def close(self) -> None:
        for plugin in self.plugins.values():
            plugin.channel.close()
