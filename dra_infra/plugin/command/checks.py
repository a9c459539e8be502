"""Checks of the self-test that try folders, the kubelet and addresses, leaving nothing behind.

- Folders: whether the plugin can use them as it does.
- Kubelet: whether one watches its folder of plugins, tried without registering anything. A socket is put there that
  says to be of a type that no kubelet has. One that watches asks for it, finds no handler of the type, and says so
  (pkg/kubelet/pluginmanager/operationexecutor/operation_generator.go); then the socket is taken away.
- Addresses: whether metrics and health can be served where the settings say, tried by listening there and answering
  nobody.
- Listeners: which processes listen at a TCP port, as far as this one may see: /proc shows those of its own
  namespaces.

A `Finding` is what the self-test found, one thing at a time, with how it is printed.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from dra_infra.errors import PluginError, Problem, ProblemsError
from dra_infra.plugin.command.instance import KUBELETS
from dra_infra.plugin.command.open_port import held, not_usable
from dra_infra.plugin.command.settings import Address, Settings
from dra_infra.plugin.disk import TEMPORARY, Folder
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.protocol import registration_pb2 as messages
from dra_infra.plugin.service.serving import Pool, Server
from dra_infra.plugin.service.sockets import Sockets, registration_handler

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

    async def get_info(_request: messages.InfoRequest, _context: object) -> messages.PluginInfo:
        asked.set()
        # A name of its own: the kubelet remembers what it could not register, by name, until the socket goes.
        return messages.PluginInfo(
            type=_TYPE, name=f"{_TYPE}.{sockets.driver}", supported_versions=["v1.None"]
        )

    async def notify(
        _status: messages.RegistrationStatus, _context: object
    ) -> messages.RegistrationStatusResponse:
        return messages.RegistrationStatusResponse()

    path = sockets.registry / f"check-{secrets.token_hex(4)}-reg.sock"
    server = Server(
        [path], [registration_handler(get_info, notify, Observer().malformed)], pool=Pool(2, "check")
    )
    try:
        server.start()
        server.show(path)
        if asked.wait(seconds):
            return f"watches {sockets.registry}"
    finally:
        # Ends as soon as the answers have been sent.
        server.stop(_LAST_ANSWERS)
    raise PluginError.of(
        path=str(sockets.registry),
        code="kubelet-not-watching",
        message=f"no kubelet asked within {seconds:g} s who is there",
        hint="is the kubelet up? Give its --root-dir as --kubelet-root, mounted into the container at the same path",
    )


_PROC: Final = Path("/proc")
_TABLES: Final = ("net/tcp", "net/tcp6")
_LISTENS: Final = "0A"
"""TCP_LISTEN, as these tables have it (Linux, Documentation/networking/proc_net_tcp.rst)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listeners:
    """Processes that listen at a port.

    Args:
        processes: Their ids.
        hidden: Whether there is one besides that cannot be seen from here.
    """

    processes: tuple[int, ...]
    hidden: bool

    def __str__(self) -> str:
        seen = [f"process {each} ({_name(each)})" for each in self.processes]
        return " and ".join([*seen, *(["a process that cannot be seen from here"] if self.hidden else [])])


def find_listeners(port: int) -> Listeners:
    """Find the processes that listen at *port*, at any address."""
    sockets = set(_sockets(port))
    found: dict[int, set[str]] = {}
    for process in _processes() if sockets else ():
        if theirs := sockets.intersection(_open_files(process)):
            found[process] = theirs
    seen: set[str] = set().union(*found.values())
    return Listeners(processes=tuple(sorted(found)), hidden=seen != sockets)


def has_open(process: int, file: Path) -> bool:
    """True where a process is known to have a file open."""
    for each in _handles(process):
        with suppress(OSError):
            if os.path.samestat(each.stat(), file.stat()):
                return True
    return False


def _sockets(port: int) -> Iterator[str]:
    """Those that listen there, as links in the folders of processes name them."""
    for table in _TABLES:
        # A kernel without IPv6 has no table of it.
        with suppress(OSError):
            for line in (_PROC / table).read_text().splitlines()[1:]:
                _, local, _, state, *others = line.split()
                if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                    yield f"socket:[{others[5]}]"


def _processes() -> Iterator[int]:
    return (int(each.name) for each in _PROC.iterdir() if each.name.isdigit())


def _open_files(process: int) -> Iterator[str]:
    for each in _handles(process):
        with suppress(OSError):
            yield str(each.readlink())


def _handles(process: int) -> Iterator[Path]:
    # It may end meanwhile, or be somebody else's.
    with suppress(OSError):
        yield from (_PROC / str(process) / "fd").iterdir()


