"""An upgrade as text, Markdown and JSON data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dra_infra.output.escaping import markdown, markdown_code
from dra_infra.output.report_data import to_data
from dra_infra.output.wording import count_of, shorten
from dra_infra.upgrades.differences import LEVELS, TITLES, Difference, Level, Upgrade

MARKS: Final = {"failed": "✗", "danger": "!", "ok": "✓"}
"""The sign that each grade starts with."""
MAX_DIFFERENCES: Final = 200
"""Differences of a level that text and Markdown show; the JSON report has all."""
_MAX_TEXT: Final = 600
"""Characters of one message or answer."""
_WHEN: Final = {"before": "Before the upgrade", "after": "The upgrade, and after it"}


def describe_title(upgrade: Upgrade) -> str:
    """Return what was compared: `quickstart/dev from Kubernetes 1.34 to 1.37`."""
    return f"{upgrade.subject} from Kubernetes {upgrade.before.minor} to {upgrade.after.minor}"


def describe_upgrade(upgrade: Upgrade) -> Iterator[str]:
    """Yield the report for a terminal, line by line."""
    yield f"{MARKS[upgrade.grade]} {upgrade.headline}: {describe_title(upgrade)}"
    yield from describe_differences(upgrade)
    number = 0
    for when, title in _WHEN.items():
        yield from ("", title)
        for step in upgrade.steps:
            if step.when == when:
                number += 1
                yield f"  {number}. {_short(step.what)}"
                if step.command:
                    yield f"     $ {step.command}"
    yield from ("", "Compared")
    for compared in upgrade.compared:
        yield f"  {compared.area}: {_short(compared.what)}"
    yield from ("", "Not compared, so nothing is said about it")
    for left_out in upgrade.not_compared:
        yield f"  {_short(str(left_out))}"
    yield from ("", upgrade.provenance.describe())


def describe_differences(upgrade: Upgrade, *, with_notes: bool = True) -> Iterator[str]:
    """Yield the differences for a terminal, the worst first.

    Args:
        upgrade: The upgrade.
        with_notes: Whether to list what is only good to know.
    """
    older, newer = upgrade.before.minor, upgrade.after.minor
    for level in LEVELS:
        differences = upgrade.of_level(level)
        if not differences or (level == "note" and not with_notes):
            continue
        yield from ("", TITLES[level])
        for each in differences[:MAX_DIFFERENCES]:
            place = f" ({each.place})" if each.place else ""
            head = f"  {_short(each.where)}{place}: {_short(each.message)}"
            if level == "note" and each.before and each.after:
                yield f"{head}: {_short(each.before)} → {_short(each.after)} [{each.code}]"
            else:
                yield f"{head} [{each.code}]"
                if each.before:
                    yield f"    {older}: {_short(each.before)}"
                if each.after:
                    yield f"    {newer}: {_short(each.after)}"
            if each.hint:
                yield f"    hint: {_short(each.hint)}"
        if (rest := len(differences) - MAX_DIFFERENCES) > 0:
            yield f"  the JSON report has {count_of(rest, 'more difference')}"


def render_markdown(upgrade: Upgrade) -> str:
    """Return the report as Markdown for a comment or a ticket."""
    lines = [
        f"### {MARKS[upgrade.grade]} {markdown(upgrade.headline)}",
        "",
        markdown(describe_title(upgrade)),
    ]
    for level in LEVELS:
        if items := _list_level(upgrade, level):
            lines += ["", f"**{TITLES[level]}**", "", *(f"- {item}" for item in items)]
    number = 0
    for when, title in _WHEN.items():
        lines += ["", f"**{title}**", ""]
        for step in upgrade.steps:
            if step.when == when:
                number += 1
                command = f" {markdown_code(step.command)}" if step.command else ""
                lines.append(f"{number}. {markdown(_short(step.what))}{command}")
    lines += ["", "**Compared**", ""]
    lines += [f"- {each.area}: {markdown(_short(each.what))}" for each in upgrade.compared]
    lines += ["", "**Not compared, so nothing is said about it**", ""]
    lines += [f"- {markdown(_short(str(each)))}" for each in upgrade.not_compared]
    provenance = upgrade.provenance.describe(plain=markdown, code=markdown_code)
    return "\n".join([*lines, "", f"<sub>{provenance}</sub>", ""])


def list_in_markdown(upgrade: Upgrade, *, with_notes: bool = True) -> Iterator[str]:
    """Yield the differences as items of one list, each with its level.

    Args:
        upgrade: The upgrade.
        with_notes: Whether to list what is only good to know.
    """
    for level in LEVELS:
        if level != "note" or with_notes:
            yield from (f"{TITLES[level]}: {item}" for item in _list_level(upgrade, level))


def _list_level(upgrade: Upgrade, level: Level) -> list[str]:
    differences = upgrade.of_level(level)
    items = [_in_markdown(each, upgrade) for each in differences[:MAX_DIFFERENCES]]
    rest = len(differences) - MAX_DIFFERENCES
    return [*items, f"the JSON report has {count_of(rest, 'more difference')}"] if rest > 0 else items


def _in_markdown(each: Difference, upgrade: Upgrade) -> str:
    text = (
        f"{markdown_code(_short(each.where))} {markdown(_short(each.message))} ({markdown_code(each.code)})"
    )
    answers = [
        f"{release.minor}: {markdown(_short(answer))}"
        for release, answer in ((upgrade.before, each.before), (upgrade.after, each.after))
        if answer
    ]
    text += f"<br>{'; '.join(answers)}" if answers else ""
    return f"{text}<br>{markdown(_short(each.hint))}" if each.hint else text


def make_data(upgrade: Upgrade) -> dict[str, Any]:
    """Return the upgrade as JSON data, without the name of a schema and the provenance; every key is always there."""
    return {
        "subject": upgrade.subject,
        "from": upgrade.before.minor,
        "to": upgrade.after.minor,
        "through": [each.minor for each in upgrade.through],
        "verdict": {"failed": "breaks", "danger": "changes", "ok": "same"}[upgrade.grade],
        "headline": upgrade.headline,
        "differences": [_difference(each) for each in upgrade.differences],
        "steps": [to_data(each) for each in upgrade.steps],
        "compared": [to_data(each) for each in upgrade.compared],
        "notCompared": [to_data(each) for each in upgrade.not_compared],
    }


def _difference(each: Difference) -> dict[str, Any]:
    data: dict[str, Any] = to_data(each)
    data["object"] = data.pop("subject")
    return data


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), _MAX_TEXT)
