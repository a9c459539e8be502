"""A file that is rewritten in the same second, with the same size, is read as it is."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import sys
from collections.abc import Callable
from importlib import machinery
from pathlib import Path

import pytest
import yaml

import dra_infra
from dra_infra.program.current_modules import compiled_anew
from dra_infra.program.isolated import RunningSynth
from dra_infra.program.synth import synth
from dra_infra.program_objects import Program

PROGRAM = """
import pulumi_kubernetes as k8s
{}
k8s.core.v1.Namespace("n", metadata={{"name": {}}})
"""


def write(file: Path, text: str) -> None:
    """Write a module, and leave the bytecode that Python makes of it, as of an earlier second."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (1e9, 1e9))
    py_compile.compile(str(file), doraise=True)


def rewrite(file: Path, before: str, after: str) -> None:
    """Change a module so that Python takes the bytecode of the former one as current."""
    assert len(before) == len(after)
    file.write_text(file.read_text().replace(before, after))
    os.utime(file, (1e9, 1e9))


def confined(folder: Path) -> Program:
    return RunningSynth(folder, inside=folder.parent).result()


@pytest.mark.parametrize("run", [synth, confined])
@pytest.mark.parametrize(
    ("file", "imports", "name"),
    [
        ("infra/__main__.py", "", '"old"'),
        ("infra/names.py", "import names", "names.NAME"),
        ("infra/pack/__init__.py", "import pack", "pack.NAME"),
        ("infra/pack/inner/names.py", "from pack.inner import names", "names.NAME"),
        ("shared/names.py", "import sys; sys.path.append('../shared'); import names", "names.NAME"),
    ],
)
def test_a_module_of_a_program_is_read_as_it_is(
    tmp_path: Path, run: Callable[[Path], Program], file: str, imports: str, name: str
):
    folder = tmp_path / "infra"
    write(folder / "__main__.py", PROGRAM.format(imports, name))
    (folder / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    if name != '"old"':
        write(tmp_path / file, 'NAME = "old"\n')
    rewrite(tmp_path / file, '"old"', '"new"')

    assert [each.ref.name for each in run(folder).objects] == ["new"]


def test_a_module_on_the_module_path_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "infra"
    write(tmp_path / "shared" / "names.py", 'NAME = "old"\n')
    write(folder / "__main__.py", PROGRAM.format("import names", "names.NAME"))
    (folder / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shared"))
    monkeypatch.syspath_prepend(str(tmp_path / "shared"))

    for text in ("old", "new", "tmp"):
        rewrite(tmp_path / "shared" / "names.py", "old", text)
        assert [each.ref.name for each in synth(folder).objects] == [text]
        assert [each.ref.name for each in confined(folder).objects] == [text]
        rewrite(tmp_path / "shared" / "names.py", text, "old")


def test_what_a_program_imports_leaves_no_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "names.py").write_text('NAME = "n"\n')
    (tmp_path / "__main__.py").write_text(PROGRAM.format("import names", "names.NAME"))
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    synth(tmp_path)

    assert {each.name for each in tmp_path.iterdir()} == {"Pulumi.yaml", "__main__.py", "names.py"}


def test_installed_packages_and_our_own_keep_their_bytecode():
    with compiled_anew():
        for package, name in ((json, "json.tool"), (yaml, "yaml.loader"), (dra_infra, "dra_infra.fleet")):
            spec = machinery.PathFinder.find_spec(name, package.__path__)
            assert spec
            assert type(spec.loader) is machinery.SourceFileLoader


def test_an_environment_in_the_project_keeps_its_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    packages = tmp_path / "venv" / "lib" / "python3" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "acme_names.py").touch()
    with compiled_anew():
        monkeypatch.syspath_prepend(str(packages))
        spec = importlib.util.find_spec("acme_names")
        assert spec
        assert type(spec.loader) is machinery.SourceFileLoader


def test_a_module_without_a_source_is_still_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = tmp_path / "acme_compiled.py"
    source.write_text("NAME = 'n'\n")
    py_compile.compile(str(source), cfile=str(tmp_path / "acme_compiled.pyc"), doraise=True)
    source.unlink()
    monkeypatch.syspath_prepend(str(tmp_path))
    with compiled_anew():
        assert importlib.util.find_spec("acme_compiled")


def test_nothing_of_it_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "acme_before.py").touch()
    importlib.util.find_spec("acme_before")
    finder = sys.path_importer_cache[str(tmp_path)]
    hooks = [*sys.path_hooks]
    with compiled_anew():
        importlib.util.find_spec("acme_before")
        assert sys.path_importer_cache[str(tmp_path)] is not finder

    assert sys.path_hooks == hooks
    assert sys.path_importer_cache[str(tmp_path)] is finder
