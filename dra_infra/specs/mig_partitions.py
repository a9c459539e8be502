"""Requests for MIG devices from what people ask for: profiles, or so much memory and compute.

For an amount of memory and compute the requests are a ladder: the smallest MIG profiles with at least so much, per
GPU, as alternatives in one order. Placement checks tell whether the MIG devices of a claim fit one GPU, and what of
them does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from dra_infra.catalog.driver_gates import check_gates as check_driver_gates
from dra_infra.catalog.driver_gates import gate_states, gates_of
from dra_infra.catalog.drivers import Pins, newest
from dra_infra.catalog.fleets import load_fleet
from dra_infra.catalog.mig import MigProfile, fitting_parts, mig_products, mig_profiles_of, placements_of
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import Quantity
from dra_infra.kubernetes.api.limits import MAX_FIRST_AVAILABLE
from dra_infra.kubernetes.cel import check_expression
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector
from dra_infra.specs.arguments import check_positive, wrong_plain_type, wrong_type
from dra_infra.specs.claims import AskedDevices, check_gate, check_gates
from dra_infra.specs.mig_profiles import (
    MIG_REQUEST,
    AskedProfile,
    MigWish,
    check_profile,
    check_wish,
    products_of,
    products_with_mig,
    profile_test,
    read_profiles,
)
from dra_infra.specs.request_records import compile_request
from dra_infra.specs.requests import Alternative, DeviceRequest, MatchAttribute, NamedClass, class_name_of
from dra_infra.target import ClusterTarget

_MIB: Final = 2**20


def check_size(memory: object, compute: object) -> Iterator[Problem]:
    """Checks an amount of memory and a number of compute slices: `wrong-type`, `count-below-one`."""
    if memory is not None and (not isinstance(memory, str) or _mib(memory) is None):
        yield wrong_plain_type("memory", memory, "an amount of memory", 'write memory="20Gi"')
    if compute is not None:
        said, below = "a number of compute slices", "leave it out where any will do"
        yield from check_positive("compute", compute, said, hint="write compute=2", hint_below=below)


@lru_cache(maxsize=1024)
def smallest_profiles(
    memory: str | None, compute: int | None, products: tuple[str, ...], *, count: int, same_gpu: bool
) -> tuple[tuple[str, ...], ...]:
    """The profiles to try one after the other; those at one place share no product.

    Each product has the smallest profile, without media or graphics extensions, that is large enough. Where its memory
    is not known, NVML may report less than its name says, and larger ones follow until one is large enough even so:
    what is reported decides. Small ones come first.

    Args:
        memory: An amount such as `20Gi`.
        compute: Compute slices, of the 7 or 4 of a GPU.
        products: NVML names.
        count: How many devices are wanted.
        same_gpu: Whether they must fit one GPU.
    """
    wanted = (_mib(memory) if memory else None) or Fraction(0)
    found: dict[str, MigProfile] = {}
    for product in products:
        for profile in _large_enough(product, wanted, compute or 1):
            if not same_gpu or placements_of([profile.name] * count, product) is not None:
                found.setdefault(profile.name, profile)
    order = sorted(found.values(), key=lambda each: (_named_mib(each), each.compute_slices, each.name))
    return _merge([(profile.name,) for profile in order], products)


def check_found(
    memory: str | None,
    compute: int | None,
    products: tuple[str, ...],
    *,
    count: int,
    same_gpu: bool,
    gpu: str,
) -> Problem:
    """The problem where no product has a profile so large: `mig-none-large-enough`."""
    alone = same_gpu and smallest_profiles(memory, compute, products, count=1, same_gpu=False)
    largest = max(
        (profile for product in products for profile in mig_profiles_of(product)),
        key=lambda each: (_named_mib(each), each.compute_slices),
    )
    wish = " and ".join(
        filter(
            None, (f"{memory} of memory" if memory else "", f"{compute} compute slices" if compute else "")
        )
    )
    if alone:
        message = f"no {gpu or 'GPU'} has room for {count} MIG devices with {wish} each"
        hint = "leave same_gpu out, or ask for fewer or smaller ones"
        path = "count"
    else:
        message = f"no MIG profile of {gpu or 'any GPU that is known here'} has {wish}"
        hint = f"the largest is {largest.name}; for more, ask for whole GPUs: dra.GpuClaimTemplate"
        path = "memory" if memory else "compute"
    return Problem(path=path, code="mig-none-large-enough", message=message, hint=hint)


def _large_enough(product: str, memory: Fraction, compute: int) -> Iterator[MigProfile]:
    plain = [each for each in mig_profiles_of(product) if not each.attributes]
    slices = 0
    for profile in sorted(plain, key=lambda each: (each.memory_slices, each.compute_slices)):
        known = profile.memory_mib if profile.memory_mib is not None else _named_mib(profile)
        # As many slices are as much memory.
        if profile.compute_slices < compute or known < memory or profile.memory_slices == slices:
            continue
        yield profile
        slices = profile.memory_slices
        if profile.memory_mib is not None or known * _least_share() >= memory:
            return


def _merge(rungs: list[tuple[str, ...]], products: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Merge neighbouring rungs of a ladder, the largest first, until a request may have that many alternatives.

    Rungs that one product has both of stay apart.
    """
    index = len(rungs) - 1
    while len(rungs) > MAX_FIRST_AVAILABLE and index > 0:
        before, behind = rungs[index - 1], rungs[index]
        if not {each for name in before for each in products_of(name, products)} & {
            each for name in behind for each in products_of(name, products)
        }:
            rungs[index - 1 : index + 1] = [before + behind]
        index -= 1
    return tuple(rungs)


