"""Files of a new project, and how they are written: all of them, or none.

What the program of a new project asks for is chosen so that it fits on its fleet.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from dra_infra import __version__
from dra_infra.advice.objects import validate
from dra_infra.catalog import load_fleet
from dra_infra.catalog.fleet_terms import read_terms
from dra_infra.cli.written_files import Folder, hint_for, new_name, open_folder
from dra_infra.errors import Problem, ScaffoldError
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Device, Quantity
from dra_infra.selectors.gpu_selectors import gpu

_NVIDIA: Final = "gpu.nvidia.com"
_FILE_ENDINGS: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingPoint:
    """Devices that the first program asks for.

    Args:
        fleet: The fleet as the stack file names it.
        file: Text of the fleet's file; empty where the fleet is named.
        device_driver: The DRA driver of the class.
        memory: Whole GiB that GPUs of the class have at least, as `79Gi`; empty for other drivers than NVIDIA's.
        driver: Release line of NVIDIA's driver; empty where the fleet does not say it.
        replicas: Pods that fit.
    """

    fleet: str
    file: str
    device_driver: str
    memory: str
    driver: str
    replicas: int


def starting_point(fleet: str, *, kubernetes: str) -> StartingPoint:
    """Read *fleet*, and choose what fits on it.

    Raises:
        FleetError: When it cannot be read.
        ScaffoldError: `fleet-without-gpus`.
    """
    loaded = load_fleet(fleet, kubernetes=kubernetes)
    text = fleet.strip()
    is_file = text.lower().endswith(_FILE_ENDINGS) or "/" in text
    found = list(_whole_devices(loaded))
    if not found:
        raise ScaffoldError.of(
            path="--fleet",
            code="fleet-without-gpus",
            message=f"{loaded.name} has no whole GPU, and the first program asks for one",
            hint="start with --fleet 'hgx-h100 x 4'; docs/mig.md shows how to ask for parts of GPUs",
        )
    driver, first = found[0]
    name, content = _as_setting(text) if is_file else (text, "")
    return StartingPoint(
        fleet=name,
        file=content,
        device_driver=driver,
        memory=_round_amount(first) if driver == _NVIDIA else "",
        driver="" if is_file else _release_of(text),
        replicas=min(2, len(found)),
    )


def _whole_devices(fleet: Fleet) -> Iterator[tuple[str, Device]]:
    """NVIDIA's GPUs first, then devices of other drivers that a class can take without a selector."""
    others: list[tuple[str, Device]] = []
    for each in fleet.slices:
        for device in each.spec.devices or []:
            attributes = device.attributes or {}
            if each.spec.driver == _NVIDIA:
                if "type" in attributes and attributes["type"].string == "gpu" and _memory(device):
                    yield each.spec.driver, device
            elif not each.spec.driver.endswith(".nvidia.com"):
                others.append((each.spec.driver, device))
    yield from others


def _memory(device: Device) -> str:
    capacity = (device.capacity or {}).get("memory")
    gibibytes = Quantity.parse(str(capacity.value)).nanos // (10**9 * 2**30) if capacity else 0
    return f"{gibibytes}Gi" if gibibytes else ""


def _round_amount(device: Device) -> str:
    """The most that is advised of: cards of one size report amounts that differ a little."""
    most = int(_memory(device).removesuffix("Gi"))
    return next((f"{each}Gi" for each in range(most, 0, -1) if not _advised(each)), f"{most}Gi")


def _advised(gibibytes: int) -> bool:
    selector = gpu.memory >= f"{gibibytes}Gi"
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpus"},
        "spec": {"selectors": [{"cel": {"expression": selector.expression()}}]},
    }
    return bool(validate([manifest]))


def _release_of(text: str) -> str:
    lines = {group.line for group in read_terms(text) if group.kind.driver == _NVIDIA}
    return lines.pop() if len(lines) == 1 else ""


