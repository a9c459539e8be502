from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dra_infra.answers.reviewing import compare
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.errors import Problem
from dra_infra.placement.placement import JointVerdict, Order, Shortage
from dra_infra.placement.running import Running
from dra_infra.program_objects import SECRET, UNKNOWN, NotSeen
from dra_infra.review import render_html, render_json, render_markdown, render_text, review
from dra_infra.review.reviews import HowMade

H100 = "H100 80GB HBM3"
PROBLEM = Problem(path="GpuClaim", code="count-below-one", message="0 is below 1")


@pytest.fixture
def fleet(make):
    return make.fleet(make.node("n0"), make.node("n1"), name="hgx-h100 x 2")


def test_equal_programs_are_fine(make, fleet):
    job = make.workload("Job", "train", make.pod_spec())
    placed = make.place(fleet, ("Job", "train", 1, 4, H100))
    result = review(make.program(job), make.program(job), base_label="main", before=placed, after=placed)
    assert result.verdict == "✓ no problems · 1 of 1 workload fits on hgx-h100 x 2"
    assert result.summary == "nothing changes"
    assert (result.failed, result.changes, result.unchanged) == (False, (), 1)


def test_what_a_head_with_errors_does_not_make_is_not_called_deleted(make, fleet):
    job = make.workload("Job", "train", make.pod_spec(template="t-1"))
    placed = make.place(fleet, ("Job", "train", 1, 4, H100)), make.place(fleet)
    sides = make.program(job), replace(make.program(), problems=(PROBLEM,))
    asked = {"base_label": "main", "before": placed[0], "after": placed[1]}
    assert [each.code for each in review(*sides, **asked).dangers] == ["workload-deleted"]
    result = review(*sides, **asked, made=HowMade(is_whole=False))
    assert result.verdict == "✗ 1 problem"
    assert (result.summary, result.dangers, result.workloads) == ("deletions not known, 0 unchanged", (), ())
    assert [(each.what, each.name) for each in result.not_known] == [("deletion of", "Job ml/train")]


def test_without_a_fleet_nothing_is_said_about_fitting(make):
    result = review(make.program(), make.program(), base_label="main")
    assert result.verdict == "✓ no problems"


def test_pods_that_nobody_placed_are_told_in_the_verdict(make):
    asking = make.program(make.workload("Job", "train", make.pod_spec(template="t-1")))
    result = review(asking, asking, base_label="main")
    assert result.verdict == "✓ no problems · not placed: no fleet named"
    assert any('--fleet "hgx-h100 x 4"' in note for note in result.notes)
    result = review(
        asking, asking, base_label="main", running=Running.of(Snapshot(fleet=make.fleet()), asking)
    )
    assert result.verdict == "✓ no problems · not placed: the snapshot has no nodes"


@pytest.mark.parametrize(
    ("resource", "asks"),
    [
        ("nvidia.com/gpu", True),
        ("deviceclass.resource.kubernetes.io/h100", True),
        ("cpu", False),
        ("example.kubernetes.io/thing", False),
    ],
)
def test_pods_with_an_extended_resource_are_told_as_not_placed_where_no_fleet_is_named(make, resource, asks):
    spec = make.pod_spec()
    spec["containers"][0]["resources"] = {"limits": {resource: 9}}
    head = make.program(make.pod("plain", spec))
    assert review(head, head, base_label="main").unplaced == ("no fleet named" if asks else "")


def test_a_danger_does_not_fail_a_review(make):
    sides = [make.program(make.workload("Job", "a", make.pod_spec(image=image))) for image in "xy"]
    result = review(*sides, base_label="main")
    assert (result.failed, result.verdict) == (False, "! no problems, 1 danger")


def test_a_problem_of_the_head_fails_a_review(make):
    result = review(make.program(), make.program(problems=(PROBLEM,)), base_label="main")
    assert (result.failed, result.verdict) == (True, "✗ 1 problem")


def test_a_warning_does_not_fail_a_review(make):
    warning = replace(PROBLEM, severity="warning")
    result = review(make.program(), make.program(problems=(warning,)), base_label="main")
    assert (result.failed, result.verdict) == (False, "✓ no problems, 1 warning")


def test_problems_of_the_base_alone_are_a_note(make):
    result = review(make.program(problems=(PROBLEM,)), make.program(), base_label="main")
    assert (result.failed, len(result.notes)) == (False, 1)


def test_a_workload_that_no_longer_fits_fails_a_review(make, fleet):
    before, after = make.place(fleet, ("Job", "a", 1, 8, H100)), make.place(fleet, ("Job", "a", 3, 8, H100))
    result = review(make.program(), make.program(), base_label="main", before=before, after=after)
    assert (result.failed, result.verdict) == (True, "✗ 1 problem · 0 of 1 workload fits on hgx-h100 x 2")


