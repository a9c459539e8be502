"""Problems from what hosts, compilers and programs print."""

from __future__ import annotations

from pathlib import Path

from dra_infra.errors import Place
from dra_infra.program.languages.diagnostics import Ending, read_problems
from dra_infra.program.project import Project

OF_YAML = (
    "\x1b[33mWarning\x1b[0m: a is deprecated\n\n  on Pulumi.yaml line 3:\n   3:   a: b\n\n"
    "\x1b[31mError\x1b[0m: Property cuont does not exist on 'dra-infra:index:GpuClaim'\n\n"
    "  on Pulumi.yaml line 20:\n  20:       \x1b[1;4mcuont\x1b[0m: 4\n\n"
    "Cannot assign '{cuont: number}':\n  Existing properties are: count\n\n"
    "\x1b[31mError\x1b[0m: no place\n\n"
)


def project(tmp_path: Path, runtime: str) -> Project:
    return Project(
        name="a",
        root=tmp_path,
        program=tmp_path,
        stack="dev",
        stack_file=tmp_path / "Pulumi.dev.yaml",
        config={},
        runtime=runtime,
    )


def test_errors_of_the_host_of_yaml_are_problems_at_their_lines(tmp_path: Path):
    ending = Ending(printed=OF_YAML, is_reported=True)
    first, second = read_problems(ending, project(tmp_path, "yaml"), limit=60)
    assert (first.code, first.place) == ("program-refused", Place(file="Pulumi.yaml", line=20))
    assert first.message == "Property cuont does not exist on 'dra-infra:index:GpuClaim'"
    assert first.hint == "Cannot assign '{cuont: number}': Existing properties are: count"
    assert (second.message, second.path, second.place) == ("no place", "program", None)


def test_a_program_that_took_too_long_is_that_and_nothing_else(tmp_path: Path):
    ending = Ending(printed=OF_YAML, is_too_long=True, error="Deadline Exceeded")
    (problem,) = read_problems(ending, project(tmp_path, "yaml"), limit=5)
    assert problem.code == "program-timeout"
    assert "5 s" in problem.message


def test_what_was_logged_comes_before_what_the_host_answered(tmp_path: Path):
    ending = Ending(logged=[("info", "a"), ("error", "it failed")], error="exit 1", printed="noise\n")
    (problem,) = read_problems(ending, project(tmp_path, "yaml"), limit=60)
    assert (problem.code, problem.message, problem.hint) == ("program-raised", "it failed", "")


def test_without_a_known_form_the_end_of_the_output_is_shown(tmp_path: Path):
    ending = Ending(error="exit 1", printed="first\n" * 100 + "last\n")
    (problem,) = read_problems(ending, project(tmp_path, "yaml"), limit=60)
    assert (problem.message, problem.code) == ("exit 1", "program-raised")
    assert problem.hint.endswith("last")
    assert problem.hint.count("first") == 19


def test_a_program_without_an_error_has_not_failed():
    assert not Ending(printed="a\n", logged=[("warning", "b")]).has_failed
    assert Ending(logged=[("error", "b")]).has_failed
