"""Which CEL a Kubernetes release speaks: variables, libraries and types by minor, gates, and new or stored.

An API server compiles a new expression against what the release before it knows too, so that one can go back; one that
is stored already, and everything in the scheduler, is compiled with all that the server knows, whatever the gates. A
gate decides about new expressions alone, except in 1.36, where the type of attributes follows the gate always.

Upstream: `k8s.io/dynamic-resource-allocation/cel/compile.go`, `k8s.io/apiserver/pkg/cel/environment/base.go`.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from dra_infra.cel import libraries

Gate = Literal["", "DRAConsumableCapacity", "DRAListTypeAttributes"]

NEWEST: Final = 37
"""The newest minor that is known."""


class Environment(NamedTuple):
    """The environment in which an expression is compiled.

    Args:
        minor: Minor version of the server: 37 for Kubernetes 1.37.
        stored: Whether the expression is stored already, or compiled by the scheduler; else it is new.
        list_attributes: Whether the gate DRAListTypeAttributes is on.
        consumable_capacity: Whether the gate DRAConsumableCapacity is on.
    """

    minor: int = NEWEST
    stored: bool = True
    list_attributes: bool = True
    consumable_capacity: bool = True

    @property
    def attribute_type(self) -> str:
        """`dyn` where attributes may hold lists, else `any`, of which no list is expected."""
        if self.minor >= 37:
            return "dyn" if self.stored or self.list_attributes else "any"
        return "dyn" if self.minor == 36 and self.list_attributes else "any"

    @property
    def result_types(self) -> frozenset[str]:
        """The types that the result of a selector may have."""
        if self.minor == 36:
            return frozenset({"bool", "any", self.attribute_type})
        if self.minor > 36:
            return frozenset({"bool", "wrapper(bool)", self.attribute_type})
        return frozenset({"bool", self.attribute_type})

    @property
    def compatible(self) -> int:
        """The minor whose libraries an expression may use."""
        return self.minor if self.stored else self.minor - 1

    def enabled(self, gate: Gate) -> bool:
        """Whether a gate is on; no gate always is."""
        return {
            "": True,
            "DRAConsumableCapacity": self.consumable_capacity,
            "DRAListTypeAttributes": self.list_attributes,
        }[gate]

    def knows(self, addition: Addition) -> bool:
        """Whether *addition* is declared in this environment."""
        if not max(addition.introduced, addition.first_server) <= self.minor <= addition.last_server:
            return False
        if addition.gate and not self.stored:
            # A gate that is on counts for more than the version.
            return self.enabled(addition.gate)
        return addition.introduced <= self.compatible


DEFAULT: Final = Environment()
"""What the scheduler of the newest release compiles."""


class Addition(NamedTuple):
    """Something that Kubernetes added to CEL.

    Args:
        name: The library, or the field of `device`.
        introduced: The minor whose number upstream gives it.
        gate: Gate that a new expression needs.
        functions: Declarations, `overload id: signature -> result`.
        extension: Extension of the engine that brings it, with its version.
        variable: Type of the field of `device` that it is; `{attribute}` stands for the type of attributes.
        first_server: First minor of a server that has it, where a number alone does not say so.
        last_server: Last minor of a server that has it.
    """

    name: str
    introduced: int
    gate: Gate = ""
    functions: tuple[str, ...] = ()
    extension: tuple[str, int] | None = None
    variable: str = ""
    first_server: int = 0
    last_server: int = NEWEST


ADDITIONS: Final = (
    Addition(name="driver", introduced=31, variable="string"),
    Addition(name="attributes", introduced=31, variable="map<string,map<string,{attribute}>>"),
    Addition(name="capacity", introduced=31, variable=f"map<string,map<string,{libraries.QUANTITY}>>"),
    Addition(name="allowMultipleAllocations", introduced=34, gate="DRAConsumableCapacity", variable="bool"),
    Addition(name="comparison", introduced=28, functions=libraries.COMPARISON),
    Addition(name="conversion", introduced=30, functions=libraries.CONVERSION),
    # cel-go 0.29 dropped it.
    Addition(
        name="duration of an int",
        introduced=23,
        functions=("int64_to_duration: duration(int) -> duration",),
        last_server=36,
    ),
    Addition(name="regex", introduced=23, functions=libraries.REGEX),
    Addition(name="url", introduced=23, functions=libraries.URL),
    Addition(name="lists", introduced=23, functions=libraries.LISTS),
    Addition(name="authorization", introduced=31, functions=libraries.AUTHORIZATION),
    Addition(name="optional", introduced=28, functions=libraries.OPTIONALS, extension=("optional", 2)),
    Addition(name="quantity", introduced=28, functions=libraries.QUANTITIES),
    Addition(name="strings", introduced=29, functions=libraries.STRINGS),
    Addition(name="sets", introduced=29, extension=("sets", 0)),
    Addition(name="network", introduced=30, functions=libraries.NETWORK),
    Addition(name="format", introduced=31, functions=libraries.FORMAT),
    Addition(name="bindings", introduced=31, extension=("bindings", 0)),
    Addition(name="two-var-comprehensions", introduced=32, extension=("two-var-comprehensions", 0)),
    Addition(name="semver", introduced=33, functions=libraries.SEMVERS),
    Addition(name="cel-go lists", introduced=34, functions=libraries.FLATTEN, extension=("lists", 2)),
    Addition(
        name="includes",
        introduced=36,
        gate="DRAListTypeAttributes",
        functions=("dra_includes_dyn_dyn: dyn.includes(dyn) -> bool",),
        last_server=36,
    ),
    Addition(
        name="includes",
        introduced=36,
        gate="DRAListTypeAttributes",
        functions=("list_includes_dyn_dyn: dyn.includes(dyn) -> bool",),
        first_server=37,
    ),
)
"""By library, from which the environment of a release is declared."""
