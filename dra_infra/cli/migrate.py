"""The `dra-infra migrate` command: reads what people have, and writes claims with a loss report."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from dra_infra.advice.objects import reference_to
from dra_infra.catalog import load_fleet
from dra_infra.catalog.driver_gates import gates_of
from dra_infra.catalog.drivers import read_pins
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.catalog.workload_kinds import load_workload_kinds
from dra_infra.cli.cut_over import plan_cut_over
from dra_infra.cli.migrate_inputs import (
    Making,
    find_places,
    find_plugin,
    not_written,
    read_cluster,
    read_inputs,
)
from dra_infra.cli.printing import (
    EXIT_NO_ANSWER,
    NO_ROOM,
    print_problems,
    progress,
    put_in_place,
    say,
    write_output,
    write_source,
)
from dra_infra.cli.simulate import describe
from dra_infra.cutover.plan import Plan
from dra_infra.cutover.texts import APPENDED, to_data, write_lines
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api.manifests import is_name_made_up, name_of
from dra_infra.kubernetes.api.quantity import Quantity
from dra_infra.kubernetes.api.workload_kinds import WorkloadKinds
from dra_infra.migration.bridge import bridge_classes
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.migration.plugin_configs import find_intel_shares
from dra_infra.migration.report import RENDERERS, Entry, Report, judge, tell_once, write_text
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.scheduling import place
from dra_infra.process import collector_paused
from dra_infra.program.kustomizations import is_kustomization
from dra_infra.program.project import KUBERNETES_SETTING
from dra_infra.sources.cluster_objects import find_beside, is_without_devices, runs_once
from dra_infra.sources.files import TWICE, UNANSWERED, SourceObject
from dra_infra.sources.patches import is_no_object, migrate_sources, title_of
from dra_infra.sources.rewriting import NOT_WRITTEN, ChangedFile, diff_of, mark_unwritten, rewrite_files
from dra_infra.target import ClusterTarget

if TYPE_CHECKING:
    from dra_infra.cli.migrate_program import MigratedProgram

BACKUP: Final = ".orig"
"""The ending that the name of a kept file gets."""

_SECONDS: Final = 60.0
"""Seconds for which it is tried to place all that was migrated."""

_BESIDE: Final = "that controllers or charts made, or without devices,"
_NEW: Final = "a program is new, and goes to a folder: --output infra/"
_SHARES: Final = "DRAConsumableCapacity", "ConsumableShares"
"""The gates of Kubernetes and of the driver by which claims take shares of a GPU."""

_BRIDGE: Final = "DRAExtendedResource"
"""The gate by which a class serves an extended resource."""


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


def run(
    paths: Sequence[str],
    *,
    whole_gpus: bool,
    plugin_config: Path | None,
    mig_profile: str | None,
    mps_memory: str | None,
    snapshot: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    namespaces: Sequence[str],
    kinds: Path | None,
    fleet: str | None,
    to: str,
    plan: bool,
    kubernetes: str | None,
    gates: Mapping[str, bool],
    driver: str,
    source: str | None,
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    write: bool,
    output: Path | None,
    diff: bool,
    check: bool,
    form: str,
    as_json: bool,
) -> int:
    """Migrate every object in *paths*, or what lives in a cluster, and print the loss report.

    Raises:
        click.UsageError: When options exclude each other, or the target or driver release is none.
        ProblemsError: `plugin-config-malformed`, `workload-kind-malformed`, `file-unreadable`.
        FleetError: `hardware-not-known`, and the codes of `read_snapshot` and `load_fleet`.
        ClusterError: When nothing of a cluster can be read.
        ProgramError: `report-not-written`, and the codes of `read_inputs`.
        ScaffoldError: `files-differ`, `folder-not-usable`, with `--to components`.
    """
    form, to = "json" if as_json else form, "claims" if to == "yaml" else to
    config = {**config, KUBERNETES_SETTING: kubernetes} if kubernetes else config
    making = Making(source, stack, config, timeout)
    made = next(filter(making.makes, paths), "")
    held = f"what {made} makes" if made else "" if paths else "what lives in a cluster"
    is_live = bool(kubeconfig or context)
    no_nodes = "a plan is of nodes; add --context NAME, --snapshot FILE or --fleet 'hgx-h100 x 4'"
    files_of = ", or --source manifests to change the files of the kustomization"
    way = f"take --output FOLDER{files_of if made and is_kustomization(Path(made)) else ''}"
    is_read = output is not None and any(os.path.realpath(output) == os.path.realpath(each) for each in paths)
    elsewhere = "it is the input itself; name another folder"
    two = "a report on standard output and a diff are two outputs; run it once for each"
    said = (
        f"{'it' if mig_profile else 'the configuration'} says what nvidia.com/gpu is; leave --whole-gpus out"
    )
    of = "--mig-profile" if mig_profile else "--plugin-config"
    _refuse(
        ("PATH", not paths and not is_live, "name files, or the cluster that is read by --context NAME"),
        ("--namespace", namespaces and not is_live, "name the cluster that is read by --context NAME"),
        ("--snapshot", snapshot and is_live, "a cluster is read; leave --snapshot out"),
        ("--fleet", fleet is not None and is_live, "a cluster is read; leave --fleet out"),
        ("--diff", diff and form != "text", two),
        ("--write", write and to == "components", _NEW),
        ("--diff", diff and to == "components", _NEW),
        ("--write", write and output is not None, "--output writes elsewhere"),
        ("--write", write and "-" in paths, "standard input cannot be changed"),
        ("--write", write and held, f"{held} stands in no file that could be changed; {way}"),
        ("--output", is_read, elsewhere if held or to == "components" else f"{elsewhere}, or take --write"),
        ("--plan", plan and to != "claims", "only claims move workload by workload; leave --to out"),
        ("--plan", plan and fleet is None and not snapshot and not is_live, no_nodes),
        (of, whole_gpus and (mig_profile or plugin_config), said),
    )
    try:
        target = ClusterTarget(kubernetes=kubernetes, gates=gates)
        no_shares, memory = _why_no_shares(target, driver), _read_memory(mps_memory, to)
    except InvalidSpecError as error:
        raise click.BadParameter("\n".join(map(str, error.problems))) from error
    if to == "bridge" and not target.releases[-1].enabled(_BRIDGE):
        refusal = f"Kubernetes {target.releases[-1].minor} has the gate {_BRIDGE} off, so that a class serves no resource there"
        raise click.BadParameter(f"{refusal}; --gate {_BRIDGE}=true where it is on", param_hint="--to")
    with progress() as tell, collector_paused():
        tell("reading")
        known = load_workload_kinds(kinds) if kinds else None
        files = read_inputs(paths, sys.stdin.buffer, making, output) if paths else None
        account = (kubeconfig, context, namespaces) if is_live else None
        cluster, (sources, problems, patches, not_seen) = read_cluster(files, snapshot, account, known, tell)
        served = find_plugin(plugin_config, mig_profile, cluster, sources, whole_gpus=whole_gpus)
        manifests = [each.manifest for each in sources]
        settings = Settings(
            plugin=served.plugin,
            say_plugin=served.hint,
            no_shares=no_shares,
            mps_memory=memory,
            intel_shares=find_intel_shares(manifests),
            kinds=known,
        )
        tell(f"migrating {len(sources):,} objects")
        there = [each.to_manifest() for each in cluster.fleet.classes] if cluster is not None else []
        migrated, others = (
            (bridge_classes(manifests, settings, there, read_pins(driver).classes.values()), frozenset[int]())
            if to == "bridge"
            else migrate_sources(sources, settings, patches)
        )
        is_written = output is not None or to == "components"
        if is_written or diff or not check:
            # Where nothing is written, a program that is migrated passes with its secrets.
            migrated = mark_unwritten(sources, migrated, is_written=is_written)
        tell("writing")
        done = _write(
            sources, migrated, others, problems, to=to, cluster=cluster, kinds=known, kubernetes=kubernetes
        )
        migrated, problems = done.migrated, done.problems
        judged = judge(manifests, migrated, others, target, driver, there, known)
        report = _report(sources, migrated, judged, [each.minor for each in target.releases])
        # What nobody applies does not run, or is made by what does.
        manifests = [each for index, each in enumerate(manifests) if index not in others]
        migrated = [each for index, each in enumerate(migrated) if index not in others]
        results = [each for one in migrated for each in (one.manifest, *one.added) if each is not None]
        placement, planned, release = None, None, target.releases[-1]
        if plan:
            tell("planning the cut-over")
            planned = plan_cut_over(
                manifests,
                migrated,
                settings,
                fleet=fleet,
                cluster=cluster,
                release=release,
                driver=driver,
                namespaces=namespaces,
            )
        elif fleet is not None:
            tell(f"placing on {fleet}")
            end = time.monotonic() + _SECONDS
            chosen = load_fleet(fleet, kubernetes=release.minor, driver=driver)
            placement = place(
                results, chosen, release=release, is_late=lambda: time.monotonic() > end, kinds=known
            )
    placed = list(describe(placement, brief=True)) if placement is not None else []
    notes = [*(f"not seen: {each}" for each in not_seen), *done.notes, *placed]
    codes = {told.code for each in migrated for told in each.remarks}
    if settings.mps_memory and "mps-replicas" not in codes:
        notes.append("--mps-memory had no effect: no pod asks for a replica under MPS")
    made_up = [name_of(each) for each in manifests if is_name_made_up(each)]
    if made_up and output is not None and to != "components":
        why = "Pulumi makes them up in each run; write others before you apply the files"
        notes.append(f"no server takes {join_words(dict.fromkeys(made_up))} as names: {why}")
    notes += served.notes
    data = to_data(planned) if planned else None
    report = replace(report, notes=notes, plan=data, problems=problems, not_seen=not_seen)
    print_problems(problems, with_count=False)
    _print_report(report, planned, form)
    if to == "components":
        _put_program(done, output, is_printed=form == "text")
    else:
        _put_files(done.files, paths, write=write, output=output, diff=diff, form=form, check=check)
    if any(each.code in UNANSWERED for each in problems):
        return EXIT_NO_ANSWER
    fits = placement is None or placement.fits_count == len(placement.workloads)
    works = fits and (planned is None or planned.works) and (placement is None or placement.joint.works)
    has_errors = any(each.severity == "error" for each in problems)
    is_open = report.count("decide") or report.refused or has_errors or not works
    return 1 if is_open or (check and report.changed) else 0


def _refuse(*rows: tuple[str, object, str]) -> None:
    """Refuses the first option of which it is true that it does not go with the others."""
    for option, is_wrong, refusal in rows:
        if is_wrong:
            raise click.BadParameter(refusal, param_hint=option)


def _write(
    sources: Sequence[SourceObject],
    migrated: list[Migrated],
    others: frozenset[int],
    problems: list[Problem],
    *,
    to: str,
    cluster: Snapshot | None,
    kinds: WorkloadKinds | None,
    kubernetes: str | None,
) -> _Written:
    """Files, or the program, of what was migrated; no program where objects could not be read."""
    if to != "components":
        files, notes, kept = rewrite_files(sources, migrated)
        return _Written(migrated, [*problems, *kept], notes, files=files)
    # What is there twice would be made twice.
    problems = [replace(each, severity="error") if each.code == TWICE else each for each in problems]
    codes = {remark.code for each in migrated for remark in each.remarks}
    if problems or NOT_WRITTEN in codes:
        return _Written(migrated, problems, [])
    # Loads the components, which the other forms do without.
    from dra_infra.cli.migrate_program import program_of

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
    there = [replace(each, manifest=None) if index in gone else each for index, each in enumerate(migrated)]
    urns = [each.urn for each in sources]
    program = program_of(there, [each.manifest for each in sources], running, kubernetes, urns)
    # What nobody applies is not in the program, and is not gone.
    both = zip(program.migrated, migrated, strict=True)
    result = [replace(made, manifest=each.manifest) for made, each in both]
    documents = sum(is_no_object(each.manifest) for each in sources)
    absent = (documents, "document", "without apiVersion and kind"), (len(left_out), "object", _BESIDE)
    notes = [
        f"{count_of(number, word)} {which} {'is' if number == 1 else 'are'} not in it"
        for number, word, which in absent
        if number
    ]
    if once:
        names = join_words(reference_to(sources[index].manifest) for index in sorted(once))
        notes.append(f"not in it, for Pulumi would replace what runs: {names}; a program can make the next")
    return _Written(result, program.problems, [*program.notes, *notes], program=program)


def _put_program(done: _Written, output: Path | None, *, is_printed: bool) -> None:
    if done.program is None or done.problems:
        is_twice = any(each.code == TWICE for each in done.problems)
        say(f"no program was written, for it would {'have objects twice' if is_twice else 'lack objects'}")
    else:
        done.program.write(output, is_printed=is_printed)


def _put_files(
    files: Sequence[ChangedFile],
    paths: Sequence[str],
    *,
    write: bool,
    output: Path | None,
    diff: bool,
    form: str,
    check: bool,
) -> None:
    if diff:
        write_source(diff_of(files))
    elif form == "text" and "-" in paths and output is None:
        write_source("".join(each.after for each in files if each.name == "-"))
    if write or output is not None:
        _write_files([each for each in files if each.is_made or each.before != each.after], paths, output)
    elif files and form == "text" and "-" not in paths and not check:
        is_made = any(each.is_made for each in files)
        way = "--output FOLDER for what the objects look like" if is_made else "--write to change the files"
        say(f"nothing was written; add {way}{'' if diff else ', or --diff to see the change'}")


def _read_memory(amount: str | None, to: str) -> int:
    """The whole MiB of an amount; 0 for none."""
    if amount is None:
        return 0
    try:
        found = int(Quantity.parse(amount).value) >> 20
    except ValueError:
        found = 0
    refusal = "" if 0 < found < 2**31 else f"{amount[:40]!r} is no memory of a GPU; write 15360Mi"
    if to == "bridge":
        refusal = "a class gives whole devices, and no pods share one; leave --to bridge out"
    if refusal:
        raise click.BadParameter(refusal, param_hint="--mps-memory")
    return found


def _why_no_shares(target: ClusterTarget, driver: str) -> str:
    gate, of_driver = _SHARES
    release = next((each for each in target.releases if not each.enabled(gate)), None)
    if release is not None:
        return f"Kubernetes {release.minor} has the gate {gate} off, so a device belongs to one claim"
    line = read_pins(driver).releases["gpu.nvidia.com"].line
    has_gate = of_driver in gates_of(line)
    return "" if has_gate else f"driver {line} has no {of_driver}, so a GPU belongs to one claim"


def _report(
    sources: Sequence[SourceObject],
    migrated: Sequence[Migrated],
    problems: Sequence[Sequence[Problem]],
    minors: Sequence[str],
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
        for source, done, found in zip(sources, migrated, problems, strict=True)
        if done.remarks or done.added or found
    ]
    return Report(entries=entries, others=len(sources) - len(entries), kubernetes=minors)


def _print_report(report: Report, plan: Plan | None, form: str) -> None:
    mask = report_mask(secret_texts(os.environ))
    if form in RENDERERS:
        text = RENDERERS[form](report)
        write_output(mask.text(APPENDED[form](text, plan) if plan and form in APPENDED else text))
        return
    for line in (*write_text(report, mask.text), *(map(mask.text, write_lines(plan)) if plan else ())):
        say(line)


def _write_files(files: Sequence[ChangedFile], paths: Sequence[str], output: Path | None) -> None:
    places = find_places([each.name for each in files], paths, output)
    for file, each in zip(places, files, strict=True):
        made = [folder for folder in file.parents if not os.path.lexists(folder)]
        try:
            mode = None if each.is_made or each.name == "-" else Path(each.name).stat().st_mode & 0o777
            file.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(file):
                if file.read_bytes() == each.after.encode():
                    say(f"{file} is there already")
                    continue
                _keep(file)
            put_in_place(file, each.after.encode(), mode)
        except OSError as error:
            for folder in made:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            hint = "make room there" if error.errno in NO_ROOM else "name a folder that may be written to"
            message = f"{file} cannot be written: {error.strerror or error}"
            raise not_written(output, message, hint) from error
        say(f"wrote {file}")


def _keep(file: Path) -> None:
    """Keeps what the file holds beside it, under the first name that nothing else is kept under."""
    content, mode = file.read_bytes(), file.stat().st_mode & 0o777
    for number in itertools.count(1):
        kept = file.with_name(f"{file.name}{BACKUP}{f'.{number}' if number > 1 else ''}")
        if not os.path.lexists(kept):
            put_in_place(kept, content, mode)
            return
        if kept.is_file() and not kept.is_symlink() and kept.read_bytes() == content:
            return
