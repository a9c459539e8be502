"""Objects that `dra-infra validate` refuses, one for each of ten codes, and more that the engine is to say nothing of."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

API: Final = "resource.k8s.io/v1"


def claim(name: str, *requests: Json, **devices: Any) -> Json:
    """A ResourceClaim with these requests."""
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }


def request(name: str = "gpu", **exactly: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "h100", **exactly}}


def selected(expression: str) -> Json:
    return request(selectors=[{"cel": {"expression": expression}}])


H100: Final[Json] = {
    "apiVersion": API,
    "kind": "DeviceClass",
    "metadata": {"name": "h100"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]},
}

REFUSED: Final[dict[str, Json]] = {
    "count-below-one": claim("count", request(count=-1)),
    "count-with-all": claim("both", request(count=2, allocationMode="All")),
    "unsupported-value": claim("mode", request(allocationMode="Some")),
    "cel-syntax": claim("syntax", selected("device.driver ==")),
    "cel-type": claim("type", selected("device.driver")),
    "duplicate-request": claim("twice", request(), request()),
    "invalid-name": claim("name", request("GPU")),
    "one-of": claim("one-of", {**request(), "firstAvailable": [{"name": "a", "deviceClassName": "h100"}]}),
    "unknown-request": claim(
        "constraint", request(), constraints=[{"requests": ["gpus"], "matchAttribute": "gpu.nvidia.com/type"}]
    ),
    "invalid-attribute-name": claim("attribute", request(), constraints=[{"matchAttribute": "type"}]),
    "invalid-parameters": claim(
        "config",
        request(),
        config=[{"opaque": {"driver": "gpu.nvidia.com", "parameters": "Long"}}],
    ),
}
"""An object for each code."""

OBJECTS: Final = (H100, *REFUSED.values())
