"""The last step of everything that is printed: what strangers wrote is text, and what we paint stays painted."""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.cli import printing
from dra_infra.cli.printing import SafeStream
from dra_infra.errors import Place, Problem
from dra_infra.output.escaping import log_block, workflow_command
from dra_infra.output.wrapping import wrap_line

HOSTILE = "a\x1b[31m\u202eb\n::error::x ##[error]y"
SAFE = ("\x1b", "\u202e", "\n::error", "##[")
PIECES = st.lists(
    st.sampled_from([":", "::", "#", "##", "[", " ", "\t", "\n", "a", "⚠", "\ufe0f", "\x1b", "\u202e", "       "]), max_size=12
).map("".join)  # fmt: skip


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@contextmanager
def streams() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Standard output and error of a guarded process, neither a terminal. No fixture: pytest puts its own in between."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        printing.guard_streams()
        printing.guard_streams()
        yield out, err


@given(st.lists(PIECES, max_size=6))
def test_it_is_the_same_in_one_piece_and_in_many(pieces: list[str]):
    below = io.StringIO()
    stream = SafeStream(below)
    for piece in pieces:
        stream.write(piece)
    assert below.getvalue() == log_block("".join(pieces))


@pytest.mark.parametrize(
    "write",
    [
        lambda: print(HOSTILE),
        lambda: print(HOSTILE, file=sys.stderr),
        lambda: click.echo(HOSTILE),
        lambda: click.echo(HOSTILE.encode()),
        lambda: click.UsageError(HOSTILE).show(),
        lambda: sys.stdout.writelines([HOSTILE, HOSTILE]),
        lambda: sys.stdout.buffer.write(HOSTILE.encode()),
        lambda: logging.StreamHandler().emit(logging.makeLogRecord({"msg": HOSTILE})),
        lambda: sys.excepthook(ValueError, ValueError(HOSTILE), None),
        lambda: printing.say(HOSTILE),
        lambda: printing.write_lines([HOSTILE]),
        lambda: printing.write_json({HOSTILE: HOSTILE}, letters=True),
        lambda: printing.write_output(HOSTILE),
        lambda: printing.write_painted(HOSTILE.replace("[31m", "[2J")),
        lambda: printing.print_problems([Problem(path=HOSTILE, code=HOSTILE, message=HOSTILE, hint=HOSTILE)]),
    ],
)
def test_there_is_no_way_around(write: Callable[[], object]):
    with streams() as (out, err):
        write()
    said = out.getvalue() + err.getvalue()
    assert "a" in said
    assert not [each for each in SAFE if each in said]


def test_a_command_of_ours_is_the_only_one():
    with streams() as (out, _):
        printing.write_commands([workflow_command("error", HOSTILE, {"file": HOSTILE})], ends=[HOSTILE])
    command, last = out.getvalue().splitlines()
    assert command.startswith("::error file=")
    assert "##[" not in last
    assert "\x1b" not in command + last


def test_only_colours_pass_as_paint(monkeypatch: pytest.MonkeyPatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", SafeStream(screen))
    printing.write_painted("\x1b[1;31mbad\x1b[0m \x1b[2J\x1b]0;t\x07\n")
    assert screen.getvalue() == "\x1b[1;31mbad\x1b[0m \\u001b[2J\\u001b]0;t\\u0007\n"


def test_marks_are_painted_on_a_terminal_after_the_text_was_made_safe(monkeypatch: pytest.MonkeyPatch):
    out, err = Screen(), Screen()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", SafeStream(out))
    monkeypatch.setattr(sys, "stderr", SafeStream(err))
    printing.write_lines(["✗ a\x1b[32m", "  ✓ b"])
    printing.print_problems([Problem(path="p", code="c", message="m\x1b[32m", hint="h")], with_count=False)
    assert out.getvalue() == "\x1b[31m✗\x1b[0m a\\u001b[32m\n  ✓ b\n"
    assert err.getvalue() == "\x1b[31m✗\x1b[0m p: m\\u001b[32m [c]\n\x1b[2m  hint: h\x1b[0m\n"


def test_an_empty_no_color_leaves_the_colours_on(monkeypatch: pytest.MonkeyPatch):
    for value, has_colours in (("", True), ("1", False)):
        out = Screen()
        monkeypatch.setenv("NO_COLOR", value)
        monkeypatch.setattr(sys, "stdout", SafeStream(out))
        printing.write_lines(["✗ a"])
        assert ("\x1b[31m" in out.getvalue()) == has_colours


def test_lines_of_a_message_stay_lines_of_it():
    place = Place(file="f\n.yaml", line=1)
    problem = Problem(path="a\nb", code="c", message="no\n✗ fake: problem\n |  mark", place=place)
    with streams() as (_, err):
        printing.print_problems([problem])
    assert err.getvalue() == "✗ f\\n.yaml:1: a\\nb: no\n    ✗ fake: problem\n |  mark [c]\n1 problem\n"


def test_what_the_encoding_cannot_show_is_spelled_out(monkeypatch: pytest.MonkeyPatch):
    below = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", SafeStream(io.TextIOWrapper(below, encoding="ascii")))
    print("é")
    click.echo("é\x1b")
    printing.write_lines(["é"])
    assert below.getvalue() == b"\\xe9\n\\xe9\\u001b\n\\xe9\n"


@pytest.mark.parametrize(("variable", "value"), [("TERM", "dumb"), ("NO_COLOR", "1")])
def test_a_terminal_that_shows_no_colours_gets_none(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
):
    out, err = Screen(), Screen()
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys, "stdout", SafeStream(out))
    monkeypatch.setattr(sys, "stderr", SafeStream(err))
    printing.write_lines(["✗ a"])
    printing.print_problems([Problem(path="p", code="c", message="m", hint="h")])
    with printing.progress() as tell:
        tell("working")
    assert "\x1b" not in out.getvalue() + err.getvalue()


