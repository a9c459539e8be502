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


def problems(tmp_path: Path, runtime: str, printed: str) -> list[tuple[str, str, str]]:
    ending = Ending(printed=printed.replace("FOLDER", str(tmp_path)), error="exit 1")
    found = read_problems(ending, project(tmp_path, runtime), limit=60)
    return [(str(each.place or ""), each.code, each.message) for each in found]


def test_both_forms_of_errors_of_the_compiler_of_typescript_are_read(tmp_path: Path):
    printed = """\
TSError: Unable to compile TypeScript:
index.ts(12,7): error TS2322: Type 'Remote' is not assignable to type 'string'.
\x1b[96mlib/claims.ts\x1b[0m:\x1b[93m3\x1b[0m:\x1b[93m1\x1b[0m - \x1b[91merror\x1b[0m\x1b[90m TS1005: \x1b[0m',' expected.

    at createTSError (FOLDER/node_modules/ts-node/src/index.ts:863:12)
"""
    assert problems(tmp_path, "nodejs", printed) == [
        (
            "index.ts:12:7",
            "program-refused",
            "TS2322: Type 'Remote' is not assignable to type 'string'.",
        ),
        ("lib/claims.ts:3:1", "program-refused", "TS1005: ',' expected."),
    ]


def test_what_javascript_throws_has_the_innermost_place_of_the_users_own(tmp_path: Path):
    printed = """\
Running program 'FOLDER' failed with an unhandled exception:
TypeError: cannot read a
    at read (FOLDER/node_modules/other/index.js:1:2)
    at Object.<anonymous> (FOLDER/lib/index.ts:20:22)
    at FOLDER/main.ts:1:1
    at node:internal/main:1:1
"""
    assert problems(tmp_path, "nodejs", printed) == [
        ("lib/index.ts:20:22", "program-raised", "TypeError: cannot read a")
    ]


def test_errors_of_the_compiler_of_go_are_read(tmp_path: Path):
    printed = """\
# example.com/gpus
./main.go:12:3: undefined: foo
lib/a.go:3:8: package x is not in std
go.mod:7: unknown directive: requires
"""
    assert problems(tmp_path, "go", printed) == [
        ("main.go:12:3", "program-refused", "undefined: foo"),
        ("lib/a.go:3:8", "program-refused", "package x is not in std"),
        ("go.mod:7", "program-refused", "unknown directive: requires"),
    ]


def test_a_panic_and_an_error_of_a_program_in_go_are_read(tmp_path: Path):
    panic = """\
panic: boom

goroutine 1 [running]:
github.com/pulumi/pulumi/sdk/v3/go/pulumi.Run(...)
\t/cache/sdk/v3/go/pulumi/run.go:12 +0x1
main.main()
\tFOLDER/main.go:9 +0x2c
exit status 2
"""
    assert problems(tmp_path, "go", panic) == [("main.go:9", "program-raised", "boom")]
    failed = "error: program failed: 1 error occurred:\n\t* no such team\n\nexit status 1\n"
    assert problems(tmp_path, "go", failed) == [("", "program-raised", "1 error occurred: * no such team")]


def test_a_place_outside_of_the_project_is_none_of_the_users(tmp_path: Path):
    printed = "../other/main.go:1:2: undefined: foo\n"
    assert problems(tmp_path, "go", printed) == [("", "program-refused", "undefined: foo")]
