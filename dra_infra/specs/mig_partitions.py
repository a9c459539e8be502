"""Requests for MIG devices from what people ask for: profiles, or so much memory and compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

from dra_infra.catalog.driver_gates import check_gates as check_driver_gates
from dra_infra.catalog.driver_gates import gate_states, gates_of
from dra_infra.catalog.pins import Pins, newest
from dra_infra.cel import Selector, gpu
from dra_infra.cel.check import check_expression
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.model.target import ClusterTarget
from dra_infra.specs.claim_gates import check_gate, check_gates
from dra_infra.specs.mig_ladders import check_found, check_size, smallest_profiles
from dra_infra.specs.mig_placements import check_placement
from dra_infra.specs.mig_profiles import check_profile, products_of, products_with_mig, profile_test
from dra_infra.specs.mig_wishes import MIG_REQUEST, AskedProfile, MigWish, check_wish, read_profiles
from dra_infra.specs.request_records import class_name_of, compile_request
from dra_infra.specs.requests import Alternative, DeviceRequest, MatchAttribute, NamedClass

_NVIDIA: Final = "gpu.nvidia.com"
_DYNAMIC: Final = "DynamicMIG"


class MigRequests(NamedTuple):
    """What a claim says to get MIG devices."""

    requests: tuple[DeviceRequest, ...]
    constraints: tuple[MatchAttribute, ...]


def compile_mig_partition(
    wish: MigWish,
    *,
    target: ClusterTarget | None = None,
    pins: Pins | None = None,
    gates: Mapping[str, bool] | None = None,
) -> MigRequests:
    """Turn a wish for MIG devices into the requests and constraints of a claim.

    Profiles are compared by equality, as the driver publishes them; devices of one GPU have one `parentUUID`. Static
    and dynamic MIG devices have both in every release, so the claim does not depend on which of them are used. Whether
    a set fits one GPU follows NVIDIA's placements.

    Args:
        wish: What is asked for.
        target: The Kubernetes on which the claim must work.
        pins: The driver releases that are meant; the newest when left out.
        gates: Feature gates that the NVIDIA driver is given; None where they are not known.

    Raises:
        InvalidSpecError: With every problem; paths are arguments of *wish*. Codes `wrong-type`, `missing-argument`,
            `arguments-exclude`, `count-below-one`, `too-many-devices`, `invalid-name`, `product-not-known`,
            `mig-not-supported`, `mig-profile-not-known`, `mig-none-large-enough`, `mig-not-placeable`,
            `unknown-driver-gate`, `needs-newer-kubernetes`, `attribute-of-other-device`, and those of the class, the
            selector and the tolerations.
    """
    pins = pins or newest()
    target = target or ClusterTarget()
    device_class = _shipped_class(pins) if wish.device_class is None else wish.device_class
    common = {"device_class": device_class, "select": wish.select, "tolerations": wish.tolerations}
    plain = DeviceRequest(MIG_REQUEST, **common)
    found, products = products_with_mig(wish.gpu)
    problems = [*found, *check_wish(wish), *check_size(wish.memory, wish.compute)]
    problems += _check_dynamic(wish, target, pins, gates)
    problems += _check_class(device_class, pins)
    problems += compile_request(plain)[0]
    problems += check_gates([plain], (), target, shorthand=True)
    asked: list[AskedProfile] = []
    if wish.names_profiles:
        found, asked = read_profiles(wish)
        problems += found or _check_profiles(asked, products, wish)
    if problems:
        raise InvalidSpecError(problems)
    requests = tuple(
        DeviceRequest(
            each.request,
            count=each.number,
            **{**common, "select": _select((each.profile,), products, wish)},
        )
        for each in asked
    ) or (_request_by_size(products, wish, common, target),)
    number = sum(each.number for each in asked) or wish.count or 1
    # One device is on one GPU anyhow.
    same = (MatchAttribute(gpu.parent_uuid),) if wish.same_gpu and number > 1 else ()
    return MigRequests(requests, same)


def _request_by_size(
    products: tuple[str, ...], wish: MigWish, common: Mapping[str, Any], target: ClusterTarget
) -> DeviceRequest:
    count = wish.count or 1
    size: dict[str, Any] = {"count": count, "same_gpu": wish.same_gpu and count > 1}
    ladder = smallest_profiles(wish.memory, wish.compute, products, **size)
    if not ladder:
        raise InvalidSpecError([check_found(wish.memory, wish.compute, products, gpu=wish.gpu or "", **size)])
    leaves = [{**common, "count": count, "select": _select(place, products, wish)} for place in ladder]
    if len(leaves) == 1:
        return DeviceRequest(MIG_REQUEST, **leaves[0])
    alternatives = [Alternative(_name_of(place), **leaf) for place, leaf in zip(ladder, leaves, strict=True)]
    request = DeviceRequest(MIG_REQUEST, first_available=alternatives)
    path = "compute" if wish.memory is None else "memory"
    problems = [replace(each, path=path) for each in check_gates([request], (), target, shorthand=True)]
    if problems:
        raise InvalidSpecError(problems)
    return request


def _name_of(place: tuple[str, ...]) -> str:
    """The name of an alternative: `2g-20gb`, or `2g-67gb-to-2g-70gb` where several profiles share a place."""
    ends = dict.fromkeys((place[0], place[-1]))
    return "-to-".join(profile.replace(".", "-") for profile in ends)


def _select(profiles: tuple[str, ...], products: tuple[str, ...], wish: MigWish) -> Selector:
    test = profile_test(profiles, products)
    if wish.gpu is not None:
        having = [each for each in products if any(products_of(profile, (each,)) for profile in profiles)]
        own = gpu.product == having[0] if len(having) == 1 else gpu.product.one_of(*having)
        test = own & test
    if wish.memory is not None:
        test = test & (gpu.memory >= wish.memory)
    return test if wish.select is None else test & wish.select


def _check_profiles(asked: Sequence[AskedProfile], products: tuple[str, ...], wish: MigWish) -> list[Problem]:
    # Where the GPU is not known, nothing can be said of its profiles.
    if not products:
        return []
    problems = []
    for each in asked:
        problems += check_profile(each.profile, products, each.path, one_gpu=wish.gpu or "")
    if problems or wish.same_gpu is not True:
        return problems
    return check_placement(asked, products, "count" if wish.profiles is None else "profiles")


def _shipped_class(pins: Pins) -> str:
    (name,) = (name for name, shipped in pins.classes.items() if shipped.selects == "mig")
    return name


def _check_class(device_class: object, pins: Pins) -> Iterator[Problem]:
    """Whether the class has MIG devices, where that is known: `attribute-of-other-device`."""
    name = class_name_of(device_class)
    selects = device_class.selects if isinstance(device_class, NamedClass) else None
    devices = (pins.devices_of(name) or ()) if isinstance(name, str) else ()
    types = [selects] if selects else [(device.driver, device.name) for device in devices]
    if types and (_NVIDIA, "mig") not in types:
        shown = f"the class {name!r}" if isinstance(name, str) else "the class"
        yield Problem(
            path="device_class",
            code="attribute-of-other-device",
            message=f"{shown} has no MIG devices, and others have no profile",
            hint=f"leave it out, which means {_shipped_class(pins)!r}",
        )


def _check_dynamic(
    wish: MigWish, target: ClusterTarget, pins: Pins, gates: Mapping[str, bool] | None
) -> Iterator[Problem]:
    """Whether driver and cluster have DynamicMIG, and the selector reads nothing that its devices lack."""
    line = pins.releases[_NVIDIA].line
    by_gates = gate_states(line, gates).get(_DYNAMIC) if gates is not None else None
    if isinstance(wish.dynamic, bool) and by_gates is not None and wish.dynamic is not by_gates:
        yield Problem(
            path="dynamic",
            code="arguments-exclude",
            message=f"dynamic is {wish.dynamic}, and the gate {_DYNAMIC} is {by_gates} by driver_gates",
            hint="leave dynamic out: the gates say it",
        )
    if not (by_gates if wish.dynamic is None else wish.dynamic):
        return
    unknown = check_driver_gates(line, {_DYNAMIC: True})
    if unknown:
        yield from (replace(each, path="dynamic") for each in unknown)
        return
    yield from check_gate("dynamic", "what DynamicMIG publishes", gates_of(line)[_DYNAMIC].kubernetes, target)
    reads = check_expression(wish.select.expression()).reads if isinstance(wish.select, Selector) else ()
    for read in reads:
        if (read.kind, f"{read.domain}/{read.identifier}") in _static_only(line):
            yield Problem(
                path="select",
                code="attribute-of-other-device",
                message=f"{read.domain}/{read.identifier} is read, which MIG devices of DynamicMIG lack",
                hint="select by profile, memory or multiprocessors, or leave dynamic=True out",
            )


@cache
def _static_only(line: str) -> frozenset[tuple[str, str]]:
    """What a release publishes of static MIG devices alone: kinds and full names."""
    static = _published(f"hgx-h100 devices=1 driver={line} mig=7g.80gb")
    return static - _published(f"hgx-h100 devices=1 driver={line} dynamic-mig")


def _published(fleet: str) -> frozenset[tuple[str, str]]:
    # Loaded where it is needed: a claim for static devices starts faster without.
    from dra_infra.catalog.fleets import load_fleet

    return frozenset(
        (kind, name if "/" in name else f"{_NVIDIA}/{name}")
        for slice_ in load_fleet(fleet).slices
        for device in slice_.spec.devices or ()
        if "profile" in (device.attributes or {})
        for kind, names in (("attribute", device.attributes), ("capacity", device.capacity))
        for name in names or {}
    )
