"""Node pools of a fleet file: the machine of a pool, how many there are and may be, and the price that the user gave.

Prices come from the file, from the one that it names under `prices`, or from a command's output; none are known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, TypeVar

from dra_infra.catalog.autoscalers import autoscalers, order_of
from dra_infra.catalog.driver_settings import whole_number
from dra_infra.catalog.fleet_files import (
    OWN_KEYS,
    POOLS_KEY,
    TOP_KEY,
    describe_nodes,
    malformed,
    read_node_groups,
    unknown_key,
)
from dra_infra.catalog.fleet_terms import MAX_NODES, read_terms
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.documents.json_texts import ForeignJsonError, read_foreign_json
from dra_infra.errors import FleetError, Problem
from dra_infra.fleet import Billing, Fleet, NodePool, PoolScaler
from dra_infra.kubernetes.api.names import is_label_key
from dra_infra.output.wording import join_words, nearest
from dra_infra.target import NEWEST_DRIVER

MAX_POOLS: Final = 100
"""Most node pools of a fleet."""
MAX_PRICES: Final = 1 << 20
"""Bytes of a file with prices."""
_PERIODS: Final = ("hour", "day", "week", "month", "year")
_PRICE: Final = re.compile(r"\d{1,9}(\.\d{1,9})?")
_FILE_KEYS: Final = (TOP_KEY, POOLS_KEY, "currency", "teamLabel", "prices")
_POOL_KEYS: Final = ("nodes", "min", "max", "count", "price", "per", "autoscaler", *OWN_KEYS)
_SCALER_KEYS: Final = ("name", "version", "countsClaims")


@dataclass(frozen=True, slots=True)
class PoolOfGroup:
    """A node pool as a file has it.

    Args:
        group: Its nodes, as many as it may have.
        machine: The name of its hardware as it is written, without options.
        now: How many nodes, or racks, it has.
        price: Of one of them.
        per: The time that the price is for; empty where nothing is said.
        scaler: Its autoscaler; None where the file names none.
    """

    group: NodeGroup
    machine: str
    now: int
    price: Decimal | None
    per: str
    scaler: PoolScaler | None = None

    @property
    def name(self) -> str:
        """The user's name of the pool, with which the names of its nodes begin."""
        return self.group.name


_Pool = TypeVar("_Pool", PoolOfGroup, NodePool)


@dataclass(frozen=True, slots=True)
class DescribedFleet:
    """A fleet as texts and files describe it: groups of nodes, and node pools that may grow."""

    name: str
    groups: Sequence[NodeGroup]
    pools: Sequence[PoolOfGroup] = ()
    billing: Billing = field(default_factory=Billing)
    notes: tuple[str, ...] = ()

    @property
    def all_groups(self) -> list[NodeGroup]:
        """The groups, then those of the pools at their largest."""
        return [*self.groups, *(pool.group for pool in self.pools)]


