"""The answer of `dra-infra migrate`: requests to device plugins and old DRA as claims, with every loss in writing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Unpack

from dra_infra.advice.objects import reference_to
from dra_infra.answers.cut_over import plan_cut_over
from dra_infra.answers.migration_inputs import (
    Inputs,
    LiveCluster,
    Making,
    Warn,
    find_plugin,
    read_cluster,
    read_inputs,
)
from dra_infra.answers.placing import place_scene
from dra_infra.answers.reading import ClusterOptions
from dra_infra.answers.replaced import find_replaced
from dra_infra.answers.scene import Scene
from dra_infra.answers.settings import with_gates
from dra_infra.answers.simulating import does_work
from dra_infra.catalog import load_fleet
from dra_infra.catalog.driver_gates import gates_of
from dra_infra.catalog.drivers import read_pins
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.catalog.workload_kinds import load_workload_kinds, workload_kinds
from dra_infra.cutover.plan import Plan
from dra_infra.cutover.texts import plan_to_data
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import WorkloadKinds, name_of
from dra_infra.markers import is_name_made_up
from dra_infra.migration.bridge import bridge_classes
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.migration.plugin_configs import find_intel_shares
from dra_infra.migration.report import Entry, Report, judge, tell_once
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.placement import Placement
from dra_infra.process import collector_paused
from dra_infra.program.project import DRIVER_SETTING, KUBERNETES_SETTING
from dra_infra.program.synth import DEFAULT_TIMEOUT
from dra_infra.program_objects import NotSeen
from dra_infra.provenance import Provenance
from dra_infra.review.placement_report import describe
from dra_infra.sources.cluster_objects import find_beside, is_without_devices, runs_once
from dra_infra.sources.files import REPEATED, TWICE, UNANSWERED, SourceObject
from dra_infra.sources.patches import is_no_object, is_part, migrate_sources, title_of
from dra_infra.sources.rewriting import NOT_WRITTEN, ChangedFile, mark_unwritten, rewrite_files
from dra_infra.target import NEWEST_DRIVER, ClusterTarget

if TYPE_CHECKING:
    from dra_infra.answers.migrated_program import MigratedProgram

_SECONDS: Final = 60.0
"""Seconds for which it is tried to place all that was migrated."""

_BESIDE: Final = "that controllers or charts made, or without devices,"
_SHARES: Final = "DRAConsumableCapacity", "ConsumableShares"
"""The gates of Kubernetes and of the driver by which claims take shares of a GPU."""

_BRIDGE: Final = "DRAExtendedResource"
"""The gate by which a class serves an extended resource."""

Form = Literal["claims", "components", "bridge"]


class MigrationOptions(ClusterOptions, total=False):
    """The options of a migration: the cluster, and what the device plugin offers there.

    Args:
        kubeconfig: The kubeconfig of the cluster that is read; None takes the one that kubectl would take.
        context: Its context. With neither no live cluster is read.
        namespaces: The namespaces that are read; none reads all.
        request_timeout: Seconds of silence after which a request to the API server is given up.
        whole_gpus: Whether NVIDIA's device plugin shares no GPU and hides no MIG device behind `nvidia.com/gpu`.
        plugin_config: The configuration of NVIDIA's device plugin, or the ConfigMap or chart values with it.
        mig_profile: What `nvidia.com/gpu` is with the plugin's strategy `single`; one of `mig_profiles()`.
        plan: Whether the cut-over of the nodes is planned.
        source: `program`, `manifests`, `chart` or `kustomization`; None reads it off each path.
        timeout: Seconds that a program may run.
    """

    kubeconfig: Path | None
    context: str | None
    namespaces: Sequence[str]
    request_timeout: float
    whole_gpus: bool
    plugin_config: Path | None
    mig_profile: str | None
    plan: bool
    source: str | None
    timeout: float


@dataclass(frozen=True, kw_only=True)
class Migration:
    """A migration that was made, and not yet written.

    Args:
        report: What became of each object, and what is lost.
        files: Files with their text before and after.
        program: The program, with `to="components"`; None where objects could not be read.
        plan: The plan of the cut-over, where one was asked for.
        placement: Where the result is placed on a fleet; None where none is named.
        skipped: Files that an earlier run wrote, which are not read as input.
    """

    report: Report
    files: Sequence[ChangedFile] = ()
    program: MigratedProgram | None = None
    plan: Plan | None = None
    placement: Placement | None = None
    skipped: Sequence[NotSeen] = ()

    def exit_code(self, *, check: bool = False) -> int:
        """0 when all is migrated, 1 when somebody has to decide or it does not work, 2 where something could not be read.

        Args:
            check: Whether objects that change count too, as those that are left to migrate.
        """
        problems = self.report.problems
        if any(each.code in UNANSWERED for each in problems):
            return 2
        works = (self.plan is None or self.plan.works) and (
            self.placement is None or does_work(self.placement)
        )
        has_errors = any(each.severity == "error" for each in problems)
        is_left = check and self.report.changed
        is_open = self.report.count("decide") or self.report.refused or has_errors or is_left
        return 1 if is_open or not works else 0

    @property
    def has_duplicates(self) -> bool:
        """True when the input has an object twice."""
        return any(each.code == TWICE for each in self.report.problems)


class _Question(NamedTuple):
    """The objects to migrate and the cluster that they are for.

    Args:
        inputs: The objects, and what could not be read.
        cluster: The cluster of a snapshot or a kubeconfig; None where none is read.
        classes: The DeviceClasses of the cluster.
        settings: What the device plugin offers.
        notes: How it is known what the device plugin offers.
        target: The releases whose rules count.
        driver: The release of the driver whose rules count.
    """

    inputs: Inputs
    cluster: Snapshot | None
    classes: Sequence[Mapping[str, Any]]
    settings: Settings
    notes: Sequence[str]
    target: ClusterTarget
    driver: str


class _Written(NamedTuple):
    """Result of writing what was migrated.

    Args:
        migrated: What became of each object.
        problems: What could not be read or written.
        notes: Lines on the whole.
        files: Files that were rewritten.
        program: The program, with `--to components`.
    """

    migrated: list[Migrated]
    problems: list[Problem]
    notes: Sequence[str]
    files: Sequence[ChangedFile] = ()
    program: MigratedProgram | None = None


def migrate(
    paths: Sequence[str] = (),
    *,
    to: Form = "claims",
    mps_memory: int = 0,
    output: Path | None = None,
    is_shown: bool = True,
    tell: Callable[[str], None] = lambda _: None,
    warn: Warn = lambda _: None,
    **options: Unpack[MigrationOptions],
) -> Migration:
    """Migrate every object in files and programs, or what lives in a cluster. Nothing is written.

    Args:
        paths: Files, folders, Pulumi programs and kustomizations; `-` is standard input. Without any, what lives in the cluster.
        to: `claims`, `components` for a Pulumi program of them, or `bridge` for classes that serve the resources of pods as they are.
        mps_memory: Memory of a GPU that pods of a workload share under MPS, in MiB; 0 shares none.
        output: The folder that the result will be written to; what an earlier run wrote there is no input.
        is_shown: Whether the text of files is shown or written. Where it is not, a program is migrated with its secrets.
        tell: Called with what is being done, for a progress line.
        warn: Called with warnings about the input before it is migrated.
        options: The cluster, and what the device plugin offers there.

    Raises:
        ProblemsError: `plugin-config-malformed`, `workload-kind-malformed`, `file-unreadable`.
        FleetError: `hardware-not-known`, and the codes of `read_snapshot` and `load_fleet`.
        ClusterError: When nothing of a cluster can be read.
        InvalidSpecError: For a minor, gate or driver release that there is not.
        ProgramError: The codes of `read_inputs`.
    """
    with collector_paused():
        question = _read_question(paths, output, mps_memory, tell, warn, options)
        inputs, settings, target = question.inputs, question.settings, question.target
        tell(f"migrating {len(inputs.sources):,} objects")
        is_written = output is not None or to == "components"
        migrated, others = _convert(question, to, is_written=is_written, is_shown=is_shown)
        migrated = find_replaced(inputs.sources, migrated, settings.kinds) if to == "claims" else migrated
        tell("writing")
        done = _write(question, migrated, others, to=to, kubernetes=options.get("kubernetes"))
        migrated = done.migrated
        manifests = [each.manifest for each in inputs.sources]
        judged = judge(
            manifests, migrated, others, target, question.driver, question.classes, kinds=settings.kinds
        )
        # Patches, kustomizations, settings and objects that controllers make are not applied, so they are not placed.
        manifests = [each for index, each in enumerate(manifests) if index not in others]
        files = [_file_of(each) for index, each in enumerate(inputs.sources) if index not in others]
        applied = [each for index, each in enumerate(migrated) if index not in others]
        placement, planned = _try_result(question, manifests, applied, files, tell=tell, options=options)
    notes = _find_notes(inputs, done, applied, placement, settings)
    if output is not None and to != "components":
        notes += _note_on_made_up_names(manifests)
    report = replace(
        _report(question, migrated, judged, _find_provenance(question, placement, planned)),
        notes=[*notes, *question.notes],
        plan=plan_to_data(planned) if planned else None,
        problems=done.problems,
        not_seen=inputs.not_seen,
    )
    return Migration(
        report=report,
        files=done.files,
        program=done.program,
        plan=planned,
        placement=placement,
        skipped=inputs.skipped,
    )


def _read_question(
    paths: Sequence[str],
    output: Path | None,
    mps_memory: int,
    tell: Callable[[str], None],
    warn: Warn,
    options: MigrationOptions,
) -> _Question:
    target = ClusterTarget(kubernetes=options.get("kubernetes"), gates=options.get("gates", {}))
    driver = driver_of_options(options)
    no_shares = find_why_no_shares(target, driver)
    tell("reading")
    known = load_workload_kinds(kinds) if (kinds := options.get("kinds")) else workload_kinds()
    cluster, inputs = _read(paths, output, known, tell, warn, options)
    served = find_plugin(
        options.get("plugin_config"),
        options.get("mig_profile"),
        cluster,
        inputs.sources,
        whole_gpus=options.get("whole_gpus", False),
    )
    settings = Settings(
        plugin=served.plugin,
        say_plugin=served.hint,
        no_shares=no_shares,
        mps_memory=mps_memory,
        intel_shares=find_intel_shares([each.manifest for each in inputs.sources]),
        kinds=known,
    )
    classes = [each.to_manifest() for each in cluster.fleet.classes] if cluster is not None else []
    return _Question(inputs, cluster, classes, settings, served.notes, target, driver)


def _convert(
    question: _Question, to: Form, *, is_written: bool, is_shown: bool
) -> tuple[list[Migrated], frozenset[int]]:
    """Return what becomes of each object, and the positions of those that are not applied as they are."""
    sources = question.inputs.sources
    settings = question.settings
    others = frozenset[int]()
    if to == "bridge":
        shipped = read_pins(question.driver).classes.values()
        migrated = bridge_classes([each.manifest for each in sources], settings, question.classes, shipped)
    else:
        migrated, others = migrate_sources(sources, settings, question.inputs.patches)
    if is_written or is_shown:
        # Where nothing is written, a program that is migrated passes with its secrets.
        migrated = mark_unwritten(sources, migrated, is_written=is_written)
    return migrated, others


def _find_provenance(question: _Question, placement: Placement | None, planned: Plan | None) -> Provenance:
    releases = question.target.releases
    is_placed = placement is not None or planned is not None
    return Provenance.of(
        releases,
        driver=question.driver,
        fleet=placement.fleet if placement is not None else None,
        placement=releases[-1] if is_placed else None,
    )


def _try_result(
    question: _Question,
    manifests: Sequence[Mapping[str, Any]],
    migrated: Sequence[Migrated],
    files: Sequence[str],
    *,
    tell: Callable[[str], None],
    options: MigrationOptions,
) -> tuple[Placement | None, Plan | None]:
    """Return where the result is placed, or the plan of its cut-over, where one of them is asked for."""
    fleet = options.get("fleet")
    settings = question.settings
    target = question.target
    if options.get("plan"):
        tell("planning the cut-over")
        plan = plan_cut_over(
            manifests,
            migrated,
            settings,
            fleet=fleet,
            cluster=question.cluster,
            release=target.releases[-1],
            driver=question.driver,
            namespaces=options.get("namespaces", ()),
            files=files,
        )
        return None, plan
    if fleet is None:
        return None, None
    tell(f"placing on {fleet}")
    return _place(migrated, fleet, target, question.driver, settings.kinds), None


def _file_of(source: SourceObject) -> str:
    """Return the file that has an object and is written; empty for standard input and for what a program or a cluster has."""
    return "" if source.is_made or source.file == "-" else source.file


def _find_notes(
    inputs: Inputs,
    done: _Written,
    migrated: Sequence[Migrated],
    placement: Placement | None,
    settings: Settings,
) -> list[str]:
    """Return lines on the migration as a whole."""
    notes = [*(f"not seen: {each}" for each in inputs.not_seen), *done.notes]
    notes += describe(placement, brief=True) if placement is not None else ()
    codes = {remark.code for each in migrated for remark in each.remarks}
    if settings.mps_memory and "mps-replicas" not in codes:
        notes.append("--mps-memory had no effect: no pod asks for a replica under MPS")
    return notes


def _note_on_made_up_names(manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    made_up = [name_of(each) for each in manifests if is_name_made_up(each)]
    if not made_up:
        return []
    why = "Pulumi makes them up in each run; write others before you apply the files"
    return [f"no server takes {join_words(dict.fromkeys(made_up))} as names: {why}"]


def _read(
    paths: Sequence[str],
    output: Path | None,
    known: WorkloadKinds,
    tell: Callable[[str], None],
    warn: Warn,
    options: MigrationOptions,
) -> tuple[Snapshot | None, Inputs]:
    """Read the input, and the cluster of a snapshot or a kubeconfig."""
    making = making_of(options, warn)
    files = read_inputs(paths, sys.stdin.buffer, making, output) if paths else None
    kubeconfig, context = options.get("kubeconfig"), options.get("context")
    live = None
    if kubeconfig or context:
        live = LiveCluster(
            kubeconfig=kubeconfig,
            context=context,
            namespaces=options.get("namespaces", ()),
            request_timeout=options.get("request_timeout"),
        )
    return read_cluster(files, options.get("snapshot"), live, known, tell, warn)


def driver_of_options(options: MigrationOptions) -> str:
    """Return the releases of the drivers that a migration is checked for, and that a fleet by name publishes."""
    return options.get("driver") or NEWEST_DRIVER


def making_of(options: MigrationOptions, warn: Warn = lambda _: None) -> Making:
    """Return how programs and kustomizations among the input become objects.

    Args:
        options: The options of the migration.
        warn: Called with warnings about settings.
    """
    config, kubernetes = options.get("config", {}), options.get("kubernetes")
    given = {KUBERNETES_SETTING: kubernetes, DRIVER_SETTING: options.get("driver")}
    config = {**config, **{name: value for name, value in given.items() if value}}
    config = with_gates(config, options.get("gates", {}))
    timeout = options.get("timeout", DEFAULT_TIMEOUT)
    return Making(options.get("source"), options.get("stack"), config, timeout, warn)


def _place(
    migrated: Sequence[Migrated],
    fleet: str,
    target: ClusterTarget,
    driver: str,
    kinds: WorkloadKinds,
) -> Placement:
    """Place what a migration made on a fleet, all workloads together."""
    end = time.monotonic() + _SECONDS
    version = target.kubernetes or target.releases[-1].minor
    scene = Scene.of_manifests(
        [each for one in migrated for each in (one.manifest, *one.added) if each is not None],
        fleet=load_fleet(fleet, kubernetes=version, driver=driver),
        kubernetes=version,
        gates=target.gates,
        driver=driver,
        kinds=kinds,
    )
    return place_scene(scene, is_late=lambda: time.monotonic() > end)


def _write(
    question: _Question,
    migrated: list[Migrated],
    others: frozenset[int],
    *,
    to: str,
    kubernetes: str | None,
) -> _Written:
    """Files, or the program, of what was migrated; no program where objects could not be read."""
    sources, problems = question.inputs.sources, question.inputs.problems
    cluster = question.cluster
    kinds = question.settings.kinds
    if to != "components":
        files, notes, kept = rewrite_files(sources, migrated)
        return _Written(migrated, [*problems, *kept], notes, files=files)
    # What is there twice would be made twice.
    problems = [replace(each, severity="error") if each.code == TWICE else each for each in problems]
    codes = {remark.code for each in migrated for remark in each.remarks}
    # A key that stands twice is read all the same; of all else something is missing.
    if any(each.code != REPEATED for each in problems) or NOT_WRITTEN in codes:
        return _Written(migrated, problems, [])
    # Loads the components, which the other forms do without.
    from dra_infra.answers.migrated_program import program_of

    running = [*cluster.objects, *cluster.fleet.to_manifests()] if cluster is not None else []
    # What a controller made goes with what it is of, and of a whole cluster most has nothing to do with devices.
    same = {index for index, each in enumerate(sources) if migrated[index].manifest is each.manifest}
    beside = find_beside([each.manifest for each in sources]) & same
    left_out = {
        index
        for index, (each, done) in enumerate(zip(sources, migrated, strict=True))
        if index in beside or (each.is_made and is_without_devices(each.manifest, done, kinds))
    }.difference(others)
    once = {index for index in same - left_out if runs_once(sources[index].manifest)}
    gone = others | left_out | once
    in_program = [
        replace(each, manifest=None) if index in gone else each for index, each in enumerate(migrated)
    ]
    urns = [each.urn for each in sources]
    given = [each.manifest for each in sources]
    program = program_of(in_program, given, running, kubernetes, urns, question.target)
    # The program leaves these objects out, and the report still lists them.
    both = zip(program.migrated, migrated, strict=True)
    result = [replace(made, manifest=each.manifest) for made, each in both]
    documents = sum(is_no_object(each.manifest) for each in sources)
    absent = (documents, "document", "without apiVersion and kind"), (len(left_out), "object", _BESIDE)
    notes = [
        f"{count_of(number, word)} {which} {'is' if number == 1 else 'are'} not in it"
        for number, word, which in absent
        if number
    ]
    for index in sorted(others):
        manifest = sources[index].manifest
        if not (is_no_object(manifest) or migrated[index].remarks or migrated[index].manifest is None):
            why = is_part(manifest) or "it is not an object to apply"
            notes.append(f"{title_of(sources[index])} is not in it: {why}")
    if once:
        names = join_words(reference_to(sources[index].manifest) for index in sorted(once))
        notes.append(f"not in it, for Pulumi would replace what runs: {names}; a program can make the next")
    return _Written(result, [*problems, *program.problems], [*program.notes, *notes], program=program)


def find_why_no_shares(target: ClusterTarget, driver: str) -> str:
    """Say why pods cannot share a GPU by claims on a cluster with a driver release; empty where they can."""
    gate, of_driver = _SHARES
    release = next((each for each in target.releases if not each.enabled(gate)), None)
    if release is not None:
        return f"Kubernetes {release.minor} has the gate {gate} off, so a device belongs to one claim"
    line = read_pins(driver).releases["gpu.nvidia.com"].line
    has_gate = of_driver in gates_of(line)
    return "" if has_gate else f"driver {line} has no {of_driver}, so a GPU belongs to one claim"


def why_no_bridge(target: ClusterTarget) -> str:
    """Say why no class can serve an extended resource on a cluster; empty where one can."""
    if target.releases[-1].enabled(_BRIDGE):
        return ""
    off = f"Kubernetes {target.releases[-1].minor} has the gate {_BRIDGE} off, so that a class serves no resource there"
    return f"{off}; --gate {_BRIDGE}=true where it is on"


def _report(
    question: _Question,
    migrated: Sequence[Migrated],
    problems: Sequence[Sequence[Problem]],
    provenance: Provenance,
) -> Report:
    entries = [
        Entry(
            name=title_of(source),
            place=source.start,
            remarks=tell_once(done.remarks),
            is_changed=done.manifest is not source.manifest or bool(done.added),
            added=[str(reference_to(each)) for each in done.added],
            problems=found,
        )
        for source, done, found in zip(question.inputs.sources, migrated, problems, strict=True)
        if done.remarks or done.added or found
    ]
    return Report(
        entries=entries,
        others=len(question.inputs.sources) - len(entries),
        kubernetes=[each.minor for each in question.target.releases],
        provenance=provenance,
    )
