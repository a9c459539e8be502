"""Reads the engine's serialized expressions as our nodes.

The engine writes `google.protobuf.Any` holding `cel.expr.CheckedExpr`. No package on the usual registries ships these
messages without a gRPC stack around them, so their descriptors are built here, in a pool of our own that cannot collide
with another package's. The engine loads google.protobuf itself, hence this costs no further import, and decoding runs
in C.

Upstream: `proto/cel/expr/syntax.proto` and `checked.proto` of github.com/google/cel-spec.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from dra_infra.kubernetes.cel.tree import (
    DYN,
    Call,
    CelType,
    CheckedTree,
    Comprehension,
    Const,
    Entry,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
    is_bind,
    walk,
)

_MESSAGES: Final[dict[str, str]] = {
    "Any": "type_url:string=1 value:bytes=2",
    "CheckedExpr": "reference_map:*ReferenceEntry=2 type_map:*TypeEntry=3 expr:Expr=4 source_info:SourceInfo=5",
    "ReferenceEntry": "key:int64=1 value:bytes=2",
    "Reference": "overload_id:*string=3",
    "TypeEntry": "key:int64=1 value:bytes=2",
    "SourceInfo": "positions:*PositionEntry=4",
    "PositionEntry": "key:int64=1 value:int32=2",
    "Expr": "id:int64=2 |const_expr:Constant=3 |ident_expr:Ident=4 |select_expr:Select=5 |call_expr:Call=6"
    " |list_expr:CreateList=7 |struct_expr:CreateStruct=8 |comprehension_expr:Comprehension=9",
    "Constant": "|null_value:int32=1 |bool_value:bool=2 |int64_value:int64=3 |uint64_value:uint64=4"
    " |double_value:double=5 |string_value:string=6 |bytes_value:bytes=7",
    "Ident": "name:string=1",
    "Select": "operand:Expr=1 field:string=2 test_only:bool=3",
    "Call": "target:Expr=1 function:string=2 args:*Expr=3",
    "CreateList": "elements:*Expr=1 optional_indices:*int32=2",
    "CreateStruct": "message_name:string=1 entries:*StructEntry=2",
    "StructEntry": "id:int64=1 |field_key:string=2 |map_key:Expr=3 value:Expr=4 optional_entry:bool=5",
    "Comprehension": "iter_var:string=1 iter_range:Expr=2 accu_var:string=3 accu_init:Expr=4"
    " loop_condition:Expr=5 loop_step:Expr=6 result:Expr=7 iter_var2:string=8",
    "Empty": "",
    "Type": "|dyn:Empty=1 |null:int32=2 |primitive:int32=3 |wrapper:int32=4 |well_known:int32=5"
    " |list_type:ListType=6 |map_type:MapType=7 |function:Empty=8 |message_type:string=9 |type_param:string=10"
    " |type:Type=11 |error:Empty=12 |abstract_type:AbstractType=14",
    "ListType": "elem_type:Type=1",
    "MapType": "key_type:Type=1 value_type:Type=2",
    "AbstractType": "name:string=1 parameter_types:*Type=2",
}
"""Message -> fields `name:type=number`; `*` marks a repeated field, `|` a member of the message's one oneof.

