"""Free devices that serve no large claim: how large a claim still fits, who is in the way, and which sizes use what is free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dra_infra.output.wording import count_of, join_words

DeviceKey = tuple[str, str, str]
"""Driver, pool and name of a device."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockedNode:
    """A node that would serve the largest claim if nothing ran there.

    Args:
        node: Its name.
        free: Claims of one device that fit on it.
        held: Devices on it that are in use, of the drivers that serve the claim.
        holders: Who has them; empty where that is not known.
    """

    node: str
    free: int
    held: tuple[DeviceKey, ...] = ()
    holders: tuple[str, ...] = ()

    def __str__(self) -> str:
        used = count_of(len(self.held), "device")
        holders = f", by {join_words(self.holders, most=4)}" if self.holders else ""
        return f"{self.node} has {self.free:,} free, and {used} in use{holders}"


@dataclass(frozen=True, kw_only=True, slots=True)
class DomainRoom:
    """Nodes that NVLink joins.

    Args:
        name: The value of their label `nvidia.com/gpu.clique`.
        nodes: How many there are with such devices.
        free: How many of them serve the largest claim now.
    """

    name: str
    nodes: int
    free: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Fragment:
    """What is free of one class or MIG profile, and how large a claim of it still fits.

    Args:
        name: The class, or the profile.
        free: Claims of one device that fit on all nodes together.
        largest: Most devices that one claim can get on one node now.
        whole: The same while nothing runs.
        sizes: How many claims of each size fit now, each played through alone.
        blocked: Nodes on which a claim of *whole* devices fits once they are empty, those with the fewest devices in use first.
        blocked_count: How many such nodes there are.
        domains: Groups of nodes that NVLink joins.
    """

    name: str
    free: int
    largest: int
    whole: int
    sizes: Mapping[int, int] = field(default_factory=dict, hash=False)
    blocked: tuple[BlockedNode, ...] = ()
    blocked_count: int = 0
    domains: tuple[DomainRoom, ...] = ()

    @property
    def is_fragmented(self) -> bool:
        """True where more devices are free than one claim can get, although one could on an empty node, or a domain is broken up."""
        return self.largest < min(self.free, self.whole) or any(
            0 < each.free < each.nodes for each in self.domains
        )

    @property
    def advice(self) -> Iterator[str]:
        """Sizes of claims, and of groups of nodes, that use what is free."""
        if self.largest < min(self.free, self.whole):
            size, claims = max(
                ((size, claims) for size, claims in self.sizes.items() if claims and size > 1),
                key=lambda each: (each[0] * each[1], each[0]),
                default=(1, self.free),
            )
            fit = count_of(claims, "claim")
            yield f"{fit} of {count_of(size, 'device')} would use {size * claims:,} of the {self.free:,} that are free"
        for each in self.domains:
            if 0 < each.free < each.nodes:
                group = 1 << (each.free.bit_length() - 1)
                more = each.free - group
                spare = (
                    f", and {count_of(more, 'more node')} {'is' if more == 1 else 'are'} free" if more else ""
                )
                yield f"a group of {group} of the {each.nodes} nodes of NVLink domain {each.name} fits{spare}"

    @property
    def lines(self) -> Iterator[str]:
        """The text: one line, then who is in the way, and advice."""
        sizes = ", ".join(f"{claims:,} of {size}" for size, claims in self.sizes.items())
        yield (
            f"{self.name}: {count_of(self.free, 'device')} free, largest claim {self.largest:,} "
            f"({self.whole:,} on an empty node); claims that fit: {sizes}"
        )
        yield from (f"    in the way: {each}" for each in self.blocked)
        if self.blocked_count > len(self.blocked):
            yield f"    in the way: {count_of(self.blocked_count - len(self.blocked), 'more node')}"
        yield from (f"    sizes: {each}" for each in self.advice)

    def with_holders(self, holders: Mapping[DeviceKey, str]) -> Fragment:
        """Return it with the names of those who have the devices in the way."""
        named = (
            replace(each, holders=tuple(dict.fromkeys(holders[key] for key in each.held if key in holders)))
            for each in self.blocked
        )
        return replace(self, blocked=tuple(named))

    def to_data(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "name": self.name,
            "free": self.free,
            "largest": self.largest,
            "whole": self.whole,
            "sizes": [{"size": size, "claims": claims} for size, claims in self.sizes.items()],
            "blocked": [
                {"node": each.node, "free": each.free, "inUse": len(each.held), "holders": list(each.holders)}
                for each in self.blocked
            ],
            "blockedNodes": self.blocked_count,
            "domains": [{"name": each.name, "nodes": each.nodes, "free": each.free} for each in self.domains],
            "advice": list(self.advice),
        }


def describe_fragments(fragments: Sequence[Fragment]) -> Iterator[str]:
    """Yield the lines of those that have more free devices than one claim can get; none where there is no such class."""
    broken = [each for each in fragments if each.is_fragmented]
    if broken:
        yield ""
        yield "Fragmentation: free devices that no large claim can have"
    for each in broken:
        yield from each.lines
