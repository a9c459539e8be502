from __future__ import annotations

import dataclasses

import pytest

from tools import toolsets
from tools.errors import ToolError

GO_VERSION = "go version go1.26.8 linux/amd64"
GO_MOD = """\
module dra-infra.invalid/tools/sample

go 1.26.0

require example.com/sample v1.2.3
"""


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """A toolset with a folder of its own to change."""
    monkeypatch.setattr(toolsets, "FOLDER", tmp_path)
    folder = tmp_path / "sample"
    folder.mkdir()
    (folder / "go.mod").write_text(GO_MOD)
    (folder / "go.sum").write_text("example.com/sample v1.2.3 h1:one=\n")
    return toolsets.Toolset(
        name="sample",
        purpose="a test",
        module="example.com/sample",
        minutes=1,
        binaries={"tool": "example.com/sample/cmd/tool"},
        ldflags=("-X main.version=v{version}", "-X main.minor={minor}"),
    )


@pytest.mark.parametrize("toolset", toolsets.load(), ids=lambda toolset: toolset.name)
class TestEachToolset:
    def test_has_go_mod_and_go_sum(self, toolset):
        assert (toolset.folder / "go.mod").is_file()
        assert (toolset.folder / "go.sum").is_file()

    def test_module_path_of_its_go_mod_is_its_name(self, toolset):
        first = (toolset.folder / "go.mod").read_text().splitlines()[0]
        assert first == f"module dra-infra.invalid/tools/{toolset.name}"

    def test_version_is_pinned_by_its_go_mod(self, toolset):
        assert f"{toolset.module} v{toolset.version}" in (toolset.folder / "go.mod").read_text()

    def test_packages_are_the_tools_of_its_go_mod_or_lie_beside_it(self, toolset):
        text = (toolset.folder / "go.mod").read_text()
        for package in toolset.binaries.values():
            if package.startswith("./"):
                assert (toolset.folder / package / "main.go").is_file()
                continue
            assert f"tool {package}\n" in text or f"\t{package}\n" in text

    def test_build_neither_changes_go_mod_nor_depends_on_the_machine(self, toolset, tmp_path):
        for command in toolset.commands(tmp_path, jobs=2):
            assert command[:4] == ["go", "build", "-p", "2"]
            assert {"-trimpath", "-mod=readonly", "-buildvcs=false", "-gcflags=all=-dwarf=false"} <= set(
                command
            )

    def test_go_mod_and_go_sum_name_modules_and_no_addresses(self, toolset):
        for name in ("go.mod", "go.sum"):
            assert "://" not in (toolset.folder / name).read_text()


def test_toolset_folders_and_data_agree():
    folders = {path.parent.name for path in toolsets.FOLDER.glob("*/go.mod")}
    assert folders == {toolset.name for toolset in toolsets.load()}


def test_binary_names_are_unique_among_what_is_built_by_default():
    names = [name for toolset in toolsets.load() if not toolset.optional for name in toolset.binaries]
    assert len(names) == len(set(names))


def test_pulumi_yaml_host_reports_the_version_that_is_pinned():
    [engine] = [toolset for toolset in toolsets.load() if toolset.name == "engine"]
    [flag] = [flag for flag in engine.ldflags if "pulumi-yaml" in flag]
    version = flag.rpartition("=")[2]
    assert f"github.com/pulumi/pulumi-yaml {version}" in (engine.folder / "go.mod").read_text()


def test_binary_named_like_its_package_is_built_with_its_siblings(sample, tmp_path):
    sample = dataclasses.replace(sample, binaries={"one": "example.com/one", "two": "example.com/two"})
    [command] = sample.commands(tmp_path, jobs=1)
    assert command[-4:] == ["-o", f"{tmp_path}/", "example.com/one", "example.com/two"]


def test_binary_with_another_name_is_built_by_a_command_of_its_own(sample, tmp_path):
    sample = dataclasses.replace(sample, binaries={"etcd": "example.com/server/v3"})
    [command] = sample.commands(tmp_path, jobs=1)
    assert command[-3:] == ["-o", str(tmp_path / "etcd"), "example.com/server/v3"]


def test_linker_flags_carry_the_pinned_version(sample, tmp_path):
    [command] = sample.commands(tmp_path, jobs=1)
    assert command[command.index("-ldflags") + 1] == "-s -w -X main.version=v1.2.3 -X main.minor=2"


def test_key_is_the_same_for_the_same_build(sample):
    assert sample.key(GO_VERSION) == sample.key(GO_VERSION)


@pytest.mark.parametrize("file", ["go.mod", "go.sum"])
def test_key_changes_with_go_mod_and_go_sum(sample, file):
    before = sample.key(GO_VERSION)
    with (sample.folder / file).open("a") as stream:
        stream.write("\n")
    assert sample.key(GO_VERSION) != before


@pytest.mark.parametrize(
    "change",
    [
        {"ldflags": ()},
        {"tags": ("netgo",)},
        {"binaries": {"tool": "example.com/sample/cmd/other"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_key_changes_with_flags_and_packages(sample, change):
    assert dataclasses.replace(sample, **change).key(GO_VERSION) != sample.key(GO_VERSION)


def test_key_changes_with_the_programs_that_lie_beside_go_mod(sample):
    before = sample.key("go1")
    program = sample.folder / "judge" / "main.go"
    program.parent.mkdir()
    program.write_text("package main\n")
    assert sample.key("go1") != before


def test_key_changes_with_go(sample):
    assert sample.key("go version go1.26.9 linux/amd64") != sample.key(GO_VERSION)


def test_key_does_not_change_with_what_only_people_read(sample):
    changed = dataclasses.replace(sample, purpose="another", minutes=9)
    assert changed.key(GO_VERSION) == sample.key(GO_VERSION)


def test_go_mod_without_the_module_is_an_error(sample):
    (sample.folder / "go.mod").write_text("module dra-infra.invalid/tools/sample\n")
    with pytest.raises(ToolError, match=r"toolset sample: go.mod does not require example.com/sample"):
        _ = sample.version


def test_missing_go_mod_is_an_error_that_names_the_file(sample):
    (sample.folder / "go.mod").unlink()
    with pytest.raises(ToolError, match=r"sample/go.mod is missing"):
        _ = sample.version


def test_flags_of_the_users_shell_do_not_reach_the_build(monkeypatch):
    monkeypatch.setenv("GOFLAGS", "-race")
    monkeypatch.setenv("GOOS", "plan9")
    environment = toolsets.build_environment()
    assert environment["GOFLAGS"] == "-buildvcs=false"
    assert "GOOS" not in environment


def test_a_build_does_not_collect_garbage_unless_the_user_says_how(monkeypatch):
    for name in ("GOGC", "GOMEMLIMIT"):
        monkeypatch.delenv(name, raising=False)
    environment = toolsets.build_environment()
    assert (environment["GOGC"], environment["GOMEMLIMIT"]) == ("off", "2GiB")
    monkeypatch.setenv("GOGC", "50")
    assert toolsets.build_environment()["GOGC"] == "50"
