"""The base of chart components: the Helm release, its namespace, its CRDs, and the classes that it brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
from pulumi.runtime import get_root_directory

from dra_infra.components.component import Component, present
from dra_infra.components.kubernetes_object import KubernetesObject, forced, provider_version
from dra_infra.components.report import warn
from dra_infra.errors import Problem
from dra_infra.specs.arguments import is_list
from dra_infra.specs.platform.installations import Installation
from dra_infra.specs.platform.namespaces import read_definitions, scc_binding
from dra_infra.specs.requests import ClassRef

_SUFFIXES = (".yaml", ".yml", ".json")


def joined(parts: Sequence[Any]) -> Any:
    """Texts as one; an Output where one of them is."""
    if any(isinstance(part, pulumi.Output) for part in parts):
        return pulumi.Output.concat(*parts)
    return "".join(parts)


def make_namespace(
    name: str, called: Any, labels: Mapping[str, Any], opts: pulumi.ResourceOptions
) -> KubernetesObject:
    """The child *name* for a Namespace that is *called* so."""
    metadata = {"name": called, "labels": dict(labels)}
    return KubernetesObject(name, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, opts)


class HelmRelease(pulumi.CustomResource):
    """A release of a chart, with the type token and the inputs of pulumi-kubernetes' `helm.v3.Release`."""

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        opts.version = provider_version()
        # Deprecated since pulumi-kubernetes 4.30, where nulls among values count without it. To take it away would upgrade
        # each release that was made with it, so these keep it, and new ones never have it.
        opts.ignore_changes = [*(opts.ignore_changes or ()), "allowNullValues"]
        # The vendor's class sends `compat` with every release.
        super().__init__("kubernetes:helm.sh/v3:Release", name, {"compat": "true", **inputs}, opts)


@dataclass(frozen=True, eq=False)
class InstalledClass(ClassRef):
    """A DeviceClass that a chart brings; claims through it are made after the release.

    Args:
        object_name: Its name.
        selects: Driver and type of the devices.
        resources: What must be there before the class is.
    """

    selects: tuple[str, str] | None = None
    resources: Mapping[str, pulumi.Resource] = field(default_factory=dict)


class InstalledClasses(dict[str, InstalledClass]):
    """The classes that a component brings, by name; one with problems has any, so that theirs are the only ones told.

    Raises:
        KeyError: From `[...]`, with the names that there are, for another one.
    """

    def __init__(self, classes: Mapping[str, InstalledClass] | None = None) -> None:
        super().__init__(classes or {})
        self._has_any = classes is None

    def __missing__(self, name: str) -> InstalledClass:
        if self._has_any:
            return InstalledClass(name)
        raise KeyError(f"{name} is not installed; the classes are {', '.join(self) or 'none'}")


@dataclass(frozen=True, eq=False)
class Installed:
    """An installed chart.

    Args:
        release_name: Name of the helm release.
        namespace: Where it is.
        version: Version of the chart, without a leading v.
        line: Release line of the driver that it installs, for `driver_release=` of claims.
        device_classes: The classes that it brings, by name.
        resources: The children by kind.
    """

    release_name: str | pulumi.Output[str]
    namespace: str | pulumi.Output[str]
    version: str
    line: str
    device_classes: Mapping[str, InstalledClass]
    resources: Mapping[str, pulumi.Resource]


@dataclass(frozen=True)
class Definitions:
    """The CRDs of an installation: objects that were read from files, and addresses that the provider reads."""

    objects: tuple[dict[str, Any], ...] = ()
    addresses: tuple[str, ...] = ()


