"""Who else is this driver on the node: an instance of ours in a rolling update, or somebody else's."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from stat import S_ISSOCK
from typing import Final

import grpc

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.command.probes import ask_registration
from dra_infra.plugin.disk import explained
from dra_infra.plugin.locks import open_lock, try_lock
from dra_infra.plugin.service.sockets import Sockets

FILE: Final = "instances"

_SECONDS: Final = 5.0
"""For an answer of a socket on the same machine."""


class Instances:
    """A file that each of our instances holds for as long as it lives: the kernel lets go of it when one dies.

    Args:
        folder: That of the plugin's state.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._handle = -1

    def join(self) -> bool:
        """Be one of them.

        Returns:
            Whether another one is alive.

        Raises:
            PluginError: `plugin-folder-not-usable`.
        """
        self._handle = open_lock(self._path)
        others = not try_lock(self._handle, self._path)
        with explained("cannot be locked", self._path):
            # The kernel does not turn one into the other in one step; two that start at once may both find another.
            fcntl.flock(self._handle, fcntl.LOCK_SH)
        return others

    def leave(self) -> None:
        """Be none of them any more."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def refuse_others(sockets: Sockets, *, ours_alive: bool) -> None:
    """Leave the node to who is this driver already.

    Args:
        sockets: Ours.
        ours_alive: Whether another instance of ours is.

    Raises:
        PluginError: `plugin-already-running`, `driver-name-taken`.
    """
    if ours_alive:
        if not sockets.pod_uid:
            raise _running(sockets)
        # Which of the sockets is its own cannot be told; there was nobody else when it started.
        return
    for path in _registrations(sockets):
        try:
            name = ask_registration(path, _SECONDS).name
        except grpc.RpcError:
            continue
        if name == sockets.driver:
            raise _of_another(path, sockets.driver)


def _registrations(sockets: Sockets) -> list[Path]:
    try:
        return [path for path in sorted(sockets.registry.iterdir()) if S_ISSOCK(path.lstat().st_mode)]
    except OSError:
        # What is wrong with the folder is told when the sockets are made.
        return []


def _running(sockets: Sockets) -> PluginError:
    problem = Problem(
        path=str(sockets.folder),
        code="plugin-already-running",
        message=f"another instance of the plugin is {sockets.driver} on this node",
        hint="end it first; in a rolling update give each instance its --pod-uid",
    )
    return PluginError([problem])


def _of_another(path: Path, driver: str) -> PluginError:
    problem = Problem(
        path=str(path),
        code="driver-name-taken",
        message=f"somebody else's driver {driver} is registered on this node",
        hint="keep that driver off the node, or choose another name with --driver",
    )
    return PluginError([problem])
