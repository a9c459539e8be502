"""A Pulumi project on disk, with the settings of one stack."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dra_infra.errors import InvalidSpecError, ProgramError
from dra_infra.kubernetes.api import SUPPORTED_MINORS, mapping, read_version
from dra_infra.output.secrets import secret_texts
from dra_infra.program.project_files import find_root, invalid, project_file, read_yaml
from dra_infra.program.stack_settings import UNDECRYPTABLE, full_key, read_stack_settings
from dra_infra.program.virtual_environment import NO_ENVIRONMENT, find_virtual_environment
from dra_infra.program_objects import NotSeen
from dra_infra.target import (
    GATES_SETTING,
    NEWEST_DRIVER,
    ClusterTarget,
    check_target,
    read_gates,
    write_gates,
)

FLEET_SETTING: Final = "dra-infra:fleet"
KUBERNETES_SETTING: Final = "dra-infra:kubernetes"
DRIVER_SETTING: Final = "dra-infra:driver"

DEFAULT_STACK = "dev"

PYTHON: Final = "python"
"""The runtime whose programs run in a process of dra-infra; all others need the host of their language."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A project with the settings of one stack: all that is needed to run its program.

    Args:
        name: Name of the project.
        root: Folder of Pulumi.yaml.
        program: The file or folder to run, as Python's runpy takes it.
        stack: Name of the stack.
        stack_file: Where the settings of the stack stand, if there are any.
        config: Configuration by full key; secrets stand as `UNDECRYPTABLE`.
        variables: Environment variables that environments of the stack set.
        environment: Folder of the virtual environment of the program, or of its packages for Node.js. It may be missing.
        hint_on_modules: What to do about a module that the program imports and that is missing.
        secret_keys: Keys of `config` that are secret.
        not_seen: Secrets whose values are not known here.
        keys_of_files: Keys of `config` that Pulumi.yaml and the stack file set.
        runtime: The language of the program, as Pulumi names it.
        runtime_options: What Pulumi.yaml gives to the host of the language.
    """

    name: str
    root: Path
    program: Path
    stack: str
    stack_file: Path
    config: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)
    environment: Path | None = None
    hint_on_modules: str = ""
    secret_keys: tuple[str, ...] = ()
    not_seen: tuple[NotSeen, ...] = ()
    keys_of_files: frozenset[str] = frozenset()
    runtime: str = PYTHON
    runtime_options: Mapping[str, Any] = field(default_factory=dict)


def load_project(
    directory: Path,
    stack: str | None = None,
    config: Mapping[str, str] | None = None,
    within: Sequence[Path] | None = None,
) -> Project:
    """Read the project in *directory*.

    Args:
        directory: Folder with Pulumi.yaml, or below it.
        stack: Name of the stack. None takes the only stack file there is, else `dev`.
        config: Settings that override those of the stack file; gates are added to its gates.
        within: Folders that the virtual environment of a reviewed program may be in; None for a program of the user's own.

    Raises:
        ProgramError: With codes `no-project`, `invalid-project`.
    """
    root = find_root(directory)
    file = project_file(root)
    assert file is not None  # noqa: S101  (the root is the folder that has it)
    settings = read_yaml(file, is_pulumis=True)
    name = settings.get("name")
    if not isinstance(name, str) or not name:
        raise invalid(file, "`name` is missing", "write name: my-project")
    runtime, options = _read_runtime(file, settings)
    program = _find_program(file, settings, runtime)
    folder = _folder_of_stack_files(file, settings)
    chosen = _choose_stack(folder, file.suffix, stack)
    stack_file = folder / f"Pulumi.{chosen}{file.suffix}"
    read = read_stack_settings(stack_file, name, settings, root)
    environment = find_virtual_environment(file, settings, within) if runtime == PYTHON else NO_ENVIRONMENT
    given = {full_key(name, key): value for key, value in (config or {}).items()}
    return Project(
        name=name,
        root=root,
        program=program,
        stack=chosen,
        stack_file=stack_file,
        config={**read.values, **_with_gates_of_files(read.values, given)},
        variables=read.variables,
        environment=_find_node_modules(program) if runtime == "nodejs" else environment.folder,
        hint_on_modules=environment.hint,
        secret_keys=tuple(sorted(read.secrets)),
        not_seen=(*read.not_seen, *_missing_stack_file(stack_file, chosen, asked=stack is not None)),
        keys_of_files=frozenset(read.values),
        runtime=runtime,
        runtime_options=options,
    )


def find_runtime(directory: Path) -> str:
    """Return the language that the project in *directory* names; Python where no project can be read, which `load_project` reports."""
    try:
        file = project_file(find_root(directory))
        return _read_runtime(file, read_yaml(file, is_pulumis=True))[0] if file else PYTHON
    except ProgramError:
        return PYTHON


def _read_runtime(file: Path, settings: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the language that Pulumi.yaml names, and the options for its host."""
    written = settings.get("runtime")
    name = written.get("name") if isinstance(written, Mapping) else written
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", name):
        message = f"runtime {str(name)[:80]!r} is no language of Pulumi"
        raise invalid(file, message, "write runtime: python, yaml, nodejs or go")
    return name, mapping(written.get("options")) if isinstance(written, Mapping) else {}


