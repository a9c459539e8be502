"""The functions that make objects of files: components of the Python SDK register what they return as children.

Vendor's provider: `provider/pkg/provider/provider.go`, Invoke.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tools.kubernetes_provider.cluster_session import ClusterSession
from tools.kubernetes_provider.resource_types import GroupVersionKind

SECONDS: Final = 60.0
"""Until a tool is stopped."""

Arguments = dict[str, Any]
Objects = list[dict[str, Any]]


class FunctionError(Exception):
    """A function failed; the text says why."""


def call_function(token: str, arguments: Arguments, session: ClusterSession) -> Objects:
    """Return the objects that a function makes.

    Args:
        token: Name of the function.
        arguments: Its arguments.
        session: The cluster, which knows which kinds have a namespace.

    Raises:
        FunctionError: The function is none of those here, or failed.
    """
    if token not in _FUNCTIONS:
        raise FunctionError("only functions that make objects of files are part of the stand-in provider")
    return _FUNCTIONS[token](arguments, session)


def _decode(arguments: Arguments, session: ClusterSession) -> Objects:
    namespace = arguments.get("defaultNamespace") or ""
    return [*_objects_in(arguments.get("text") or "", session, namespace)]


def _kustomize(arguments: Arguments, session: ClusterSession) -> Objects:
    done = subprocess.run(
        ["kubectl", "kustomize", arguments["directory"]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        raise FunctionError(done.stderr.strip())
    return [*_objects_in(done.stdout, session, "")]


def _template(arguments: Arguments, session: ClusterSession) -> Objects:
    options = json.loads(arguments["jsonOpts"])
    namespace = options.get("namespace") or ""
    named = ["--namespace", namespace] if namespace else []
    crds = [] if options.get("skip_crd_rendering") else ["--include-crds"]
    with session.helm.home() as home:
        printed = home.run(
            *(
                "template",
                options["release_name"],
                str(Path(options["path"]).absolute()),
                "--values",
                "-",
                *named,
                *crds,
            ),
            seconds=SECONDS,
            text=json.dumps(options.get("values") or {}),
        )
    return [*_objects_in(printed, session, namespace)]


_FUNCTIONS: Final[dict[str, Callable[[Arguments, ClusterSession], Objects]]] = {
    "kubernetes:yaml:decode": _decode,
    "kubernetes:kustomize:directory": _kustomize,
    "kubernetes:helm:template": _template,
}


def _objects_in(text: str, session: ClusterSession, namespace: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of documents, in the namespace that is the default for those without one."""
    for document in yaml.safe_load_all(text):
        if not document:
            continue
        group, _, version = document["apiVersion"].rpartition("/")
        metadata = document.setdefault("metadata", {})
        kind = GroupVersionKind(group=group, version=version, kind=document["kind"])
        if namespace and not metadata.get("namespace") and session.is_namespaced(kind):
            metadata["namespace"] = namespace
        yield document
