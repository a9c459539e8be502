"""Node selectors and affinities of a pod: what selectors of its devices can say goes there, the rest stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any, Final, NamedTuple

from dra_infra.kubernetes.api import mapping, mappings, meets_node_requirement, value_at
from dra_infra.migration.device_plugin import MIG_NAME, WHOLE_GPU, DevicePlugin, mig_profile
from dra_infra.migration.node_labels import (
    CONFIG_LABEL,
    NODE_SHARES,
    SERVING,
    Meaning,
    Requirement,
    Serving,
    any_of,
    is_gpu_label,
    is_serving,
    read_requirements,
    read_serving,
    requirements_in,
    requirements_of,
    stays,
    vendor_of,
    who_sets,
)
from dra_infra.migration.outcomes import Remark
from dra_infra.selectors.selector import Selector

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_STRATEGY: Final = "nvidia.com/mig.strategy"
_VALUE: Final = re.compile("[A-Za-z0-9._-]*")
_OF_PART: Final = re.compile(rf"nvidia\.com/mig-({MIG_NAME})(\.product|\.memory)")
_Read = Callable[[Sequence[Requirement]], Meaning]


class DeviceSelection(NamedTuple):
    """The selectors of devices that the node selectors of a pod stand for.

    Args:
        selectors: Each has to be true for a device.
        profiles: MIG profiles that the labels name, or partition modes of AMD.
        fields: Fields of the pod spec after the migration, by name; None where a field goes.
        remarks: What became of each label.
        vendor: The end of the names of the classes of these devices.
    """

    selectors: tuple[Selector, ...]
    profiles: tuple[str, ...]
    fields: Mapping[str, Any]
    remarks: tuple[Remark, ...]
    vendor: str = ""

    @property
    def selector(self) -> Selector | None:
        """All selectors as one."""
        return reduce(and_, self.selectors) if self.selectors else None


def read_pod_serving(spec: Mapping[str, Any]) -> Serving:
    """Reads off the node selectors of a pod spec what one `nvidia.com/gpu` of its nodes is."""
    certain, loose = _read_all(spec)
    found = next((each.key for term in loose for each in term if is_serving(each)), "")
    if found:
        return Serving(unclear=f"{found} holds on some of the nodes that its affinity allows")
    return read_serving(certain)


def configs_named(spec: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """The labels of nodes that a pod spec selects by the plugin's configuration, for each that it names."""
    named = (each for each in _read_all(spec)[0] if each.key == CONFIG_LABEL and each.operator == "In")
    return [{CONFIG_LABEL: value} for each in named for value in each.values]


def refuse_named(spec: Mapping[str, Any]) -> Remark | None:
    """Says that a pod with `nodeName` gets no devices by claims; None for any other."""
    if not spec.get("nodeName"):
        return None
    message = (
        "nodeName takes the pod round the scheduler, which alone allocates claims: it would wait for ever"
    )
    hint = f"write nodeSelector: {{kubernetes.io/hostname: {str(spec['nodeName'])[:80]}}} for it"
    return Remark("nodeName", "decide", "node-named", message, hint)


def find_against(spec: Mapping[str, Any], plugin: DevicePlugin) -> str:
    """A label by which a pod spec selects nodes that do not serve `nvidia.com/gpu` as the plugin does; empty without one."""
    return next((each.key for each in _read_all(spec)[0] if _is_against(each, plugin)), "")


def _is_against(requirement: Requirement, plugin: DevicePlugin) -> bool:
    """True where a requirement holds on no node that serves `nvidia.com/gpu` as the plugin does, by labels of GPU feature discovery."""
    key, operator, values = requirement
    how = plugin.replicas.get(WHOLE_GPU)
    shared = None if how is None or how.renamed else how
    if operator not in ("In", "Gt", "Lt") or not values or not _is_known(requirement):
        return False
    if key == f"{WHOLE_GPU}.product":
        marks = (("-MIG-", plugin.profiles), ("-SHARED", shared))
        return any(has and not any(mark in each for each in values) for mark, has in marks)
    wanted = {} if shared is None else dict(zip(NODE_SHARES, (str(shared.number), shared.way), strict=True))
    wanted |= {_STRATEGY: "single"} if plugin.profiles else {}
    asked = {"key": key, "operator": operator, "values": list(values)}
    return key in wanted and not meets_node_requirement(asked, wanted)


def _is_known(requirement: Requirement) -> bool:
    """True where values are such that labels may have; others are variables or parts of a template, which something fills in later."""
    return all(map(_VALUE.fullmatch, requirement.values))


