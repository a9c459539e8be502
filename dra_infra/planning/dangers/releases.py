"""Helm releases that are changed, upgraded or uninstalled, and the steps that must go first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.catalog.charts import bare_version, charts
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.platforms import chart_rules
from dra_infra.errors import Problem
from dra_infra.model.metadata import ObjectRef
from dra_infra.model.program import SECRET, UNKNOWN, ProgramRelease
from dra_infra.planning.dangers.record import Danger
from dra_infra.planning.dangers.sides import Sides
from dra_infra.planning.replacement import group_of
from dra_infra.planning.wording import count_of, join_words
from dra_infra.specs.platform.driver_rules import check_upgrade
from dra_infra.specs.platform.releases import ChosenRelease, choose_release, numbers
from dra_infra.specs.platform.values import Values

_DRIVER: Final = "NVIDIA DRA driver"
_OPERATOR: Final = "GPU Operator"
_CRD_GROUP: Final = "resource.nvidia.com"
_IMEX: Final = ("resources.computeDomains.imex.mode", "resources.computeDomains.imex.isolation")
_MISSING: Final = object()


def find_release_dangers(sides: Sides) -> Iterator[Danger]:
    """`release-removed`, `release-changed`, `release-values-reset`, `upgrade-step-first`, `kernel-driver-changed`."""
    after = {release.urn: release for release in sides.head.releases}
    installed = {_identity(release) for release in sides.head.releases}
    for old in sides.base.releases:
        new = after.get(old.urn) or next(
            (each for each in sides.head.releases if _identity(each) == _identity(old)), None
        )
        if _identity(old) not in installed:
            yield _describe_removed(old, new, sides)
        elif new is not None:
            yield from _compare(old, new, sides)


def _identity(release: ProgramRelease) -> tuple[str, str]:
    return release.namespace, release.name


def _ref(release: ProgramRelease) -> ObjectRef:
    return ObjectRef(kind="Release", name=release.name, namespace=release.namespace)


def _describe_removed(old: ProgramRelease, new: ProgramRelease | None, sides: Sides) -> Danger:
    chosen = _choose(old)
    shipped = [
        ObjectRef(kind="DeviceClass", name=each.name)
        for driver in (drivers().values() if chosen else ())
        if chosen and driver.product == chosen.product and chosen.line in driver.by_line
        for each in driver.by_line[chosen.line].classes
    ]
    users = sorted({user for ref in shipped for user in sides.users_of(ref)})
    instead = f", and {new.namespace}/{new.name} is installed beside it" if new else ""
    then = (
        f"; {join_words(users)} still {'names' if len(users) == 1 else 'name'} its classes" if users else ""
    )
    return Danger(
        who=_ref(old),
        code="release-removed",
        message=f"is uninstalled{instead}: Helm deletes all that the chart {_name(old)} made, except its CRDs{then}",
        hint="keep name and namespace, or stop the pods that hold its devices first" if chosen else "",
        place=old.place,
    )


def _compare(old: ProgramRelease, new: ProgramRelease, sides: Sides) -> Iterator[Danger]:
    was, now = dict(_leaves(old.values)), dict(_leaves(new.values))
    reset = sorted(path for path in was if path not in now and not _is_above(path, now))
    changed = sorted(path for path in now if was.get(path, _MISSING) != now[path])
    versions = bare_version(old.version), bare_version(new.version)
    parts = []
    if versions[0] != versions[1]:
        parts.append(f"goes from {_said(versions[0])} to {_said(versions[1])} of {_name(new)}")
    elif _name(old) != _name(new):
        parts.append(f"goes from the chart {_name(old)} to {_name(new)}")
    if changed:
        parts.append(f"writes {count_of(len(changed), 'value')} anew ({join_words(changed)})")
    if parts:
        yield Danger(
            who=_ref(new),
            code="release-changed",
            message=" and ".join(parts) + _effect(new),
            hint=""
            if any(each.chart for each in sides.head.objects)
            else "--charts shows the objects that change with it",
            place=new.place,
        )
    if reset:
        yield Danger(
            who=_ref(new),
            code="release-values-reset",
            message=f"no longer writes {join_words(reset)}: the chart's own defaults count again",
            hint="write them out if they are to stay",
            place=new.place,
        )
    yield from _find_steps(old, new, {*changed, *reset}, sides)


def _effect(release: ProgramRelease) -> str:
    chosen = _choose(release)
    if chosen and chosen.product == _DRIVER:
        # maxUnavailable of the plugin's DaemonSet is 100%.
        return ": the plugin restarts on all nodes at once, pods that run are untouched"
    return ""


def _find_steps(
    old: ProgramRelease, new: ProgramRelease, touched: set[str], sides: Sides
) -> Iterator[Danger]:
    before, after = _choose(old), _choose(new)
    if before is None or after is None or before.product != after.product:
        return
    if after.product == _DRIVER:
        yield from _find_driver_steps(old, new, after, sides)
        domains = _count_domains(sides)
        if domains:
            for path in sorted(touched.intersection(_IMEX)):
                yield _step(
                    new,
                    f"changes {path} while there {'is' if domains == 1 else 'are'} {count_of(domains, 'ComputeDomain')}",
                    "delete the ComputeDomains first, and make them anew afterwards",
                )
    elif after.product == _OPERATOR:
        yield from _find_kernel_driver(old, new, before, after)


def _find_driver_steps(
    old: ProgramRelease, new: ProgramRelease, chosen: ChosenRelease, sides: Sides
) -> Iterator[Danger]:
    # A component that was told what is installed has said it already, as a problem.
    if (
        not old.version
        or not new.version
        or any(
            problem.code == "chart-upgrade" and new.component and problem.path.startswith(new.component)
            for problem in sides.head.problems
        )
    ):
        return
    values = _values(new, chosen)
    if values.get("nameOverride") in (UNKNOWN, SECRET):
        return
    has_crds = any(
        ref.kind == "CustomResourceDefinition" and ref.name.endswith(f".{_CRD_GROUP}")
        for ref in sides.after.objects
    )
    problems: list[Problem] = list(check_upgrade(values, old.version, with_crds=has_crds))
    for problem in problems:
        yield _step(
            new, f"goes from {_said(old.version)} to {_said(new.version)}: {problem.message}", problem.hint
        )


def _find_kernel_driver(
    old: ProgramRelease, new: ProgramRelease, before: ChosenRelease, after: ChosenRelease
) -> Iterator[Danger]:
    was, now = _kernel_driver(old, before), _kernel_driver(new, after)
    if was and now and was != now:
        yield Danger(
            who=_ref(new),
            code="kernel-driver-changed",
            message=f"changes NVIDIA's kernel driver from {was} to {now}: GPU pods are evicted node by node while it is exchanged",
            hint="write driver.version to keep it, and change it when nothing runs",
            place=new.place,
        )


def _kernel_driver(release: ProgramRelease, chosen: ChosenRelease) -> str:
    values = _values(release, chosen)
    if values.get("driver.enabled") is not True:
        return ""
    written = values.get("driver.version") if values.is_written("driver.version") else None
    if isinstance(written, str) and written:
        return written if written not in (UNKNOWN, SECRET) else ""
    known = chosen.chart.versions.get(chosen.version)
    return known.kernel_driver if known else ""


def _values(release: ProgramRelease, chosen: ChosenRelease) -> Values:
    rules = chart_rules(chosen.product)
    return Values(chosen, release.values, release.values, {}, rules.defaults)


def _choose(release: ProgramRelease) -> ChosenRelease | None:
    """The known chart; None for one that is not known here."""
    chart = charts().get(_name(release))
    if chart is None or not numbers(release.version):
        return None
    chosen = choose_release(chart.product, release.version)
    return None if isinstance(chosen, Problem) else chosen


def _name(release: ProgramRelease) -> str:
    """The name of a chart, from an address or a path."""
    return re.sub(r"(-v?\d[^/]*)?(\.tgz)?/?$", "", release.chart.strip()).rpartition("/")[2]


def _said(version: str) -> str:
    return bare_version(version) or "whatever is newest"


def _step(release: ProgramRelease, message: str, hint: str) -> Danger:
    return Danger(
        who=_ref(release), code="upgrade-step-first", message=message, hint=hint, place=release.place
    )


def _count_domains(sides: Sides) -> int:
    own = [
        item
        for ref, item in sides.before.objects.items()
        if ref.kind == "ComputeDomain" and group_of(item.manifest) == _CRD_GROUP
    ]
    running = sum(group_of(each) == _CRD_GROUP for each in sides.running.of_kind("ComputeDomain"))
    return running if sides.snapshot else len(own)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif path:
        yield path, value


def _is_above(path: str, leaves: Mapping[str, Any]) -> bool:
    """Whether a path that held one value now holds several."""
    return any(each.startswith(f"{path}.") for each in leaves)
