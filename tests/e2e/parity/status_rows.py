"""One named case for every row of section 3.6 of the project's reference: status updates of claims."""

from __future__ import annotations

from typing import Any, Final

from tests.e2e.parity.cases import PLAIN, Object
from tests.e2e.parity.row import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    Row,
)

_CLAIM: Final[Object] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "row"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
}
_DEVICE: Final = {"driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0"}
_RESULT: Final = {"request": "gpu", **_DEVICE}
_OPAQUE: Final = {"opaque": {"driver": "gpu.example.com", "parameters": {}}}
_CONDITION: Final = {
    "type": "Ready",
    "status": "True",
    "reason": "Up",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}
_RESULTS: Final = "status.allocation.devices.results"
_CONFIG: Final = "status.allocation.devices.config"
_AT: Final = "status.devices[0]"
_LABEL_64: Final = "a" * 64
_LONG_POOL: Final = "/".join(["a" * 63] * 4)
_STATUS, _SHARING = "DRAResourceClaimDeviceStatus", "DRAConsumableCapacity"


def _r(text: str, status: Object, path: str = "", reason: str = "", **more: Any) -> Row:
    return Row(
        section="3.6",
        text=text,
        object=_CLAIM,
        status=status,
        path=path,
        reason=reason,
        namespace=PLAIN,
        **more,
    )


def _consumer(index: int = 0, **fields: str) -> Object:
    return {"resource": "pods", "name": f"pod-{index}", "uid": f"uid-{index}", **fields}


def _allocated(*results: Object, config: list[Object] | None = None, **more: Any) -> Object:
    devices: Object = {"results": list(results) or [_RESULT]}
    if config is not None:
        devices["config"] = config
    return {"allocation": {"devices": devices}, **more}


def _result(**fields: Any) -> Object:
    return _allocated({**_RESULT, **fields})


def _device(**fields: Any) -> Object:
    return _allocated(devices=[{**_DEVICE, **fields}])


def _network(**fields: Any) -> Object:
    return _device(networkData=fields)


def _conditions(*changes: Object) -> Object:
    return _device(conditions=[{**_CONDITION, **change} for change in changes])


_OLD: Final = ("1.34",)
_BEFORE_37: Final = ("1.34", "1.35", "1.36")

