from __future__ import annotations

from dataclasses import replace

from dra_infra.errors import Place, Problem
from dra_infra.review import render_text, review


def test_the_verdict_is_the_first_line(sample):
    assert render_text(sample).splitlines()[0] == sample.verdict


def test_colours_are_written_only_when_asked_for(sample):
    assert "\x1b[" not in render_text(sample)
    assert "\x1b[" in render_text(sample, color=True)


def test_placements_keep_to_the_width_and_nothing_is_lost(sample):
    lines = render_text(sample, width=80).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("  Deployment ml/"))
    last = next(number for number, line in enumerate(lines) if number > first and not line)
    assert last > first + 4
    assert max(map(len, lines[first:last])) <= 80
    assert "".join(render_text(sample, width=80).split()) == "".join(render_text(sample, width=200).split())


def test_the_end_that_a_terminal_shows_holds_what_has_to_be_fixed(sample):
    text = render_text(sample)
    parts = [
        "problem, 2 dangers",
        "danger: ",
        "note: ",
        "replaced ConfigMap",
        "  Deployment ml/",
        "problem: ",
        "could not be known",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_a_problem_shows_place_path_code_and_hint(make):
    problem = Problem(
        path='GpuClaim("a").count',
        code="count-below-one",
        message="0 is below 1",
        hint="write 1",
        place=Place(file="app.py", line=3),
    )
    text = render_text(review(make.program(), make.program(problems=(problem,)), base_label="main"))
    assert 'problem: app.py:3: GpuClaim("a").count: 0 is below 1 [count-below-one]\n  hint: write 1\n' in text


def test_names_cannot_steer_the_terminal_or_be_markup(make):
    hostile = make.object("ConfigMap", "\x1b[31m[red]x[/red]\u202e", None, data={"a\x07": "b"})
    text = render_text(review(make.program(), make.program(hostile), base_label="\x9b31m"), color=False)
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
    assert "\\u001b[31m[red]x[/red]\\u202e" in text


def test_a_long_diff_is_cut_and_says_so(make):
    long = make.object("ConfigMap", "c", None, data={f"k{number:03}": "v" for number in range(100)})
    text = render_text(review(make.program(), make.program(long), base_label="main"))
    assert "… 46 more lines" in text


def test_a_secret_shows_only_as_masked(sample):
    assert "[secret]" in render_text(replace(sample, changes=()))


def test_a_megabyte_of_a_name_does_not_flood_the_terminal(make):
    long = make.object("ConfigMap", "x" * 1_000_000, None, data={"k": "v"})
    text = render_text(review(make.program(), make.program(long), base_label="y" * 1_000_000))
    assert len(text) < 10_000
    assert "more characters)" in text


def test_a_message_keeps_its_lines_and_none_passes_for_one_of_ours(make):
    problem = Problem(
        path="p", code="cel-invalid", message="no\n | a..b\nproblem: fake", hint="one\n  hint: two"
    )
    text = render_text(review(make.program(), make.program(problems=(problem,)), base_label="main"))
    assert (
        "problem: p: no\n     | a..b\n    problem: fake [cel-invalid]\n  hint: one\n      hint: two\n" in text
    )
