"""The `dra-infra migrate` command: prints the loss report of a migration, and writes its claims."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, Unpack

import click

from dra_infra.answers.migrating import (
    Form,
    Migration,
    MigrationOptions,
    driver_of_options,
    find_why_no_shares,
    making_of,
    migrate,
    why_no_bridge,
)
from dra_infra.catalog.vocabulary import mig_profiles
from dra_infra.cli.init import nearest_name
from dra_infra.cli.init_project import files_of_program, write_whole
from dra_infra.cli.migrate_files import write_files
from dra_infra.cli.printing import print_not_seen, print_problems, progress, say, write_output, write_source
from dra_infra.cutover.plan import Plan
from dra_infra.cutover.texts import APPENDED, write_lines
from dra_infra.errors import InvalidSpecError, ScaffoldError
from dra_infra.kubernetes.api import Quantity
from dra_infra.migration.report import RENDERERS, Report, write_text
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.output.wording import nearest
from dra_infra.program.kustomizations import is_kustomization
from dra_infra.sources.rewriting import ChangedFile, diff_of
from dra_infra.target import ClusterTarget

_NEW: Final = "a program is new, and goes to a folder: --output infra/"
_DESCRIPTION: Final = "Objects of a cluster, as components where they can be"


def run(
    paths: Sequence[str],
    *,
    to: Form | Literal["yaml"],
    mps_memory: str | None,
    write: bool,
    output: Path | None,
    diff: bool,
    check: bool,
    form: str,
    **options: Unpack[MigrationOptions],
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
    to = "claims" if to == "yaml" else to
    _refuse_pairs(paths, to=to, write=write, output=output, diff=diff, form=form, options=options)
    memory = _read_memory(mps_memory, to)
    with progress() as tell:
        migration = migrate(
            paths,
            to=to,
            mps_memory=memory,
            output=output,
            is_shown=diff or not check,
            tell=tell,
            warn=partial(print_problems, with_count=False),
            **options,
        )
    print_not_seen(migration.skipped)
    print_problems(migration.report.problems, with_count=False)
    _print_report(migration.report, migration.plan, form)
    if to == "components":
        _put_program(migration, output, is_printed=form == "text")
    else:
        _put_files(migration.files, paths, write=write, output=output, diff=diff, form=form, check=check)
    return migration.exit_code(check=check)


def _refuse_pairs(
    paths: Sequence[str],
    *,
    to: str,
    write: bool,
    output: Path | None,
    diff: bool,
    form: str,
    options: MigrationOptions,
) -> None:
    """Refuse options that do not go together, and a target or driver release that there is not."""
    mig_profile, plugin_config = options.get("mig_profile"), options.get("plugin_config")
    snapshot, fleet, plan = options.get("snapshot"), options.get("fleet"), options.get("plan")
    made = next(filter(making_of(options).makes, paths), "")
    held = "" if paths else "what lives in a cluster"
    if made:
        held = f"what {made} makes"
    is_live = bool(options.get("kubeconfig") or options.get("context"))
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
        (
            "--namespace",
            options.get("namespaces") and not is_live,
            "name the cluster that is read by --context NAME",
        ),
        ("--snapshot", snapshot and is_live, "a cluster is read; leave --snapshot out"),
        ("--fleet", fleet is not None and is_live, "a cluster is read; leave --fleet out"),
        ("--diff", diff and form != "text", two),
        ("--write", write and to == "components", _NEW),
        ("--diff", diff and to == "components", _NEW),
        ("--write", write and output is not None, "--output writes elsewhere"),
        ("--write", write and "-" in paths, "standard input cannot be changed"),
        ("--write", write and held, f"{held} stands in no file that could be changed; {way}"),
        ("--output", is_read, elsewhere if held or to == "components" else f"{elsewhere}, or take --write"),
        (
            "--plan",
            plan and to != "claims",
            "only claims move workload by workload; leave --to out",
        ),
        ("--plan", plan and fleet is None and not snapshot and not is_live, no_nodes),
        (of, options.get("whole_gpus") and (mig_profile or plugin_config), said),
    )
    try:
        target = ClusterTarget(kubernetes=options.get("kubernetes"), gates=options.get("gates", {}))
        find_why_no_shares(target, driver_of_options(options))
    except InvalidSpecError as error:
        raise click.BadParameter("\n".join(map(str, error.problems))) from error
    if to == "bridge":
        _refuse(("--to", refusal := why_no_bridge(target), refusal))
    if mig_profile and mig_profile not in mig_profiles():
        near = nearest(mig_profile, mig_profiles())
        meant = f"did you mean {near!r}?" if near else "`dra-infra catalog mig` lists the profiles"
        raise click.BadParameter(
            f"no GPU that is known here has {mig_profile!r}; {meant}", param_hint="--mig-profile"
        )


def _refuse(*rows: tuple[str, object, str]) -> None:
    """Refuses the first option of which it is true that it does not go with the others."""
    for option, is_wrong, refusal in rows:
        if is_wrong:
            raise click.BadParameter(refusal, param_hint=option)


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


def _print_report(report: Report, plan: Plan | None, form: str) -> None:
    mask = report_mask(secret_texts(os.environ))
    if form in RENDERERS:
        text = RENDERERS[form](report)
        write_output(mask.text(APPENDED[form](text, plan) if plan and form in APPENDED else text))
        return
    for line in (*write_text(report, mask.text), *(map(mask.text, write_lines(plan)) if plan else ())):
        say(line)


def _put_program(migration: Migration, output: Path | None, *, is_printed: bool) -> None:
    problems = migration.report.problems
    if migration.program is None or any(each.severity == "error" for each in problems):
        lacks = "have objects twice" if migration.has_duplicates else "lack objects"
        say(f"no program was written, for it would {lacks}")
    elif output is not None:
        _write_project(migration.program.text, output)
    elif is_printed:
        write_output(migration.program.text)


def _write_project(program: str, output: Path) -> None:
    """Write the project of a program to a folder.

    Raises:
        ScaffoldError: `files-differ`, `folder-not-usable`; then nothing is changed.
    """
    root = Path(os.path.abspath(output))  # noqa: PTH100  (resolve() would follow links that the user named)
    files = files_of_program(root, name=nearest_name(root.name), description=_DESCRIPTION, program=program)
    try:
        written = write_whole(files, force=False, root=root)
    except ScaffoldError as error:
        # There is no --force here.
        hint = "name another folder"
        differ = (
            replace(each, hint=hint) if each.code == "files-differ" else each for each in error.problems
        )
        raise ScaffoldError(list(differ)) from error
    for path in written.new:
        say(f"wrote {os.path.relpath(path)}")
    if not written.new:
        say("all of it is there already; nothing was written")


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
        write_files([each for each in files if each.is_made or each.before != each.after], paths, output)
    elif files and form == "text" and "-" not in paths and not check:
        is_made = any(each.is_made for each in files)
        way = "--output FOLDER for what the objects look like" if is_made else "--write to change the files"
        say(f"nothing was written; add {way}{'' if diff else ', or --diff to see the change'}")
