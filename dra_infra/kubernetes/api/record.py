"""The base of every API record, the JSON types of its fields, and JSON as Go's json.Marshal writes it.

A record decodes as Go's JSON decoder does: a text is a text and never a number, a missing text is empty, a missing
number is 0, and what Go holds by pointer, as a list or as a map is None when it is absent.

Modules of records do without `from __future__ import annotations`: pydantic would compile the text of each
annotation, those of a base again for each record, which took a tenth of the time of `dra-infra validate` on one file.

Shapes say what each record is made of, in Go's terms: read from the annotations once, for decoding and writing.

JSON in Go's spelling is for values that the API server prints in its messages. The server prints a value either in
its versioned type, with the JSON names and without empty fields, or in its internal one, whose fields have no JSON
names: Go's names then, and every field is there.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, Strict
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from dra_infra.kubernetes.api.gates import ANY, is_known
from dra_infra.kubernetes.api.go_text import go_json
from dra_infra.kubernetes.api.go_time import canonical_time, check_time
from dra_infra.kubernetes.api.placeholders import Placeholder
from dra_infra.kubernetes.api.quantity import Quantity, quantity_text


@dataclass(frozen=True, slots=True)
class GoType:
    """Go's name of the type of a text or number; a leading `@` stands for the package of the API version."""

    name: str


@dataclass(frozen=True, slots=True)
class Embedded:
    """Go embeds a struct of this name, and the field is its only one, or the struct itself.

    Args:
        name: The embedded struct.
        is_field: Whether the struct is itself a field of the JSON, as ObjectMeta is `metadata`.
    """

    name: str
    is_field: bool = False


class Special:
    """Marks the types that have a JSON decoder of their own."""

    QUANTITY: Final = GoType("resource.Quantity")
    TIME: Final = GoType("v1.Time")
    RAW: Final = GoType("runtime.RawExtension")


def _read_quantity(value: object) -> object:
    text = quantity_text(value)
    if text is None:
        return value
    Quantity.parse(text)
    return text


def _read_time(value: object) -> object:
    if isinstance(value, str) and (told := check_time(value)):
        raise ValueError(told)
    return value


class _PlaceholdersStay:
    """Says of a text that a placeholder in its place stays one, for pydantic makes ordinary texts of its subclasses."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # Ordinary texts, nearly all there are, match the first choice exactly, and the second is not looked at.
        text = handler(source)
        text_or_placeholder = core_schema.union_schema(
            [text, core_schema.is_instance_schema(Placeholder)], custom_error_type="string_type"
        )
        # Pydantic fails where it looks for an object of Python in JSON.
        return core_schema.json_or_python_schema(
            text, text_or_placeholder, serialization=core_schema.simple_ser_schema("any")
        )


# A length, even one that nothing exceeds, makes pydantic look into the text and refuse half a surrogate pair.
Text = Annotated[str, Strict(), Field(min_length=0), _PlaceholdersStay()]
"""A JSON string, or a placeholder for one."""

Truth = Annotated[bool, Strict()]
"""`true` or `false`."""

Integer = Annotated[int, Strict(), Field(ge=-(2**63), le=2**63 - 1)]
"""A whole number of 64 bits; 2.0 is none."""

QuantityText = Annotated[str, BeforeValidator(_read_quantity), Strict(), Special.QUANTITY]
"""An amount as it was written; a JSON number counts as its text."""

Time = Annotated[str, BeforeValidator(_read_time), Strict(), Special.TIME]
"""A time of RFC 3339, as it was written."""

RawExtension = Annotated[Any, Special.RAW]
"""Any JSON, kept as it is; `null` is as good as nothing."""

UID = Annotated[Text, GoType("types.UID")]
QualifiedName = Annotated[Text, GoType("@.QualifiedName")]
FullyQualifiedName = Annotated[Text, GoType("@.FullyQualifiedName")]
ResourceName = Annotated[Text, GoType("v1.ResourceName")]


class Record(BaseModel):
    """A frozen record of a Kubernetes API type in its `v1` shape.

    Python names are snake_case, manifests are camelCase. A field that was not given stays out of the manifest.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, defer_build=True
    )

    GO_NAME: ClassVar[str] = ""
    """Name of the Go struct, where it is not the record's."""

    GO_PACKAGE: ClassVar[str] = "@"
    """Its package; `@` stands for that of the API version."""

    WRITTEN_EMPTY: ClassVar[tuple[str, ...]] = ()
    """Fields that Go writes even when they are empty (those without `omitempty`)."""

    GO_FIELDS: ClassVar[Mapping[str, str]] = {}
    """Go's names of fields by JSON name, where they are not alike."""

    TAGGED_INSIDE: ClassVar[bool] = False
    """The server's internal struct has JSON names as well."""

    @classmethod
    def empty(cls) -> Self:
        """The record of which nothing is given, for defaults of fields.

        It makes no schema: those of records that an input does not have would take a fifth of a short run.
        """
        return cls.model_construct()

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read the record from plain JSON data in the API's spelling.

        Raises:
            pydantic.ValidationError: When a field is unknown or of another type. `decoding.decode` says of such data
                what the API server says, and takes `null` as it does.
        """
        return cls.model_validate(manifest, by_alias=True, by_name=False)

    @classmethod
    def from_known(cls, manifest: Mapping[str, Any]) -> Self:
        """The same, and refuses fields that are unknown even where `from_manifest` keeps them."""
        return cls.model_validate(manifest, by_alias=True, by_name=False, extra="forbid")

    def changed(self, values: Mapping[str, Any]) -> Self:
        """The same with other values, which are not checked and count as given.

        Defaulting makes six of these per claim: this is `model_copy(update=...)` without its generic copies, in a
        third of its time.
        """
        new = self.__class__.__new__(self.__class__)
        object.__setattr__(new, "__dict__", {**self.__dict__, **values})
        object.__setattr__(new, "__pydantic_fields_set__", {*self.__pydantic_fields_set__, *values})
        object.__setattr__(new, "__pydantic_extra__", self.__pydantic_extra__)
        object.__setattr__(new, "__pydantic_private__", None)
        return new

    def to_manifest(self) -> dict[str, Any]:
        """Plain JSON data in the API's spelling, without the fields that were not given."""
        return self.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)

    def to_go_json(self) -> str:
        """The text that Go's json.Marshal makes of the versioned struct: its order, empty fields left out."""
        return go_json(_versioned(self))

    def to_internal_json(self, minor: int) -> str:
        """The text that Go's json.Marshal makes of a server's internal struct, whose fields have no JSON names.

        Args:
            minor: The server's minor, 37 for 1.37: fields that it does not have are left out.
        """
        return go_json(_internal(self, minor))


