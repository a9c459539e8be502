"""Reads what a migration works on, and says what it cannot work on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from dra_infra.answers.settings import check_settings, read_program, read_snapshot
from dra_infra.catalog.snapshots import Snapshot, snapshot_of
from dra_infra.client.kinds import DEFINITIONS, EXTRA, SNAPSHOT
from dra_infra.client.refusals import nothing_seen
from dra_infra.errors import Place, Problem, ProblemsError
from dra_infra.kubernetes.api import ObjectRef, WorkloadKinds
from dra_infra.migration.chart_values import is_values
from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.estate import migrated_kinds
from dra_infra.migration.needs import SAY_PLUGIN
from dra_infra.migration.plugin_configs import (
    find_plugin_config,
    hold_to_nodes,
    read_nodes,
    read_plugin_configs,
    tell_plugin,
)
from dra_infra.output.wording import join_words
from dra_infra.program.kustomizations import is_kustomization
from dra_infra.program_objects import NotSeen
from dra_infra.sources.cluster_objects import find_owner
from dra_infra.sources.files import (
    NOTHING_CHECKED,
    UNANSWERED,
    SourceObject,
    files_in,
    find_program,
    read_sources,
)
from dra_infra.sources.patches import Patches, find_patches, find_repeated, read_parts

_MADE: Final = ("Pulumi.yaml", "objects.yaml")
"""Files that `--output` gets for what is made, and that the input need not have."""

_HINT: Final = "name its folder as a path of its own: dra-infra migrate {folder}"


Warn = Callable[[Sequence[Problem]], None]
"""A function that is called with warnings about the input before it is migrated."""


class Inputs(NamedTuple):
    """The input of a migration.

    Args:
        sources: Its objects.
        problems: What could not be read.
        patches: Patches of kustomizations among it.
        not_seen: What is left out, and what may be missing for that.
        skipped: What is left out and comes from files of the input, so that nothing is missing.
    """

    sources: list[SourceObject]
    problems: list[Problem]
    patches: Patches
    not_seen: Sequence[NotSeen] = ()
    skipped: Sequence[NotSeen] = ()


class FoundPlugin(NamedTuple):
    """Answers what `nvidia.com/gpu` is, and who says so.

    Args:
        plugin: The plugin as it is told, or as the input or the nodes of the cluster say; None where nobody says it.
        hint: How to say it.
        notes: Lines on what said it.
    """

    plugin: DevicePlugin | None
    hint: str
    notes: Sequence[str]


class Making(NamedTuple):
    """How programs and kustomizations among the input become objects.

    Args:
        kind: What the user says that folders are; None reads it off each.
        stack: Stack of a program.
        config: Settings over those of the stack file.
        timeout: Seconds for each.
        warn: Called with warnings about settings.
    """

    kind: str | None
    stack: str | None
    config: Mapping[str, str]
    timeout: float
    warn: Warn

    def makes(self, path: str) -> bool:
        """True where the objects of *path* are made by a program, a chart or a kustomization."""
        folder = Path(path)
        if path == "-" or self.kind == "manifests" or not folder.is_dir():
            return False
        marks = (folder / each for each in ("Pulumi.yaml", "Pulumi.yml", "Chart.yaml"))
        is_made = self.kind is not None or is_kustomization(folder)
        return is_made or any(map(os.path.isfile, marks))

    def make(self, path: str) -> tuple[list[SourceObject], Sequence[Problem], Sequence[NotSeen]]:
        """Make the objects of *path*, with its problems and what is not seen.

        Raises:
            ProgramError: The codes of `read_program` and `check_settings`.
        """
        folder = Path(path)
        project, program = read_program(
            folder, stack=self.stack, config=self.config, timeout=self.timeout, kind=self.kind
        )
        if project is not None:
            self.warn(check_settings(project, self.stack, self.config))
        # Places in a program are named from its folder on.
        above = folder if project is not None and project.root == folder.resolve() else Path()
        file = (folder / "objects.yaml").as_posix()
        made = [
            SourceObject.of(
                file,
                each.manifest,
                _below(above, each.place) if each.place else Place(file=path),
                each.urn if project is not None else "",
            )
            for each in program.objects
        ]
        problems = [each.at(_below(above, each.place)) if each.place else each for each in program.problems]
        return made, problems, program.not_seen


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveCluster:
    """The live cluster that a migration reads.

    Args:
        kubeconfig: The kubeconfig; None takes the one that kubectl would take.
        context: Its context; None takes the current one.
        namespaces: The namespaces that are read; none reads all.
        request_timeout: Seconds of silence after which a request is given up; None takes the client's default.
    """

    kubeconfig: Path | None
    context: str | None
    namespaces: Sequence[str]
    request_timeout: float | None


def read_cluster(
    files: Inputs | None,
    snapshot: Path | None,
    live: LiveCluster | None,
    known: WorkloadKinds,
    tell: Callable[[str], None],
    warn: Warn,
) -> tuple[Snapshot | None, Inputs]:
    """Read a live cluster or a snapshot, and without *files* also the objects of *known* kinds in it, which are to be migrated.

    Raises:
        ClusterError: When nothing can be read; what may not be listed is told.
        FleetError: The codes of `read_snapshot`.
    """
    if files is not None and live is None:
        return (read_snapshot(snapshot) if snapshot else None), files
    # Files are migrated without the client.
    from dra_infra.cluster import reading

    live = live or LiveCluster(kubeconfig=None, context=None, namespaces=(), request_timeout=None)
    bound = {} if live.request_timeout is None else {"request_timeout": live.request_timeout}
    reader = reading.open_reader(
        live.kubeconfig, live.context, namespaces=live.namespaces, tell=tell, **bound
    )
    wanted = migrated_kinds(known) if files is None else frozenset()
    kinds = SNAPSHOT[: SNAPSHOT.index(DEFINITIONS)]
    more = reader.find_kinds(wanted - {(each.group, each.name) for each in kinds}) if wanted else ()
    objects, inputs = list[dict[str, Any]](), list[dict[str, Any]]()
    problems, told = list[Problem](), list[Problem]()
    for found in map(reader.list, (*kinds, *more)):
        is_input = (found.kind.group, found.kind.name) in wanted
        objects += found.items
        inputs += found.items if is_input else ()
        for each in found.problems if found.is_seen or found.kind not in EXTRA else ():
            (problems if is_input and each.code in UNANSWERED else told).append(each)
    place = Place(file=reader.session.account.name)
    if not objects:
        raise nothing_seen([*told, *problems] or [_nothing(place, "nothing lives there")])
    warn(told)
    if files is None:
        owners = {ObjectRef.of(each).stored for each in objects}
        own = [each for each in inputs if find_owner(each) not in owners]
        if not own and not problems:
            problems = [_nothing(place, "nothing lives there that could be migrated")]
        sources = [SourceObject.of("objects.yaml", each, place) for each in own]
        files = Inputs(sources, problems, find_patches([]))
    return snapshot_of(objects), files


def _below(folder: Path, place: Place) -> Place:
    return replace(place, file=(folder / place.file).as_posix())


def read_inputs(paths: Sequence[str], stdin: BinaryIO, making: Making, unread: Path | None) -> Inputs:
    """Read the objects in *paths*, as `read_sources` does, and those that programs and kustomizations make.

    What is named twice, or lies in a folder that is named too, is read once. An input without any object is a problem.
    The folder *unread* is left out of those around it, and told: what an earlier run wrote to it is no input. Other files there are not seen.

    Raises:
        ProgramError: The codes of `Making.make`.
    """
    sources: list[SourceObject] = []
    problems: list[Problem] = []
    inputs, not_seen, skipped = _without_repeats(paths, making, unread)
    for path in inputs:
        if making.makes(path):
            made, found, hidden = making.make(path)
            sources = [*sources, *made]
            problems = [*problems, *found]
            not_seen = [*not_seen, *hidden]
            continue
        for each in read_sources([path], stdin, keeps_last=True):
            if isinstance(each, Problem):
                problems.append(each)
            else:
                sources.append(each)
                problems.extend(find_program(each, _HINT) if making.kind is None else ())
    files = [each.file for each in sources if not each.is_made]
    files += [each.place.file for each in problems if each.place]
    patches = find_patches(list(dict.fromkeys(files)))
    parts, problems = read_parts(problems, patches)
    sources += parts
    problems += find_repeated(sources, patches)
    if not problems and not any(each.manifest.get("kind") or is_values(each.manifest) for each in sources):
        problems.append(_nothing(Place(file=paths[0]), "there is no object in the input"))
    return Inputs(sources, problems, patches, not_seen, skipped)


def _without_repeats(
    paths: Sequence[str], making: Making, unread: Path | None
) -> tuple[list[str], list[NotSeen], list[NotSeen]]:
    """Return the inputs, folders of manifests as their files, each once by whatever names it goes, and none in *unread*.

    The second and the third say what of that folder is left out: files that come from no file of the input, or only those that do.
    """
    real: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for path in paths:
        is_folder = path != "-" and not making.makes(path) and Path(path).is_dir()
        found = files_in(Path(path)) if is_folder else ()
        # A folder that may not be read is told where it is read.
        files = [each.place.file if isinstance(each, Problem) and each.place else str(each) for each in found]
        files = files or [path]
        if is_folder and unread is not None and lies_in(os.path.realpath(unread), path):
            left_out |= {each: os.path.realpath(each) for each in files if lies_in(each, unread)}
            files = [each for each in files if each not in left_out]
        real |= {each: each if each == "-" else os.path.realpath(each) for each in files}
    not_seen: list[NotSeen] = []
    skipped: list[NotSeen] = []
    if left_out and unread:
        written = {os.path.realpath(unread / below_output(each)) for each in real}
        others = [each for each, at in left_out.items() if at not in written and Path(at).name not in _MADE]
        verb = "comes" if len(others) == 1 else "come"
        more = f", and {join_words(others)} {verb} from no file of the input" if others else ""
        told = NotSeen(what="folder", name=str(unread), reason=f"--output writes to it{more}")
        # Of what an earlier run wrote nothing is missing.
        (not_seen if others else skipped).append(told)
    chosen: dict[str, str] = {}
    # Of a link and its file the file is what is changed.
    for each in sorted(real, key=os.path.islink):
        chosen.setdefault(real[each], each)
    return [each for each in real if chosen[real[each]] == each], not_seen, skipped


def lies_in(file: str | Path, folder: str | Path) -> bool:
    """True where *file* stands somewhere below *folder*, by whatever names they go; a link stands where it is itself."""
    file = Path(file)
    return Path(os.path.realpath(folder)) in Path(os.path.realpath(file.parent), file.name).parents


def below_output(name: str) -> Path:
    """Where a file goes in another folder: below it whatever its path says, so that no `..` leads out of it."""
    file = Path("objects.yaml" if name == "-" else name)
    return Path(*(part for part in file.parts if part not in ("..", file.anchor)))


def _nothing(place: Place, message: str) -> Problem:
    hint = "name a file or folder that holds one, or another namespace"
    return Problem(path="document", code=NOTHING_CHECKED, message=message, hint=hint, place=place)


def find_plugin(
    plugin_config: Path | None,
    mig_profile: str | None,
    cluster: Snapshot | None,
    sources: Sequence[SourceObject],
    *,
    whole_gpus: bool,
) -> FoundPlugin:
    """Find what the options say of the plugin, else the input, else the nodes of the cluster.

    Raises:
        ProblemsError: `plugin-config-malformed`, and the codes of `read_sources`.
    """
    plugin = DevicePlugin() if whole_gpus else None
    nodes = [node.labels for node in cluster.fleet.nodes] if cluster else []
    beside = find_plugin_config(((each.start.file, each.manifest) for each in sources), nodes)
    if plugin_config:
        found = list(read_sources([str(plugin_config)], sys.stdin.buffer))
        if problems := [each for each in found if isinstance(each, Problem)]:
            raise ProblemsError(problems)
        objects = (each.manifest for each in found if isinstance(each, SourceObject))
        configs = read_plugin_configs(*objects, file=str(plugin_config))
        plugin = configs.serve(nodes)
    elif beside.is_applied and plugin is None:
        plugin = beside.plugin
    elif cluster and plugin is None:
        plugin = read_nodes(nodes)
    if mig_profile:
        of_profile = replace(plugin or DevicePlugin(), strategy="single", says_strategy=False)
        plugin = replace(of_profile, profiles=(mig_profile,), unclear="", by_labels=None)
    if plugin and (whole_gpus or mig_profile):
        plugin = beside.hold(hold_to_nodes(plugin, nodes))
    way = beside.file and f"{beside.file} configures the plugin: give it as --plugin-config; or "
    is_its = plugin is not None and plugin is beside.plugin
    notes = [f"nvidia.com/gpu is {tell_plugin(plugin)}, as {beside.file} says"] if plugin and is_its else []
    if cluster and plugin and plugin.by_labels:
        plugin = replace(plugin, nodes=cluster.fleet.nodes)
    return FoundPlugin(plugin, f"{way}{SAY_PLUGIN}", notes)
