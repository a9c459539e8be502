"""Functions and components of providers whose results follow from files of the project: YAML, kustomizations, local charts.

pulumi-kubernetes does the same: `provider/pkg/provider/invoke_decode_yaml.go`, `invoke_helm_template.go`, `invoke_kustomize.go`,
and `yaml/v2/yaml.go`, which also names the children of components. What comes over the network, or from a provider, is not
known.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any, Final

from dra_infra.documents.yaml import read_manifests
from dra_infra.errors import ProblemsError, ProgramError
from dra_infra.kubernetes.api import group_of, holds_placeholder, is_placeholder, mapping
from dra_infra.markers import SECRET
from dra_infra.program.charts import render_chart
from dra_infra.program.kustomizations import build
from dra_infra.program_objects import NOT_EXPANDED, ProgramRelease
from dra_infra.target import ClusterTarget

Objects = tuple[dict[str, Any], ...]
_URLS: Final = ("http://", "https://", "oci://", "git@", "github.com/")

_GROUPS: Final = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "extensions",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)
"""API groups of Kubernetes itself."""
_NAMESPACED: Final = frozenset(
    {
        "Binding",
        "ConfigMap",
        "ControllerRevision",
        "CronJob",
        "CSIStorageCapacity",
        "DaemonSet",
        "Deployment",
        "Endpoints",
        "EndpointSlice",
        "Event",
        "HorizontalPodAutoscaler",
        "Ingress",
        "Job",
        "Lease",
        "LimitRange",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "PodGroup",
        "PodTemplate",
        "ReplicaSet",
        "ReplicationController",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceQuota",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "StatefulSet",
        "Workload",
    }
)
"""Kinds of those groups that have a namespace (pulumi-kubernetes, `provider/pkg/kinds/kinds.go`)."""
_CLUSTER_WIDE: Final = frozenset(
    {
        "AdmissionCheck",
        "AKSNodeClass",
        "ClusterIssuer",
        "ClusterPolicy",
        "ClusterQueue",
        "ClusterTrainingRuntime",
        "Cohort",
        "EC2NodeClass",
        "GatewayClass",
        "GCENodeClass",
        "MultiKueueCluster",
        "MultiKueueConfig",
        "NodeClaim",
        "NodePool",
        "NVIDIADriver",
        "ProvisioningRequestConfig",
        "ResourceFlavor",
        "Topology",
        "WorkloadPriorityClass",
    }
)
"""Kinds of other groups without a namespace: those of Kueue, Kubeflow Trainer, Karpenter, cert-manager, NVIDIA and the Gateway API."""


class NotExpandedError(Exception):
    """Its objects are not known here; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderSettings:
    """Settings of a provider that functions and components use.

    Args:
        folder: Where paths of the program begin.
        namespace: What the provider gives to objects that name none.
        target: The cluster that charts are rendered for.
    """

    folder: Path
    namespace: str = "default"
    target: ClusterTarget = field(default_factory=ClusterTarget)


def call_function(token: str, arguments: Mapping[str, Any], settings: ProviderSettings) -> Objects | None:
    """Return the objects that a function of pulumi-kubernetes makes of files; None for every other function.

    Args:
        token: Name of the function.
        arguments: Plain data, with markers for what is not known.
        settings: Of its provider.

    Raises:
        NotExpandedError: When the objects are not on this machine, or the tool that makes them is missing.
        ProgramError: When the provider fails too.
    """
    make = _FUNCTIONS.get(token)
    if make is None:
        return None
    _check_known(arguments)
    return make(arguments, settings)


def expand_component(
    type_: str, name: str, inputs: Mapping[str, Any], settings: ProviderSettings
) -> Objects | None:
    """Return the objects of a component whose children the provider registers; None for every other component.

    Args:
        type_: Of the component.
        name: Of the component.
        inputs: Plain data, with markers for what is not known.
        settings: Of its provider.

    Raises:
        NotExpandedError: When its objects are not known here.
        ProgramError: When the provider fails too.
    """
    make = _COMPONENTS.get(type_)
    if make is None:
        return None
    _check_known(inputs)
    namespace = str(inputs.get("namespace") or settings.namespace)
    if is_placeholder(namespace):
        raise NotExpandedError("the namespace of its provider is secret or only known later")
    objects = _with_namespace([*make(name, inputs, settings)], namespace)
    return tuple(_registered(each, skips_await=inputs.get("skipAwait") is True) for each in objects)


