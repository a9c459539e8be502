"""Reads what an environment declares for the checker: functions with their overloads, names of types, and fields.

Upstream: `common/decls/decls.go`, `common/types/provider.go` and `common/types/types.go` of cel-go, and
`k8s.io/apiserver/pkg/cel/types.go`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from dra_infra.kubernetes.cel.environment import (
    Environment,
    PolicyScope,
    declared_lines,
    device_fields,
    split_line,
)
from dra_infra.kubernetes.cel.tree import DYN, CelType
from dra_infra.kubernetes.cel.unification import is_message, is_parameter

DEVICE: Final = CelType("kubernetes.DRADevice")


class Overload(NamedTuple):
    """One way to call a function.

    Args:
        id: Its overload id.
        is_member: Whether it is a method, whose receiver is the first parameter.
        parameters: Types of the parameters.
        result: Type of the result.
        unknown: The type parameters that are in them.
    """

    id: str
    is_member: bool
    parameters: tuple[CelType, ...]
    result: CelType
    unknown: tuple[CelType, ...]


class Declarations(NamedTuple):
    """The declarations of an environment.

    Args:
        functions: The overloads of each function.
        names: The types of the variables, and of the names that stand for types or numbers.
        messages: The types that messages can be made of, by the names to write.
        fields: The types of the fields of each message.
    """

    functions: dict[str, tuple[Overload, ...]]
    names: dict[str, CelType]
    messages: dict[str, CelType]
    fields: dict[str, dict[str, CelType]]


_PARTS: Final = re.compile(r"[<>,]|[^<>,]+")


@lru_cache(maxsize=1024)
def read_type(text: str) -> CelType:
    """The type that `map<string,list<~A>>` spells."""
    return _read_types(text)[0]


def _read_types(text: str) -> tuple[CelType, ...]:
    open_types: list[list[CelType]] = [[]]
    names: list[str] = []
    for part in _PARTS.findall(text):
        if part == "<":
            names.append(open_types[-1].pop().name)
            open_types.append([])
        elif part == ">":
            parameters = open_types.pop()
            open_types[-1].append(CelType(names.pop(), tuple(parameters)))
        elif part != ",":
            open_types[-1].append(CelType(part))
    return tuple(open_types[0])


@lru_cache(maxsize=1024)
def _read_overload(line: str) -> tuple[str, Overload]:
    identifier, signature, result = split_line(line)
    head, _, arguments = signature.rpartition("(") if signature.count("(") == 1 else signature.partition("(")
    *receiver, name = re.split(r"(?<!\\)\.", head)
    parameters = (*_read_types(".".join(receiver)), *_read_types(arguments[:-1]))
    returned = read_type(result)
    unknown = tuple(dict.fromkeys(_parameters_of((returned, *parameters))))
    return name.replace("\\", ""), Overload(identifier, bool(receiver), parameters, returned, unknown)


def _parameters_of(kinds: tuple[CelType, ...]) -> list[CelType]:
    return [
        found
        for kind in kinds
        for found in ([kind] if is_parameter(kind) else _parameters_of(kind.parameters))
    ]


_PROTOBUF: Final = "google.protobuf."
_NAMED: Final = {
    **{name: name for name in ("bool", "bytes", "double", "int", "null_type", "string", "type", "uint")},
    "list": "list<~A>",
    "map": "map<~A,~B>",
    f"{_PROTOBUF}Duration": "duration",
    f"{_PROTOBUF}Timestamp": "timestamp",
}
"""Names of the standard library for types; the parameters of lists and maps are left open."""

_OPEN_TYPES: Final = 36

_SCALARS: Final = {
    **{
        name: name
        for name in ("bool", "bytes", "double", "duration", "int", "null_type", "string", "timestamp")
    },
    "uint": "uint",
    "list": "list<any>",
    "map": "map<any,any>",
}
"""Names that Kubernetes knows for types, beside the standard library's."""

