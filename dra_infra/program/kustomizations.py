"""Objects of kustomizations, by `kubectl kustomize` or `kustomize build`, confined as a program of a pull request is.

A kustomization of a stranger may name bases and files at addresses, or anywhere on the machine. So it is built without a
socket, without git, with the repository as all that it reads, without plugins, and with bounds on time, memory and output.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dra_infra.documents.yaml import read_manifests
from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.program import confinement
from dra_infra.program.confinement import Allowance
from dra_infra.program.project_files import leads_out

FILES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Names of the file that makes a folder a kustomization."""

DEFAULT_TIMEOUT: Final = 60.0
MOST_BYTES: Final = 64 * 2**20
"""Of the objects that a kustomization makes."""

_MOST_MEMORY: Final = 4 * 2**30
_SHOWN: Final = 1000
_COMMANDS: Final = (("kubectl", ("kustomize",)), ("kustomize", ("build",)))
_NO_PROXY_ANSWERS: Final = "http://127.0.0.1:9"
"""The port of `discard`: where the system cannot take sockets away, addresses are asked for there."""


def is_kustomization(folder: Path) -> bool:
    """True for a folder with a kustomization file."""
    # Who may not look into the folder is told so where it is read.
    return any(os.path.isfile(folder / name) for name in FILES)  # noqa: PTH113


def build(
    root: Path,
    *,
    inside: Path,
    timeout: float = DEFAULT_TIMEOUT,
    overlay: Mapping[str, Any] | None = None,
    objects: str = "",
) -> tuple[dict[str, Any], ...]:
    """The objects of the kustomization in *root*.

    Args:
        root: The folder.
        inside: Its repository, all of which may be read but git's own folder.
        timeout: Seconds until it is stopped.
        overlay: Fields of a kustomization that is put over the one in *root*.
        objects: YAML of objects that the overlay is put over, where *root* has no kustomization.

    Raises:
        ProgramError: `kustomize-not-found`; `kustomization-not-built`, with what was said; or a code of `read_manifests`.
    """
    if leads_out(root, inside):
        raise ProgramError([_refused(root, "it is a link that leads out of the repository")])
    command, executable = _find()
    with tempfile.TemporaryDirectory(prefix="dra-infra-kustomize-") as home, contextlib.ExitStack() as files:
        output = files.enter_context(tempfile.TemporaryFile())
        said = files.enter_context(tempfile.TemporaryFile())

        folder = _write_overlay(root, Path(home), overlay, objects) if overlay is not None else root

        def confine() -> None:
            _limit()
            allowance = Allowance(read=(executable,))
            confinement.enter(root, inside=inside.resolve(), home=Path(home), allowance=allowance)

        try:
            done = subprocess.run(
                [*command, "."],
                executable=executable,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=said,
                timeout=timeout,
                check=False,
                env=_environment(Path(home)),
                preexec_fn=confine if os.name == "posix" else None,
            )
        except OSError as error:
            raise ProgramError([_refused(root, f"{command[0]} did not start: {error.strerror}")]) from error
        except subprocess.SubprocessError as error:
            is_late = isinstance(error, subprocess.TimeoutExpired)
            why = f"it took more than {timeout:g} s" if is_late else "it did not start"
            raise ProgramError([_refused(root, why)]) from None
        output.seek(0)
        said.seek(0)
        text = output.read().decode("utf-8", "replace")
        if done.returncode:
            why = said.read(_SHOWN).decode("utf-8", "replace").strip() or f"it ended with {done.returncode}"
            if "../" in why and inside.resolve() == root.resolve():
                why = f"nothing outside of {root.name} is read unless one repository (.git) has both; {why}"
            raise ProgramError([_refused(root, why)])
    try:
        return read_manifests(text, file=root.name)
    except ProblemsError as error:
        raise ProgramError(problem.below(root.name) for problem in error.problems) from error


def _write_overlay(root: Path, home: Path, overlay: Mapping[str, Any], objects: str) -> Path:
    """Write a kustomization over *root*, or over *objects*, and return its folder."""
    folder = home / "overlay"
    folder.mkdir()
    if objects:
        (folder / "objects.yaml").write_text(objects)
    # kustomize takes no path from the root of the file system.
    below = "objects.yaml" if objects else os.path.relpath(root.resolve(), folder.resolve())
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [below]}
    (folder / FILES[0]).write_text(json.dumps({**head, **overlay}))
    return folder


def _find() -> tuple[list[str], Path]:
    """The command and the file that it runs; raises `kustomize-not-found`."""
    for name, arguments in _COMMANDS:
        if found := shutil.which(name):
            return [name, *arguments], Path(found).resolve()
    raise ProgramError.of(
        path="kustomize",
        code="kustomize-not-found",
        message="there is neither a kubectl nor a kustomize on PATH, which builds kustomizations",
        hint="install one of them; a review reads the files as they are with --source manifests",
    )


def _environment(home: Path) -> dict[str, str]:
    named = confinement.environment_for(os.environ, confinement.ONLY_ITS_OWN, home=home)
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _NO_PROXY_ANSWERS)
    # Without git on PATH no repository is fetched.
    return {**named, **proxies, "PATH": str(home)}


def _limit() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))


def _refused(root: Path, why: str) -> Problem:
    return Problem(
        path=root.name,
        code="kustomization-not-built",
        message=f"the kustomization is not built: {why}",
        hint="`kubectl kustomize` says it too; it has no network here, no plugins, and reads its repository alone",
    )
