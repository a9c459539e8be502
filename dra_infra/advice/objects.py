"""All rules over a set of objects, on every release of the target.

A program's objects have markers (`dra_infra.markers`) in the place of values that are secret or only known
after `pulumi up`. A marker breaks no rule. As a text it may be any text, so findings about it are left out; as a number or a
mapping it may be any of those, so the field is left out.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dra_infra.advice.claims import Context, advise_claim
from dra_infra.advice.container_claims import advise_containers
from dra_infra.advice.core_objects import check_core_fields, check_kind, check_pod_fields
from dra_infra.advice.exported import advise_exported
from dra_infra.advice.made_up_names import WrittenNames
from dra_infra.advice.problems import MIGRATE, problem_of, problems_of, unreadable, without_old_shape
from dra_infra.advice.queues import advise_queued
from dra_infra.advice.references import (
    REFERENCES,
    Checked,
    KnownObjects,
    advise_pods,
    check_extended_resource,
    check_namespace,
    names_class,
)
from dra_infra.advice.selectors import check_selectors
from dra_infra.advice.slices import advise_slice
from dra_infra.advice.taint_rules import advise_taint_rule
from dra_infra.advice.tenants import advise_tenants
from dra_infra.advice.train_jobs import advise_train_jobs
from dra_infra.catalog.drivers import Pins, newest, read_pins
from dra_infra.catalog.workload_kinds import find_pod_templates, workload_kinds
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import (
    BUILT_IN_KINDS,
    CLAIM_KINDS,
    SUPPORTED_MINORS,
    DeviceClass,
    DeviceClassSpec,
    DeviceTaintRule,
    ObjectRef,
    PodTemplate,
    Release,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    can_decode,
    decode,
    decode_pod_claims,
    expressions_of,
    has_claim_parts,
    is_placeholder,
    json_type,
    kind_of,
    mapping,
    mappings,
    value_at,
)
from dra_infra.kubernetes.apiserver import (
    ADMIN_LABEL,
    FieldError,
    Judged,
    check_pod_claims,
    environment_of,
    is_core_kind,
    judge,
)
from dra_infra.output.wording import nearest
from dra_infra.process import collector_paused
from dra_infra.target import NEWEST_DRIVER, ClusterTarget

if TYPE_CHECKING:
    from dra_infra.fleet import Fleet

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def is_told(error: FieldError) -> bool:
    """True when *error* is about a value that is known."""
    return not is_placeholder(error.value)


def without_markers(manifest: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any] | None:
    """A copy of *manifest* without the markers at *paths*; None when a value there is no marker."""
    stripped = copy.deepcopy(dict(manifest))
    for path in paths:
        *steps, last = (
            int(index) if index else name
            for name, index in (found.groups() for found in _STEP.finditer(path))
        )
        holder: Any = stripped
        try:
            for step in steps:
                holder = holder[step]
            if not is_placeholder(holder[last]):
                return None
            holder[last] = None
        except (KeyError, IndexError, TypeError):
            return None
    return stripped


GROUP: Final = "resource.k8s.io"
JUDGED: Final = (
    "DeviceClass",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "DeviceTaintRule",
)
"""Kinds of the group whose rules are all here."""

KINDS: Final = (*JUDGED, "ResourcePoolStatusRequest")


def validate(
    objects: Iterable[Mapping[str, Any]], target: ClusterTarget | None = None, *, driver: str = NEWEST_DRIVER
) -> tuple[Problem, ...]:
    """Everything that an API server of *target* refuses about *objects*, and what it should have warned about.

    Args:
        objects: Manifests as plain JSON data; objects of other groups pass, but the claim parts of pods are checked.
        target: The cluster; None checks on the oldest and the newest supported minor.
        driver: Release line of NVIDIA's driver whose attributes count, such as `25.8`.

    Returns:
        Problems with paths like `ResourceClaimTemplate ml/trainer.spec.spec.devices.requests[0].name`.

    Raises:
        InvalidSpecError: When *target* itself is wrong.
    """
    given = tuple(objects)
    with collector_paused():
        return tuple(
            problem.below(str(reference_to(given[index])))
            for index, problem in check_objects(given, target or ClusterTarget(), driver=driver)
        )


def check_object(manifest: Mapping[str, Any], target: ClusterTarget) -> tuple[Problem, ...]:
    """The problems that an API server of *target* finds in one object, and advice on it, but for what it refers to."""
    found = check_objects([manifest], target)
    return tuple(problem for _, problem in found if problem.code not in REFERENCES)


def check_objects(
    objects: Sequence[Mapping[str, Any]],
    target: ClusterTarget,
    *,
    driver: str = NEWEST_DRIVER,
    classes: Iterable[DeviceClass] = (),
    targets: Mapping[int, ClusterTarget] = MappingProxyType({}),
    beside: Iterable[Mapping[str, Any]] = (),
) -> Iterator[tuple[int, Problem]]:
    """The same as pairs of an object's position and a problem whose path begins inside the object.

    Args:
        objects: Manifests as plain JSON data.
        target: The cluster.
        targets: Another cluster for some of the objects, by position.
        driver: Release line of NVIDIA's driver whose attributes count.
        classes: DeviceClasses that exist beside those in *objects*, such as those of a fleet.
        beside: Namespaces, classes, queues, quotas, claims and claim templates that exist beside those in *objects*; they are not
            judged.

    Raises:
        InvalidSpecError: When *target* or *driver* is wrong.
    """
    pins = read_pins(driver)
    names = WrittenNames(objects)
    found = _check_objects(names.manifests, target, targets, pins, classes, tuple(beside))
    yield from ((index, names.shown(problem)) for index, problem in found)


def _check_objects(
    objects: Sequence[Mapping[str, Any]],
    target: ClusterTarget,
    targets: Mapping[int, ClusterTarget],
    pins: Pins,
    classes: Iterable[DeviceClass],
    beside: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[int, Problem]]:
    # The label of a Namespace in the input is what it will be.
    namespaces = _namespace_labels([*beside, *objects])
    releases_of_target = target.releases
    own = _classes([*beside, *objects], releases_of_target[-1])
    # That a namespace is missing is told by the input alone, which has all of them or none.
    claims = [each for each in beside if each.get("kind") in CLAIM_KINDS]
    known_objects = KnownObjects.gather([*claims, *objects], classes=(*classes, *own))
    if any(manifest.get("kind") == "ComputeDomain" for manifest in objects):
        # Few inputs hold one, and the module takes 0.1 s to load.
        from dra_infra.advice.drivers import advise_compute_domains

        yield from advise_compute_domains(objects, pins)
    yield from advise_train_jobs(objects)
    yield from advise_queued(objects, beside)
    yield from advise_tenants(objects, beside)
    # One object after the other, so that what is known of its expressions is still at hand for the advice.
    for index, manifest in enumerate(objects):
        yield from ((index, problem) for problem in advise_exported(manifest))
        chosen = targets.get(index, target)
        releases = releases_of_target if chosen is target else chosen.releases
        if not _is_of_group(manifest):
            for problem in _check_holder(manifest, releases, known_objects, pins):
                yield index, problem
            continue
        findings = [_check_object(manifest, release, namespaces, chosen) for release in releases]
        told = list(zip(releases, (each.problems for each in findings), strict=True))
        for problem in _agreed(told):
            yield index, problem
        for problem in _advise_record(findings[-1].record, manifest, releases[-1], known_objects, pins):
            yield index, problem


def _advise_record(
    record: object, manifest: Mapping[str, Any], release: Release, known_objects: KnownObjects, pins: Pins
) -> Iterator[Problem]:
    if isinstance(record, DeviceTaintRule):
        yield from advise_taint_rule(record, Context(environment_of(release), known_objects, pins))
    elif isinstance(record, ResourceSlice):
        yield from advise_slice(record)
    elif isinstance(record, Checked):
        flat = str(manifest.get("apiVersion")).endswith("/v1beta1")
        yield from advise(record, release, known_objects, pins=pins, flat=flat)


def advise(
    record: Checked,
    release: Release,
    known_objects: KnownObjects,
    *,
    pins: Pins | None = None,
    flat: bool = False,
) -> Iterator[Problem]:
    """Advice on one object that the server accepts; paths are those of the object.

    Args:
        record: A DeviceClass, ResourceClaim or ResourceClaimTemplate.
        release: The API server, which decides what expressions mean.
        known_objects: What else there is.
        pins: The driver releases that are meant, the newest unless given.
        flat: Whether requests are written without `exactly`, as in v1beta1.
    """
    for problem in _advise(record, release, known_objects, pins):
        yield replace(problem, path=problem.path.replace("].exactly.", "].", 1)) if flat else problem


def _advise(
    record: Checked, release: Release, known_objects: KnownObjects, pins: Pins | None
) -> Iterator[Problem]:
    context = Context(environment_of(release), known_objects, pins or newest())
    if isinstance(record, DeviceClass):
        yield from _advise_class(record, context)
        return
    finding = check_namespace(record.metadata.namespace or "", known_objects)
    if finding is not None:
        yield finding.at("metadata.namespace")
    if isinstance(record, ResourceClaim):
        claim = record.spec.devices
        path = "spec.devices"
    else:
        claim = record.spec.spec.devices
        path = "spec.spec.devices"
    yield from advise_claim(claim, path, context)
    yield from _advise_configs(record, context)


def _advise_class(record: DeviceClass, context: Context) -> Iterator[Problem]:
    selectors = record.spec.selectors or ()
    places = [index for index, each in enumerate(selectors) if each.cel is not None]
    found, _ = check_selectors(expressions_of(selectors), (), context.pins, context.environment)
    for index, finding in found:
        yield finding.at(f"spec.selectors[{places[index]}].cel.expression")
    yield from _advise_configs(record, context)
    twice = check_extended_resource(record, context.known_objects, context.pins)
    if twice is not None:
        yield twice.at("spec.extendedResourceName")


def _advise_configs(record: Checked, context: Context) -> Iterator[Problem]:
    spec = record.spec.spec if isinstance(record, ResourceClaimTemplate) else record.spec
    if not (spec.config if isinstance(spec, DeviceClassSpec) else spec.devices.config):
        return
    # Few objects have one, and what knows the drivers' parameters takes 0.1 s to load.
    from dra_infra.advice.drivers import advise_configs

    yield from advise_configs(record, context)


def check_on_fleet(
    objects: Sequence[Mapping[str, Any]], fleet: Fleet, target: ClusterTarget, *, driver: str = NEWEST_DRIVER
) -> Iterator[tuple[int | None, Problem]]:
    """Advice on *objects* for the hardware that they are meant for; attributes of the release line *driver* count.

    Returns:
        Pairs of an object's position, or None for the fleet itself, and a warning.
    """
    # Loaded where a fleet is named: `validate` starts 0.05 s faster without the evaluator of expressions.
    from dra_infra.advice.fleets import advise_on_fleet

    release = target.releases[-1]
    known_objects = KnownObjects.gather(objects, classes=(*fleet.classes, *_classes(objects, release)))
    pins = read_pins(driver)
    yield from advise_on_fleet(objects, fleet, release=release, pins=pins, known_objects=known_objects)


def _classes(objects: Sequence[Mapping[str, Any]], release: Release) -> Iterator[DeviceClass]:
    """The DeviceClasses among *objects* that can be read at all."""
    for manifest in objects:
        if manifest.get("kind") == "DeviceClass" and can_decode(manifest):
            record = decode(manifest, minor=release.number).record
            if isinstance(record, DeviceClass):
                yield record


def reference_to(manifest: Mapping[str, Any]) -> ObjectRef:
    """Return the object as problems and plans name it: with words for what it lacks, and its `generateName` as it is written."""
    metadata = mapping(manifest.get("metadata"))
    name = str(metadata.get("name") or metadata.get("generateName") or "without name")
    return ObjectRef(kind_of(manifest) or "object", name, str(metadata.get("namespace") or ""))


def has_rules(manifest: Mapping[str, Any]) -> bool:
    """Return whether rules judge the values of an object: it is of the group, or makes pods."""
    return _is_of_group(manifest) or workload_kinds().makes_pods(manifest)


def is_checked(manifest: Mapping[str, Any], target: ClusterTarget) -> bool:
    """Return whether anything of an object is checked: its values, or only the fields of a kind of Kubernetes itself."""
    return has_rules(manifest) or is_core_kind(manifest, [release.minor for release in target.releases])


def _is_of_group(manifest: Mapping[str, Any]) -> bool:
    return str(manifest.get("apiVersion") or "").rpartition("/")[0] == GROUP


@dataclass(frozen=True, slots=True)
class _Findings:
    """The problems that one release finds in one object, and its record when it can be read."""

    problems: tuple[Problem, ...] = ()
    record: Judged | None = None


def _check_object(
    manifest: Mapping[str, Any],
    release: Release,
    namespaces: Mapping[str, Mapping[str, str]],
    target: ClusterTarget,
) -> _Findings:
    version = str(manifest.get("apiVersion")).rpartition("/")[2]
    kind = str(manifest.get("kind") or "")
    if kind not in KINDS:
        return _Findings((_unknown_kind(kind),))
    if not release.knows(kind, version):
        return _Findings((_unknown_version(kind, version, release, manifest),))
    unserved = () if version in target.serves else (_not_served(kind, version, release, manifest),)
    if kind not in JUDGED:
        faults = (problem for _, problems in check_core_fields(manifest, [release]) for problem in problems)
        return _Findings((*unserved, *faults))
    labels = namespaces.get(str(value_at(manifest, "metadata", "namespace") or "default"))
    verdict = judge(manifest, release, namespace_labels=labels)
    if verdict.type_errors:
        stripped = without_markers(manifest, (path for path, _ in verdict.type_errors))
        verdict = judge(stripped, release, namespace_labels=labels) if stripped else verdict
    if not all(map(is_told, verdict.errors)):
        verdict = replace(verdict, errors=tuple(filter(is_told, verdict.errors)))
    if labels is None:
        unserved = (*unserved, *advise_admin_access(manifest, release))
    return _Findings((*unserved, *problems_of(verdict, release, manifest)), verdict.record)


def advise_admin_access(manifest: Mapping[str, Any], release: Release) -> Iterator[Problem]:
    """Yield that a claim asks for admin access in a namespace that nothing is known of: code `admin-access-namespace`."""
    kind = manifest.get("kind")
    if kind not in CLAIM_KINDS or "DRAAdminAccess" not in release.gates:
        return
    steps = ("spec", "spec") if kind == "ResourceClaimTemplate" else ("spec",)
    for index, request in enumerate(mappings(value_at(manifest, *steps, "devices", "requests"))):
        is_flat = request.get("exactly") is None
        if (request if is_flat else mapping(request["exactly"])).get("adminAccess") is True:
            namespace = ObjectRef.of(manifest).namespace or "default"
            yield Problem(
                path=f"{'.'.join(steps)}.devices.requests[{index}]{'' if is_flat else '.exactly'}.adminAccess",
                code="admin-access-namespace",
                message=f"the server refuses it unless Namespace {namespace}, which is not in the input, has the label for it",
                hint=f"kubectl label namespace {namespace} {ADMIN_LABEL}=true, or add the Namespace with this label to the input",
                severity="warning",
            )
            return


def _check_holder(
    manifest: Mapping[str, Any], releases: Sequence[Release], known_objects: KnownObjects, pins: Pins
) -> Iterator[Problem]:
    """Problems of an object of another group, and advice on the pods that it makes."""
    templates = list(find_pod_templates(manifest))
    worded = [*_check_counts(manifest, templates, releases[-1])] if BUILT_IN_KINDS.find(manifest) else []
    if any(has_claim_parts(each.spec) for each in templates):
        worded += _agreed([(release, tuple(_check_pods(manifest, release))) for release in releases])
    yield from worded
    # What has the server's own words is not said again.
    known = {(each.path, each.code) for each in worded}
    # A server refuses such an item, or the field of it that another item has too, by whatever way it comes.
    refused = {item for path, _ in known for item in (path, path.rpartition(".")[0])}
    for problem in _check_fields(manifest, templates, releases):
        is_refused_anyway = problem.code == "duplicate-item" and problem.path in refused
        if (problem.path, problem.code) not in known and not is_refused_anyway:
            yield problem
    if not (
        known_objects.namespaces
        or any(has_claim_parts(each.spec) or names_class(each.spec) for each in templates)
    ):
        return
    for template in templates:
        yield from advise_pods(template, known_objects, pins=pins)
        yield from advise_containers(template, known_objects)


def _check_fields(
    manifest: Mapping[str, Any], templates: Sequence[PodTemplate], releases: Sequence[Release]
) -> Iterator[Problem]:
    """Fields that servers do not know or cannot read, of their own kinds and of the pods of others."""
    if faults := check_core_fields(manifest, releases):
        yield from _agreed(faults)
    yield from _agreed([(release, tuple(check_kind(manifest, release))) for release in releases])
    if not BUILT_IN_KINDS.find(manifest):
        yield from check_pod_fields(templates, manifest, releases[-1])


def _check_counts(
    manifest: Mapping[str, Any], templates: Iterable[PodTemplate], release: Release
) -> Iterator[Problem]:
    """Numbers of pods that the server refuses, in its words; kinds of others have schemas of their own."""
    for path in dict.fromkeys(at for each in templates for at in each.malformed):
        value = value_at(manifest, *path.split("."))
        name = path.rpartition(".")[2]
        if type(value) is int and -(2**31) <= value < 0:
            told = f"Invalid value: {value}: must be greater than or equal to 0"
            yield Problem(path=path, code="object-malformed", message=told, hint=f"write {name}: 0 or more")
            continue
        struct = f"{manifest['kind'] if name == 'replicas' else 'Job'}Spec"
        shown = json_type(value)
        shown += f" {json.dumps(value)}" if shown == "number" else ""
        told = f"json: cannot unmarshal {shown} into Go struct field {struct}.{path} of type int32"
        yield from unreadable([(path, told)], (), release, manifest)


def _check_pods(manifest: Mapping[str, Any], release: Release) -> Iterator[Problem]:
    decoded = decode_pod_claims(manifest, minor=release.number, kinds=workload_kinds())
    if decoded is None:
        return
    yield from unreadable(decoded.type_errors, decoded.unknown_fields, release, manifest)
    for pod in decoded.pods:
        for error in filter(is_told, check_pod_claims(pod)):
            yield without_old_shape(problem_of(error), manifest)


def _agreed(found: Sequence[tuple[Release, tuple[Problem, ...]]]) -> Iterator[Problem]:
    """Yield the problems of all releases, each once; one that not every release has says on which it holds."""
    if not any(problems for _, problems in found):
        return
    by_place: dict[tuple[str, str], list[dict[str, Problem]]] = {}
    for release, problems in found:
        here: dict[tuple[str, str], list[Problem]] = {}
        for problem in dict.fromkeys(problems):
            here.setdefault((problem.path, problem.code), []).append(problem)
        for place, members in here.items():
            _join(by_place.setdefault(place, []), release.minor, members)
    newest = found[-1][0].minor
    for holders in (each for places in by_place.values() for each in places):
        problem = holders.get(newest) or next(reversed(holders.values()))
        if len(holders) < len(found):
            if newest not in holders and _is_said_shorter(problem, found[-1][1]):
                continue
            others = [problems for release, problems in found if release.minor not in holders]
            is_said_longer = all(
                any(each.code == problem.code and each.path.startswith(problem.path) for each in problems)
                for problems in others
            )
            if "Kubernetes" not in problem.message and not is_said_longer:
                problem = replace(problem, message=f"on Kubernetes {', '.join(holders)}: {problem.message}")
        yield problem


def _join(known: list[dict[str, Problem]], minor: str, members: Sequence[Problem]) -> None:
    """Add one release's problems of a path and code to those of earlier releases.

    A server may have several errors of one code at one path, such as one for each bad key of a map, so that only their
    messages tell them apart. What is left on both sides in equal number is the same in other words.
    """
    rest = []
    for problem in members:
        same = (each for each in known if minor not in each)
        match = next(
            (each for each in same if any(other.message == problem.message for other in each.values())), None
        )
        if match is None:
            rest.append(problem)
        else:
            match[minor] = problem
    unmatched = [each for each in known if minor not in each]
    if len(unmatched) == len(rest):
        for holders, problem in zip(unmatched, rest, strict=True):
            holders[minor] = problem
    else:
        known.extend({minor: problem} for problem in rest)


def _is_said_shorter(problem: Problem, newer: Iterable[Problem]) -> bool:
    """True when a newer release finds the same thing at the item, or at a list whose items it no longer looks at."""
    return any(
        problem.path != each.path
        and problem.path.startswith(each.path)
        and each.code in (problem.code, "too-many-items")
        for each in newer
    )


def _namespace_labels(objects: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, str]]:
    spaces = (each for each in objects if (each.get("apiVersion"), each.get("kind")) == ("v1", "Namespace"))
    return {ObjectRef.of(each).name: mapping(value_at(each, "metadata", "labels")) for each in spaces}


def _unknown_kind(kind: str) -> Problem:
    near = nearest(kind, KINDS)
    return Problem(
        path="kind",
        code="unknown-kind",
        message=f"{kind!r} is no kind of {GROUP}",
        hint=f"did you mean {near!r}?" if near else f"it has {', '.join(KINDS)}",
    )


def _has_old_shape(manifest: Mapping[str, Any]) -> bool:
    """Return True for an object whose fields are others in v1, so that another apiVersion alone is the next error."""
    inner = value_at(manifest, "spec", "spec") if manifest.get("kind") == "ResourceClaimTemplate" else None
    spec = mapping(inner if inner is not None else manifest.get("spec"))
    requests = mappings(mapping(spec.get("devices")).get("requests"))
    return (
        "resourceClassName" in spec
        or "resourceClassName" in mapping(manifest.get("spec"))
        or any("deviceClassName" in each for each in requests)
        or manifest.get("kind") in ("ResourceClass", "PodSchedulingContext", "ResourceClaimParameters")
    )


def _unknown_version(kind: str, version: str, release: Release, manifest: Mapping[str, Any]) -> Problem:
    newest = release.newest_version(kind)
    later = (each for each in SUPPORTED_MINORS if Release(each, frozenset()).newest_version(kind))
    return Problem(
        path="apiVersion",
        code="unknown-version",
        message=f"Kubernetes {release.minor} has no {kind} in {GROUP}/{version}",
        hint=_newer_version(newest, manifest)
        if newest
        else f"leave it out: {kind} is there since Kubernetes {next(later)}",
    )


def _newer_version(version: str, manifest: Mapping[str, Any]) -> str:
    """Return the hint to write a newer version, where fields have moved with the command that moves them."""
    if _has_old_shape(manifest):
        return f"apiVersion: {GROUP}/{version} has other fields: {MIGRATE}"
    return f"write apiVersion: {GROUP}/{version}"


def _not_served(kind: str, version: str, release: Release, manifest: Mapping[str, Any]) -> Problem:
    return Problem(
        path="apiVersion",
        code="version-not-served",
        message=f"Kubernetes {release.minor} does not serve {kind} in {GROUP}/{version} unless it is told to",
        hint=_newer_version(newer, manifest)
        if (newer := release.newest_version(kind)) and newer != version
        else f"start the API server with --runtime-config={GROUP}/{version}=true",
        severity="warning",
    )
