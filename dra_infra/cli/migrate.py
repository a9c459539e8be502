"""The `dra-infra migrate` command: reads what people have, and writes claims with a loss report."""

from __future__ import annotations

import difflib
import os
import sys
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from dra_infra.advice.objects import check_objects, reference_to
from dra_infra.catalog import load_fleet
from dra_infra.catalog.driver_gates import gates_of
from dra_infra.catalog.drivers import read_pins
from dra_infra.cli.cut_over import check_options, plan_cut_over
from dra_infra.cli.migrate_inputs import NO_ANSWER, Making, read_inputs
from dra_infra.cli.printing import (
    EXIT_NO_ANSWER,
    print_problems,
    progress,
    put_in_place,
    say,
    write_output,
)
from dra_infra.cli.settings import read_snapshot
from dra_infra.cli.simulate import describe
from dra_infra.cutover.plan import Plan
from dra_infra.cutover.texts import APPENDED, to_data, write_lines
from dra_infra.documents.yaml import write_manifests
from dra_infra.errors import InvalidSpecError, Place, Problem, ProblemsError, ProgramError
from dra_infra.migration.bridge import bridge_classes
from dra_infra.migration.device_plugin import DevicePlugin, read_node_labels
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.migration.plugin_configs import PluginConfigs, read_plugin_configs
from dra_infra.migration.report import RENDERERS, Entry, Report, write_text
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.output.wording import count_of
from dra_infra.placement.placement import Placement
from dra_infra.placement.scheduling import place
from dra_infra.process import collector_paused
from dra_infra.program.project import KUBERNETES_SETTING
from dra_infra.sources.files import SourceObject, read_sources
from dra_infra.sources.patches import is_no_object, migrate_sources
from dra_infra.sources.rewriting import Replacement, rewrite
from dra_infra.target import ClusterTarget

if TYPE_CHECKING:
    from dra_infra.cli.migrate_program import MigratedProgram

BACKUP: Final = ".orig"
"""The ending that the name of a kept file gets."""

_SECONDS: Final = 60.0
"""Seconds for which it is tried to place all that was migrated."""

_SHARES: Final = "DRAConsumableCapacity", "ConsumableShares"
"""The gates of Kubernetes and of the driver by which claims take shares of a GPU."""


class _File(NamedTuple):
    """A file before and after; one of objects that are made is there after alone."""

    name: str
    before: str
    after: str
    is_made: bool = False


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
    files: Sequence[_File] = ()
    program: MigratedProgram | None = None


