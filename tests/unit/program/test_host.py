from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from dra_infra.errors import ProgramError
from dra_infra.program.synth import synth
from dra_infra.program_objects import Program


def write(folder: Path, files: Mapping[str, str], *, settings: str = "name: app\nruntime: python\n") -> Path:
    """Write a project with *files* by name into *folder*."""
    for name, text in {"Pulumi.yaml": settings, **files}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    return folder


def data_of(program: Program, name: str = "m") -> object:
    (found,) = [each.manifest for each in program.objects if each.ref.name == name]
    return found.get("data")


COMPONENT = """
    from __future__ import annotations
    import pulumi

    class Trainer(pulumi.ComponentResource):
        claim: pulumi.Output[str]

        def __init__(self, name: str):
            super().__init__("acme:ml:Trainer", name)
            self.claim = pulumi.Output.from_input(name)
"""
"""A component whose annotations are texts, which the SDK resolves when its registration is answered."""


@pytest.mark.parametrize("module", ["parts", "package.parts", ""])
def test_annotations_that_are_texts_are_resolved_in_the_programs_modules(tmp_path: Path, module: str):
    if module:
        files = {
            f"{module.replace('.', '/')}.py": COMPONENT,
            "__main__.py": f"from {module} import Trainer\nTrainer('a')",
        }
    else:
        files = {"__main__.py": textwrap.dedent(COMPONENT) + "\nTrainer('a')\n"}
    program = synth(write(tmp_path, files))
    assert "urn:pulumi:dev::app::acme:ml:Trainer::a" in program.resources


def test_an_apply_reads_files_and_modules_from_the_programs_folder(tmp_path: Path):
    program = """
        import json
        from pathlib import Path
        import pulumi, pulumi_kubernetes as k8s

        def read(path):
            import late
            return {"a": json.loads(Path(path).read_text())["a"], "b": late.B}

        k8s.core.v1.ConfigMap("m", metadata={"name": "m"}, data=pulumi.Output.from_input("values.json").apply(read))
    """
    here = Path.cwd()
    path = [*sys.path]
    write(tmp_path, {"src/__main__.py": program, "src/values.json": '{"a": "1"}', "src/late.py": "B = '2'"})
    write(tmp_path, {}, settings="name: app\nruntime: python\nmain: src\n")
    assert data_of(synth(tmp_path)) == {"a": "1", "b": "2"}
    assert Path.cwd() == here
    assert sys.path == path
    assert "late" not in sys.modules


SHARED = """
    import sys
    from pathlib import Path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
    import {imported}
    import pulumi_kubernetes as k8s
    k8s.core.v1.ConfigMap("m", metadata={{"name": "m"}}, data={{"a": {imported}.VALUE}})
"""


@pytest.mark.parametrize(("file", "imported"), [("fleet.py", "fleet"), ("acme/fleet.py", "acme.fleet")])
def test_a_run_has_none_of_the_modules_of_another_run(tmp_path: Path, file: str, imported: str):
    values = []
    path = [*sys.path]
    for checkout in ("base", "head", "base"):
        files = {
            "infra/__main__.py": SHARED.format(imported=imported),
            f"lib/{file}": f"VALUE = {checkout!r}",
        }
        write(tmp_path / checkout / "infra", {})
        write(tmp_path / checkout, files)
        values.append(data_of(synth(tmp_path / checkout / "infra")))
    assert values == [{"a": "base"}, {"a": "head"}, {"a": "base"}]
    assert sys.path == path


def test_a_run_has_none_of_the_modules_of_the_tests_that_started_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write(tmp_path / "tests", {"fleet.py": "VALUE = 'of the tests'"})
    monkeypatch.syspath_prepend(tmp_path / "tests")
    import fleet  # type: ignore[import-not-found]

    write(tmp_path / "infra", {"__main__.py": SHARED.format(imported="fleet")})
    write(tmp_path, {"lib/fleet.py": "VALUE = 'of the program'"})
    assert data_of(synth(tmp_path / "infra")) == {"a": "of the program"}
    assert sys.modules["fleet"] is fleet
    monkeypatch.delitem(sys.modules, "fleet")