def _find_program(file: Path, settings: Mapping[str, Any], runtime: str) -> Path:
    """Return the file or folder that Pulumi runs."""
    main = settings.get("main") or "."
    program = (file.parent / str(main)).resolve()
    if not program.exists():
        raise invalid(file, f"main: {main} does not exist", "name the folder or file of the program")
    if runtime == PYTHON and program.is_dir() and not (program / "__main__.py").exists():
        raise invalid(program, "there is no __main__.py", "a Pulumi program in Python starts in __main__.py")
    return program


def _find_node_modules(program: Path) -> Path:
    """Return the packages of a program for Node.js: of its folder, or of the nearest one above that has some."""
    folder = program if program.is_dir() else program.parent
    places = [each / "node_modules" for each in (folder, *folder.parents)]
    return next(filter(Path.is_dir, places), places[0])


def _folder_of_stack_files(file: Path, settings: Mapping[str, Any]) -> Path:
    """Return the folder that `stackConfigDir` names, or a `config` that is a text, as old projects have it."""
    config = settings.get("config")
    named = settings.get("stackConfigDir") or (config if isinstance(config, str) else "")
    return file.parent / str(named)


def kubernetes_of(config: Mapping[str, str]) -> str | None:
    """The Kubernetes minor or patch that the settings name; None where they name none, or one that no rule is known for.

    Components call an unknown minor a problem, so it must not end a run here.
    """
    version = read_version(config.get(KUBERNETES_SETTING, ""))
    return version.text if version is not None and version.minor in SUPPORTED_MINORS else None


def driver_of(config: Mapping[str, str]) -> str:
    """Return the driver releases that the settings name, else the newest: for checks and for fleets by name alike."""
    return config.get(DRIVER_SETTING) or NEWEST_DRIVER


def gates_of(config: Mapping[str, str]) -> Mapping[str, bool]:
    """The feature gates that the settings name; none where no cluster of the settings' minor can have them.

    As with minors, components call such gates a problem, so they must not end a run here.
    """
    try:
        gates = read_gates(config.get(GATES_SETTING, ""))
    except InvalidSpecError:
        return {}
    return {} if check_target(ClusterTarget(kubernetes=kubernetes_of(config), gates=gates)) else gates


def secret_texts_of(project: Project) -> tuple[str, ...]:
    """Texts that a run must not show: secret settings that stand in plain text, and secrets of the environment."""
    named = {key: value for key, value in project.config.items() if value != UNDECRYPTABLE}
    secret = (named[key] for key in project.secret_keys if key in named)
    return (*secret, *secret_texts(named), *secret_texts(os.environ))


def _missing_stack_file(file: Path, stack: str, *, asked: bool) -> Iterator[NotSeen]:
    """Yield why a stack has no settings: it is misspelt, or its file has another ending than Pulumi.yaml."""
    if file.is_file():
        return
    near = next(file.parent.glob(f"Pulumi.{glob.escape(stack)}.y*ml"), None)
    stacks = stacks_with_file(file)
    if near:
        reason = f"Pulumi does not read {near.name} here: call it {file.name}"
        yield NotSeen(what="configuration of stack", name=stack, reason=reason)
    elif asked and stacks:
        reason = f"there is no {file.name}; stacks with a file are {', '.join(stacks)}"
        yield NotSeen(what="configuration of stack", name=stack, reason=reason)


def _choose_stack(folder: Path, ending: str, stack: str | None) -> str:
    if stack is None:
        stacks = stacks_with_file(folder / f"Pulumi.{DEFAULT_STACK}{ending}")
        return stacks[0] if len(stacks) == 1 else DEFAULT_STACK
    # The engine accepts organisation/project/stack; the file is named after the last part.
    return stack.rpartition("/")[2]


def stacks_with_file(file: Path) -> list[str]:
    """Return the sorted names of the stacks that have a file like *file*, that of any stack."""
    return sorted(
        path.name.removeprefix("Pulumi.").removesuffix(file.suffix)
        for path in file.parent.glob(f"Pulumi.?*{file.suffix}")
        if path.is_file()
    )


def _with_gates_of_files(of_files: Mapping[str, str], given: dict[str, str]) -> dict[str, str]:
    """The given settings, whose gates are added to those of files."""
    if GATES_SETTING not in of_files or GATES_SETTING not in given:
        return given
    try:
        gates = {**read_gates(of_files[GATES_SETTING]), **read_gates(given[GATES_SETTING])}
    except InvalidSpecError:
        # One of the two is refused where settings are checked.
        return given
    return {**given, GATES_SETTING: write_gates(gates)}
