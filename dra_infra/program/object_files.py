"""A program's objects as files of a folder that a GitOps controller applies: one file for each object, and a `kustomization.yaml`.

The name of a file follows from kind, group, namespace and name of its object alone, so a change of one object changes one file.
No file has a value that is secret or only known after `pulumi up`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from dra_infra.documents.yaml import write_manifest
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import group_of, mapping
from dra_infra.output.secrets import SecretMask
from dra_infra.program.program_yaml import why_incomplete
from dra_infra.program_objects import ProgramObject

KUSTOMIZATION: Final = "kustomization.yaml"

Controller = Literal["argocd", "flux"]
CONTROLLERS: Final[tuple[str, ...]] = get_args(Controller)

FILE_NAME: Final = re.compile(
    r"kustomization\.yaml|(?:[a-z0-9_][a-z0-9_-]{0,199}/)?[a-z0-9_][a-z0-9_.]*-[a-z0-9_.-]{1,240}\.yaml"
)
"""Paths that `lay_out` makes; a record with another one was not written by us."""

_LONGEST: Final = 120
"""Signs of a part of a file name. Names of objects have up to 253, and most file systems take 255 bytes with the rest."""

_NEEDED_BY_PODS: Final[frozenset[tuple[str, str]]] = frozenset(
    {
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "ResourceClaim"),
        ("resource.k8s.io", "ResourceClaimTemplate"),
        ("resource.nvidia.com", "ComputeDomain"),
    }
)
"""Objects that pods need while they are made. While a workload rolls over, its old pods may still be made anew."""

_ARGO_OPTIONS: Final = "argocd.argoproj.io/sync-options"
"""Of it gitops-engine reads PruneLast from the live object that is pruned (pkg/sync/sync_context.go, getSyncTasks)."""

_FLUX_PRUNE: Final = "kustomize.toolkit.fluxcd.io/prune"
"""Flux prunes before it waits for health (reconcile in internal/controller/kustomization_controller.go), so last is not to be had."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectFiles:
    """The files of a folder.

    Args:
        files: Text by path in the folder, sorted, with that of the kustomization.
        problems: Objects that have no file, with the reason.
        unwritten: Paths of the files that these objects would have.
    """

    files: Mapping[str, str]
    problems: tuple[Problem, ...]
    unwritten: frozenset[str]


def lay_out(
    objects: Iterable[ProgramObject],
    *,
    controller: Controller | None = None,
    secrets: Iterable[str] = (),
    kept: Iterable[str] = (),
) -> ObjectFiles:
    """Return the files of a program's objects.

    Args:
        objects: The objects.
        controller: The controller that prunes them; None writes no annotation for one.
        secrets: Texts that no file may have.
        kept: Paths of files from earlier. One of an object that cannot be written now stays, and stays in the kustomization: without it
            the controller would delete the object.
    """
    mask = SecretMask(secrets)
    files: dict[str, str] = {}
    problems: list[Problem] = []
    unwritten: set[str] = set()
    for each in objects:
        path = path_of(each.manifest)
        text, reason = "", _why_not_written(each)
        if not reason:
            text = write_manifest(annotate(each.manifest, controller))
            if mask.text(text) != text:
                reason = "it has a secret of the stack or of the environment in it"
            elif path in files:
                reason = f"another object has the file {path}"
        if reason:
            unwritten.add(path)
            problems.append(_not_written(each, reason))
        else:
            files[path] = text
    listed = sorted({*files, *unwritten.intersection(kept)})
    files[KUSTOMIZATION] = _write_kustomization(listed)
    return ObjectFiles(
        files=dict(sorted(files.items())), problems=tuple(problems), unwritten=frozenset(unwritten)
    )


def path_of(manifest: Mapping[str, Any]) -> str:
    """Return the path of an object's file: `deviceclass-h100.yaml`, or `ml/job-train.yaml` for one with a namespace.

    Kinds of groups that are not Kubernetes' own come with their group, as `ml/service.serving.knative.dev-web.yaml`. Signs that some
    file system does not take, and capital letters, are written as their number: `clusterrole-system_3anode.yaml`.
    """
    metadata = mapping(manifest.get("metadata"))
    group = group_of(manifest)
    kind = _plain(str(manifest.get("kind") or "").lower(), dots=False)
    own = "." not in group or group.endswith(".k8s.io")
    named = kind if own else f"{kind}.{_plain(group)}"
    name = f"{named}-{_plain(str(metadata.get('name') or ''))}.yaml"
    namespace = str(metadata.get("namespace") or "")
    return f"{_plain(namespace, dots=False)}/{name}" if namespace else name


def annotate(manifest: Mapping[str, Any], controller: Controller | None) -> Mapping[str, Any]:
    """Return an object with the annotation by which *controller* keeps it while pods may need it; what the user wrote stays."""
    if controller is None or (group_of(manifest), manifest.get("kind")) not in _NEEDED_BY_PODS:
        return manifest
    metadata = mapping(manifest.get("metadata"))
    annotations = dict(mapping(metadata.get("annotations")))
    if controller == "flux":
        annotations.setdefault(_FLUX_PRUNE, "disabled")
    else:
        options = [each.strip() for each in str(annotations.get(_ARGO_OPTIONS) or "").split(",")]
        if not any(each.partition("=")[0] in ("Prune", "PruneLast") for each in options):
            annotations[_ARGO_OPTIONS] = ",".join([*filter(None, options), "PruneLast=true"])
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def digest_of(content: bytes) -> str:
    """Return the digest of a file as records have it, the same whatever line ends git checked it out with."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def _plain(text: str, *, dots: bool = True) -> str:
    allowed = r"[^a-z0-9.-]" if dots else r"[^a-z0-9-]"
    plain = re.sub(allowed, lambda sign: f"_{ord(sign[0]):x}", text)
    if len(plain) <= _LONGEST:
        return plain
    return f"{plain[: _LONGEST - 17]}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _why_not_written(item: ProgramObject) -> str:
    if reasons := why_incomplete(item.manifest):
        return " and ".join(reasons)
    if not item.has_known_name:
        return "the server makes its name up, and a controller needs one"
    manifest = item.manifest
    is_secret = manifest.get("kind") == "Secret" and not group_of(manifest)
    if is_secret and (manifest.get("data") or manifest.get("stringData")):
        return "values of a Secret do not belong into a repository"
    return ""


def _not_written(item: ProgramObject, reason: str) -> Problem:
    return Problem(
        path=str(item.ref),
        code="object-not-written",
        message=f"no file is written for it: {reason}",
        hint="make it by `pulumi up` or an operator for secrets, or leave it out of this program",
        place=item.place,
    )


def _write_kustomization(paths: Sequence[str]) -> str:
    return "".join(_kustomization_lines(paths))


def _kustomization_lines(paths: Sequence[str]) -> Iterator[str]:
    yield "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
    yield "resources:\n" if paths else "resources: []\n"
    # Paths have letters, digits and dashes, and begin with a letter or an underscore: no YAML reads one as another type.
    yield from (f"- {path}\n" for path in paths)