def _name(process: int) -> str:
    try:
        return (_PROC / str(process) / "comm").read_text().strip()
    except OSError:
        return "which ended"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Result of one check.

    Args:
        what: It, in a few words.
        found: What there is, where it holds.
        problem: What does not hold; a warning where the plugin works nevertheless.
    """

    what: str
    found: str = ""
    problem: Problem | None = None

    @property
    def holds(self) -> bool:
        """True where the plugin works with it."""
        return self.problem is None or self.problem.severity == "warning"

    def lines(self) -> Iterator[str]:
        """Lines for a person."""
        if self.problem is None:
            yield f"✓ {self.what}: {self.found}"
            return
        mark = "!" if self.holds else "✗"
        yield f"{mark} {self.what}: {self.problem.path}: {self.problem.message} [{self.problem.code}]"
        if self.problem.hint:
            yield f"    {self.problem.hint}"

    def plain(self) -> dict[str, Any]:
        """Fields for a program."""
        if self.problem is None:
            return {"what": self.what, "holds": True, "found": self.found}
        return {"what": self.what, "holds": self.holds, "problem": self.problem.to_data()}


def attempt(what: str, work: Callable[[], str]) -> Iterator[Finding]:
    """Yield the finding of *work*, or one for each problem that it raises."""
    try:
        yield Finding(what=what, found=work())
    except ProblemsError as error:
        for problem in error.problems:
            yield Finding(what=what, problem=problem)


def show(findings: Iterable[Finding], *, as_json: bool, write: Callable[[str], object]) -> int:
    """Print each as it comes, or all as JSON; the exit code, 1 where something does not hold."""
    seen = []
    for each in findings:
        seen.append(each)
        if not as_json:
            for line in each.lines():
                write(f"{line}\n")
    failed = sum(not each.holds for each in seen)
    if as_json:
        checks = [each.plain() for each in seen]
        write(json.dumps({"works": not failed, "checks": checks}, indent=2, sort_keys=True) + "\n")
    elif failed:
        write(f"{failed} of {len(seen)} do not hold\n")
    else:
        write(f"all {len(seen)} hold\n")
    return 1 if failed else 0


_CONTENT: Final = b"dra-infra-plugin --check\n"


def check_folders(*, sockets: Sockets, state: Path, cdi: Path) -> Iterator[Finding]:
    """Check that files can be kept, and sockets be found."""
    # The kubelet's folders are its own to make.
    plugins = sockets.folder.parent if state == sockets.folder else None
    yield from attempt("state folder", lambda: _try_folder(state, below=plugins))
    yield from attempt("CDI folder", lambda: _try_folder(cdi))
    yield from attempt(
        "folder that the kubelet watches", lambda: _try_folder(sockets.registry, below=sockets.registry)
    )
    yield from attempt("paths of the sockets", lambda: _try_paths(sockets))


def _try_paths(sockets: Sockets) -> str:
    paths = (sockets.service, sockets.registration)
    longest = max(len(bytes(path)) for path in paths)
    return f"{longest} bytes at most"


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
    # /var/run is a link in most systems, which a folder above may be, and the folder itself not.
    folder = Folder(there if there == path else there.resolve())
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
    return PluginError.of(path=str(path), code="plugin-folder-not-usable", message=message, hint=hint)


def check_addresses(settings: Settings, instances: Path) -> Iterator[Finding]:
    """Check that each address that is given is free, or used by an instance of this very plugin.

    Args:
        settings: Of the plugin.
        instances: The file that its instances have open for as long as they live.
    """
    with ExitStack() as kept:
        # Kept until all were tried: two of them may be the same.
        taken: dict[int, str] = {}
        for what, key, address in (
            ("metrics address", "metricsAddress", settings.metrics_address),
            ("health address", "healthAddress", settings.health_address),
        ):
            if address is None:
                continue
            yield from attempt(what, partial(_try, key, address, instances, taken, kept))
            taken[address.port] = key


def _try(key: str, address: Address, instances: Path, taken: dict[int, str], kept: ExitStack) -> str:
    try:
        kept.enter_context(held(address))
    except OSError as error:
        refused = not_usable(key, address, error)
        if error.errno != errno.EADDRINUSE:
            raise refused from error
        if address.port in taken:
            raise _because(refused, f"{taken[address.port]} has the same port") from error
        listeners = find_listeners(address.port)
        ours = [each for each in listeners.processes if has_open(each, instances)]
        if ours and not listeners.hidden and len(ours) == len(listeners.processes):
            return f"{address}, where the plugin that runs listens: {listeners}"
        raise (_because(refused, f"{listeners} listens there") if str(listeners) else refused) from error
    return str(address)


def _because(refused: PluginError, reason: str) -> PluginError:
    return PluginError(replace(each, message=f"{each.message}; {reason}") for each in refused.problems)
