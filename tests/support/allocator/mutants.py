"""One rule of the allocator switched off or made another at a time: each has to be missed by a recorded case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from typing import Any, Final
from unittest.mock import PropertyMock, patch

from dra_infra.kubernetes.api import DeviceCapacity, Quantity
from dra_infra.kubernetes.scheduler.allocator import (
    NO_USE,
    AllocatedState,
    Matching,
    Quirk,
    Usage,
    Variant,
    allocator,
    capacity,
    counters,
    pools,
    requests,
    scalar_value,
    search,
    selection,
    slices,
)
from dra_infra.kubernetes.scheduler.allocator.constraints import Scope, _Distinct, _Match
from dra_infra.kubernetes.scheduler.allocator.taking import Taking
from dra_infra.kubernetes.scheduler.allocator.variants import Features

Patches = Callable[[], list[Any]]

_real_pool = pools.Pool
_real_result = allocator._result
_real_add = pools._add
_real_consumed = capacity._consumed
_real_take_counters = Taking._take_counters
_real_configure = allocator._configure
_real_variant_of = Variant


def _returns(owner: Any, name: str, value: Any) -> Patches:
    """A function that always gives *value*."""
    return lambda: [patch.object(owner, name, lambda *_args, **_kwargs: value)]


def _is(name: str, *, value: bool) -> Patches:
    """A property of every variant."""
    return lambda: [patch.object(Variant, name, PropertyMock(return_value=value))]


def _put(owner: Any, name: str, value: Any) -> Patches:
    return lambda: [patch.object(owner, name, value)]


def _without(field: str) -> Patches:
    """Results that lack a field."""
    return _put(allocator, "_result", lambda *args: _real_result(*args).changed({field: None}))


def _pool_without(field: str, value: Any) -> Patches:
    return _put(pools, "Pool", lambda *args, **rest: _real_pool(*args, **{**rest, field: value}))


def _full_range(amount: Quantity, *_: Any) -> Quantity:
    return amount


def _value_only(requested: Quantity | None, offered: DeviceCapacity, _: Variant) -> Quantity:
    return requested or Quantity.parse(offered.value)


def _take_for_each_share(taking: Taking, *args: Any, **_: Any) -> bool:
    return _real_take_counters(taking, *args, is_share=False)


def _ignore_bare_names(published: Any, name: str) -> Any:
    return (published.device.attributes or {}).get(name)


def _first_entry(self: Any, key: Any, number: int) -> Any:
    return self._allocate(key, number, is_entry=True, start=0)


def _each_once(claim: Any, chosen: Any, _: Variant) -> Any:
    return list({id(each): each for each in _real_configure(claim, chosen, replace(_NEWEST))}.values())


_NEWEST: Final = Variant(number=37, channel="incubating", features=Features(), gates=frozenset())

MUTANTS: Final[dict[str, Patches]] = {
    "slices of an older generation stay": _put(
        pools, "_add", lambda gathered, each: gathered.setdefault(slices.PoolID.of(each), []).append(each)
    ),
    "incomplete pools are complete": _pool_without("is_incomplete", value=False),
    "newer generations elsewhere are not looked for": _put(
        slices.SliceIndex,
        "everywhere",
        lambda index, pool, generation: [
            each for each in index._by_pool[pool] if each.spec.pool.generation == generation
        ],
    ),
    "a device name may be there twice": _returns(pools, "_find_duplicate_device", ""),
    "unknown counters do no harm": _returns(pools, "_find_unknown_counter", ""),
    "slices are for every node": _returns(slices, "matches_node", value=True),
    "devices do not say where they are": _put(
        __import__("dra_infra.kubernetes.scheduler.allocator.matching", fromlist=["x"]),
        "device_matches_node",
        lambda *_: True,
    ),
    "slices with compatibility groups are always seen": _returns(
        slices.SliceIndex, "_is_ignored", value=False
    ),
    "slices with counters are for their node only": _returns(slices.SliceIndex, "_is_for_all", value=False),
    "pools are not sorted": _is("sorts_pools", value=False),
    "permutations are tried": _is("picks_combinations", value=False),
    "binding conditions do not come last": _is("groups_binding_conditions", value=False),
    "pools are those of 1.34": _is("simple_pools", value=True),
    "pools are those of 1.35": _is("simple_pools", value=False),
    "the copy is extended": _is("is_extended", value=True),
    "the copy is not extended": _is("is_extended", value=False),
    "a result holds more": lambda: [
        patch.object(search, "MAX_RESULTS", 1000),
        patch.object(requests, "MAX_RESULTS", 1000),
    ],
    "only the first of a prioritized list": _put(search.Search, "_allocate_first_available", _first_entry),
    "selectors are not looked at": _returns(Matching, "_passes", value=True),
    "admin access asks for free devices": _put(
        Usage,
        "is_free",
        lambda usage, _, published, __: (
            not usage._owners.get(published.id) and not usage._state.has_whole(published.id)
        ),
    ),
    "devices in use are free": _returns(AllocatedState, "has_whole", value=False),
    "this attempt marks nothing": _put(Usage, "mark", lambda *_: lambda: None),
    "taints keep nobody away": _returns(Taking, "_is_kept_away", value=False),
    "nothing is tolerated": lambda: [
        patch("dra_infra.kubernetes.scheduler.allocator.taking._tolerates", lambda *_: False)
    ],
    "everything is tolerated": lambda: [
        patch(
            "dra_infra.kubernetes.scheduler.allocator.taking._tolerates",
            lambda toleration, taint: toleration.key in ("", taint.key),
        )
    ],
    "counters are endless": _returns(Taking, "_take_counters", value=True),
    "allocated devices take no counters": _returns(
        counters.CounterAvailability, "_is_allocated", value=False
    ),
    "each share pays counters": _put(Taking, "_take_counters", _take_for_each_share),
    "counters are given back before taking": _put(counters.CounterUse, "give_back", lambda *_: None),
    "groups admit everybody": _returns(counters._Shared, "admits", value=True),
    "allocated devices have no groups": _returns(counters.GroupBaseline, "of", {}),
    "optional operations need nothing": _put(
        Taking,
        "_is_allowed",
        lambda taking, published: (
            not published.device.consumes_counters or taking._variant.features.partitionable_devices
        ),
    ),
    "matchAttribute is not looked at": _returns(_Match, "add", value=True),
    "distinctAttribute is not looked at": lambda: [
        patch.object(_Distinct, "add", lambda *_: True),
        patch.object(_Distinct, "remove", lambda *_: None),
    ],
    "constraints are about all requests": _returns(Scope, "covers", value=True),
    "attributes need their domain": lambda: [
        patch("dra_infra.kubernetes.scheduler.allocator.matching.static_attribute", _ignore_bare_names)
    ],
    "types of values are not compared": lambda: [
        patch(
            "dra_infra.kubernetes.scheduler.allocator.constraints.scalar_value",
            lambda attribute: (found := scalar_value(attribute)) and ("string", found[1]),
        )
    ],
    "capacity is endless": lambda: [
        patch("dra_infra.kubernetes.scheduler.allocator.state.fits_capacity", lambda *_: True)
    ],
    "earlier shares take no capacity": _returns(AllocatedState, "consumed", NO_USE),
    "shares of this attempt take no capacity": _put(Usage, "take_capacity", lambda *_: lambda: None),
    "request policies do nothing": _put(capacity, "_consumed", _value_only),
    "amounts are not rounded up": _put(capacity, "_round_up", _full_range),
    "amounts may leave the policy": _returns(capacity, "_violates", value=False),
    "no errors about nodes": _put(pools, "_valid", lambda pool, reason: pool),
    "errors are without hint": _put(selection, "_enhance", lambda text: text),
    "configuration is there once": _put(allocator, "_configure", _each_once),
    "class configuration is left out": _returns(allocator, "_class_configs", []),
    "claim configuration is left out": _returns(allocator, "_claim_configs", []),
    "no node selector": _returns(allocator, "_select_nodes", None),
    "requirements are merged twice": _put(allocator, "_merge", lambda new, into: into.extend(new)),
    "results lack adminAccess": _without("admin_access"),
    "results lack tolerations": _without("tolerations"),
    "results lack bindingConditions": _without("binding_conditions"),
    "results lack bindingFailureConditions": _without("binding_failure_conditions"),
    "results lack shareID": _without("share_id"),
    "results lack consumedCapacity": _without("consumed_capacity"),
    "results lack skipNodeOperations": _without("skip_node_operations"),
}
"""What is patched, by what is then true."""

VARIANTS: Final[dict[str, Callable[[Variant], Variant]]] = {
    **{
        f"{field.name} is off": lambda variant, name=field.name: replace(  # type: ignore[misc]
            variant, features=replace(variant.features, **{name: False})
        )
        for field in fields(Features)
    },
    **{
        f"no bug: {quirk.value}": lambda variant, quirk=quirk: replace(  # type: ignore[misc]
            variant, quirks=variant.quirks - {quirk}
        )
        for quirk in Quirk
    },
    **{
        f"bug everywhere: {quirk.value}": lambda variant, quirk=quirk: replace(  # type: ignore[misc]
            variant, quirks=variant.quirks | {quirk}
        )
        for quirk in Quirk
    },
    **{
        f"1.{number} is 1.{number + step}": lambda variant, number=number, step=step: (  # type: ignore[misc]
            replace(variant, number=number + step) if variant.number == number else variant
        )
        for number in (34, 35, 36, 37)
        for step in (-1, 1)
        if 34 <= number + step <= 37
    },
    **{
        f"{one} is {other}": lambda variant, one=one, other=other: (  # type: ignore[misc]
            replace(variant, channel=other) if variant.channel == one else variant
        )
        for one, other in (
            ("stable", "incubating"),
            ("incubating", "experimental"),
            ("experimental", "incubating"),
        )
    },
}
"""What the variant becomes."""

NAMES: Final = (*MUTANTS, *VARIANTS)


@contextmanager
def mutated(name: str) -> Iterator[Callable[[Variant], Variant]]:
    """The allocator with one rule changed; gives what is to be made of each case's variant."""
    with ExitStack() as stack:
        for each in MUTANTS.get(name, list)():
            stack.enter_context(each)
        yield VARIANTS.get(name, lambda variant: variant)
