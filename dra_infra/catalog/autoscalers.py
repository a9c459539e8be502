"""Facts about autoscalers: whether they add a node for a pod with claims, from zero nodes and from one, and what they need for it.

The facts are in `data/autoscalers.yaml`, each with its source and version. What no source says is `not-known`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from dra_infra.catalog.records import Entry, Fact
from dra_infra.catalog.vocabulary import read_data
from dra_infra.fleet import PoolScaler
from dra_infra.kubernetes.api import group_of, mapping, mappings, value_at

Feature: TypeAlias = Literal[
    "adminAccess",
    "capacity",
    "computeDomains",
    "counters",
    "distinctAttribute",
    "extendedResources",
    "firstAvailable",
    "severalDrivers",
    "taints",
]
"""Features of a claim beyond a number of devices of a class on one node."""

FEATURES: Final[Mapping[Feature, str]] = {
    "firstAvailable": "`firstAvailable`",
    "distinctAttribute": "`distinctAttribute`",
    "adminAccess": "admin access",
    "taints": "taints of devices",
    "counters": "partitions (counters)",
    "capacity": "parts of a device (capacity)",
    "extendedResources": "extended resources of a class",
    "severalDrivers": "devices of several drivers",
    "computeDomains": "ComputeDomains",
}
"""The features in the order of the documentation, each with what it is called."""

_VERSION: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", re.ASCII)
_GROWS: TypeAlias = Literal["grows", "does-not-grow", "not-known"]


class Setting(Entry):
    """A setting of an autoscaler that decides whether claims count.

    Args:
        flag: Its flag.
        env: Its environment variable; empty where it has none.
        counts: The value with which claims count.
        line: What to write.
        where: In what to write it.
    """

    flag: str
    env: str = ""
    counts: str
    line: str
    where: str


class Mark(Entry):
    """A label or an annotation that a pool needs.

    Args:
        label: Key of the label of its nodes; empty for an annotation.
        annotation: Key of the annotation of its object; empty for a label.
        value: What it must be; empty for any text.
        line: What to write.
        where: In what to write it.
    """

    label: str = ""
    annotation: str = ""
    value: str = ""
    line: str
    where: str

    def is_in(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
        """Return whether a pool with these labels of its nodes, and these annotations, has it."""
        written = labels.get(self.label, "") if self.label else annotations.get(self.annotation, "")
        return written == self.value if self.value else bool(written)


class Served(Entry):
    """A kind of pools; of Karpenter those with a node class of one group."""

    group: str
    kind: str
    node_class: str = ""


class AutoscalerRelease(Fact):
    """Behaviour of an autoscaler from one version on.

    Args:
        since: The first version; empty for the oldest that is known.
        read: The newest version that was read; empty where the source names none.
        claims: Whether it considers pods with claims: a `setting` is off unless somebody sets it.
        setting: That setting.
        zero: Whether it adds a node for a claim to a pool without nodes.
        one: The same for a pool with nodes.
        mark: What a pool needs for `zero`.
        attributes: Attributes of devices that its template has and selectors may read; empty where that is not known.
        matched: Attributes that constraints alone may compare.
        capacities: Capacities that its template has.
        drivers: Drivers whose devices its template has; empty where that is not known.
        machines: Machines for which it has a template; empty where that is not known.
        features: What it understands of claims, and what it does not.
        because: Why it does not grow.
        instead: What to do then.
    """

    since: str = ""
    read: str = ""
    claims: Literal["always", "setting", "never", "not-known"]
    setting: Setting | None = None
    zero: _GROWS
    one: _GROWS
    mark: Mark | None = None
    attributes: tuple[str, ...] = ()
    matched: tuple[str, ...] = ()
    capacities: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    features: Mapping[Feature, Literal["yes", "no"]] = {}
    because: str = ""
    instead: str = ""

    def state_of(self, now: int, *, template: Literal["zero", "always"] = "zero") -> _GROWS:
        """Return whether it adds a node for a claim to a pool with *now* nodes, if nothing is missing.

        Args:
            now: Nodes of the pool.
            template: Whether nodes that there are count.
        """
        if self.claims == "never":
            return "does-not-grow"
        if self.claims == "not-known":
            return "not-known"
        return self.zero if template == "always" or now == 0 else self.one


class Autoscaler(Entry):
    """An autoscaler.

    Args:
        name: What a fleet file calls it.
        title: What people call it.
        image: The end of the name of its image; empty if no Deployment has it.
        follows: `kubernetes` where its minor is that of the cluster.
        template: Whether it looks at its template for a pool without nodes alone (`zero`), or for every new node (`always`).
        serves: The objects of pools that it scales.
        releases: From each version on, the oldest first.
    """

    name: str
    title: str
    image: str = ""
    follows: Literal["", "kubernetes"] = ""
    template: Literal["zero", "always"] = "zero"
    serves: tuple[Served, ...]
    releases: tuple[AutoscalerRelease, ...]

    def lines_in(self, labels: Mapping[str, Any], annotations: Mapping[str, str]) -> frozenset[str]:
        """Return the lines that a pool may need and that one with these labels and annotations has."""
        texts = {str(key): str(value) for key, value in labels.items()}
        marks = [each.mark for each in self.releases if each.mark is not None]
        return frozenset(mark.line for mark in marks if mark.is_in(texts, annotations))

    def has_no_nodes(self, now: int) -> bool:
        """Return whether a new node of a pool with *now* nodes is seen by the template, as for a pool without nodes."""
        return self.template == "always" or now == 0

    def release_of(self, version: str) -> AutoscalerRelease:
        """Return what it does in a version; the newest release for an empty one."""
        wanted = order_of(version)
        known = [each for each in self.releases if not version or order_of(each.since) <= wanted]
        return known[-1] if known else self.releases[0]


@cache
def autoscalers() -> dict[str, Autoscaler]:
    """The autoscalers that are known, by name."""
    read = map(Autoscaler.model_validate, read_data("autoscalers.yaml"))
    return {each.name: each for each in read}


def order_of(version: str) -> tuple[int, ...]:
    """Return the numbers by which versions compare; an empty version comes first."""
    match = _VERSION.match(version)
    return tuple(int(each or 0) for each in match.groups()) if match else ()


def find_scaler(
    kind: tuple[str, str],
    node_class: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    deployed: Mapping[str, PoolScaler],
) -> PoolScaler | None:
    """Return the autoscaler of a pool with what is known of it; None if no pool or Deployment names one.

    Args:
        kind: Group and kind of the object of the pool.
        node_class: Group of the node class that it names; empty for none.
        labels: Labels of its nodes.
        annotations: Annotations of the object.
        deployed: What Deployments of autoscalers say, by the name of the image.
    """
    for each in autoscalers().values():
        for served in each.serves:
            if (served.group, served.kind) == kind and served.node_class in ("", node_class):
                scaler = deployed.get(each.image) or PoolScaler(autoscaler=each.name)
                return PoolScaler(
                    autoscaler=each.name,
                    version=scaler.version,
                    counts_claims=scaler.counts_claims,
                    lines=each.lines_in(labels, annotations),
                )
    return None


def is_autoscaler(manifest: Mapping[str, Any]) -> bool:
    """Return whether an object is the Deployment of an autoscaler that is known."""
    return _deployed(manifest) is not None


def read_deployed(manifests: Sequence[Mapping[str, Any]]) -> dict[str, PoolScaler]:
    """Return the version and setting of each autoscaler that has a Deployment, by the end of the name of its image."""
    found: dict[str, PoolScaler] = {}
    for manifest in manifests:
        read = _deployed(manifest)
        if read is not None:
            found.setdefault(read[0], read[1])
    return found


def _deployed(manifest: Mapping[str, Any]) -> tuple[str, PoolScaler] | None:
    if (group_of(manifest), manifest.get("kind")) != ("apps", "Deployment"):
        return None
    for container in mappings(value_at(manifest, "spec", "template", "spec", "containers")):
        # `registry.example:5000/karpenter/controller:1.15.0@sha256:...`
        path, _, tag = str(container.get("image", "")).partition("@")[0].rpartition(":")
        for each in autoscalers().values():
            if each.image and (path == each.image or path.endswith(f"/{each.image}")):
                version = tag.removeprefix("v") if _VERSION.match(tag) else ""
                setting = each.release_of(version).setting
                counts = _reads_claims(container, setting) if setting is not None else None
                return each.image, PoolScaler(autoscaler=each.name, version=version, counts_claims=counts)
    return None


def _reads_claims(container: Mapping[str, Any], setting: Setting) -> bool:
    """Return whether the flags and variables of a container let claims count; a flag comes before a variable."""
    texts = [
        str(each) for key in ("command", "args") for each in container.get(key) or () if isinstance(each, str)
    ]
    for text in reversed(texts):
        name, sign, value = text.lstrip("-").partition("=")
        if name == setting.flag:
            return (value if sign else "true").lower() == setting.counts
    for each in mappings(container.get("env")):
        if setting.env and mapping(each).get("name") == setting.env:
            return str(each.get("value", "")).lower() == setting.counts
    return False
