"""One named case for every rule of pkg/apis/resource/validation upstream that claims, templates and classes meet.

Each says what the server must answer, so that a row that stops triggering is noticed even where both sides agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.support.parity.cases import ADMIN, MISLABELLED, Object
from tests.support.parity.kinds import expressions
from tests.support.parity.kinds.pods import around
from tests.support.parity.row import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    Row,
)
from tests.support.parity.slice_rows import SLICE_ROWS

TAINTS, CAPACITY, DERIVED, EXTENDED = (
    "DRADeviceTaints",
    "DRAConsumableCapacity",
    "DRADerivedAttributes",
    "DRAExtendedResource",
)
_REQUESTS: Final = "spec.devices.requests"
_EXACTLY: Final = f"{_REQUESTS}[0].exactly"
_MATCH_PATH: Final = "spec.devices.constraints[0].matchAttribute"


def _claim(*requests: Object, **devices: Any) -> Object:
    return _object("ResourceClaim", {"devices": {"requests": list(requests), **devices}})


def _flat_claim(count: int) -> Object:
    requests = [{"name": "gpu", "deviceClassName": "gpu.example.com"}] * count
    return {
        **_object("ResourceClaim", {"devices": {"requests": requests}}),
        "apiVersion": "resource.k8s.io/v1beta1",
    }


def _template(spec: Object, metadata: Object | None = None) -> Object:
    inner = {"metadata": metadata} if metadata is not None else {}
    return _object("ResourceClaimTemplate", {**inner, "spec": spec})


def _class(**spec: Any) -> Object:
    return _object("DeviceClass", spec)


def _object(kind: str, spec: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "row", **metadata},
        "spec": spec,
    }


def _named(built: Object, **metadata: Any) -> Object:
    return {**built, "metadata": metadata}


def _gpu(name: str = "gpu", **leaf: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "gpu.example.com", **leaf}}


def _first(*choices: Object, name: str = "gpu") -> Object:
    return {"name": name, "firstAvailable": list(choices)}


def _choice(name: str = "large", **leaf: Any) -> Object:
    return {"name": name, "deviceClassName": "gpu.example.com", **leaf}


def _cel(text: str) -> Object:
    return {"cel": {"expression": text}}


def _opaque(driver: Any = "gpu.example.com", parameters: Any = ...) -> Object:
    given = {"a": 1} if parameters is ... else parameters
    return {"opaque": {"driver": driver, "parameters": given}}


def _derived(name: str = "a/b", expression: str = '"x"') -> Object:
    return {"name": name, "expression": expression}


def _pod(*entries: Object, claims: Sequence[Object] = (), kind: str = "Pod", **spec: Any) -> Object:
    container: Object = {"name": "main", "image": "registry.invalid/main:1"}
    if claims:
        container["resources"] = {"claims": list(claims)}
    return around(kind, {"containers": [container], "resourceClaims": list(entries), **spec})


_ENTRY: Final = {"name": "gpu", "resourceClaimName": "gpu"}
_MATCH: Final = {"matchAttribute": "a/b"}
_LONG_KEY: Final = {"k": "a" * 10240}
_LABEL_64: Final = "a" * 64
_COSTLY: Final = expressions.TOO_COSTLY


def _r(section: str, text: str, built: Object, path: str = "", reason: str = "", **more: Any) -> Row:
    return Row(section=section, text=text, object=built, path=path, reason=reason, **more)


_METADATA_ROWS: Final = (
    _r("3.2", "claim name is a DNS subdomain", _named(_claim(_gpu()), name="A_b"), "metadata.name", INVALID),
    _r("3.2", "claim name of 254 characters", _named(_claim(_gpu()), name="a" * 254), "metadata.name", INVALID),
    _r("3.2", "template name is a DNS subdomain", _named(_template({}), name="A_b"), "metadata.name", INVALID),
    _r("3.2", "class name is a DNS subdomain", _named(_class(), name="A_b"), "metadata.name", INVALID),
    _r("3.2", "an object has a name", _named(_class()), "metadata.name", REQUIRED),
    _r("3.2", "generateName begins a DNS subdomain", _named(_class(), generateName="A"), "metadata.name", INVALID, unlike={"1.34": ("metadata.generateName", INVALID)}),
    _r("3.2", "label keys", _named(_class(), name="row", labels={"-": ""}), "metadata.labels", INVALID),
    _r("3.2", "label values", _named(_class(), name="row", labels={"a": "-"}), "metadata.labels", INVALID),
    _r("3.2", "annotation keys", _named(_class(), name="row", annotations={"-": ""}), "metadata.annotations", INVALID),
    _r("3.2", "annotations of more than 256 KiB", _named(_class(), name="row", annotations={"a": "x" * 262144}), "metadata.annotations", TOO_LONG),
    _r("3.2", "finalizers are qualified names", _named(_class(), name="row", finalizers=["a/"]), "metadata.finalizers", INVALID),
    _r("3.2", "orphan and foregroundDeletion exclude each other", _named(_class(), name="row", finalizers=["orphan", "foregroundDeletion"]), "metadata.finalizers", INVALID),
    _r("3.2", "a namespace of a class is dropped", _named(_class(), name="row", namespace="A_b")),
    _r("3.2", "finalizers have a domain", _named(_class(), name="row", finalizers=["a"]), "metadata.finalizers[0]", INVALID),
    _r("3.2", "owners have an apiVersion with a version", _named(_class(), name="row", ownerReferences=[{"apiVersion": "apps/", "kind": "Deployment", "name": "a", "uid": "a"}]), "metadata.ownerReferences[0].apiVersion", INVALID, unlike=dict.fromkeys(("1.34", "1.35", "1.36"), ("metadata.ownerReferences.apiVersion", INVALID))),
    _r("3.2", "generation is not negative", _named(_claim(_gpu()), name="row", generation=-1), "metadata.generation", INVALID),
    _r("3.2", "an owner that is written twice is dropped", _named(_class(), name="row", ownerReferences=[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": "a"}] * 2)),
    _r("3.2", "owners have a uid", _named(_class(), name="row", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": ""}]), "metadata.ownerReferences[0].uid", REQUIRED, unlike=dict.fromkeys(("1.34", "1.35", "1.36"), ("metadata.ownerReferences.uid", INVALID))),
    _r("3.2", "one controller at most", _named(_class(), name="row", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True} for name in "ab"]), "metadata.ownerReferences", INVALID),
    _r("3.2", "template metadata has labels and annotations only", _template({}, {"name": "a"}), "spec.metadata.name", FORBIDDEN),
    _r("3.2", "template metadata: a list with nothing in it is set", _template({}, {"finalizers": []}), "spec.metadata.finalizers", FORBIDDEN),
    _r("3.2", "template metadata: a number by pointer is set when it is zero", _template({}, {"deletionGracePeriodSeconds": 0}), "spec.metadata.deletionGracePeriodSeconds", FORBIDDEN),
    _r("3.2", "template metadata: an empty text is not set", _template({}, {"name": "", "generation": 0, "ownerReferences": None})),
    _r("3.2", "template metadata: label keys", _template({}, {"labels": {"-": ""}}), "spec.metadata.labels", INVALID),
    _r("3.2", "template metadata: annotation keys", _template({}, {"annotations": {"-": ""}}), "spec.metadata.annotations", INVALID),
)  # fmt: skip

_REQUEST_ROWS: Final = (
    _r("3.3", "no requests are no error", _claim()),
    _r("3.3", "32 requests", _claim(*(_gpu(f"r{i}") for i in range(32)))),
    _r("3.3", "33 requests", _claim(*(_gpu(f"r{i}") for i in range(33))), _REQUESTS, TOO_MANY),
    _r("3.3", "names of flat requests are unique", _flat_claim(2), f"{_REQUESTS}[1]", DUPLICATE, unlike={"1.34": (f"{_REQUESTS}[1].name", DUPLICATE)}),
    _r("3.3", "names of requests are unique", _claim(_gpu(), _gpu()), f"{_REQUESTS}[1]", DUPLICATE, unlike={"1.34": (f"{_REQUESTS}[1].name", DUPLICATE)}),
    _r("3.3", "request name is a DNS label", _claim(_gpu("A")), f"{_REQUESTS}[0].name", INVALID),
    _r("3.3", "request name of 64 characters", _claim(_gpu(_LABEL_64)), f"{_REQUESTS}[0].name", INVALID),
    _r("3.3", "request name is not empty", _claim(_gpu("")), f"{_REQUESTS}[0].name", INVALID),
    _r("3.3", "a request with neither form", _claim({"name": "gpu"}), f"{_REQUESTS}[0]", REQUIRED),
    _r("3.3", "a request with both forms", _claim({**_gpu(), **_first(_choice())}), f"{_REQUESTS}[0]", INVALID),
    _r("3.3", "8 choices", _claim(_first(*(_choice(f"c{i}") for i in range(8))))),
    _r("3.3", "9 choices", _claim(_first(*(_choice(f"c{i}") for i in range(9)))), f"{_REQUESTS}[0].firstAvailable", TOO_MANY),
    _r("3.3", "names of choices are unique", _claim(_first(_choice(), _choice())), f"{_REQUESTS}[0].firstAvailable[1]", DUPLICATE, unlike={"1.34": (f"{_REQUESTS}[0].firstAvailable[1].name", DUPLICATE)}),
    _r("3.3", "choice name is a DNS label", _claim(_first(_choice("A"))), f"{_REQUESTS}[0].firstAvailable[0].name", INVALID),
    _r("3.3", "class name is required", _claim(_gpu(deviceClassName="")), f"{_EXACTLY}.deviceClassName", REQUIRED),
    _r("3.3", "class name of a choice is required", _claim(_first({"name": "a"})), f"{_REQUESTS}[0].firstAvailable[0].deviceClassName", REQUIRED),
    _r("3.3", "class name is a DNS subdomain", _claim(_gpu(deviceClassName="A")), f"{_EXACTLY}.deviceClassName", INVALID),
    _r("3.3", "33 selectors", _claim(_gpu(selectors=[_cel("true")] * 33)), f"{_EXACTLY}.selectors", TOO_MANY),
    _r("3.3", "cel is required", _claim(_gpu(selectors=[{}])), f"{_EXACTLY}.selectors[0].cel", REQUIRED),
    _r("3.3", "an expression of 10240 bytes", _claim(_gpu(selectors=[_cel(expressions.of_bytes(10240, "é"))]))),
    _r("3.3", "an expression of 10241 bytes", _claim(_gpu(selectors=[_cel(expressions.of_bytes(10241, "é"))])), f"{_EXACTLY}.selectors[0].cel.expression", TOO_LONG),
    _r("3.3", "an expression compiles", _claim(_gpu(selectors=[_cel("device.")])), f"{_EXACTLY}.selectors[0].cel.expression", INVALID),
    _r("3.3", "an expression is a test", _claim(_gpu(selectors=[_cel("1")])), f"{_EXACTLY}.selectors[0].cel.expression", INVALID),
    _r("3.3", "an expression costs at most 1,000,000", _claim(_gpu(selectors=[_cel(_COSTLY)])), f"{_EXACTLY}.selectors[0].cel.expression", FORBIDDEN),
    _r("3.3", "allocationMode is All or ExactCount", _claim(_gpu(allocationMode="Any")), f"{_EXACTLY}.allocationMode", NOT_SUPPORTED),
    _r("3.3", "count is above zero", _claim(_gpu(count=-1)), f"{_EXACTLY}.count", INVALID),
    _r("3.3", "All takes no count", _claim(_gpu(allocationMode="All", count=1)), f"{_EXACTLY}.count", INVALID),
    _r("3.3", "toleration key is a label key", _claim(_gpu(tolerations=[{"key": "a/b/c", "operator": "Exists"}])), f"{_EXACTLY}.tolerations[0].key", INVALID, gate=TAINTS),
    _r("3.3", "toleration operator is Exists or Equal", _claim(_gpu(tolerations=[{"key": "a", "operator": "Gt"}])), f"{_EXACTLY}.tolerations[0].operator", NOT_SUPPORTED, gate=TAINTS),
    _r("3.3", "Exists takes no value", _claim(_gpu(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}])), f"{_EXACTLY}.tolerations[0].value", INVALID, gate=TAINTS),
    _r("3.3", "toleration value is a label value", _claim(_gpu(tolerations=[{"key": "a", "value": "-"}])), f"{_EXACTLY}.tolerations[0].value", INVALID, gate=TAINTS),
    _r("3.3", "toleration effect is a known one", _claim(_gpu(tolerations=[{"key": "a", "value": "b", "effect": "X"}])), f"{_EXACTLY}.tolerations[0].effect", NOT_SUPPORTED, gate=TAINTS),
    _r("3.3", "33 derived attributes", _claim(_gpu(derivedAttributes=[_derived(f"a/b{i}") for i in range(33)])), f"{_EXACTLY}.derivedAttributes", TOO_MANY, gate=DERIVED),
    _r("3.3", "names of derived attributes are unique", _claim(_gpu(derivedAttributes=[_derived(), _derived()]), constraints=[_MATCH]), f"{_EXACTLY}.derivedAttributes[1]", DUPLICATE, gate=DERIVED),
    _r("3.3", "derived attribute has a name", _claim(_gpu(derivedAttributes=[_derived("")])), f"{_EXACTLY}.derivedAttributes[0].name", REQUIRED, gate=DERIVED),
    _r("3.3", "derived attribute name is fully qualified", _claim(_gpu(derivedAttributes=[_derived("b")])), f"{_EXACTLY}.derivedAttributes[0].name", INVALID, gate=DERIVED),
    _r("3.3", "derived attribute is used by a constraint", _claim(_gpu(derivedAttributes=[_derived()])), f"{_EXACTLY}.derivedAttributes[0].name", INVALID, gate=DERIVED),
    _r("3.3", "derived attribute has an expression", _claim(_gpu(derivedAttributes=[_derived(expression="")]), constraints=[_MATCH]), f"{_EXACTLY}.derivedAttributes[0].expression", REQUIRED, gate=DERIVED),
    _r("3.3", "derived expression of 10241 bytes", _claim(_gpu(derivedAttributes=[_derived(expression=f'"{"a" * 10239}"')]), constraints=[_MATCH]), f"{_EXACTLY}.derivedAttributes[0].expression", TOO_LONG, gate=DERIVED),
    _r("3.3", "derived expression compiles", _claim(_gpu(derivedAttributes=[_derived(expression="device.")]), constraints=[_MATCH]), f"{_EXACTLY}.derivedAttributes[0].expression", INVALID, gate=DERIVED),
    _r("3.3", "derived expression has the type of an attribute", _claim(_gpu(derivedAttributes=[_derived(expression="1.5")]), constraints=[_MATCH]), f"{_EXACTLY}.derivedAttributes[0].expression", INVALID, gate=DERIVED),
    _r("3.3", "derived expression costs at most 1,000,000", _claim(_gpu(derivedAttributes=[_derived(expression=_COSTLY)]), constraints=[_MATCH]), f"{_EXACTLY}.derivedAttributes[0].expression", FORBIDDEN, gate=DERIVED),
    _r("3.3", "derived expressions together cost at most 1,000,000", _claim(_gpu(derivedAttributes=[_derived(f"a/b{i}", expressions.A_FIFTH_OF_THE_LIMIT) for i in range(8)]), constraints=[{"matchAttribute": f"a/b{i}"} for i in range(8)]), "spec.devices", FORBIDDEN, gate=DERIVED),
)  # fmt: skip

_CONSTRAINT_ROWS: Final = (
    _r("3.3", "33 constraints", _claim(_gpu(), constraints=[_MATCH] * 33), "spec.devices.constraints", TOO_MANY),
    _r("3.3", "33 requests of a constraint", _claim(_gpu(), constraints=[{**_MATCH, "requests": [f"r{i}" for i in range(33)]}]), "spec.devices.constraints[0].requests", TOO_MANY),
    _r("3.3", "requests of a constraint are unique", _claim(_gpu(), constraints=[{**_MATCH, "requests": ["gpu", "gpu"]}]), "spec.devices.constraints[0].requests[1]", DUPLICATE),
    _r("3.3", "a reference is a DNS label", _claim(_gpu(), constraints=[{**_MATCH, "requests": ["A"]}]), "spec.devices.constraints[0].requests[0]", INVALID),
    _r("3.3", "a reference has one slash at most", _claim(_gpu(), constraints=[{**_MATCH, "requests": ["gpu/a/b"]}]), "spec.devices.constraints[0].requests[0]", INVALID),
    _r("3.3", "a reference names a request", _claim(_gpu(), constraints=[{**_MATCH, "requests": ["nic"]}]), "spec.devices.constraints[0].requests[0]", INVALID),
    _r("3.3", "a reference names a choice of its request", _claim(_first(_choice()), _gpu("nic"), constraints=[{**_MATCH, "requests": ["nic/large"]}]), "spec.devices.constraints[0].requests[0]", INVALID),
    _r("3.3", "the name of a choice alone is no reference", _claim(_first(_choice()), constraints=[{**_MATCH, "requests": ["large"]}]), "spec.devices.constraints[0].requests[0]", INVALID),
    _r("3.3", "a request with choices is referred to in whole and in part", _claim(_first(_choice()), constraints=[{**_MATCH, "requests": ["gpu", "gpu/large"]}])),
    _r("3.3", "matchAttribute is fully qualified", _claim(_gpu(), constraints=[{"matchAttribute": "numa"}]), "spec.devices.constraints[0].matchAttribute", INVALID),
    _r("3.3", "distinctAttribute is fully qualified", _claim(_gpu(), constraints=[{"distinctAttribute": "numa"}]), "spec.devices.constraints[0].distinctAttribute", INVALID, gate=CAPACITY),
    _r("3.3", "a constraint has an attribute", _claim(_gpu(), constraints=[{}]), "spec.devices.constraints[0]", REQUIRED, gate=CAPACITY),
    _r("3.3", "a constraint has matchAttribute, where it is the only one", _claim(_gpu(), constraints=[{}]), "spec.devices.constraints[0].matchAttribute", REQUIRED, without=CAPACITY),
    _r("3.3", "both attributes are no error", _claim(_gpu(), constraints=[{**_MATCH, "distinctAttribute": "a/c"}]), gate=CAPACITY),
)  # fmt: skip

_CONFIG_ROWS: Final = (
    _r("3.3", "33 configs", _claim(_gpu(), config=[_opaque()] * 33), "spec.devices.config", TOO_MANY),
    _r("3.3", "33 requests of a config", _claim(_gpu(), config=[{**_opaque(), "requests": [f"r{i}" for i in range(33)]}]), "spec.devices.config[0].requests", TOO_MANY),
    _r("3.3", "requests of a config are unique", _claim(_gpu(), config=[{**_opaque(), "requests": ["gpu", "gpu"]}]), "spec.devices.config[0].requests[1]", DUPLICATE),
    _r("3.3", "a reference of a config names a request", _claim(_gpu(), config=[{**_opaque(), "requests": ["nic"]}]), "spec.devices.config[0].requests[0]", INVALID),
    _r("3.3", "opaque is required", _claim(_gpu(), config=[{}]), "spec.devices.config[0].opaque", REQUIRED),
    _r("3.3", "driver is required", _claim(_gpu(), config=[_opaque("")]), "spec.devices.config[0].opaque.driver", REQUIRED),
    _r("3.3", "driver is a DNS subdomain", _claim(_gpu(), config=[_opaque("_")]), "spec.devices.config[0].opaque.driver", INVALID),
    _r("3.3", "driver of 64 characters", _claim(_gpu(), config=[_opaque("a" * 64)]), "spec.devices.config[0].opaque.driver", TOO_LONG),
    _r("3.3", "driver in upper case", _claim(_gpu(), config=[_opaque("GPU.Example.com")])),
    _r("3.3", "parameters are required", _claim(_gpu(), config=[{"opaque": {"driver": "a"}}]), "spec.devices.config[0].opaque.parameters", REQUIRED),
    _r("3.3", "parameters of more than 10240 bytes", _claim(_gpu(), config=[_opaque(parameters=_LONG_KEY)]), "spec.devices.config[0].opaque.parameters", TOO_LONG),
    _r("3.3", "parameters are not null", _claim(_gpu(), config=[_opaque(parameters=None)]), "spec.devices.config[0].opaque.parameters", REQUIRED),
    _r("3.3", "parameters are an object", _claim(_gpu(), config=[_opaque(parameters=[1])]), "spec.devices.config[0].opaque.parameters", INVALID),
    _r("3.3", "admin access needs the label", _claim(_gpu(adminAccess=True)), f"{_REQUESTS}[0].adminAccess", FORBIDDEN),
    _r("3.3", "admin access needs the label's exact value", _claim(_gpu(adminAccess=True)), f"{_REQUESTS}[0].adminAccess", FORBIDDEN, namespace=MISLABELLED),
    _r("3.3", "admin access with the label", _claim(_gpu(adminAccess=True)), namespace=ADMIN),
    _r("3.3", "admin access of a template needs the label", _template(_claim(_gpu(adminAccess=True))["spec"]), f"{_REQUESTS}[0].adminAccess", FORBIDDEN),
    _r("3.3", "the spec of a claim does not change", _claim(_gpu(count=2)), "spec", INVALID, after=_claim(_gpu())),
    _r("3.3", "the spec of a template does not change", _template(_claim(_gpu(count=2))["spec"]), "spec", INVALID, after=_template(_claim(_gpu())["spec"])),
    _r("3.3 gaps", "17 tolerations are no error", _claim(_gpu(tolerations=[{"operator": "Exists"}] * 17)), gate=TAINTS),
    _r("3.3 gaps", "capacity names and amounts are not checked", _claim(_gpu(capacity={"requests": {"a/b/c": "-1"}})), gate=CAPACITY),
    _r("3.3 gaps", "Equal without a key", _claim(_gpu(tolerations=[{"value": "b"}])), gate=TAINTS),
    _r("3.3 gaps", "more than 32 devices", _claim(_gpu(count=33))),
)  # fmt: skip

_CLASS_ROWS: Final = (
    _r("3.4", "33 selectors", _class(selectors=[_cel("true")] * 33), "spec.selectors", TOO_MANY),
    _r("3.4", "cel is required", _class(selectors=[{}]), "spec.selectors[0].cel", REQUIRED),
    _r("3.4", "an expression compiles", _class(selectors=[_cel("device.")]), "spec.selectors[0].cel.expression", INVALID),
    _r("3.4", "an expression of 10241 bytes", _class(selectors=[_cel(expressions.of_bytes(10241))]), "spec.selectors[0].cel.expression", TOO_LONG),
    _r("3.4", "an expression costs at most 1,000,000", _class(selectors=[_cel(_COSTLY)]), "spec.selectors[0].cel.expression", FORBIDDEN),
    _r("3.4", "33 configs", _class(config=[_opaque()] * 33), "spec.config", TOO_MANY),
    _r("3.4", "opaque is required", _class(config=[{}]), "spec.config[0].opaque", REQUIRED),
    _r("3.4", "driver is required", _class(config=[_opaque("")]), "spec.config[0].opaque.driver", REQUIRED),
    _r("3.4", "driver is a DNS subdomain", _class(config=[_opaque("_")]), "spec.config[0].opaque.driver", INVALID),
    _r("3.4", "driver of 64 characters", _class(config=[_opaque("a" * 64)]), "spec.config[0].opaque.driver", TOO_LONG),
    _r("3.4", "parameters are required", _class(config=[{"opaque": {"driver": "a"}}]), "spec.config[0].opaque.parameters", REQUIRED),
    _r("3.4", "parameters of more than 10240 bytes", _class(config=[_opaque(parameters=_LONG_KEY)]), "spec.config[0].opaque.parameters", TOO_LONG),
    _r("3.4", "parameters are an object", _class(config=[_opaque(parameters="x")]), "spec.config[0].opaque.parameters", INVALID),
    _r("3.4", "extended resource has a domain", _class(extendedResourceName="gpu"), "spec.extendedResourceName", INVALID, gate=EXTENDED),
    _r("3.4", "extended resource is not Kubernetes' own", _class(extendedResourceName="kubernetes.io/gpu"), "spec.extendedResourceName", INVALID, gate=EXTENDED),
    _r("3.4", "extended resource does not begin with requests.", _class(extendedResourceName="requests.example.com/gpu"), "spec.extendedResourceName", INVALID, gate=EXTENDED),
    _r("3.4", "extended resource can be a quota's key", _class(extendedResourceName=f"{expressions.DOMAIN_OF_245}/x"), "spec.extendedResourceName", INVALID, gate=EXTENDED),
    _r("3.4", "unchanged selectors are not checked again", _class(selectors=[_cel("true")], extendedResourceName="a/b"), after=_class(selectors=[_cel("true")])),
    _r("3.4", "changed selectors are checked", _class(selectors=[_cel("true"), _cel("1")]), "spec.selectors[1].cel.expression", INVALID, after=_class(selectors=[_cel("true")])),
)  # fmt: skip

_POD_ROWS: Final = (
    _r("3.8", "a claim of a pod has a name", _pod({"resourceClaimName": "a"}), "spec.resourceClaims[0].name", REQUIRED),
    _r("3.8", "claims of a pod have different names", _pod(_ENTRY, _ENTRY), "spec.resourceClaims[1].name", DUPLICATE),
    _r("3.8", "the name of a pod's claim is a DNS label", _pod({**_ENTRY, "name": "A"}), "spec.resourceClaims[0].name", INVALID),
    _r("3.8", "a pod's claim names a claim or a template", _pod({"name": "gpu"}), "spec.resourceClaims[0]", INVALID),
    _r("3.8", "a pod's claim does not name both", _pod({**_ENTRY, "resourceClaimTemplateName": "a"}), "spec.resourceClaims[0]", INVALID),
    _r("3.8", "resourceClaimName is a DNS subdomain", _pod({"name": "gpu", "resourceClaimName": "A"}), "spec.resourceClaims[0].resourceClaimName", INVALID),
    _r("3.8", "resourceClaimTemplateName is a DNS subdomain", _pod({"name": "gpu", "resourceClaimTemplateName": "A"}), "spec.resourceClaims[0].resourceClaimTemplateName", INVALID),
    _r("3.8", "a container's claim has a name", _pod(_ENTRY, claims=[{"request": "a"}]), "spec.containers[0].resources.claims[0]", REQUIRED),
    _r("3.8", "a container uses claims of its pod", _pod(_ENTRY, claims=[{"name": "nic"}]), "spec.containers[0].resources.claims[0]", NOT_FOUND),
    _r("3.8", "a container of a pod without claims uses none", _pod(claims=[{"name": "nic"}]), "spec.containers[0].resources.claims[0]", NOT_FOUND),
    _r("3.8", "the request of a container's claim is a DNS label", _pod(_ENTRY, claims=[{"name": "gpu", "request": "a/b"}]), "spec.containers[0].resources.claims[0].request", INVALID),
    _r("3.8", "a container uses a claim once", _pod(_ENTRY, claims=[{"name": "gpu"}, {"name": "gpu"}]), "spec.containers[0].resources.claims[1]", DUPLICATE),
    _r("3.8", "a container uses a request once", _pod(_ENTRY, claims=[{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "a"}]), "spec.containers[0].resources.claims[1]", DUPLICATE),
    _r("3.8", "a container uses a claim in whole or in part", _pod(_ENTRY, claims=[{"name": "gpu"}, {"name": "gpu", "request": "a"}]), "spec.containers[0].resources.claims[1]", DUPLICATE),
    _r("3.8", "a container uses a claim in part or in whole", _pod(_ENTRY, claims=[{"name": "gpu", "request": "a"}, {"name": "gpu"}]), "spec.containers[0].resources.claims[1]", DUPLICATE),
    _r("3.8", "a container uses two requests of one claim", _pod(_ENTRY, claims=[{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}])),
    _r("3.8", "claims of a pod do not change", _pod({**_ENTRY, "resourceClaimName": "other"}), "spec", FORBIDDEN, after=_pod(_ENTRY)),
    _r("3.8", "resources of a whole pod have no claims, and a list of none is one", _pod(_ENTRY, resources={"claims": []}), "spec.resources.claims", FORBIDDEN),
    _r("3.8", "claims in resources of a whole pod are checked like a container's", _pod(_ENTRY, resources={"claims": [{"name": "nic"}]}), "spec.resources.claims[0]", NOT_FOUND),
    _r("3.8", "resources of a whole pod have no claims", _pod(_ENTRY, resources={"claims": [{"name": "gpu"}]}), "spec.resources.claims", FORBIDDEN),
    *(
        _r("3.8", f"pods of a {kind}: a container uses claims of its pod", _pod(_ENTRY, claims=[{"name": "nic"}], kind=kind), f"{path}.containers[0].resources.claims[0]", NOT_FOUND)
        for kind, path in (
            ("Deployment", "spec.template.spec"), ("StatefulSet", "spec.template.spec"), ("DaemonSet", "spec.template.spec"),
            ("ReplicaSet", "spec.template.spec"), ("Job", "spec.template.spec"), ("CronJob", "spec.jobTemplate.spec.template.spec"),
        )
    ),
)  # fmt: skip


def _format_row(text: str, value: str, *, driver: bool = False, attribute: bool = False, **more: Any) -> Row:
    if driver:
        return _r(
            "3.1",
            text,
            _claim(_gpu(), config=[_opaque(value)]),
            "spec.devices.config[0].opaque.driver",
            INVALID,
        )
    if attribute:
        built = _claim(_gpu(), constraints=[{"matchAttribute": value}])
        return _r("3.1", text, built, _MATCH_PATH, INVALID, **more)
    return _r("3.1", text, _claim(_gpu(deviceClassName=value)), f"{_EXACTLY}.deviceClassName", INVALID)


_FORMAT_ROWS: Final = (
    _r("3.1", "DNS label: pattern", _claim(_gpu("a_b")), f"{_REQUESTS}[0].name", INVALID),
    _r("3.1", "DNS label: 64 characters", _claim(_gpu(_LABEL_64)), f"{_REQUESTS}[0].name", INVALID),
    _format_row("DNS subdomain: pattern", "a..b"),
    _format_row("DNS subdomain: 254 characters", "a" * 254),
    _format_row("driver name: pattern", "a_b", driver=True),
    _format_row("fully qualified name: no domain", "numa", attribute=True),
    _format_row("fully qualified name: empty domain", "/numa", attribute=True, unlike={"1.34": (_MATCH_PATH, REQUIRED)}),
    _format_row("fully qualified name: empty name", "a/", attribute=True, unlike={"1.34": (_MATCH_PATH, REQUIRED)}),
    _format_row("fully qualified name: name is a C identifier", "a/b-c", attribute=True),
    _r("3.1", "label key: name of 64 characters", _named(_class(), name="row", labels={_LABEL_64: ""}), "metadata.labels", INVALID),
    _r("3.1", "label key: prefix is a DNS subdomain", _named(_class(), name="row", labels={"A_/a": ""}), "metadata.labels", INVALID),
    _r("3.1", "label value: 64 characters", _named(_class(), name="row", labels={"a": _LABEL_64}), "metadata.labels", INVALID),
)  # fmt: skip

ALL_ROWS: Final = (
    *_FORMAT_ROWS,
    *_METADATA_ROWS,
    *_REQUEST_ROWS,
    *_CONSTRAINT_ROWS,
    *_CONFIG_ROWS,
    *_CLASS_ROWS,
    *_POD_ROWS,
    *SLICE_ROWS,
)
ROWS: Final[Mapping[str, Row]] = {row.id: row for row in ALL_ROWS}
"""All rows by name."""
