from __future__ import annotations

import base64
import hashlib
import itertools
import json
import random
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.codes import CODES
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import ObjectRef
from dra_infra.placement.placement import (
    DeviceChoice,
    JointVerdict,
    NodePlacement,
    Placement,
    Shortage,
    WorkloadPlacement,
)
from dra_infra.program_objects import ComponentRef, NotSeen, Program, ProgramObject
from dra_infra.review import html_report, render_html, review
from dra_infra.review.fleet_colors import OTHER

VOID = {"meta", "input", "line", "br"}


class Page(HTMLParser):
    """Collects tags and texts; fails on a tag that is closed out of order."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.open = []
        self.texts = []
        self.attributes = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


hostile = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</style>", "{{ 7 * 7 }}", "&lt;", "\u202e"]),
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(st.lists(hostile, min_size=1, max_size=4), hostile)
def test_hostile_texts_stay_texts(names, label):
    objects = tuple(
        ProgramObject(
            urn=f"urn:pulumi:s::p::kubernetes:core/v1:ConfigMap::{number}",
            manifest={
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name},
                "data": {name: name},
            },
            component=ComponentRef(name, name),
        )
        for number, name in enumerate(names)
    )
    problems = tuple(Problem(path=name, code=name, message=name, hint=name) for name in names)
    not_seen = tuple(NotSeen(what=name, name=name, reason=name) for name in names)
    base = Program(project=label, stack=label)
    head = Program(project=label, stack=label, objects=objects, problems=problems, not_seen=not_seen)
    page = Page(render_html(review(base, head, base_label=label)))
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]


def test_template_syntax_in_a_name_is_not_evaluated(make):
    text = render_html(review(make.program(), make.program(), base_label="{{ 7 * 7 }}"))
    assert "{{ 7 * 7 }}" in text


def test_the_page_loads_nothing(sample):
    text = render_html(sample)
    assert not re.search(r"\ssrc\s*=|@import|https?://|<link|fetch|XMLHttpRequest|import\(", text)
    assert set(re.findall(r"url\(([^)]*)\)", text)) == {"#hatch"}
    assert "default-src 'none'" in text


def test_each_code_links_to_its_meaning_at_the_end_of_the_page(make):
    problems = tuple(Problem(path="p", code=code, message="m") for code in ("job-replaced", "other-tool"))
    page = render_html(review(make.program(), make.program(problems=problems), base_label="main"))
    assert '<a href="#code-job-replaced">job-replaced</a>' in page
    meaning = page[page.index('<dt id="code-job-replaced">') :].partition("</dd>")[0]
    assert CODES["job-replaced"] in unescape(meaning)
    assert '<code class="code">other-tool</code>' in page


def test_links_lead_into_the_page(sample):
    page = Page(render_html(sample))
    ids = {value for name, value in page.attributes if name == "id"}
    targets = [value for name, value in page.attributes if name == "href"]
    assert targets
    assert {target.removeprefix("#") for target in targets} <= ids


def test_the_policy_names_the_hash_of_the_only_script(sample):
    text = render_html(sample)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text


def test_diffs_beyond_the_first_lines_are_data_that_nothing_in_them_can_end(make):
    hostile = "</script><!--<script>&\u2028"
    objects = [
        make.object("ConfigMap", f"c{index:03}", None, data={f"k{line:03}": hostile for line in range(100)})
        for index in range(60)
    ]
    text = render_html(review(make.program(), make.program(*objects), base_label="main"))
    (data,) = re.findall(r'<script type="application/json" id="diffs">(.*?)</script>', text)
    assert not set("<>&\u2028") & set(data)
    held = json.loads(data)
    changed = next(iter(held["diffs"].values()))
    assert [held["lines"][number] for number in changed][:2] == [
        ["add", "+apiVersion: v1"],
        ["add", "+kind: ConfigMap"],
    ]
    assert text.count("<pre") == html_report.INLINE_LINES // len(changed)
    assert text.count("data-diff=") == len(held["diffs"]) == 60 - text.count("<pre")


def test_diffs_that_have_no_room_are_said_to_be_left_out(make, monkeypatch):
    monkeypatch.setattr(html_report, "INLINE_LINES", 10)
    monkeypatch.setattr(html_report, "DATA_CHARACTERS", 500)
    objects = [
        make.object("ConfigMap", f"c{index}", None, data={f"k{index}": "v" * 200}) for index in range(4)
    ]
    text = render_html(review(make.program(), make.program(*objects), base_label="main"))
    assert text.count("This diff has no room on the page") == 2


def test_long_names_are_cut_and_say_so(make):
    long = make.object("ConfigMap", "x" * 1_000_000, None)
    text = render_html(review(make.program(), make.program(long), base_label="main"))
    assert "… (998,000 more characters)" in text
    assert len(text) < 100_000


def test_many_findings_and_workloads_are_folded(make):
    problems = tuple(Problem(path=f"p{index}", code="x", message="m") for index in range(60))
    placed = make.place(
        make.fleet(make.node("n", gpus=130)),
        *(("Job", f"j{index}", 1 + index, 1, "H100 80GB HBM3") for index in range(130)),
    )
    text = render_html(
        review(make.program(), make.program(problems=problems), base_label="main", after=placed)
    )
    assert "<summary>10 more problems</summary>" in text
    assert "<summary>30 more workloads that fail or are touched</summary>" in text
    assert "The JSON report has" not in text
    many = tuple(Problem(path=f"p{index:04}", code="x", message="m") for index in range(1_000))
    text = render_html(review(make.program(), make.program(problems=many), base_label="main"))
    assert "<summary>950 more problems</summary>" in text
    assert "The JSON report has 500 more problems." in text
    assert ("p0499" in text, "p0500" in text) == (True, False)


def test_a_row_opens_to_the_objects_of_a_pod_from_its_claim_to_its_node(make):
    wish = ("Job", "a", 1, 2, "H100 80GB HBM3")
    placed = make.place(make.fleet(make.node("n")), wish)
    page = render_html(review(make.program(), make.program(), base_label="main", after=placed))
    chain = page[page.index('<ol class="chain">') :].partition("</ol>")[0]
    parts = [" ".join(re.sub("<[^>]+>", " ", part).split()) for part in chain.split("<li>")[1:]]
    assert parts == [
        "pod of Job ml/a",
        "claim gpu of a , request gpu",
        "class gpu.nvidia.com",
        "devices gpu-0..1",
        "node n",
    ]


def test_workloads_with_equal_rows_share_one_that_opens_to_their_names(make):
    wishes = [("Job", f"j{index:02}", 1, 1, "H100 80GB HBM3") for index in range(45)]
    placed = make.place(make.fleet(make.node("n", gpus=64)), *wishes, ("Job", "two", 2, 1, "H100 80GB HBM3"))
    text = render_html(review(make.program(), make.program(), base_label="main", after=placed))
    section = text[text.index('<h2 id="placement">') : text.index('<h2 id="map">')]
    rows = re.findall(r'<tr role="row" class="new">(.*?)</tr>', section, re.DOTALL)
    assert len(rows) == 2
    assert "<summary>45 workloads of ml</summary>" in rows[0]
    names = rows[0].partition("</details>")[0]
    assert names.count("<li>") == 45
    assert ">ml/two<" in rows[1]


def test_the_verdict_on_all_workloads_together_comes_first_with_its_mark(make):
    problem = Problem(path="p", code="x", message="m")
    wishes = [("Job", name, 1, 1, "H100 80GB HBM3") for name in ("a", "b")]
    placed = make.place(make.fleet(make.node("n")), *wishes)
    page = render_html(
        review(make.program(), make.program(problems=(problem,)), base_label="main", after=placed)
    )
    assert page.index('<h2 id="together">') < page.index('<h2 id="problems">')
    verdict = page[page.index('<p class="verdict always">') :].partition("</p>")[0]
    assert "✓" in verdict
    assert verdict.endswith("fit in every order of arrival")
    assert '<a href="#together">' in page


def test_workloads_that_fit_as_before_are_folded_by_namespace_with_where_they_go(make, monkeypatch):
    wishes = [("Job", f"j{index:02}", 1, 1, "H100 80GB HBM3") for index in range(20)]
    fleet = make.fleet(make.node("n", gpus=20))
    before = make.place(fleet, *wishes)
    after = make.place(fleet, *wishes, ("Job", "new", 1, 1, "H100 80GB HBM3"))
    result = review(make.program(), make.program(), base_label="main", before=before, after=after)
    text = render_html(result)
    head, rest = text.split("<summary>ml: 20 workloads fit as before</summary>")
    assert (">ml/new<" in head, ">ml/j00<" in head) == (True, False)
    assert rest.count("80GB HBM3 only on n (gpu-0)") == 20
    monkeypatch.setattr(html_report, "MAX_UNCHANGED", 5)
    text = render_html(result)
    assert text.count('<tr><th scope="row"><span class="key') == 5
    assert "The JSON report has 15 more workloads." in text


def test_the_proof_that_all_never_fit_at_once_is_drawn(make):
    placed = make.place(
        make.fleet(make.node("n")), *(("Job", name, 1, 8, "H100 80GB HBM3") for name in ("a", "b"))
    )
    by = (("Job ml/a", 8), ("Job ml/b and 3 more", 32))
    short = Shortage(what="devices", asked=40, there=16, nodes=2, by=by)
    joint = JointVerdict(verdict="never", reasons=(str(short),), shortages=(short,))
    text = render_html(
        review(make.program(), make.program(), base_label="main", after=replace(placed, joint=joint))
    )
    section = text[text.index('<h2 id="together">') : text.index('<h2 id="map">')]
    assert "never fit at once: 40 devices asked (8 devices by Job ml/a, 32 devices by Job" in section
    assert re.findall(r'class="([a-z0-9]+)" x="(\d+)" y="0" width="(\d+)"', section) == [
        ("c0", "0", "8"),
        ("c8", "8", "32"),
        ("there", "0", "16"),
    ]
    assert re.findall(r"<span>(\d+ devices)</span>", section) == ["40 devices", "16 devices"]


def test_colours_can_be_read_on_and_told_from_the_page():
    css = (files("dra_infra.review") / "templates/review.css").read_text()
    schemes = css.split("@media (prefers-color-scheme: dark)")
    for scheme in schemes[:2]:
        colors = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", scheme.partition("* {")[0]))
        for number in range(OTHER + 1):
            fill = colors[f"c{number}"]
            # Letters of 11 and 13 px stand on them in white: WCAG 2.2 asks for 4.5 there, and for 3 of what is drawn.
            assert contrast(fill, "#ffffff") >= 4.5, fill
            assert contrast(fill, colors["card"]) >= 3, fill


def contrast(one, other):
    """The ratio of WCAG 2.2, from 1 to 21."""
    lights = []
    for color in (one, other):
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
        lights.append(
            sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
        )
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def a_large_review(make, nodes, workloads, pods):
    """Workloads in twelve namespaces with pods anywhere on the fleet, so that few nodes look the same; the last is new."""
    fleet = make.fleet(*(make.node(f"hgx-h100-{index:04}") for index in range(nodes)))
    all_nodes = tuple(NodePlacement(node=node.name, devices=device(node.name, "", 0)) for node in fleet.nodes)
    slots = random.Random(18).sample(range(8 * nodes), workloads * pods)  # noqa: S311
    placed = []
    for index in range(workloads):
        owner = ObjectRef(kind="Deployment", name=f"serve-{index:04}", namespace=f"team-{index % 12:02}")
        on = tuple(
            NodePlacement(
                node=f"hgx-h100-{slot // 8:04}",
                devices=device(f"hgx-h100-{slot // 8:04}", owner.name, slot % 8),
            )
            for slot in slots[index * pods :][:pods]
        )
        placed.append(
            WorkloadPlacement(
                owner=owner, replicas=pods, verdict="fits", nodes=all_nodes, more_pods=9_000, pods=on
            )
        )
    before, after = (Placement(fleet=fleet, workloads=tuple(placed[:end])) for end in (-1, workloads))
    return review(make.program(), make.program(), base_label="main", before=before, after=after)


def device(node, claim, number):
    return (
        DeviceChoice(
            entry="gpu",
            claim=claim,
            request="gpu",
            driver="gpu.nvidia.com",
            pool=node,
            device=f"gpu-{number}",
        ),
    )


def test_the_page_of_five_thousand_nodes_and_a_thousand_workloads_is_small(make):
    text = render_html(a_large_review(make, 5_000, 1_000, 10))
    page = Page(text)
    assert len(text.encode()) < 1_500_000
    # A browser lays 40,000 elements out in a second, and what is folded is not laid out at all.
    assert len(page.tags) < 12_000
    assert text.count("<i class=") > 2_000
    assert "5,000 nodes, 40,000 devices, 30,000 free" in text
    assert text.count('<tr><th scope="row"><span class="key') == 999


def test_headings_step_down_one_by_one(sample):
    levels = [int(tag[1]) for tag in Page(render_html(sample)).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_every_drawing_of_a_node_has_a_text_alternative(sample):
    page = Page(render_html(sample))
    alternatives = [
        value for name, value in page.attributes if name == "aria-label" and value.startswith("hgx-h100-0")
    ]
    assert alternatives == [
        "hgx-h100-0: of 8 devices 2 for Deployment ml/embed and 6 for Deployment ml/serve; 6 other than before"
    ]


def test_ids_are_unique(sample):
    ids = [value for name, value in Page(render_html(sample)).attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_hidden_characters_are_spelled_out(make):
    text = render_html(review(make.program(), make.program(), base_label="a\u202eb"))
    assert "\u202e" not in text
    assert "a\\u202eb" in text


@pytest.mark.parametrize("fleet", [False, True])
def test_an_empty_review_is_a_page_too(make, fleet):
    placed = make.place(make.fleet()) if fleet else None
    page = Page(render_html(review(make.program(), make.program(), base_label="main", after=placed)))
    assert "No object differs from main." in page.texts


def test_a_very_long_diff_is_cut_and_says_so(make):
    long = make.object("ConfigMap", "c", None, data={f"k{number:05}": "v" for number in range(3000)})
    assert "… 1,006 more lines" in render_html(review(make.program(), make.program(long), base_label="main"))
