"""Confinement of a program that is reviewed: variables by name, files of its repository, no network.

The author of a pull request writes the program, so what it can reach is what a stranger can reach. `--allow` opens
more, one thing at a time; the kernel holds the rest (`dra_infra.program.sandbox`).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from dra_infra.errors import Problem, ProgramError
from dra_infra.program import namespaces, sandbox
from dra_infra.program.project_files import leads_out

VARIABLES: Final = (
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "NO_COLOR",
    "PATH",
    "PYTHONHASHSEED",
    "PYTHONPATH",
    "PYTHONWARNINGS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TZ",
    "VIRTUAL_ENV",
)
"""Environment variables that a program gets, beside those of the locale (`LC_...`); none of them holds a secret."""

_OF_ITSELF: Final = (
    "auxv",
    "cgroup",
    "cmdline",
    "comm",
    "environ",
    "fd",
    "io",
    "limits",
    "maps",
    "oom_score",
    "oom_score_adj",
    "smaps",
    "smaps_rollup",
    "stat",
    "statm",
    "status",
)
"""Entries of /proc/self that a program reads. `net`, `mounts` and `mountinfo` would show what the machine has."""

_SYSTEM: Final = (
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/sbin",
    "/usr",
    "/sys/devices/system/cpu",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/version",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    *(f"/proc/self/{name}" for name in _OF_ITSELF),
    *(
        f"/etc/{name}"
        for name in (
            "alternatives",
            "ca-certificates",
            "debian_version",
            "group",
            "hosts",
            "ld.so.cache",
            "ld.so.conf",
            "ld.so.conf.d",
            "locale.alias",
            "localtime",
            "mime.types",
            "nsswitch.conf",
            "os-release",
            "passwd",
            "pki/tls/certs",
            "pki/ca-trust",
            "protocols",
            "resolv.conf",
            "services",
            "ssl/certs",
            "ssl/openssl.cnf",
            "timezone",
        )
    ),
)
"""What interpreters and libraries read of a Linux system. Neither all of /etc nor all of /proc: both hold secrets of others."""

_FORMS: Final = "env:NAME, read:PATH, write:PATH, network or all"
_HINT_ON_FILES: Final = (
    "a program that is reviewed reads its repository, writes to its temporary folder and has no network; "
    "--allow read:PATH, --allow write:PATH and --allow network open more"
)
_HINT_ON_VARIABLES: Final = "if this is a variable of the environment, --allow env:{} hands it to the program"
_HINT_ON_BOUNDS: Final = (
    f"a program that is reviewed may have {namespaces.MOST_PROCESSES:,} processes and threads, write {namespaces.MOST_BYTES // 2**30} GiB "
    f"and {namespaces.MOST_FILES:,} files to its temporary folder, and no more than {namespaces.MOST_BYTES // 2**30} GiB to one file"
)
_MET_BOUND: Final = re.compile(
    r"OSError: \[Errno 2[78]\]|BlockingIOError: \[Errno 11\]|RuntimeError: can't start new thread"
)
_MISSING_VARIABLE: Final = re.compile(r"KeyError: '([A-Za-z_][A-Za-z0-9_]{0,99})'")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Allowance:
    """Rights that the user gives a program beside those that every program has.

    Args:
        variables: Names of environment variables.
        read: Files and folders that it may read.
        write: Folders that it may write to, and read.
        network: Whether it may make connections.
        everything: Whether nothing is kept from it; what the others say does not count then.
    """

    variables: frozenset[str] = frozenset()
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    network: bool = False
    everything: bool = False


ONLY_ITS_OWN: Final = Allowance()
"""Nothing beside what every program may."""


def read_allowance(words: Iterable[str]) -> Allowance:
    """The allowance that the values of `--allow` make together.

    Args:
        words: Each `env:NAME`, `read:PATH`, `write:PATH`, `network` or `all`.

    Raises:
        ProgramError: `wrong-allowance`, for all that are none of these at once.
    """
    variables: set[str] = set()
    paths: dict[str, list[Path]] = {"read": [], "write": []}
    plain: set[str] = set()
    problems = []
    for word in words:
        kind, colon, value = word.partition(":")
        if word in ("network", "all"):
            plain.add(word)
        elif kind == "env" and _NAME.fullmatch(value):
            variables.add(value)
        elif colon and value and kind in paths and "\0" not in value:
            paths[kind].append(Path(value).absolute())
        else:
            message = f"{word[:80]!r} is nothing that can be allowed"
            problems.append(
                Problem(path="--allow", code="wrong-allowance", message=message, hint=f"write {_FORMS}")
            )
    if problems:
        raise ProgramError(problems)
    return Allowance(
        variables=frozenset(variables),
        read=tuple(paths["read"]),
        write=tuple(paths["write"]),
        network="network" in plain,
        everything="all" in plain,
    )


def environment_for(environment: Mapping[str, str], allowance: Allowance, *, home: Path) -> dict[str, str]:
    """The environment of a program; *home* is its home and its temporary folder."""
    if allowance.everything:
        return dict(environment)
    named = {*VARIABLES, *allowance.variables}
    kept = {name: value for name, value in environment.items() if name in named or name.startswith("LC_")}
    # The user's own home holds credentials of everything that they ever logged in to.
    return {**kept, "HOME": str(home), "TMPDIR": str(home)}


def enter(
    root: Path,
    *,
    inside: Path,
    home: Path,
    allowance: Allowance,
    modules: Iterable[Path] = (),
    loopback: bool = False,
) -> tuple[str, ...]:
    """Confine this process, before anything of the program is loaded.

    Args:
        root: Folder of the program.
        inside: Its repository, all of which it may read but git's own folder, where tokens of a checkout lie.
        home: The folder that it may write to.
        allowance: What the user allows.
        modules: Folders that will be added to the module path, and are read as those that are on it.
        loopback: Whether the program has a network of its own, and needs the loopback device of it.

    Returns:
        What is in force, of `sandbox.ALL`.
    """
    if allowance.everything:
        return ()
    # A checkout with an environment has tens of thousands of folders, and may be on the module path too.
    search = cache(lambda top: tuple(_checkout(top)))
    named = [*_module_path(modules, inside, search), *allowance.read]
    return sandbox.enter(
        read=[
            *map(Path, _SYSTEM),
            *_interpreter(),
            *(each for each in named if not leads_out(each, inside)),
        ],
        unfollowed=[
            *search(inside),
            *(() if root.resolve().is_relative_to(inside) else search(root)),
        ],
        write=[home, Path(os.devnull), *(each for each in allowance.write if not leads_out(each, inside))],
        # A process that imports this package lists the folder in which it lies.
        listed=[inside, root, Path(__file__).resolve().parents[2]],
        network=allowance.network,
        loopback=loopback,
    )


def explain(problem: Problem, in_force: Iterable[str]) -> Problem:
    """*problem* of a confined program, with what opens the thing that it may have missed."""
    if problem.code != "program-raised" or problem.hint:
        return problem
    if sandbox.FILES in in_force and problem.message.startswith("PermissionError: "):
        return replace(problem, hint=_HINT_ON_FILES)
    if _MET_BOUND.match(problem.message):
        return replace(problem, hint=_HINT_ON_BOUNDS)
    if missing := _MISSING_VARIABLE.match(problem.message):
        return replace(problem, hint=_HINT_ON_VARIABLES.format(missing[1]))
    return problem


def describe(in_force: Iterable[str], allowance: Allowance, unconfined: Iterable[str] = ()) -> str:
    """Return the line that says what programs of this run could see and do.

    Args:
        in_force: What was in force, of `sandbox.ALL`.
        allowance: What the user allows.
        unconfined: Other programs that read files of the change, unconfined.
    """
    found = list(in_force)
    if allowance.everything:
        return "programs ran unconfined, as --allow all says"
    if not found:
        return "programs got variables by name, and this system holds nothing back beyond that"
    missing = [
        each
        for each in sandbox.ALL
        if each not in found and not (each == sandbox.NETWORK and allowance.network)
    ]
    line = f"programs ran confined: variables by name, {', '.join(found)}"
    line = f"{line}; not in force here: {', '.join(missing)}" if missing else line
    others = ", ".join(unconfined)
    return f"{line}; unconfined ran {others}" if others else line


def _interpreter() -> Iterator[Path]:
    """Folders that Python itself reads."""
    yield from map(Path, {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.realpath(sys.executable)})
    # The package may be a link to where a CI unpacked it.
    yield Path(__file__).resolve().parents[1]


def _module_path(
    added: Iterable[Path], inside: Path, search: Callable[[Path], Iterable[Path]]
) -> Iterator[Path]:
    """Yield the folders of the module path and those that are *added* to it, without what is called `.git`.

    Args:
        added: Further folders.
        inside: The repository of the program.
        search: Returns what is in a checkout.
    """
    for folder in (*(Path(entry).absolute() for entry in sys.path if entry), *added):
        if (folder / ".git").exists():
            yield from search(inside if folder.resolve() == inside else folder)
        else:
            yield folder


def _checkout(top: Path) -> Iterator[Path]:
    """Everything in a checkout but what is called `.git`, at any depth; links are among it."""
    split = {top}
    """Folders that are not opened whole, for there is a `.git` in them or below."""
    folders = [top]
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name == ".git":
                        split.update(each for each in (folder, *folder.parents) if each.is_relative_to(top))
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
        except OSError:
            # What is in it cannot be told.
            split.update(each for each in (folder, *folder.parents) if each.is_relative_to(top))
    for folder in sorted(split):
        with suppress(OSError):
            for child in sorted(folder.iterdir()):
                if child.name != ".git" and child not in split:
                    yield child
