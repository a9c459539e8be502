"""Helm releases that are changed, upgraded or uninstalled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.catalog.charts import bare_version
from dra_infra.catalog.drivers import drivers
from dra_infra.model.metadata import ObjectRef
from dra_infra.model.program import ProgramRelease
from dra_infra.planning.dangers.known_charts import DRIVER, choose_chart, name_of_chart, ref_of, show_version
from dra_infra.planning.dangers.record import Danger
from dra_infra.planning.dangers.sides import Sides
from dra_infra.planning.dangers.upgrades import find_upgrade_steps
from dra_infra.planning.wording import count_of, join_words

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


def _describe_removed(old: ProgramRelease, new: ProgramRelease | None, sides: Sides) -> Danger:
    chosen = choose_chart(old)
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
        who=ref_of(old),
        code="release-removed",
        message=f"is uninstalled{instead}: Helm deletes all that the chart {name_of_chart(old)} made, except its CRDs{then}",
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
        parts.append(
            f"goes from {show_version(versions[0])} to {show_version(versions[1])} of {name_of_chart(new)}"
        )
    elif name_of_chart(old) != name_of_chart(new):
        parts.append(f"goes from the chart {name_of_chart(old)} to {name_of_chart(new)}")
    if changed:
        parts.append(f"writes {count_of(len(changed), 'value')} anew ({join_words(changed)})")
    if parts:
        yield Danger(
            who=ref_of(new),
            code="release-changed",
            message=" and ".join(parts) + _effect(new),
            hint=""
            if any(each.chart for each in sides.head.objects)
            else "--charts shows the objects that change with it",
            place=new.place,
        )
    if reset:
        yield Danger(
            who=ref_of(new),
            code="release-values-reset",
            message=f"no longer writes {join_words(reset)}: the chart's own defaults count again",
            hint="write them out if they are to stay",
            place=new.place,
        )
    yield from find_upgrade_steps(old, new, {*changed, *reset}, sides)


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
    """Whether a path that held one value now holds several."""
    return any(each.startswith(f"{path}.") for each in leaves)
