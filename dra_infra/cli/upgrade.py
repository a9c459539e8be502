"""The `dra-infra upgrade` command: says what changes for objects, pods and devices between two releases of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Unpack

from dra_infra.answers.upgrading import UpgradeOptions, read_upgrade, upgrade
from dra_infra.cli.printing import print_problems, progress, write_lines, write_output
from dra_infra.cli.reports import inputs_of, plan_reports, text_of, write_reports
from dra_infra.output.escaping import json_text
from dra_infra.output.report_data import make_report
from dra_infra.review.upgrade_page import render_upgrade_page
from dra_infra.upgrades.differences import FailOn, Upgrade
from dra_infra.upgrades.reports import describe_upgrade, make_data, render_markdown

_FORMS: Final[Mapping[str, Callable[[Upgrade], str]]] = {
    "html": render_upgrade_page,
    "json": lambda found: f"{json_text(_to_data(found))}\n",
    "markdown": render_markdown,
    "text": lambda found: text_of(describe_upgrade(found)),
}


def _to_data(found: Upgrade) -> dict[str, object]:
    return make_report("upgrade", {**make_data(found), "provenance": found.provenance.to_json()})


def run(
    path: Path | None,
    *,
    older: str,
    newer: str,
    timeout: float,
    fail_on: FailOn,
    form: str,
    files: Sequence[Path] = (),
    **options: Unpack[UpgradeOptions],
) -> int:
    """Print what changes between two releases; 1 when something changes that *fail_on* names, or anything worse.

    Raises:
        FleetError: When a fleet, snapshot or prices cannot be read.
        ProgramError: When there is no program, or it fails.
        InvalidSpecError: For a release or gate that there is not, and `upgrade-order` for a downgrade.
        click.BadParameter: For a file of a report whose name says no form.
    """
    if path is None and options.get("snapshot") is None:
        path = Path()
    given = (options.get("fleet"), options.get("snapshot"), options.get("prices"), options.get("kinds"))
    inputs = inputs_of(path, *given)
    reports = plan_reports(files, tuple(_FORMS), inputs)
    with progress() as tell:
        tell("reading")
        scenes = read_upgrade(path, older=older, newer=newer, timeout=timeout, **options)
        answer = upgrade(scenes, timeout=timeout, tell=tell)
    print_problems(scenes.before.warnings)
    write_reports(reports, lambda each: _FORMS[each](answer), inputs)
    if form == "text":
        write_lines(describe_upgrade(answer))
    else:
        write_output(_FORMS[form](answer))
    return 1 if answer.is_blocked(fail_on) else 0
