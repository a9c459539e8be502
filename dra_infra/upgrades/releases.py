"""What two releases of Kubernetes do differently for a cluster as a whole: feature gates, metrics, and drivers that work with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dra_infra.catalog.charts import chart_name_of, charts
from dra_infra.catalog.driver_gates import driver_needs
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import GATES, Release, removed_in
from dra_infra.program_objects import ProgramRelease
from dra_infra.specs.metrics import Metric, alerts, metrics, metrics_of
from dra_infra.specs.platform.driver_rules import check_kubernetes
from dra_infra.specs.platform.releases import ChosenRelease, choose_release, numbers
from dra_infra.target import ClusterTarget
from dra_infra.upgrades.differences import Difference
from dra_infra.upgrades.objects import ComparedObject

_WATCHING: Final = frozenset({"ConfigMap", "GrafanaDashboard", "PrometheusRule", "VMRule"})
"""Kinds of objects whose texts are searched for names of metrics."""
_NVIDIA: Final = "NVIDIA DRA driver"


def compare_gates(before: Release, after: Release, written: Mapping[str, bool]) -> Iterator[Difference]:
    """Yield feature gates that are removed, locked, new, or on by default on one release only. Code: `upgrade-gate`.

    Args:
        before: The older release.
        after: The newer release.
        written: Gates that the older cluster sets itself.
    """
    for name, states in sorted(GATES.items()):
        old, new = states.get(before.minor), states.get(after.minor)
        if name in written and (new is None or new.locked):
            yield _written_gate(name, before, after, is_on=written[name])
            continue
        if old is None and new is None:
            continue
        was, will = _describe_gate(name, before), _describe_gate(name, after)
        if was == will or (old is None and new is not None and not new.default):
            continue
        yield Difference(
            level="note",
            area="gates",
            code="upgrade-gate",
            path=name,
            message="the gate differs",
            before=was,
            after=will,
        )


def _written_gate(name: str, before: Release, after: Release, *, is_on: bool) -> Difference:
    state = GATES[name].get(after.minor)
    word = "true" if is_on else "false"
    if state is not None and state.default == is_on:
        return Difference(
            level="note",
            area="gates",
            code="upgrade-gate",
            path=name,
            message=f"{after.minor} locks the gate to {word}, so that your setting has no effect",
            before=_describe_gate(name, before),
            after=_describe_gate(name, after),
            hint=f"remove {name}={word} from the flags of all components",
        )
    why = "has no such gate" if state is None else f"locks the gate to {'true' if state.default else 'false'}"
    return Difference(
        level="breaks",
        area="gates",
        code="upgrade-gate",
        path=name,
        message=f"components do not start with {name}={word}: {after.minor} {why}",
        before=_describe_gate(name, before),
        after=_describe_gate(name, after),
        hint=f"remove {name}={word} from the flags of a component when you upgrade it",
    )


def _describe_gate(name: str, release: Release) -> str:
    state = GATES[name].get(release.minor)
    if state is None:
        return "no such gate"
    value = "on" if state.default else "off"
    shown = f"locked {value}" if state.locked else f"{value} by default"
    return f"{state.stage}, {shown}"


def compare_metrics(items: Iterable[ComparedObject], before: Release, after: Release) -> Iterator[Difference]:
    """Yield metrics that are called otherwise, and the objects that ask for the old names. Code: `upgrade-metric`."""
    renamed = [
        (metric, old, new)
        for metric in metrics().values()
        if (old := metric.name_in(before)) and (new := metric.name_in(after)) and old != new
    ]
    for metric, old, new in renamed:
        used = [name for name, alert in alerts().items() if metric in metrics_of(alert.expr)]
        by = f"; alerts of GpuMonitoring that read it: {', '.join(used)}" if used else ""
        yield Difference(
            level="note",
            area="metrics",
            code="upgrade-metric",
            path=old,
            message=f"{metric.exposed_by} renames the metric{by}",
            before=old,
            after=new,
        )
    if renamed:
        yield from _find_old_names(items, renamed, after)


def _find_old_names(
    items: Iterable[ComparedObject], renamed: Iterable[tuple[Metric, str, str]], after: Release
) -> Iterator[Difference]:
    for item in items:
        if item.ref.kind not in _WATCHING:
            continue
        text = json.dumps(item.manifest, default=str)
        for _, old, new in renamed:
            if old in text and new not in text:
                yield Difference(
                    level="breaks",
                    area="metrics",
                    code="upgrade-metric",
                    subject=item.ref,
                    place=item.place,
                    message=f"asks for {old}, which {after.minor} does not expose",
                    before=old,
                    after=new,
                    hint=f"ask for both: {old} or {new}; GpuMonitoring writes the name of the stack's release",
                )


def compare_drivers(
    releases: Iterable[ProgramRelease],
    drivers: Iterable[str],
    before: ClusterTarget,
    after: ClusterTarget,
) -> Iterator[Difference]:
    """Yield charts and drivers that do not work with the newer release. Code: `upgrade-driver`.

    Args:
        releases: Helm releases of the program.
        drivers: Products with their release lines: `NVIDIA DRA driver 25.3`.
        before: The older cluster.
        after: The newer cluster.
    """
    for each in releases:
        chosen = _choose(each)
        if chosen is None:
            continue
        earlier = {problem.message for problem in check_kubernetes(chosen, before)}
        for problem in check_kubernetes(chosen, after):
            if problem.message not in earlier and problem.severity == "error":
                yield Difference(
                    level="breaks",
                    area="drivers",
                    code="upgrade-driver",
                    subject=each.ref,
                    place=each.place,
                    path="version",
                    message=problem.message,
                    hint=problem.hint,
                )
    for name in drivers:
        product, _, line = name.rpartition(" ")
        needs = driver_needs().get(line) if product == _NVIDIA else None
        if needs is None or not needs.resource_api.startswith("v1") or needs.resource_api == "v1":
            continue
        removed = removed_in("ResourceSlice", needs.resource_api)
        minor = after.releases[-1].minor
        until = f", and {removed} removes it" if removed else ""
        yield Difference(
            level="changes" if needs.resource_api in after.serves else "breaks",
            area="drivers",
            code="upgrade-driver",
            path=name,
            message=f"reads resource.k8s.io/{needs.resource_api} only; {minor} has it off by default{until}",
            hint=f"take a driver from 25.8 on, or start the API server with --runtime-config=resource.k8s.io/{needs.resource_api}=true",
        )


def _choose(release: ProgramRelease) -> ChosenRelease | None:
    chart = charts().get(chart_name_of(release.chart))
    if chart is None or not numbers(release.version):
        return None
    chosen = choose_release(chart.product, release.version)
    return None if isinstance(chosen, Problem) else chosen
