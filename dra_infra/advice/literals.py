"""Advice on texts that CEL reads as amounts and versions while it runs: a malformed one is an error on every device.

The API server compiles an expression and does not run it, so it takes `quantity("80GB")`. The scheduler runs it, and the
error ends the attempt for the pod. Source: k8s.io/apiserver pkg/cel/library/quantity.go and semverlib.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dra_infra.advice.findings import Finding, show
from dra_infra.advice.study import Study
from dra_infra.kubernetes.api import Quantity, Semver

_READS: Final[Mapping[str, Callable[[str], object]]] = {"quantity": Quantity.parse, "semver": Semver.parse}
_NOUNS: Final = {"quantity": "quantity", "semver": "semantic version of three numbers"}
_AMOUNT: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgtpe]?)(i?)b?\s*", re.IGNORECASE)


def check_literals(found: Study) -> Iterator[Finding]:
    """Yield the literals of an expression that are no quantity or version: code `selector-invalid-value`."""
    for clause in found.clauses:
        for function, text in clause.parsed:
            try:
                _READS[function](text)
            except ValueError:
                meant = _mend_amount(text) if function == "quantity" else _mend_version(text)
                yield Finding(
                    "selector-invalid-value",
                    f"{show(text)} is no {_NOUNS[function]}: the server takes the expression, and the scheduler fails on it "
                    "at each device, so no pod with it is placed",
                    f'write {function}("{meant}")' if meant else _EXAMPLES[function],
                )


_EXAMPLES: Final = {
    "quantity": 'write a number with k, M, G, T, Ki, Mi, Gi or Ti, such as quantity("40Gi")',
    "semver": 'write three numbers, such as semver("9.0.0")',
}


def _mend_amount(text: str) -> str:
    """Return the quantity that a text with `B` for bytes, a space or a wrong case means; empty where none is."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return ""
    number, unit, binary = match.groups()
    prefix = unit.upper() if unit.upper() != "K" or binary else "k"
    meant = f"{number}{prefix}{'i' if binary and prefix else ''}"
    try:
        Quantity.parse(meant)
    except ValueError:
        return ""
    return meant


def _mend_version(text: str) -> str:
    """Return the version that a text with fewer numbers, or with a `v`, means; empty where none is."""
    try:
        return Semver.parse_normalized(text).text
    except ValueError:
        return ""
