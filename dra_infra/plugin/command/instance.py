"""Folders and sockets of one instance of the plugin, and detection of other instances of the driver.

Another instance on the node is ours in a rolling update, or somebody else's.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISSOCK
from typing import Final

import grpc

from dra_infra.errors import PluginError
from dra_infra.plugin.command.probes import ask_registration
from dra_infra.plugin.command.settings import Settings
from dra_infra.plugin.disk import explain_os_errors, not_usable
from dra_infra.plugin.locks import open_lock, try_lock
from dra_infra.plugin.service.sockets import Sockets

KUBELETS: Final = "give the kubelet's folder (its --root-dir) as --kubelet-root, mounted at the same path, and start the kubelet first"


@dataclass(frozen=True, kw_only=True, slots=True)
class Paths:
    """Folders and sockets.

    Args:
        state: The plugin's own folder.
        cdi: That of CDI specs, into which others write as well.
        commands: The file that tells simulated devices what happens to them.
    """

    state: Path
    cdi: Path
    sockets: Sockets
    commands: Path

    @classmethod
    def of(cls, settings: Settings, driver: str) -> Paths:
        """Make the paths that the settings name."""
        sockets = Sockets(kubelet_root=settings.kubelet_root, driver=driver, pod_uid=settings.pod_uid)
        state = settings.state_folder or sockets.folder
        commands = settings.sim_commands or state / "sim-commands.json"
        return cls(state=state, cdi=settings.cdi_folder, sockets=sockets, commands=commands)

    @property
    def claims(self) -> Path:
        """Folder of the checkpoint."""
        return self.state / "claims"

    @property
    def simulation(self) -> Path:
        """Folder of the simulated hardware's state."""
        return self.state / "sim"

    @property
    def metadata(self) -> Path:
        """Files that describe devices to containers."""
        return self.state / "metadata"

    @property
    def preparation_lock(self) -> Path:
        """File whose lock a preparation needs."""
        return self.state / "turns"

    @property
    def publisher_lock(self) -> Path:
        """File whose lock the publisher needs."""
        return self.state / "publisher"

    def make_ready(self) -> None:
        """Make the folders.

        Raises:
            PluginError: `plugin-folder-not-usable`.
        """
        # The kubelet's folders are its own to make: where they are not, the kubelet's folder is another one.
        _make(self.state, 0o700, parents=self.state != self.sockets.folder)
        _make(self.claims, 0o700)
        _refuse_link(self.claims)
        # Runtimes read it, whoever they run as.
        _make(self.cdi, 0o755, parents=True)


def _refuse_link(folder: Path) -> None:
    """Raise where the folder of records is a link: the plugin makes it itself, so that somebody else has put the link there."""
    if folder.is_symlink():
        hint = "remove the link, or put the folder that it points at in its place"
        message = "is a link: records are read and written in no other folder"
        raise PluginError.of(path=str(folder), code="plugin-folder-not-usable", message=message, hint=hint)


def _make(folder: Path, mode: int, *, parents: bool = False) -> None:
    try:
        folder.mkdir(mode=mode, parents=parents, exist_ok=True)
    except OSError as error:
        raise not_usable(folder, "cannot be made", error, KUBELETS) from error


INSTANCES_FILE: Final = "instances"
_NODE_FILE: Final = "node-instances"

_SECONDS: Final = 5.0
"""Seconds for an answer of a socket on the same machine."""


class InstanceLock:
    """Shared lock that each of our instances holds for as long as it lives: the kernel frees it when one dies.

    Args:
        folder: That of the plugin's state.
        name: Of the file.
    """

    def __init__(self, folder: Path, name: str = INSTANCES_FILE) -> None:
        self._path = folder / name
        self._handle = -1

    def acquire(self) -> bool:
        """Hold the lock, beside other instances of ours; True where another one is alive.

        Raises:
            PluginError: `plugin-folder-not-usable`.
        """
        self._handle = open_lock(self._path)
        others = not try_lock(self._handle, self._path)
        with explain_os_errors("cannot be locked", self._path):
            # The kernel does not turn one into the other in one step; two that start at once may both find another.
            fcntl.flock(self._handle, fcntl.LOCK_SH)
        return others

    def release(self) -> None:
        """Release the lock."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class Instances:
    """Locks by which instances of one driver on a node find each other, also those with other state folders.

    Args:
        paths: Folders of this instance, which have to be there.
    """

    def __init__(self, paths: Paths) -> None:
        self._folder = paths.sockets.folder
        self._same_state = InstanceLock(paths.state)
        self._same_node = InstanceLock(self._folder, _NODE_FILE)

    def acquire(self) -> bool:
        """Hold the locks; True where another instance with the same state folder is alive.

        Raises:
            PluginError: `plugin-already-running`, `plugin-folder-not-usable`.
        """
        _make(self._folder, 0o700)
        others = self._same_state.acquire()
        if self._same_node.acquire() and not others:
            # Neither knows what the other prepared, so both would give the same devices.
            raise PluginError.of(
                path=str(self._folder),
                code="plugin-already-running",
                message="another instance of the plugin with another state folder is this driver on the node",
                hint="end it first; instances of one driver have the same --state-folder",
            )
        return others

    def release(self) -> None:
        """Release the locks."""
        self._same_state.release()
        self._same_node.release()


def refuse_others(sockets: Sockets, *, ours_alive: bool) -> None:
    """Leave the node to who is this driver already.

    Raises:
        PluginError: `plugin-already-running`, `driver-name-taken`.
    """
    if ours_alive:
        if not sockets.pod_uid:
            raise PluginError.of(
                path=str(sockets.folder),
                code="plugin-already-running",
                message=f"another instance of the plugin is {sockets.driver} on this node",
                hint="end it first; in a rolling update give each instance its --pod-uid",
            )
        # Which of the sockets is its own cannot be told; there was nobody else when it started.
        return
    for path in _registrations(sockets):
        try:
            name = ask_registration(path, _SECONDS).name
        except grpc.RpcError:
            continue
        if name == sockets.driver:
            raise PluginError.of(
                path=str(path),
                code="driver-name-taken",
                message=f"somebody else's driver {name} is registered on this node",
                hint="keep that driver off the node, or choose another name with --driver",
            )


def _registrations(sockets: Sockets) -> list[Path]:
    try:
        return [path for path in sorted(sockets.registry.iterdir()) if S_ISSOCK(path.lstat().st_mode)]
    except OSError:
        # What is wrong with the folder is told when the sockets are made.
        return []