def run(
    paths: Sequence[str],
    *,
    whole_gpus: bool,
    plugin_config: Path | None,
    mig_profile: str | None,
    snapshot: Path | None,
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
    """Migrate every object in *paths*, and print the loss report.

    Raises:
        click.BadParameter: When options exclude each other, or the target or driver release is none.
        ProblemsError: `plugin-config-malformed`, `file-unreadable`.
        FleetError: `hardware-not-known`, and the codes of `read_snapshot` and `load_fleet`.
        ProgramError: `report-not-written`, and the codes of `read_inputs`.
        ScaffoldError: `files-differ`, `folder-not-usable`, with `--to components`.
    """
    form = "json" if as_json else form
    _check_ways(paths, to=to, write=write, diff=diff, output=output)
    config = {**config, KUBERNETES_SETTING: kubernetes} if kubernetes else config
    making = Making(source, stack, config, timeout)
    if write:
        making.check_write(paths)
    check_options(plan=plan, to=to, fleet=fleet, snapshot=snapshot)
    try:
        target = ClusterTarget(kubernetes=kubernetes, gates=gates)
        settings = Settings(
            plugin=_find_plugin(plugin_config, mig_profile, snapshot, whole_gpus=whole_gpus),
            no_shares=_why_no_shares(target, driver),
        )
    except InvalidSpecError as error:
        raise click.BadParameter("\n".join(map(str, error.problems))) from error
    with progress() as tell, collector_paused():
        tell("reading")
        sources, problems, patches = read_inputs(paths, sys.stdin.buffer, making)
        tell(f"migrating {len(sources):,} objects")
        manifests = [each.manifest for each in sources]
        migrated, others = (
            (bridge_classes(manifests, settings), frozenset[int]())
            if to == "bridge"
            else migrate_sources(sources, settings, patches)
        )
        tell("writing")
        done = _write(sources, migrated, others, problems, to=to, snapshot=snapshot)
        migrated, problems = done.migrated, done.problems
        report = _report(sources, migrated, target, driver)
        # What nobody applies does not run, or is made by what does.
        manifests = [each for index, each in enumerate(manifests) if index not in others]
        migrated = [each for index, each in enumerate(migrated) if index not in others]
        results = [each for one in migrated for each in (one.manifest, *one.added) if each is not None]
        placement = planned = None
        if plan:
            tell("planning the cut-over")
            planned = plan_cut_over(
                manifests,
                migrated,
                plugin=settings.plugin,
                fleet=fleet,
                snapshot=snapshot,
                release=target.releases[-1],
                driver=driver,
            )
        elif fleet is not None:
            tell(f"placing on {fleet}")
            end = time.monotonic() + _SECONDS
            chosen = load_fleet(fleet, kubernetes=target.releases[-1].minor, driver=driver)
            placement = place(
                results, chosen, release=target.releases[-1], is_late=lambda: time.monotonic() > end
            )
    placed = list(describe(placement, brief=True)) if placement is not None else []
    report = replace(report, notes=(*done.notes, *placed), plan=to_data(planned) if planned else None)
    print_problems(problems, with_count=False)
    _print_report(report, planned, form)
    if to == "components":
        _put_program(done, output, is_printed=form == "text")
    else:
        _put_files(done.files, paths, write=write, output=output, diff=diff, form=form, check=check)
    if any(each.code in NO_ANSWER for each in problems):
        return EXIT_NO_ANSWER
    works = _fits(placement) and (planned is None or planned.works)
    has_errors = any(each.severity == "error" for each in problems)
    is_open = report.count("decide") or report.refused or has_errors or not works
    return 1 if is_open or (check and report.changed) else 0


def _check_ways(paths: Sequence[str], *, to: str, write: bool, diff: bool, output: Path | None) -> None:
    if to == "components" and (write or diff):
        refusal = "a program is new, and goes to a folder: --output infra/"
        raise click.BadParameter(refusal, param_hint="--write" if write else "--diff")
    if write and (output is not None or "-" in paths):
        refusal = "standard input cannot be changed, and --output writes elsewhere"
        raise click.BadParameter(refusal, param_hint="--write")


def _write(
    sources: Sequence[SourceObject],
    migrated: list[Migrated],
    others: Container[int],
    problems: list[Problem],
    *,
    to: str,
    snapshot: Path | None,
) -> _Written:
    """Files, or the program, of what was migrated; no program where objects could not be read."""
    if to != "components":
        files, notes, kept = _rewrite_files(sources, migrated)
        return _Written(migrated, [*problems, *kept], notes, files=files)
    if problems:
        return _Written(migrated, problems, [])
    # Loads the components, which the other forms do without.
    from dra_infra.cli.migrate_program import program_of

    cluster = read_snapshot(snapshot) if snapshot is not None else None
    running = [*cluster.objects, *cluster.fleet.to_manifests()] if cluster is not None else []
    program = program_of(
        [replace(each, manifest=None) if index in others else each for index, each in enumerate(migrated)],
        running,
    )
    # What nobody applies is not in the program, and is not gone.
    result = [
        replace(made, manifest=each.manifest) for made, each in zip(program.migrated, migrated, strict=True)
    ]
    notes = program.notes
    if documents := sum(is_no_object(each.manifest) for each in sources):
        verb = "is" if documents == 1 else "are"
        notes = [*notes, f"{count_of(documents, 'document')} without apiVersion and kind {verb} not in it"]
    return _Written(result, program.problems, notes, program=program)


def _put_program(done: _Written, output: Path | None, *, is_printed: bool) -> None:
    if done.program is None or done.problems:
        say("no program was written, for it would lack objects")
    else:
        done.program.write(output, is_printed=is_printed)


def _put_files(
    files: Sequence[_File],
    paths: Sequence[str],
    *,
    write: bool,
    output: Path | None,
    diff: bool,
    form: str,
    check: bool,
) -> None:
    if diff:
        write_output(_diff(files))
    elif form == "text" and "-" in paths and output is None:
        write_output("".join(each.after for each in files if each.name == "-"))
    if write or output is not None:
        _write_files([each for each in files if each.is_made or each.before != each.after], output)
    elif files and form == "text" and "-" not in paths and not check:
        way = (
            "--output FOLDER for what the objects look like"
            if any(each.is_made for each in files)
            else "--write to change the files"
        )
        say(f"nothing was written; add {way}, or --diff to see the change")


def _fits(placement: Placement | None) -> bool:
    if placement is None:
        return True
    return bool(placement.fits_count == len(placement.workloads) and placement.joint.works)


def _find_plugin(
    plugin_config: Path | None, mig_profile: str | None, snapshot: Path | None, *, whole_gpus: bool
) -> DevicePlugin | None:
    given = [
        name for name, value in (("--whole-gpus", whole_gpus), ("--plugin-config", plugin_config)) if value
    ]
    if len(given) > 1:
        refusal = "the plugin's configuration says what nvidia.com/gpu is; leave --whole-gpus out"
        raise click.BadParameter(refusal, param_hint="--plugin-config")
    plugin = DevicePlugin() if whole_gpus else None
    if plugin is None and (plugin_config or snapshot):
        nodes = [] if snapshot is None else [node.labels for node in read_snapshot(snapshot).fleet.nodes]
        plugin = _read_config(plugin_config).serve(nodes) if plugin_config else read_node_labels(nodes)
    if mig_profile:
        plugin = replace(plugin or DevicePlugin(), strategy="single", profiles=(mig_profile,), unclear="")
    return plugin


def _read_config(file: Path) -> PluginConfigs:
    found = next(read_sources([str(file)], sys.stdin.buffer), None)
    if isinstance(found, Problem):
        raise ProblemsError([found])
    return read_plugin_configs(None if found is None else found.manifest, file=str(file))


def _why_no_shares(target: ClusterTarget, driver: str) -> str:
    gate, of_driver = _SHARES
    release = next((each for each in target.releases if not each.enabled(gate)), None)
    if release is not None:
        return f"Kubernetes {release.minor} has the gate {gate} off, so a device belongs to one claim"
    line = read_pins(driver).releases["gpu.nvidia.com"].line
    return (
        ""
        if of_driver in gates_of(line)
        else f"driver {line} has no {of_driver}, so a GPU belongs to one claim"
    )


def _report(
    sources: Sequence[SourceObject], migrated: Sequence[Migrated], target: ClusterTarget, driver: str
) -> Report:
    entries: list[Entry] = []
    results = [
        each
        for source, done in zip(sources, migrated, strict=True)
        for each in ((done.manifest, *done.added) if done.manifest is not source.manifest else done.added)
        if each is not None
    ]
    refused: dict[int, list[Problem]] = {}
    for index, problem in check_objects(results, target, driver=driver):
        refused.setdefault(id(results[index]), []).append(problem)
    for source, done in zip(sources, migrated, strict=True):
        if not done.remarks and not done.added:
            continue
        mine = [each for each in (done.manifest, *done.added) if each is not None]
        entries.append(
            Entry(
                name=str(reference_to(source.manifest))
                if source.manifest.get("kind")
                else "values of a chart",
                place=source.start,
                remarks=done.remarks,
                is_changed=done.manifest is not source.manifest or bool(done.added),
                added=[str(reference_to(each)) for each in done.added],
                problems=[problem for each in mine for problem in refused.get(id(each), ())],
            )
        )
    minors = [each.minor for each in target.releases]
    return Report(entries=entries, others=len(sources) - len(entries), kubernetes=minors)


def _rewrite_files(
    sources: Sequence[SourceObject], migrated: Sequence[Migrated]
) -> tuple[list[_File], list[str], list[Problem]]:
    """Each file before and after, a line for each document that lost its comments, and what could not be rewritten."""
    by_file: dict[str, list[Replacement]] = {}
    for source, done in zip(sources, migrated, strict=True):
        by_file.setdefault(source.file, []).append(Replacement(source, done.manifest, done.added))
    files: list[_File] = []
    notes: list[str] = []
    kept: list[Problem] = []
    for name, replacements in by_file.items():
        if replacements[0].source.is_made:
            files.append(_made_file(name, replacements))
            continue
        if all(each.manifest is each.source.manifest and not each.added for each in replacements):
            if name == "-":
                text = _whole(replacements)
                files.append(_File(name, text, text))
            continue
        before = _whole(replacements)
        rewritten = rewrite(before, replacements)
        files.append(_File(name, before, rewritten.text))
        kept += [_not_rewritten(name, line) for line in rewritten.kept]
        notes += [
            f"{Place(file=name, line=line + 1)}: written anew, without its comments: it has anchors or merged keys"
            for line in rewritten.anew
        ]
    return files, notes, kept


def _made_file(name: str, replacements: Sequence[Replacement]) -> _File:
    before = write_manifests(each.source.manifest for each in replacements)
    results = [
        manifest for each in replacements for manifest in (each.manifest, *each.added) if manifest is not None
    ]
    return _File(name, before, write_manifests(results), is_made=True)


def _not_rewritten(file: str, line: int) -> Problem:
    return Problem(
        path="document",
        code="document-not-rewritten",
        message="it stays as it is, for what follows it before the next --- is not YAML",
        hint="mend what is not YAML, or write --- in front of it, and migrate again",
        place=Place(file=file, line=line + 1),
    )


def _whole(replacements: Sequence[Replacement]) -> str:
    return replacements[0].source.document.whole


def _print_report(report: Report, plan: Plan | None, form: str) -> None:
    mask = report_mask(secret_texts(os.environ))
    if form in RENDERERS:
        text = RENDERERS[form](report)
        write_output(mask.text(APPENDED[form](text, plan) if plan and form in APPENDED else text))
        return
    for line in (*write_text(report), *(write_lines(plan) if plan else ())):
        say(mask.text(line))


def _diff(files: Sequence[_File]) -> str:
    return "".join(_diff_lines(files))


def _diff_lines(files: Sequence[_File]) -> Iterator[str]:
    for each in files:
        lines = difflib.unified_diff(
            each.before.splitlines(keepends=True),
            each.after.splitlines(keepends=True),
            f"a/{each.name}",
            f"b/{each.name}",
        )
        for line in lines:
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _write_files(files: Sequence[_File], output: Path | None) -> None:
    for each in files:
        file = Path(each.name)
        try:
            if output is not None:
                # Below the folder whatever the path says: no `..` leads out of it.
                file = output.joinpath(*(part for part in file.parts if part not in ("..", file.anchor)))
                file.parent.mkdir(parents=True, exist_ok=True)
            else:
                backup = file.with_name(f"{file.name}{BACKUP}")
                if not backup.exists():
                    put_in_place(backup, each.before.encode())
            put_in_place(file, each.after.encode())
        except OSError as error:
            message = f"{file} cannot be written: {error.strerror or error}"
            hint = "name a folder that may be written to"
            raise ProgramError(
                [Problem(path="--write", code="report-not-written", message=message, hint=hint)]
            ) from error
        say(f"wrote {file}")
