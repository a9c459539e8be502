"""A Pulumi project on disk: Pulumi.yaml, the configuration of one stack, and paths of files that people name.

A path that is not there is told with the nearest one that is; a link may not lead out of its repository.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dra_infra.documents.yaml_events import RefusedYamlError, read_documents
from dra_infra.errors import InvalidSpecError, ProgramError
from dra_infra.kubernetes.api.gates import SUPPORTED_MINORS
from dra_infra.output.secrets import secret_texts
from dra_infra.program_objects import NotSeen
from dra_infra.target import (
    GATES_SETTING,
    NEWEST_DRIVER,
    ClusterTarget,
    check_target,
    read_gates,
    write_gates,
)

UNDECRYPTABLE = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Stands for a secret that cannot be decrypted here: the engine's own text for an unknown value."""

FLEET_SETTING: Final = "dra-infra:fleet"
KUBERNETES_SETTING: Final = "dra-infra:kubernetes"
DRIVER_SETTING: Final = "dra-infra:driver"

MAX_FILE_BYTES = 4 * 2**20
DEFAULT_STACK = "dev"


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A project with the settings of one stack: all that is needed to run its program.

    Args:
        name: Name of the project.
        root: Folder of Pulumi.yaml.
        program: The file or folder to run, as Python's runpy takes it.
        stack: Name of the stack.
        config: Configuration by full key; secrets stand as `UNDECRYPTABLE`.
        secret_keys: Keys of `config` that are secret.
        not_seen: Secrets whose values are not known here.
        keys_of_files: Keys of `config` that Pulumi.yaml and the stack file set.
    """

    name: str
    root: Path
    program: Path
    stack: str
    config: Mapping[str, str]
    secret_keys: tuple[str, ...] = ()
    not_seen: tuple[NotSeen, ...] = ()
    keys_of_files: frozenset[str] = frozenset()


def load_project(
    directory: Path, stack: str | None = None, config: Mapping[str, str] | None = None
) -> Project:
    """Read the project in *directory*.

    Args:
        directory: Folder with Pulumi.yaml, or below it.
        stack: Name of the stack. None takes the only stack file there is, else `dev`.
        config: Settings that override those of the stack file; gates are added to its gates.

    Raises:
        ProgramError: With codes `no-project`, `invalid-project`.
    """
    root = find_root(directory)
    settings = read_yaml(root / "Pulumi.yaml")
    name = settings.get("name")
    runtime = settings.get("runtime")
    runtime_name = runtime.get("name") if isinstance(runtime, Mapping) else runtime
    if not isinstance(name, str) or not name:
        raise _invalid(root / "Pulumi.yaml", "`name` is missing", "write name: my-project")
    if runtime_name != "python":
        raise _invalid(
            root / "Pulumi.yaml",
            f"runtime {runtime_name!r} is not run here",
            "synth runs Python programs; use `pulumi preview` for others",
        )
    main = settings.get("main") or "."
    program = (root / str(main)).resolve()
    if not program.exists():
        raise _invalid(
            root / "Pulumi.yaml", f"main: {main} does not exist", "name the folder or file of the program"
        )
    if program.is_dir() and not (program / "__main__.py").exists():
        raise _invalid(program, "there is no __main__.py", "a Pulumi program in Python starts in __main__.py")
    chosen = _choose_stack(root, stack)
    values, secrets = _read_config(root, name, chosen, settings)
    keys_of_files = frozenset(values)
    values |= _with_gates_of_files(
        values, {_full_key(name, key): value for key, value in (config or {}).items()}
    )
    return Project(
        name=name,
        root=root,
        program=program,
        stack=chosen,
        config=values,
        secret_keys=tuple(sorted(secrets)),
        not_seen=(
            *(
                NotSeen(what="secret configuration", name=key, reason="it cannot be decrypted here")
                for key in sorted(secrets)
                if values[key] == UNDECRYPTABLE
            ),
            *_missing_stack_file(root, chosen, asked=stack is not None),
        ),
        keys_of_files=keys_of_files,
    )


def minor_of(config: Mapping[str, str]) -> str | None:
    """The Kubernetes minor that the settings name; None where they name none, or one that no rule is known for.

    Components call an unknown minor a problem, so it must not end a run here.
    """
    minor = config.get(KUBERNETES_SETTING)
    return minor if minor in SUPPORTED_MINORS else None


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
    return {} if check_target(ClusterTarget(kubernetes=minor_of(config), gates=gates)) else gates


def secret_texts_of(project: Project) -> tuple[str, ...]:
    """Texts that a run must not show: secret settings that stand in plain text, and secrets of the environment."""
    named = {key: value for key, value in project.config.items() if value != UNDECRYPTABLE}
    secret = (named[key] for key in project.secret_keys if key in named)
    return (*secret, *secret_texts(named), *secret_texts(os.environ))


def find_root(directory: Path) -> Path:
    """The nearest folder with a Pulumi.yaml, from *directory* upwards.

    Raises:
        ProgramError: With code `no-project`, also when *directory* does not exist.
    """
    if not directory.exists():
        # The folder above would answer in its place, for another program than the one that was asked for.
        message = "there is no such folder"
        hint = nearest_path(directory) or "check the path; name the folder of a Pulumi project"
        raise ProgramError.of(path=str(directory), code="no-project", message=message, hint=hint)
    start = directory.resolve()
    for folder in (start, *start.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise ProgramError.of(
        path=str(directory),
        code="no-project",
        message="there is no Pulumi.yaml here or above",
        hint="make a project with `dra-infra init`; for manifests: `dra-infra review PATH --fleet NAME`",
    )


def read_yaml(file: Path) -> dict[str, Any]:
    """The mapping in *file*; an empty one for an empty file.

    Raises:
        ProgramError: With code `invalid-project`.
    """
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise _invalid(file, f"is larger than {MAX_FILE_BYTES} bytes", "")
        documents = [each.data for each in read_documents(file.read_text(encoding="utf-8"))]
    except (OSError, UnicodeDecodeError, RefusedYamlError) as error:
        raise _invalid(file, f"cannot be read: {_first_line(error)}", "") from error
    if len(documents) > 1:
        raise _invalid(file, "has more than one document", "")
    content = documents[0] if documents else None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise _invalid(file, "is not a mapping", "")
    return content


def _missing_stack_file(root: Path, stack: str, *, asked: bool) -> Iterator[NotSeen]:
    """A stack may have no file; one that was named beside others that have one is more likely misspelt."""
    files = stacks_with_file(root)
    if asked and files and stack not in files:
        reason = f"there is no Pulumi.{stack}.yaml; stacks with a file are {', '.join(files)}"
        yield NotSeen(what="configuration of stack", name=stack, reason=reason)


def _choose_stack(root: Path, stack: str | None) -> str:
    files = stacks_with_file(root)
    if stack is None:
        return files[0] if len(files) == 1 else DEFAULT_STACK
    # The engine accepts organisation/project/stack; the file is named after the last part.
    return stack.rpartition("/")[2]


def stacks_with_file(root: Path) -> list[str]:
    """Names of the stacks that have a file beside Pulumi.yaml, sorted."""
    return sorted(
        path.name.removeprefix("Pulumi.").removesuffix(".yaml")
        for path in root.glob("Pulumi.?*.yaml")
        if path.is_file()
    )


def _read_config(
    root: Path, project: str, stack: str, settings: Mapping[str, Any]
) -> tuple[dict[str, str], set[str]]:
    values: dict[str, str] = {}
    secrets: set[str] = set()
    for key, entry in (settings.get("config") or {}).items():
        default = entry.get("default", entry.get("value")) if isinstance(entry, Mapping) else entry
        if default is not None:
            values[_full_key(project, str(key))] = _to_text(default)
        if isinstance(entry, Mapping) and entry.get("secret") is True:
            secrets.add(_full_key(project, str(key)))
    file = root / f"Pulumi.{stack}.yaml"
    if not file.is_file():
        return values, secrets & set(values)
    for key, value in (read_yaml(file).get("config") or {}).items():
        full = _full_key(project, str(key))
        if _holds_secret(value):
            secrets.add(full)
            values[full] = UNDECRYPTABLE
        else:
            values[full] = _to_text(value)
    return values, secrets & set(values)


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


def _holds_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return set(value) == {"secure"} or any(map(_holds_secret, value.values()))
    return isinstance(value, list) and any(map(_holds_secret, value))


def _full_key(project: str, key: str) -> str:
    return key if ":" in key else f"{project}:{key}"


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    import json

    return json.dumps(value, default=str)


def _invalid(file: Path, message: str, hint: str) -> ProgramError:
    return ProgramError.of(path=file.name, code="invalid-project", message=message, hint=hint)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def nearest_path(path: Path) -> str:
    """`did you mean manifests/a.yaml?`: the nearest name in the folder where *path* stops being there; else empty."""
    # A link that leads nowhere is there; and what may not be looked at is not there for os.path.
    for parent in () if os.path.lexists(path) else path.parents:
        if not os.path.isdir(parent):  # noqa: PTH112
            continue
        rest = path.relative_to(parent).parts
        try:
            names = sorted(each.name for each in parent.iterdir())
        except OSError:
            return ""
        near = difflib.get_close_matches(rest[0][:255], names, n=1)
        return f"did you mean {parent.joinpath(near[0], *rest[1:])}?" if near else ""
    return ""


def leads_out(path: Path, top: Path) -> bool:
    """True for a path that is named as one in the repository at *top*, and `is_outside`."""
    inside = Path(os.path.realpath(top))
    below = (path, *Path(os.path.abspath(path)).parents)  # noqa: PTH100  (without following links)
    return is_outside(path, top) and any(
        Path(os.path.realpath(each)).is_relative_to(inside) for each in below
    )


def is_outside(path: Path, top: Path) -> bool:
    """True for a path that is, when links are followed, no file of the repository at *top*: it is elsewhere, or in a `.git`.

    Whoever wrote a link may not see what lies there.
    """
    real, inside = Path(os.path.realpath(path)), Path(os.path.realpath(top))
    return not real.is_relative_to(inside) or ".git" in real.relative_to(inside).parts
