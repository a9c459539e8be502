"""Dangers of Helm releases that are changed, upgraded or uninstalled.

For releases whose charts are known here, these are also steps that must go before an upgrade of the platform, and
what its drivers do meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.catalog.charts import bare_version, chart_name_of, charts
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.platforms import chart_rules
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import ObjectRef, group_of, is_placeholder
from dra_infra.output.wording import count_of, join_words
from dra_infra.program_objects import ProgramRelease
from dra_infra.review.comparison import Comparison
from dra_infra.review.dangers import Danger
from dra_infra.specs.platform.driver_rules import check_upgrade
from dra_infra.specs.platform.releases import ChosenRelease, choose_release, numbers
from dra_infra.specs.platform.values import Values

DRIVER: Final = "NVIDIA DRA driver"
OPERATOR: Final = "GPU Operator"


def choose_chart(release: ProgramRelease) -> ChosenRelease | None:
    """The known chart; None for one that is not known here."""
    chart = charts().get(chart_name_of(release.chart))
    if chart is None or not numbers(release.version):
        return None
    chosen = choose_release(chart.product, release.version)
    return None if isinstance(chosen, Problem) else chosen


def show_version(version: str) -> str:
    """A version of a chart, also where none is written."""
    return bare_version(version) or "whatever is newest"


_CRD_GROUP: Final = "resource.nvidia.com"
_IMEX: Final = ("resources.computeDomains.imex.mode", "resources.computeDomains.imex.isolation")


def find_upgrade_steps(
    old: ProgramRelease, new: ProgramRelease, touched: set[str], compared: Comparison
) -> Iterator[Danger]:
    """`upgrade-step-first` and `kernel-driver-changed`; *touched* are the paths of the values that differ."""
    before, after = choose_chart(old), choose_chart(new)
    if before is None or after is None or before.product != after.product:
        return
    if after.product == DRIVER:
        yield from _find_driver_steps(old, new, after, compared)
        domains = _count_domains(compared)
        if domains:
            for path in sorted(touched.intersection(_IMEX)):
                yield _step(
                    new,
                    f"changes {path} while there {'is' if domains == 1 else 'are'} {count_of(domains, 'ComputeDomain')}",
                    "delete the ComputeDomains first, and make them anew afterwards",
                )
    elif after.product == OPERATOR:
        yield from _find_kernel_driver(old, new, before, after)


def _find_driver_steps(
    old: ProgramRelease, new: ProgramRelease, chosen: ChosenRelease, compared: Comparison
) -> Iterator[Danger]:
    # A component that was told what is installed has said it already, as a problem.
    if (
        not old.version
        or not new.version
        or any(
            problem.code == "chart-upgrade" and new.component and problem.path.startswith(str(new.component))
            for problem in compared.head.problems
        )
    ):
        return
    values = _values(new, chosen)
    if is_placeholder(values.get("nameOverride")):
        return
    has_crds = any(
        ref.kind == "CustomResourceDefinition" and ref.name.endswith(f".{_CRD_GROUP}")
        for ref in compared.head_index.objects
    )
    for problem in check_upgrade(values, old.version, with_crds=has_crds):
        yield _step(
            new,
            f"goes from {show_version(old.version)} to {show_version(new.version)}: {problem.message}",
            problem.hint,
        )


def _find_kernel_driver(
    old: ProgramRelease, new: ProgramRelease, before: ChosenRelease, after: ChosenRelease
) -> Iterator[Danger]:
    was, now = _kernel_driver(old, before), _kernel_driver(new, after)
    if was and now and was != now:
        yield Danger(
            who=new.ref,
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
        return "" if is_placeholder(written) else written
    known = chosen.chart.versions.get(chosen.version)
    return known.kernel_driver if known else ""


def _values(release: ProgramRelease, chosen: ChosenRelease) -> Values:
    rules = chart_rules(chosen.product)
    return Values(chosen, release.values, release.values, {}, rules.defaults)


def _step(release: ProgramRelease, message: str, hint: str) -> Danger:
    return Danger(who=release.ref, code="upgrade-step-first", message=message, hint=hint, place=release.place)


def _count_domains(compared: Comparison) -> int:
    own = [
        item
        for ref, item in compared.base_index.objects.items()
        if ref.kind == "ComputeDomain" and group_of(item.manifest) == _CRD_GROUP
    ]
    running = sum(group_of(each) == _CRD_GROUP for each in compared.running.of_kind("ComputeDomain"))
    return running if compared.running.snapshot else len(own)


_MISSING: Final = object()


def find_release_dangers(compared: Comparison) -> Iterator[Danger]:
    """`release-removed`, `release-changed`, `release-values-reset`, `upgrade-step-first`, `kernel-driver-changed`."""
    after = {release.urn: release for release in compared.head.releases}
    installed = {release.ref for release in compared.head.releases}
    for old in compared.base.releases:
        new = after.get(old.urn) or next(
            (each for each in compared.head.releases if each.ref == old.ref), None
        )
        if old.ref not in installed:
            yield _describe_removed(old, new, compared)
        elif new is not None:
            yield from _compare(old, new, compared)


def _describe_removed(old: ProgramRelease, new: ProgramRelease | None, compared: Comparison) -> Danger:
    chosen = choose_chart(old)
    shipped = [
        ObjectRef(kind="DeviceClass", name=each.name)
        for driver in (drivers().values() if chosen else ())
        if chosen and driver.product == chosen.product and chosen.line in driver.by_line
        for each in driver.by_line[chosen.line].classes
    ]
    users = sorted({user for ref in shipped for user in compared.users.get(ref, ())})
    instead = f", and {new.namespace}/{new.name} is installed beside it" if new else ""
    then = (
        f"; {join_words(users)} still {'names' if len(users) == 1 else 'name'} its classes" if users else ""
    )
    return Danger(
        who=old.ref,
        code="release-removed",
        message=f"is uninstalled{instead}: Helm deletes all that the chart {chart_name_of(old.chart)} made, except its CRDs{then}",
        hint="keep name and namespace, or stop the pods that hold its devices first" if chosen else "",
        place=old.place,
    )


def _compare(old: ProgramRelease, new: ProgramRelease, compared: Comparison) -> Iterator[Danger]:
    was, now = dict(_leaves(old.values)), dict(_leaves(new.values))
    reset = sorted(path for path in was if path not in now and not _is_above(path, now))
    changed = sorted(path for path in now if was.get(path, _MISSING) != now[path])
    versions = bare_version(old.version), bare_version(new.version)
    parts = []
    if versions[0] != versions[1]:
        parts.append(
            f"goes from {show_version(versions[0])} to {show_version(versions[1])} of {chart_name_of(new.chart)}"
        )
    elif chart_name_of(old.chart) != chart_name_of(new.chart):
        parts.append(f"goes from the chart {chart_name_of(old.chart)} to {chart_name_of(new.chart)}")
    if changed:
        parts.append(f"writes {count_of(len(changed), 'value')} anew ({join_words(changed)})")
    if parts:
        yield Danger(
            who=new.ref,
            code="release-changed",
            message=" and ".join(parts) + _effect(new),
            hint=""
            if any(each.chart for each in compared.head.objects)
            else "--charts shows the objects that change with it",
            place=new.place,
        )
    if reset:
        yield Danger(
            who=new.ref,
            code="release-values-reset",
            message=f"no longer writes {join_words(reset)}: the chart's own defaults count again",
            hint="write them out if they are to stay",
            place=new.place,
        )
    yield from find_upgrade_steps(old, new, {*changed, *reset}, compared)


def _effect(release: ProgramRelease) -> str:
    chosen = choose_chart(release)
    if chosen and chosen.product == DRIVER:
        # maxUnavailable of the plugin's DaemonSet is 100%.
        return ": the plugin restarts on all nodes at once, pods that run are untouched"
    return ""


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif path:
        yield path, value


def _is_above(path: str, leaves: Mapping[str, Any]) -> bool:
    """True for a path that held one value and now holds several."""
    return any(each.startswith(f"{path}.") for each in leaves)