LONG = "✗ Pod ml/train  does not fit: no node has devices of class h100 that are free and that a pod may use"


def test_lines_are_wrapped_below_their_column_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    out = Screen()
    with streams() as (piped, _):
        printing.write_lines([LONG])
        monkeypatch.setattr(sys, "stdout", SafeStream(out))
        printing.write_lines([LONG])
    assert piped.getvalue() == f"{LONG}\n"
    assert out.getvalue().splitlines() == [
        "✗ Pod ml/train  does not fit: no node has devices of class",
        "                h100 that are free and that a pod may use",
    ]


def test_problems_are_wrapped_behind_their_mark_and_their_first_word(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    err = Screen()
    monkeypatch.setattr(sys, "stderr", SafeStream(err))
    problem = Problem(
        path="a.yaml", code="c", message="the value is not one", hint="write one that is, or leave it"
    )
    printing.print_problems([problem], with_count=False)
    assert err.getvalue().splitlines() == [
        "✗ a.yaml: the value is not one [c]",
        "  hint: write one that is, or leave it",
    ]
    printing.print_problems(
        [Problem(path="a.yaml", code="c", message="of " * 12, hint="do " * 14)], with_count=False
    )
    lines = err.getvalue().splitlines()[2:]
    assert all(len(line) <= 40 for line in lines)
    assert [line[:8] for line in lines] == ["✗ a.yaml", "  of of ", "  hint: ", "        "]


@given(st.text(st.sampled_from("ab  -✗:$"), max_size=200), st.integers(40, 120))
def test_wrapping_loses_no_word_and_keeps_to_the_width(line: str, columns: int):
    pieces = [*wrap_line(line, columns)]
    assert " ".join(pieces).split() == line.split()
    longest = max((len(word) for word in line.split()), default=0)
    if not line.lstrip().startswith("$ ") and longest < columns // 2:
        assert all(len(piece.rstrip()) <= columns for piece in pieces)


def test_a_command_to_copy_stays_in_one_line():
    line = f"      $ kubectl label node {'n' * 80} a=b"
    assert [*wrap_line(line, 60)] == [line]


def test_no_piece_of_a_wrapped_line_begins_a_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    out = Screen()
    monkeypatch.setattr(sys, "stdout", SafeStream(out))
    printing.write_lines([f"{'a' * 35} ::error::x"])
    assert not any(line.lstrip().startswith("::") for line in out.getvalue().splitlines())


def test_long_work_without_a_terminal_prints_plain_lines(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DRA_INFRA_PROGRESS")
    monkeypatch.setattr(printing, "FIRST_LINE", 0.01)
    monkeypatch.setattr(printing, "NEXT_LINE", 0.01)
    with streams() as (out, err):
        with printing.progress() as tell:
            tell("placing on 9 nodes")
            while err.getvalue().count("placing on 9 nodes... (0 s)\n") < 2:
                threading.Event().wait(0.01)
        assert "\r" not in err.getvalue()
        assert out.getvalue() == ""


def test_short_work_without_a_terminal_prints_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DRA_INFRA_PROGRESS")
    with streams() as (_, err):
        with printing.progress() as tell:
            tell("placing")
        assert err.getvalue() == ""
