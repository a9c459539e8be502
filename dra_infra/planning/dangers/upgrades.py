"""Steps that must go before an upgrade of the platform, and what its drivers do meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dra_infra.catalog.platforms import chart_rules
from dra_infra.model.program import SECRET, UNKNOWN, ProgramRelease
from dra_infra.planning.dangers.known_charts import DRIVER, OPERATOR, choose_chart, ref_of, show_version
from dra_infra.planning.dangers.record import Danger
from dra_infra.planning.dangers.sides import Sides
from dra_infra.planning.replacement import group_of
from dra_infra.planning.wording import count_of
from dra_infra.specs.platform.driver_rules import check_upgrade
from dra_infra.specs.platform.releases import ChosenRelease
from dra_infra.specs.platform.values import Values

_CRD_GROUP: Final = "resource.nvidia.com"
_IMEX: Final = ("resources.computeDomains.imex.mode", "resources.computeDomains.imex.isolation")


def find_upgrade_steps(
    old: ProgramRelease, new: ProgramRelease, touched: set[str], sides: Sides
) -> Iterator[Danger]:
    """`upgrade-step-first` and `kernel-driver-changed`.

    Args:
        old: The release of the base.
        new: The release of the head.
        touched: Paths of the values that differ.
        sides: Both sides.
    """
    before, after = choose_chart(old), choose_chart(new)
    if before is None or after is None or before.product != after.product:
        return
    if after.product == DRIVER:
        yield from _find_driver_steps(old, new, after, sides)
        domains = _count_domains(sides)
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
            who=ref_of(new),
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


def _step(release: ProgramRelease, message: str, hint: str) -> Danger:
    return Danger(
        who=ref_of(release), code="upgrade-step-first", message=message, hint=hint, place=release.place
    )


def _count_domains(sides: Sides) -> int:
    own = [
        item
        for ref, item in sides.before.objects.items()
        if ref.kind == "ComputeDomain" and group_of(item.manifest) == _CRD_GROUP
    ]
    running = sum(group_of(each) == _CRD_GROUP for each in sides.running.of_kind("ComputeDomain"))
    return running if sides.snapshot else len(own)
