"""A review as one self-contained HTML page: no network, light and dark, readable without scripts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dra_infra.model.metadata import ObjectRef
from dra_infra.planning.embedded_diffs import embed_diffs
from dra_infra.planning.engine_steps import WORDS
from dra_infra.planning.fleet_map import COLORS, draw_fleet, letter_of
from dra_infra.planning.reviews import MARKS, Review
from dra_infra.planning.text_report import SIGNS
from dra_infra.planning.wording import count_of, shorten, show_hidden

MAX_FINDINGS: Final = 50
"""Problems, and dangers, that show at once; the rest is folded."""

MAX_WORKLOADS: Final = 100
"""Workloads that show at once; the rest is folded, for a browser lays a table out as a whole."""

MAX_FOLDED: Final = 450
"""Problems, dangers and workloads that are folded; nobody reads on after hundreds, and the JSON report has all."""

MAX_TEXT: Final = 2_000
"""Characters of one name or message; nobody reads a megabyte, and the JSON report has it."""


def render_html(review: Review) -> str:
    """The review as one page. Every text in it is escaped; nothing is loaded from anywhere.

    The only script that runs is the page's own: the security policy of the page names its hash.
    """
    owners = [workload.owner for workload in review.workloads]
    diffs = embed_diffs(review.changes)
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template("review.html.j2")
        .render(
            review=review,
            rooms=review.rooms,
            fleet_map=draw_fleet(review.before, review.after, owners) if review.after else None,
            letter_of=letter_of,
            letters={owner: position for position, owner in enumerate(owners)},
            positions=_positions(review),
            diffs=diffs,
            data=Markup(diffs.data),  # noqa: S704  (JSON in which nothing can end the element)
            script=Markup(script),  # noqa: S704  (our own file)
            digest=digest,
            marks=MARKS,
            signs=SIGNS,
            colors=COLORS,
            engine_words=WORDS,
            max_findings=MAX_FINDINGS,
            max_folded=MAX_FOLDED,
            max_workloads=MAX_WORKLOADS,
        )
    )


def _positions(review: Review) -> Mapping[str | ObjectRef, int]:
    """Where an object is among the changes, by itself and by what a problem calls it."""
    positions: dict[str | ObjectRef, int] = {}
    for position, change in enumerate(review.changes):
        positions[change.ref] = position
        positions[str(change.ref)] = position
    return positions


@cache
def _script() -> str:
    return (files("dra_infra.planning") / "templates/review.js").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dra_infra.planning"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_show,
    )
    environment.filters["count_of"] = count_of
    environment.filters["trim_verdict"] = _trim_verdict
    return environment


def _trim_verdict(summary: str) -> str:
    # The badge beside it says so already.
    return summary.removeprefix("does not fit: ").removeprefix("not decided: ")


def _show(value: Any) -> Any:
    # Whatever a template prints is a name or a message of somebody: no hidden character gets onto the page.
    return value if isinstance(value, (Markup, int, float)) else show_hidden(shorten(str(value), MAX_TEXT))
