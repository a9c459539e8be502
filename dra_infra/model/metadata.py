"""Object metadata, and references to objects."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ConfigDict

from dra_infra.model.record import Record


class ObjectMeta(Record):
    """The metadata that people write. What the server adds (uid, managed fields ...) is kept, not modelled."""

    # Objects read from a cluster carry more than people write; nothing of it may be lost or refused.
    model_config = ConfigDict(extra="allow")

    name: str | None = None
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


@dataclass(frozen=True, order=True, slots=True)
class ObjectRef:
    """Names one object: `Job ml/train`, or `DeviceClass h100` for one without a namespace."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"
