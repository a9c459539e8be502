"""The two environments of the engine: one that checks with Kubernetes' types, and one that runs lowered trees.

One environment cannot do both: the checker needs cross-type comparison, abstract types and overloads of the server,
the evaluator needs plain values. The engine is imported on first use, so that importing this package stays cheap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import Any, Final

from dra_infra.cel.libraries import REDECLARED
from dra_infra.cel.release import ADDITIONS, DEFAULT, Addition, Environment
from dra_infra.cel.values import RUN_FUNCTIONS

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
    """Whether cel-go's functions of lists are there."""
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


@lru_cache(maxsize=1)
def run_environment() -> Any:
    """The untyped environment that evaluates lowered trees."""
    from cel_expr_python import cel

    # The any type matches every kind of value at run time; dyn matches none.
    anything = cel.Type("google.protobuf.Any")
    functions = [
        cel.FunctionDecl(
            name, [cel.Overload(name, cel.Type.DYN, [anything] * arity, is_member=False, impl=implementation)]
        )
        for name, (arity, implementation) in RUN_FUNCTIONS.items()
    ]
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_run_configuration()), functions=functions)


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


def _run_configuration() -> str:
    # Strings come with all implementations here; their check side is declared by hand because of list overloads.
    brought = [addition.extension for addition in _known(DEFAULT) if addition.extension]
    return "\n".join(["name: dra-run", *_extensions([*brought, ("strings", 2)])])


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