class CoreRecord(Record):
    """A record of a type that all versions of the API share, from `meta/v1` or `core/v1`."""

    GO_PACKAGE = "v1"

    TAGGED_INSIDE = True


class KubernetesObject(Record):
    """A record that says what it is: its manifest has `apiVersion` and `kind` even when nobody gave them."""

    def to_manifest(self) -> dict[str, Any]:
        """Plain JSON data in the API's spelling, without the fields that were not given."""
        header = {"apiVersion": getattr(self, "api_version", ""), "kind": getattr(self, "kind", "")}
        return {**header, **super().to_manifest()}


_GO_NAMES: Final = {
    "cel": "CEL",
    "uid": "UID",
    "ips": "IPs",
    "apiGroup": "APIGroup",
    "apiVersion": "APIVersion",
}


class JsonType(Enum):
    """How Go decodes a value."""

    TEXT = auto()
    INTEGER = auto()
    TRUTH = auto()
    QUANTITY = auto()
    TIME = auto()
    RAW = auto()
    RECORD = auto()
    LIST = auto()
    MAP = auto()


class ValueShape(NamedTuple):
    """A type.

    Args:
        json_type: How it is decoded.
        go_name: Go's name of it; `@` stands for the package of the API version.
        item: The type of the items of a list or the values of a map.
        record: The record.
    """

    json_type: JsonType
    go_name: str
    item: ValueShape | None = None
    record: type[Record] | None = None


class FieldShape(NamedTuple):
    """A field.

    Args:
        name: Its name in Python.
        json_name: Its name in manifests.
        go_name: Its name in Go.
        value: Its type.
        is_pointer: Whether Go tells an absent value from an empty one by a pointer.
        written_empty: Whether Go writes it even when it is empty.
        embedded: The struct that it is in, or is, by embedding.
    """

    name: str
    json_name: str
    go_name: str
    value: ValueShape
    is_pointer: bool
    written_empty: bool
    embedded: Embedded | None


class RecordShape(NamedTuple):
    """A struct: its name in Go, with the package, and its fields by JSON name in Go's order."""

    struct: str
    go_name: str
    fields: Mapping[str, FieldShape]


@cache
def shape_of(record: type[Record]) -> RecordShape:
    """The shape of *record*."""
    hints = get_type_hints(record, include_extras=True)
    struct = record.GO_NAME or record.__name__
    fields = {}
    for name, field in record.model_fields.items():
        json_name = field.alias or name
        value, is_optional, embedded = _read(hints[name])
        fields[json_name] = FieldShape(
            name=name,
            json_name=json_name,
            go_name=_go_name(record, json_name),
            value=value,
            is_pointer=is_optional and value.json_type not in (JsonType.LIST, JsonType.MAP),
            written_empty=name in record.WRITTEN_EMPTY,
            embedded=embedded,
        )
    return RecordShape(struct, f"{record.GO_PACKAGE}.{struct}", fields)


