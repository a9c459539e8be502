"""The namespace of a driver: privileged, and not `default`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dra_infra.errors import Problem
from dra_infra.model import names
from dra_infra.specs.arguments import is_output, shorten, wrong_type
from dra_infra.specs.platform.values import Values
from dra_infra.specs.shared_arguments import check_labels

ENFORCE: Final = "pod-security.kubernetes.io/enforce"
PRIVILEGED: Final[Mapping[str, str]] = {
    f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")
}
"""Labels under which the API server takes pods with host paths and privileges (Pod Security Admission)."""

ALWAYS_THERE: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


class ReleaseNamespace(NamedTuple):
    """Where a release goes; `labels` are those of the Namespace to make, None where it is there already."""

    name: Any
    labels: Mapping[str, Any] | None


def choose_namespace(
    arguments: Mapping[str, Any], values: Values, *, otherwise: str
) -> tuple[ReleaseNamespace, list[Problem]]:
    """The namespace of a release, and problems `wrong-type`, `invalid-name`, `namespace-refused`.

    Args:
        arguments: The user's.
        values: Of the release.
        otherwise: Namespace where the user names none.
    """
    name = arguments.get("namespace")
    name = otherwise if name is None else name
    made, labels = arguments.get("create_namespace", True), arguments.get("namespace_labels")
    problems = []
    if not is_output(name):
        problems += _check_name(name)
    if made is not None and not isinstance(made, bool):
        problems.append(wrong_type("create_namespace", made, "True or False"))
    problems += check_labels(labels, "namespace_labels")
    if (
        name == "default"
        and values.get("allowDefaultNamespace") is not True
        and values.release.knows("allowDefaultNamespace")
    ):
        problems.append(
            Problem(
                path="namespace",
                code="namespace-refused",
                message="the chart fails in the namespace default",
                hint="leave namespace= out, or write allow_default_namespace=True",
            )
        )
    given = labels if isinstance(labels, Mapping) else {}
    level = given.get(ENFORCE, "privileged")
    if not is_output(level) and level != "privileged":
        problems.append(
            Problem(
                path="namespace_labels",
                code="namespace-refused",
                message=f"{ENFORCE}={shorten(level)} keeps the pods out: they mount host paths and are privileged",
                hint=f"leave {ENFORCE} out: it is set to privileged",
            )
        )
    makes = made is not False and name not in ALWAYS_THERE
    return ReleaseNamespace(name, {**PRIVILEGED, **given} if makes else None), problems


def _check_name(name: object) -> list[Problem]:
    if not isinstance(name, str):
        return [wrong_type("namespace", name, "a string")]
    if names.is_dns_label(name):
        return []
    return [
        Problem(
            path="namespace",
            code="invalid-name",
            message=f"{shorten(name)} is not the name of a namespace",
            hint="use at most 63 lower-case letters, digits and '-'",
        )
    ]
