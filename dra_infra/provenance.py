"""What an answer was checked for: releases of Kubernetes, feature gates, drivers, dra-infra, and the commits of a review.

Every report has one line of it, and as data every field. Both are made here, from one record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from dra_infra.catalog.drivers import Pins, newest, read_pins
from dra_infra.kubernetes.api import GATES, Release
from dra_infra.output.wording import join_words, shorten
from dra_infra.release import VERSION

if TYPE_CHECKING:
    from dra_infra.fleet import Fleet
    from dra_infra.program_objects import Program
    from dra_infra.target import ClusterTarget

Origin = Literal["commit", "working tree", "compiled", "files"]
"""Where a side of a review was read: a commit, a working tree, the file of `dra-infra compile`, or files of no known commit."""

_NVIDIA: Final = "NVIDIA DRA driver"
_LETTERS: Final = 12
"""Letters of a commit that the line shows; the data has all of them."""
_LONGEST: Final = 100
"""Characters of a name that the line shows."""
_MOST: Final = 8
"""Releases and gates that the line names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewedSide:
    """One side of a review.

    Args:
        origin: Where it was read.
        label: The revision as the user named it; empty where no revision was named.
        commit: The full hash; empty where none is known.
        is_changed: Whether the tree that was read or compiled has files that are not committed.
    """

    origin: Origin
    label: str = ""
    commit: str = ""
    is_changed: bool = False

    def describe(self, show: Callable[[str], str] = str) -> str:
        """Return the side in a few words, such as `main at 1a2b3c4d5e6f`.

        Args:
            show: Makes code of a name or a commit.
        """
        if not self.commit:
            return f"{'compiled from' if self.origin == 'compiled' else 'files of'} no known commit"
        commit = show(self.commit[:_LETTERS])
        changed = " with files that are not committed" if self.is_changed else ""
        if self.origin == "compiled":
            return f"compiled from {commit}{changed}"
        if self.origin == "working tree":
            return f"working tree on {commit}{changed}"
        is_hash = not self.label or self.commit.startswith(self.label)
        return commit if is_hash else f"{show(shorten(self.label, _LONGEST))} at {commit}"

    def to_json(self) -> dict[str, Any]:
        """Return the side as JSON data; every key is always there."""
        return {
            "origin": self.origin,
            "label": self.label,
            "commit": self.commit,
            "uncommitted": self.is_changed,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """What an answer was checked for.

    Args:
        releases: The Kubernetes releases whose rules decided, oldest first; empty where those of the cluster are not known here.
        placement: The release whose scheduler places the pods; None where nothing is placed.
        base_placement: The release whose scheduler places the pods of a review's base; None where that is `placement`, or nothing is placed.
        serves: Versions of resource.k8s.io that an API server serves beside v1.
        server: The version that the API server of a live cluster reports.
        drivers: Release lines of the drivers that the objects are checked for.
        fleet_drivers: Release lines of the drivers that publish the devices of a fleet by name.
        base: The side before the change; None where nothing is compared.
        head: The side after the change.
        version: The version of dra-infra.
    """

    releases: tuple[Release, ...] = ()
    placement: Release | None = None
    base_placement: Release | None = None
    serves: tuple[str, ...] = ()
    server: str = ""
    drivers: tuple[str, ...] = ()
    fleet_drivers: tuple[str, ...] = ()
    base: ReviewedSide | None = None
    head: ReviewedSide | None = None
    version: str = VERSION

    @classmethod
    def of(
        cls,
        releases: Iterable[Release],
        *,
        driver: str | None = None,
        fleet: Fleet | None = None,
        placement: Release | None = None,
        serves: Iterable[str] = (),
        server: str = "",
    ) -> Provenance:
        """Return the provenance of an answer.

        Args:
            releases: The releases whose rules decide.
            driver: What the user wrote behind `--driver`; None where the cluster has its own drivers.
            fleet: The hardware.
            placement: The release whose scheduler places the pods; None where nothing is placed.
            serves: Versions of resource.k8s.io that an API server serves. All serve v1, so it is not named.
            server: The version that the API server reports.

        Raises:
            InvalidSpecError: `unknown-driver-release`.
        """
        published = fleet.driver_releases if fleet is not None else ()
        return cls(
            releases=_sort_releases(releases),
            placement=placement,
            serves=tuple(sorted(set(serves) - {"v1"})),
            server=server,
            drivers=_find_drivers(driver, published) if driver is not None else (),
            fleet_drivers=published,
        )

    @classmethod
    def of_program(
        cls, program: Program, *, target: ClusterTarget, fleet: Fleet | None = None, is_placed: bool = False
    ) -> Provenance:
        """Return the provenance of an answer about a program. Components may be meant for a cluster of their own.

        Args:
            program: The objects.
            target: The cluster of objects that have none of their own.
            fleet: The hardware.
            is_placed: Whether pods are placed, by the newest release of the target.

        Raises:
            InvalidSpecError: As `ClusterTarget.releases`, and `unknown-driver-release`.
        """
        targets = {target, *(each.target for each in program.objects if each.target is not None)}
        releases = {release for each in targets for release in each.releases}
        placement = target.releases[-1] if is_placed else None
        serves = {version for each in targets for version in each.serves}
        return cls.of(releases, driver=program.driver, fleet=fleet, placement=placement, serves=serves)

    def with_base(self, base: Program) -> Provenance:
        """Return the provenance of a review that also places the pods of a base, by the release of the base itself.

        Args:
            base: The program before. One without objects has no pods, so its release decides nothing.

        Raises:
            InvalidSpecError: As `ClusterTarget.releases`.
        """
        if self.placement is None or not base.objects or base.release == self.placement:
            return self
        releases = _sort_releases([*self.releases, base.release])
        return replace(self, releases=releases, base_placement=base.release)

    def describe(self, *, plain: Callable[[str], str] = str, code: Callable[[str], str] | None = None) -> str:
        """Return the one line of a report.

        Args:
            plain: Escapes text for the form of the report.
            code: Makes code of a name or a commit; None escapes it as text.
        """
        show = code or plain
        gates = self._shared_gates
        parts = [plain(self._describe_releases(gates))]
        if gates:
            parts.append(plain(_name_gates(gates)))
        if self.serves:
            parts.append(plain(f"served as {join_words(self.serves, most=_MOST)} too"))
        if self.placement is not None and self.releases != (self.placement,):
            parts.append(f"placed by the rules of {self._describe_placement(self.placement)}")
        if self.drivers:
            parts.append(plain(join_words(self.drivers, most=_MOST)))
        if more := [each for each in self.fleet_drivers if each not in self.drivers]:
            parts.append(plain(f"fleet with {join_words(more, most=_MOST)}"))
        line = f"checked for {', '.join(parts)}, by dra-infra {plain(self.version)}"
        sides = {"base": self.base, "head": self.head}
        told = [f"{name} {side.describe(show)}" for name, side in sides.items() if side is not None]
        return f"{line}; {', '.join(told)}" if told else line

    def to_json(self) -> dict[str, Any]:
        """Return the provenance as JSON data; every key is always there."""
        return {
            "text": self.describe(),
            "kubernetes": [
                {"minor": each.minor, "patch": each.patch, "rules": each.rules, "gates": _changed_gates(each)}
                for each in self.releases
            ],
            "placement": self.placement.minor if self.placement is not None else None,
            "basePlacement": self.base_placement.minor if self.base_placement is not None else None,
            "serves": list(self.serves),
            "server": self.server,
            "drivers": list(self.drivers),
            "fleetDrivers": list(self.fleet_drivers),
            "version": self.version,
            "base": self.base.to_json() if self.base is not None else None,
            "head": self.head.to_json() if self.head is not None else None,
        }

    def to_properties(self) -> dict[str, str]:
        """Return the provenance as names with texts, for forms that have nothing else; what is not known is left out."""
        found = {
            "provenance": self.describe(),
            "kubernetes": join_words((each.patch for each in self.releases), most=_MOST),
            "gates": " ".join(
                f"{each.minor}:{name}={_word(value)}"
                for each in self.releases
                for name, value in _changed_gates(each).items()
            ),
            "placement": self.placement.patch if self.placement is not None else "",
            "basePlacement": self.base_placement.patch if self.base_placement is not None else "",
            "serves": ", ".join(self.serves),
            "server": self.server,
            "drivers": ", ".join(self.drivers),
            "fleetDrivers": ", ".join(self.fleet_drivers),
            "version": self.version,
            "base": self.base.commit if self.base is not None else "",
            "head": self.head.commit if self.head is not None else "",
        }
        return {name: text for name, text in found.items() if text}

    def _describe_placement(self, placement: Release) -> str:
        name = _name_release(placement)
        if self.base_placement is None:
            return name
        if self.base_placement.patch != placement.patch:
            is_other_minor = self.base_placement.minor != placement.minor
            of_base = _name_release(self.base_placement) if is_other_minor else self.base_placement.patch
            return f"{name if is_other_minor else placement.patch}, the base by those of {of_base}"
        return f"{name}, the base with its own gates"

    @property
    def _shared_gates(self) -> dict[str, bool]:
        """The gates that are set otherwise than by default, and alike in every release that has them."""
        return {
            name: value
            for each in self.releases
            for name, value in _changed_gates(each).items()
            if all(other.enabled(name) == value for other in self.releases if other.minor in GATES[name])
        }

    def _describe_releases(self, gates: Mapping[str, bool]) -> str:
        server = shorten(self.server, _LONGEST)
        if not self.releases:
            return f"Kubernetes {server or 'of a version that is not known'}, whose rules are not known here"
        told = []
        for each in self.releases:
            own = {name: value for name, value in _changed_gates(each).items() if name not in gates}
            told.append(
                f"{_name_release(each)} (rules of {each.rules}{f', {_name_gates(own)}' if own else ''})"
            )
        reported = f", which the API server reports as {server}" if server else ""
        return f"Kubernetes {join_words(told, most=_MOST)}{reported}"


def _sort_releases(releases: Iterable[Release]) -> tuple[Release, ...]:
    """The releases once each, the oldest first."""
    return tuple(
        sorted(set(releases), key=lambda each: (each.number, _patch_number(each), sorted(each.gates)))
    )


def _patch_number(release: Release) -> int:
    return int(release.patch.rpartition(".")[2])


def _name_release(release: Release) -> str:
    """The minor; the patch where its own rules are not known."""
    return release.minor if release.rules == release.patch else release.patch


def _changed_gates(release: Release) -> dict[str, bool]:
    """The gates that are set otherwise than the minor of the release sets them."""
    return {
        name: release.enabled(name)
        for name, states in sorted(GATES.items())
        if release.minor in states and release.enabled(name) != states[release.minor].default
    }


def _name_gates(gates: Mapping[str, bool]) -> str:
    noun = "gate" if len(gates) == 1 else "gates"
    return f"{noun} {join_words((f'{name}={_word(value)}' for name, value in gates.items()), most=_MOST)}"


def _word(value: bool) -> str:  # noqa: FBT001  (a value of a gate)
    return "true" if value else "false"


def _find_drivers(text: str, published: Iterable[str]) -> tuple[str, ...]:
    """The release lines that objects are checked for, of the products that were named or are on the fleet, else of NVIDIA's."""
    lines, usual = _lines_by_product(read_pins(text)), _lines_by_product(newest())
    names = {name for name, line in lines.items() if line != usual[name]}
    names |= {name for name in lines if any(each.startswith(f"{name} ") for each in published)}
    return tuple(f"{name} {lines[name]}" for name in sorted(names or {_NVIDIA}))


def _lines_by_product(pins: Pins) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in pins.releases.values():
        # The first driver of a product has its GPUs; others of it may have come later.
        found.setdefault(each.product, each.line)
    return found