def _go_name(record: type[Record], json_name: str) -> str:
    own = record.GO_FIELDS.get(json_name)
    return own or _GO_NAMES.get(json_name, json_name[0].upper() + json_name[1:])


@cache
def known_fields(record: type[Record], minor: int) -> Mapping[str, FieldShape]:
    """The fields of *record* that a server of *minor* has, by JSON name."""
    shape = shape_of(record)
    return {name: field for name, field in shape.fields.items() if is_known(shape.struct, name, minor)}


def _read(annotation: Any) -> tuple[ValueShape, bool, Embedded | None]:
    embedded, go_type = None, None
    while get_origin(annotation) is Annotated:
        annotation, *metadata = get_args(annotation)
        embedded = next((each for each in metadata if isinstance(each, Embedded)), embedded)
        go_type = next((each for each in metadata if isinstance(each, GoType)), go_type)
    if get_origin(annotation) in (Union, types.UnionType):
        (inner,) = (each for each in get_args(annotation) if each is not type(None))
        value, _, found = _read(inner)
        return value, True, found or embedded
    return _plain(annotation, go_type), False, embedded


def _plain(annotation: Any, go_type: GoType | None) -> ValueShape:
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin is list:
        item = _read(arguments[0])[0]
        return ValueShape(JsonType.LIST, f"[]{item.go_name}", item)
    if origin is dict:
        key, item = _read(arguments[0])[0], _read(arguments[1])[0]
        return ValueShape(JsonType.MAP, f"map[{key.go_name}]{item.go_name}", item)
    if origin is Literal:
        return ValueShape(JsonType.TEXT, "string")
    if isinstance(annotation, type) and issubclass(annotation, Record):
        name = annotation.GO_NAME or annotation.__name__
        return ValueShape(JsonType.RECORD, f"{annotation.GO_PACKAGE}.{name}", record=annotation)
    special = _SPECIAL.get(go_type) if go_type else None
    if special is not None and go_type is not None:
        return ValueShape(special, go_type.name)
    type_, name = _SCALARS[annotation]
    return ValueShape(type_, go_type.name if go_type else name)


_SPECIAL: Final = {
    Special.QUANTITY: JsonType.QUANTITY,
    Special.TIME: JsonType.TIME,
    Special.RAW: JsonType.RAW,
}
_SCALARS: Final[Mapping[Any, tuple[JsonType, str]]] = {
    str: (JsonType.TEXT, "string"),
    int: (JsonType.INTEGER, "int64"),
    bool: (JsonType.TRUTH, "bool"),
}


def write_internal_list(records: Sequence[Record] | None, minor: int) -> str:
    """The internal structs of a list on a server of *minor*; `null` of none."""
    return "null" if records is None else go_json([_internal(record, minor) for record in records])


def _versioned(record: Record) -> dict[str, Any]:
    written = {}
    for name, field in known_fields(type(record), ANY).items():
        value = getattr(record, field.name)
        if field.written_empty or not _is_empty(field, value):
            written[name] = _plain_value(field.value, value, _versioned)
    return written


def _is_empty(field: FieldShape, value: Any) -> bool:
    if field.is_pointer or field.value.json_type in (JsonType.RAW, JsonType.TIME):
        return value is None
    # A struct is never empty to Go.
    return field.value.json_type is not JsonType.RECORD and not value


def _internal(record: Record, minor: int) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for field in known_fields(type(record), minor).values():
        value = getattr(record, field.name)
        if field.embedded is not None and field.embedded.is_field:
            # What is embedded keeps the JSON names of its versioned type.
            written |= _versioned(value)
        else:
            inside = _plain_value(field.value, value, lambda inner: _internal(inner, minor))
            written[field.go_name] = inside
    return written


def _plain_value(shape: ValueShape, value: Any, write: Any) -> Any:
    if value is None or shape.json_type is JsonType.RAW:
        return value
    if shape.json_type is JsonType.QUANTITY:
        return Quantity.parse(value).canonical()
    if shape.json_type is JsonType.TIME:
        return canonical_time(value)
    if shape.json_type is JsonType.LIST and shape.item:
        return [_plain_value(shape.item, item, write) for item in value]
    if shape.json_type is JsonType.MAP and shape.item and isinstance(value, Mapping):
        return {
            key: _plain_value(shape.item, value[key], write)
            for key in sorted(value, key=lambda key: key.encode())
        }
    if shape.json_type is not JsonType.RECORD:
        return value
    # The types of meta/v1 have JSON names in the internal structs as well.
    return _versioned(value) if shape.record is not None and shape.record.TAGGED_INSIDE else write(value)
