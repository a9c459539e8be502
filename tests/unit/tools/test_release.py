from __future__ import annotations

import io
import json
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools import oci_archive
from tools.errors import ToolError
from tools.image import plugin_image
from tools.release import __main__ as release
from tools.release import contents, sbom, sources

ROOT = Path(__file__).parents[3]
PROJECT = '[tool.hatch.build.targets.sdist]\ninclude = ["/dra_infra", "/README.md"]\n'
CODE = ("dra_infra/py.typed", "dra_infra/__init__.py", "dra_infra/plugin/command/main.py")
METADATA = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    for name, text in {"kept": "1", "program": "2", "gone": "3", "loose": "4", "built.pyc": "5"}.items():
        (root / name).write_text(text)
    (root / "program").chmod(0o700)
    (root / "link").symlink_to("kept")
    (root / ".gitignore").write_text("*.pyc\n")
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    for arguments in (
        ["init", "--quiet"],
        ["add", "kept", "program", "gone", "link", ".gitignore"],
        [*identity, "commit", "--quiet", "-m", "c", "--date", "@1700000000"],
    ):
        subprocess.run(
            ["git", *arguments],
            cwd=root,
            check=True,
            env={"PATH": "/usr/bin:/bin", "GIT_COMMITTER_DATE": "@1700000000"},
        )
    (root / "gone").unlink()
    return root


def test_a_release_is_made_of_what_git_tracks(repository: Path, tmp_path: Path):
    sources.copy(tmp_path / "copy", repository)
    copied = {path.name: path for path in (tmp_path / "copy").iterdir()}
    assert set(copied) == {"kept", "program", "link", ".gitignore"}
    assert copied["link"].readlink() == Path("kept")
    assert copied["program"].stat().st_mode & 0o100
    assert not copied["kept"].stat().st_mode & 0o100
    assert sources.untracked(repository) == ["loose"]
    assert sources.commit_time(repository) == 1700000000


def test_outside_of_a_repository_nothing_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ToolError, match="git ls-files failed"):
        sources.tracked(tmp_path)


CHANGELOG = (
    "# Changelog\n\n## Unreleased\n\n- new\n\n## 1.10.0 - 2026-11-23\n\n### Added\n\n- old\n\n## 1.1.0\n\n"
)


@pytest.mark.parametrize(
    ("tag", "version", "notes"), [(None, "1.10.0", "- new\n"), ("v1.10.0", "1.10.0", "### Added\n\n- old\n")]
)
def test_notes_are_what_the_changelog_says(tag: str | None, version: str, notes: str):
    assert release.notes_of(tag, version, CHANGELOG) == notes


@pytest.mark.parametrize(
    ("tag", "version", "message"),
    [
        ("v1.9.0", "1.10.0", "the tag v1.9.0 is not v1.10.0"),
        ("1.10.0", "1.10.0", "the tag 1.10.0 is not v1.10.0"),
        ("v1.2.0", "1.2.0", "nothing below `## 1.2.0`"),
        ("v1.1.0", "1.1.0", "nothing below `## 1.1.0`"),
        ("v1.1.", "1.1.", "nothing below"),
    ],
)
def test_a_tag_without_its_version_or_without_notes_is_refused(tag: str, version: str, message: str):
    with pytest.raises(ToolError, match=message):
        release.notes_of(tag, version, CHANGELOG)


def wheel(folder: Path, *names: str) -> Path:
    path = folder / "dra_infra-1.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as opened:
        for name in names:
            opened.writestr(name, name)
    return path


COMMANDS = ("dra-infra", "kubectl-dra_infra", "kubectl_complete-dra_infra")
WHOLE = (
    *CODE,
    *(f"dra_infra-1.2.0.dist-info/{name}" for name in METADATA),
    *(f"dra_infra-1.2.0.data/scripts/{name}" for name in COMMANDS),
)


def test_a_wheel_of_the_tracked_files_is_whole(tmp_path: Path):
    assert contents.check_wheel(wheel(tmp_path, *WHOLE), [*CODE, "tests/test_a.py"]).startswith(
        "3 files of dra_infra"
    )


@pytest.mark.parametrize(
    "name", ["tests/test_a.py", "tools/build.py", "dra_infra/secrets.env", "dra_infra/x.pyc", "other.pth"]
)
def test_what_has_no_business_in_a_wheel_is_named(name: str, tmp_path: Path):
    with pytest.raises(ToolError, match=f"has, and should not {name}"):
        contents.check_wheel(wheel(tmp_path, *WHOLE, name), [*CODE, "tests/test_a.py", "tools/build.py"])


@pytest.mark.parametrize("name", WHOLE)
def test_what_a_wheel_lacks_is_named(name: str, tmp_path: Path):
    with pytest.raises(ToolError, match=f"lacks {name}"):
        contents.check_wheel(wheel(tmp_path, *(each for each in WHOLE if each != name)), CODE)


def test_a_list_of_tracked_files_that_is_empty_is_no_excuse(tmp_path: Path):
    with pytest.raises(ToolError, match="lacks dra_infra"):
        contents.check_wheel(wheel(tmp_path, *WHOLE[3:]), [])


@pytest.mark.parametrize(
    ("name", "fails"), [("README.md", False), ("tests/test_a.py", True), ("README.md.orig", True)]
)
def test_an_sdist_has_what_the_project_lets_in(name: str, fails: bool, tmp_path: Path):
    path = tmp_path / "dra_infra-1.2.0.tar.gz"
    with tarfile.open(path, "w:gz") as opened:
        for each in {*CODE, "README.md", "PKG-INFO", "pyproject.toml", ".gitignore", name}:
            opened.addfile(tarfile.TarInfo(f"dra_infra-1.2.0/{each}"), io.BytesIO())
    tracked = [*CODE, "README.md", "pyproject.toml", "tests/test_a.py", "README.md.orig"]
    if fails:
        with pytest.raises(ToolError, match=f"has, and should not {name}"):
            contents.check_sdist(path, tracked, PROJECT)
    else:
        assert contents.check_sdist(path, tracked, PROJECT).startswith("4 files")


