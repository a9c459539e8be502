"""Advice on DeviceTaintRules: which devices they are for, and names in their selectors.

Source: DeviceTaintRuleSpec in api/resource/v1/types.go: the empty selector matches all devices, without one none match.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.advice.claims import Context, class_selectors
from dra_infra.advice.findings import Finding
from dra_infra.advice.references import check_class_name
from dra_infra.advice.selectors import check_selectors
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import DeviceTaintRule, expressions_of


def advise_taint_rule(record: DeviceTaintRule, context: Context) -> Iterator[Problem]:
    """Yield findings on a rule whose effect is probably not intended, at paths of the object.

    Codes `taint-rule-matches-all`, `taint-rule-matches-nothing`, `class-not-known`, and those of selectors.
    """
    selector = record.spec.device_selector
    path = "spec.deviceSelector"
    if selector is None:
        yield Finding(
            "taint-rule-matches-nothing",
            "a rule without deviceSelector taints no device",
            "write deviceSelector: {driver: ..., pool: ..., device: ...}",
        ).at("spec")
        return
    if not (selector.model_fields_set or selector.model_extra):
        evicts = record.spec.taint.effect == "NoExecute"
        does = "and evicts every pod that has one" if evicts else "so that new pods get none"
        yield Finding(
            "taint-rule-matches-all",
            f"an empty deviceSelector taints every device of every driver, {does}",
            "write deviceSelector: {driver: ..., pool: ..., device: ...}",
        ).at(path)
        return
    before: tuple[str, ...] = ()
    if selector.driver:
        before = (f'device.driver == "{selector.driver}"',)
    if selector.device_class_name:
        missing = check_class_name(selector.device_class_name, context.known_objects, context.pins)
        if missing is not None:
            yield missing.at(f"{path}.deviceClassName")
        before += class_selectors(selector.device_class_name, context.known_objects, context.pins) or ()
    places = [index for index, each in enumerate(selector.selectors or ()) if each.cel is not None]
    texts = expressions_of(selector.selectors)
    found, _ = check_selectors(texts, before, context.pins, context.environment)
    for index, finding in found:
        # A rule is applied to what its selectors match; an error on another device ends no pod's attempt.
        if finding.code != "cel-unguarded-read":
            yield finding.at(f"{path}.selectors[{places[index]}].cel.expression")
