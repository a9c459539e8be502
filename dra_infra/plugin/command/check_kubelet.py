"""Whether a kubelet watches its folder of plugins, tried without registering anything.

A socket is put there that says to be of a type that no kubelet has. One that watches asks for it, finds no handler of the type,
and says so (pkg/kubelet/pluginmanager/operationexecutor/operation_generator.go); then the socket is taken away.
"""

from __future__ import annotations

import secrets
import threading
from typing import Final

import grpc

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.protocol import registration_pb2 as messages
from dra_infra.plugin.service.registration import SERVICE
from dra_infra.plugin.service.serving import Pool, Server
from dra_infra.plugin.service.sockets import Sockets

SECONDS: Final = 5.0
"""The kubelet looks once a second, and a busy one takes longer."""

_LAST_ANSWERS: Final = 5.0
_TYPE: Final = "dra-infra-check"


def ask_kubelet(sockets: Sockets, *, seconds: float = SECONDS) -> str:
    """Wait until a kubelet asks who is there.

    Raises:
        PluginError: `kubelet-not-watching`, `socket-not-made`.
    """
    asked = threading.Event()

    def get_info(_request: messages.InfoRequest, _context: grpc.ServicerContext) -> messages.PluginInfo:
        asked.set()
        # A name of its own: the kubelet remembers what it could not register, by name, until the socket goes.
        return messages.PluginInfo(
            type=_TYPE, name=f"{_TYPE}.{sockets.driver}", supported_versions=["v1.None"]
        )

    def notify(
        _status: messages.RegistrationStatus, _context: grpc.ServicerContext
    ) -> messages.RegistrationStatusResponse:
        return messages.RegistrationStatusResponse()

    methods = {
        "GetInfo": grpc.unary_unary_rpc_method_handler(
            get_info, messages.InfoRequest.FromString, messages.PluginInfo.SerializeToString
        ),
        "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(
            notify,
            messages.RegistrationStatus.FromString,
            messages.RegistrationStatusResponse.SerializeToString,
        ),
    }
    path = sockets.registry / f"check-{secrets.token_hex(4)}-reg.sock"
    handlers = (grpc.method_handlers_generic_handler(SERVICE, methods),)
    server = Server([path], handlers, pool=Pool(2, "check"))
    try:
        server.start()
        server.show(path)
        if asked.wait(seconds):
            return f"watches {sockets.registry}"
    finally:
        # Ends as soon as the answers have been sent.
        server.stop(_LAST_ANSWERS)
    problem = Problem(
        path=str(sockets.registry),
        code="kubelet-not-watching",
        message=f"no kubelet asked within {seconds:g} s who is there",
        hint="is the kubelet up? Give its --root-dir as --kubelet-root, mounted into the container at the same path",
    )
    raise PluginError([problem])