_WRAPPERS: Final = {
    "BoolValue": "bool",
    "BytesValue": "bytes",
    "DoubleValue": "double",
    "FloatValue": "double",
    "Int32Value": "int",
    "Int64Value": "int",
    "StringValue": "string",
    "UInt32Value": "uint",
    "UInt64Value": "uint",
}
_MESSAGES: Final = {
    "Any": "any",
    "Duration": "duration",
    "Empty": f"{_PROTOBUF}Empty",
    "ListValue": "list<dyn>",
    "Struct": "map<string,dyn>",
    "Timestamp": "timestamp",
    "Value": "dyn",
    **{name: f"wrapper<{kind}>" for name, kind in _WRAPPERS.items()},
}
_MOMENT: Final = {"seconds": "int", "nanos": "int"}
_FIELDS: Final = {
    "Any": {"type_url": "string", "value": "bytes"},
    "Duration": _MOMENT,
    "Empty": {},
    "ListValue": {"values": "list<dyn>"},
    "Struct": {"fields": "map<string,dyn>"},
    "Timestamp": _MOMENT,
    "Value": {
        "null_value": "int",
        "number_value": "double",
        "string_value": "string",
        "bool_value": "bool",
        "struct_value": "map<string,dyn>",
        "list_value": "list<dyn>",
    },
    **{name: {"value": kind} for name, kind in _WRAPPERS.items()},
}


_MADE: Final = {
    "any": f"{_PROTOBUF}Any",
    "dyn": f"{_PROTOBUF}Value",
    "duration": f"{_PROTOBUF}Duration",
    "list": f"{_PROTOBUF}ListValue",
    "map": f"{_PROTOBUF}Struct",
    "null_type": f"{_PROTOBUF}NullValue",
    "timestamp": f"{_PROTOBUF}Timestamp",
}
_WRAPPED: Final = {
    "bool": f"{_PROTOBUF}BoolValue",
    "bytes": f"{_PROTOBUF}BytesValue",
    "double": f"{_PROTOBUF}DoubleValue",
    "int": f"{_PROTOBUF}Int64Value",
    "string": f"{_PROTOBUF}StringValue",
    "uint": f"{_PROTOBUF}UInt64Value",
}
"""Names of the messages that have the fields of a literal, by the type of the literal."""

_JSON: Final = {"list": CelType("list", (DYN,)), "map": CelType("map", (CelType("string"), DYN))}


def message_of(kind: CelType) -> str:
    """The message that has the fields of literals of a type; empty when it is made of no fields."""
    if kind.name == "wrapper":
        return _WRAPPED[kind.parameters[0].name]
    if kind.name in _JSON and kind != _JSON[kind.name]:
        return ""
    return kind.name if is_message(kind) else _MADE.get(kind.name, "")


def declared_name(kind: CelType) -> str:
    """The type by the name that it is declared with."""
    names = {"duration": f"{_PROTOBUF}Duration", "timestamp": f"{_PROTOBUF}Timestamp"}
    return names.get(kind.name, kind.name)


def _type_of(kind: CelType) -> CelType:
    return CelType("type", (kind,))


class _Subject(NamedTuple):
    """The names that expressions know: variables, names of types, and the fields of messages."""

    variables: dict[str, CelType]
    types: dict[str, CelType]
    fields: dict[str, dict[str, CelType]]


def _device(environment: Environment) -> _Subject:
    fields = {name: read_type(kind) for name, kind in device_fields(environment).items()}
    maps = {f"{DEVICE.name}.{name}": kind for name, kind in fields.items() if kind.name == "map"}
    return _Subject({"device": DEVICE}, {DEVICE.name: DEVICE, **maps}, {DEVICE.name: fields})


