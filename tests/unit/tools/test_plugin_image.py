from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
from pathlib import Path

import pytest
import yaml

from dra_infra.specs.node_plugin.checks import IMAGE
from tools.image import debian, import_closure, plugin_image, python_packages, shared_libraries
from tools.image.__main__ import main
from tools.image.tree import Tree

ROOT = Path(__file__).parents[3]


def a_tree() -> Tree:
    tree = Tree()
    tree.add_file("usr/bin/tool", b"#!/bin/sh\n", executable=True)
    tree.add_link("bin", "usr/bin")
    tree.add_folder("tmp", 0o1777)
    return tree


@pytest.mark.parametrize("where", [".", "nowhere/image.tar"])
def test_a_file_that_cannot_be_written_is_told_before_anything_is_built(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("tools.image.__main__.build", lambda: pytest.fail("it was built"))
    assert main(["--output", str(tmp_path / where)]) == 1
    assert capsys.readouterr().err.startswith("make image: ")


def test_a_tree_has_folders_above_files_and_everything_is_roots_of_1970():
    with tarfile.open(fileobj=io.BytesIO(a_tree().to_tar())) as archive:
        entries = {each.name: each for each in archive}
    assert list(entries) == ["bin", "tmp", "usr", "usr/bin", "usr/bin/tool"]
    assert {(each.uid, each.gid, each.uname, each.mtime) for each in entries.values()} == {(0, 0, "", 0)}
    assert entries["usr/bin/tool"].mode == 0o755
    assert entries["tmp"].mode == 0o1777
    assert entries["bin"].linkname == "usr/bin"


def test_of_a_folder_neither_times_nor_the_umask_count(tmp_path: Path):
    for name, mode in (("one", 0o600), ("two", 0o664)):
        folder = tmp_path / name
        (folder / "below").mkdir(parents=True, mode=0o700)
        (folder / "below" / "text").write_text("text")
        (folder / "below" / "text").chmod(mode)
        (folder / "link").symlink_to("below")
    one, two = (Tree.of_folder(tmp_path / name).to_tar() for name in ("one", "two"))
    assert one == two


@pytest.mark.parametrize("name", ["/etc/passwd", "../passwd", "a/../../b"])
def test_nothing_outside_an_image_can_be_named(name: str):
    with pytest.raises(ValueError, match="no path below the root"):
        Tree().add_file(name, b"")


def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> list[str]:
    """What is left of a package with these files, by a stand-in for dpkg-deb that prints its content."""
    content = tmp_path / "content.tar"
    with tarfile.open(content, "w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"./{name}"))
    command = tmp_path / "bin" / "dpkg-deb"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\ncat {content}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
    root = tmp_path / "root"
    debian.unpack(tmp_path / "any.deb", root)
    return sorted(str(each.relative_to(root)) for each in root.rglob("*") if each.is_file())


APT_GET = """\
#!/bin/sh
# As apt: the strongest hash that its lists have, unless one is asked for.
hash=SHA512:%0128d
for word in "$@"; do
  case $word in
    Acquire::ForceHash=SHA256) hash=SHA256:%064d ;;
    python3*|lib*|zlib*) echo "'https://packages.example/$word.deb' ${word}_1.0_amd64.deb 1000 $(printf $hash 7)" ;;
  esac
done
"""
APT_CACHE = """\
#!/bin/sh
[ "$1" = depends ] && echo "  Depends: python3.12-minimal"
exit 0
"""


def test_packages_are_known_by_the_hash_that_is_compared_where_apt_prefers_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, text in {"apt-get": APT_GET, "apt-cache": APT_CACHE, "dpkg-deb": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    python, packages = debian.choose()
    assert python == "3.12"
    assert {each.name for each in packages} >= {"python3.12-minimal", "libc6", "zlib1g"}
    assert {each.sha256 for each in packages} == {f"{7:064d}"}


def test_of_a_package_what_runs_and_its_licence_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kept = [
        "usr/bin/python3.11",
        "usr/lib/python3.11/json/__init__.py",
        "usr/lib/python3.11/lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so",
        "usr/lib/x86_64-linux-gnu/libz.so.1",
        "usr/share/doc/zlib1g/copyright",
    ]
    left_out = [
        "etc/python3.11/sitecustomize.py",
        "usr/bin/pdb3",
        "usr/lib/python3.11/test/support.py",
        "usr/lib/python3.11/lib-dynload/_sqlite3.cpython-311-x86_64-linux-gnu.so",
        "usr/lib/x86_64-linux-gnu/gconv/ISO8859-1.so",
        "usr/share/doc/zlib1g/changelog.gz",
        "usr/share/man/man1/python3.11.1.gz",
    ]
    assert unpacked(tmp_path, monkeypatch, *kept, *left_out) == kept


def test_libraries_of_packages_that_know_no_merged_usr_land_in_usr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = unpacked(tmp_path, monkeypatch, "lib/x86_64-linux-gnu/libc.so.6")
    assert found == ["usr/lib/x86_64-linux-gnu/libc.so.6"]


def test_a_link_that_points_at_nothing_in_the_image_is_told(tmp_path: Path):
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr" / "there").write_text("")
    (tmp_path / "good").symlink_to("usr/there")
    (tmp_path / "usr" / "absolute").symlink_to("/usr/there")
    (tmp_path / "usr" / "bad").symlink_to("/usr/bin/true")
    assert list(debian.dangling_links(tmp_path)) == ["usr/bad -> /usr/bin/true"]


def test_a_library_that_is_not_there_is_told_with_who_needs_it(tmp_path: Path):
    program = Path("/bin/sh").resolve()
    linked = shared_libraries.read(program.read_bytes())
    assert linked is not None
    needed = [name for name in linked.needs if name.startswith("libc.")]
    assert needed
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "usr" / "bin" / "sh").write_bytes(program.read_bytes())
    assert f"usr/bin/sh needs {needed[0]}" in list(shared_libraries.missing(tmp_path))
    (tmp_path / "usr" / "lib").mkdir()
    for name in linked.needs:
        (tmp_path / "usr" / "lib" / name).write_bytes(b"")
    assert list(shared_libraries.missing(tmp_path)) == []


def test_what_readelf_says_is_what_is_read():
    extension = next(Path(sys.prefix).rglob("cygrpc*.so"))
    try:
        printed = subprocess.run(["readelf", "-d", extension], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        pytest.skip("readelf is not installed")
    linked = shared_libraries.read(extension.read_bytes())
    assert linked is not None
    assert all(f"[{name}]" in printed.stdout for name in linked.needs)
    assert len(linked.needs) == printed.stdout.count("(NEEDED)")


def test_a_file_that_is_no_library_needs_nothing():
    assert shared_libraries.read(b"#!/bin/sh\n") is None


def test_only_commands_of_the_plugin_are_in_the_image(tmp_path: Path):
    folder = tmp_path / "dra_infra-0.1.0.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text(
        "[console_scripts]\ndra-infra = dra_infra.cli.process:main\ndra-infra-plugin = dra_infra.plugin.command.main:main\n"
    )
    (command,) = python_packages.starters(tmp_path).items()
    assert command[0] == "dra-infra-plugin"
    assert "from dra_infra.plugin.command.main import main" in command[1]


def test_archives_of_days_ago_are_deleted_and_those_of_today_are_not(tmp_path: Path):
    old, new = "0" * 16, "f" * 16
    for name, days in ((old, 3), (new, 1)):
        for path in (tmp_path / f"dra-infra-plugin-{name}.tar", tmp_path / f".unfinished-{name}"):
            path.mkdir() if path.name.startswith(".") else path.touch()
            os.utime(path, (time.time() - days * 24 * 3600,) * 2)
    command = tmp_path / f"dra-infra-{old}.tar"
    command.touch()
    os.utime(command, (0, 0))
    plugin_image._forget_old(tmp_path)
    # That of the other image is deleted when this one is built.
    left = {f".unfinished-{new}", f"dra-infra-plugin-{new}.tar"}
    assert {each.name for each in tmp_path.iterdir()} == {*left, command.name}
    plugin_image._forget_old(tmp_path, plugin_image.COMMAND)
    assert {each.name for each in tmp_path.iterdir()} == left


def test_the_images_have_names_and_requirements_of_their_own():
    assert plugin_image.image_name() == "localhost/dra-infra-plugin:0.1.0"
    assert plugin_image.image_name(plugin_image.COMMAND) == "localhost/dra-infra:0.1.0"
    hashed = {
        kind.command: set(plugin_image._sources(kind)) for kind in (plugin_image.PLUGIN, plugin_image.COMMAND)
    }
    assert hashed["dra-infra"] ^ hashed["dra-infra-plugin"] == {
        "requirements/run.txt",
        "requirements/plugin.txt",
    }


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image has of our package."""
    folder = tmp_path_factory.mktemp("carried")
    shutil.copytree(ROOT / "dra_infra", folder / "dra_infra", ignore=shutil.ignore_patterns("__pycache__"))
    python_packages.keep_imported(folder)
    return folder


def modules_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in (folder / "dra_infra").rglob("*.py")}


def run_in(folder: Path, code: str) -> str:
    """What a Python prints that has the libraries of this one, and of ours what is in *folder*."""
    libraries = Path(yaml.__file__).parents[1]
    start = f"import sys; sys.path[:0] = [{str(folder)!r}]; sys.path.append({str(libraries)!r})\n"
    command = [sys.executable, "-I", "-S", "-B", "-c", start + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_image_has_the_modules_that_the_plugin_imports_and_no_other_ones(carried: Path):
    closure = import_closure.find_closure(ROOT, python_packages.CARRIED)
    assert modules_in(carried) == {str(path.relative_to(ROOT)) for path in closure.values()}
    assert modules_in(carried) < modules_in(ROOT)


def test_every_module_in_the_image_loads_from_it_alone(carried: Path):
    code = (
        "import importlib, pathlib\n"
        f"for path in sorted(pathlib.Path({str(carried)!r}).rglob('*.py')):\n"
        f"    parts = path.relative_to({str(carried)!r}).with_suffix('').parts\n"
        "    importlib.import_module('.'.join(parts[:-1] if parts[-1] == '__init__' else parts))\n"
        "print(*(each.__file__ for name, each in sys.modules.items() if name.partition('.')[0] == 'dra_infra'))"
    )
    assert {str(Path(each).relative_to(carried)) for each in run_in(carried, code).split()} == modules_in(
        carried
    )


def test_the_plugin_starts_from_what_is_in_the_image(carried: Path):
    code = "from dra_infra.plugin.command.main import main; sys.argv[1:] = ['--version']; main()"
    assert "0.1.0" in run_in(carried, code)


def test_records_of_the_api_are_read_from_what_is_in_the_image(carried: Path):
    code = (
        "from dra_infra.kubernetes.api import decode\n"
        "for kind in ('DeviceClass', 'ResourceClaim', 'ResourceClaimTemplate', 'ResourceSlice', 'DeviceTaintRule'):\n"
        "    decode({'apiVersion': 'resource.k8s.io/v1', 'kind': kind, 'metadata': {'name': 'a'}, 'spec': {}}, minor=37)"
    )
    assert run_in(carried, code) == ""


def test_fleets_that_the_plugin_simulates_are_in_the_image(carried: Path):
    code = "from dra_infra.catalog import load_fleet; print(load_fleet('hgx-h100').device_count)"
    assert int(run_in(carried, code)) > 0


def test_the_image_has_nothing_that_the_plugin_may_not_import(carried: Path):
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each.get("source_modules") == ["dra_infra.plugin"]]
    for name in contract["forbidden_modules"]:
        path = carried.joinpath(*name.split("."))
        assert not path.with_suffix(".py").exists(), name
        # `kubernetes.cel` and its like show their names, and have no module behind them.
        assert not path.exists(), name
    assert not contract.get("allow_indirect_imports")


def test_the_image_has_data_of_its_packages_alone(carried: Path):
    data = {str(each.relative_to(carried)) for each in carried.rglob("*") if each.is_file()} - modules_in(
        carried
    )
    assert "dra_infra/catalog/data/fleets.yaml" in data
    assert {each.split("/")[1] for each in data} == {"catalog", "plugin"}


def test_an_import_of_a_name_that_is_loaded_late_counts_as_that_of_its_module():
    """Without it, the image would lack `quantity.py` when nothing imports it in another way."""
    closure = import_closure.find_closure(ROOT, ["dra_infra.plugin"])
    assert "dra_infra.kubernetes.api.quantity" in closure
    assert "dra_infra.kubernetes.api.workload_kinds" not in closure


def test_what_the_guide_runs_in_the_plugins_container_is_in_the_image(tmp_path: Path):
    folder = tmp_path / "usr" / "bin"
    folder.mkdir(parents=True)
    debian.make_links(tmp_path, "3.11")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    present = {path.name for path in folder.iterdir()} | {name for name in scripts if "plugin" in name}
    pages = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    run = re.findall(r"kubectl exec .*? -- (\S+)", pages)
    assert run
    assert set(run) <= present


def test_the_component_and_make_image_name_one_image():
    assert plugin_image.image_name() == IMAGE


def test_the_containerfile_copies_what_is_there_and_its_context_has_no_more():
    lines = (ROOT / "Containerfile").read_text().splitlines()
    copied = [
        name
        for line in lines
        if line.startswith("COPY ") and "--from" not in line
        for name in line.split()[1:-1]
    ]
    assert "dra_infra" in copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    allowed = {
        line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")
    }
    assert {name.split("/")[0] for name in copied} == allowed
    assert (ROOT / ".containerignore").read_text() == (ROOT / ".dockerignore").read_text()


def test_the_base_of_the_containerfile_is_named_by_its_digest_at_one_place():
    lines = (ROOT / "Containerfile").read_text().splitlines()
    (base,) = [line.removeprefix("ARG BASE=") for line in lines if line.startswith("ARG BASE=")]
    assert re.fullmatch(r"docker\.io/library/python:3\.11-slim-bookworm@sha256:[0-9a-f]{64}", base)
    assert [line.split()[1] for line in lines if line.startswith("FROM ")] == ["${BASE}", "${BASE}"]


@pytest.mark.parametrize(
    ("base", "built"), [("python:3.11", False), ("python@sha256:" + "0" * 64, True), ("", False)]
)
def test_the_containerfile_does_not_build_on_a_base_without_a_digest(base: str, built: bool):
    """The command of its first stage, as a builder runs it."""
    lines = (ROOT / "Containerfile").read_text().splitlines()
    first = lines.index("FROM ${BASE} AS build")
    assert lines[first + 1] == "ARG BASE"
    command = lines[first + 2].removeprefix("RUN ")
    done = subprocess.run(
        ["/bin/sh", "-c", command], env={"BASE": base}, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == built
    assert ("by its digest" in done.stderr) != built