def name_of_child(holder: str, inputs: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    """Return the name of the resource that such a component makes of an object: `apps:ml/web`.

    Args:
        holder: Name of the component.
        inputs: Of the component.
        manifest: The object.
    """
    prefix = str(inputs.get("resourcePrefix", holder))
    metadata = mapping(manifest.get("metadata"))
    place = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
    return f"{prefix}:{place}" if prefix else place


def is_kept(type_: str, manifest: Mapping[str, Any]) -> bool:
    """True for an object of a chart that stays when it is deleted (pulumi-kubernetes, `helm/v4/chart.go`)."""
    annotations = mapping(mapping(manifest.get("metadata")).get("annotations"))
    return type_ == _CHART and annotations.get("helm.sh/resource-policy") == "keep"


def _check_known(arguments: Mapping[str, Any]) -> None:
    if holds_placeholder(arguments):
        raise NotExpandedError("its arguments are secret or only known later")


def _with_namespace(
    objects: Iterable[dict[str, Any]], namespace: str, *, others: bool = False
) -> list[dict[str, Any]]:
    """Return the objects with a namespace where their kind has one and they name none.

    Args:
        objects: The objects.
        namespace: What they get.
        others: Whether kinds of unknown scope get it too.
    """
    objects = [*objects]
    scopes = find_scopes(each.get("spec") for each in objects if _is_definition(each))
    return [_placed(each, namespace, scopes, others=others) for each in objects]


def find_scopes(definitions: Iterable[Any]) -> dict[tuple[Any, Any], Any]:
    """Return the scopes of kinds by group and kind.

    Args:
        definitions: The specs of their CustomResourceDefinitions.
    """
    return {
        (spec.get("group"), mapping(spec.get("names")).get("kind")): spec.get("scope")
        for spec in map(mapping, definitions)
    }


def _placed(
    manifest: dict[str, Any], namespace: str, scopes: Mapping[tuple[Any, Any], Any], *, others: bool
) -> dict[str, Any]:
    metadata = mapping(manifest.get("metadata"))
    kind = str(manifest.get("kind"))
    if metadata.get("namespace") or not is_namespaced(group_of(manifest), kind, scopes, others=others):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}


def is_namespaced(group: str, kind: str, scopes: Mapping[tuple[Any, Any], Any], *, others: bool) -> bool:
    """True for kinds of objects that have a namespace.

    Args:
        group: API group of the kind; empty for the core.
        kind: The kind.
        scopes: Scopes of other kinds by group and kind, as their CustomResourceDefinitions have them.
        others: Whether kinds of unknown scope count. The provider asks the API server, and counts those that it does not know.
    """
    if group in _GROUPS:
        return kind in _NAMESPACED
    is_assumed = others and kind not in _CLUSTER_WIDE
    return bool(scopes.get((group, kind), "Namespaced" if is_assumed else "") == "Namespaced")


def _is_definition(manifest: Mapping[str, Any]) -> bool:
    return group_of(manifest) == "apiextensions.k8s.io"


def _registered(manifest: dict[str, Any], *, skips_await: bool) -> dict[str, Any]:
    """Return an object as the provider registers it."""
    if skips_await:
        metadata = mapping(manifest.get("metadata"))
        annotations = {**mapping(metadata.get("annotations")), "pulumi.com/skipAwait": "true"}
        manifest = {**manifest, "metadata": {**metadata, "annotations": annotations}}
    if (manifest.get("apiVersion"), manifest.get("kind")) == ("v1", "Secret"):
        manifest |= {key: SECRET for key in ("data", "stringData") if key in manifest}
    return manifest


def _call_decode(arguments: Mapping[str, Any], _settings: ProviderSettings) -> Objects:
    return _decode(str(arguments.get("text", "")))


def _call_kustomize(arguments: Mapping[str, Any], settings: ProviderSettings) -> Objects:
    return _build(str(arguments.get("directory", "")), settings.folder)


def _decode(text: str, file: str = "") -> Objects:
    try:
        return read_manifests(text, file=file)
    except ProblemsError as error:
        raise ProgramError(error.problems) from error


def _make_of_files(
    _name: str, inputs: Mapping[str, Any], settings: ProviderSettings
) -> Iterator[dict[str, Any]]:
    if "file" in inputs:
        yield from _read(inputs["file"], settings.folder)
    for pattern in inputs.get("files") or ():
        _check_local(pattern)
        is_pattern = any(sign in pattern for sign in "*?[")
        # Path.glob refuses patterns that begin above the folder.
        files = sorted(glob(pattern, root_dir=settings.folder)) if is_pattern else [pattern]  # noqa: PTH207
        for file in files:
            yield from _read(file, settings.folder)
    yield from _decode(str(inputs.get("yaml") or ""))
    yield from _decode(json.dumps({"apiVersion": "v1", "kind": "List", "items": inputs.get("objs") or []}))


