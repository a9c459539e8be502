"""DeviceClass, and the selector and configuration parts that classes share with claims (resource.k8s.io/v1)."""

import re
from collections.abc import Iterable
from typing import Annotated, Final, Literal

from pydantic import Field

from dra_infra.kubernetes.api.metadata import ObjectMeta
from dra_infra.kubernetes.api.record import Embedded, KubernetesObject, RawExtension, Record, Text

API_VERSION: Final = "resource.k8s.io/v1"
"""The newest version of the group, in which records are."""


class CELDeviceSelector(Record):
    """A CEL expression over `device`; at most 10240 bytes."""

    WRITTEN_EMPTY = ("expression",)

    expression: Text = ""


class DeviceSelector(Record):
    """One test that a device must pass."""

    cel: CELDeviceSelector | None = None

    @property
    def expression(self) -> str:
        """The CEL expression; empty where there is none."""
        return self.cel.expression if self.cel is not None else ""


def expressions_of(selectors: Iterable[DeviceSelector] | None) -> tuple[str, ...]:
    """The CEL expressions of selectors, without those that have none."""
    return tuple(each.cel.expression for each in selectors or () if each.cel is not None)


DRIVER_TEST: Final = re.compile(r"device\.driver\s*==\s*(['\"])(?P<name>[a-z0-9.-]+)\1")
"""A test of the driver in a CEL expression."""


def drivers_in(expressions: Iterable[str]) -> set[str]:
    """The drivers that CEL expressions name."""
    return {found["name"] for each in expressions for found in DRIVER_TEST.finditer(each)}


class OpaqueDeviceConfiguration(Record):
    """Parameters for one driver that only this driver understands; a JSON object of at most 10240 bytes."""

    WRITTEN_EMPTY = ("driver", "parameters")

    driver: Text = ""
    parameters: RawExtension = None


Opaque = Annotated[OpaqueDeviceConfiguration | None, Embedded("DeviceConfiguration")]
"""The one field of Go's DeviceConfiguration, which classes and claims embed."""


class DeviceClassConfiguration(Record):
    """Driver configuration that comes with a class."""

    opaque: Opaque = None


class DeviceClassSpec(Record):
    """Selectors and configs of a class. A device must pass every selector. Unlike a claim's, this spec is mutable."""

    selectors: list[DeviceSelector] | None = None
    config: list[DeviceClassConfiguration] | None = None
    extended_resource_name: Text | None = None


class DeviceClass(KubernetesObject):
    """A named set of devices, cluster-scoped."""

    WRITTEN_EMPTY = ("spec",)

    api_version: Literal["resource.k8s.io/v1"] = API_VERSION
    kind: Literal["DeviceClass"] = "DeviceClass"
    metadata: ObjectMeta = Field(default=ObjectMeta.empty())
    spec: DeviceClassSpec = Field(default=DeviceClassSpec.empty())


def drivers_of(device_class: DeviceClass) -> set[str]:
    """The drivers that the selectors of a class name."""
    return drivers_in(expressions_of(device_class.spec.selectors))
