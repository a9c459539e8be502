"""GPU products by the names that people write, their capabilities, and the systems that carry them.

Systems are boards, servers and racks, each with how "n GPUs joined by NVLink" can be promised on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from pydantic import Field, model_validator

from dra_infra.catalog.records import Fact, gpu_products
from dra_infra.catalog.vocabulary import letters_of, numbers_of, read_data
from dra_infra.output.wording import nearest


class Capability(Fact):
    """A capability of GPUs.

    Args:
        since: The oldest CUDA compute capability that can.
        except_: Which newer ones cannot, in words.
    """

    since: str = Field(pattern=r"^\d+\.\d+\.\d+$")
    except_: str = Field(default="", alias="except")


@cache
def capabilities() -> Mapping[str, Capability]:
    """Every capability that can be asked for, by name."""
    return {name: Capability.model_validate(entry) for name, entry in read_data("capabilities.yaml").items()}


def capabilities_of(product: str) -> tuple[str, ...]:
    """Capabilities of a product, by its NVML name; what `except` says is not taken off.

    Raises:
        KeyError: *product* is none of `gpu_products()`.
    """
    own = numbers_of(gpu_products()[product].cuda_compute_capability)
    return tuple(name for name, each in capabilities().items() if own >= numbers_of(each.since))


def find_products(text: str) -> tuple[str, ...]:
    """The NVML names that are meant: one of an NVML name or its node label, several of `H100`; none where unknown.

    Case, blanks and hyphens do not count. `NVIDIA H200` is that product, `H200` it and the `NVIDIA H200 NVL`.
    """
    full, short = _names()
    return full.get(letters_of(text)) or short.get(_bare(text), ())


def nearest_product(text: str) -> str:
    """The known name that a misspelt one is most like, as people write it; empty when none is."""
    written = {_bare(name): name for name in gpu_products()}
    written |= {_bare(short): short for each in gpu_products().values() for short in each.short_names}
    return written.get(nearest(_bare(text), written), "")


@cache
def _names() -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, tuple[str, ...]]]:
    """NVML names, and the names that people write, each to the products that are meant."""
    short: dict[str, tuple[str, ...]] = {}
    for name, product in gpu_products().items():
        for written in map(_bare, product.short_names):
            short[written] = (*short.get(written, ()), name)
    return {letters_of(name): (name,) for name in gpu_products()}, {
        _bare(name): (name,) for name in gpu_products()
    } | short


def _bare(text: str) -> str:
    """Without the maker, whose name is often left out."""
    return letters_of(text).removeprefix("nvidia").removeprefix("tesla")


Promise = Literal["count", "compute-domain", "none"]


class System(Fact):
    """A board, server or rack; what is not known is None.

    Args:
        gpus: NVML names of the products that it is built with.
        gpus_per_node: None for cards, of which a server takes as many as fit.
        nodes_per_rack: Nodes that NVLink joins; None where none are.
        architecture: Of the host, as Kubernetes names it.
        nvswitch: Whether the GPUs hang on NVSwitch.
        joined: GPUs of one node that NVLink joins.
        promise: How that can be promised to a pod; with `compute-domain`, across the nodes of a rack too.
        why: Why it cannot, for `none`.
        partitions: Sizes that Fabric Manager can make of the board.
        uncertain: Names of fields that are likely, and no measurement.
    """

    title: str
    gpus: tuple[str, ...] = Field(min_length=1)
    gpus_per_node: int | None = Field(default=None, gt=0)
    nodes_per_rack: int | None = Field(default=None, gt=1)
    architecture: Literal["amd64", "arm64"] = "amd64"
    nvswitch: bool | None = None
    joined: int = Field(gt=0)
    promise: Promise
    why: str = ""
    partitions: tuple[int, ...] = ()
    uncertain: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _agrees(self) -> System:
        if (self.promise == "none") != bool(self.why):
            raise ValueError("only a system without a promise says why")
        if (self.promise == "compute-domain") != bool(self.nodes_per_rack):
            raise ValueError("a ComputeDomain joins the nodes of a rack")
        if not set(self.uncertain) <= set(type(self).model_fields):
            raise ValueError(f"{self.uncertain} are not all fields")
        return self

    @property
    def gpus_per_rack(self) -> int | None:
        """GPUs that one NVLink domain of several nodes joins."""
        return (
            self.nodes_per_rack * self.gpus_per_node if self.nodes_per_rack and self.gpus_per_node else None
        )

    def promise_of(self, count: int) -> Promise:
        """How *count* GPUs joined by NVLink can be promised here: on one node, across nodes of a rack, or not at all."""
        if count == 1 or (self.promise != "none" and count <= self.joined):
            return "count"
        if self.promise == "compute-domain" and count <= (self.gpus_per_rack or 0):
            return "compute-domain"
        return "none"


@cache
def systems() -> Mapping[str, System]:
    """Every system that is known, by name."""
    return {name: System.model_validate(entry) for name, entry in read_data("systems.yaml").items()}


def systems_with(product: str) -> Mapping[str, System]:
    """The systems that are built with a product, by its NVML name."""
    return {name: system for name, system in systems().items() if product in system.gpus}
