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
