"""What a change does to the node pools of a fleet: nodes more or fewer, and what they cost per workload and team.

The price of a pool's nodes is divided among their devices; what nobody has is idle, and is a row of its own. So the rows
of the workloads and the idle one add up to what all nodes cost, to the last decimal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from dra_infra.output.wording import count_of
from dra_infra.placement.placement import Growth, Placement, price_of
from dra_infra.review.comparison import ProgramIndex

MAX_ROWS: Final = 40
"""Teams and workloads of a table; the JSON report has all."""

Part: TypeAlias = Literal["team", "workload", "idle", "all"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CostRow:
    """What one team or workload has of node pools on both sides, or what is idle, or all together.

    Args:
        part: Of what.
        name: Of the team or workload.
        devices: On the base and the head; None where that side does not fit within the limits.
        cost: What these cost; None where that is not known.
    """

    part: Part
    name: str
    devices: tuple[Fraction | None, Fraction | None]
    cost: tuple[Decimal | None, Decimal | None]

    @property
    def is_same(self) -> bool:
        """True when nothing of it changes."""
        return self.devices[0] == self.devices[1] and self.cost[0] == self.cost[1]

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Name, devices, cost and its difference, as every report shows them."""
        name = f"{self.part} {self.name}" if self.name else self.part
        before, after = self.cost
        more = "" if before is None or after is None or before == after else f"{after - before:+,}"
        devices = _arrow(*(None if each is None else _show(each) for each in self.devices))
        return name, devices, _arrow(*(None if each is None else f"{each:,}" for each in self.cost)), more


@dataclass(frozen=True, kw_only=True, slots=True)
class GrowthChange:
    """The growth that base and head need.

    Args:
        before: That of the base; None where there was none.
        after: That of the head.
        rows: Teams, workloads, what is idle, and all together.
    """

    before: Growth | None
    after: Growth
    rows: tuple[CostRow, ...]

    @property
    def unit(self) -> str:
        """What costs are in, for the head of a table: `USD an hour`."""
        return self.after.billing.unit

    @property
    def shown(self) -> list[CostRow]:
        """The rows that change, and the last two."""
        changed = [row for row in self.rows[:-2] if not row.is_same]
        return [*changed[:MAX_ROWS], *self.rows[-2:]]

    @property
    def left_out(self) -> int:
        """How many rows that change are not among `shown`."""
        return sum(not row.is_same for row in self.rows[:-2]) - (len(self.shown) - len(self.rows[-2:]))

    def __str__(self) -> str:
        if not self.after.fits:
            return str(self.after)
        before = self.before if self.before is not None and self.before.fits else None
        of_base = before.added if before else (0,) * len(self.after.added)
        diffs = [after - old for old, after in zip(of_base, self.after.added, strict=True)]
        parts = [
            f"{'+' if number > 0 else '-'}{count_of(abs(number), pool.unit)} of {pool.name}"
            for pool, number in zip(self.after.pools, diffs, strict=True)
            if number
        ] or ["no node more or less"]
        cost = price_of(self.after.pools, diffs)
        if cost:
            parts.append(f"{'+' if cost > 0 else ''}{self.after.billing.show(cost)}")
        told = f"{', '.join(parts)}; {self.after.idle:,} of {self.after.device_count:,} devices of pools idle"
        if self.before is not None and before is None:
            told += "; the base is not known to fit within the limits"
        return told if self.after.is_cheapest else f"{told}; a cheaper growth was not ruled out"


def compare_growth(
    before: Placement | None, after: Placement | None, base: ProgramIndex, head: ProgramIndex
) -> GrowthChange | None:
    """What the change does to node pools; None where the fleet has none.

    Args:
        before: Where the pods of the base go.
        after: Where those of the head go.
        base: Its workloads, which say to which team they belong.
        head: The same of the head.
    """
    if after is None or after.growth is None:
        return None
    old = before.growth if before else None
    new = after.growth
    sides = _Side.of(old, base), _Side.of(new, head)
    keys = {key for side in sides if side is not None for key in side.rows}
    rows = []
    for part, name in sorted(keys, key=lambda key: (_ORDER.index(key[0]), key[1])):
        was, now = ((None, None) if side is None else side.row(part, name) for side in sides)
        row = CostRow(part=part, name=name, devices=(was[0], now[0]), cost=(was[1], now[1]))
        rows.append(row)
    return GrowthChange(before=old, after=new, rows=tuple(rows))


_ORDER: Final[tuple[Part, ...]] = ("team", "workload", "idle", "all")


@dataclass(frozen=True, slots=True)
class _Side:
    """Devices and their cost by row of one side; costs are None where a pool with nodes has no price."""

    rows: Mapping[tuple[Part, str], tuple[Fraction, Decimal]]
    is_priced: bool

    @classmethod
    def of(cls, growth: Growth | None, program: ProgramIndex) -> _Side | None:
        if growth is None or not growth.fits:
            return None
        total = growth.cost
        prices = _prices(growth)
        label = growth.billing.team_label
        rows: dict[tuple[Part, str], tuple[Fraction, Decimal]] = {}
        left = Fraction(growth.device_count), total or Decimal()
        for owner, held in growth.held.items():
            devices = sum(held.values(), Fraction())
            exact = sum((number * prices.get(node, Fraction()) for node, number in held.items()), Fraction())
            cost = _round_money(exact, growth)
            # Who pays: the team, else the namespace.
            team = program.team_of(owner, label) or owner.namespace or "default"
            for key in (("workload", str(owner)), ("team", team)):
                known = rows.get(key, (Fraction(), Decimal()))
                rows[key] = known[0] + devices, known[1] + cost
            left = left[0] - devices, left[1] - cost
        rows["idle", ""] = left
        rows["all", ""] = Fraction(growth.device_count), total or Decimal()
        return cls(rows, total is not None)

    def row(self, part: Part, name: str) -> tuple[Fraction, Decimal | None]:
        devices, cost = self.rows.get((part, name), (Fraction(), Decimal()))
        return devices, cost if self.is_priced else None


def _prices(growth: Growth) -> dict[str, Fraction]:
    """What one device costs, by the node that it is on."""
    found: dict[str, Fraction] = {}
    for pool, added in zip(growth.pools, growth.added, strict=True):
        nodes = growth.devices.get(pool.name, {})
        devices = sum(nodes.values())
        if devices and pool.price is not None:
            found |= dict.fromkeys(nodes, Fraction(pool.price) * (pool.now + added) / devices)
    return found


def _round_money(amount: Fraction, growth: Growth) -> Decimal:
    """An amount with two decimals, or with as many as a price has."""
    digits = max(
        [2, *(-int(pool.price.as_tuple().exponent) for pool in growth.pools if pool.price is not None)]
    )
    return (Decimal(amount.numerator) / Decimal(amount.denominator)).quantize(Decimal(1).scaleb(-digits))


def _show(number: Fraction) -> str:
    return f"{int(number):,}" if number.denominator == 1 else f"{float(number):,.2f}"


def _arrow(before: str | None, after: str | None) -> str:
    """`2 → 4`, one of them where they are equal; `?` for what is not known, empty where neither is."""
    if before is None and after is None:
        return ""
    return str(after) if before == after else f"{before or '?'} → {after or '?'}"