@cache
def _least_share() -> Fraction:
    """The least part of what a name says that NVML is known to report: 16 GiB of 1g.18gb."""
    known: Mapping[MigProfile, int] = {
        profile: profile.memory_mib
        for product in mig_products()
        for profile in mig_profiles_of(product)
        if profile.memory_mib is not None
    }
    return min(mib / _named_mib(profile) for profile, mib in known.items())


def _named_mib(profile: MigProfile) -> Fraction:
    """The memory that the name says, in MiB."""
    match = re.search(r"(\d+)gb", profile.name)
    return Fraction(int(match[1]) if match else 0) * 1024


def _mib(memory: str) -> Fraction | None:
    try:
        value = Quantity.parse(memory).value
    except ValueError:
        return None
    return value / _MIB if value > 0 else None


_MOST_PROFILES: Final = 6
"""Different profiles of a set up to which its parts that fit are worth listing."""

_MOST_PARTS: Final = 3


def check_placement(asked: Sequence[AskedProfile], products: tuple[str, ...], path: str) -> list[Problem]:
    """Checks that all devices fit one GPU of one of *products*: `mig-not-placeable` at *path*.

    Nothing is said where the placements of a profile are not known.
    """
    wanted = Counter[str]()
    for each in asked:
        wanted[each.profile] += each.number
    having = {profile: products_of(profile, products) for profile in wanted}
    if not all(having.values()):
        return []
    common = [product for product in products if all(product in each for each in having.values())]
    if not common:
        message = f"no GPU has all of these profiles: {', '.join(wanted)}"
        hint = "; ".join(f"{profile} is of {', '.join(on)}" for profile, on in having.items())
        return [Problem(path=path, code="mig-not-placeable", message=message, hint=hint)]
    every = list(wanted.elements())
    if any(placements_of(every, product) is not None for product in common):
        return []
    one = common[0] if len(common) == 1 else "GPU"
    message = f"{_said(wanted)} does not fit one {one}"
    hint = f"{_what_fits(wanted, common)}leave same_gpu out to take several GPUs of a node"
    return [Problem(path=path, code="mig-not-placeable", message=message, hint=hint)]