def _read_all(spec: Mapping[str, Any]) -> tuple[list[Requirement], list[list[Requirement]]]:
    """The requirements that nodes of a pod certainly meet, and the others by their terms."""
    nodes = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    terms = [requirements_in(each) for each in _terms(nodes)]
    loose = [requirements_in(mapping(each.get("preference"))) for each in mappings(nodes.get(_PREFERRED))]
    certain = requirements_of(mapping(spec.get("nodeSelector")))
    return ([*certain, *terms[0]], loose) if len(terms) == 1 else (certain, [*loose, *terms])


def _terms(nodes: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The terms of a node affinity of which one has to hold; an empty one holds for no node (nodeaffinity.go)."""
    terms = mappings(value_at(nodes, _REQUIRED, "nodeSelectorTerms"))
    return [each for each in terms if each.get("matchExpressions") or each.get("matchFields")]


def read_node_selection(
    spec: Mapping[str, Any],
    vendor: str,
    serving: Serving,
    unread: Collection[str] = (),
    profile: str = "",
    *,
    per_node: bool = False,
) -> DeviceSelection:
    """Reads `nodeSelector` and the node affinity of a pod spec.

    Args:
        spec: The pod spec.
        vendor: Whose devices the pod gets: labels of others stay.
        serving: What they say of one `nvidia.com/gpu`.
        unread: Labels that say nothing of the devices that the pod gets.
        profile: The MIG profile that all of them have; empty where they have none, or several.
        per_node: Whether each node that it chooses has a pod.
    """
    counted = _why_counted(spec, per_node=per_node)

    def read(requirements: Sequence[Requirement]) -> Meaning:
        found = {
            _as_of_gpu(each, profile): each
            for each in requirements
            if each.key not in unread and vendor_of(each.key) == vendor and _is_known(each)
        }
        meaning = read_requirements(list(found), serving)
        if counted:
            return meaning._replace(selector=None, used=frozenset())
        return meaning._replace(used=frozenset(found[each] for each in meaning.used))

    parts = (_read_selector(spec, read, counted), _read_affinity(spec, read, counted))
    return DeviceSelection(
        tuple(each for part in parts for each in part.selectors),
        tuple(dict.fromkeys(each for part in parts for each in part.profiles)),
        {key: value for part in parts for key, value in part.fields.items()},
        (*(each for part in parts for each in part.remarks), *(() if per_node else _tell_karpenter(spec))),
        vendor,
    )


def _tell_karpenter(spec: Mapping[str, Any]) -> Iterator[Remark]:
    """Says that Karpenter starts no machine for claims before it is told to, where a pod selects nodes by its labels.

    Sources: ignore-dra-requests in pkg/operator/options/options.go and Scheduler.add of kubernetes-sigs/karpenter; its guide on DRA.
    """
    certain, loose = _read_all(spec)
    # The others hold on nodes without the label, too.
    terms = (each for term in (certain, *loose) for each in term)
    wanted = (each.key for each in terms if each.operator not in ("NotIn", "DoesNotExist"))
    key = next((each for each in wanted if each.startswith("karpenter.")), None)
    if key is None:
        return
    message = "Karpenter, whose labels choose its machines, starts none for pods with claims unless a setting says so"
    hint = "set settings.enableDRA: true in the chart for AWS, from 1.15 on, or --ignore-dra-requests=false for another cloud"
    path = "nodeSelector" if key in mapping(spec.get("nodeSelector")) else "affinity.nodeAffinity"
    yield Remark(path, "lost", "controller-setting-needed", message, hint)


def _as_of_gpu(requirement: Requirement, profile: str) -> Requirement:
    """A requirement of MIG devices of a profile, as that of a GPU that is such a device."""
    part = _OF_PART.fullmatch(requirement.key)
    is_of_part = part is not None and mig_profile(part[1]) == profile
    return requirement._replace(key=f"{WHOLE_GPU}{part[2]}") if part and is_of_part else requirement


def _why_counted(spec: Mapping[str, Any], *, per_node: bool) -> str:
    """Why it matters which nodes are chosen, and not only which devices; empty where it does not."""
    if per_node:
        return "a DaemonSet has a pod on each node that it chooses"
    spread = mappings(spec.get("topologySpreadConstraints"))
    # Source: getPodTopologySpreadConstraints and matchNodeInclusionPolicies (podtopologyspread/common.go): Honor is the default.
    is_counted = any(each.get("nodeAffinityPolicy") != "Ignore" for each in spread)
    return "topologySpreadConstraints count over the nodes that it chooses" if is_counted else ""


def _read_selector(spec: Mapping[str, Any], read: _Read, counted: str) -> DeviceSelection:
    labels = mapping(spec.get("nodeSelector"))
    requirements = requirements_of(labels)
    meaning = read(requirements)
    gone = {each.key for each in meaning.used if not stays(each.key)}
    left = {key: value for key, value in labels.items() if key not in gone}
    return DeviceSelection(
        () if meaning.selector is None else (meaning.selector,),
        meaning.profiles,
        {"nodeSelector": left or None} if gone else {},
        tuple(
            _remark(f"nodeSelector[{each.key}]", each, counted, is_used=each in meaning.used)
            for each in requirements
            if is_gpu_label(each.key)
        ),
    )


def _read_affinity(spec: Mapping[str, Any], read: _Read, counted: str) -> DeviceSelection:
    affinity = mapping(spec.get("affinity"))
    nodes = mapping(affinity.get("nodeAffinity"))
    remarks: list[Remark] = []
    for number, each in enumerate(mappings(nodes.get(_PREFERRED))):
        if any(is_gpu_label(found.key) for found in requirements_in(mapping(each.get("preference")))):
            message = "a preference for labels of GPUs stays, and counts for as long as somebody sets them"
            remarks.append(
                Remark(f"affinity.nodeAffinity.{_PREFERRED}[{number}]", "kept", "node-label-kept", message)
            )
    terms = _terms(nodes)
    required = [requirements_in(each) for each in terms]
    meanings = [read(each) for each in required]
    path = f"affinity.nodeAffinity.{_REQUIRED}"
    profiles = tuple(dict.fromkeys(profile for each in meanings for profile in each.profiles))
    left = [_left_of(term, meaning.used) for term, meaning in zip(terms, meanings, strict=True)]
    if len(terms) > 1 and any(left) and any(is_gpu_label(each.key) for term in required for each in term):
        # Of several terms one has to hold, so no part of one can go alone.
        message = "its terms name labels of GPUs beside others; they stay, and need that somebody goes on setting them"
        remarks.append(Remark(path, "kept", "node-label-kept", message))
        return DeviceSelection((), profiles, {}, tuple(remarks))
    remarks += [
        _remark(path, each, counted, is_used=each in meaning.used)
        for term, meaning in zip(required, meanings, strict=True)
        for each in term
        if is_gpu_label(each.key)
    ]
    if not any(each.used for each in meanings):
        return DeviceSelection((), profiles, {}, tuple(remarks))
    selector = any_of(meanings) if len(terms) > 1 else meanings[0].selector
    kept = [each for each in left if each]
    narrowed = {**mapping(nodes.get(_REQUIRED)), "nodeSelectorTerms": kept} if kept else {}
    changed = _with(affinity, "nodeAffinity", _with(nodes, _REQUIRED, narrowed))
    return DeviceSelection(
        () if selector is None else (selector,), profiles, {"affinity": changed or None}, tuple(remarks)
    )


def _with(held: Mapping[str, Any], key: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns what is held with another value for a key, and without it where nothing is left of the value."""
    return {**held, key: value} if value else {name: each for name, each in held.items() if name != key}


def _left_of(term: Mapping[str, Any], used: frozenset[Requirement]) -> dict[str, Any]:
    """A term without the requirements that selectors of devices stand for."""
    expressions = [
        each
        for each, read in zip(mappings(term.get("matchExpressions")), requirements_in(term), strict=True)
        if read not in used or stays(read.key)
    ]
    rest = {key: value for key, value in term.items() if key != "matchExpressions" and value}
    return {**({"matchExpressions": expressions} if expressions else {}), **rest}


def _remark(path: str, requirement: Requirement, counted: str, *, is_used: bool) -> Remark:
    if is_used and requirement.key in (*SERVING[1:], *NODE_SHARES):
        message = f"{requirement.key} of nodes goes: the claim says how its device is shared, wherever it is"
        return Remark(path, "changed", "replica-to-share", message)
    if is_used and stays(requirement.key):
        message = f"{requirement.key} is a selector of devices too; it stays, for an autoscaler chooses machines by it"
        return Remark(path, "changed", "node-label-to-selector", message)
    if is_used:
        message = f"{requirement.key} of nodes is a selector of devices now"
        return Remark(path, "changed", "node-label-to-selector", message)
    why = "no attribute says the same" if _is_known(requirement) else "its value is filled in later"
    why = counted or why
    if counted and _says_plugin(requirement):
        message = f"{requirement.key} stays, for {why}; nodes have this value where GPU feature discovery is set up as for the plugin"
        hint = "give these nodes a label of your own, and select that"
        return Remark(path, "decide", "node-label-kept", message, hint)
    message = f"{requirement.key} stays: {why}, and it needs that {who_sets(requirement.key)}"
    return Remark(path, "kept", "node-label-kept", message)


def _says_plugin(requirement: Requirement) -> bool:
    """True where a requirement tells how the plugin serves nodes, and not what they have."""
    return requirement.operator in ("In", "Exists", "Gt", "Lt") and (
        requirement.key in NODE_SHARES
        or any(re.search(r"-SHARED$|-MIG-\d", each) for each in requirement.values)
    )
