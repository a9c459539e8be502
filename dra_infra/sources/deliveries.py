"""What objects of Argo CD and Flux deploy: a chart, a kustomization or manifests at a path of a repository, with their settings.

Only what the object says is read here; `delivered_objects` makes the objects of it.

Sources: ApplicationSource in pkg/apis/application/v1alpha1/types.go and docs/user-guide/{helm,kustomize,directory}.md of argo-cd;
HelmReleaseSpec in api/v2 of helm-controller; KustomizationSpec in api/v1 of kustomize-controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from dra_infra.kubernetes.api import mapping, mappings
from dra_infra.migration.chart_releases import Installation, Values, find_installations, read_parameters
from dra_infra.migration.chart_releases import read_text as read_values_text
from dra_infra.program_objects import DEFAULT_PROVIDER

Tool = Literal["", "helm", "kustomize", "directory"]

_OWN_CLUSTER: Final = ("", "in-cluster", "https://kubernetes.default.svc")
"""Names and addresses by which Argo CD calls the cluster that it runs in."""

_OVERLAID: Final = ("namePrefix", "nameSuffix", "namespace", "commonLabels", "replicas", "patches")
"""Settings of a kustomization that kustomize takes in an overlay, and that may change what pods ask for or how they are called."""

_IGNORED: Final = frozenset(
    (
        "apiVersions",
        "commonAnnotations",
        "commonAnnotationsEnvsubst",
        "forceCommonAnnotations",
        "forceCommonLabels",
        "ignoreMissingComponents",
        "images",
        "kubeVersion",
        "labelIncludeTemplates",
        "labelWithoutSelector",
        "version",
    )
)
"""Settings of `kustomize` in an Application without which pods ask for the same devices."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValuesFile:
    """A file with values of a chart.

    Args:
        path: Its path from the folder of the chart, or from the top of the repository.
        from_top: Whether it begins at the top.
        is_optional: Whether it may be missing.
    """

    path: str
    from_top: bool = False
    is_optional: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ValuesObject:
    """An object whose data has values of a chart, or variables.

    Args:
        kind: ConfigMap or Secret.
        name: Its name, in the namespace of the object that takes it.
        key: The key that has the values.
        target: Where its value goes, as `helm --set` names it; empty for values as a whole.
        is_optional: Whether it may be missing.
    """

    kind: str
    name: str
    key: str = ""
    target: str = ""
    is_optional: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """One thing that an object of Argo CD or Flux deploys.

    Args:
        at: The field that names it.
        repository: Address of its repository; empty where the object does not tell.
        path: Its path in the repository.
        revision: The revision, as it is written.
        tool: What makes its objects; empty where the files at the path decide.
        release: Name of a Helm release.
        namespace: Namespace of the release, and of objects that name none.
        files: Files with values of a chart, each over those before it.
        objects: Objects with values, each over those before it and over the files.
        values: Values that the object has itself, over both.
        overlay: Fields of a kustomization that is put over the one at the path.
        is_recursive: Whether manifests in folders below the path are read.
        variables: Texts in place of `${NAME}`; None where none are replaced.
        variable_objects: Objects with more of them.
        cluster: Where it goes: `default` for the cluster that the controller runs in.
        problem: Why it cannot be known here; empty where it may be.
    """

    at: str
    repository: str = ""
    path: str = ""
    revision: str = ""
    tool: Tool = ""
    release: str = ""
    namespace: str = ""
    files: Sequence[ValuesFile] = ()
    objects: Sequence[ValuesObject] = ()
    values: Sequence[Values] = ()
    overlay: Mapping[str, Any] = field(default_factory=dict)
    is_recursive: bool = False
    variables: Mapping[str, str] | None = None
    variable_objects: Sequence[ValuesObject] = ()
    cluster: str = DEFAULT_PROVIDER
    problem: str = ""


def read_deliveries(
    manifest: Mapping[str, Any], repositories: Mapping[tuple[str, str, str], str]
) -> Iterator[Delivery]:
    """Yield what an object deploys. An ApplicationSet makes Applications first.

    Args:
        manifest: An Application, HelmRelease or Kustomization.
        repositories: Addresses of the GitRepositories in the input, by kind, namespace and name.
    """
    kind = manifest.get("kind")
    if kind == "Application":
        yield from _read_application(manifest)
    elif kind == "HelmRelease":
        yield _read_helm_release(manifest, repositories)
    elif kind == "Kustomization":
        yield _read_kustomization(manifest, repositories)


