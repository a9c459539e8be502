"""Dangers of taints that a change puts on devices: pods that run lose them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from dra_infra.kubernetes.api.device_taints import DeviceTaintRule
from dra_infra.kubernetes.scheduler.device_evictions import NO_EXECUTE, Eviction, find_evictions
from dra_infra.kubernetes.scheduler.fleet import GATE
from dra_infra.output.wording import count_of, join_words
from dra_infra.program_objects import get_field
from dra_infra.review.comparison import Comparison
from dra_infra.review.dangers import Danger


def find_rules_that_evict(compared: Comparison) -> Iterator[Danger]:
    """`rule-evicts`, once for each rule that is new or changed and whose taint evicts pods of the snapshot."""
    if not compared.head.release.enabled(GATE):
        return
    pods, claims = (tuple(compared.running.of_kind(kind)) for kind in ("Pod", "ResourceClaim"))
    for ref, item in compared.head_index.objects.items():
        before = compared.base_index.objects.get(ref)
        if ref.kind != "DeviceTaintRule" or (
            before and before.manifest.get("spec") == item.manifest.get("spec")
        ):
            continue
        rule = _read(item.manifest)
        if rule is None or rule.spec.device_selector is None or rule.spec.taint.effect != NO_EXECUTE:
            continue
        found = tuple(find_evictions(rule.spec.taint, [rule.spec.device_selector], pods=pods, claims=claims))
        if any(not each.stays for each in found):
            yield Danger(who=ref, code="rule-evicts", message=_describe(found), hint=_advise(found))


def _read(manifest: Mapping[str, Any]) -> DeviceTaintRule | None:
    try:
        return DeviceTaintRule.from_manifest({**manifest, "apiVersion": "resource.k8s.io/v1"})
    except ValidationError:
        # The problem of the object says so.
        return None


def _describe(found: tuple[Eviction, ...]) -> str:
    going = sorted({_name(each) for each in found if not each.stays})
    devices = sorted({device for each in found if not each.stays for device in each.devices})
    return f"evicts {count_of(len(going), 'pod')} from {join_words(devices)}: {join_words(going)}"


def _advise(found: tuple[Eviction, ...]) -> str:
    advice = "PodDisruptionBudgets do not count; effect None first says in the status of the rule how many it would be"
    if back := sorted({_name(each) for each in found if each.comes_back and not each.stays}):
        advice += f"; {join_words(back)} may be placed there again and evicted again: write effect: NoExecute into the toleration"
    if staying := sorted({_name(each) for each in found if each.stays}):
        advice += (
            f"; {join_words(staying)} {'stays' if len(staying) == 1 else 'stay'}, by an extended resource"
        )
    return advice


def _name(eviction: Eviction) -> str:
    return f"{get_field(eviction.pod, 'metadata.namespace')}/{get_field(eviction.pod, 'metadata.name')}"
