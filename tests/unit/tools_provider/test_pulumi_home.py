"""The folder from which the engine runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tools.errors import ToolError
from tools.pulumi_home import HOST_VARIABLE, PROVIDER_VARIABLE, assemble, choose_host, choose_provider


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    folder = tmp_path / "binaries"
    folder.mkdir()
    for name in ("pulumi", "pulumi-language-yaml", "helm", "kubectl"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def test_everything_the_engine_looks_for_lies_beside_it(tmp_path: Path, binaries: Path) -> None:
    home = assemble(tmp_path / "home", binaries=binaries.joinpath)

    beside = home.pulumi.parent
    assert not home.pulumi.is_symlink()
    assert {path.name for path in beside.iterdir()} == {
        "helm",
        "kubectl",
        "pulumi",
        "pulumi-language-python",
        "pulumi-language-yaml",
    }
    assert home.environment["PATH"].split(os.pathsep)[0] == str(beside)


def test_nothing_of_the_users_own_installation_is_used(
    tmp_path: Path, binaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "hush")
    monkeypatch.setenv("KUBECONFIG", "/somewhere")
    directory = tmp_path / "home"

    environment = assemble(directory, binaries=binaries.joinpath).environment

    assert not {"PULUMI_ACCESS_TOKEN", "KUBECONFIG"} & environment.keys()
    for name in ("HOME", "PULUMI_HOME"):
        assert Path(environment[name]).is_relative_to(directory)
    assert environment["PULUMI_BACKEND_URL"].startswith(directory.as_uri())


def test_assembling_twice_changes_nothing(tmp_path: Path, binaries: Path) -> None:
    first = assemble(tmp_path / "home", binaries=binaries.joinpath)

    assert assemble(tmp_path / "home", binaries=binaries.joinpath) == first


def test_launchers_run_with_the_interpreter_they_were_made_for(tmp_path: Path, binaries: Path) -> None:
    python = tmp_path / "with space" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)

    home = assemble(tmp_path / "home", python=python, binaries=binaries.joinpath)

    launcher = home.pulumi.with_name("pulumi-language-python")
    said = subprocess.run([launcher, "127.0.0.1:1"], capture_output=True, text=True, check=True).stdout
    assert said.split()[0] == "-u"
    assert said.split()[-1] == "127.0.0.1:1"


def test_the_vendors_provider_is_found_the_vendors_way(
    tmp_path: Path, binaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_HOME", "/plugins/of/the/user")

    home = assemble(tmp_path / "home", binaries=binaries.joinpath, provider="vendor")

    assert home.plugins == {}
    assert home.environment["PULUMI_HOME"] == "/plugins/of/the/user"


def test_the_vendors_host_is_found_on_the_path_and_nowhere_else(
    tmp_path: Path, binaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    monkeypatch.setenv("PATH", str(installed))
    with pytest.raises(ToolError, match="pulumi-language-python: not on PATH"):
        assemble(tmp_path / "home", binaries=binaries.joinpath, host="vendor")
    (installed / "pulumi-language-python").write_text("#!/bin/sh\n")
    (installed / "pulumi-language-python").chmod(0o755)

    home = assemble(tmp_path / "home", binaries=binaries.joinpath, host="vendor")

    assert home.host == "vendor"
    assert not home.pulumi.with_name("pulumi-language-python").exists()
    assert home.environment["PATH"].split(os.pathsep)[-1] == str(installed)


def test_the_choice_of_a_host_is_checked() -> None:
    assert choose_host({}) == "stand-in"
    assert choose_host({HOST_VARIABLE: "vendor"}) == "vendor"
    with pytest.raises(ValueError, match=r"DRA_INFRA_HOST: 'vendr' is neither"):
        choose_host({HOST_VARIABLE: "vendr"})


def test_the_choice_of_a_provider_is_checked() -> None:
    assert choose_provider({}) == "stand-in"
    assert choose_provider({PROVIDER_VARIABLE: "vendor"}) == "vendor"
    with pytest.raises(ValueError, match=r"DRA_INFRA_PROVIDER: 'vendr' is neither"):
        choose_provider({PROVIDER_VARIABLE: "vendr"})
