"""Patches of kustomizations and other parts of objects, which no migration can rewrite as if they were whole.

A part has no image, no other containers and no selector, so that what is made of it would contradict the object that it
is put on. Files are known to be patches by the kustomizations beside and above them; nothing that these name is opened.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from dra_infra.advice.objects import reference_to
from dra_infra.documents.yaml_events import MAX_NODES, RefusedYamlError, read_documents
from dra_infra.errors import Problem, ProgramError
from dra_infra.kubernetes.api import ObjectRef, group_of, mapping, value_at
from dra_infra.migration.descriptions import describe_document
from dra_infra.migration.device_plugin import is_device
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings, containers_of
from dra_infra.migration.outcomes import Migrated, Remark
from dra_infra.program.kustomizations import FILES, is_kustomization
from dra_infra.program.project_files import MAX_FILE_BYTES, read_yaml
from dra_infra.sources.cluster_objects import OWNED, migrate_read
from dra_infra.sources.files import NO_VERSION, SourceObject, SourceText, written_twice
from dra_infra.sources.kustomization_patches import patches_in

_ABOVE: Final = 8
"""Folders above a file whose kustomizations are looked at, and no folder above the one with `.git`."""

_NO_OBJECT: Final = ("yaml-not-an-object", NO_VERSION)
"""Codes of problems that documents have which are no objects by themselves."""

_OPERATIONS: Final = "JSON patch"
"""In place of a kind, for a list of operations."""

_MOST_TOLD: Final = 20
_LAST_STEPS: Final = 12
_LONGEST_PATH: Final = 4096
_KUSTOMIZE: Final = "kustomize.config.k8s.io/"

_POD_SPECS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("v1", "Pod"): ("spec",),
    ("v1", "ReplicationController"): ("spec", "template", "spec"),
    **{
        ("apps/v1", kind): ("spec", "template", "spec")
        for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
    },
    ("batch/v1", "Job"): ("spec", "template", "spec"),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}
"""Kinds whose containers API servers refuse without an image; controllers of other kinds may fill it in."""


@dataclass(frozen=True)
class Patches:
    """Files that kustomizations name as patches.

    Args:
        named: The kustomization by the path of the patch.
    """

    named: Mapping[str, str] = field(default_factory=dict)

    def of(self, file: str) -> str:
        """The kustomization that names a file as a patch; empty where none does."""
        path = Path(file)
        return self.named.get(f"{os.path.realpath(path.parent)}/{path.name}", "") if self.named else ""


def find_patches(files: Sequence[str]) -> Patches:
    """Find what the kustomizations beside and above *files* name as patches."""
    named: dict[str, str] = {}
    seen: set[str] = set()
    for folder in dict.fromkeys(Path(each).parent for each in files if each != "-"):
        for above in _folders_above(folder):
            real = os.path.realpath(above)
            if real in seen:
                continue
            seen.add(real)
            for name in FILES:
                for path in _paths_in(above / name):
                    named.setdefault(os.path.normpath(Path(real, path)), (above / name).as_posix())
    return Patches(named)


def _folders_above(folder: Path) -> Iterator[Path]:
    for number in range(_ABOVE):
        above = Path(os.path.normpath(folder.joinpath(*[os.pardir] * number)))
        yield above
        if (above / ".git").exists():
            return


def _paths_in(file: Path) -> Iterator[str]:
    try:
        manifest = read_yaml(file) if file.is_file() else {}
    except ProgramError:
        # It is told where it is read as part of the input, and kustomize does not build it.
        return
    for _, text, is_inline in patches_in(manifest):
        if not is_inline and len(text) <= _LONGEST_PATH:
            yield text


def is_part(manifest: Mapping[str, Any]) -> str:
    """Says what an object lacks that every whole one of its kind has; empty where nothing is missing."""
    version = str(manifest.get("apiVersion"))
    steps = _POD_SPECS.get((version, str(manifest.get("kind"))))
    if steps is None:
        return ""
    at = ".".join(steps)
    spec = mapping(value_at(manifest, *steps))
    if version == "apps/v1" and not value_at(manifest, "spec", "selector"):
        return "spec has no selector"
    return next(
        (f"{at}.{path} has no image" for path, each in containers_of(spec) if not each.get("image")), ""
    )


def find_repeated(sources: Sequence[SourceObject], patches: Patches) -> Iterator[Problem]:
    """A warning for each object of a file that was written before: copies that were migrated and others are not told apart.

    Where each of two has a kustomization that the other has not, they are two objects. A part of an object is no copy of it.
    """
    seen: dict[tuple[str, ObjectRef], dict[tuple[frozenset[Path], str], SourceObject]] = {}
    above = cache(lambda folder: frozenset(filter(is_kustomization, (folder, *folder.parents))))
    # What a program or a kustomization makes, and what a server names, is another object each time.
    for each in sources:
        manifest = each.manifest
        is_one = not each.is_made and manifest.get("kind") and value_at(manifest, "metadata", "name")
        if not is_one or patches.of(each.file) or is_part(manifest):
            continue
        key = group_of(manifest), ObjectRef.of(manifest).stored
        own = above(Path(each.file).parent), str(value_at(manifest, "metadata", "namespace") or "")
        former = seen.setdefault(key, {})
        if twin := next((one for other, one in former.items() if _is_copy(*own, *other)), None):
            yield written_twice(str(reference_to(manifest)), twin.start, each.start)
        former.setdefault(own, each)


def _is_copy(one: frozenset[Path], namespace: str, other: frozenset[Path], its: str) -> bool:
    """True of two objects of one identity, each with the kustomizations around it and its namespace as it is written."""
    # What has no namespace is in `default`, unless a kustomization may give it another.
    is_there = namespace == its or not (one if its else other)
    return is_there and (one <= other or other <= one)


def migrate_sources(
    sources: Sequence[SourceObject], settings: Settings, patches: Patches
) -> tuple[list[Migrated], frozenset[int]]:
    """Migrate whole objects, and tell what parts ask for, which stay as they are.

    Returns:
        What became of each, and the positions of those that nobody applies: parts, kustomizations, settings, and what
        controllers make.
    """
    parts: dict[int, str] = {}
    for index, source in enumerate(sources):
        if not source.is_made and (named_in := patches.of(source.file)):
            parts[index] = f"{named_in} names it as a patch"
        elif lacks := is_part(source.manifest):
            parts[index] = lacks
    whole = iter(
        migrate_read([each.manifest for index, each in enumerate(sources) if index not in parts], settings)
    )
    done = [
        Migrated(manifest=each.manifest, remarks=remark_on_part(_part_of(each), settings, parts[index]))
        if index in parts
        else next(whole)
        for index, each in enumerate(sources)
    ]
    has_templates = any(added.get("kind") == "ResourceClaimTemplate" for each in done for added in each.added)
    others = {*parts, *(index for index, each in enumerate(done) if _is_made_anew(each))}
    for index, source in enumerate(sources):
        if _is_kustomization(source):
            others.add(index)
            done[index] = _with_inline(done[index], source.manifest, settings)
            if has_templates:
                names = tuple(_find_new_names(source.manifest))
                done[index] = replace(done[index], remarks=(*done[index].remarks, *names))
        elif is_no_object(source.manifest):
            others.add(index)
    return done, frozenset(others)


def is_no_object(document: Mapping[str, Any]) -> bool:
    """Checks that a document says neither apiVersion nor kind, as values of charts and settings of programs do."""
    return not document.get("kind") and not document.get("apiVersion")


def title_of(source: SourceObject) -> str:
    """The name of an object in a report, or what a document is that is none."""
    if source.manifest.get("kind"):
        return str(reference_to(source.manifest))
    part = describe_document(source.manifest) or (
        "part of an object" if "spec" in source.manifest else "values of a chart"
    )
    return "kustomization" if Path(source.file).name in FILES else part


def _is_made_anew(done: Migrated) -> bool:
    return done.manifest is None and any(each.code == OWNED for each in done.remarks)


def _part_of(source: SourceObject) -> Any:
    manifest = source.manifest
    return manifest["operations"] if manifest.get("kind") == _OPERATIONS else manifest


def _is_kustomization(source: SourceObject) -> bool:
    version = source.manifest.get("apiVersion")
    return Path(source.file).name in FILES or (isinstance(version, str) and version.startswith(_KUSTOMIZE))


def _with_inline(done: Migrated, manifest: Mapping[str, Any], settings: Settings) -> Migrated:
    """The outcome of a kustomization, with that of the patches that are written in it."""
    remarks: list[Remark] = []
    budget = [MAX_NODES]
    inline = []
    for path, text, is_inline in patches_in(manifest):
        if not is_inline:
            continue
        try:
            found = [each.data for each in read_documents(text, budget=budget)]
        except RefusedYamlError:
            # A mention in it is told as one in any text.
            continue
        inline.append(path)
        for each in found:
            told = remark_on_part(each, settings, "it is a patch")
            remarks += [remark._replace(path=path) for remark in told[:1]]
    others = [each for each in done.remarks if each.path not in inline]
    return replace(done, remarks=(*others, *remarks))


def _find_new_names(manifest: Mapping[str, Any]) -> Iterator[Remark]:
    """Remarks on names that kustomize gives to claim templates and not to the pods that name them (5.5.0)."""
    for key in ("namePrefix", "nameSuffix") if not manifest.get("configurations") else ():
        if manifest.get(key):
            message = "kustomize renames claim templates by it, and not what pods call them, so that the pods would wait for ever"
            hint = "name a file in its configurations with a nameReference for ResourceClaimTemplate, as the page of this code has it"
            yield Remark(key, "decide", "names-not-followed", message, hint)


def remark_on_part(part: Any, settings: Settings, why: str) -> tuple[Remark, ...]:
    """Remarks on a patch or a part of an object, where it says anything that a migration would change.

    Args:
        part: A part of an object, or the operations of a JSON patch.
        settings: What is known of the cluster.
        why: How it is known to be a part.
    """
    paths = list(_find_resources(part))
    if not paths and isinstance(part, Mapping):
        (done,) = migrate_objects([part], settings)
        paths = [(each.path, "this") for each in done.remarks if each.outcome != "kept"][:1]
    return tuple(_left_as_it_is(path, name, why) for path, name in paths[:_MOST_TOLD])


def _left_as_it_is(path: str, name: str, why: str) -> Remark:
    message = f"{name} is left as it is, for it stands in a part of an object: {why}"
    hint = "migrate the whole object, take this out of the part, and patch the ResourceClaimTemplate where the count differs"
    return Remark(path, "decide", "patch-not-rewritten", message, hint)


def _find_resources(part: Any) -> Iterator[tuple[str, str]]:
    """Path and name of each resource of a device plugin among the limits and requests of a part."""
    stack: list[tuple[str, str, Any]] = [("", "", part)]
    if isinstance(part, list):
        stack = [
            (f"[{index}].value", *_as_written(str(each.get("path")), each.get("value")))
            for index, each in reversed(list(enumerate(part)))
            if isinstance(each, Mapping)
        ]
    while stack:
        path, holder, value = stack.pop()
        if isinstance(value, Mapping):
            for key, below in reversed(list(value.items())):
                if holder in ("limits", "requests") and is_device(key):
                    yield (f"{path}[{key}]", key)
                else:
                    stack.append((f"{path}.{key}" if path else key, key, below))
        elif isinstance(value, list):
            stack += [(f"{path}[{number}]", "", each) for number, each in reversed(list(enumerate(value)))]


def _as_written(pointer: str, value: Any) -> tuple[str, Any]:
    """The field around what a JSON pointer names, and a mapping with the value below its last step."""
    steps = [each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[-_LAST_STEPS:]]
    holder = steps[-2] if len(steps) > 1 else ""
    return holder, {steps[-1]: value}


def read_parts(problems: Sequence[Problem], patches: Patches) -> tuple[list[SourceObject], list[Problem]]:
    """Read again what is no object by itself and is named as a patch: lists of operations, and parts without a version.

    Returns:
        The parts, and the problems without those that are none for a patch.
    """
    files = dict.fromkeys(each.place.file for each in problems if each.place and each.code in _NO_OBJECT)
    found = {file: list(_read_again(file)) for file in files if patches.of(file)}
    left = [
        each
        for each in problems
        if each.code not in _NO_OBJECT or not each.place or not found.get(each.place.file)
    ]
    return [part for parts in found.values() for part in parts], left


def _read_again(file: str) -> Iterator[SourceObject]:
    with contextlib.suppress(OSError, UnicodeDecodeError, RefusedYamlError):
        with Path(file).open("rb") as opened:
            text = opened.read(MAX_FILE_BYTES).decode("utf-8-sig")
        for each in read_documents(text):
            whole = SourceText(file, text, each.first_line, whole=text)
            if isinstance(each.data, list):
                yield SourceObject({"kind": _OPERATIONS, "operations": each.data}, "", whole)
            elif isinstance(each.data, Mapping) and each.data.get("kind") and not each.data.get("apiVersion"):
                yield SourceObject(each.data, "", whole)
