"""A browser, axe-core, and pages to look at.

Without Chromium these tests are skipped, and say so; with `DRA_INFRA_BROWSER=required`, as CI sets it, they fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dra_infra.errors import Place, Problem
from dra_infra.kubernetes.api import ObjectRef
from dra_infra.placement.placement import JointVerdict, Shortage
from dra_infra.program_objects import ComponentRef, EngineMessage, NotSeen
from dra_infra.review import Review, render_html, review
from dra_infra.review.engine_steps import EngineOnly, EngineSide
from tests.e2e.page.browser import Browser, find_chromium
from tests.support.review.platforms import a_platform
from tests.unit.review import conftest as build
from tools import axe_core

HINT = "apt-get install chromium, or name one in $CHROMIUM"

HOSTILE = (
    "</script><script>document.title='hit'</script>",
    '"><img src=x onerror="document.title=\'hit\'">',
    "<!-- <script>",
    "{{ 7 * 7 }}",
    "a\u202eb\x1b[31m",
    "``` | @everyone #1",
    "x" * 1_000_000,
    "\ud800",
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_chromium()
    if program is None and os.environ.get("DRA_INFRA_BROWSER") == "required":
        pytest.fail(f"there is no Chromium: {HINT}", pytrace=False)
    if program is None:
        pytest.skip(f"NOT LOOKED AT: the page of reviews, for there is no Chromium: {HINT}")
    with Browser(program, tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="session")
def axe() -> str:
    return axe_core.script()


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Writes the page of one of `REVIEWS`, once."""
    folder = tmp_path_factory.mktemp("pages")

    def write(name: str) -> Path:
        file = folder / f"{name}.html"
        if not file.is_file():
            file.write_text(render_html(REVIEWS[name]()), encoding="utf-8")
        return file

    return write


def empty() -> Review:
    return review(build.a_program(), build.a_program(), base_label="main")


def hostile() -> Review:
    """Every text that comes from outside, in every place that shows one."""
    objects = [
        build.an_object(
            "ConfigMap",
            text,
            None,
            resource=f"r{number}",
            component=ComponentRef(text, text),
            data={text: text},
        )
        for number, text in enumerate(HOSTILE)
    ]
    problems = tuple(
        Problem(path=text, code=text, message=text, hint=text, place=Place(file=text)) for text in HOSTILE
    )
    not_seen = tuple(NotSeen(what=text, name=text, reason=text) for text in HOSTILE)
    head = build.a_program(*objects, problems=problems, not_seen=not_seen)
    fleet = build.a_fleet(*(build.a_node(text, "L40S", 2) for text in HOSTILE[:-1]), name=HOSTILE[0])
    placed = build.place_first_fit(fleet, *(("Job", text, 1, 1, "L40S") for text in HOSTILE))
    return review(build.a_program(), head, base_label=HOSTILE[0], before=None, after=placed)


def large(number: int = 5_000, nodes: int = 500) -> Review:
    """*number* objects that change, half of them claim templates, and the devices of *nodes* nodes."""

    def side(version: int) -> list[build.ProgramObject]:
        templates = [build.a_template(f"t{i}", f"t{i}-{version}", count=version) for i in range(number // 2)]
        servers = [
            build.a_workload(
                "Deployment", f"serve-{i}", build.pod_spec(template=f"t{i}-{version}"), replicas=2
            )
            for i in range(number // 2)
        ]
        return templates + servers

    fleet = build.a_fleet(*(build.a_node(f"hgx-h100-{i:03}") for i in range(nodes)))
    wishes = [("Deployment", f"serve-{i}", 2) for i in range(60)]
    before, after = (
        build.place_first_fit(fleet, *((*wish, count, build.H100) for wish in wishes)) for count in (1, 2)
    )
    return review(
        build.a_program(*side(1)), build.a_program(*side(2)), base_label="main", before=before, after=after
    )


def joined() -> Review:
    """The sample with what the real engine adds to it."""
    sample = build.a_sample()
    drifted = EngineOnly(
        why="drift",
        urn="urn:pulumi:dev::quickstart::kubernetes:core/v1:ConfigMap::drifted",
        type="kubernetes:core/v1:ConfigMap",
        name="drifted",
        ref=ObjectRef(kind="ConfigMap", name="drifted", namespace="ml"),
        steps=("refresh", "update"),
        paths=(("data." + "k" * 300, "update"),),
    )
    warning = EngineMessage(severity="warning", urn="", text="the provider is old")
    side = EngineSide(summary={"create": 3, "same": 9}, others=(drifted,), warnings=(warning,))
    first, *rest = sample.changes
    first = replace(first, steps=("delete-replaced", "replace", "create-replacement"))
    return replace(sample, engine=side, changes=(first, *rest), source="chart")


def never() -> Review:
    """Two jobs that fit, each by itself: what is short is drawn."""
    fleet = build.a_fleet(build.a_node("n"))
    placed = build.place_first_fit(fleet, *(("Job", name, 1, 8, build.H100) for name in ("a", "b")))
    by = (("Job ml/a", 8), ("Job ml/b", 8))
    devices = Shortage(what="devices", asked=16, there=8, nodes=1, by=by)
    cpu = Shortage(what="cpu", asked=930_000, there=640_000, nodes=1)
    joint = JointVerdict(verdict="never", reasons=(str(devices),), shortages=(devices, cpu))
    head = build.a_program(build.a_template("t", "t-1"))
    return review(build.a_program(), head, base_label="main", after=replace(placed, joint=joint))


REVIEWS: dict[str, Callable[[], Review]] = {
    "sample": build.a_sample,
    "empty": empty,
    "hostile": hostile,
    "joined": joined,
    "large": large,
    "never": never,
    "teams": lambda: a_platform(60, 40),
    "dense": lambda: a_platform(1_500, 500),
    "platform": lambda: a_platform(5_000, 1_000, pods=10),
}