def test_a_workload_that_never_fitted_does_not_fail_a_review(make, fleet):
    placed = make.place(fleet, ("Job", "a", 3, 8, H100))
    result = review(make.program(), make.program(), base_label="main", before=placed, after=placed)
    assert result.failed is False


def test_what_is_not_decided_is_counted_and_does_not_fail(make, fleet):
    placed = make.place(fleet, ("Job", "a", 1, 1, H100), ("Job", "b", 1, 1, H100))
    undecided = replace(
        placed, workloads=(placed.workloads[0], replace(placed.workloads[1], verdict="not-decided", nodes=()))
    )
    result = review(make.program(), make.program(), base_label="main", after=undecided)
    assert result.verdict == "? no problems · 1 of 2 workloads fit on hgx-h100 x 2, 1 not decided"
    assert result.grade == "undecided"
    assert [result.is_blocked(level) for level in ("problem", "undecided", "danger")] == [False, True, True]


def test_a_change_that_the_server_refuses_fails_a_review(make):
    base, head = make.program(make.claim("pair", "pair")), make.program(make.claim("pair", "pair", count=2))
    assert review(base, head, base_label="main").verdict == "✗ 1 problem"


def names_not_known(result):
    return [(item.what, item.name) for item in result.not_known]


def test_what_was_not_seen_is_listed_once(make):
    seen = NotSeen(what="StackReference", name="net/prod", reason="another stack")
    result = review(make.program(not_seen=(seen,)), make.program(not_seen=(seen,)), base_label="main")
    assert result.not_known == (seen,)


@pytest.mark.parametrize(("marker", "what"), [(SECRET, "secret values"), (UNKNOWN, "values known after up")])
def test_masked_values_are_said_to_be_masked(make, marker, what):
    holder = make.program(make.object("Secret", "token", None, stringData={"a": marker}))
    assert names_not_known(review(holder, holder, base_label="main")) == [(what, "in Secret ml/token")]


def test_what_the_placement_leaves_out_is_named(make, fleet):
    placed = make.place(fleet, ("Job", "a", 1, 1, H100), unmodelled=("spec.affinity",))
    result = review(make.program(), make.program(), base_label="main", after=placed)
    assert names_not_known(result) == [("placement of", "Job ml/a")]
    assert "spec.affinity" in result.not_known[0].reason


def review_jointly(make, fleet, joint, *, before=None):
    jobs = ("Job", "a", 2, 8, H100), ("Job", "b", 2, 8, H100)
    sides = {"after": make.place(fleet, *jobs, joint=joint)}
    if before:
        sides["before"] = make.place(fleet, *jobs, joint=before)
    return review(make.program(), make.program(), base_label="main", **sides)


def test_workloads_that_never_fit_at_once_fail_a_review_unless_they_never_did(make, fleet):
    first = review_jointly(make, fleet, "never", before="always")
    assert [(problem.path, problem.code) for problem in first.problems] == [
        ("all workloads", "never-fit-at-once")
    ]
    assert first.is_blocked()
    assert first.fit.endswith("2 of 2 workloads fit on hgx-h100 x 2, never all at once")
    assert not review_jointly(make, fleet, "never", before="never").is_blocked()


def test_an_order_that_leaves_pods_pending_is_a_danger_once(make, fleet):
    first = review_jointly(make, fleet, "depends-on-order", before="always")
    assert [(danger.code, str(danger.who)) for danger in first.dangers] == [("crowded-out", "Job ml/b")]
    assert first.dangers[0].message == "fits alone, and 2 of its pods are left pending if others come first"
    assert not first.is_blocked()
    assert review_jointly(make, fleet, "depends-on-order", before="depends-on-order").dangers == ()


def test_a_quota_that_refuses_pods_is_to_be_raised_and_no_node_added(make, fleet):
    jobs = ("Job", "a", 2, 8, H100), ("Job", "b", 2, 8, H100)
    placed = make.place(fleet, *jobs, joint="never")
    refusal = "Job ml/b gets 0 of 2 pods beside the others: ResourceQuota ml/team allows 2 of pods"
    after = replace(placed, joint=JointVerdict(verdict="never", reasons=(refusal,)))
    (problem,) = review(make.program(), make.program(), base_label="main", after=after).problems
    assert problem.code == "never-fit-at-once"
    assert "raise the quota" in problem.hint
    (problem,) = review(make.program(), make.program(), base_label="main", after=placed).problems
    assert "add nodes" in problem.hint


def told_of_more(make, fleet, joint, **verdict):
    """Dangers where the second of two Jobs is new, and not all found room before."""
    a = ("Job", "a", 2, 8, H100)
    b = ("Job", "b", 2, 8, H100)
    before, after = make.place(fleet, a, joint=joint), make.place(fleet, a, b, joint=joint)
    after = replace(after, joint=replace(after.joint, **verdict))
    found = review(make.program(), make.program(), base_label="main", before=before, after=after)
    assert not found.is_blocked()
    again = review(make.program(), make.program(), base_label="main", before=after, after=after)
    assert again.dangers == ()
    return [(each.code, str(each.who)) for each in found.dangers]


