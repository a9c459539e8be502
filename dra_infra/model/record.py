"""The base of every API record, and the JSON types that its fields are made of.

A record decodes as Go's JSON decoder does: a text is a text and never a number, a missing text is empty, a missing
number is 0, and what Go holds by pointer, as a list or as a map is None when it is absent.

Modules of records do without `from __future__ import annotations`: pydantic would compile the text of each annotation,
those of a base again for each record, which took a tenth of the time of `dra-infra validate` on one file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict
from pydantic.alias_generators import to_camel

from dra_infra.model.go_time import check_time
from dra_infra.model.quantity import Quantity, quantity_text


@dataclass(frozen=True, slots=True)
class GoType:
    """What Go calls the type of a text or number; a leading `@` stands for the package of the API version."""

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


# A length, even one that nothing exceeds, makes pydantic look into the text and refuse half a surrogate pair.
Text = Annotated[str, Strict(), Field(min_length=0)]
"""A JSON string."""

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
    """Whether the server's internal struct has JSON names as well."""

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
        from dra_infra.model.go_json import write_versioned

        return write_versioned(self)

    def to_internal_json(self, minor: int) -> str:
        """The text that Go's json.Marshal makes of a server's internal struct, whose fields have no JSON names.

        Args:
            minor: The server's minor, 37 for 1.37: fields that it does not have are left out.
        """
        from dra_infra.model.go_json import write_internal

        return write_internal(self, minor)


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
