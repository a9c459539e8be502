"""MIG profiles per GPU product, and which sets of them fit one GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import product as combinations
from typing import Any, Final, NamedTuple

from dra_infra.catalog.vocabulary import read_data

ENGINES: Final = ("multiprocessors", "copy_engines", "decoders", "encoders", "jpeg_engines", "ofa_engines")
"""The fields of a profile that the driver publishes as capacities beside memory."""


class MigProfile(NamedTuple):
    """A MIG profile of one product; None is what is not known.

    Args:
        name: As nvidia-smi prints it, and as the attribute `profile` holds it: `1g.10gb+me`.
        gi_profile_id: NVML's id of the GPU instance profile.
        compute_slices: Of the GPU's 7 or 4.
        memory_slices: Of the GPU's 8 or 4.
        placements: The memory slices at which an instance can start.
        max_instances: How many fit one GPU that has no others.
        memory_mib: As NVML reports it, in MiB.
        attributes: Suffixes of the name, such as `+me`.
        older_name: What older kernel drivers call it; empty when that is the same.
        uncertain: Names of fields that are not known, or likely and not seen.
    """

    name: str
    gi_profile_id: int
    compute_slices: int
    memory_slices: int
    placements: tuple[int, ...]
    max_instances: int
    memory_mib: int | None
    multiprocessors: int | None
    copy_engines: int | None
    decoders: int | None
    encoders: int | None
    jpeg_engines: int | None
    ofa_engines: int | None
    attributes: tuple[str, ...] = ()
    older_name: str = ""
    uncertain: tuple[str, ...] = ()


class Placement(NamedTuple):
    """An instance of a profile on the memory slices `start` to `start + size - 1` of a GPU."""

    profile: str
    start: int
    size: int


class _Gpu(NamedTuple):
    """Totals of a GPU that its profiles share."""

    profiles: tuple[MigProfile, ...]
    compute_slices: int
    memory_slices: int


def mig_products() -> tuple[str, ...]:
    """The products whose MIG profiles are known, by the name that NVML reports, sorted."""
    return tuple(sorted(_gpus()))


def mig_profiles_of(product: str) -> tuple[MigProfile, ...]:
    """The profiles of a product, from small to large; none for a product without MIG, or one that is not known."""
    return _gpus()[product].profiles if product in _gpus() else ()


def find_mig_profile(name: str, product: str) -> MigProfile | None:
    """The profile of that name, or of that older name, under which it is then returned."""
    for profile in mig_profiles_of(product):
        if name in (profile.name, profile.older_name):
            return profile._replace(name=name)
    return None


def memory_slices_of(product: str) -> int:
    """Memory slices of a GPU of that product, 8 or 4; 0 without MIG."""
    return _gpus()[product].memory_slices if product in _gpus() else 0


def placements_of(profiles: Sequence[str], product: str) -> tuple[Placement, ...] | None:
    """Place a set of profiles on one GPU.

    Instances start where their profile may, overlap in no memory slice, and together need no more compute slices and
    engines than the GPU has: what NVML allows, and what the driver's counters say under DynamicMIG. The search is
    exact. Where several placements are possible, large instances are placed first, each as low as it goes; NVML may
    choose another one.

    Args:
        profiles: Names of profiles, each as often as it is wanted.
        product: Name of the product as NVML reports it.

    Returns:
        One placement for each profile, in the same order, or None when they do not fit one GPU.

    Raises:
        KeyError: *product* is none of `mig_products()`, or has no such profile.
    """
    if product not in _gpus():
        raise KeyError(product)
    for name in profiles:
        _known(name, product)
    if len(profiles) > memory_slices_of(product):
        return None
    return _place(tuple(profiles), product)


def fitting_parts(profiles: Sequence[str], product: str) -> tuple[tuple[str, ...], ...]:
    """The parts of a set that fit one GPU and that no other of its profiles could be added to, largest first.

    Raises:
        KeyError: As `placements_of`.
    """
    if product not in _gpus():
        raise KeyError(product)
    wanted = {
        name: min(count, _known(name, product).max_instances) for name, count in Counter(profiles).items()
    }
    fitting = [
        counts
        for counts in combinations(*(range(count + 1) for count in wanted.values()))
        if any(counts) and placements_of(_repeated(wanted, counts), product) is not None
    ]
    largest = [
        counts
        for counts in fitting
        if not any(
            other != counts and all(a <= b for a, b in zip(counts, other, strict=True)) for other in fitting
        )
    ]
    parts = (_repeated(wanted, counts) for counts in largest)
    return tuple(sorted(parts, key=lambda part: (-_used_slices(part, product), len(part), part)))


@lru_cache(maxsize=4096)
def _place(names: tuple[str, ...], product: str) -> tuple[Placement, ...] | None:
    gpu = _gpus()[product]
    profiles = [_known(name, product) for name in names]
    if not _within_totals(profiles, gpu):
        return None
    # Large ones first: they have the fewest placements.
    order = sorted(range(len(profiles)), key=lambda index: -profiles[index].memory_slices)
    starts: dict[int, int] = {}

    def search(position: int, taken: int) -> bool:
        if position == len(order):
            return True
        index = order[position]
        profile = profiles[index]
        previous = order[position - 1] if position else index
        # Equal ones are interchangeable: each starts behind the one before.
        floor = starts[previous] + 1 if position and profiles[previous] == profile else 0
        for start in profile.placements:
            slices = ((1 << profile.memory_slices) - 1) << start
            if start >= floor and not taken & slices:
                starts[index] = start
                if search(position + 1, taken | slices):
                    return True
        return False

    if not search(0, 0):
        return None
    return tuple(
        Placement(profile.name, starts[index], profile.memory_slices)
        for index, profile in enumerate(profiles)
    )


def _repeated(names: Mapping[str, int], counts: Sequence[int]) -> tuple[str, ...]:
    return tuple(name for name, count in zip(names, counts, strict=True) for _ in range(count))


def _used_slices(names: Sequence[str], product: str) -> int:
    return sum(_known(name, product).memory_slices for name in names)


def _known(name: str, product: str) -> MigProfile:
    profile = find_mig_profile(name, product)
    if profile is None:
        raise KeyError(name)
    return profile


def _within_totals(profiles: Sequence[MigProfile], gpu: _Gpu) -> bool:
    """Compute slices and engines suffice; an engine whose numbers are not all known is not counted."""
    counts = Counter(profile.gi_profile_id for profile in profiles)
    if any(counts[profile.gi_profile_id] > profile.max_instances for profile in profiles):
        return False
    if sum(profile.compute_slices for profile in profiles) > gpu.compute_slices:
        return False
    for engine in ENGINES:
        there = [getattr(profile, engine) for profile in gpu.profiles]
        if None not in there and sum(getattr(profile, engine) for profile in profiles) > max(there):
            return False
    return True


@cache
def _gpus() -> dict[str, _Gpu]:
    data, names = read_data("mig_devices.yaml"), read_data("mig_profiles.yaml")
    named = {model: listed for group in names.values() for model, listed in group["profiles"].items()}
    gpus = {}
    for model in data["models"]:
        layout = data["layouts"][model["layout"]]
        profiles = tuple(_profiles(model, layout, named, data["engine_order"]))
        for product in model["products"]:
            gpus[product] = _Gpu(profiles, layout["compute_slices"], layout["memory_slices"])
    return gpus


def _profiles(
    model: Mapping[str, Any],
    layout: Mapping[str, Any],
    named: Mapping[str, Sequence[str]],
    order: Sequence[str],
) -> Iterator[MigProfile]:
    plain = [shape for shape in layout["profiles"] if not _suffix(shape)]
    names = dict(zip(plain, named[model["names"]], strict=True))
    older = dict(zip(plain, named[model.get("older_names", model["names"])], strict=True))
    for shape, written in layout["profiles"].items():
        suffix = _suffix(shape)
        base = shape.removesuffix(suffix)
        engines = dict(zip(order, model.get("engines", {}).get(shape, [None] * len(order)), strict=True))
        measured = {"memory_mib": model.get("memory_mib", {}).get(shape), **engines}
        unknown = [field for field, value in measured.items() if value is None]
        yield MigProfile(
            name=names[base] + suffix,
            gi_profile_id=written["id"],
            compute_slices=written["compute"],
            memory_slices=written["memory"],
            placements=tuple(written["starts"]),
            max_instances=written["max"],
            attributes=(suffix,) if suffix else (),
            older_name=older[base] + suffix if older[base] != names[base] else "",
            uncertain=(*layout.get("uncertain", ()), *sorted(unknown)),
            **measured,
        )


def _suffix(shape: str) -> str:
    """The suffix of a shape behind its size: `+me` of `1g+me`, empty for `1g` and `1g double`."""
    return shape[min((shape.find(sign) for sign in "+-" if sign in shape), default=len(shape)) :]