SHORT = Shortage(what="devices", asked=32, there=16, nodes=2, by=(("Job ml/a", 16), ("Job ml/b", 16)))


def test_who_asks_for_more_where_pods_were_left_pending_before_is_told(make, fleet):
    assert told_of_more(make, fleet, "depends-on-order") == [("crowded-out", "Job ml/b")]
    assert told_of_more(make, fleet, "never", shortages=(SHORT,)) == [("crowded-out", "Job ml/b")]
    beside = replace(SHORT, by=(("Job ml/a", 32),), beside=("Job ml/b",))
    assert told_of_more(make, fleet, "never", shortages=(beside,)) == [("crowded-out", "Job ml/b")]


def test_who_asks_for_more_beside_one_whose_pods_fit_nowhere_is_not_told(make, fleet):
    assert told_of_more(make, fleet, "never", reasons=("no node takes a pod of Job ml/a",)) == []


def test_no_known_order_for_all_fails_a_review_unless_there_was_none_before(make, fleet):
    first = review_jointly(make, fleet, "not-decided", before="always")
    assert [(problem.path, problem.code) for problem in first.problems] == [
        ("all workloads", "not-decided-at-once")
    ]
    assert first.is_blocked()
    for before in ("not-decided", "never"):
        later = review_jointly(make, fleet, "not-decided", before=before)
        assert [later.is_blocked(level) for level in ("problem", "undecided")] == [False, True]


def test_an_order_that_works_leaves_undecided_whether_others_do(make, fleet):
    jobs = ("Job", "a", 2, 8, H100), ("Job", "b", 2, 8, H100)
    placed = make.place(fleet, *jobs, joint="not-decided")
    known = replace(placed, joint=replace(placed.joint, works=Order(arrivals=())))
    result = review(make.program(), make.program(), base_label="main", after=known)
    assert [result.is_blocked(level) for level in ("problem", "undecided")] == [False, True]
    assert not review_jointly(make, fleet, "always").is_blocked("undecided")


def test_two_stacks_cannot_be_compared_and_the_review_says_so(make):
    result = review(make.program(stack="dev"), make.program(stack="prod"), base_label="main")
    assert "nothing can match" in result.notes[0]


def test_objects_of_another_stack_do_not_match(make):
    job = make.workload("Job", "a", make.pod_spec())
    other = replace(job, urn=job.urn.replace(":dev::", ":prod::"))
    result = review(make.program(job), make.program(other, stack="prod"), base_label="main")
    assert [change.action for change in result.changes] == ["deleted", "created"]


def test_problems_stand_before_warnings(make):
    warning = Problem(path="A", code="count-below-one", message="first by name", severity="warning")
    head = make.program(problems=(warning, PROBLEM))
    assert review(make.program(), head, base_label="main").problems == (PROBLEM, warning)


def test_manifests_have_no_slash_for_a_stack_that_they_lack(make):
    result = review(make.program(), make.program(), base_label="main")
    assert result.subject == "quickstart/dev"
    assert replace(result, project="new.yaml", stack="").subject == "new.yaml"
    assert replace(result, project="k/", stack="").subject == "k"


def test_what_autoscalers_may_make_is_a_verdict_of_its_own_and_wrapped(make):
    scaler = make.object(
        "HorizontalPodAutoscaler",
        "serve",
        {"scaleTargetRef": {"kind": "Deployment", "name": "serve"}, "minReplicas": 1, "maxReplicas": 9},
        api_version="autoscaling/v2",
    )
    serve = make.workload("Deployment", "serve", make.pod_spec(template="trainer-1"))
    head = make.program(make.device_class(), make.template("trainer", "trainer-1"), serve, scaler)
    result = compare(head, head, base_label="main", fleet=make.fleet(make.node("n0", gpus=8)))
    text = render_text(result, width=70)
    told = text[text.index("  ✗ With autoscalers at their most: never fit at once: ") :].split("\n\n")[0]
    assert len(told.splitlines()) > 1
    assert max(map(len, told.splitlines())) <= 70
    assert "could not be known" not in text[: text.index("With autoscalers")]
    assert "With autoscalers at their most: never" in render_markdown(result)
    assert '<h2 id="at-most">With autoscalers at their most</h2>' in render_html(result)
    assert '<p class="lead">never fit at once: ' in render_html(result)
    (note,) = (each for each in json.loads(render_json(result))["notes"] if "autoscalers" in each)
    assert note.startswith("With autoscalers at their most, workloads never fit at once: ")
    assert not result.failed
