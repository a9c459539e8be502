"""Whether the plugin's folders can be used as it uses them, tried without leaving anything there."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.command.findings import Finding, attempt
from dra_infra.plugin.command.places import KUBELETS
from dra_infra.plugin.disk import TEMPORARY, Folder
from dra_infra.plugin.service.sockets import Sockets

_CONTENT: Final = b"dra-infra-plugin --check\n"


def check_folders(*, sockets: Sockets, state: Path, cdi: Path) -> Iterator[Finding]:
    """Whether files can be kept, and sockets be found."""
    # The kubelet's folders are its own to make.
    plugins = sockets.folder.parent if state == sockets.folder else None
    yield from attempt("state folder", lambda: _try_folder(state, below=plugins))
    yield from attempt("CDI folder", lambda: _try_folder(cdi))
    yield from attempt("folder that the kubelet watches", lambda: _try_registry(sockets.registry))
    yield from attempt("paths of the sockets", lambda: _try_paths(sockets))


def _try_paths(sockets: Sockets) -> str:
    paths = (sockets.service, sockets.registration)
    longest = max(len(bytes(path)) for path in paths)
    return f"{longest} bytes at most"


def _try_registry(path: Path) -> str:
    return _try_folder(path, below=path)


def _try_folder(path: Path, *, below: Path | None = None) -> str:
    """Write, sync, rename and remove a file, and see that links are not followed, as the plugin does it.

    A folder that is not there is tried in the place of the nearest that is: the plugin makes it at its start. A folder
    of the kubelet's, *below*, it does not make.
    """
    if below and not below.exists():
        message = "is not there: no kubelet has been started that has this folder"
        raise _not_usable(below, message, KUBELETS)
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    folder = Folder(there)
    # A dot in front: neither the kubelet nor runtimes look at such names.
    name = f".check-{secrets.token_hex(4)}{TEMPORARY}"
    try:
        folder.replace(name, _CONTENT, settle=True)
        if folder.read(name) != _CONTENT:
            raise _not_usable(
                there, "what was written is not what is read", "see what file system is mounted there"
            )
        folder.rename(name, f"{name}2")
        _try_link(folder, name)
    finally:
        folder.remove(name, f"{name}2")
    return str(path) if there == path else f"{path} can be made in {there}"


def _try_link(folder: Folder, name: str) -> None:
    try:
        (folder.path / name).symlink_to(folder.path / f"{name}2")
    except OSError:
        # A file system without links has none that could be followed.
        return
    if folder.read(name) == _CONTENT:
        raise _not_usable(folder.path, "a link was followed", "see what file system is mounted there")


def _not_usable(path: Path, message: str, hint: str) -> PluginError:
    return PluginError([Problem(path=str(path), code="plugin-folder-not-usable", message=message, hint=hint)])