def _what_fits(wanted: Counter[str], products: Sequence[str]) -> str:
    if len(wanted) > _MOST_PROFILES:
        return ""
    every = list(wanted.elements())
    parts: dict[tuple[str, ...], str] = {}
    for product in products:
        for part in fitting_parts(every, product):
            parts.setdefault(part, product)
    fits = [_placed(part, product) for part, product in list(parts.items())[:_MOST_PARTS]]
    return f"of these, {' or '.join(fits)} fits; "


def _placed(part: Sequence[str], product: str) -> str:
    slices = ", ".join(
        f"{each.start}-{each.start + each.size - 1}" if each.size > 1 else str(each.start)
        for each in placements_of(part, product) or ()
    )
    return f"{_said(Counter(part))} (memory slices {slices} of {product})"


def _said(counts: Counter[str]) -> str:
    return "+".join(f"{profile}*{count}" for profile, count in counts.items())


_NVIDIA: Final = "gpu.nvidia.com"
_DYNAMIC: Final = "DynamicMIG"


class MigRequests(NamedTuple):
    """Requests and constraints of a claim for MIG devices."""

    requests: tuple[DeviceRequest, ...]
    constraints: tuple[MatchAttribute, ...]


def ask_for_mig_devices(
    arguments: Mapping[str, Any], target: ClusterTarget, pins: Pins | None
) -> AskedDevices:
    """Turn the arguments of `MigPartition` into requests and constraints, with the problems of `compile_mig_partition`."""
    wish = MigWish(**{each.name: arguments[each.name] for each in fields(MigWish)})
    shared = arguments["shared"]
    problems: list[Problem] = []
    if not isinstance(shared, bool):
        problems.append(wrong_type("shared", shared, "True or False"))
    try:
        compiled = compile_mig_partition(wish, target=target, pins=pins, gates=arguments["driver_gates"])
    except InvalidSpecError as error:
        # What pods ask for is still known, so that `attach` has nothing to add.
        asked = read_profiles(wish)[1] if wish.names_profiles else ()
        # Without requests, nothing can be said of the configs.
        return AskedDevices(
            requests=(),
            problems=[*problems, *error.problems],
            shared=shared is True,
            request_names=tuple(str(each.request) for each in asked) or (MIG_REQUEST,),
        )
    return AskedDevices(
        requests=compiled.requests,
        constraints=compiled.constraints,
        configs=arguments["configs"],
        problems=problems,
        shared=shared is True,
    )


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
    """Checks that the class has MIG devices, where that is known: `attribute-of-other-device`."""
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
    """Checks that driver and cluster have DynamicMIG, and that the selector reads nothing its devices lack."""
    line = pins.releases[_NVIDIA].line
    by_gates = gate_states(line, gates).get(_DYNAMIC) if gates is not None else None
    if isinstance(wish.dynamic, bool) and by_gates is not None and wish.dynamic is not by_gates:
        yield Problem(
            path="dynamic",
            code="arguments-exclude",
            message=f"dynamic is {wish.dynamic}, and the gate {_DYNAMIC} is {by_gates} by driver_gates",
            hint="leave dynamic out: the gates say it",
        )
    # By type, because what is passed by mistake may have no truth value.
    if (by_gates if wish.dynamic is None else wish.dynamic) is not True:
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
    """Attributes and capacities that a release publishes of static MIG devices alone: kinds and full names."""
    static = _published(f"hgx-h100 devices=1 driver={line} mig=7g.80gb")
    return static - _published(f"hgx-h100 devices=1 driver={line} dynamic-mig")


def _published(fleet: str) -> frozenset[tuple[str, str]]:
    return frozenset(
        (kind, name if "/" in name else f"{_NVIDIA}/{name}")
        for slice_ in load_fleet(fleet).slices
        for device in slice_.spec.devices or ()
        if "profile" in (device.attributes or {})
        for kind, names in (("attribute", device.attributes), ("capacity", device.capacity))
        for name in names or {}
    )
