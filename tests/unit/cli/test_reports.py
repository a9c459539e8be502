"""Reports go where the options say, in one spelling, and into no file that is read or tracked (ADR 24)."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from dra_infra.cli.app import app

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""
FLEET = ("--fleet", "hgx-h100 x 1")
CONTEXT = click.Context(app)
COMMANDS = {name: app.get_command(CONTEXT, name) for name in app.list_commands(CONTEXT)}
WITHOUT_REPORT = {"snapshot", "compile", "pull-request", "mcp"}
"""Commands that make a file or one line, and the server of tools."""


@pytest.fixture
def folder(tree):
    tree.write("k/claim.yaml", CLAIM)
    tree.commit()
    return tree


@pytest.fixture
def run(folder, command):
    return lambda *words: command(*map(str, words), cwd=folder.root)


def options_of(name: str) -> dict[str, click.Option]:
    options = [each for each in COMMANDS[name].params if isinstance(each, click.Option)]
    return {spelling: each for each in options for spelling in each.opts}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT_REPORT))
def test_every_report_has_a_form_and_json_is_a_flag(name):
    options = options_of(name)
    assert options["-o"] is options["--format"]
    assert "json" in options["--format"].type.choices
    assert options["--json"].is_flag


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_short_o_is_the_form_everywhere(name):
    assert "-o" not in options_of(name) or "--format" in options_of(name)["-o"].opts


@pytest.mark.parametrize(
    ("words", "ending", "start"),
    [
        (("validate", "k"), "json", "{"),
        (("validate", "k"), "sarif", '{\n  "$schema"'),
        (("validate", "k"), "xml", "<?xml"),
        (("validate", "k"), "txt", "checked 1 object"),
        (("simulate", "k", *FLEET), "json", "{"),
        (("simulate", "k", *FLEET), "txt", "no workload needs devices"),
        (("explain", "template/one", "k", *FLEET), "json", "{"),
        (("explain", "template/one", "k", *FLEET), "txt", "✓ "),
        (("explain", "count-below-one"), "json", "{"),
        (("explain", "count-below-one"), "txt", "count-below-one: "),
        (("review", "k"), "json", "{"),
        (("review", "k"), "md", "<!-- dra-infra review"),
        (("review", "k"), "html", "<!doctype html>"),
        (("review", "k"), "sarif", '{\n  "$schema"'),
        (("review", "k"), "xml", "<?xml"),
        (("review", "k"), "txt", ""),
    ],
)
def test_the_form_of_a_file_follows_from_its_name(folder, run, words, ending, start):
    answer = run(*words, "--output", f"report.{ending}")
    assert answer.code in (0, 1), answer.err
    assert f"wrote report.{ending}" in answer.err
    text = (folder.root / f"report.{ending}").read_text()
    assert text.startswith(start)
    assert "\x1b" not in text
    # An older report is replaced.
    assert run(*words, "--output", f"report.{ending}").code == answer.code


def test_several_files_are_written_in_one_run(folder, run):
    answer = run("review", "k", "--output", "a.md", "--output", "b.html", "-o", "json")
    assert json.loads(answer.out)
    assert {each.name for each in folder.root.iterdir()} >= {"a.md", "b.html"}


@pytest.mark.parametrize("words", [("validate", "k"), ("simulate", "k", *FLEET), ("review", "k")])
@pytest.mark.parametrize("name", ["report", "report.pdf", "report.yaml", "claim.json.bak"])
def test_a_name_that_says_no_form_is_refused_before_anything_runs(folder, run, words, name):
    answer = run(*words, "--output", name)
    assert answer.code == 2
    assert "does not say its form" in answer.err
    assert not (folder.root / name).exists()


def kept(folder, answer, file: str, before: str, why: str) -> None:
    assert answer.code == 2
    assert answer.codes == {"report-not-written"}
    assert why in answer.err
    assert (folder.root / file).read_text() == before


@pytest.mark.parametrize("name", ["validate", "simulate", "review"])
def test_no_input_is_replaced(folder, run, name):
    more = FLEET if name == "simulate" else ()
    manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "by dra-infra 1"}})
    folder.write("one.json", manifest)
    folder.commit()
    answer = run(name, "one.json", *more, "--output", "one.json")
    kept(folder, answer, "one.json", manifest, "is an input of this command")
    folder.write("k/new.json", "{}")
    answer = run(name, "k", *more, "--output", "k/new.json")
    kept(folder, answer, "k/new.json", "{}", "is in k, which this command reads")


@pytest.mark.parametrize("option", ["--snapshot", "--fleet", "--prices", "--kinds", "--values"])
def test_no_file_of_an_option_is_replaced(folder, run, option):
    folder.write("facts.json", "{}")
    answer = run("review", "k", option, "facts.json", "--output", "facts.json")
    kept(folder, answer, "facts.json", "{}", "is an input of this command")


def test_no_tracked_file_is_replaced_but_an_older_report(folder, run):
    folder.write("notes.md", "# notes\n")
    folder.write("report.md", run("review", "k", "-o", "markdown").out)
    folder.commit()
    answer = run("review", "k", "--output", "notes.md")
    kept(folder, answer, "notes.md", "# notes\n", "is tracked by git")
    assert run("review", "k", "--output", "report.md").code == 0
    answer = run("compile", "k", "--output", "notes.md")
    kept(folder, answer, "notes.md", "# notes\n", "is tracked by git")


@pytest.mark.parametrize("form", ["markdown", "text", "json", "html", "sarif", "junit"])
def test_a_tracked_page_that_shows_a_report_is_none(folder, run, form):
    report = run("review", "k", "-o", form).out
    page = f"# How to review\n\n```\n{report}```\n\n<!doctype html><html>{report}</html>\n"
    for start in (
        "",
        "<!doctype html>\n<html><body><pre>\n",
        '<?xml version="1.0" encoding="UTF-8"?>\n<page>\n',
    ):
        folder.write("page.md", start + page)
        folder.commit()
        answer = run("review", "k", "--output", "page.md")
        kept(folder, answer, "page.md", start + page, "is tracked by git")


def test_json_behind_which_the_manifest_stands_reviews_it(folder, run):
    before = (folder.root / "k/claim.yaml").read_text()
    answer = run("review", "--json", "k/claim.yaml")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["changes"] == []
    folder.write(
        "k/claim.json", json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    )
    answer = run("review", "--json", "k/claim.json", "--base-path", "k/claim.json")
    assert json.loads(answer.out)["counts"]["unchanged"] == 1
    assert (folder.root / "k/claim.yaml").read_text() == before


@pytest.mark.parametrize(
    "older",
    [
        ("--json", "review.json"),
        ("--json=review.json",),
        ("--html", "page"),
        ("--markdown", "review.md"),
        ("--sarif", "a.sarif"),
        ("--junit", "tests.xml"),
    ],
)
def test_older_spellings_write_and_say_the_new_one(folder, run, older):
    file = older[-1].partition("=")[2] or older[-1]
    for _ in range(2):
        answer = run("review", "k", *older)
        assert (answer.code, "--output" in answer.err) == (0, True), answer.err
        assert (folder.root / file).exists()


def test_a_short_o_with_a_file_is_the_older_spelling(folder, run):
    for words in (("-o", "head.json"), ("-ohead.json",), ("-o=head.json",)):
        answer = run("compile", "k", *words)
        assert (answer.code, "-o head.json is written --output head.json today" in answer.err) == (0, True)
    assert run("migrate", "k", "-o", "out").code == 0
    assert run("migrate", "k", "-o", "json").out.startswith("{")


@pytest.mark.parametrize("words", [("validate", "k"), ("simulate", "k", *FLEET), ("review", "k")])
def test_json_beside_another_form_is_refused(run, words):
    assert json.loads(run(*words, "--json", "-o", "json").out)
    answer = run(*words, "--json", "-o", "text")
    assert answer.code == 2
    assert "leave one out" in answer.err


def test_a_file_outside_of_a_repository_is_replaced(folder, run, tmp_path: Path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "report.json").write_text("old")
    assert run("validate", "k", "--output", other / "report.json").code == 0
    assert (other / "report.json").read_text() != "old"
