"""`make release-check` without the image: real builds, and a real environment. Asks the package index for what is pinned."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tools.errors import ToolError
from tools.release import __main__ as release
from tools.release import artefacts, installation, sources

pytestmark = pytest.mark.e2e


def test_a_release_passes_and_lies_in_dist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    status = release.main(["--no-image"])
    said = capsys.readouterr()
    assert status == 0, said.err
    version = sources.version()
    assert {path.name for path in (tmp_path / "dist").iterdir()} == {
        f"dra_infra-{version}-py3-none-any.whl",
        f"dra_infra-{version}.tar.gz",
        artefacts.WHEEL_SBOM,
        "NOTES.md",
        "SHA256SUMS",
    }
    assert "builds the same wheel" in said.out


@pytest.mark.parametrize("name", ["dra_infra/__init__.py", "README.md"])
def test_what_depends_on_the_time_stops_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    copy = sources.copy

    def copy_with_time(folder: Path) -> None:
        copy(folder)
        with (folder / name).open("a") as file:
            file.write(f"\n# {time.time_ns()}\n")

    monkeypatch.setattr(sources, "copy", copy_with_time)
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    folders = [release.build(tmp_path / name, {}, with_image=False) for name in ("once", "again")]
    with pytest.raises(ToolError, match=r"to other bytes: .*\.whl, dra_infra-.*\.tar\.gz"):
        release.compare(*folders)
    assert not (tmp_path / "dist").exists()


def test_a_wheel_that_says_another_version_is_refused(tmp_path: Path):
    wheel = artefacts.hatch("wheel", sources.ROOT, tmp_path)
    requirements = sources.ROOT / "requirements" / "run.txt"
    example = sources.ROOT / "examples" / "00-quickstart"
    with pytest.raises(ToolError, match=r"and is to name 9\.9\.9"):
        installation.check(wheel, requirements, example, "9.9.9")


def test_pins_that_lack_what_the_wheel_needs_are_refused(tmp_path: Path):
    wheel = artefacts.hatch("wheel", sources.ROOT, tmp_path)
    few = tmp_path / "few.txt"
    plugin = (sources.ROOT / "requirements" / "plugin.txt").read_text()
    few.write_text(plugin)
    with pytest.raises(ToolError, match="uv pip check"):
        installation.check(wheel, few, sources.ROOT / "examples" / "00-quickstart", sources.version())