def _read(file: str, folder: Path) -> Objects:
    _check_local(file)
    try:
        text = (folder / file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProgramError.of(
            path=str(file)[:200],
            code="file-unreadable",
            message=f"it cannot be read: {error}",
            hint="name a file of the repository, from the folder of the program on",
        ) from None
    return _decode(text, file)


def _make_of_kustomization(_name: str, inputs: Mapping[str, Any], settings: ProviderSettings) -> Objects:
    return _build(str(inputs.get("directory", "")), settings.folder)


def _make_of_chart(name: str, inputs: Mapping[str, Any], settings: ProviderSettings) -> Objects:
    if inputs.get("valueYamlFiles") or inputs.get("postRenderer") or inputs.get("dependencyUpdate"):
        raise NotExpandedError("its values or templates come from elsewhere too")
    return _render(
        str(inputs.get("chart", "")),
        name=str(inputs.get("name") or name),
        namespace=str(inputs.get("namespace") or "default"),
        values=mapping(inputs.get("values")),
        has_crds=inputs.get("skipCrds") is not True,
        settings=settings,
    )


_CHART: Final = "kubernetes:helm.sh/v4:Chart"
_COMPONENTS: Final = {
    "kubernetes:yaml/v2:ConfigFile": _make_of_files,
    "kubernetes:yaml/v2:ConfigGroup": _make_of_files,
    "kubernetes:kustomize/v2:Directory": _make_of_kustomization,
    _CHART: _make_of_chart,
}


def _call_helm(arguments: Mapping[str, Any], settings: ProviderSettings) -> Objects:
    """Render what `helm.v3.Chart` hands to its function: a chart from a path is one of `LocalChartOpts`.

    Its hooks are objects like all others.
    """
    options = mapping(json.loads(str(arguments.get("jsonOpts", "{}"))))
    if options.get("repo") or options.get("fetch_opts") or options.get("version"):
        raise NotExpandedError("its chart comes from a repository")
    if any(options.get(key) for key in ("api_versions", "include_test_hook_resources", "kube_version")):
        raise NotExpandedError("it is rendered in another way than charts are here")
    objects = _render(
        str(options.get("path") or options.get("chart") or ""),
        name=str(options.get("release_name") or "release"),
        namespace=str(options.get("namespace") or "default"),
        values=mapping(options.get("values")),
        has_crds=options.get("skip_crd_rendering") is not True,
        has_hooks=True,
        settings=settings,
    )
    namespace = str(options.get("namespace") or "")
    return tuple(_with_namespace(objects, namespace, others=True)) if namespace else objects


_FUNCTIONS: Final = {
    "kubernetes:yaml:decode": _call_decode,
    "kubernetes:kustomize:directory": _call_kustomize,
    "kubernetes:helm:template": _call_helm,
}


def _render(
    chart: str,
    *,
    name: str,
    namespace: str,
    values: Mapping[str, Any],
    has_crds: bool,
    settings: ProviderSettings,
    has_hooks: bool = False,
) -> Objects:
    folder = settings.folder
    _check_local(chart)
    if not (folder / chart / "Chart.yaml").is_file():
        raise NotExpandedError(f"there is no chart in {chart or 'it'}")
    release = ProgramRelease(
        urn=f"urn:pulumi:stack::project::{_CHART}::{name}",
        name=name,
        namespace=namespace,
        chart=chart,
        values=values,
        has_crds=has_crds,
    )
    try:
        return render_chart(
            release,
            root=folder,
            inside=_above(folder, chart),
            target=settings.target,
            has_hooks=has_hooks,
        )
    except ProgramError as error:
        (problem, *_) = error.problems
        if problem.code == "helm-not-found" or _DID_NOT_START in problem.message:
            raise NotExpandedError(_with_way_out(problem.message)) from None
        raise


def _build(directory: str, folder: Path) -> Objects:
    _check_local(directory)
    try:
        return build(folder / directory, inside=_above(folder, directory))
    except ProgramError as error:
        # The provider builds more than what is built here: bases at addresses, charts, files above the folder.
        raise NotExpandedError(_with_way_out(error.problems[0].message)) from None
    except OSError as error:
        raise NotExpandedError(f"the kustomization is not built: {error.strerror}") from None


_DID_NOT_START: Final = "did not start: Permission denied"


def _with_way_out(message: str) -> str:
    """Return why a tool made nothing, with what lets it start where the confinement of the program does not."""
    return f"{message}; --allow read:PATH of its file lets it start" if _DID_NOT_START in message else message


def _check_local(path: str) -> None:
    if path.startswith(_URLS) or "://" in path:
        raise NotExpandedError("it comes over the network")


def _above(folder: Path, path: str) -> Path:
    """Return the folder that holds both the program's and what it names; what may be read is up to the confinement."""
    return Path(os.path.commonpath([folder.absolute(), os.path.normpath(folder.absolute() / path)]))


def describe_why(error: NotExpandedError) -> str:
    """Return the reason that reports show."""
    return f"{NOT_EXPANDED}: {error}"
