"""A device plugin for GPUs that are not there: what the kubelet has on nodes that are not migrated yet.

It stands in for NVIDIA's plugin, as far as pods see that: resources by name, devices by UUID, and the strategies `envvar` and
`volume-mounts` by which a container is told its devices (api/config/v1 of NVIDIA/k8s-device-plugin 0.20).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc

from tests.support.plugin.protocol import device_plugin_v1beta1_pb2 as messages
from tools.cluster import Api, Manifest
from tools.node import RealNode

MOUNTS: Final = "/var/run/nvidia-container-devices"
"""Where a container has a file for each of its devices."""

VARIABLE: Final = "NVIDIA_VISIBLE_DEVICES"

_FOLDER: Final = "var/lib/kubelet/device-plugins"
_VERSION: Final = "v1beta1"
_REPLICA: Final = "::"
_SECONDS: Final = 60.0


class DevicePlugin:
    """Serves resources on a node while its context lasts; on entering and leaving, the API server shows what is there.

    Args:
        node: A node that is ready.
        api: Its cluster.
        resources: IDs of devices by the resource's name. Replicas of a device are called `UUID::0`, `UUID::1` and so on.
    """

    def __init__(self, node: RealNode, api: Api, resources: Mapping[str, Sequence[str]]) -> None:
        self._node = node
        self._api = api
        self._resources = resources
        self._ends = threading.Event()
        self._servers: list[grpc.Server] = []
        self.given: list[tuple[str, frozenset[str]]] = []
        """Resource and IDs of each allocation, in their order."""

    def __enter__(self) -> DevicePlugin:
        try:
            for number, (resource, devices) in enumerate(self._resources.items()):
                self._serve(resource, devices, f"standin-{number}.sock")
            self._wait_allocatable({each: len(devices) for each, devices in self._resources.items()})
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._wait_allocatable(dict.fromkeys(self._resources, 0))

    @property
    def _folder(self) -> Path:
        # The kubelet has no setting for it. The node has a folder of its own there, in its mount namespace.
        return self._node.mounts.parents[1] / "root" / _FOLDER

    def _serve(self, resource: str, devices: Sequence[str], endpoint: str) -> None:
        # Each watch takes a thread for as long as it lasts.
        server = grpc.server(ThreadPoolExecutor(max_workers=4))
        server.add_generic_rpc_handlers((self._handler(resource, devices),))
        server.add_insecure_port(f"unix:{self._folder / endpoint}")
        server.start()
        self._servers.append(server)
        options = messages.DevicePluginOptions()
        request = messages.RegisterRequest(
            version=_VERSION, endpoint=endpoint, resource_name=resource, options=options
        )
        address = f"unix:{self._folder / 'kubelet.sock'}"
        with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            register = channel.unary_unary(
                f"/{_VERSION}.Registration/Register",
                messages.RegisterRequest.SerializeToString,
                messages.Empty.FromString,
            )
            register(request, timeout=_SECONDS, wait_for_ready=True)

    def _handler(self, resource: str, devices: Sequence[str]) -> Any:
        def options(_request: Any, _context: Any) -> messages.DevicePluginOptions:
            return messages.DevicePluginOptions()

        def watch(_request: Any, _context: Any) -> Iterator[messages.ListAndWatchResponse]:
            made = [messages.Device(ID=each, health="Healthy") for each in devices]
            yield messages.ListAndWatchResponse(devices=made)
            self._ends.wait()

        def allocate(request: messages.AllocateRequest, _context: Any) -> messages.AllocateResponse:
            asked = [frozenset(each.devices_ids) for each in request.container_requests]
            self.given += [(resource, ids) for ids in asked]
            return messages.AllocateResponse(container_responses=[_told(ids) for ids in asked])

        empty = messages.Empty.FromString
        unary = grpc.unary_unary_rpc_method_handler
        methods = {
            "GetDevicePluginOptions": unary(options, empty, _bytes_of),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(watch, empty, _bytes_of),
            "Allocate": unary(allocate, messages.AllocateRequest.FromString, _bytes_of),
        }
        return grpc.method_handlers_generic_handler(f"{_VERSION}.DevicePlugin", methods)

    def _end(self) -> None:
        self._ends.set()
        for server in self._servers:
            server.stop(None).wait(_SECONDS)

    def _wait_allocatable(self, wanted: Mapping[str, int]) -> None:
        def is_shown(node: Manifest) -> bool:
            shown = node["status"].get("allocatable", {})
            return all(int(shown.get(name, 0)) == number for name, number in wanted.items())

        self._api.wait_until("v1/Node", self._node.name, is_shown, timeout=_SECONDS)


def replicas(devices: Sequence[str], number: int) -> list[str]:
    """IDs of the replicas of devices by time slicing."""
    return [f"{each}{_REPLICA}{replica}" for each in devices for replica in range(number)]


def _told(ids: frozenset[str]) -> messages.ContainerAllocateResponse:
    uuids = sorted({each.partition(_REPLICA)[0] for each in ids})
    return messages.ContainerAllocateResponse(
        envs={VARIABLE: ",".join(uuids)},
        mounts=[
            messages.Mount(container_path=f"{MOUNTS}/{each}", host_path="/dev/null", read_only=True)
            for each in uuids
        ],
    )


_bytes_of: Final[Callable[[Any], bytes]] = lambda message: message.SerializeToString()  # noqa: E731