def read_described(document: Mapping[str, Any], file: str, *, driver: str = NEWEST_DRIVER) -> DescribedFleet:
    """Read a fleet file with groups of nodes or node pools.

    Args:
        document: The YAML document.
        file: Path of the file: for problems, and for the file of prices, which is looked for beside it.
        driver: Releases of the drivers for groups and pools that name none.

    Raises:
        FleetError: `fleet-object`, `node-pool`, `prices-unreadable`, and the codes of `read_group` and `read_terms`; all at
            once.
    """
    known = (TOP_KEY,) if POOLS_KEY not in document else _FILE_KEYS
    problems = [unknown_key(key, known, f"{file}.{key}") for key in document if key not in known]
    groups: list[NodeGroup] = []
    if TOP_KEY in document:
        groups, found = read_node_groups(document[TOP_KEY], file, driver=driver)
        problems += found
    entries = document.get(POOLS_KEY, [])
    if POOLS_KEY in document and not (isinstance(entries, list) and 0 < len(entries) <= MAX_POOLS):
        text = f"there is no list of 1 to {MAX_POOLS} node pools"
        problems.append(
            malformed(f"{file}.{POOLS_KEY}", text, "write - {name: a3, nodes: hgx-h100, min: 0, max: 4}")
        )
        entries = []
    pools = [_read_pool(entry, f"{file}.{POOLS_KEY}[{index}]", driver) for index, entry in enumerate(entries)]
    problems += [each for _, found in pools for each in found]
    read = [pool for pool, _ in pools if pool is not None]
    names = [each.name for each in read] + [each.name for each in groups]
    problems += [
        _refused(f"{file}.{POOLS_KEY}", f"{name} is there twice", "give each pool a name of its own")
        for name in sorted({name for name in names if names.count(name) > 1} & {each.name for each in read})
    ]
    billing = _read_billing(document, file, read, problems)
    if problems:
        raise FleetError(problems)
    notes = _name_untimed(read, billing.per)
    if "prices" not in document:
        return DescribedFleet(file, groups, read, billing, notes)
    prices = _read_beside(document["prices"], file)
    notes += _name_unused(read, prices)
    return DescribedFleet(file, groups, _with_prices(read, prices), billing, notes)


def _read_pool(entry: Any, path: str, driver: str) -> tuple[PoolOfGroup | None, list[Problem]]:
    if not isinstance(entry, Mapping) or "nodes" not in entry or "name" not in entry:
        hint = "write {name: a3-h100, nodes: hgx-h100, min: 2, max: 10}"
        return None, [_refused(path, "a node pool needs a name, and nodes: what one of its nodes is", hint)]
    problems = [unknown_key(key, _POOL_KEYS, f"{path}.{key}") for key in entry if key not in _POOL_KEYS]
    group = None
    try:
        groups = read_terms(str(entry["nodes"]), driver=driver)
        group = groups[0]
        if len(groups) > 1 or group.count > 1:
            hint = "write one name without a count, such as hgx-h100; min and max say how many there are"
            problems.append(_refused(f"{path}.nodes", "a pool has one kind of node, without a count", hint))
    except FleetError as error:
        problems += [replace(each, path=f"{path}.nodes") for each in error.problems]
    least, most = (_number(entry, key, 0, path, problems) for key in ("min", "max"))
    now = _number(entry, "count", least, path, problems)
    if not problems and not least <= now <= most:
        counted = f", count {now}" if entry.get("count") is not None else ""
        text = f"min {least}{counted} and max {most} are not in this order"
        problems.append(_refused(f"{path}.max", text, f"write max: {max(least, now, 1)}"))
    elif not problems and not most:
        problems.append(_refused(f"{path}.max", "a pool that may have no nodes is none", "write max: 4"))
    price = None
    per = str(entry.get("per") or "")
    if entry.get("price") is not None:
        price = read_price(entry["price"], f"{path}.price", problems)
    if per and per not in _PERIODS:
        text = f"{per[:40]!r} is no time that prices are for here"
        problems.append(_refused(f"{path}.per", text, f"write one of {', '.join(_PERIODS)}"))
    scaler = _read_scaler(entry, f"{path}.autoscaler", problems)
    described = describe_nodes(group, entry, path, problems)
    if described is None:
        return None, problems
    return PoolOfGroup(described.times(most), str(entry["nodes"]).split()[0], now, price, per, scaler), []


