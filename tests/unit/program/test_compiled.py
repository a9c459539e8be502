from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.errors import Problem, ProgramError
from dra_infra.program.program_json import (
    FORMAT,
    Compiled,
    load_head,
    pack,
    read_compiled,
    unpack,
    write_compiled,
)
from dra_infra.program_objects import NotSeen, Program, ProgramObject

OBJECT = ProgramObject(
    urn="urn:pulumi:dev::app::kubernetes:core/v1:ConfigMap::c", manifest={"kind": "ConfigMap"}
)
PROGRAM = Program(
    project="app",
    stack="dev",
    objects=(OBJECT,),
    not_seen=(NotSeen(what="a", name="b", reason="c"),),
    kubernetes="1.36",
)
COMMIT = "a" * 40


def written(tmp_path: Path, data: bytes | dict[str, Any]) -> Path:
    file = tmp_path / "head.json"
    file.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return file


def as_data(compiled: Compiled) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(write_compiled(compiled))
    return data


@pytest.mark.parametrize(
    "compiled",
    [
        Compiled(kind="program", commit=COMMIT, fleet="hgx-h100 x 4", program=PROGRAM),
        Compiled(kind="manifests", files={"a/b.yaml": pack(b"\xff\0a: 1\n")}, left_out=("c.yaml",)),
        Compiled(kind="chart", failed=(Problem(path="a", code="no-project", message="b"),)),
    ],
)
def test_what_is_written_is_read_again(tmp_path: Path, compiled: Compiled):
    assert read_compiled(written(tmp_path, write_compiled(compiled))) == compiled


def change(path: str, value: Any) -> dict[str, Any]:
    data = as_data(Compiled(kind="program", program=PROGRAM))
    target: Any = data
    *parts, last = path.split(".")
    for part in parts:
        target = target[int(part) if part.isdigit() else part]
    target[int(last) if last.isdigit() else last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("format", "dra-infra/compiled/1"),
        ("kind", "script"),
        ("kind", "manifests"),
        ("commit", "HEAD"),
        ("commit", "--upload-pack=x"),
        ("program", None),
        ("program", []),
        ("program.objects", {}),
        ("program.objects.0", None),
        ("program.objects.0.urn", "urn"),
        ("program.objects.0.urn", 1),
        ("program.objects.0.manifest", []),
        ("program.objects.0.replacement", "never"),
        ("program.objects.0.place", {"file": "a", "line": -1, "column": 0}),
        ("program.objects.0.target", {"kubernetes": "1.1", "gates": {}, "serves": ["v1"]}),
        ("program.objects.0.target", {"kubernetes": None, "gates": {"NoGate": True}, "serves": []}),
        ("program.stand_in_classes", [{"metadata": {"name": 7}}]),
        ("program.stand_in_classes", [{"metadata": {"labels": {"a": []}}}]),
        ("program.kubernetes", "1.2"),
        ("program.driver", "nobody's"),
        ("program.problems", [{"path": "a", "code": "no-code-of-ours", "message": "m"}]),
        ("program.problems", [{"path": "a", "code": "no-project", "message": "m", "severity": "fine"}]),
        ("files", {"a.yaml": ""}),
        ("failed", "no"),
        ("failed", [{"path": "a", "code": "`](https://example.invalid)", "message": "m"}]),
    ],
)
def test_what_is_not_as_it_is_written_is_refused(tmp_path: Path, path: str, value: Any):
    with pytest.raises(ProgramError) as error:
        read_compiled(written(tmp_path, change(path, value)))
    (problem,) = error.value.problems
    assert (problem.path, problem.code) == ("--head", "compiled-unreadable")
    assert "no-code-of-ours" not in str(problem)


@pytest.mark.parametrize(
    "name",
    [
        "../a.yaml",
        "/a.yaml",
        "a/../../b.yaml",
        "",
        ".",
        "..",
        "a//b.yaml",
        "./a.yaml",
        "a/",
        "a\0.yaml",
        "x" * 1025,
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, name: str):
    data = as_data(Compiled(kind="manifests", files={name: pack(b"a")}))
    with pytest.raises(ProgramError) as error:
        read_compiled(written(tmp_path, data))
    assert [each.code for each in error.value.problems] == ["compiled-unreadable"]


@pytest.mark.parametrize("files", [{"a": pack(b""), "a/b": pack(b"")}, {"a": "%"}])
def test_files_that_cannot_be_written_are_refused(tmp_path: Path, files: dict[str, str]):
    compiled = read_compiled(written(tmp_path, as_data(Compiled(kind="manifests", files=files))))
    with pytest.raises(ProgramError) as error:
        unpack(compiled, tmp_path / "files")
    assert [each.code for each in error.value.problems] == ["compiled-unreadable"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"format": ' + b"[" * 100_000,
        b'{"format": "\\ud800"}',
        b'{"format": 1e999999}',
        b"9" * 5000,
        b"NaN",
    ],
)
def test_text_that_is_no_record_is_refused(tmp_path: Path, data: bytes):
    with pytest.raises(ProgramError) as error:
        read_compiled(written(tmp_path, data))
    assert [each.code for each in error.value.problems] == ["compiled-unreadable"]


def test_a_file_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(ProgramError) as error:
        read_compiled(tmp_path / "none.json")
    assert [each.code for each in error.value.problems] == ["file-unreadable"]


def test_the_head_of_another_commit_is_refused(tmp_path: Path):
    file = written(tmp_path, write_compiled(Compiled(kind="program", commit=COMMIT, program=PROGRAM)))
    assert load_head(file, COMMIT).commit == COMMIT
    with pytest.raises(ProgramError) as error:
        load_head(file, "b" * 40)
    assert [each.code for each in error.value.problems] == ["compiled-of-another-commit"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
FIELDS = ("format", "kind", "commit", "fleet", "program", "files", "is_file", "left_out", "failed")


@given(
    st.dictionaries(st.sampled_from(FIELDS), JSON),
    st.dictionaries(st.sampled_from(("urn", "manifest", "place", "target")), JSON),
)
def test_any_json_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, changed: dict[str, Any], inner: dict[str, Any]
):
    data = as_data(Compiled(kind="program", program=PROGRAM))
    data["program"]["objects"][0] |= inner
    file = written(tmp_path_factory.mktemp("any"), {**data, **changed})
    try:
        codes = {read_compiled(file).format}
    except ProgramError as error:
        codes = {each.code for each in error.problems}
    assert codes <= {FORMAT, "compiled-unreadable"}
