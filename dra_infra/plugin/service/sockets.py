"""The plugin's two sockets, cleanup of what dead instances left there, and registration with the kubelet.

Names are those of Kubernetes' helper library (`kubeletplugin` of k8s.io/dynamic-resource-allocation), but for two
things: a path has at most 107 bytes here, since a listener with one of 108, which the library allows, cannot be made;
and the service's name has shorter forms as well, for a driver's name of 63 letters leaves no room for a pod's UID.

Registration says to the kubelet which driver this is, where it is served, and in which versions.
"""

from __future__ import annotations

import hashlib
import re
import socket
import stat
import time
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import grpc

from dra_infra.errors import PluginError
from dra_infra.plugin.disk import not_usable
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.protocol import registration_pb2 as messages
from dra_infra.plugin.service.methods import Method, OnMalformed, service_handler

LONGEST: Final = 107
"""Bytes of a socket's path: the kernel's field has 108, and a zero ends it (unix(7))."""

TEMPORARY: Final = re.compile(r"\.[0-9a-f]{6}")
"""Name under which a socket is made; the kubelet passes over names with a dot in front. Shorter than all others."""

_SECOND_LOOK: Final = 0.05

_KUBELETS: Final = (
    "give the kubelet's folder (its --root-dir), mounted at the same path, and start the kubelet first"
)


class Sockets:
    """The two sockets of one instance of the plugin.

    Args:
        kubelet_root: The kubelet's folder, such as /var/lib/kubelet; the same path for the kubelet and for us.
        driver: The driver's name.
        pod_uid: That of our pod, where an old and a new instance are alive together in a rolling update (kubelets since
            1.33 take that). Empty gives names that the next instance takes over.
    """

    def __init__(self, *, kubelet_root: Path, driver: str, pod_uid: str = "") -> None:
        root = kubelet_root.absolute()
        self.driver = driver
        self.pod_uid = pod_uid
        self.registry = root / "plugins_registry"
        self.folder = root / "plugins" / driver

    @property
    def service(self) -> Path:
        """The socket that claims are prepared at.

        Raises:
            PluginError: `socket-path-too-long`.
        """
        short, shorter = _digest(self.pod_uid, 8), _digest(self.pod_uid, 6)
        names = (f"dra-{self.pod_uid}.sock", f"dra-{short}.sock", f"d{shorter}.sock")
        return _first_that_fits(self.folder, names if self.pod_uid else ["dra.sock"])

    @property
    def registration(self) -> Path:
        """The socket in the folder that the kubelet watches.

        Raises:
            PluginError: `socket-path-too-long`.
        """
        short, both = _digest(self.pod_uid, 8), _digest(f"{self.driver}\0{self.pod_uid}", 16)
        names = (
            f"{self.driver}-{self.pod_uid}-reg.sock",
            f"{self.driver}-{short}-reg.sock",
            f"dra-{both}-reg.sock",
        )
        return _first_that_fits(self.registry, names if self.pod_uid else [f"{self.driver}-reg.sock"])

    def make_ready(self) -> None:
        """Make the driver's folder, and take away sockets of instances that were killed.

        Raises:
            PluginError: `plugin-folder-not-usable`, `socket-path-too-long`.
        """
        kept = {self.service, self.registration}
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            for path in set(self._dead()) - kept:
                path.unlink(missing_ok=True)
        except OSError as error:
            place = error.filename or self.folder
            raise not_usable(place, "cannot be used for sockets", error, _KUBELETS) from error

    def _dead(self) -> Iterator[Path]:
        registration = re.compile(re.escape(self.driver) + r"(-[-0-9A-Za-z_]{11}|-[-0-9a-f]{36})?-reg\.sock")
        service = re.compile(r"dra(-.+)?\.sock|d.{8}\.sock")
        found = [
            path
            for folder, ours in ((self.folder, service), (self.registry, registration))
            for path in folder.iterdir()
            if (ours.fullmatch(path.name) or TEMPORARY.fullmatch(path.name)) and _refuses(path)
        ]
        if found:
            # Between its making and its listening a socket of a new instance refuses too.
            time.sleep(_SECOND_LOOK)
        return (path for path in found if _refuses(path))


def _refuses(path: Path) -> bool:
    """True where nobody listens at a socket."""
    with suppress(OSError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(0)
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                return True
    return False


def _digest(text: str, length: int) -> str:
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:length]).rstrip(b"=").decode()


def _first_that_fits(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        if len(bytes(folder / name)) <= LONGEST:
            return folder / name
    raise PluginError.of(
        path=str(folder),
        code="socket-path-too-long",
        message=f"with a socket's name the path has more than {LONGEST} bytes",
        hint="give the kubelet a shorter --root-dir, or the driver a shorter name",
    )


_SERVICE: Final = "pluginregistration.Registration"

VERSIONS: Final = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")
"""The kubelet takes the first that it knows, in our order (validateSupportedServices of pkg/kubelet/cm/dra/plugin)."""


GetInfo = Callable[[messages.InfoRequest, Any], Awaitable[messages.PluginInfo]]
Notify = Callable[[messages.RegistrationStatus, Any], Awaitable[messages.RegistrationStatusResponse]]


def registration_handler(
    get_info: GetInfo, notify: Notify, on_malformed: OnMalformed
) -> grpc.GenericRpcHandler[Any, Any]:
    """The service Registration with these methods."""
    methods = {
        "GetInfo": Method.unary(messages.InfoRequest, get_info),
        "NotifyRegistrationStatus": Method.unary(messages.RegistrationStatus, notify),
    }
    return service_handler(_SERVICE, methods, on_malformed)


class Registration:
    """The service Registration, at the registration socket.

    Args:
        endpoint: The socket with the services. Absolute: the kubelet takes anything, and fails to connect later.
    """

    def __init__(self, *, driver: str, endpoint: Path, observer: Observer) -> None:
        self._info = messages.PluginInfo(
            type="DRAPlugin", name=driver, endpoint=str(endpoint.absolute()), supported_versions=VERSIONS
        )
        self._observer = observer
        self.registered = False
        """True where the kubelet took us when it last said something."""

    def handlers(self) -> tuple[grpc.GenericRpcHandler[Any, Any], ...]:
        """The service, for a server."""
        return (registration_handler(self._get_info, self._notify, self._observer.malformed),)

    async def _get_info(self, _request: messages.InfoRequest, _context: object) -> messages.PluginInfo:
        return self._info

    async def _notify(
        self, status: messages.RegistrationStatus, _context: object
    ) -> messages.RegistrationStatusResponse:
        self.registered = status.plugin_registered
        self._observer.registered(registered=status.plugin_registered, text=status.error)
        return messages.RegistrationStatusResponse()