def _read_scaler(entry: Mapping[str, Any], path: str, problems: list[Problem]) -> PoolScaler | None:
    """Return the autoscaler that an entry names; None where it names none, or with a problem, `node-pool`."""
    written = entry.get("autoscaler")
    if written is None:
        return None
    scaler = written if isinstance(written, Mapping) else {"name": written}
    problems += [unknown_key(key, _SCALER_KEYS, f"{path}.{key}") for key in scaler if key not in _SCALER_KEYS]
    known = autoscalers().get(str(scaler.get("name")))
    if known is None:
        near = nearest(str(scaler.get("name"))[:60], autoscalers())
        text = f"{str(scaler.get('name'))[:60]!r} is no autoscaler that is known"
        hint = f"did you mean {near}?" if near else f"write one of {', '.join(autoscalers())}"
        problems.append(_refused(path, text, hint))
        return None
    version, counts = str(scaler.get("version", "")), scaler.get("countsClaims")
    if version and not order_of(version):
        problems.append(
            _refused(f"{path}.version", f"{version[:40]!r} is no version", 'write version: "1.15"')
        )
    if counts is not None and not isinstance(counts, bool):
        hint = "write countsClaims: true where its setting lets claims count"
        problems.append(_refused(f"{path}.countsClaims", f"{str(counts)[:40]!r} is not true or false", hint))
        counts = None
    labels = entry.get("labels")
    lines = known.lines_in(labels if isinstance(labels, Mapping) else {}, {})
    return PoolScaler(autoscaler=known.name, version=version, counts_claims=counts, lines=lines)


def _number(entry: Mapping[str, Any], key: str, default: int, path: str, problems: list[Problem]) -> int:
    written = entry.get(key)
    if written is None and key != "max":
        return default
    number = -1 if written is None else whole_number(written)
    if 0 <= number <= MAX_NODES:
        return number
    said = "it is missing" if written is None else f"{str(written)[:40]!r} is not a number of nodes"
    problems.append(_refused(f"{path}.{key}", said, f"write a whole number up to {MAX_NODES:,}: {key}: 4"))
    return default


def read_price(written: Any, path: str, problems: list[Problem]) -> Decimal | None:
    """A price of a file; None with a problem, `node-pool`, where it is no amount."""
    # Shortest digits that read as the float are those that were written, up to fifteen of them.
    text = repr(written) if isinstance(written, float) else str(written)
    if not isinstance(written, bool) and _PRICE.fullmatch(text):
        return Decimal(text)
    try:
        # A small number that Python writes with an exponent.
        amount = Decimal(text) if isinstance(written, float) else Decimal("NaN")
    except InvalidOperation:
        amount = Decimal("NaN")
    if _PRICE.fullmatch(f"{amount:f}"):
        return Decimal(f"{amount:f}")
    text = f"{str(written)[:40]!r} is no price"
    hint = "write an amount with at most 9 digits on each side of the point, such as 98.32"
    problems.append(_refused(path, text, hint))
    return None


def _read_billing(
    document: Mapping[str, Any], file: str, pools: Sequence[PoolOfGroup], problems: list[Problem]
) -> Billing:
    currency, label = document.get("currency", ""), document.get("teamLabel", Billing().team_label)
    if not (isinstance(currency, str) and len(currency) <= 8 and currency.isprintable()) or " " in currency:
        hint = "write a short label without blanks, such as USD"
        problems.append(_refused(f"{file}.currency", f"{str(currency)[:40]!r} is no currency", hint))
    if not isinstance(label, str) or (label and not is_label_key(label)):
        hint = "write the key of a label, such as team or example.com/team"
        problems.append(_refused(f"{file}.teamLabel", f"{str(label)[:40]!r} is no key of a label", hint))
    periods = sorted({each.per for each in pools if each.per})
    if len(periods) > 1:
        text = f"prices are for {' and for '.join(periods)}: they cannot be added"
        problems.append(
            _refused(f"{file}.{POOLS_KEY}", text, "give all prices for one time, such as per: hour")
        )
    return Billing(currency=str(currency), per=periods[0] if periods else "hour", team_label=str(label))


