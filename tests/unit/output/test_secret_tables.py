"""Each row of the tables of secrets finds its own example: a new kind is one row."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from dra_infra.markers import SECRET
from dra_infra.output.secret_commands import COMMANDS, Command
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secret_forms import FORMS, Form
from dra_infra.output.secret_names import ITEM, MAKERS
from dra_infra.output.secret_shapes import find_written
from dra_infra.output.secret_tokens import TOKENS, Token, find_known_tokens
from dra_infra.output.secrets import SecretMask
from tests.support.growth import takes_linear_time
from tests.support.planted_kinds import filled

PASSWORD = "hunTer2x9"


@pytest.fixture(scope="module")
def mask() -> SecretMask:
    return report_mask()


@pytest.mark.parametrize("token", TOKENS, ids=lambda each: each.kind)
def test_a_token_is_found_by_its_form(token: Token):
    example = filled(token.form, token.kind).line
    for text in (
        example,
        f"use {example} here",
        f"https://a.example/?a={example}&b=1",
        f'{{"a": "{example}"}}',
    ):
        start = text.index(example)
        spans = [*find_known_tokens(text)]
        assert any(first <= start and start + len(example) <= last for first, last in spans), text


@pytest.mark.parametrize("token", TOKENS, ids=lambda each: each.kind)
def test_a_name_that_begins_as_a_token_is_none(token: Token):
    beginning = token.form.partition("{")[0]
    for text in (f"{beginning}of-the-service-and-its-friends", f"{beginning}of_the_service_and_its_friends"):
        assert not beginning or [*find_known_tokens(text)] == [], text


def test_kinds_have_one_row():
    for rows in (
        [token.kind for token in TOKENS],
        [token.form for token in TOKENS],
        [form.kind for form in FORMS],
        [(program, command.subcommand, command.use) for command in COMMANDS for program in command.programs],
    ):
        assert [row for row in rows if rows.count(row) > 1] == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: f"{each.programs[0]} {each.use}")
def test_a_secret_of_a_command_line_is_hidden(command: Command, mask: SecretMask):
    line = command.example.replace("@", PASSWORD)
    quoted = line.replace(PASSWORD, f"'{PASSWORD}'")
    for text in (
        line,
        f"set -e\n{quoted} && serve",
        json.dumps(line.split()),
        f"exec({json.dumps(json.dumps(line.split()))})",
    ):
        assert PASSWORD not in mask.text(text), text
    for plain in (
        {"command": line.split()},
        {"command": ["sh", "-c", line]},
        {"command": ["sh", "-c", f"sudo {line}"]},
    ):
        assert PASSWORD not in json.dumps(mask.values(plain)), plain


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: f"{each.programs[0]} {each.use}")
def test_a_reference_in_a_command_line_shows(command: Command, mask: SecretMask):
    line = command.example.replace("@", "$THE_PASSWORD")
    assert mask.text(line) == line
    assert mask.values({"command": line.split()}) == {"command": line.split()}


@pytest.mark.parametrize("form", FORMS, ids=lambda each: each.kind)
def test_a_secret_of_a_form_is_hidden(form: Form, mask: SecretMask):
    example = filled(form.example, form.kind)
    assert any(sign in example.line.lower() for sign in form.signs)
    for text in (example.line, f"a\n{example.line}\nb", json.dumps({"a": f"x\n{example.line}\ny"})):
        assert example.shown(mask.text(text)) == []


@pytest.mark.parametrize("maker", sorted(MAKERS))
def test_a_random_value_under_the_name_of_a_maker_is_hidden(maker: str, mask: SecretMask):
    random = filled("{h32}", maker).line
    assert mask.values({maker.lower(): random}) == {maker.lower(): SECRET}
    assert random not in mask.text(f"{maker}={random}")
    plain = {maker.lower(): f"registry.example/{maker.lower()}:1.2.3", f"{maker}_COMMIT": random}
    assert mask.values(plain) == plain


LENGTH = 2**14
"""Characters of a text that is made to be slow: what is quadratic takes more than a second for so many."""


def beginnings() -> list[str]:
    """What the tables look for, and each part of their examples."""
    found = [token.form.partition("{")[0] for token in TOKENS]
    found += [f"{command.example.replace('@', 'a')} " for command in COMMANDS]
    found += [f"{command.programs[0]}{sign}" for command in COMMANDS for sign in ("'", '"', ITEM, "\\")]
    for form in FORMS:
        example = filled(form.example, form.kind).line
        found += [*form.signs, example, *(example[:length] for length in (4, 8, 12, 16, 24))]
    return sorted({part for part in found if part})


def test_what_the_tables_look_for_is_searched_in_linear_time():
    def search(part: str) -> Callable[[int], Callable[[], object]]:
        return lambda size: lambda: list(find_written(part * (size // len(part))))

    parts = beginnings()
    repeated = [*parts, *(f"{part} ".ljust(24, "a") for part in parts)]
    assert [each for each in repeated if not takes_linear_time(search(each), LENGTH)] == []
