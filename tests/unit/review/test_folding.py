from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.placement.placement import JointVerdict, Reason, Shortage
from dra_infra.review import render_html, render_json, render_markdown, render_text, review
from dra_infra.review.folding import MAX_NAMESPACES, fold, fold_unchanged, tell, tell_other_reasons
from tests.support.review.platforms import TEAMS, a_platform

CHANGED = {"train-009", "embed-006", "serve-012", "serve-020", "serve-040", "eval-011"}


@pytest.fixture(scope="module")
def platform():
    return a_platform(40, 40)


def test_what_fails_comes_first_then_what_changed_and_the_rest_is_counted_by_namespace(platform):
    shown, folded = fold_unchanged(platform)
    assert {each.owner.name for each in shown} == CHANGED
    assert [each.fits for each in shown[:2]] == [False, False]
    assert [each.namespace for each in folded] == sorted(TEAMS)
    assert sum(len(each.owners) for each in folded) == 41 - len(CHANGED)


def test_a_workload_whose_object_changes_is_shown_though_it_goes_where_it_went(platform):
    shown, _ = fold_unchanged(platform)
    assert [each.trend for each in shown if each.owner.name == "serve-012"] == ["same"]


def test_text_and_markdown_name_what_changed_and_count_the_rest(platform):
    for text in (render_text(platform), render_markdown(platform)):
        assert all(name in text for name in CHANGED)
        assert "train-005" not in text
        assert "ranking: 5 workloads fit as before" in text


def test_the_brief_form_has_no_diffs_and_nothing_that_stays(platform):
    text = render_text(platform, brief=True)
    comment = render_markdown(platform, brief=True)
    for told in (text, comment):
        assert all(name in told for name in CHANGED)
        assert "as before" not in told
        assert "image: registry" not in told
        assert "oom for one more claim" not in told
    assert text.splitlines()[0] == platform.verdict
    assert "[no-longer-fits]" in text
    assert len(text.splitlines()) < 40 < len(render_text(platform).splitlines())
    assert "<details>" not in comment


def test_the_json_report_has_every_workload(platform):
    assert render_json(platform).count('"morePods"') == 2 * 40


def test_more_changed_workloads_than_a_terminal_takes_are_counted(platform):
    one = next(each for each in platform.workloads if each.trend == "new")
    owners = [replace(one.owner, name=f"w{number}") for number in range(70)]
    workloads = [replace(one, owner=owner, summary=f"on {owner.name}") for owner in owners]
    text = render_text(replace(platform, workloads=tuple(workloads)))
    assert "… 10 more workloads that changed; the JSON report has them" in text
    assert ("w59" in text, "w60" in text) == (True, False)


def test_workloads_with_equal_answers_are_one_row_that_names_three_of_them(platform):
    one = next(each for each in platform.workloads if each.trend == "new")
    workloads = tuple(replace(one, owner=replace(one.owner, name=f"w{number:02}")) for number in range(45))
    kind, space = one.owner.kind, one.owner.namespace
    names = [f"{kind} {space}/w{number:02}" for number in range(3)]
    markdown = render_markdown(replace(platform, workloads=workloads))
    (row,) = [line for line in markdown.splitlines() if line.startswith("|") and "w00" in line]
    assert f"{', '.join(f'<code>{name}</code>' for name in names)} and 42 more |" in row
    text = " ".join(render_text(replace(platform, workloads=workloads)).split())
    assert text.count("w00") == 1
    assert re.search(r"w01.*w02.*and 42 more", text)


def test_one_workload_of_a_namespace_is_named_and_none_may_have_a_namespace():
    a, b, c = (ObjectRef(kind="Job", name=name, namespace=space) for name, space in ("ax", "bx", "cy"))
    bare = [replace(each, namespace="") for each in (a, b)]
    assert [*map(str, fold([c, b, a]))] == ["x: 2 workloads fit", "Job y/c fits"]
    assert [*map(str, fold(bare))] == ["2 workloads without a namespace fit"]


def test_namespaces_that_are_too_many_share_a_line():
    owners = [ObjectRef(kind="Job", name="j", namespace=f"n{index:02}") for index in range(43)]
    lines = [*tell(fold([*owners, replace(owners[42], name="k")]), " as before")]
    assert lines[-2:] == ["Job n39/j fits as before", "4 workloads of 3 more namespaces fit as before"]
    assert len(lines) == MAX_NAMESPACES + 1


def test_reasons_for_other_nodes_are_one_line_without_their_details():
    class_ = "selector #0 of class h100 matches none of 8 devices"
    reasons = (
        Reason(code="c", message="first"),
        Reason(code="c", message=f"{class_}: product is A100", nodes=75, example="a"),
        Reason(code="c", message="the node is cordoned", nodes=1, example="b"),
        Reason(code="c", message=f"{class_}: product is L40S", nodes=25, example="c"),
    )
    assert tell_other_reasons(reasons) == f"100 nodes: {class_}; 1 node: the node is cordoned"
    more = tuple(Reason(code="c", message=f"other {number}", nodes=1, example="n") for number in range(3))
    assert tell_other_reasons((*reasons, *more)).endswith("1 node: other 0; 2 more reasons")
    assert tell_other_reasons(reasons[:1]) == ""


def test_the_proof_that_all_at_once_never_fit_is_told_with_all_that_is_short(platform):
    after = platform.after
    assert after is not None
    fitting = tuple(each for each in after.workloads if each.verdict == "fits")
    cpu = Shortage(what="cpu", asked=930_000, there=640_000, nodes=10, by=(("Job ml/a", 930_000),))
    devices = Shortage(what="devices", asked=17, there=16, nodes=2)
    joint = JointVerdict(verdict="never", reasons=(str(devices),), shortages=(devices, cpu))
    never = replace(platform, after=replace(after, workloads=fitting, joint=joint))
    for told in (render_text(never), render_markdown(never)):
        assert "All at once: never fit at once: 17 devices asked" in told
        assert "also too little: 930 cpu asked (930 cpu by Job ml/a); 10 nodes can serve" in told
    assert "All at once" not in render_text(platform)
    short = replace(joint, shortages=(devices,))
    proved = replace(platform, after=replace(after, workloads=fitting, joint=short))
    for told in (render_text(proved), render_markdown(proved), render_markdown(proved, brief=True)):
        assert "All at once: never fit at once: 17 devices asked; 2 nodes can serve" in told


def test_the_label_team_of_workloads_is_known_and_has_a_colour(make):
    fleet = make.fleet(make.node("n", gpus=20))
    wishes = [("Job", f"j{index:02}", 1, 1, "H100 80GB HBM3") for index in range(12)]
    jobs = [make.workload("Job", name, make.pod_spec(template="t")) for _, name, *_ in wishes]
    for number, job in enumerate(jobs):
        job.manifest["metadata"]["labels"] = {"team": ("red", "blue")[number % 2]}
    program = make.program(*jobs)
    result = review(program, program, base_label="main", after=make.place(fleet, *wishes))
    assert [each.team for each in result.workloads] == ["red", "blue"] * 6
    text = render_html(result)
    assert "<span>every team</span>" in text
    assert [*re.findall(r"<span>(red|blue)</span> <small>(.*?)</small>", text)] == [
        ("blue", "6 workloads"),
        ("red", "6 workloads"),
    ]
