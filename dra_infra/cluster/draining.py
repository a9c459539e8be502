"""Draining devices: which devices a target means, whose pods would be evicted, and the rules that do it, step by step.

A rule has the effect `None` first, on which the eviction controller says how many pods it would delete, and `NoExecute` when its
number is ours.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.client.kinds import CLAIMS, PODS, SLICES, TAINT_RULES
from dra_infra.client.objects import full_name, number, text, uid_of
from dra_infra.client.refusals import nothing_seen
from dra_infra.client.session import Session
from dra_infra.client.taint_rules import TaintRules
from dra_infra.cluster.reading import Listing, Reader
from dra_infra.cluster.server_version import read_server_version
from dra_infra.errors import ClusterError, Problem
from dra_infra.kubernetes.api import (
    SUPPORTED_MINORS,
    DeviceTaint,
    DeviceTaintSelector,
    Release,
    mapping,
    mappings,
)
from dra_infra.kubernetes.api.names import SUBDOMAIN_LENGTH
from dra_infra.kubernetes.scheduler import NO_EXECUTE, Eviction, find_evictions
from dra_infra.output.wording import count_of, join_words, nearest
from dra_infra.specs.object_names import name_by_content
from dra_infra.target import supported_version

LABEL: Final = "app.kubernetes.io/managed-by"
OURS: Final = "dra-infra"
TARGET: Final = "dra-infra/drain"
"""Annotation with the target, by which `--undo` finds the rules when the devices are not published any more."""

REASON: Final = "dra-infra/reason"
KEY: Final = "dra-infra/drain"
EMPTY: Final = "an empty text means no device; is a variable of the shell not set?"
_CONDITION: Final = "EvictionInProgress"
_WOULD: Final = re.compile(r"(\d+) pods? would be evicted")
_PAUSE: Final = 1.0
"""Seconds between two looks; the controller writes the status at most every ten."""

_ANSWERS: Final = 60.0
"""Seconds in which the controller has to say how many pods it would evict."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Devices that one rule is for.

    Args:
        driver: Their driver.
        pool: Their pool.
        device: One of them; empty for all of the pool.
        count: How many there are.
    """

    driver: str
    pool: str
    device: str = ""
    count: int = 1

    @property
    def selector(self) -> DeviceTaintSelector:
        """The selector of the rule."""
        return DeviceTaintSelector(driver=self.driver, pool=self.pool, device=self.device or None)

    @property
    def rule_name(self) -> str:
        """Name of the rule, which follows from the devices, so that a second run finds it.

        With a hash of them where they are spelled otherwise there, or others of nearly their names would have this one too.
        """
        whole = "-".join(filter(None, ("drain", self.driver, self.pool, self.device)))
        name = re.sub(r"[^a-z0-9.-]+", "-", whole.lower()).strip("-.")
        if name == whole and len(name) <= SUBDOMAIN_LENGTH:
            return name
        return name_by_content(name[: SUBDOMAIN_LENGTH - 9].rstrip("-."), self.selector.to_manifest())

    def __str__(self) -> str:
        return "/".join(filter(None, (self.pool, self.device)))


def find_parts(target: str, slices: Sequence[Mapping[str, Any]], *, driver: str = "") -> tuple[Part, ...]:
    """Devices that *target* means, by rule.

    Args:
        target: A node, a pool, `POOL/DEVICE` or the UUID of a device. A device takes those along that are parts of it: their
            `parentUUID` is its UUID. Of a pool with slices of other nodes, or of none, a node means its own devices alone.
        slices: ResourceSlices of the cluster.
        driver: The only driver that counts; empty for all.

    Raises:
        ClusterError: `subject-not-known`.
    """
    _check_target(target)
    listed = [
        (
            text(spec.get("driver")),
            text(mapping(spec.get("pool")).get("name")),
            text(spec.get("nodeName")),
            spec,
        )
        for each in slices
        for spec in (mapping(each.get("spec")),)
        if driver in ("", spec.get("driver"))
    ]
    devices = [
        (of, pool, text(device.get("nodeName")) or node, device)
        for of, pool, node, spec in listed
        for device in mappings(spec.get("devices"))
    ]
    shared = {(of, pool) for of, pool, node, _ in listed if target not in (pool, node)}
    there = {
        (of, pool, text(device.get("name"))) for of, pool, node, device in devices if target in (pool, node)
    }
    if there:
        counts = Counter((of, pool, name if (of, pool) in shared else "") for of, pool, name in there)
        return tuple(
            Part(driver=of, pool=pool, device=name, count=count)
            for (of, pool, name), count in sorted(counts.items())
        )
    named = [
        each
        for each in devices
        if target in (f"{each[1]}/{text(each[3].get('name'))}", _text_of(each[3], "uuid"))
    ]
    uuids = {(each[0], _text_of(each[3], "uuid")) for each in named} - {(each[0], "") for each in named}
    parts = [each for each in devices if (each[0], _text_of(each[3], "parentUUID")) in uuids]
    found = {(of, pool, text(device.get("name"))) for of, pool, _, device in (*named, *parts)}
    if not found:
        raise ClusterError([_unknown(target, devices, driver)])
    return tuple(Part(driver=of, pool=pool, device=name) for of, pool, name in sorted(found))


def _check_target(target: str) -> None:
    """An empty target would be the node of all slices without one, and the UUID of all devices without one."""
    if not target.strip():
        raise ClusterError([Problem(path="TARGET", code="subject-not-known", message=EMPTY)])


def _unknown(target: str, devices: Sequence[tuple[str, str, str, Mapping[str, Any]]], driver: str) -> Problem:
    names = sorted(
        {
            name
            for _, pool, node, device in devices
            for name in (pool, node, f"{pool}/{text(device.get('name'))}")
        }
        - {""}
    )
    near = nearest(target, names)
    of = f" of driver {driver}" if driver else ""
    hint = f"there are {join_words(names)}" if names else "no device is published"
    return Problem(
        path=target,
        code="subject-not-known",
        message=f"no node, pool or device{of} is called so, and none has this UUID",
        hint=f"did you mean {near}?" if near else hint,
    )


def _text_of(device: Mapping[str, Any], attribute: str) -> str:
    for name, value in mapping(device.get("attributes")).items():
        if name.rpartition("/")[2] == attribute:
            return text(mapping(value).get("string"))
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """Holds whose pods a drain evicts.

    Args:
        target: As the user wrote it.
        parts: The devices, by rule.
        evictions: Pods that lose them, once for each claim, and those that stay by an extended resource.
        version: Version in which the cluster serves rules.
        counts: Pods that each rule evicts, by its name.
        release: The release whose eviction controller decides; the newest where the server does not report one that is known.
    """

    target: str
    parts: tuple[Part, ...]
    evictions: tuple[Eviction, ...]
    version: str
    counts: Mapping[str, int]
    release: Release

    @property
    def evicted(self) -> tuple[Eviction, ...]:
        """Returns those that the controller deletes."""
        return tuple(each for each in self.evictions if not each.stays)

    @property
    def pods(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(sorted({full_name(each.pod) for each in self.evicted}))


def look(reader: Reader, target: str, *, driver: str = "") -> Preview:
    """Look at the cluster, and write nothing.

    Raises:
        ClusterError: `subject-not-known`, `kind-not-served`, `cluster-forbidden`, and the codes of `Session`.
    """
    slices, rules, pods, claims = (_list(reader, kind) for kind in (SLICES, TAINT_RULES, PODS, CLAIMS))
    parts = find_parts(target, slices.items, driver=driver)
    release = _release_of(read_server_version(reader.session))

    def found(*of: Part) -> list[Eviction]:
        selectors = [each.selector for each in of]
        return list(
            find_evictions(
                DeviceTaint(key=KEY), selectors, pods=pods.items, claims=claims.items, release=release
            )
        )

    evictions = found(*parts)
    return Preview(
        target=target,
        parts=parts,
        evictions=tuple(sorted(evictions, key=lambda each: (full_name(each.pod), each.claim))),
        version=rules.version,
        counts={
            part.rule_name: len({uid_of(each.pod) for each in found(part) if not each.stays})
            for part in parts
        },
        release=release,
    )


def _release_of(reported: str) -> Release:
    patch = supported_version(reported)
    minor = patch.rpartition(".")[0] or SUPPORTED_MINORS[-1]
    return Release(minor=minor, gates=frozenset(), patch=patch)


def find_ours(reader: Reader, target: str) -> tuple[str, tuple[Mapping[str, Any], ...]]:
    """Version of the rules, and those that a drain of *target* made.

    Raises:
        ClusterError: As of `look`.
    """
    _check_target(target)
    rules = _list(reader, TAINT_RULES)
    return rules.version, tuple(each for each in rules.items if _is_ours(each) and _target_of(each) == target)


def _list(reader: Reader, kind: Any) -> Listing:
    listing = reader.list(kind)
    if not listing.is_seen:
        raise nothing_seen(listing.problems)
    return listing


def _is_ours(rule: Mapping[str, Any]) -> bool:
    return mapping(mapping(rule.get("metadata")).get("labels")).get(LABEL) == OURS


def _target_of(rule: Mapping[str, Any]) -> str:
    return text(mapping(mapping(rule.get("metadata")).get("annotations")).get(TARGET))


class Drain:
    """Writes the rules of a preview and follows them.

    Args:
        preview: What was looked at.
        rules: Writes them.
        session: Reads pods and claims anew.
        reason: What is told to whoever finds the rules.
        seconds: In which the pods have to be gone.
        tell: Is told what is waited for; may be replaced.
        clock: Seconds that only grow.
        sleep: Waits; tests pass one of their own.
    """

    def __init__(
        self,
        preview: Preview,
        rules: TaintRules,
        session: Session,
        *,
        reason: str = "",
        seconds: float = 600.0,
        tell: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.preview = preview
        self._rules = rules
        self._session = session
        self._reason = reason
        self._seconds = seconds
        self.tell = tell
        self.staying: tuple[str, ...] = ()
        """Pods that have the devices by an extended resource, as `evict` saw them last."""
        self._clock = clock
        self._sleep = sleep

    def ask(self) -> Iterator[tuple[str, str, int]]:
        """Write each rule without an effect; yields its name, the controller's words, and the pods that it would evict.

        A rule of ours from an earlier run is made anew, for the controller says it once; one that evicts already is left alone.

        Raises:
            ClusterError: `drain-name-taken`, `drain-not-answered`, and the codes of `TaintRules`.
        """
        for part in self.preview.parts:
            name = part.rule_name
            there = self._rules.get(name)
            if there is not None and not (
                _is_ours(there)
                and _target_of(there) == self.preview.target
                and mapping(there.get("spec")).get("deviceSelector") == part.selector.to_manifest()
            ):
                raise ClusterError([_taken(name)])
            if there is not None and _effect(there) == NO_EXECUTE:
                continue
            if there is not None:
                self._rules.delete(there)
            self._rules.create(self._manifest(part))
            message = text(self._wait(name).get("message"))
            found = _WOULD.search(message)
            if found is None:
                raise ClusterError([_not_answered(name)])
            yield name, message.partition(" This information")[0], int(found[1])

    def expected(self, name: str) -> int:
        """Pods that the rule of that name would evict, as the preview has it."""
        return self.preview.counts[name]

    def evict(self) -> tuple[str, ...]:
        """Give every rule the effect `NoExecute` and wait; returns the pods that are still there when the time is over.

        Raises:
            ClusterError: The codes of `TaintRules`, and those of `look`.
        """
        for part in self.preview.parts:
            rule = self._rules.get(part.rule_name)
            if rule is None:
                raise ClusterError([_not_answered(part.rule_name)])
            if _effect(rule) != NO_EXECUTE:
                self._rules.set_effect(rule, NO_EXECUTE)
        selectors = [each.selector for each in self.preview.parts]
        until = self._clock() + self._seconds
        going = {uid_of(each.pod) for each in self.preview.evicted}
        while True:
            # Each look has a reader of its own, whose bounds are for all that it lists.
            reader = Reader(self._session)
            pods, claims = (_list(reader, kind).items for kind in (PODS, CLAIMS))
            left = {uid_of(each): full_name(each) for each in pods if uid_of(each) in going}
            # Who came between the look and the rule is evicted too, and who is being deleted has its devices until it is gone.
            found = list(
                find_evictions(
                    DeviceTaint(key=KEY),
                    selectors,
                    pods=pods,
                    claims=claims,
                    release=self.preview.release,
                    with_deleted=True,
                )
            )
            left |= {uid_of(each.pod): full_name(each.pod) for each in found if not each.stays}
            self.staying = tuple(sorted({full_name(each.pod) for each in found if each.stays}))
            if not left or self._clock() >= until:
                return tuple(sorted(left.values()))
            self.tell(f"waiting for {count_of(len(left), 'pod')} to be gone")
            self._sleep(_PAUSE)

    def _wait(self, name: str) -> Mapping[str, Any]:
        """The condition of a rule, once it is about the rule as it is."""
        until = self._clock() + _ANSWERS
        self.tell(f"waiting for the controller to look at {name}")
        while True:
            rule = self._rules.get(name) or {}
            generation = number(mapping(rule.get("metadata")).get("generation"))
            for each in mappings(mapping(rule.get("status")).get("conditions")):
                if each.get("type") == _CONDITION and number(each.get("observedGeneration")) >= generation:
                    return each
            if self._clock() >= until:
                raise ClusterError([_not_answered(name)])
            self._sleep(_PAUSE)

    def _manifest(self, part: Part) -> dict[str, Any]:
        annotations = {TARGET: self.preview.target, **({REASON: self._reason} if self._reason else {})}
        return {
            "kind": "DeviceTaintRule",
            "metadata": {"name": part.rule_name, "labels": {LABEL: OURS}, "annotations": annotations},
            "spec": {
                "deviceSelector": part.selector.to_manifest(),
                "taint": {"key": KEY, "effect": "None"},
            },
        }


def _effect(rule: Mapping[str, Any]) -> str:
    return text(mapping(mapping(rule.get("spec")).get("taint")).get("effect"))


def _taken(name: str) -> Problem:
    return Problem(
        path=f"DeviceTaintRule {name}",
        code="drain-name-taken",
        message="a rule of that name is there, and it was not made for this target and these devices",
        hint=f"look at it: kubectl get devicetaintrule {name} -o yaml",
    )


def _not_answered(name: str) -> Problem:
    return Problem(
        path=f"DeviceTaintRule {name}",
        code="drain-not-answered",
        message=f"the eviction controller has not said in {_ANSWERS:g} s how many pods it would evict",
        hint="does kube-controller-manager run with the gate DRADeviceTaintRules? The rule does nothing so far",
    )
