"""Which object an explanation is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.errors import ProgramError
from dra_infra.explanation.asking import find_subject


def job(name: str, *, is_made_up: bool = False) -> dict[str, Any]:
    annotations = {"pulumi.com/autonamed": "true"} if is_made_up else {}
    return {"kind": "Job", "metadata": {"name": name, "namespace": "ml", "annotations": annotations}}


@pytest.mark.parametrize("asked", ["job/train", "train", "job/train-*"])
def test_an_object_that_pulumi_names_is_found_by_its_resource(asked: str):
    ref, _ = find_subject(asked, None, [job("train-*", is_made_up=True), job("other")])
    assert str(ref) == "Job ml/train-*"


def test_the_object_of_the_very_name_comes_first():
    ref, _ = find_subject("job/train", None, [job("train-*", is_made_up=True), job("train")])
    assert str(ref) == "Job ml/train"


def test_two_that_pulumi_names_are_told_apart():
    both = [job("train-*-0a1b2c3d", is_made_up=True), job("train-*-4e5f6a7b", is_made_up=True)]
    with pytest.raises(ProgramError) as error:
        find_subject("job/train", None, both)
    (problem,) = error.value.problems
    assert (problem.path, problem.code) == ("job/train", "subject-not-known")
    assert "job/train-*-4e5f6a7b" in problem.hint


def test_a_star_that_pulumi_does_not_explain_is_no_made_up_name():
    with pytest.raises(ProgramError):
        find_subject("job/train", None, [job("train-*")])


@pytest.mark.parametrize(
    ("named", "home", "expected"),
    [
        (None, "ml", "ml"),
        (None, "dev", "dev"),
        (None, "other", None),
        (None, "", None),
        ("dev", "ml", "dev"),
    ],
)
def test_of_several_the_one_in_the_namespace_of_the_context_is_meant(
    named: str | None, home: str, expected: str | None
):
    both = [{**job("train"), "metadata": {"name": "train", "namespace": each}} for each in ("ml", "dev")]
    if expected:
        ref, _ = find_subject("job/train", named, both, home=home)
        assert ref.namespace == expected
    else:
        with pytest.raises(ProgramError) as error:
            find_subject("job/train", named, both, home=home)
        assert error.value.problems[0].code == "subject-not-known"


def test_one_alone_is_meant_wherever_the_context_is():
    assert find_subject("job/train", None, [job("train")], home="dev")[0].namespace == "ml"


def refused(
    asked: str, *manifests: dict[str, Any], kinds: tuple[str, ...] = ("JobSet", "RayJob")
) -> tuple[str, str]:
    with pytest.raises(ProgramError) as error:
        find_subject(asked, None, manifests, kinds)
    (problem,) = error.value.problems
    assert problem.code == "subject-not-known"
    return problem.message, problem.hint


def test_a_kind_that_is_there_and_not_known_leads_to_a_file_of_kinds():
    run = {"kind": "TrainingRun", "metadata": {"name": "run"}}
    message, hint = refused("trainingrun/run", run)
    assert message == "trainingrun is not known to make pods"
    assert "--kinds kinds.yaml" in hint


def test_the_kinds_of_other_projects_are_named_where_none_is_known():
    _, hint = refused("trainingrun/run")
    assert "of other projects: JobSet, RayJob; --kinds FILE names more" in hint
    _, hint = refused("trainingrun/run", kinds=())
    assert "--kinds" not in hint


def test_an_object_of_another_kind_with_the_name_is_pointed_at():
    cluster = {"kind": "JobSet", "metadata": {"name": "ray", "namespace": "ml"}}
    assert refused("rayjob/ray", cluster, job("other")) == (
        "there is no rayjob/ray",
        "there are: jobset/ray -n ml",
    )


def test_a_kind_that_kubernetes_has_too_is_asked_for_with_its_group():
    gang = {**job("train"), "apiVersion": "batch.volcano.sh/v1alpha1"}
    both = [{**job("train"), "apiVersion": "batch/v1"}, gang]
    kinds = ["Job.batch.volcano.sh"]
    assert find_subject("job/train", None, both, kinds)[1] is both[0]
    assert find_subject("job.batch.volcano.sh/train", None, both, kinds)[1] is gang
    with pytest.raises(ProgramError) as error:
        find_subject("job/train", None, [gang], kinds)
    assert "job.batch.volcano.sh/train -n ml" in error.value.problems[0].hint