def _read_beside(name: Any, file: str) -> dict[str, Decimal]:
    """The prices of the file that a fleet file names; it lies beside it or below, whatever links are there."""
    try:
        folder = Path(file).resolve().parent
        beside = (folder / name).resolve() if isinstance(name, str) else Path("/")
        if not beside.is_relative_to(folder):
            text = f"{str(name)[:80]!r} is no file beside the fleet file, or below"
            raise FleetError([_refused(f"{file}.prices", text, "write prices: prices.json")])
        with beside.open("rb") as stream:
            data = stream.read(MAX_PRICES + 1)
    except (OSError, ValueError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no path"
        raise FleetError([_unreadable(f"{file}.prices", f"{str(name)[:80]!r}: {why}")]) from error
    return read_prices(data, f"{file}.prices")


def read_prices(data: bytes, path: str) -> dict[str, Decimal]:
    """Prices by the names of pools and machines, of a JSON text: `{"a3-h100": 98.32, "l4": "0.70"}`.

    Raises:
        FleetError: `prices-unreadable` for what is no such text, `node-pool` for what is no price.
    """
    if len(data) > MAX_PRICES:
        raise FleetError([_unreadable(path, f"it has more than {MAX_PRICES:,} bytes")])
    try:
        prices = read_foreign_json(data)
    except ForeignJsonError:
        prices = None
    if not isinstance(prices, dict):
        raise FleetError([_unreadable(path, "it is no JSON object")])
    problems: list[Problem] = []
    read = {name: read_price(value, f"{path}.{name[:80]}", problems) for name, value in prices.items()}
    if problems:
        raise FleetError(problems[:20])
    return {name: price for name, price in read.items() if price is not None}


def price_pools(fleet: Fleet, prices: Mapping[str, Decimal]) -> Fleet:
    """The fleet with these prices for its pools, by their name, else by their machine; other pools keep theirs.

    A note names the prices that are for none of them.

    Raises:
        FleetError: `node-pool` where the fleet has no pools, with what its notes say of pools that were left out.
    """
    if not fleet.pools:
        hint = "name a fleet file with pools: docs/fleets.md shows one"
        said = "; ".join((f"{fleet.name[:80]} has no node pools", *fleet.notes[:3]))
        raise FleetError([_refused("--prices", said, hint)])
    notes = (*fleet.notes, *_name_unused(fleet.pools, prices))
    return replace(fleet, pools=tuple(_with_prices(fleet.pools, prices)), notes=notes)


def _with_prices(pools: Sequence[_Pool], prices: Mapping[str, Decimal]) -> list[_Pool]:
    return [
        replace(pool, price=prices.get(pool.name, prices.get(pool.machine, pool.price))) for pool in pools
    ]


def _name_unused(pools: Sequence[_Pool], prices: Mapping[str, Decimal]) -> tuple[str, ...]:
    """A note on the prices that are for no pool: a slip, or a list for more than this fleet."""
    known = dict.fromkeys(name for pool in pools for name in (pool.name, pool.machine))
    unused = [name for name in prices if name not in known]
    if not unused:
        return ()
    near = nearest(unused[0], known) if len(unused) == 1 else ""
    meant = f"did you mean {near}? There" if near else "there"
    are = "is no pool or machine" if len(unused) == 1 else "are no pools or machines"
    named = join_words(name[:80] for name in unused)
    return (f"prices: {named} {are} of this fleet; {meant} are {join_words(known, most=8)}",)


def _name_untimed(pools: Sequence[PoolOfGroup], per: str) -> tuple[str, ...]:
    """A note on prices that are taken for another time than an hour because those of other pools are."""
    untimed = [each.name for each in pools if each.price is not None and not each.per]
    if not untimed or per == "hour":
        return ()
    return (
        f"prices of {join_words(untimed, most=8)} say no time, and count per {per} as those of others do",
    )


def _refused(path: str, message: str, hint: str) -> Problem:
    return Problem(path=path, code="node-pool", message=message, hint=hint)


def _unreadable(path: str, message: str) -> Problem:
    hint = 'write prices by pool or machine: {"a3-h100": 98.32}'
    return Problem(path=path, code="prices-unreadable", message=message, hint=hint)
