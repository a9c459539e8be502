"""The privileged namespace of a driver, and the CustomResourceDefinitions that go before a chart.

The namespace is never `default`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dra_infra.documents.yaml import read_manifests
from dra_infra.errors import Problem, ProblemsError
from dra_infra.kubernetes.api import mapping
from dra_infra.kubernetes.api.pod_security import ENFORCE, MODES, PREFIX
from dra_infra.specs.arguments import check_labels, check_namespace, is_output, shorten, wrong_type
from dra_infra.specs.platform.values import Values

PRIVILEGED: Final[Mapping[str, str]] = {f"{PREFIX}{mode}": "privileged" for mode in MODES}
"""Labels under which the API server takes pods with host paths and privileges (Pod Security Admission)."""

ALWAYS_THERE: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


class ReleaseNamespace(NamedTuple):
    """Where a release goes; `labels` are those of the Namespace to make, None where it is there already."""

    name: Any
    labels: Mapping[str, Any] | None


def scc_binding(metadata: Mapping[str, Any], subject: Mapping[str, Any]) -> dict[str, Any]:
    """The RoleBinding by which OpenShift lets pods of a subject be privileged, in the namespace of the binding alone.

    Every OpenShift has its role (openshift/cluster-kube-apiserver-operator, bindata/bootkube/scc-manifests/gensccroles.sh).
    """
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:openshift:scc:privileged"},
        "subjects": [dict(subject)],
    }


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
    problems = [*check_namespace(name), *check_labels(labels, "namespace_labels")]
    problems += check_pod_security("namespace_labels", labels, why="they mount host paths and are privileged")
    if made is not None and not isinstance(made, bool):
        problems.append(wrong_type("create_namespace", made, "True or False"))
    if (
        name == "default"
        and values.get("allowDefaultNamespace") is not True
        and values.release.knows("allowDefaultNamespace")
    ):
        message = "the chart fails in the namespace default"
        hint = "leave namespace= out, or write allow_default_namespace=True"
        problems.append(Problem(path="namespace", code="namespace-refused", message=message, hint=hint))
    makes = made is not False and name not in ALWAYS_THERE
    return ReleaseNamespace(name, {**PRIVILEGED, **mapping(labels)} if makes else None), problems


def check_pod_security(path: str, labels: object, *, why: str) -> Iterator[Problem]:
    """Checks that labels of a Namespace let pods of a driver in, who need it for *why*: `namespace-refused`."""
    level = mapping(labels).get(ENFORCE, "privileged")
    if not is_output(level) and level != "privileged":
        message = f"{ENFORCE}={shorten(level)} keeps the pods out: {why}"
        hint = f"leave {ENFORCE} out: it is set to privileged"
        yield Problem(path=path, code="namespace-refused", message=message, hint=hint)


_KIND = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def read_definitions(text: str, *, file: str) -> tuple[list[dict[str, Any]], list[Problem]]:
    """The definitions in a text, and problems at `crds`: those of `read_manifests`, and `not-a-crd`.

    Args:
        text: YAML of one file.
        file: Its name, for messages.
    """
    try:
        found = read_manifests(text, file=file)
    except ProblemsError as error:
        return [], [problem.below("crds") for problem in error.problems]
    definitions = [each for each in found if (each.get("apiVersion"), each.get("kind")) == _KIND]
    return definitions, list(_refuse(found, file))


def _refuse(found: tuple[dict[str, Any], ...], file: str) -> Iterator[Problem]:
    for each in found:
        metadata = each.get("metadata")
        named = isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
        if (each.get("apiVersion"), each.get("kind")) != _KIND or not named:
            yield Problem(
                path="crds",
                code="not-a-crd",
                message=f"{file} holds a {str(each.get('kind'))[:80]} of {str(each.get('apiVersion'))[:80]}"
                + ("" if named else " without a name"),
                hint="point at the folder crds/ of the chart; everything else is installed by the chart",
            )