def _read_application(manifest: Mapping[str, Any]) -> Iterator[Delivery]:
    spec = mapping(manifest.get("spec"))
    installed = {each.release.path.rpartition(".")[0]: each for each in find_installations(manifest)}
    # Where there are several, the one counts for nothing (GetSources in types.go).
    several = mappings(spec.get("sources"))
    sources = [(f"spec.sources[{index}]", each) for index, each in enumerate(several)]
    sources = sources or [("spec.source", mapping(spec.get("source")))]
    refs = {str(each["ref"]): str(each.get("repoURL") or "") for each in several if each.get("ref")}
    destination = mapping(spec.get("destination"))
    cluster = str(destination.get("name") or destination.get("server") or "")
    name = str(mapping(manifest.get("metadata")).get("name") or "")
    for at, source in sources:
        if source.get("ref") and not source.get("path") and not source.get("chart"):
            continue
        yield _read_argo_source(
            at,
            source,
            installed.get(at),
            refs=refs,
            release=name,
            namespace=str(destination.get("namespace") or ""),
            cluster=DEFAULT_PROVIDER if cluster in _OWN_CLUSTER else cluster,
        )


def _read_argo_source(
    at: str,
    source: Mapping[str, Any],
    installed: Installation | None,
    *,
    refs: Mapping[str, str],
    release: str,
    namespace: str,
    cluster: str,
) -> Delivery:
    helm, kustomize = mapping(source.get("helm")), mapping(source.get("kustomize"))
    directory = mapping(source.get("directory"))
    repository = str(source.get("repoURL") or "")
    named = [each for each in ("helm", "kustomize", "directory") if source.get(each)]
    files, problem = _read_value_files(helm, refs, repository)
    if source.get("chart"):
        version = str(source.get("targetRevision") or "")
        problem = f"the chart {source['chart']} {version} of {repository} is not fetched"
    elif source.get("plugin") is not None:
        problem = "a plugin of Argo CD makes its objects"
    elif helm.get("fileParameters"):
        problem = "fileParameters are not read"
    elif installed is not None and installed.unread:
        problem = "its values are no YAML before something fills them in"
    elif directory.get("jsonnet"):
        problem = "Jsonnet is not run"
    elif directory.get("include") or directory.get("exclude"):
        problem = "include and exclude of a directory are not applied"
    overlay, refused = _read_overlay(kustomize, _IGNORED)
    return Delivery(
        at=at,
        repository=repository,
        path=str(source.get("path") or "."),
        revision=str(source.get("targetRevision") or ""),
        # Of several Argo CD refuses (ExplicitType in types.go).
        tool=named[0] if len(named) == 1 else "",  # type: ignore[arg-type]  # one of the three
        release=str(helm.get("releaseName") or release),
        namespace=str(helm.get("namespace") or namespace),
        files=files,
        values=installed.values if installed is not None else (),
        overlay=overlay,
        is_recursive=directory.get("recurse") is True,
        cluster=cluster,
        problem=problem or refused or (f"it names {' and '.join(named)}" if len(named) > 1 else ""),
    )


def _read_value_files(
    helm: Mapping[str, Any], refs: Mapping[str, str], repository: str
) -> tuple[list[ValuesFile], str]:
    """Return the files of `valueFiles`, and why one cannot be read; `$ref/` names another source of the Application."""
    files: list[ValuesFile] = []
    is_optional = helm.get("ignoreMissingValueFiles") is True
    names = helm.get("valueFiles")
    for name in names if isinstance(names, list) else ():
        text = str(name)
        if "://" in text:
            return files, f"{text} is not fetched"
        ref, _, below = text.removeprefix("$").partition("/")
        if text.startswith("$"):
            if refs.get(ref) != repository:
                return files, f"{text} is of another repository"
            files.append(ValuesFile(path=below, from_top=True, is_optional=is_optional))
        else:
            path = text.removeprefix("/")
            files.append(ValuesFile(path=path, from_top=path != text, is_optional=is_optional))
    return files, ""


def _read_overlay(settings: Mapping[str, Any], ignored: frozenset[str]) -> tuple[dict[str, Any], str]:
    """Return the fields of an overlay, and why the settings cannot be put into one."""
    overlay = {key: settings[key] for key in _OVERLAID if settings.get(key)}
    if more := sorted(key for key in settings if key not in _OVERLAID and key not in ignored):
        return overlay, f"{', '.join(more)} of its kustomization are not applied"
    if any(not isinstance(each.get("patch"), str) for each in mappings(overlay.get("patches"))):
        return overlay, "patches in files are not applied"
    if "replicas" in overlay:
        counts = [(each.get("name"), str(each.get("count"))) for each in mappings(overlay["replicas"])]
        if not all(count.isdecimal() for _, count in counts):
            return overlay, "its replicas are no numbers"
        overlay["replicas"] = [{"name": name, "count": int(count)} for name, count in counts]
    return overlay, ""


