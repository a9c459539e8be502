"""Stand-ins for what is read from elsewhere: outputs of other stacks, objects of the cluster, values of environments.

They stand in files of the project, which `dra-infra.yaml` beside Pulumi.yaml names:

    outputs:
      acme/platform/prod: platform.json     # pulumi stack output --json --stack acme/platform/prod
    objects:
      - cluster.yaml                        # kubectl get ... -o yaml
    environments:
      acme/gpus: gpus.json                  # pulumi env get --value json acme/gpus
    functions:
      aws:index/getCallerIdentity:getCallerIdentity: identity.json

Who wrote the pull request wrote them too: they are read with bounds on size and depth, and through no link out of the project.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dra_infra.documents.json_texts import ForeignJsonError, read_foreign_json
from dra_infra.documents.yaml import read_manifests
from dra_infra.documents.yaml_events import RefusedYamlError, read_documents
from dra_infra.errors import ProblemsError, ProgramError
from dra_infra.kubernetes.api import DeviceClass, ObjectRef, convert, mapping
from dra_infra.output.wording import nearest
from dra_infra.program.project_files import MAX_FILE_BYTES, is_outside, read_yaml

SETTINGS: Final = "dra-infra.yaml"
MOST_FILES: Final = 100
_KEYS: Final = ("environments", "functions", "objects", "outputs")
_FromFile = tuple[Mapping[str, Any], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class StandIns:
    """What stands in for what is not read here.

    Args:
        outputs: Outputs of stacks, with the file that they are from, by the stack's name as the program gives it.
        functions: Results of functions of providers, with the file that they are from, by the function's token.
        objects: Objects, with the file that they are from, by API version and stored reference.
        classes: The DeviceClasses among the objects that have a spec, by name: placement and advice know them too.
    """

    outputs: Mapping[str, _FromFile] = field(default_factory=dict)
    functions: Mapping[str, _FromFile] = field(default_factory=dict)
    objects: Mapping[tuple[str, ObjectRef], _FromFile] = field(default_factory=dict)
    classes: tuple[DeviceClass, ...] = ()


def read_stand_ins(root: Path) -> StandIns:
    """The stand-ins of the project at *root*; none without a `dra-infra.yaml`.

    Raises:
        ProgramError: `stand-in-unreadable`, for the first file that is none, leads out of the project or is too large.
    """
    settings = _read_settings(root)
    outputs = settings.get("outputs") or {}
    objects = settings.get("objects") or []
    functions = settings.get("functions") or {}
    if (
        not isinstance(outputs, Mapping)
        or not isinstance(objects, list)
        or not isinstance(functions, Mapping)
    ):
        raise _refused(
            SETTINGS, "outputs and functions are mappings of names to files, objects a list of files", _HINT
        )
    if len(outputs) + len(objects) + len(functions) > MOST_FILES:
        raise _refused(SETTINGS, f"names more than {MOST_FILES} files", "name those that this program needs")
    read = {
        (str(each.get("apiVersion")), ObjectRef.of(each).stored): (each, str(name))
        for name in objects
        for each in _read_objects(root, name)
    }
    return StandIns(
        outputs={str(stack): (_read_outputs(root, name), str(name)) for stack, name in outputs.items()},
        objects=read,
        functions={str(token): (_read_outputs(root, name), str(name)) for token, name in functions.items()},
        classes=tuple(_find_classes(read.values())),
    )


def read_environments(root: Path) -> Mapping[str, _FromFile]:
    """Return the values of environments of the project at *root* that have a stand-in, by name.

    Raises:
        ProgramError: As `read_stand_ins`.
    """
    environments = _read_settings(root).get("environments") or {}
    if not isinstance(environments, Mapping):
        raise _refused(SETTINGS, "environments is a mapping of names to files", _HINT_ON_ENVIRONMENTS)
    if len(environments) > MOST_FILES:
        raise _refused(SETTINGS, f"names more than {MOST_FILES} files", "name those that this stack imports")
    return {str(name): (_read_values(root, file), str(file)) for name, file in environments.items()}


def _read_settings(root: Path) -> Mapping[str, Any]:
    """Return what `dra-infra.yaml` holds; an empty mapping where there is none."""
    file = root / SETTINGS
    if not file.exists() and not file.is_symlink():
        return {}
    _check_file(file, root)
    settings = read_yaml(file)
    for key in settings:
        if key not in _KEYS:
            near = nearest(str(key), _KEYS)
            message = f"there is no key {key!r}"
            raise _refused(SETTINGS, message, f"write {near}:" if near else f"it has {', '.join(_KEYS)}")
    return settings


_HINT_ON_ENVIRONMENTS: Final = "write environments: {acme/gpus: gpus.json}"
_HINT: Final = "write outputs: {acme/platform/prod: platform.json}"


def _read_outputs(root: Path, name: Any) -> Mapping[str, Any]:
    try:
        found = read_foreign_json(_read(root, name))
    except ForeignJsonError as error:
        raise _refused(
            str(name), f"is not JSON: {error}", "write it with pulumi stack output --json"
        ) from error
    if not isinstance(found, dict):
        raise _refused(str(name), "is no object of outputs", "write it with pulumi stack output --json")
    return found


def _read_values(root: Path, name: Any) -> Mapping[str, Any]:
    text = _read(root, name)
    try:
        documents = [each.data for each in read_documents(text)]
    except RefusedYamlError as error:
        raise _refused(str(name), f"is neither JSON nor YAML: {error}", _HINT_ON_VALUES) from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise _refused(str(name), "is no object of values", _HINT_ON_VALUES)
    return documents[0]


_HINT_ON_VALUES: Final = "write it with pulumi env get --value json"


def _read_objects(root: Path, name: Any) -> tuple[dict[str, Any], ...]:
    try:
        return read_manifests(_read(root, name), file=str(name))
    except ProblemsError as error:
        raise ProgramError(error.problems) from error


def _find_classes(objects: Iterable[_FromFile]) -> Iterator[DeviceClass]:
    found: dict[str, DeviceClass] = {}
    for manifest, file in objects:
        # One without a spec, which would select all devices, is there for the name alone.
        if manifest.get("kind") != "DeviceClass" or not isinstance(manifest.get("spec"), Mapping):
            continue
        try:
            record = DeviceClass.from_manifest(convert(manifest, "v1"))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            named = str(mapping(manifest.get("metadata")).get("name"))[:80]
            message = f"holds DeviceClass {named}, which cannot be read"
            raise _refused(file, message, "dra-infra validate tells what is wrong with it") from error
        found[record.metadata.name or ""] = record
    return (found[name] for name in sorted(found) if name)


def _read(root: Path, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise _refused(SETTINGS, "names no file", _HINT)
    file = root / name
    _check_file(file, root)
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise _refused(name, f"is larger than {MAX_FILE_BYTES} bytes", "keep what the program uses")
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(name, "cannot be read as text", "") from error


def _check_file(file: Path, root: Path) -> None:
    name = str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
    if is_outside(file, root):
        raise _refused(
            name, "is outside of the project, or a link out of it", "put the file itself beside Pulumi.yaml"
        )
    if not file.is_file():
        raise _refused(name, "is no file", f"write it, or take it out of {SETTINGS}")


PULUMIS_SECRET: Final = "[secret]"  # noqa: S105  (no password)
"""The text in the place of a secret output: the only mark that `pulumi stack output` has for it."""


def secret_names(outputs: Mapping[str, Any]) -> list[str]:
    """Outputs whose value is secret: `pulumi stack output` writes `[secret]` for it without `--show-secrets`."""
    return sorted(name for name, value in outputs.items() if _holds_secret(value))


def _holds_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_secret, value.values()))
    return any(map(_holds_secret, value)) if isinstance(value, list) else value == PULUMIS_SECRET


def _refused(path: str, message: str, hint: str) -> ProgramError:
    return ProgramError.of(path=path[:200], code="stand-in-unreadable", message=message, hint=hint)