The values of a TypeEntry and a ReferenceEntry, a Type and a Reference, are read as the bytes that they have on the wire:
most entries of most trees hold one of a few, and each is decoded once in the life of the process.
"""

_PRIMITIVES: Final = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN: Final = {1: "any", 2: "timestamp", 3: "duration"}


@lru_cache(maxsize=1)
def _classes() -> dict[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    scalars = {
        "string": kinds.TYPE_STRING,
        "bytes": kinds.TYPE_BYTES,
        "bool": kinds.TYPE_BOOL,
        "int32": kinds.TYPE_INT32,
        "int64": kinds.TYPE_INT64,
        "uint64": kinds.TYPE_UINT64,
        "double": kinds.TYPE_DOUBLE,
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="dra_infra/cel_expr.proto", package="dra_infra.kubernetes.cel", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if "|" in fields:
            message.oneof_decl.add(name="kind")
        for text in fields.split():
            label, _, rest = text.partition(":")
            kind, _, number = rest.partition("=")
            entry = message.field.add(
                name=label.lstrip("|"),
                number=int(number),
                label=kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL,
            )
            kind = kind.lstrip("*")
            if kind in scalars:
                entry.type = scalars[kind]
            else:
                entry.type, entry.type_name = kinds.TYPE_MESSAGE, f".dra_infra.kubernetes.cel.{kind}"
            if label.startswith("|"):
                entry.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"dra_infra.kubernetes.cel.{name}"))
        for name in _MESSAGES
    }


def decode_checked(serialized: bytes) -> CheckedTree:
    """Read what the check environment serialized.

    Raises:
        RuntimeError: When it is nested deeper than protobuf reads, 100 messages in C; a loop in a loop is four of them.
    """
    from google.protobuf.message import DecodeError

    classes = _classes()
    try:
        checked = classes["CheckedExpr"].FromString(classes["Any"].FromString(serialized).value)
    except DecodeError as error:
        raise RuntimeError(str(error)) from error
    root = _decode(checked.expr)
    positions = {entry.key: entry.value for entry in checked.source_info.positions}
    if b"#unused" in serialized:
        # cel-go puts what the macro cel.bind adds at the macro, and the engine at the name that is written.
        positions |= {node.step.id: positions[node.id] for node in walk(root) if is_bind(node)}
    return CheckedTree(
        root=root,
        types={entry.key: _type_of(entry.value) for entry in checked.type_map},
        positions=positions,
        references={entry.key: _overloads_of(entry.value) for entry in checked.reference_map},
    )


def _decode(expr: Any) -> Node:
    kind = expr.WhichOneof("kind")
    identity = expr.id
    if kind == "const_expr":
        field = expr.const_expr.WhichOneof("kind")
        value = None if field == "null_value" else getattr(expr.const_expr, field)
        return Const(field, value, id=identity)
    if kind == "ident_expr":
        return Ident(expr.ident_expr.name, id=identity)
    if kind == "select_expr":
        select = expr.select_expr
        return Select(_decode(select.operand), select.field, select.test_only, id=identity)
    if kind == "call_expr":
        call = expr.call_expr
        target = _decode(call.target) if call.HasField("target") else None
        return Call(call.function, tuple(map(_decode, call.args)), target, id=identity)
    if kind == "list_expr":
        items = expr.list_expr
        return ListLiteral(tuple(map(_decode, items.elements)), tuple(items.optional_indices), id=identity)
    if kind == "struct_expr":
        struct = expr.struct_expr
        return MapLiteral(tuple(map(_decode_entry, struct.entries)), struct.message_name, id=identity)
    loop = expr.comprehension_expr
    return Comprehension(
        iter_var=loop.iter_var,
        iter_var2=loop.iter_var2,
        iter_range=_decode(loop.iter_range),
        accu_var=loop.accu_var,
        accu_init=_decode(loop.accu_init),
        condition=_decode(loop.loop_condition),
        step=_decode(loop.loop_step),
        result=_decode(loop.result),
        id=identity,
    )


def _decode_entry(entry: Any) -> Entry:
    if entry.WhichOneof("kind") == "map_key":
        key = _decode(entry.map_key)
    else:
        key = Const("string_value", entry.field_key)
    return Entry(key, _decode(entry.value), entry.optional_entry)


@lru_cache(maxsize=1024)
def _type_of(serialized: bytes) -> CelType:
    return _decode_type(_classes()["Type"].FromString(serialized))


@lru_cache(maxsize=1024)
def _overloads_of(serialized: bytes) -> tuple[str, ...]:
    return tuple(_classes()["Reference"].FromString(serialized).overload_id)


def _decode_type(message: Any) -> CelType:
    kind = message.WhichOneof("kind")
    if kind == "primitive":
        return CelType(_PRIMITIVES[message.primitive])
    if kind == "well_known":
        return CelType(_WELL_KNOWN[message.well_known])
    if kind == "wrapper":
        return CelType("wrapper", (CelType(_PRIMITIVES[message.wrapper]),))
    if kind == "null":
        return CelType("null_type")
    if kind == "list_type":
        return CelType("list", (_decode_type(message.list_type.elem_type),))
    if kind == "map_type":
        return CelType(
            "map", (_decode_type(message.map_type.key_type), _decode_type(message.map_type.value_type))
        )
    if kind == "abstract_type":
        abstract = message.abstract_type
        return CelType(abstract.name, tuple(map(_decode_type, abstract.parameter_types)))
    if kind == "message_type":
        return CelType(message.message_type)
    if kind == "type":
        return CelType("type", (_decode_type(message.type),))
    return DYN