class ChartComponent(Component):
    """Base of components that install charts."""

    _is_abstract = True

    def _tell(self, problems: Sequence[Problem]) -> None:
        """Report errors, and show warnings, which stop nothing; their paths are arguments of this component."""
        warn(self, self.label, [problem for problem in problems if problem.severity == "warning"])
        self._report([problem for problem in problems if problem.severity == "error"])

    def _read_crds(self, arguments: Mapping[str, Any]) -> tuple[Definitions, list[Problem]]:
        """The CRDs that an argument `crds` points at; an address is left to the provider, so that nothing is fetched here."""
        crds = arguments.get("crds")
        asked = [each for each in (crds if is_list(crds) else [crds]) if isinstance(each, str) and each]  # type: ignore[union-attr]
        objects: list[dict[str, Any]] = []
        problems: list[Problem] = []
        for path in asked:
            if "://" in path:
                continue
            texts, unread = _read_texts(path)
            problems += unread
            for file, text in texts:
                found, wrong = read_definitions(text, file=file)
                objects += found
                problems += wrong
        addresses = tuple(each for each in asked if "://" in each)
        return Definitions(tuple(objects), addresses), problems

    def _make_definitions(self, name: str, crds: Definitions, *, keep: bool) -> list[pulumi.Resource]:
        """Children for CRDs: upgraded with the program, and left in the cluster when they go, as Helm does."""
        made: list[pulumi.Resource] = []
        for each in crds.objects:
            options = pulumi.ResourceOptions(parent=self, retain_on_delete=keep or None)
            # Helm may have made it before an import.
            made.append(KubernetesObject(f"{name}-{each['metadata']['name']}", forced(each), options))
        for number, address in enumerate(crds.addresses):
            from pulumi_kubernetes.yaml.v2 import ConfigFile

            options = pulumi.ResourceOptions(parent=self, retain_on_delete=keep or None)
            made.append(ConfigFile(f"{name}-crds-{number}", file=address, opts=options))
        return made

    def _install_chart(
        self,
        name: str,
        installation: Installation,
        arguments: Mapping[str, Any],
        *,
        before: Sequence[pulumi.Resource],
        skip_crds: bool,
        needs_scc: bool = False,
    ) -> Installed:
        """Children for a namespace and a release.

        Args:
            name: Name of the children, and of the helm release unless the arguments name it.
            installation: What is installed.
            arguments: How: `release_name`, `timeout`, `skip_await`, `atomic`.
            before: What must be there first.
            skip_crds: Whether the CRDs of the chart are made by somebody else.
            needs_scc: Whether all accounts of the namespace are bound to SecurityContextConstraints, which helm waits for.
        """
        resources: dict[str, pulumi.Resource] = {}
        if installation.namespace.labels is not None:
            resources["Namespace"] = make_namespace(
                name,
                installation.namespace.name,
                installation.namespace.labels,
                pulumi.ResourceOptions(parent=self),
            )
        if needs_scc:
            space = installation.namespace.name
            accounts = joined(["system:serviceaccounts:", space])
            subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": accounts}
            manifest = scc_binding({"name": f"{name}-scc", "namespace": space}, subject)
            after = pulumi.ResourceOptions(parent=self, depends_on=[*resources.values(), *before] or None)
            resources["RoleBinding"] = KubernetesObject(f"{name}-scc", manifest, after)
        given = arguments.get("release_name")
        release_name = name if given is None else given
        values = dict(installation.values.tree)
        inputs = {
            "chart": installation.chart,
            "repositoryOpts": {"repo": installation.repository} if installation.repository else None,
            "version": installation.version or None,
            "name": release_name,
            "namespace": installation.namespace.name,
            "createNamespace": False,
            "values": values or None,
            "skipCrds": True if skip_crds else None,
            "timeout": arguments.get("timeout"),
            "skipAwait": arguments.get("skip_await"),
            "atomic": arguments.get("atomic"),
        }
        options = pulumi.ResourceOptions(parent=self, depends_on=[*resources.values(), *before] or None)
        resources["Release"] = HelmRelease(name, present(inputs), options)
        only = {"Release": resources["Release"]}
        return Installed(
            release_name=release_name,
            namespace=installation.namespace.name,
            version=installation.release.version,
            line=installation.release.line,
            device_classes=InstalledClasses(
                {
                    shipped.name: InstalledClass(shipped.name, (driver, shipped.selects), only)
                    for driver, shipped in installation.classes
                }
            ),
            resources=resources,
        )


def _read_texts(path: str) -> tuple[list[tuple[str, str]], list[Problem]]:
    """The texts of a file, or of the files of a folder, as paths are written: from the folder of the program."""
    found = Path(path)
    if not found.is_absolute() and not found.exists():
        found = Path(get_root_directory() or ".", path)
    files = (
        sorted(each for each in found.iterdir() if each.suffix in _SUFFIXES) if found.is_dir() else [found]
    )
    texts: list[tuple[str, str]] = []
    problems: list[Problem] = [] if files else [_unreadable(path, "holds no .yaml, .yml or .json")]
    for file in files:
        shown = str(Path(path, file.name)) if found.is_dir() else path
        try:
            texts.append((shown, file.read_text(encoding="utf-8")))
        except OSError as error:
            problems.append(_unreadable(shown, error.strerror or "cannot be read"))
        except UnicodeDecodeError:
            problems.append(Problem(path="crds", code="not-utf-8", message=f"{shown} is not UTF-8"))
    return texts, problems


def _unreadable(path: str, why: str) -> Problem:
    hint = "point at the folder crds/ of the chart, unpacked beside the program"
    return Problem(path="crds", code="file-unreadable", message=f"{path}: {why}", hint=hint)