STATUS_ROWS: Final = (
    _r("an allocation", _allocated(reservedFor=[_consumer()])),
    _r("256 consumers", _allocated(reservedFor=[_consumer(index) for index in range(256)])),
    _r("257 consumers", _allocated(reservedFor=[_consumer(index) for index in range(257)]), "status.reservedFor", TOO_MANY),
    _r("a consumer is there once", _allocated(reservedFor=[_consumer(), _consumer()]), "status.reservedFor[1]", DUPLICATE, unlike=dict.fromkeys(_OLD, ("status.reservedFor[1].uid", DUPLICATE))),
    *(_r(f"a consumer has a {name}", _allocated(reservedFor=[_consumer(**{name: ""})]), f"status.reservedFor[0].{name}", REQUIRED) for name in ("resource", "name", "uid")),
    _r("consumers need an allocation", {"reservedFor": [_consumer()]}, "status.reservedFor", FORBIDDEN),
    _r("an allocation does not change", _result(device="gpu-1"), "status.allocation", INVALID, stored_status=_allocated()),
    _r("an allocation may be cleared", {}, stored_status=_allocated(reservedFor=[_consumer()])),
    _r("an allocation may stay", _allocated(reservedFor=[_consumer()]), stored_status=_allocated()),
    _r("33 results", _allocated(*[_RESULT] * 33), _RESULTS, TOO_MANY),
    _r("a result is of a request", _result(request="nic"), f"{_RESULTS}[0].request", INVALID),
    _r("a request of a result is a label", _result(request="A"), f"{_RESULTS}[0].request", INVALID),
    _r("a result names its driver", _result(driver=""), f"{_RESULTS}[0].driver", REQUIRED),
    _r("a result's driver is a DNS subdomain", _result(driver="a_b"), f"{_RESULTS}[0].driver", INVALID),
    _r("a result's driver has at most 63 bytes", _result(driver=_LABEL_64), f"{_RESULTS}[0].driver", TOO_LONG),
    _r("a result names its pool", _result(pool=""), f"{_RESULTS}[0].pool", REQUIRED),
    _r("a result's pool is subdomains", _result(pool="A"), f"{_RESULTS}[0].pool", INVALID),
    _r("a result's pool has at most 253 bytes", _result(pool=_LONG_POOL), f"{_RESULTS}[0].pool", TOO_LONG),
    _r("a result's device is a label", _result(device="a.b"), f"{_RESULTS}[0].device", INVALID),
    _r("a share's id is a UUID", _result(shareID="x"), f"{_RESULTS}[0].shareID", INVALID, gate=_SHARING),
    _r("binding conditions of a result go together", _result(bindingConditions=["a"]), f"{_RESULTS}[0].bindingFailureConditions", INVALID, gate="DRADeviceBindingConditions"),
    _r("a toleration of a result is valid since 1.37", _result(tolerations=[{"operator": "x"}]), f"{_RESULTS}[0].tolerations[0].operator", NOT_SUPPORTED, unlike=dict.fromkeys(_BEFORE_37, ("", ""))),
    _r("a skipped call of a result is known", _result(skipNodeOperations=["x"]), f"{_RESULTS}[0].skipNodeOperations[0]", NOT_SUPPORTED, gate="DRAOptionalNodeOperations"),
    _r("a result does not skip preparing alone", _result(skipNodeOperations=["NodePrepareResources"]), f"{_RESULTS}[0].skipNodeOperations", INVALID, gate="DRAOptionalNodeOperations"),
    _r("admin access needs a labelled namespace", _result(adminAccess=True), f"{_RESULTS}[0].adminAccess", FORBIDDEN),
    _r("65 configs", _allocated(config=[{"source": "FromClass", **_OPAQUE}] * 65), _CONFIG, TOO_MANY),
    _r("a config has a source", _allocated(config=[_OPAQUE]), f"{_CONFIG}[0].source", REQUIRED),
    _r("a config's source is known", _allocated(config=[{"source": "x", **_OPAQUE}]), f"{_CONFIG}[0].source", NOT_SUPPORTED),
    _r("a config is for requests of the claim", _allocated(config=[{"source": "FromClaim", "requests": ["x"], **_OPAQUE}]), f"{_CONFIG}[0].requests[0]", INVALID),
    _r("a config names a request once", _allocated(config=[{"source": "FromClaim", "requests": ["gpu", "gpu"], **_OPAQUE}]), f"{_CONFIG}[0].requests[1]", DUPLICATE),
    _r("a config has opaque", _allocated(config=[{"source": "FromClaim"}]), f"{_CONFIG}[0].opaque", REQUIRED),
    _r("a node selector is valid", {"allocation": {"devices": {"results": [_RESULT]}, "nodeSelector": {}}}, "status.allocation.nodeSelector.nodeSelectorTerms", REQUIRED),
    _r("a device with a status is allocated", _allocated(devices=[{**_DEVICE, "device": "gpu-1"}]), _AT, INVALID),
    _r("a device has one status", _allocated(devices=[_DEVICE, _DEVICE]), "status.devices[1]", DUPLICATE, unlike=dict.fromkeys(_OLD, ("status.devices[1].deviceID", DUPLICATE))),
    _r("a device's driver", _device(driver=""), f"{_AT}.driver", REQUIRED),
    _r("a device's driver is a DNS subdomain", _device(driver="a_b"), f"{_AT}.driver", INVALID),
    _r("a device's driver has at most 63 bytes", _device(driver=_LABEL_64), f"{_AT}.driver", TOO_LONG),
    _r("a device's pool", _device(pool=""), f"{_AT}.pool", REQUIRED),
    _r("a device's pool is subdomains", _device(pool="A"), f"{_AT}.pool", INVALID),
    _r("a device's pool has at most 253 bytes", _device(pool=_LONG_POOL), f"{_AT}.pool", TOO_LONG),
    _r("a device's name is a label", _device(device="A"), f"{_AT}.device", INVALID),
    _r("9 conditions", _conditions(*({"type": f"t{index}"} for index in range(9))), f"{_AT}.conditions", TOO_MANY),
    _r("a condition is there once", _conditions({}, {}), f"{_AT}.conditions[1]", DUPLICATE, unlike=dict.fromkeys(_BEFORE_37, (f"{_AT}.conditions[1].type", DUPLICATE))),
    _r("a condition has a type", _conditions({"type": ""}), f"{_AT}.conditions[0].type", REQUIRED, unlike=dict.fromkeys(_BEFORE_37, (f"{_AT}.conditions[0].type", INVALID))),
    _r("a condition's type is a label key", _conditions({"type": "-"}), f"{_AT}.conditions[0].type", INVALID),
    _r("a condition's status is known", _conditions({"status": "x"}), f"{_AT}.conditions[0].status", NOT_SUPPORTED),
    _r("a condition's reason is a word", _conditions({"reason": "a-b"}), f"{_AT}.conditions[0].reason", INVALID),
    _r("a condition's reason has at most 1 KiB", _conditions({"reason": "a" * 1025}), f"{_AT}.conditions[0].reason", TOO_LONG),
    _r("a condition's generation is not negative", _conditions({"observedGeneration": -1}), f"{_AT}.conditions[0].observedGeneration", INVALID),
    _r("data are an object", _device(data=[]), f"{_AT}.data", INVALID),
    _r("data have at most 10 KiB", _device(data={"k": "a" * 10240}), f"{_AT}.data", TOO_LONG),
    _r("an interface's name has at most 256 bytes", _network(interfaceName="a" * 257), f"{_AT}.networkData.interfaceName", TOO_LONG),
    _r("a hardware address has at most 128 bytes", _network(hardwareAddress="a" * 129), f"{_AT}.networkData.hardwareAddress", TOO_LONG),
    _r("17 addresses", _network(ips=[f"192.0.2.{index}/24" for index in range(17)]), f"{_AT}.networkData.ips", TOO_MANY),
    _r("an address is there once", _network(ips=["192.0.2.5/24"] * 2), f"{_AT}.networkData.ips[1]", DUPLICATE),
    _r("an address is in CIDR form", _network(ips=["192.0.2.5"]), f"{_AT}.networkData.ips[0]", INVALID),
    _r("an address is in its usual form", _network(ips=["2001:DB8::1/64"]), f"{_AT}.networkData.ips[0]", INVALID),
    _r("statuses of devices without their gate are dropped", _device(driver=""), without=_STATUS),
)  # fmt: skip
"""The rows of status updates."""
