from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tools import advisories
from tools.errors import ToolError

ROOT = Path(__file__).parents[3]


def record(name: str = "sample", ecosystem: str = "PyPI", **more: Any) -> dict[str, Any]:
    affected = {"package": {"ecosystem": ecosystem, "name": name}, "ranges": []}
    return {"id": "TEST-1", "modified": "2026-11-01T00:00:00Z", "affected": [affected], **more}


def archive(path: Path, *records: Any) -> Path:
    with zipfile.ZipFile(path, "w") as opened:
        for number, each in enumerate(records):
            opened.writestr(f"{number}.json", each if isinstance(each, str) else json.dumps(each))
    return path


@pytest.fixture
def pins(tmp_path: Path) -> Path:
    path = tmp_path / "run.txt"
    path.write_text(
        "sample==1.2 \\\n    --hash=sha256:0\nOther_one==2.0 ; sys_platform == 'win32'\n    # via sample==9\n"
    )
    return path


def scanner(folder: Path, report: Any, status: int) -> Path:
    """A program that prints *report* in place of the real scanner."""
    program = folder / "osv-scanner"
    text = report if isinstance(report, str) else json.dumps(report)
    program.write_text(f"#!{sys.executable}\nimport sys\nprint({text!r})\nsys.exit({status})\n")
    program.chmod(0o755)
    return program


def report_of(pins: Path, *names: str, advisory: dict[str, Any] | None = None) -> dict[str, Any]:
    packages = [{"package": {"name": name, "version": "1.2"}} for name in names]
    if advisory:
        packages[0]["vulnerabilities"] = [advisory]  # type: ignore[assignment]
    return {"results": [{"source": {"path": str(pins)}, "packages": packages}]}


def test_all_that_pins_is_looked_at():
    names = {str(path.relative_to(ROOT)) for path in advisories.pinned_files(ROOT)}
    assert names >= {
        "requirements/run.txt",
        "requirements/plugin.txt",
        "tools/osv-scanner/go.mod",
        "tools/etcd/go.mod",
    }
    assert all(advisories.pins_of(ROOT / name) for name in names)


def test_pins_are_read_of_requirements_and_modules(pins: Path, tmp_path: Path):
    assert advisories.pins_of(pins) == {"sample", "Other_one"}
    module = tmp_path / "go.mod"
    module.write_text(
        "module m\n\nrequire a.example/a v1.0.0\n\nrequire (\n\tb.example/b v0.0.0-2026 // indirect\n)\n"
    )
    assert advisories.pins_of(module) == {"a.example/a", "b.example/b"}


def test_a_database_is_read_whole_and_kept_as_far_as_it_is_about_pins(tmp_path: Path):
    path = archive(tmp_path / "PyPI.zip", record("Other.One"), record("another"), record("Other.One", "Go"))
    found = advisories.load(path, "PyPI", {"other-one"})
    assert (found.count, found.newest, list(found.records)) == (2, "2026-11-01", ["0.json"])
    assert found.records["0.json"]["affected"][0]["package"]["name"] == "other-one"


@pytest.mark.parametrize(
    "content", [(), (record(ecosystem="Go"),), ("{",), ("[]",), ("{}",), (record(affected=None),)]
)
def test_a_database_without_advisories_or_with_broken_ones_is_no_clean_result(
    content: tuple[Any, ...], tmp_path: Path
):
    with pytest.raises(ToolError, match=r"no advisory of PyPI|no archive of OSV records"):
        advisories.load(archive(tmp_path / "PyPI.zip", *content), "PyPI", {"sample"})


def test_half_an_archive_is_no_clean_result(tmp_path: Path):
    path = archive(tmp_path / "PyPI.zip", record())
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ToolError, match="no archive of OSV records"):
        advisories.load(path, "PyPI", {"sample"})


@pytest.mark.parametrize("named", ["", "nowhere"])
def test_without_a_database_there_is_no_answer(named: str, capsys: pytest.CaptureFixture[str]):
    assert advisories.main([named]) == 2
    assert "DATABASE=folder" in capsys.readouterr().err


def test_a_finding_names_file_version_and_what_is_fixed(pins: Path, tmp_path: Path):
    affected = [
        {"package": {"name": "sample"}, "ranges": [{"events": [{"introduced": "0"}, {"fixed": "1.3"}]}]},
        {"package": {"name": "sample"}, "ranges": [{"type": "GIT", "events": [{"fixed": "abc"}]}]},
        {"package": {"name": "another"}, "ranges": [{"events": [{"fixed": "7"}]}]},
    ]
    advisory = {"id": "TEST-1", "aliases": ["CVE-1"], "summary": "two\nlines \x1b[31m", "affected": affected}
    report = report_of(pins, "sample", "Other_one", advisory=advisory)
    (finding,) = advisories.scan(scanner(tmp_path, report, 1), {}, [pins])
    assert str(finding).endswith(
        "run.txt: sample 1.2: TEST-1 CVE-1: two lines \N{REPLACEMENT CHARACTER}[31m; fixed in 1.3"
    )


@pytest.mark.parametrize(
    ("names", "status", "message"),
    [
        (("sample",), 0, "has not read Other_one"),
        ((), 0, "has not read Other_one, sample"),
        (("sample", "Other_one"), 1, "ends with 1 and reports 0"),
        (("sample", "Other_one"), 127, "ends with 127"),
    ],
)
def test_a_scan_that_is_not_whole_is_no_clean_result(
    names: tuple[str, ...], status: int, message: str, pins: Path, tmp_path: Path
):
    with pytest.raises(ToolError, match=message):
        advisories.scan(scanner(tmp_path, report_of(pins, *names), status), {}, [pins])


def test_a_scanner_that_prints_something_else_is_no_clean_result(pins: Path, tmp_path: Path):
    with pytest.raises(ToolError, match="no JSON"):
        advisories.scan(scanner(tmp_path, "nothing found", 0), {}, [pins])