_VARIABLES: Final = "kubernetes.variables"
_ADMISSION: Final = {
    "kubernetes.GroupVersionKind": dict.fromkeys(("group", "version", "kind"), "string"),
    "kubernetes.GroupVersionResource": dict.fromkeys(("group", "version", "resource"), "string"),
    "kubernetes.UserInfo": {
        "username": "string",
        "uid": "string",
        "groups": "list<string>",
        "extra": "map<string,list<string>>",
    },
    "kubernetes.AdmissionRequest": {
        "kind": "kubernetes.GroupVersionKind",
        "resource": "kubernetes.GroupVersionResource",
        "subResource": "string",
        "requestKind": "kubernetes.GroupVersionKind",
        "requestResource": "kubernetes.GroupVersionResource",
        "requestSubResource": "string",
        "name": "string",
        "namespace": "string",
        "operation": "string",
        "userInfo": "kubernetes.UserInfo",
        "dryRun": "bool",
        "options": "dyn",
    },
    "kubernetes.NamespaceSpec": {"finalizers": "list<string>"},
    "kubernetes.NamespaceCondition": {
        **dict.fromkeys(("status", "type", "message", "reason"), "string"),
        "lastTransitionTime": "timestamp",
    },
    "kubernetes.NamespaceStatus": {"conditions": "list<kubernetes.NamespaceCondition>", "phase": "string"},
    "kubernetes.NamespaceMetadata": {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), "string"),
        **dict.fromkeys(("labels", "annotations"), "map<string,string>"),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), "timestamp"),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), "int"),
        "finalizers": "list<string>",
    },
    "kubernetes.Namespace": {
        "metadata": "kubernetes.NamespaceMetadata",
        "spec": "kubernetes.NamespaceSpec",
        "status": "kubernetes.NamespaceStatus",
    },
}
"""BuildRequestType and BuildNamespaceType in `k8s.io/apiserver/pkg/admission/plugin/cel/compile.go`."""


def _admission(scope: PolicyScope) -> _Subject:
    variables = {
        "object": DYN,
        "oldObject": DYN,
        "request": CelType("kubernetes.AdmissionRequest"),
        "namespaceObject": CelType("kubernetes.Namespace"),
        "variables": CelType(_VARIABLES),
    }
    if scope.has_params:
        variables["params"] = DYN
    if scope.has_authorizer:
        variables["authorizer"] = CelType("kubernetes.authorization.Authorizer")
        variables["authorizer.requestResource"] = CelType("kubernetes.authorization.ResourceCheck")
    fields = {
        message: {name: read_type(kind) for name, kind in found.items()}
        for message, found in _ADMISSION.items()
    }
    fields[_VARIABLES] = dict(scope.variables)
    return _Subject(variables, {name: CelType(name) for name in fields}, fields)


@lru_cache(maxsize=32)
def declarations(environment: Environment) -> Declarations:
    """Returns the declarations of an environment, which are read once."""
    # Older releases declare lists and maps with their parameters.
    standard = (
        _NAMED if environment.minor <= _OPEN_TYPES else _NAMED | {"list": "list<dyn>", "map": "map<dyn,dyn>"}
    )
    functions: dict[str, dict[str, Overload]] = {}
    for line in declared_lines(environment):
        name, overload = _read_overload(line)
        functions.setdefault(name, {}).setdefault(overload.id, overload)
    subject = _device(environment) if environment.policy is None else _admission(environment.policy)
    messages = {f"{_PROTOBUF}{name}": read_type(kind) for name, kind in _MESSAGES.items()}
    registered = {name: CelType(name) for name in ("net.IP", "net.CIDR")}
    registered["optional_type"] = CelType("optional_type", () if environment.minor <= _OPEN_TYPES else (DYN,))
    runtime = {name: read_type(kind) for name, kind in _NAMED.items()} | {
        "list": CelType("list", (DYN,)),
        "map": CelType("map", (DYN, DYN)),
    }
    found = {
        **{name: read_type(kind) for name, kind in _SCALARS.items()},
        **subject.types,
    }
    names = found | messages | registered | runtime
    return Declarations(
        functions={name: tuple(overloads.values()) for name, overloads in functions.items()},
        names={
            **{name: _type_of(kind) for name, kind in names.items()},
            **{name: _type_of(read_type(kind)) for name, kind in standard.items()},
            f"{_PROTOBUF}NullValue.NULL_VALUE": CelType("int"),
            **subject.variables,
        },
        messages=names,
        fields={
            **{name: {} for name in _SCALARS},
            **{
                f"{_PROTOBUF}{name}": {field: read_type(kind) for field, kind in found.items()}
                for name, found in _FIELDS.items()
            },
            **subject.fields,
        },
    )
