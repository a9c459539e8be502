"""CEL environments of a Kubernetes release: variables, libraries and types by minor, gates, and new or stored.

An API server compiles a new expression against what the release before it knows too, so that one can go back; one
that is stored already, and everything in the scheduler, is compiled with all that the server knows, whatever the
gates. A gate decides about new expressions alone, except in 1.36, where the type of attributes follows the gate
always.

Upstream: `k8s.io/dynamic-resource-allocation/cel/compile.go`, `k8s.io/apiserver/pkg/cel/environment/base.go`.

The engine parses and checks in it, and evaluates nothing: no function has an implementation here. It is imported on first
use, so that importing this package stays cheap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import Any, Final, Literal, NamedTuple

from dra_infra.kubernetes.cel import libraries
from dra_infra.kubernetes.cel.libraries import REDECLARED

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
        """Looks up whether a gate is on; no gate always is."""
        return {
            "": True,
            "DRAConsumableCapacity": self.consumable_capacity,
            "DRAListTypeAttributes": self.list_attributes,
        }[gate]

    def knows(self, addition: Addition) -> bool:
        """Checks that *addition* is declared in this environment."""
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


_ARITIES: Final = range(4)
_NOTHING: Final = "kubernetes.Nothing"
_LINE = re.compile(r"(?P<id>[^:]+): (?P<signature>.+) -> (?P<result>.+)")


def device_fields(environment: Environment = DEFAULT) -> dict[str, str]:
    """The fields of `device` with their types."""
    return {
        addition.name: addition.variable.format(attribute=environment.attribute_type)
        for addition in _known(environment)
        if addition.variable
    }


def has_lists(environment: Environment) -> bool:
    """cel-go's functions of lists are there."""
    return any(addition.extension and addition.extension[0] == "lists" for addition in _known(environment))


@lru_cache(maxsize=32)
def check_environment(environment: Environment = DEFAULT) -> Any:
    """The typed environment without implementations, for `compile` only."""
    return _make(_check_configuration(environment, either_style=False))


@lru_cache(maxsize=32)
def wording_environment(environment: Environment) -> Any:
    """An environment for errors alone: it knows functions in every style and number of arguments, which nothing fits."""
    return _make(_check_configuration(environment, either_style=True))


@lru_cache(maxsize=32)
def function_names(environment: Environment) -> frozenset[str]:
    """The functions that are declared here."""
    lines = [line for addition in _known(environment) for line in addition.functions]
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    return frozenset(_function_name(match["signature"])[0] for match in matches)


@lru_cache(maxsize=32)
def _make(configuration: str) -> Any:
    # By text, because many environments declare the same.
    from cel_expr_python import cel

    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(configuration))


def _check_configuration(environment: Environment, *, either_style: bool) -> str:
    # `device` itself has an abstract type and each field is a variable with a dotted name: a message type could not
    # express a map of dyn.
    variables = {"device": "kubernetes.DRADevice"}
    variables |= {f"device.{name}": kind for name, kind in device_fields(environment).items()}
    known = _known(environment)
    return "\n".join(
        [
            "name: dra",
            *_extensions([addition.extension for addition in known if addition.extension]),
            "stdlib:",
            "  exclude_functions:",
            *(f"    - name: {name}" for name in REDECLARED),
            "variables:",
            *(f"  - {{name: {name}, type: '{kind}'}}" for name, kind in variables.items()),
            "functions:",
            *_functions(
                [line for addition in known for line in addition.functions], either_style=either_style
            ),
        ]
    )


def _known(environment: Environment) -> list[Addition]:
    return [addition for addition in ADDITIONS if environment.knows(addition)]


def _extensions(versions: Iterable[tuple[str, int]]) -> list[str]:
    return ["extensions:", *(f"  - {{name: {name}, version: {number}}}" for name, number in versions)]


def _functions(lines: Iterable[str], *, either_style: bool) -> list[str]:
    overloads: dict[str, list[str]] = {}
    shapes: dict[str, set[tuple[bool, int]]] = {}
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"malformed declaration: {line}")
        name, is_member = _function_name(match["signature"])
        overloads.setdefault(name, []).append(_overload(match["id"], match["signature"], match["result"]))
        shapes.setdefault(name, set()).add((is_member, _arity(match["signature"])))
    for name, found in shapes.items() if either_style else ():
        missing = set(product((True, False), _ARITIES)) - found
        overloads[name].extend(
            _unusable(name, is_member=is_member, arity=arity) for is_member, arity in sorted(missing)
        )
    return [
        text
        for name, declared in overloads.items()
        for text in (f"  - name: '{name}'", "    overloads:", *declared)
    ]


def _overload(identifier: str, signature: str, result: str) -> str:
    return f"      - {{id: '{identifier}', signature: '{signature}', return: '{result}'}}"


def _unusable(name: str, *, is_member: bool, arity: int) -> str:
    """An overload with parameters of a type that nothing has."""
    spelled = re.sub(r"([.<>])", r"\\\1", name)
    signature = f"{spelled}({','.join([_NOTHING] * arity)})"
    if is_member:
        signature = f"{_NOTHING}.{signature}"
    return _overload(f"unusable_{name}_{is_member}_{arity}", signature, "dyn")


def _arity(signature: str) -> int:
    """Number of arguments; commas in brackets belong to types."""
    arguments = re.sub(r"<[^()]*>", "", signature[signature.index("(") + 1 : -1])
    return arguments.count(",") + 1 if arguments else 0


def _function_name(signature: str) -> tuple[str, bool]:
    """`list<string>.join(string)` declares a method `join`; a dot that belongs to a name has a backslash in front."""
    head = signature[: signature.index("(")]
    *receiver, name = re.split(r"(?<!\\)\.", head)
    return name.replace("\\", ""), bool(receiver)