def test_artefacts_of_other_bytes_or_without_a_twin_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    once = tmp_path / "once"
    again = tmp_path / "again"
    for folder, files in ((once, {"a": "1", "b": "1", "c": "1"}), (again, {"a": "1", "b": "2", "d": "1"})):
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    with pytest.raises(ToolError, match="to other bytes: b, c, d"):
        release.compare(once, again)
    assert "same bytes: a" in capsys.readouterr().out


def test_each_build_has_empty_caches_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    builder = tmp_path / "builder"
    builder.write_text('#!/bin/sh\nprintf "%s\\n" "$DRA_INFRA_CACHE" "$UV_CACHE_DIR" > "$3/caches"\n')
    builder.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(builder))
    monkeypatch.setattr(sources, "copy", Path.mkdir)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "of-the-user"))
    for name in ("once", "again"):
        home = tmp_path / name
        caches = [
            Path(line) for line in (release.build(home, {}, with_image=True) / "caches").read_text().split()
        ]
        assert len(set(caches)) == 2
        assert all(each.is_relative_to(home) and not each.exists() for each in caches)


PINS = """\
annotated-types==0.8.0 \\
    --hash=sha256:{a} \\
    --hash=sha256:{b}
    # via pydantic
pyyaml==6.0.3 ; sys_platform == 'linux' \\
    --hash=sha256:{c}
    # via -r requirements/plugin.in
""".format(a="a" * 64, b="b" * 64, c="c" * 64)


@pytest.fixture
def pins(tmp_path: Path) -> Path:
    path = tmp_path / "plugin.txt"
    path.write_text(PINS)
    return path


def image(folder: Path, **versions: str) -> Path:
    listed = {
        "debian": [{"name": "libc6", "version": "2.36-9+deb12u1", "sha256": "d" * 64}],
        "python": [{"name": name, "version": version} for name, version in versions.items()],
    }
    text = json.dumps(listed).encode()
    layer = oci_archive.layer({plugin_image.CONTENTS: (text, 0o644)}, folders={}, links={})
    path = folder / "image.tar"
    oci_archive.write(path, [oci_archive.Image(name="i:1", layers=(layer,))])
    return path


def test_a_bill_of_materials_names_each_pin_with_its_hashes(pins: Path):
    subject = sbom.Subject("dra-infra", "1.2.0", "e" * 64, is_image=False)
    text = sbom.write(subject, sbom.python_packages(pins), time=1700000000)
    read = json.loads(text)
    assert (read["bomFormat"], read["specVersion"]) == ("CycloneDX", "1.6")
    assert read["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert read["metadata"]["component"]["purl"] == "pkg:pypi/dra-infra@1.2.0"
    assert {
        each["purl"]: [found["content"][0] for found in each["hashes"]] for each in read["components"]
    } == {
        "pkg:pypi/annotated-types@0.8.0": ["a", "b"],
        "pkg:pypi/pyyaml@6.0.3": ["c"],
    }
    (root,) = [each for each in read["dependencies"] if each["ref"] == "dra-infra"]
    assert len(root["dependsOn"]) == 2
    assert sbom.write(subject, reversed(sbom.python_packages(pins)), time=1700000000) == text
    other = sbom.Subject("dra-infra", "1.2.0", "f" * 64, is_image=False)
    assert json.loads(sbom.write(other, [], time=0))["serialNumber"] != read["serialNumber"]


def test_the_pins_of_this_repository_are_all_in_a_bill_of_materials():
    text = (ROOT / "requirements" / "run.txt").read_text()
    found = sbom.python_packages(ROOT / "requirements" / "run.txt")
    assert len(found) == text.count("==") - text.count(" == ")
    assert all(each.hashes for each in found)
    assert sum(len(each.hashes) for each in found) == text.count("--hash=")


def test_a_bill_of_materials_of_an_image_is_of_what_is_in_it(pins: Path, tmp_path: Path):
    archive = image(tmp_path, annotated_types="0.8.0", pyyaml="6.0.3", dra_infra="1.2.0")
    found = sbom.packages_of_image(archive, pins)
    assert [each.name for each in found] == ["libc6", "annotated-types", "pyyaml"]
    assert str(found[0].purl).startswith("pkg:deb/")


@pytest.mark.parametrize(
    "versions",
    [
        {"annotated_types": "0.8.0", "pyyaml": "6.0.2"},
        {"annotated_types": "0.8.0", "pyyaml": "6.0.3", "left_pad": "1.0"},
        {"annotated_types": "0.8.0"},
    ],
)
def test_an_image_that_has_other_packages_than_are_pinned_is_refused(
    versions: dict[str, str], pins: Path, tmp_path: Path
):
    with pytest.raises(ToolError, match="the image has other releases than"):
        sbom.packages_of_image(image(tmp_path, dra_infra="1.2.0", **versions), pins)


def test_an_image_that_does_not_say_what_is_in_it_is_refused(tmp_path: Path):
    path = tmp_path / "image.tar"
    oci_archive.write(
        path, [oci_archive.Image(name="i:1", layers=(oci_archive.layer({}, folders={}, links={}),))]
    )
    with pytest.raises(ToolError, match="has no usr/share"):
        sbom.contents_of_image(path)
