"""The table of autoscalers in docs/fleets.md, made of the data."""

from __future__ import annotations

from typing import Final

from dra_infra.catalog.autoscalers import FEATURES, Autoscaler, AutoscalerRelease, autoscalers

BEGIN: Final = "<!-- autoscalers: begin, made of the data by tests/contract/test_autoscalers_page.py -->\n"
END: Final = "<!-- autoscalers: end -->\n"
_CLAIMS: Final = {"always": "yes", "setting": "off as it comes", "never": "no", "not-known": "not known"}
_GROWS: Final = {"grows": "grows", "does-not-grow": "does not grow", "not-known": "not known"}


def write_table() -> str:
    """The rows of all releases, then where the facts come from."""
    head = "| Autoscaler | Version | Considers claims | From 0 nodes | From 1 node | Needs | Understands | Does not understand |\n"
    rows = [_row(each, number) for each in autoscalers().values() for number in range(len(each.releases))]
    sources = [
        f"- {each.title} {_span(each, number)}: {release.source}.\n"
        for each in autoscalers().values()
        for number, release in enumerate(each.releases)
    ]
    return f"{head}| --- | --- | --- | --- | --- | --- | --- | --- |\n{''.join(rows)}\nSources:\n\n{''.join(sources)}"


def _row(each: Autoscaler, number: int) -> str:
    release = each.releases[number]
    states = [_GROWS[release.state_of(now, template=each.template)] for now in (0, 1)]
    cells = [
        f"{each.title}, `{each.name}`",
        _span(each, number),
        _CLAIMS[release.claims],
        *states,
        "; ".join(_needs(release)) or "-",
        _features(release, "yes"),
        _features(release, "no"),
    ]
    return f"| {' | '.join(cells)} |\n"


def _span(each: Autoscaler, number: int) -> str:
    later = each.releases[number + 1].since if number + 1 < len(each.releases) else ""
    release = each.releases[number]
    read = f", read up to {release.read}" if release.read else ""
    if release.since:
        return f"from {release.since}{f', before {later}' if later else read}"
    return f"before {later}" if later else f"all{read}"


def _needs(release: AutoscalerRelease) -> list[str]:
    setting = [f"`{release.setting.line}`"] if release.setting is not None else []
    mark = [f"from 0 nodes `{release.mark.line}`"] if release.mark is not None else []
    template = [f"selectors read only {', '.join(release.attributes)}"] if release.attributes else []
    drivers = [f"only devices of {', '.join(release.drivers)}"] if release.drivers else []
    return [*setting, *mark, *template, *drivers]


def _features(release: AutoscalerRelease, answer: str) -> str:
    found = [what for name, what in FEATURES.items() if release.features.get(name) == answer]
    return ", ".join(found) or "-"
