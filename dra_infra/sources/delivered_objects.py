"""Objects that Argo CD and Flux make of the objects in an input: of charts, kustomizations and manifests in its own repository.

Nothing is fetched. What cannot be made here is named with the reason, because it may have workloads. Helm and kustomize run as for a
chart or kustomization that is reviewed, so a pull request can write what they read.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dra_infra.documents.yaml import read_manifests, write_manifest, write_manifests
from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.kubernetes.api import ObjectRef, group_of, mapping
from dra_infra.migration.chart_releases import Values, merge_values
from dra_infra.output.wording import join_words
from dra_infra.program.charts import render_templates
from dra_infra.program.functions import is_namespaced
from dra_infra.program.kustomizations import FILES, build, is_kustomization
from dra_infra.program.project_files import is_outside, read_yaml
from dra_infra.program_objects import NotSeen, ProgramRelease
from dra_infra.sources import git
from dra_infra.sources.application_sets import NotExpandedError, expand_application_set, generators_of_git
from dra_infra.sources.deliveries import (
    Delivery,
    ValuesObject,
    read_deliveries,
    values_of_text,
)
from dra_infra.sources.deployers import is_deployer
from dra_infra.sources.files import NOT_RENDERED, SourceObject, files_in, read_sources
from dra_infra.sources.values_files import read_values
from dra_infra.target import ClusterTarget

DEFAULT_TIMEOUT: Final = 300.0
"""Seconds for everything that the objects of one input deploy."""

MOST_RENDERED: Final = 500
_MOST_OBJECTS: Final = 100_000
_ONE: Final = 60.0
"""Seconds for one chart or kustomization."""

_RELEASE: Final = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+.*|[0-9a-f]{40}")
"""Revisions that are not those of a branch."""

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?([-=])([^}]*))?\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkout:
    """The repository that an input is part of, whose paths its objects name.

    Args:
        top: Its folder.
        remotes: Addresses that it was cloned from; empty where nobody knows, and then every path that is there counts as meant.
    """

    top: Path
    remotes: tuple[str, ...] = ()

    def is_own(self, address: str) -> bool:
        """True for an address of this repository, however it is written: by its owner and name."""
        return not address or not self.remotes or _name_of(address) in map(_name_of, self.remotes)


def find_checkout(path: Path) -> Checkout:
    """Return the repository around a file or folder; without one the current folder around it, or its own."""
    folder = path.resolve()
    folder = folder if folder.is_dir() else folder.parent
    top = next((each for each in (folder, *folder.parents) if os.path.lexists(each / ".git")), None)
    if top is None:
        current = Path.cwd()
        return Checkout(top=current if folder.is_relative_to(current) else folder)
    try:
        layout = git.open_repository(top)
        return Checkout(
            top=top, remotes=tuple(git.remote_addresses(layout)) if isinstance(layout, git.Layout) else ()
        )
    except ProblemsError:
        return Checkout(top=top)


def _name_of(address: str) -> str:
    """Return owner and name of a repository: `org/app` of `git@host:org/app.git` and of `https://host/org/app`."""
    path = address.rstrip("/").removesuffix(".git").replace(":", "/").lower()
    return "/".join(path.split("/")[-2:])


@dataclass(frozen=True, kw_only=True, slots=True)
class NotRendered:
    """Something that an object deploys, and that is not known.

    Args:
        source: The object.
        at: Its field.
        reason: Why nothing is known.
    """

    source: SourceObject
    at: str
    reason: str

    @property
    def ref(self) -> ObjectRef:
        """The object."""
        return ObjectRef.of(self.source.manifest)

    def to_problem(self) -> Problem:
        """Return the problem; its path begins with the object, its severity is a warning."""
        return Problem(
            path=f"{self.ref}: {self.at}" if self.at else str(self.ref),
            code=NOT_RENDERED,
            message=f"nothing of what it deploys was looked at: {self.reason}",
            hint="pipe in what it makes: helm template or kubectl kustomize ... | dra-infra validate -",
            severity="warning",
            place=self.source.place(self.at),
        )

    def to_not_seen(self) -> NotSeen:
        """Return the same for the objects of a program."""
        name = "/".join(filter(None, (self.ref.namespace, self.ref.name)))
        kind = str(self.source.manifest.get("kind"))
        return NotSeen(
            what=kind, name=name, reason=f"nothing of what it deploys was looked at: {self.reason}"
        )


@dataclass(kw_only=True, slots=True)
class Delivered:
    """An input with the objects that its own objects deploy.

    Args:
        sources: All objects. Those of files that a chart or kustomization is made of are not among them by themselves.
        not_rendered: What is not known.
        notes: What was read in place of something else.
    """

    sources: list[SourceObject] = field(default_factory=list)
    not_rendered: list[NotRendered] = field(default_factory=list)
    notes: list[NotSeen] = field(default_factory=list)
    _folders: set[str] = field(default_factory=set)
    _files: set[str] = field(default_factory=set)

    def covers(self, file: str) -> bool:
        """True for a file that something which was rendered is made of."""
        real = os.path.realpath(file)
        return real in self._files or any(real.startswith(f"{folder}{os.sep}") for folder in self._folders)


class _NotRenderedError(Exception):
    """Why something is not rendered."""


def add_delivered(
    sources: Sequence[SourceObject],
    checkout_of: Callable[[str], Checkout | None],
    *,
    target: ClusterTarget | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Delivered:
    """Add to the objects of an input those that its Applications, ApplicationSets, HelmReleases and Kustomizations deploy.

    Args:
        sources: The objects.
        checkout_of: Returns the repository of a file; None where paths of a repository are not read.
        target: The cluster that templates of charts are made for.
        timeout: Seconds for all of it.
    """
    if not any(is_deployer(each.manifest) for each in sources):
        return Delivered(sources=list(sources))
    return _Controllers(sources, checkout_of, target or ClusterTarget(), time.monotonic() + timeout).run()


class _Controllers:
    """Does what the controllers do, once for each thing that is deployed."""

    def __init__(
        self,
        sources: Sequence[SourceObject],
        checkout_of: Callable[[str], Checkout | None],
        target: ClusterTarget,
        end: float,
    ) -> None:
        self._input = sources
        self._checkout_of = checkout_of
        self._target = target
        self._end = end
        self._delivered = Delivered()
        self._done: set[str] = set()
        named = [(ObjectRef.of(each.manifest).stored, each.manifest) for each in sources]
        self._configs = {
            (ref.kind, ref.namespace, ref.name): manifest
            for ref, manifest in named
            if ref.kind in ("ConfigMap", "Secret")
        }
        self._repositories = {
            ("GitRepository", ref.namespace, ref.name): str(mapping(manifest.get("spec")).get("url") or "")
            for ref, manifest in named
            if manifest.get("kind") == "GitRepository"
        }

    def run(self) -> Delivered:
        delivered = self._delivered
        given = {id(each) for each in self._input}
        everything: list[SourceObject] = []
        queue = deque(self._input)
        while queue:
            source = queue.popleft()
            everything.append(source)
            if is_deployer(source.manifest):
                made = list(self._deploy(source))
                queue.extend(made)
        delivered.sources = [
            each for each in everything if id(each) not in given or not delivered.covers(each.file)
        ]
        return delivered

    def _deploy(self, source: SourceObject) -> Iterator[SourceObject]:
        checkout = self._checkout_of(source.file)
        if source.manifest.get("kind") == "ApplicationSet":
            yield from self._expand(source, checkout)
            return
        for delivery in read_deliveries(source.manifest, self._repositories):
            # An object may deploy itself, as Flux's own Kustomization does.
            key = repr((str(source.manifest.get("kind")), delivery, checkout and checkout.top))
            if key in self._done:
                continue
            self._done.add(key)
            try:
                yield from self._render(delivery, source, checkout)
            except _NotRenderedError as error:
                self._refuse(source, delivery.at, str(error))
            except ProblemsError as error:
                self._refuse(source, delivery.at, "; ".join(each.message for each in error.problems[:3]))
            except (OSError, ValueError, RecursionError) as error:
                # A path or a name that no system takes.
                self._refuse(source, delivery.at, f"it cannot be read: {str(error)[:200]}")

    def _expand(self, source: SourceObject, checkout: Checkout | None) -> Iterator[SourceObject]:
        addresses = [*generators_of_git(source.manifest)]
        is_own = checkout is not None and all(map(checkout.is_own, addresses))
        try:
            made = list(
                expand_application_set(source.manifest, checkout.top if checkout and is_own else None)
            )
        except (NotExpandedError, RecursionError) as error:
            self._refuse(source, "spec", str(error)[:200])
            return
        for manifest in made:
            yield replace(source, manifest=manifest)

    def _refuse(self, source: SourceObject, at: str, reason: str) -> None:
        self._delivered.not_rendered.append(NotRendered(source=source, at=at, reason=reason))

    def _render(
        self, delivery: Delivery, source: SourceObject, checkout: Checkout | None
    ) -> Iterator[SourceObject]:
        if delivery.problem:
            raise _NotRenderedError(delivery.problem)
        if checkout is None:
            raise _NotRenderedError("paths of the repository are not read here")
        if not checkout.is_own(delivery.repository):
            raise _NotRenderedError(f"{delivery.path} of {delivery.repository} is in another repository")
        if len(self._done) > MOST_RENDERED or time.monotonic() > self._end:
            raise _NotRenderedError("the input deploys too much to read all of it in time")
        root = _find_folder(checkout, delivery.path)
        made = [
            replace(each, cluster=delivery.cluster) for each in self._make(delivery, source, root, checkout)
        ]
        if len(made) > _MOST_OBJECTS:
            raise _NotRenderedError(f"it makes more than {_MOST_OBJECTS:,} objects")
        if _RELEASE.fullmatch(delivery.revision):
            reason = f"the files as they are here were read in place of revision {delivery.revision[:60]}"
            self._delivered.notes.append(
                NotSeen(what="revision", name=str(ObjectRef.of(source.manifest)), reason=reason)
            )
        yield from made

    def _make(
        self, delivery: Delivery, source: SourceObject, root: Path, checkout: Checkout
    ) -> list[SourceObject]:
        shown = _shown(root, source)
        tool = delivery.tool
        is_flux = source.manifest.get("kind") == "Kustomization"
        if tool == "helm" or (not tool and (root / "Chart.yaml").is_file()):
            rendered = self._render_chart(delivery, source, root, checkout)
            self._delivered._folders.add(os.path.realpath(root))  # noqa: SLF001  (of this module)
            name = f"{read_yaml(root / 'Chart.yaml').get('name') or root.name}/"
            made = [
                SourceObject.of(f"{shown}/{file.removeprefix(name)}", manifest) for file, manifest in rendered
            ]
        elif is_kustomization(root) and tool != "directory" and (files := _plain_files(root, delivery)):
            made = [each for file in files for each in _read_file(file, root, checkout, shown)]
            self._cover_kustomization(root, checkout)
        elif is_kustomization(root) and tool != "directory":
            objects = build(root, inside=checkout.top, timeout=self._left(), overlay=delivery.overlay or None)
            self._cover_kustomization(root, checkout)
            made = [SourceObject.of(shown, each) for each in objects]
        elif tool == "kustomize" and not is_flux:
            raise _NotRenderedError(f"{delivery.path} has no {FILES[0]}")
        else:
            made = self._read_folder(delivery, root, checkout, shown)
        if delivery.variables is not None:
            made = self._substitute(delivery, source, made)
        if is_flux:
            return made
        return [replace(each, manifest=_with_namespace(each.manifest, delivery.namespace)) for each in made]

    def _left(self) -> float:
        return max(1.0, min(_ONE, self._end - time.monotonic()))

    def _render_chart(
        self, delivery: Delivery, source: SourceObject, root: Path, checkout: Checkout
    ) -> tuple[tuple[str, dict[str, Any]], ...]:
        if not (root / "Chart.yaml").is_file():
            raise _NotRenderedError(f"{delivery.path} has no Chart.yaml")
        files: list[Path] = []
        for each in delivery.files:
            file = (checkout.top if each.from_top else root) / each.path
            if is_outside(file, checkout.top):
                raise _NotRenderedError(f"{each.path} leads out of the repository")
            if file.is_file():
                files.append(file)
            elif not each.is_optional:
                raise _NotRenderedError(f"there is no values file {each.path}")
        parts = [Values((), read_values(files, checkout.top))]
        parts += [Values((), self._read_object(each, source)) for each in delivery.objects]
        release = ProgramRelease(
            urn=f"::::::{delivery.release}",
            name=delivery.release or "release-name",
            namespace=delivery.namespace or "default",
            chart=".",
            # What was read is plain data, and goes to Helm as JSON.
            values=merge_values([*parts, *delivery.values]),
        )
        return render_templates(
            release,
            root=root,
            target=self._target,
            inside=checkout.top,
            timeout=self._left(),
            has_hooks=True,
        )

    def _read_object(self, wanted: ValuesObject, source: SourceObject) -> Mapping[str, Any]:
        text = self._data_of(wanted, source).get(wanted.key)
        if text is None:
            if wanted.is_optional:
                return {}
            raise _NotRenderedError(f"{wanted.kind} {wanted.name} has no {wanted.key}")
        values = values_of_text(text, wanted.target)
        if values is None:
            raise _NotRenderedError(f"{wanted.key} of {wanted.kind} {wanted.name} is no YAML")
        return values

    def _data_of(self, wanted: ValuesObject, source: SourceObject) -> Mapping[str, str]:
        """Return the data of a ConfigMap in the input; what a Secret has may not come into a report."""
        namespace = ObjectRef.of(source.manifest).stored.namespace
        values = self._configs.get((wanted.kind, namespace, wanted.name))
        if wanted.kind == "Secret" and (values is not None or not wanted.is_optional):
            raise _NotRenderedError(f"Secret {wanted.name} is not read")
        if values is None:
            if wanted.is_optional:
                return {}
            raise _NotRenderedError(f"{wanted.kind} {wanted.name} is not in the input")
        data = {str(key): str(value) for key, value in mapping(values.get("data")).items()}
        for key, value in mapping(values.get("binaryData")).items():
            try:
                data[str(key)] = base64.b64decode(str(value), validate=True).decode()
            except (binascii.Error, ValueError):
                continue
        return data

    def _read_folder(
        self, delivery: Delivery, root: Path, checkout: Checkout, shown: str
    ) -> list[SourceObject]:
        """Read the manifests of a folder without a chart and without a kustomization."""
        files = [each for each in files_in(root) if isinstance(each, Path)]
        if not delivery.is_recursive:
            files = [each for each in files if each.parent == root]
        below = {
            each for file in files for each in file.parents if each != root and each.is_relative_to(root)
        }
        if any(is_kustomization(each) for each in below):
            raise _NotRenderedError(f"a folder below {delivery.path} is a kustomization of its own")
        if jsonnet := [*root.glob("*.jsonnet")]:
            raise _NotRenderedError(f"{jsonnet[0].name} is Jsonnet, which is not run")
        made = [each for file in files for each in _read_file(file, root, checkout, shown)]
        if not made:
            raise _NotRenderedError(f"{delivery.path} has no manifest")
        if delivery.overlay:
            text = write_manifests([each.manifest for each in made])
            objects = build(
                root, inside=checkout.top, timeout=self._left(), overlay=delivery.overlay, objects=text
            )
            made = [SourceObject.of(shown, each) for each in objects]
        self._delivered._files.update(map(os.path.realpath, files))  # noqa: SLF001  (of this module)
        return made

    def _cover_kustomization(self, root: Path, checkout: Checkout) -> None:
        """Note the folders that a kustomization is made of."""
        folders = [root]
        for folder in folders:
            self._delivered._folders.add(os.path.realpath(folder))  # noqa: SLF001  (of this module)
            name = next((each for each in FILES if (folder / each).is_file()), None)
            if name is None or len(folders) > MOST_RENDERED:
                continue
            written = read_yaml(folder / name)
            for key in ("resources", "bases", "components"):
                entries = written.get(key)
                for entry in entries if isinstance(entries, list) else ():
                    below = Path(os.path.normpath(folder / str(entry)))
                    if below.is_file():
                        self._delivered._files.add(os.path.realpath(below))  # noqa: SLF001
                    elif below.is_dir() and not is_outside(below, checkout.top) and below not in folders:
                        folders.append(below)

    def _substitute(
        self, delivery: Delivery, source: SourceObject, made: Sequence[SourceObject]
    ) -> list[SourceObject]:
        """Replace variables as kustomize-controller does, in the text of each object (postBuild)."""
        variables: dict[str, str] = {}
        refused = ""
        for wanted in delivery.variable_objects:
            try:
                variables |= self._data_of(wanted, source)
            except _NotRenderedError as error:
                refused = str(error)
        variables |= delivery.variables or {}
        lacking: set[str] = set()

        def value_of(found: re.Match[str]) -> str:
            if found[1] in variables:
                return variables[found[1]]
            if refused:
                lacking.add(found[1])
            return found[3] if found[2] else ""

        done: list[SourceObject] = []
        for each in made:
            annotations = mapping(mapping(each.manifest.get("metadata")).get("annotations"))
            text = write_manifest(each.manifest)
            if "${" not in text or annotations.get("kustomize.toolkit.fluxcd.io/substitute") == "disabled":
                done.append(each)
                continue
            filled = _VARIABLE.sub(value_of, text.replace("$${", "\0")).replace("\0", "${")
            (manifest,) = read_manifests(filled, file=each.file) or ({},)
            done.append(replace(each, manifest=manifest))
        if lacking:
            raise _NotRenderedError(f"{refused}, so {join_words(sorted(lacking), most=5)} may be any text")
        return done


def _plain_files(root: Path, delivery: Delivery) -> list[Path]:
    """Return the files of a kustomization that lists files of its own folder and does nothing else; none for any other.

    Nothing has to be built then, and the files tell the line of each field.
    """
    name = next(each for each in FILES if (root / each).is_file())
    if (root / name).is_symlink():
        return []
    written = read_yaml(root / name)
    resources = written.get("resources")
    if delivery.overlay or not written.keys() <= {"apiVersion", "kind", "resources"}:
        return []
    files = [root / str(each) for each in resources] if isinstance(resources, list) else []
    is_plain = all(
        each.suffix in (".yaml", ".yml") and each.is_file() and ".." not in each.parts for each in files
    )
    return files if is_plain and len(set(files)) == len(files) else []


def _read_file(file: Path, root: Path, checkout: Checkout, shown: str) -> Iterator[SourceObject]:
    if is_outside(file, checkout.top):
        raise _NotRenderedError(f"{file.name} is a link that leads out of the repository")
    name = f"{shown}/{file.relative_to(root).as_posix()}"
    for found in read_sources([str(file)], io.BytesIO()):
        if isinstance(found, Problem):
            raise ProgramError([found])
        if found.manifest.get("kind"):
            yield replace(found, document=replace(found.document, file=name))


def _find_folder(checkout: Checkout, path: str) -> Path:
    root = Path(os.path.normpath(checkout.top / path.lstrip("/")))
    if "\0" in path or not root.is_dir():
        raise _NotRenderedError(f"there is no folder {path} in this repository")
    if is_outside(root, checkout.top):
        raise _NotRenderedError(f"{path} leads out of the repository")
    return root


def _shown(root: Path, source: SourceObject) -> str:
    """Return the name of a folder as the input names its files: whole, or from the current folder."""
    if Path(source.file).is_absolute():
        return root.as_posix()
    return Path(os.path.relpath(root)).as_posix()


def _with_namespace(manifest: Mapping[str, Any], namespace: str) -> Mapping[str, Any]:
    metadata = mapping(manifest.get("metadata"))
    is_open = namespace and not metadata.get("namespace")
    if not is_open or not is_namespaced(group_of(manifest), str(manifest.get("kind")), {}, others=True):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}
