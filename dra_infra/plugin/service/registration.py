"""Says to the kubelet which driver this is, where it is served, and in which versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import grpc

from dra_infra.plugin.observing import Observer
from dra_infra.plugin.protocol import registration_pb2 as messages

SERVICE: Final = "pluginregistration.Registration"

VERSIONS: Final = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")
"""The kubelet takes the first that it knows, in our order (validateSupportedServices of pkg/kubelet/cm/dra/plugin)."""


class Registration:
    """What is served at the registration socket.

    Args:
        endpoint: The socket with the services. Absolute: the kubelet takes anything, and fails to connect later.
    """

    def __init__(self, *, driver: str, endpoint: Path, observer: Observer) -> None:
        self._info = messages.PluginInfo(
            type="DRAPlugin", name=driver, endpoint=str(endpoint.absolute()), supported_versions=VERSIONS
        )
        self._observer = observer
        self.registered = False
        """Whether the kubelet took us when it last said something."""

    def handlers(self) -> tuple[grpc.GenericRpcHandler[Any, Any], ...]:
        """The service, for a server."""
        methods = {
            "GetInfo": grpc.unary_unary_rpc_method_handler(
                self._get_info,
                messages.InfoRequest.FromString,
                messages.PluginInfo.SerializeToString,
            ),
            "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(
                self._notify,
                messages.RegistrationStatus.FromString,
                messages.RegistrationStatusResponse.SerializeToString,
            ),
        }
        return (grpc.method_handlers_generic_handler(SERVICE, methods),)

    def _get_info(
        self, _request: messages.InfoRequest, _context: grpc.ServicerContext
    ) -> messages.PluginInfo:
        return self._info

    def _notify(
        self, status: messages.RegistrationStatus, _context: grpc.ServicerContext
    ) -> messages.RegistrationStatusResponse:
        self.registered = status.plugin_registered
        self._observer.registered(registered=status.plugin_registered, text=status.error)
        return messages.RegistrationStatusResponse()
