"""The base of every API record: frozen, camelCase at the edge, unknown fields named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Record(BaseModel):
    """A frozen record of a Kubernetes API type in its `v1` shape.

    Python names are snake_case, manifests are camelCase. Fields that are not set stay out of the manifest, for the
    API server tells an absent field from an empty one.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        str_strip_whitespace=False,
    )

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read the record from plain JSON data in the API's spelling.

        Raises:
            pydantic.ValidationError: When a field is missing, unknown or of another type.
        """
        return cls.model_validate(manifest)

    def to_manifest(self) -> dict[str, Any]:
        """Plain JSON data in the API's spelling, without the fields that are not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
