"""Kinds of objects that make pods: where their pod templates are, and how many pods each makes.

The kinds of Kubernetes itself are here. Those of others have the same form, and come as data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

from dra_infra.kubernetes.api.manifests import FieldPath, find_all, mapping, mappings, name_of, value_at
from dra_infra.kubernetes.api.metadata import ObjectRef, name_kind
from dra_infra.kubernetes.api.placeholders import UNKNOWN, is_placeholder

Steps = tuple[str, ...]
"""Keys from the object down to a field. `*` stands for every item of a list or every value of a map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaimEntry:
    """One entry of `spec.resourceClaims`: a claim by name, or a template from which each pod gets its own."""

    name: str
    claim_name: str | None = None
    template_name: str | None = None


class Gang(NamedTuple):
    """Pods of an object, or of a PodGroup, that do nothing before so many of them run; None for all."""

    owner: ObjectRef
    least: int | None = None

    def beside(self, number: int) -> Gang | None:
        """The gang with so many of its pods there already; None where it needs no others."""
        left = None if self.least is None else self.least - number
        return None if left is not None and left <= 0 else self._replace(least=left)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """The pods that an object makes from one template.

    Args:
        owner: The object that holds the template, and which of its parts these pods are.
        path: Field path of the pod spec inside the owner, such as `spec.template.spec`.
        replicas: How many such pods run at once as written: replicas, a Job's parallelism, 1 for a pod. None for a
            DaemonSet, whose number is the number of nodes.
        spec: The pod spec as plain data.
        labels: The labels of the pods.
        most: How many an autoscaler of the kind's own makes of it; None where the number is fixed.
        uncounted: Paths of fields that say how many, and whose value is not known.
        malformed: Paths of fields that say how many, and hold no number of pods: a text, 1.5, -1.
        gang: The pods that these need beside them to do anything, themselves among them; None where they need none.
        unmodelled: Paths of fields by which the controller does more than to make these pods, with what it does.
        places: Where parts of a composed pod spec are in the object, such as ``{"containers[0]": "spec.container"}``;
            empty where the object holds the pod spec as one.
    """

    owner: ObjectRef
    path: str
    replicas: int | None
    spec: Mapping[str, Any] = field(hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    most: int | None = None
    uncounted: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()
    gang: Gang | None = None
    unmodelled: tuple[tuple[str, str], ...] = ()
    places: Mapping[str, str] = field(default_factory=dict, hash=False)

    def at(self, path: str) -> str:
        """Where the object has a field of the pod spec, such as ``containers[0].resources``."""
        item, dot, rest = path.partition(".")
        name, bracket, index = item.partition("[")
        if item in self.places:
            return f"{self.places[item]}{dot}{rest}"
        return f"{self.places.get(name) or f'{self.path}.{name}'}{bracket}{index}{dot}{rest}"

    @property
    def claims(self) -> tuple[PodClaimEntry, ...]:
        """The entries of `spec.resourceClaims` that are objects with a name."""
        return tuple(
            PodClaimEntry(
                name=str(entry["name"]),
                claim_name=entry.get("resourceClaimName"),
                template_name=entry.get("resourceClaimTemplateName"),
            )
            for entry in mappings(self.spec.get("resourceClaims"))
            if "name" in entry
        )


def read_steps(path: str) -> Steps:
    """Splits `spec.tasks.*.template`; an empty path is the object itself."""
    return tuple(path.split(".")) if path else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A field that says how many.

    Args:
        at: Where it is; its `*` are those of the pod template.
        default: What it counts for when it is not there.
        less: What is taken off.
        at_least: A field that it is never below, when that is there.
        at_most: A field that it is never above, when that is there.
    """

    at: Steps
    default: int = 1
    less: int = 0
    at_least: Steps = ()
    at_most: Steps = ()

    def read(self, manifest: Mapping[str, Any], stars: FieldPath) -> int:
        """The number in *manifest*; a value that is no number counts as the default."""
        value = _whole(value_at(manifest, *_bind(self.at, stars)), self.default)
        if self.at_least:
            value = max(value, _whole(value_at(manifest, *_bind(self.at_least, stars)), value))
        if self.at_most:
            value = min(value, _whole(value_at(manifest, *_bind(self.at_most, stars)), value))
        return max(value - self.less, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPart:
    """The pods that are made from one template, or from each of a list of templates.

    Args:
        path: Where the template is.
        otherwise: Where it is when there is nothing at *path*.
        is_spec: Whether a pod spec is there, without a template around it.
        composed: Fields of the pod spec with the paths that they come from, where the object holds no pod spec: all
            containers that are there, and of another field the first that is not empty. Empty where it holds one.
        name: What these pods are called among those of the object: the path of a field, `*` for the key or position that
            the last `*` of *path* stands for, or a word. Empty where the object makes pods of one kind only.
        numbers: Fields whose product is the number of pods.
        least: The same where an autoscaler decides and other fields say the fewest; empty where these say it too.
        most: The same for the most pods that an autoscaler makes; empty where the number is fixed.
        autoscaled_by: A field that is set where there is that autoscaler; empty where it is always there.
        labels: Labels that the controller gives the pods, with the path of the field that has the value.
        each_node: Whether there is one pod for every node instead.
    """

    path: Steps
    otherwise: Steps = ()
    is_spec: bool = False
    composed: tuple[tuple[str, tuple[Steps, ...]], ...] = ()
    name: Steps = ()
    numbers: tuple[Number, ...] = ()
    least: tuple[Number, ...] = ()
    most: tuple[Number, ...] = ()
    autoscaled_by: Steps = ()
    labels: tuple[tuple[str, Steps], ...] = ()
    each_node: bool = False

    def find(self, manifest: Mapping[str, Any]) -> list[tuple[FieldPath, Mapping[str, Any]]]:
        """The templates, or pod specs, with where they are."""
        found = [each for each in find_all(manifest, self.path) if isinstance(each[1], Mapping)]
        return (
            found
            if found or not self.otherwise
            else replace(self, path=self.otherwise, otherwise=()).find(manifest)
        )

    def read_spec(
        self, manifest: Mapping[str, Any], found: FieldPath, holder: Mapping[str, Any]
    ) -> tuple[Any, dict[str, str]]:
        """Return the pod spec of one of the places of `find`, and where its parts are if it is composed.

        It may be the marker of an unknown or secret value. A composed one is empty if there are no containers: then there are no pods.
        """
        if self.composed:
            return self._compose(manifest, _stars(self.path, found))
        return holder if self.is_spec else holder.get("spec"), {}

    def find_field(self, manifest: Mapping[str, Any], found: FieldPath, name: str) -> FieldPath | None:
        """Return where a field of the pod spec of one of the places of `find` is written, or would be; None if there is no place for it."""
        if not self.composed:
            return (*found, name) if self.is_spec else (*found, "spec", name)
        paths = [_bind(path, _stars(self.path, found)) for path in dict(self.composed).get(name, ())]
        return next((path for path in paths if value_at(manifest, *path)), next(iter(paths), None))

    def _compose(
        self, manifest: Mapping[str, Any], stars: FieldPath
    ) -> tuple[dict[str, Any], dict[str, str]]:
        spec: dict[str, Any] = {}
        places: dict[str, str] = {}
        for name, paths in self.composed:
            for at in (_bind(path, stars) for path in paths):
                value = value_at(manifest, *at)
                if name in _CONTAINERS and value is not None:
                    found = list(enumerate(value)) if isinstance(value, list) else [("", value)]
                    for step, item in found:
                        held = spec.setdefault(name, [])
                        places[f"{name}[{len(held)}]"] = show_steps(at if step == "" else (*at, step))
                        held.append(_read_container(item))
                elif value and name not in spec and name not in _CONTAINERS:
                    spec[name], places[name] = _without_variables(value), show_steps(at)
        if isinstance(claims := spec.get("resourceClaims"), list):
            # Controllers name the entries of lists that have no names; what they are called decides nothing here.
            spec["resourceClaims"] = [
                {"name": f"claim-{index}", **each} if isinstance(each, Mapping) else each
                for index, each in enumerate(claims)
            ]
        return (spec, places) if spec.get("containers") else ({}, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadKind:
    """A kind of objects that make pods.

    Args:
        group: API group; empty for the core group.
        kind: The kind.
        parts: Its pods.
        version: The only version that is meant; empty for all.
        gang: A field that makes its pods a gang where it is set; empty where they always are one, None where they never are.
        gang_of: A field that says how many of them it needs; all where it is not there.
        unmodelled: Fields by which its controller does more than to make pods, with what it does. A step of a path may
            be the whole name of an annotation.
        on_change: What becomes of its pods when a template changes, as the rest of a sentence that starts with the object;
            empty where that is not known.
        keeps_pods: The same of a kind whose running pods stay as they are.
        anew: Whether it is deleted and created anew to have other pods.
        changed_by: Other fields whose change counts as one of a template, each with what it is when it is not there.
    """

    group: str
    kind: str
    parts: tuple[PodPart, ...]
    version: str = ""
    gang: Steps | None = None
    gang_of: Steps = ()
    unmodelled: tuple[tuple[Steps, str], ...] = ()
    on_change: str = ""
    keeps_pods: str = ""
    anew: bool = False
    changed_by: tuple[tuple[Steps, Any], ...] = field(default=(), hash=False)

    def find_changed_by(self, manifest: Mapping[str, Any]) -> list[Any]:
        """The values of the fields of `changed_by`."""
        return [
            otherwise if value is None else value
            for path, otherwise in self.changed_by
            for _, value in find_all(manifest, path)
        ]

    def find_holders(self, manifest: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Lists what stands in the place of each pod spec, with its path; composed pod specs stand nowhere."""
        return [
            (show_steps(found), holder)
            if part.is_spec
            else (show_steps((*found, "spec")), holder.get("spec"))
            for part in self.parts
            if not part.composed
            for found, holder in part.find(manifest)
        ]

    def find_set(self, manifest: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        """The fields of `unmodelled` that are set, with what the controller does."""
        found = ((each, why) for path, why in self.unmodelled for each in find_all(manifest, path))
        return tuple((show_steps(at), why) for (at, value), why in found if value)

    def makes_pods(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether an object of this kind has a pod template, without reading it further."""
        return any(
            isinstance(spec, Mapping) and not (part.composed and not spec)
            for part in self.parts
            for found, holder in part.find(manifest)
            for spec in part.read_spec(manifest, found, holder)[:1]
        )

    def find_pod_templates(self, manifest: Mapping[str, Any]) -> Iterator[PodTemplate]:
        """The pod templates of an object of this kind, with the number of their pods."""
        namespace = str(value_at(manifest, "metadata", "namespace") or "")
        whole = ObjectRef(name_kind(self.kind, self.group), name_of(manifest), namespace)
        least = max(_whole(value_at(manifest, *self.gang_of), 0), 0)
        is_gang = self.gang is not None and value_at(manifest, *self.gang)
        unmodelled = self.find_set(manifest)
        for part in self.parts:
            for found, holder in part.find(manifest):
                stars = _stars(part.path, found)
                spec, places = part.read_spec(manifest, found, holder)
                # Any part may be a placeholder instead of a mapping.
                if not isinstance(spec, Mapping) or (part.composed and not spec):
                    continue
                written = {} if part.is_spec else mapping(mapping(holder.get("metadata")).get("labels"))
                scales = part.most and (not part.autoscaled_by or value_at(manifest, *part.autoscaled_by))
                numbers = part.least if scales and part.least else part.numbers
                counted = (*numbers, *(part.most if scales else ()))
                yield PodTemplate(
                    owner=replace(whole, part=_name(part, manifest, stars)),
                    path=show_steps(found if part.is_spec or part.composed else (*found, "spec")),
                    replicas=None if part.each_node else _product(numbers, manifest, stars),
                    most=_product(part.most, manifest, stars) if scales else None,
                    spec=spec,
                    labels={str(key): str(value) for key, value in written.items()}
                    | _labels(part, manifest, stars),
                    uncounted=tuple(
                        show_steps(at)
                        for each in counted
                        if is_placeholder(value_at(manifest, *(at := _bind(each.at, stars))))
                    ),
                    malformed=tuple(
                        show_steps(at)
                        for each in counted
                        for path in (each.at, each.at_most)
                        if path and path[-1] in _COUNTS
                        if not _is_count(value_at(manifest, *(at := _bind(path, stars))))
                    ),
                    gang=Gang(whole, least or None) if is_gang else None,
                    unmodelled=unmodelled,
                    places=places,
                )


class WorkloadKinds:
    """The known kinds of objects that make pods.

    Args:
        kinds: Later ones come before earlier ones of the same group and kind.
    """

    def __init__(self, kinds: Iterable[WorkloadKind]) -> None:
        self.kinds: Final = {(each.group, each.kind): each for each in kinds}

    def with_kinds(self, kinds: Iterable[WorkloadKind]) -> Self:
        """These, and others that come before them."""
        return self.__class__((*self.kinds.values(), *kinds))

    def find(self, manifest: Mapping[str, Any]) -> WorkloadKind | None:
        """The kind of *manifest*, if it is one of these."""
        group, _, version = str(manifest.get("apiVersion") or "").rpartition("/")
        found = self.kinds.get((group, str(manifest.get("kind") or "")))
        return found if found is not None and found.version in ("", version) else None

    def makes_pods(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether *manifest* is of one of these kinds and has a pod template."""
        kind = self.find(manifest)
        return kind is not None and kind.makes_pods(manifest)

    def find_pod_templates(self, manifest: Mapping[str, Any]) -> Iterator[PodTemplate]:
        """The pod templates of *manifest*, if its kind carries any."""
        kind = self.find(manifest)
        return iter(()) if kind is None else kind.find_pod_templates(manifest)


SUSPENDED: Final = "no pods until it is resumed; they are placed as if it were"
"""Words for a field that suspends an object."""


# manageReplicas in pkg/controller/replicaset/replica_set.go, and syncCronJob in pkg/controller/cronjob/cronjob_controllerv2.go.
_KEPT_JOBS: Final = "keeps the Jobs that run as they are; those that it starts from then on have the new pods"
_KEPT: Final = "keeps its running pods as they are; those that it makes from then on are new ones"
_KEEPING: Final = {"CronJob": _KEPT_JOBS, "ReplicaSet": _KEPT, "ReplicationController": _KEPT}


def _of_kubernetes(
    group: str, kind: str, path: str, *numbers: Number, each_node: bool = False
) -> WorkloadKind:
    parts = (PodPart(path=read_steps(path), numbers=numbers, each_node=each_node),)
    unmodelled = ((("spec", "suspend"), SUSPENDED),) if group == "batch" else ()
    kept = _KEEPING.get(kind, "")
    anew = kind in ("Job", "Pod")
    return WorkloadKind(
        group=group, kind=kind, version="v1", parts=parts, unmodelled=unmodelled, keeps_pods=kept, anew=anew
    )


_REPLICAS: Final = Number(at=("spec", "replicas"))


def _jobs(*above: str) -> Number:
    # A Job runs no more pods than it has left to complete: `manageJob` in pkg/controller/job/job_controller.go.
    return Number(at=(*above, "spec", "parallelism"), at_most=(*above, "spec", "completions"))


BUILT_IN_KINDS: Final = WorkloadKinds(
    (
        _of_kubernetes("", "Pod", ""),
        _of_kubernetes("", "PodTemplate", "template"),
        _of_kubernetes("", "ReplicationController", "spec.template", _REPLICAS),
        _of_kubernetes("apps", "Deployment", "spec.template", _REPLICAS),
        _of_kubernetes("apps", "ReplicaSet", "spec.template", _REPLICAS),
        _of_kubernetes("apps", "StatefulSet", "spec.template", _REPLICAS),
        _of_kubernetes("apps", "DaemonSet", "spec.template", each_node=True),
        _of_kubernetes("batch", "Job", "spec.template", _jobs()),
        _of_kubernetes("batch", "CronJob", "spec.jobTemplate.spec.template", _jobs("spec", "jobTemplate")),
    )
)
"""The kinds of Kubernetes itself."""


_CONTAINERS: Final = ("containers", "initContainers")

_OF_A_CONTAINER: Final = ("name", "image", "command", "args", "env", "envFrom", "resources", "restartPolicy")
"""Fields of a container that are read out of what a composed pod spec has one from."""


def _read_container(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    container = {name: value[name] for name in _OF_A_CONTAINER if name in value}
    if "resources" in container:
        container["resources"] = _without_variables(container["resources"])
    return container


def _without_variables(value: Any) -> Any:
    """A value whose texts with `{{ }}` are not known: the controller fills them in for each pod."""
    if isinstance(value, Mapping):
        return {key: _without_variables(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_variables(each) for each in value]
    return UNKNOWN if isinstance(value, str) and "{{" in value else value


def _stars(path: Steps, found: FieldPath) -> FieldPath:
    """Returns what each `*` of a path stands for at one place that was found."""
    return tuple(at for step, at in zip(path, found, strict=False) if step == "*")


def _bind(path: Steps, stars: FieldPath) -> FieldPath:
    """A path with what its `*` stand for."""
    left = iter(stars)
    return tuple(next(left, step) if step == "*" else step for step in path)


_COUNTS: Final = ("completions", "parallelism", "replicas")
"""Fields that are of type int32 in every kind that has them; others may hold more than numbers."""


def _is_count(value: Any) -> bool:
    """True for a number of pods that a server takes, for nothing, and for what is not known."""
    if value is None or is_placeholder(value):
        return True
    is_whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1
    return is_whole and 0 <= value < 2**31


def _whole(value: Any, otherwise: int) -> int:
    # YAML knows true and false, which Python counts as numbers.
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else otherwise


def _product(numbers: Iterable[Number], manifest: Mapping[str, Any], stars: FieldPath) -> int:
    return math.prod(each.read(manifest, stars) for each in numbers)


def _name(part: PodPart, manifest: Mapping[str, Any], stars: FieldPath) -> str:
    if part.name == ("*",):
        return str(stars[-1]) if stars else ""
    if len(part.name) > 1:
        return str(value_at(manifest, *_bind(part.name, stars)) or UNKNOWN)
    return part.name[0] if part.name else ""


def _labels(part: PodPart, manifest: Mapping[str, Any], stars: FieldPath) -> dict[str, str]:
    found = ((key, value_at(manifest, *_bind(path, stars))) for key, path in part.labels)
    return {key: value for key, value in found if isinstance(value, str)}


def show_steps(path: FieldPath) -> str:
    """Keys and positions as one path: `spec.tasks[0].template`."""
    shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return shown.removeprefix(".")
