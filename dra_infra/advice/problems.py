"""An API server's verdict as problems, with hints that show the comparison as it must be written.

Problems come in the user's reading order, each with a code and with what to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from dra_infra.advice.findings import MAX_QUOTED, STANDARD_DOMAIN, STANDARD_NAMES
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import Dropped, Release, field_names
from dra_infra.kubernetes.apiserver import RULES, FieldError, Verdict
from dra_infra.kubernetes.cel import find_hint
from dra_infra.output.wording import nearest

_HINTS = {
    "metadata.name-format": "use lower-case letters, digits, '-' and '.'",
    "template.metadata": "set labels and annotations only; the generated claim gets its own name and namespace",
    "claim.requests-size": "split it into several claims",
    "claim.immutable": "give the changed object a new name, and change the pods that use it",
    "request.one-of-none": "write exactly: {deviceClassName: ...}, or firstAvailable: [...]",
    "request.one-of-both": "keep one of the two",
    "request.count-with-all": "leave count out, or write allocationMode: ExactCount",
    "request.count-positive": "write count: 1 or more, or leave it out",
    "request.admin-access": "label the namespace with resource.kubernetes.io/admin-access: 'true'",
    "cel.length": "split it into several selectors, all of which must be true",
    "cel.cost": "test with ==, or bound what loops go through",
    "reference.unknown": "name a request of this claim, or request/subrequest for an entry of firstAvailable",
    "constraint.attribute": "write a domain and a name: gpu.nvidia.com/productName",
    "constraint.attribute-required": "write matchAttribute: gpu.nvidia.com/productName",
    "config.opaque-required": "write opaque: {driver: ..., parameters: {...}}",
    "config.parameters-object": "write a mapping, with apiVersion and kind as the driver asks for",
    "toleration.value-with-exists": "leave value out, or write operator: Equal",
    "derived.unused": "name it in matchAttribute or distinctAttribute of a constraint on this request",
    "class.extended-resource-name": "write a domain of your own and a name: example.com/gpu",
    "slice.immutable": "delete the slice and publish another",
    "slice.counters-or-devices": "publish the counters in a slice of their own of the same pool",
    "slice.devices-size": "publish the rest in another slice of the same pool, and raise resourceSliceCount",
    "slice.nodes-none": "write nodeName, nodeSelector, allNodes: true or perDeviceNodeSelection: true",
    "slice.nodes-many": "keep one of them",
    "attribute.one-of-none": "write a value: string, int, bool or version",
    "attribute.one-of-many": "keep one of the values",
    "policy.needs-sharing": "write allowMultipleAllocations: true on the device, or leave requestPolicy out",
    "policy.step-panic": "write a step above zero, or leave it out",
    "consumption.unknown-set": "add it to sharedCounters of the same slice, where 1.34 looks",
    "consumption.unknown-counter": "add it to the counter set of the same slice, where 1.34 looks",
    "binding.both": "give both lists, or none",
    "skip.prepare-alone": "add NodeUnprepareResources",
    "pod.claim-one-of": "keep one of resourceClaimName and resourceClaimTemplateName",
    "container.claim-duplicate": "use a claim once per container, or each request of it once",
}


_PLACES: Final = {
    "devices": "a ResourceClaimTemplate has spec.spec.devices, a ResourceClaim spec.devices",
    "spec": "a ResourceClaim has one spec, a ResourceClaimTemplate spec.spec",
    "deviceClassName": "write devices: {requests: [{name: gpu, exactly: {deviceClassName: ...}}]}",
}

_IN_EXACTLY: Final = frozenset(
    {
        "adminAccess",
        "allocationMode",
        "capacity",
        "count",
        "derivedAttributes",
        "deviceClassName",
        "selectors",
        "tolerations",
    }
)
"""Fields of a request that v1beta1 has in the request itself, and later versions below `exactly`."""
_REQUEST: Final = re.compile(r"(.*)\.requests\[\d+\]\.(\w+)")
_SOURCE: Final = re.compile(r"(.*)\.resourceClaims\[\d+\]\.source")
MIGRATE: Final = "`dra-infra migrate FILE` rewrites it"


def _mend_shape(path: str, manifest: Mapping[str, Any]) -> str:
    """Return how a field of an older version is written now, with its value; empty for any other field."""
    request = _REQUEST.fullmatch(path)
    if request and request[2] in _IN_EXACTLY:
        value = _at(manifest, path)
        shown = value if isinstance(value, (str, int)) and not isinstance(value, bool) else "..."
        return f"write exactly: {{{request[2]}: {shown}}}, with all of the request but its name; {MIGRATE}"
    if request and request[2] == "exactly":
        return "only later versions have it: write apiVersion: resource.k8s.io/v1, or the fields of exactly in the request itself"
    if _SOURCE.fullmatch(path):
        return _mend_source(_at(manifest, path))
    return ""


def _mend_source(source: object) -> str:
    """Return how an entry of a pod names its claim since 1.31."""
    given = source if isinstance(source, Mapping) else {}
    named = ((field, given.get(field)) for field in ("resourceClaimTemplateName", "resourceClaimName"))
    field, name = next(((field, name) for field, name in named if name), ("resourceClaimTemplateName", "..."))
    return (
        f"since Kubernetes 1.31 the entry itself has it: write {field}: {name} in place of source; {MIGRATE}"
    )


def without_old_shape(problem: Problem, manifest: Mapping[str, Any]) -> Problem:
    """Return a problem of an entry of a pod with the hint for the older shape that the entry has."""
    source = _at(manifest, f"{problem.path}.source") if problem.code == "one-of" else None
    return replace(problem, hint=_mend_source(source)) if isinstance(source, Mapping) else problem


_GONE: Final = dict.fromkeys(
    ("spec.deviceSelector.selectors", "spec.deviceSelector.deviceClassName"),
    "since Kubernetes 1.35 a rule names its devices: write driver, pool and device",
)
"""Hints for fields that Kubernetes 1.35 removed (kubernetes/kubernetes#134152), by path."""

_QUOTED = "cannot unmarshal string into"
_NUMBERS = ("of type int", "of type int32", "of type int64")
"""How encoding/json ends what it says of a number that is something else."""


def problems_of(verdict: Verdict, release: Release, manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of *verdict* on *manifest*, in words for the author of the object; paths are those of the object."""
    yield from unreadable(verdict.type_errors, verdict.unknown_fields, release, manifest)
    for error in verdict.errors:
        yield problem_of(error)
    for path, text in verdict.warnings:
        hint = "write it in lower case, as the driver does in its slices"
        yield Problem(path=path, code="driver-not-lowercase", message=text, hint=hint, severity="warning")
    for dropped in verdict.dropped:
        yield _dropped(dropped, release)


def unreadable(
    type_errors: Iterable[tuple[str, str]],
    unknown_fields: Iterable[str],
    release: Release,
    manifest: Mapping[str, Any],
) -> Iterator[Problem]:
    """A problem for each part of an object that a server cannot read."""
    for path, text in type_errors:
        yield Problem(
            path=path,
            code="wrong-type",
            message=text,
            hint=_readable(path, text, manifest) or "the API server cannot read the object",
        )
    for path in unknown_fields:
        yield Problem(
            path=path,
            code="unknown-field",
            message=f"Kubernetes {release.minor} has no such field; kubectl refuses it, other clients lose it silently",
            hint=_GONE.get(path) or _mend_shape(path, manifest) or _spelling(_last(path)),
        )


def _readable(path: str, text: str, manifest: Mapping[str, Any]) -> str:
    """The line to write in place of a text where a number or another type belongs."""
    if _QUOTED not in text:
        return ""
    value = _at(manifest, path)
    name = _last(path)
    if value == "None":
        return f"YAML has null for None: leave {name} out"
    if text.endswith(_NUMBERS):
        number = value.strip() if isinstance(value, str) else ""
        is_number = re.fullmatch(r"-?[0-9]{1,18}", number, re.ASCII)
        return f"write {name}: {number if is_number else 'with a number'}, without quotes"
    return ""


def _at(manifest: Any, path: str) -> Any:
    """The value at a field path, None where there is none."""
    value: Any = manifest
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if name:
            value = value.get(name) if isinstance(value, Mapping) else None
        else:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
    return value


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _spelling(name: str) -> str:
    if name in field_names():
        return _PLACES.get(name, "another place has it, or another minor: see `kubectl explain`")
    near = nearest(name, sorted(field_names()), cutoff=0.8)
    return f"did you mean {near!r}?" if near else "check the spelling against `kubectl explain`"


def problem_of(error: FieldError) -> Problem:
    """One finding of the server as a problem."""
    rule = RULES[error.rule]
    code = "cel-syntax" if rule.code == "cel-type" and "Syntax error" in error.detail else rule.code
    hint = (
        explain_refusal(error.value, error.detail) if rule.code == "cel-type" else _HINTS.get(error.rule, "")
    )
    if error.rule == "pod.claim-one-of" and "at most one" not in error.detail:
        hint = "write resourceClaimTemplateName: or resourceClaimName: with the name of one"
    name = _unquoted(str(error.value))
    if error.rule == "constraint.attribute" and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        domain = STANDARD_DOMAIN if name in STANDARD_NAMES else "gpu.nvidia.com"
        hint = f"write the domain of the attribute before its name: {domain}/{name}"
    return Problem(path=error.path, code=code, message=error.message, hint=hint)


def _dropped(dropped: Dropped, release: Release) -> Problem:
    does = "stores it, and its scheduler ignores it" if dropped.kept else "clears it without a word"
    return Problem(
        path=dropped.path,
        code="field-ignored" if dropped.kept else "field-dropped",
        message=f"Kubernetes {release.minor} {does}: the gate {dropped.gate} is off",
        hint=f"leave it out, or name the gate if the cluster has it on: {dropped.gate}=true",
        severity="warning",
    )


_READ: Final = (
    r"""device\.capacity(?:\[\s*(?:"[^"]*"|'[^']*')\s*\]|\.\w+)(?:\.\w+|\[\s*(?:"[^"]*"|'[^']*')\s*\])"""
)
_COMPARED: Final = re.compile(
    rf"""(?P<read>{_READ})\s*(?P<operator>[<>]=?|[!=]=)\s*(?:(?P<number>\d[\d_.]*)|(?P<quote>["'])(?P<text>[^"']*)(?P=quote))"""
)
_CALLED: Final = re.compile(
    rf"""(?P<read>{_READ})\.(?P<method>compareTo|isGreaterThan|isLessThan)\((?:(?P<number>\d[\d_.]*)|(?P<quote>["'])(?P<text>[^"']*)(?P=quote))\)"""
)
_UNITLESS: Final = re.compile(r"[0-9]{1,4}")


def explain_refusal(value: str, detail: str) -> str:
    """The hint for an expression that does not compile, empty when none is known.

    Args:
        value: The expression, as the server prints bad values or as it was written.
        detail: The server's report.
    """
    if "kubernetes.Quantity" in detail:
        expression = _unquoted(value)
        compared = _COMPARED.search(expression)
        if compared is not None:
            return _write(f"{compared['read']}.compareTo({_amount(compared)}) {compared['operator']} 0")
        called = _CALLED.search(expression)
        if called is not None:
            ends = " >= 0" if called["method"] == "compareTo" else ""
            return _write(f"{called['read']}.{called['method']}({_amount(called)}){ends}")
    return find_hint(detail, _unquoted(value))


def _unquoted(value: str) -> str:
    try:
        text = json.loads(value) if value.startswith('"') else value
    except ValueError:
        return value
    return text if isinstance(text, str) else value


def _write(line: str) -> str:
    return f"write {line}" if len(line) <= MAX_QUOTED else ""


def _amount(match: re.Match[str]) -> str:
    text = match["number"] or match["text"]
    # A small number of memory is one of gibibytes.
    unit = "Gi" if "emory" in match["read"] and _UNITLESS.fullmatch(text) and text != "0" else ""
    return f'quantity("{text}{unit}")'