def _read_helm_release(
    manifest: Mapping[str, Any], repositories: Mapping[tuple[str, str, str], str]
) -> Delivery:
    spec, metadata = mapping(manifest.get("spec")), mapping(manifest.get("metadata"))
    chart = mapping(mapping(spec.get("chart")).get("spec"))
    name, namespace = str(metadata.get("name") or ""), str(metadata.get("namespace") or "default")
    target = str(spec.get("targetNamespace") or "")
    repository, problem = _find_repository(mapping(chart.get("sourceRef")), namespace, repositories)
    if spec.get("chartRef"):
        problem = f"the chart of {mapping(spec['chartRef']).get('kind')} {mapping(spec['chartRef']).get('name')} is not fetched"
    elif problem:
        problem = f"the chart {chart.get('chart')} {chart.get('version') or ''} {problem}"
    elif spec.get("postRenderers"):
        problem = "postRenderers are not applied"
    # Their paths begin at the top of the repository (HelmChartTemplateSpec).
    named = chart.get("valuesFiles")
    is_optional = chart.get("ignoreMissingValuesFiles") is True
    return Delivery(
        at="spec.chart",
        repository=repository,
        path=str(chart.get("chart") or "."),
        tool="helm",
        # GetReleaseName in helmrelease_types.go.
        release=str(spec.get("releaseName") or (f"{target}-{name}" if target else name)),
        namespace=target or namespace,
        files=[
            ValuesFile(path=str(each), from_top=True, is_optional=is_optional)
            for each in (named if isinstance(named, list) else ())
        ],
        objects=[
            ValuesObject(
                kind=str(each.get("kind")),
                name=str(each.get("name")),
                key=str(each.get("valuesKey") or "values.yaml"),
                target=str(each.get("targetPath") or ""),
                is_optional=each.get("optional") is True,
            )
            for each in mappings(spec.get("valuesFrom"))
        ],
        values=[values for each in find_installations(manifest) for values in each.values],
        cluster=_cluster_of(spec),
        problem=problem,
    )


def _read_kustomization(
    manifest: Mapping[str, Any], repositories: Mapping[tuple[str, str, str], str]
) -> Delivery:
    spec, metadata = mapping(manifest.get("spec")), mapping(manifest.get("metadata"))
    namespace = str(metadata.get("namespace") or "default")
    repository, problem = _find_repository(mapping(spec.get("sourceRef")), namespace, repositories)
    taken = ("components", "namePrefix", "nameSuffix", "patches", "patchesStrategicMerge", "patchesJson6902")
    settings = {key: spec[key] for key in taken if spec.get(key)}
    if spec.get("targetNamespace"):
        settings["namespace"] = spec["targetNamespace"]
    overlay, refused = _read_overlay(settings, frozenset())
    substitution = spec.get("postBuild")
    pairs = mapping(mapping(substitution).get("substitute"))
    return Delivery(
        at="spec.path",
        repository=repository,
        path=str(spec.get("path") or "."),
        tool="kustomize",
        overlay=overlay,
        is_recursive=True,
        variables={str(key): str(value) for key, value in pairs.items()} if substitution else None,
        variable_objects=[
            ValuesObject(
                kind=str(each.get("kind")),
                name=str(each.get("name")),
                is_optional=each.get("optional") is True,
            )
            for each in mappings(mapping(substitution).get("substituteFrom"))
        ],
        cluster=_cluster_of(spec),
        problem=f"its source {problem}" if problem else refused,
    )


def _find_repository(
    ref: Mapping[str, Any], namespace: str, repositories: Mapping[tuple[str, str, str], str]
) -> tuple[str, str]:
    """Return the address of the repository that a `sourceRef` names, and why it is none that can be read."""
    kind, name = str(ref.get("kind") or ""), str(ref.get("name") or "")
    if kind != "GitRepository":
        return "", f"of {kind} {name} is not fetched"
    return repositories.get((kind, str(ref.get("namespace") or namespace), name), ""), ""


def _cluster_of(spec: Mapping[str, Any]) -> str:
    reference = mapping(mapping(spec.get("kubeConfig")).get("secretRef"))
    if not spec.get("kubeConfig"):
        return DEFAULT_PROVIDER
    return str(reference.get("name") or "the cluster of its kubeConfig")


def values_of_text(text: str, target: str) -> Mapping[str, Any] | None:
    """Return the values that one key of an object has; None for a text that is no YAML.

    Args:
        text: The value of the key.
        target: Where it goes, as `helm --set` names it; empty where the text is values as a whole.
    """
    if not target:
        return read_values_text(text)
    return next((each.data for each in read_parameters((), [(target, text)])), {})