@pytest.mark.parametrize(
    "made", ["dra.GpuClaimTemplate('t', device_class='a', count=99)", "raise ValueError"]
)
def test_a_place_in_a_package_beside_the_project_is_seen_from_the_project(tmp_path: Path, made: str):
    library = "import sys; sys.path.insert(0, __file__.rpartition('/')[0] + '/../packages'); import acme\n"
    write(tmp_path / "infra", {"__main__.py": library})
    write(tmp_path, {"packages/acme.py": f"import dra_infra as dra\n{made}\n"})
    try:
        problems = synth(tmp_path / "infra").problems
    except ProgramError as error:
        problems = error.problems
    assert [str(each.place) for each in problems] == ["../packages/acme.py:2"]


def test_an_object_of_an_installed_package_is_placed_at_the_line_that_makes_it(tmp_path: Path):
    library = "import sys; sys.path.insert(0, __file__.rpartition('/')[0] + '/lib/site-packages'); import acme\nacme.make()\n"
    made = "import dra_infra as dra\ndef make():\n    dra.GpuClaimTemplate('t', device_class='a', count=99)\n"
    write(tmp_path, {"__main__.py": library, "lib/site-packages/acme.py": made})
    (problem,) = synth(tmp_path).problems
    assert str(problem.place) == "__main__.py:2"


PACKAGES = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
USES_A_PACKAGE = """
    import acme_sdk
    import pulumi_kubernetes as k8s
    k8s.core.v1.ConfigMap("m", metadata={"name": "m"}, data={"a": acme_sdk.VALUE})
"""


@pytest.mark.parametrize(
    ("options", "folder", "marks"),
    [
        ("virtualenv: env", "infra/env", ()),
        ("{toolchain: pip, virtualenv: ../env}", "env", ()),
        ("toolchain: uv", "infra/.venv", ()),
        ("toolchain: uv", ".venv", ("uv.lock", "infra/pyproject.toml")),
        ("toolchain: uv", "infra/.venv", ("infra/pyproject.toml",)),
        ("{toolchain: uv, virtualenv: env}", "infra/env", ("uv.lock",)),
        ("toolchain: poetry", ".venv", ("pyproject.toml",)),
    ],
)
def test_a_program_runs_with_the_packages_of_the_environment_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, folder: str, marks: tuple[str, ...]
):
    # Poetry takes an environment that is active, as it is where these tests are run by other tools.
    for name in ("CONDA_PREFIX", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    path = [*sys.path]
    settings = f"name: app\nruntime:\n  name: python\n  options: {options}\n"
    if not options.startswith("{"):
        settings = settings.replace(options, f"{{{options}}}")
    write(tmp_path / "infra", {"__main__.py": USES_A_PACKAGE}, settings=settings)
    marked = dict.fromkeys(marks, "[project]\nname = 'app'\n")
    write(tmp_path, {f"{folder}/{PACKAGES}/acme_sdk.py": "VALUE = 'own'", **marked})
    assert data_of(synth(tmp_path / "infra")) == {"a": "own"}
    assert "acme_sdk" not in sys.modules
    assert sys.path == path


NAMED = "name: app\nruntime: {name: python, options: {virtualenv: env}}\n"


@pytest.mark.parametrize(
    ("settings", "packages", "hint"),
    [
        ("name: app\nruntime: python\n", PACKAGES, "into the environment that runs dra-infra"),
        (NAMED, f"other/{PACKAGES}", "into env, which Pulumi.yaml names: `pulumi install`"),
        (NAMED, "env/lib/python3.99/site-packages", "env is for Python 3.99, and dra-infra runs on 3."),
    ],
)
def test_a_package_that_is_missing_is_told_with_where_it_belongs(
    tmp_path: Path, settings: str, packages: str, hint: str
):
    write(
        tmp_path,
        {"__main__.py": USES_A_PACKAGE, f"{packages}/acme_sdk.py": "VALUE = 'own'"},
        settings=settings,
    )
    with pytest.raises(ProgramError) as error:
        synth(tmp_path)
    assert hint in error.value.problems[0].hint


def test_a_generated_sdk_in_the_project_registers_itself_in_every_run(tmp_path: Path):
    sdk = """
        import pulumi
        from semver import VersionInfo

        class Module(pulumi.runtime.ResourceModule):
            def version(self):
                return VersionInfo.parse("1.0.0")

            def construct(self, name, typ, urn):
                raise Exception("unknown")

        pulumi.runtime.register_resource_module("acme", "index", Module())
    """
    write(tmp_path, {"pulumi_acme/__init__.py": sdk, "__main__.py": "import pulumi_acme"})
    for _ in range(2):
        synth(tmp_path)
