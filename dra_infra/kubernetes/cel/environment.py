"""CEL environments of a Kubernetes release: variables, libraries and types by minor, gates, and new or stored.

An API server compiles a new expression against what the release before it knows too, so that one can go back; one
that is stored already, and everything in the scheduler, is compiled with all that the server knows, whatever the
gates. A gate decides about new expressions alone, except in 1.36, where the type of attributes follows the gate
always.

Upstream: `k8s.io/dynamic-resource-allocation/cel/compile.go`, `k8s.io/apiserver/pkg/cel/environment/base.go`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from dra_infra.kubernetes.cel import libraries, standard
from dra_infra.kubernetes.cel.tree import CelType

Gate = Literal["", "DRAConsumableCapacity", "DRAListTypeAttributes"]

NEWEST: Final = 37
"""The newest minor that is known."""


class PolicyScope(NamedTuple):
    """The variables of expressions of a ValidatingAdmissionPolicy, in place of a device.

    Args:
        has_params: Whether there is `params`.
        has_authorizer: Whether there is `authorizer`, which messages lack.
        variables: The policy's own variables that are declared so far, with their types.
    """

    has_params: bool = False
    has_authorizer: bool = True
    variables: tuple[tuple[str, CelType], ...] = ()


class Environment(NamedTuple):
    """The environment in which an expression is compiled.

    Args:
        minor: Minor version of the server: 37 for Kubernetes 1.37.
        stored: Whether the expression is stored already, or compiled by the scheduler; else it is new.
        list_attributes: Whether the gate DRAListTypeAttributes is on.
        consumable_capacity: Whether the gate DRAConsumableCapacity is on.
        policy: What there is to read in an expression of an admission policy; None for those of devices.
    """

    minor: int = NEWEST
    stored: bool = True
    list_attributes: bool = True
    consumable_capacity: bool = True
    policy: PolicyScope | None = None

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
        """Looks up whether a gate is on; no gate always is."""
        return {
            "": True,
            "DRAConsumableCapacity": self.consumable_capacity,
            "DRAListTypeAttributes": self.list_attributes,
        }[gate]

    def knows(self, addition: Addition) -> bool:
        """Checks that *addition* is declared in this environment."""
        if self.policy is not None and (addition.variable or addition.name == _INCLUDES):
            return False
        if not max(addition.introduced, addition.first_server) <= self.minor <= addition.last_server:
            return False
        if addition.gate and not self.stored:
            # A gate that is on counts for more than the version.
            return self.enabled(addition.gate)
        return addition.introduced <= self.compatible


DEFAULT: Final = Environment()
"""The environment of the newest release's scheduler."""


class Addition(NamedTuple):
    """Something that Kubernetes added to CEL.

    Args:
        name: The library, or the field of `device`.
        introduced: The minor whose number upstream gives it.
        gate: Gate that a new expression needs.
        functions: Declarations, `overload id: signature -> result`.
        variable: Type of the field of `device` that it is; `{attribute}` stands for the type of attributes.
        first_server: First minor of a server that has it, where a number alone does not say so.
        last_server: Last minor of a server that has it.
    """

    name: str
    introduced: int
    gate: Gate = ""
    functions: tuple[str, ...] = ()
    variable: str = ""
    first_server: int = 0
    last_server: int = NEWEST


_LISTS: Final = "cel-go lists"
_INCLUDES: Final = "includes"
"""Declarations that the `cel` package of DRA adds to the base of all expressions."""

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
    Addition(name="optional", introduced=28, functions=(*libraries.OPTIONALS, *standard.OPTIONALS)),
    Addition(name="quantity", introduced=28, functions=libraries.QUANTITIES),
    Addition(name="strings", introduced=29, functions=libraries.STRINGS),
    Addition(name="sets", introduced=29, functions=standard.SETS),
    Addition(name="network", introduced=30, functions=libraries.NETWORK),
    Addition(name="format", introduced=31, functions=libraries.FORMAT),
    Addition(name="two-var-comprehensions", introduced=32, functions=standard.COMPREHENSIONS),
    Addition(name="semver", introduced=33, functions=libraries.SEMVERS),
    Addition(name=_LISTS, introduced=34, functions=standard.LISTS),
    Addition(
        name=_INCLUDES,
        introduced=36,
        gate="DRAListTypeAttributes",
        functions=("dra_includes_dyn_dyn: dyn.includes(dyn) -> bool",),
        last_server=36,
    ),
    Addition(
        name=_INCLUDES,
        introduced=36,
        gate="DRAListTypeAttributes",
        functions=("list_includes_dyn_dyn: dyn.includes(dyn) -> bool",),
        first_server=37,
    ),
)
"""By library, from which the environment of a release is declared."""


_LISTS_LAST: Final = 37
_LINE = re.compile(r"(?P<id>[^:]+): (?P<signature>.+) -> (?P<result>.+)")


def device_fields(environment: Environment = DEFAULT) -> dict[str, str]:
    """The fields of `device` with their types."""
    return {
        addition.name: addition.variable.format(attribute=environment.attribute_type)
        for addition in _known(environment)
        if addition.variable
    }


@lru_cache(maxsize=32)
def has_lists(environment: Environment) -> bool:
    """cel-go's functions of lists are there."""
    return any(addition.name == _LISTS for addition in _known(environment))


def has_bindings(environment: Environment) -> bool:
    """cel.bind() is there."""
    return environment.policy is None


def declared_lines(environment: Environment) -> tuple[str, ...]:
    """Every function of an environment, in the order in which the server declares them."""
    known = _known(environment)
    if environment.compatible >= _LISTS_LAST and (environment.stored or environment.minor > _LISTS_LAST):
        # From this release on Kubernetes' own functions of lists come behind all others.
        known.sort(key=lambda addition: addition.name == "lists")
    return (*standard.STANDARD, *(line for addition in known for line in addition.functions))


def _known(environment: Environment) -> list[Addition]:
    return [addition for addition in ADDITIONS if environment.knows(addition)]


def split_line(line: str) -> tuple[str, str, str]:
    """Overload id, signature and result of a declaration."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"malformed declaration: {line}")
    return match["id"], match["signature"], match["result"]
