"""Names of the objects that components make.

The spec of a ResourceClaim or ResourceClaimTemplate is immutable, so a change needs a new object. A name that ends
in a hash of the spec makes that an ordinary rollover: new object, workload updated, old object deleted last.
(Docs: ADR 0002. Every other way ends in AlreadyExists or deletes the workload.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import names
from dra_infra.specs.arguments import (
    check_annotations,
    check_labels,
    check_namespace,
    is_output,
    shorten,
    wrong_type,
)


def hash_spec(spec: Mapping[str, Any]) -> str:
    """The first 8 hexadecimal digits of the SHA-256 of the spec's compact JSON with sorted keys.

    Frozen: another byte here would rename, and so roll over, every claim of every user.
    """
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def name_by_content(name: str, spec: Mapping[str, Any]) -> str:
    """`trainer` and its spec become `trainer-3f9c2a1b`."""
    return f"{name}-{hash_spec(spec)}"


def check_component_name(name: object) -> Iterator[Problem]:
    """A claim's component name becomes the entry in pods and the stem of the object's name: a DNS label.

    The entry is a DNS label of at most 63 bytes upstream (ValidateDNS1123Label on `spec.resourceClaims[].name`).
    """
    if not isinstance(name, str):
        yield wrong_type("name", name, "a string", 'write a name such as "trainer"')
    elif not names.is_dns_label(name):
        message = f"{shorten(name)} is not a DNS label"
        hint = f"pods carry this name: use lower-case letters, digits and '-', such as {_suggest(name)!r}"
        yield Problem(path="name", code="invalid-name", message=message, hint=hint)


def check_object_name(name: object, *, path: str = "object_name") -> Iterator[Problem]:
    """The explicit name of an object: a DNS subdomain of at most 253 bytes."""
    if not isinstance(name, str):
        yield wrong_type(path, name, "a string")
    elif not names.is_dns_subdomain(name):
        message = f"{shorten(name)} is not a DNS subdomain name"
        hint = f"use lower-case letters, digits, '-' and '.', such as {_suggest(name)!r}"
        yield Problem(path=path, code="invalid-name", message=message, hint=hint)


def check_metadata(arguments: Mapping[str, Any]) -> list[Problem]:
    """Check the arguments that most components share, as far as there are any: what metadata is made of, and `replace`."""
    problems = [
        *check_namespace(arguments.get("namespace")),
        *check_labels(arguments.get("labels")),
        *check_annotations(arguments.get("annotations")),
    ]
    object_name, replace = arguments.get("object_name"), arguments.get("replace")
    if object_name is not None and not is_output(object_name):
        problems += check_object_name(object_name)
    if replace is not None and not (isinstance(replace, str) and replace == "delete-first"):
        hint = 'leave it out, or write replace="delete-first"'
        problems.append(wrong_type("replace", replace, "a way to replace", hint))
    return problems


def _suggest(name: str) -> str:
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name.lower())
    return kept.strip("-")[: names.LABEL_LENGTH].strip("-") or "trainer"
