"""Programs of Debian's packages, with stand-ins for apt and dpkg."""

from __future__ import annotations

import os
import stat

import pytest

from tools import debian
from tools.errors import ToolError

APT = """\
#!/bin/sh
echo "$@" >> "$RUNS"
[ "$1" = update ] && touch "$RUNS.lists"
[ "$1" = download ] || exit 0
if [ -n "$APT_FAILS" ] || { [ -n "$APT_NEEDS_LISTS" ] && [ ! -e "$RUNS.lists" ]; }; then
  echo "E: Unable to locate package" >&2; exit 100
fi
touch "$3_1.0_amd64.deb"
"""
DPKG = """\
#!/bin/sh
mkdir -p "$3/bin" && echo tool > "$3/bin/tool"
"""


@pytest.fixture
def apt_runs(tmp_path, monkeypatch):
    """Puts apt-get and dpkg-deb on PATH; returns what lists the runs of the former."""
    folder = tmp_path / "path"
    folder.mkdir()
    for name, text in (("apt-get", APT), ("dpkg-deb", DPKG)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    runs = tmp_path / "runs"
    monkeypatch.setenv("RUNS", str(runs))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("DRA_INFRA_CACHE", str(tmp_path / "cache"))
    return lambda: runs.read_text().splitlines()


def test_program_is_downloaded_once(apt_runs):
    first = debian.program("tools-static", "bin/tool")
    assert first.read_text() == "tool\n"
    assert debian.program("tools-static", "bin/tool") == first
    assert apt_runs() == ["download -qq tools-static"]


def test_machine_without_lists_of_packages_gets_them_first(apt_runs, monkeypatch):
    monkeypatch.setenv("APT_NEEDS_LISTS", "1")
    assert debian.program("tools-static", "bin/tool").is_file()
    assert apt_runs() == ["download -qq tools-static", "update -qq", "download -qq tools-static"]


def test_package_that_cannot_be_had_is_an_error_with_the_words_of_apt(apt_runs, monkeypatch, tmp_path):
    monkeypatch.setenv("APT_FAILS", "1")
    with pytest.raises(ToolError, match="could not download tools-static: E: Unable to locate package"):
        debian.program("tools-static", "bin/tool")
    assert [path for path in (tmp_path / "cache" / "tools").iterdir() if path.is_dir()] == []


def test_file_that_the_package_has_not_is_an_error(apt_runs):
    with pytest.raises(ToolError, match="tools-static has no bin/other"):
        debian.program("tools-static", "bin/other")


def test_machine_without_apt_uses_what_is_on_path(tmp_path, monkeypatch):
    monkeypatch.setenv("DRA_INFRA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="tool is not on PATH") as caught:
        debian.program("tools-static", "bin/tool")
    assert caught.value.hint == "install it; Debian has it in tools-static"
    (tmp_path / "tool").touch(mode=stat.S_IRWXU)
    assert debian.program("tools-static", "bin/tool") == tmp_path / "tool"
    assert os.access(tmp_path / "tool", os.X_OK)