def _as_setting(text: str) -> tuple[str, str]:
    """The file of a fleet moves into the project, for the stack file must not name a file of one machine alone."""
    content = Path(text).read_text(encoding="utf-8")
    suffix = ".json" if text.lower().endswith(".json") else ".yaml"
    return f"fleet{suffix}", content


_PLACES: Final[Mapping[str, str]] = {
    "Pulumi.yaml": "Pulumi.yaml",
    "Pulumi.dev.yaml": "Pulumi.dev.yaml",
    "__main__.py": "__main__.py",
    "requirements.txt": "requirements.txt",
    "tests/test_gpus.py": "test_gpus.py",
    ".gitignore": "gitignore",
    "README.md": "README.md",
}
"""Path in the project, and the template. A leading dot would keep a template out of some archives."""

_CI_PLACES: Final = {"github": ".github/workflows/dra-infra.yml", "gitlab": ".gitlab-ci.yml"}
"""File of the CI in the repository, by forge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProject:
    """A new project, as it is asked for and checked."""

    name: str
    root: Path
    kubernetes: str
    ci: Literal["github", "gitlab", "none"]
    start: StartingPoint


def files_of(project: NewProject) -> dict[Path, str]:
    """Every file by its whole path; that of the CI is in the root of the git repository that is there already."""
    repository = _repository_of(project.root)
    ci_place = _CI_PLACES.get(project.ci, "")
    values = {
        "name": project.name,
        "description": "GPUs for a service, by Dynamic Resource Allocation",
        "kubernetes": project.kubernetes,
        "requirement": _requirement(_versions()),
        "tag": f"v{__version__}",
        "folder": project.root.relative_to(repository).as_posix(),
        "ci_file": ci_place,
        "request": "merge request" if project.ci == "gitlab" else "pull request",
        **{key: getattr(project.start, key) for key in StartingPoint.__slots__},
        "fleet_is_file": bool(project.start.file),
    }
    templates = _templates()
    files = {
        project.root / place: templates.get_template(f"{template}.j2").render(values)
        for place, template in _PLACES.items()
    }
    if project.start.file:
        files[project.root / project.start.fleet] = project.start.file
    if ci_place:
        files[repository / ci_place] = templates.get_template(f"{project.ci}.yml.j2").render(values)
    return files


def files_of_program(root: Path, *, name: str, description: str, program: str) -> dict[Path, str]:
    """The files of a project around a program that is there already, by their whole paths."""
    templates = _templates()
    values = {"name": name, "description": description, "requirement": _requirement(_versions())}
    places = ("Pulumi.yaml", "requirements.txt", ".gitignore")
    files = {root / place: templates.get_template(f"{_PLACES[place]}.j2").render(values) for place in places}
    return {**files, root / "__main__.py": program}


def _versions() -> str:
    """The releases that a project of this one goes on with."""
    major, minor, _ = __version__.split(".")
    return f">={major}.{minor},<{major}.{int(minor) + 1}"


def _requirement(versions: str) -> str:
    """Requirement that installs this package again; empty where it came from a folder, which other machines do not have."""
    try:
        # Where pip says what it installed (packaging.python.org, direct_url.json); none where an index had it.
        text = metadata.distribution("dra-infra").read_text("direct_url.json")
        if text is None:
            return f"dra-infra{versions}"
        origin = json.loads(text)
        vcs = origin.get("vcs_info")
        # Who may read the repository is not for a file that is committed.
        if not vcs or "@" in origin["url"].partition("://")[2].partition("/")[0]:
            return ""
        return f"dra-infra @ {vcs['vcs']}+{origin['url']}@{vcs['commit_id']}"
    except (metadata.PackageNotFoundError, ValueError, KeyError):
        return ""


def _repository_of(root: Path) -> Path:
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return root


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("dra_infra.cli", "templates/project"),
        undefined=StrictUndefined,
        # Not Jinja's own marks: ${{ }} belongs to GitHub.
        variable_start_string="[[",
        variable_end_string="]]",
        block_start_string="[%",
        block_end_string="%]",
        comment_start_string="[#",
        comment_end_string="#]",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  (Python and YAML; every value goes through `quoted`)
    )
    environment.filters["quoted"] = _quoted
    return environment


def _quoted(text: str) -> str:
    """A text as Python, YAML and JSON all write it."""
    return json.dumps(text)


@dataclass(frozen=True, slots=True)
class Written:
    """Result of writing the files."""

    new: tuple[Path, ...]
    replaced: tuple[Path, ...]
    same: tuple[Path, ...]


def write_whole(files: Mapping[Path, str], *, force: bool, root: Path) -> Written:
    """Write *files*; those that hold the same already are left alone, and others are replaced with *force*.

    A run that fails takes away what it wrote, and puts back what it replaced.

    Args:
        files: Text of each file, by its path.
        force: Replace files that hold something else.
        root: Folder of the project, in which links are not followed.

    Raises:
        ScaffoldError: `files-differ` with each of them, or `folder-not-usable`; then nothing is changed.
    """
    states = {path: _state(path, text, root) for path, text in files.items()}
    new, differ, same, odd = (
        tuple(path for path, state in states.items() if state == each)
        for each in ("new", "differs", "same", "no file")
    )
    refused = [_differs(path) for path in differ if not force] + [_no_file(path) for path in odd]
    if refused:
        raise ScaffoldError(refused)
    _write({path: files[path] for path in (*new, *differ)}, root)
    return Written(new, differ, same)


def _state(path: Path, text: str, root: Path) -> str:
    try:
        with open_folder(path.parent, [root]) as folder:
            there = folder.state(path.name)
            if there is None:
                return "new"
            # A link may lead out of the project: what it points at is not ours to write.
            if not stat.S_ISREG(there.st_mode):
                return "no file"
            return "same" if folder.read(path.name) == text.encode() else "differs"
    except FileNotFoundError:
        return "new"
    except OSError as error:
        raise _unusable(path, error) from error


def _write(files: Mapping[Path, str], root: Path) -> None:
    """Write beside each place first, so that what can fail fails before anything is in place."""
    made: list[Path] = []
    opened: dict[Path, Folder] = {}
    beside: dict[Path, str] = {}
    kept: dict[Path, str] = {}
    placed: list[Path] = []
    done = False
    path = Path()
    with ExitStack() as stack:
        try:
            for path, text in files.items():
                opened[path] = stack.enter_context(open_folder(path.parent, [root], made=made))
                beside[path] = opened[path].put_beside(text.encode())
            for path, written in beside.items():
                folder = opened[path]
                if folder.state(path.name):
                    kept[path] = new_name()
                    folder.rename(path.name, kept[path])
                placed.append(path)
                folder.rename(written, path.name)
            done = True
        except OSError as error:
            raise _unusable(path, error) from error
        finally:
            # Also when the user interrupts.
            if not done:
                for each in placed:
                    opened[each].remove(each.name)
                for each, old in kept.items():
                    opened[each].rename(old, each.name)
            for each, name in (*beside.items(), *(kept.items() if done else ())):
                opened[each].remove(name)
            for each in () if done else reversed(made):
                # Somebody else may have put a file there by now.
                with suppress(OSError):
                    each.rmdir()


def _differs(path: Path) -> Problem:
    return Problem(
        path=os.path.relpath(path),
        code="files-differ",
        message="is there already, and holds something else; nothing was written",
        hint="name another folder, or replace it with --force",
    )


def _no_file(path: Path) -> Problem:
    return Problem(
        path=os.path.relpath(path),
        code="folder-not-usable",
        message="is there already, and is no plain file; nothing was written",
        hint="name another folder",
    )


def _unusable(path: Path, error: OSError) -> ScaffoldError:
    return ScaffoldError.of(
        path=os.path.relpath(path),
        code="folder-not-usable",
        message=f"cannot be written: {error.strerror or error}; nothing was changed",
        hint=hint_for(error, "name a folder that you may write to"),
    )
