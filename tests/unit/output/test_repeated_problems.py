from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.cli.printing import print_problems
from dra_infra.errors import Place, Problem
from dra_infra.output.repeated_problems import merge_repeated
from dra_infra.program.synth import synth
from dra_infra.provenance import Provenance
from dra_infra.review import render_json, render_markdown, render_text
from dra_infra.review.reviews import Review

LINE = Place(file="__main__.py", line=7)


def problem(
    name, *, field="count", message="0 is below 1", line=LINE, code="count-below-one", hint="1 or more"
):
    return Problem(path=f'GpuClaim("{name}").{field}', code=code, message=message, hint=hint, place=line)


def test_a_mistake_in_a_loop_is_told_once_with_the_number_and_the_first_names():
    (told,) = merge_repeated(problem(f"t{index}") for index in range(12))
    assert told.path == 'GpuClaim("t0").count'
    assert told.message == (
        '0 is below 1; the same for 11 others: GpuClaim("t1").count, GpuClaim("t2").count, '
        'GpuClaim("t3").count and 8 more'
    ).replace(".count", "")


def test_the_name_of_the_object_in_a_message_makes_no_other_mistake():
    found = [
        problem(name, message=f"claim {name} of {name}-x is wrong", hint=f"rename {name}") for name in "ab"
    ]
    assert len(merge_repeated(found)) == 2, "a-x is another name"
    found = [problem(name, message=f"claim {name} is wrong", hint=f"rename '{name}'") for name in "ab"]
    assert len(merge_repeated(found)) == 1


def test_objects_of_manifests_are_told_by_kind_and_name():
    found = [
        Problem(path=f"Deployment ml/{name}.spec.replicas", code="wrong-type", message="m", place=LINE)
        for name in ("web-1", "web-2")
    ]
    (told,) = merge_repeated(found)
    assert told.message == "m; the same for 1 other: Deployment ml/web-2"


@pytest.mark.parametrize(
    "other",
    [
        problem("b", field="select"),
        problem("b", message="-1 is below 1"),
        problem("b", line=Place(file="__main__.py", line=8)),
        problem("b", code="wrong-type"),
        problem("b", hint="another"),
        replace(problem("b"), severity="warning"),
    ],
)
def test_what_differs_in_more_than_the_name_stays_by_itself(other):
    assert merge_repeated([problem("a"), other]) == (problem("a"), other)


def test_what_has_no_line_stays_by_itself():
    found = (problem("a", line=None), problem("b", line=None))
    assert merge_repeated(found) == found


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["count", "select"]), st.integers(1, 3))))
def test_nothing_is_lost_and_the_order_stays(drawn):
    found = [problem(name, field=field, line=Place(file="m.py", line=line)) for name, field, line in drawn]
    told = merge_repeated(found)
    keys = [(each.path.partition(").")[2], each.place) for each in found]
    assert [(each.path.partition(").")[2], each.place) for each in told] == list(dict.fromkeys(keys))
    assert [each.path for each in told] == [found[keys.index(key)].path for key in dict.fromkeys(keys)]


def test_a_program_prints_it_once_and_json_has_each(tmp_path, capsys):
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(
        "import dra_infra as dra\n"
        'for name in "abcdef":\n'
        '    dra.GpuClaim(name, device_class="gpu.nvidia.com", count=0)\n'
    )
    program = synth(tmp_path)
    assert len(program.problems) == 6
    print_problems(program.problems)
    printed = capsys.readouterr().err
    assert printed.count("count-below-one") == 1
    assert "the same for 5 others" in printed
    assert printed.endswith("1 problem\n")
    review = Review(
        project="p", stack="dev", base_label="main", provenance=Provenance(), problems=program.problems
    )
    assert review.findings == "1 problem"
    assert render_text(review).count("count-below-one") == 1
    assert render_markdown(review).count("count-below-one") == 1
    assert render_json(review).count("count-below-one") == 6


@pytest.mark.parametrize(("code", "number"), [("class-not-known", 1), ("count-below-one", 3)])
def test_one_cause_in_several_files_is_told_once_with_the_other_places(code: str, number: int):
    lines = [Place(file=f"{name}.yaml", line=3) for name in "abc"]
    found = [problem(str(line), code=code, field=f"f{line.file}", line=line) for line in lines]
    told = merge_repeated(found)
    assert len(told) == number
    assert told[0].message.endswith("; the same at 2 others: b.yaml:3 and c.yaml:3") == (number == 1)


def test_causes_in_other_words_stay_by_themselves():
    lines = [Place(file=f"{name}.yaml", line=3) for name in "ab"]
    found = [problem("x", code="class-not-known", message=f"no {at.file}", line=at) for at in lines]
    assert merge_repeated(found) == tuple(found)
