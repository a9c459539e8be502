"""The two environments of the engine: one that checks with Kubernetes' types, and one that runs lowered trees.

One environment cannot do both: the checker needs cross-type comparison, abstract types and overloads of the server,
the evaluator needs plain values. The engine is imported on first use, so that importing this package stays cheap.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from dra_infra.cel.libraries import ENGINE_EXTENSIONS, FUNCTIONS, QUANTITY, REDECLARED
from dra_infra.cel.values import RUN_FUNCTIONS

DEVICE_FIELDS: Final = {
    "driver": "string",
    "attributes": "map<string,map<string,dyn>>",
    "capacity": f"map<string,map<string,{QUANTITY}>>",
    "allowMultipleAllocations": "bool",
}
"""Fields of `device` with their types, as a stored expression of Kubernetes 1.37 sees them."""

_LINE = re.compile(r"(?P<id>[^:]+): (?P<signature>.+) -> (?P<result>.+)")


@lru_cache(maxsize=1)
def check_environment() -> Any:
    """The typed environment without implementations, for `compile` only."""
    from cel_expr_python import cel

    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_check_configuration()))


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


def _check_configuration() -> str:
    # `device` itself has an abstract type and each field is a variable with a dotted name: a message type could not
    # express a map of dyn.
    variables = [("device", "kubernetes.DRADevice")]
    variables += [(f"device.{name}", kind) for name, kind in DEVICE_FIELDS.items()]
    return "\n".join(
        [
            "name: dra",
            *_extensions(ENGINE_EXTENSIONS),
            "stdlib:",
            "  exclude_functions:",
            *(f"    - name: {name}" for name in REDECLARED),
            "variables:",
            *(f"  - {{name: {name}, type: '{kind}'}}" for name, kind in variables),
            "functions:",
            *_functions(),
        ]
    )


def _run_configuration() -> str:
    # Strings come with all implementations here; their check side is declared by hand because of list overloads.
    return "\n".join(["name: dra-run", *_extensions({**ENGINE_EXTENSIONS, "strings": 2})])


def _extensions(versions: dict[str, int]) -> list[str]:
    return ["extensions:", *(f"  - {{name: {name}, version: {number}}}" for name, number in versions.items())]


def _functions() -> list[str]:
    overloads: dict[str, list[str]] = {}
    for line in FUNCTIONS:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"malformed declaration: {line}")
        name = _function_name(match["signature"])
        overloads.setdefault(name, []).append(
            f"      - {{id: '{match['id']}', signature: '{match['signature']}', return: '{match['result']}'}}"
        )
    return [
        text
        for name, lines in overloads.items()
        for text in (f"  - name: '{name}'", "    overloads:", *lines)
    ]


def _function_name(signature: str) -> str:
    """`list<string>.join(string)` declares `join`; a dot that belongs to a name has a backslash in front."""
    head = signature[: signature.index("(")]
    return re.split(r"(?<!\\)\.", head)[-1].replace("\\", "")
