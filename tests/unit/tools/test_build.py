"""The build with a stand-in for Go: what it keeps, what it says, and what it leaves when Go fails."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import build, cache, toolsets
from tools.errors import ToolError
from tools.progress import Progress

ROOT = Path(__file__).parents[3]

FAKE_GO = """\
#!{python}
import os, pathlib, sys, time
if sys.argv[1] == "version":
    print("go version go1.99.0 linux/amd64")
elif sys.argv[1] == "env":
    print("https://modules.corp.example,direct")
elif os.environ.get("FAKE_GO_FAILS"):
    print(os.environ["FAKE_GO_FAILS"], file=sys.stderr)
    sys.exit(1)
elif sys.argv[1] == "list":
    draft = pathlib.Path({log!r} + ".draft")
    draft.write_text(" ".join([str(os.getpid()), str(os.nice(0)), *sys.argv[1:]]) + "\\n")
    draft.rename({log!r} + ".ahead")
    time.sleep(600)
else:
    until = time.monotonic() + 300
    while os.environ.get("FAKE_GO_WAITS") == sys.argv[-1] and not os.path.exists({log!r} + ".ahead"):
        if time.monotonic() > until:
            sys.exit("nothing was compiled meanwhile")
        time.sleep(0.01)
    with open({log!r}, "a") as log:
        log.write(" ".join(sys.argv[1:]) + "\\n")
    output = sys.argv[sys.argv.index("-o") + 1]
    for package in sys.argv[sys.argv.index("-o") + 2:]:
        name = output + package.rpartition("/")[2] if output.endswith("/") else output
        pathlib.Path(name).write_text("binary")
"""


@pytest.fixture(autouse=True)
def user_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DRA_INFRA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DRA_INFRA_BIN", raising=False)
    # Kept, because tests replace the name.
    go_version = build.go_version
    go_version.cache_clear()
    yield tmp_path / "cache" / "tools"
    go_version.cache_clear()


@pytest.fixture
def go_runs(tmp_path, monkeypatch):
    """Puts a fake go on PATH; returns what lists its builds so far."""
    log = tmp_path / "runs"
    log.touch()
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "go").write_text(FAKE_GO.format(python=sys.executable, log=str(log)))
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return lambda: log.read_text().splitlines()


@pytest.fixture
def no_go(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))


def entries(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_build_makes_all_binaries_and_links_them(go_runs, user_cache, capsys):
    assert build.main(["--only", "etcd", "helm", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["state"]) for row in report["binaries"]] == [
        ("etcd", "built"),
        ("helm", "built"),
    ]
    for name in ("etcd", "helm"):
        assert (user_cache / "bin" / name).resolve() == build.binary(name)
        assert build.binary(name).read_text() == "binary"


def test_second_build_does_not_run_go_again(go_runs, capsys):
    build.main(["--only", "etcd"])
    before = go_runs()
    capsys.readouterr()
    assert build.main(["--only", "etcd", "--json"]) == 0
    assert go_runs() == before
    [row] = json.loads(capsys.readouterr().out)["binaries"]
    assert row["state"] == "cached"


def test_removed_binary_is_built_again(go_runs):
    build.main(["--only", "etcd"])
    build.binary("etcd").unlink()
    build.main(["--only", "etcd"])
    assert build.binary("etcd").is_file()


def test_what_comes_next_is_compiled_meanwhile_below_all_else(go_runs, tmp_path, monkeypatch):
    etcd, helm = (
        next(iter(each.binaries.values())) for each in toolsets.load() if each.name in ("etcd", "helm")
    )
    monkeypatch.setenv("FAKE_GO_WAITS", etcd)
    assert build.main(["--only", "etcd", "helm", "--jobs", "2"]) == 0
    [line] = (tmp_path / "runs.ahead").read_text().splitlines()
    pid, nice, *words = line.split(" ")
    assert int(nice) == 19
    assert words[:3] == ["list", "-p", "2"]
    assert words[-3:] == ["-export", "-deps", helm]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
    # The same flags, or what is compiled would be of no use.
    [of_helm] = [each for each in go_runs() if helm in each]
    assert set(words) - {"list", "-export", "-deps"} < set(of_helm.split(" "))


def test_with_memory_for_one_job_nothing_is_compiled_meanwhile(go_runs, monkeypatch):
    monkeypatch.setattr(toolsets.Toolset, "compile_command", lambda *_, **__: pytest.fail("it is"))
    assert build.main(["--only", "etcd", "helm", "--jobs", "1"]) == 0


def test_job_count_reaches_go(go_runs):
    build.main(["--only", "etcd", "--jobs", "3"])
    assert "-p 3" in go_runs()[0]


def test_list_builds_nothing(go_runs, user_cache, capsys):
    assert build.main(["--list", "--json"]) == 0
    states = {row["state"] for row in json.loads(capsys.readouterr().out)["binaries"]}
    assert states == {"missing"}
    assert go_runs() == []
    assert not user_cache.exists()


def test_list_names_every_binary(go_runs, capsys):
    build.main(["--list"])
    printed = capsys.readouterr().out
    for toolset in toolsets.load():
        for name in toolset.binaries:
            assert f"\n{name} " in printed


def test_failed_build_names_module_and_fix_and_leaves_nothing(go_runs, user_cache, monkeypatch, capsys):
    monkeypatch.setenv(
        "FAKE_GO_FAILS", "go: k8s.io/api@v0.37.9: reading https://me:pw@modules.corp.example/x: 404 Not Found"
    )
    assert build.main(["--only", "etcd"]) == 1
    printed = capsys.readouterr().err
    assert "error: toolset etcd was not built: k8s.io/api@v0.37.9 is refused" in printed
    assert "[module-refused]" in printed
    assert "hint: pin another version in go.mod" in printed
    assert "corp.example" not in printed
    assert "Traceback" not in printed
    assert entries(user_cache) == []


def test_toolset_that_was_finished_before_a_failure_is_kept(go_runs, monkeypatch):
    build.main(["--only", "etcd"])
    monkeypatch.setenv("FAKE_GO_FAILS", "boom")
    assert build.main(["--only", "etcd", "helm"]) == 1
    assert build.binary("etcd").is_file()


def test_left_overs_of_a_killed_build_are_removed(go_runs, user_cache):
    left_over = user_cache / ".unfinished-etcd-killed"
    left_over.mkdir(parents=True)
    build.main(["--only", "etcd"])
    assert not left_over.exists()


def test_missing_go_is_told_with_what_to_do(no_go, capsys):
    assert build.main([]) == 1
    assert capsys.readouterr().err.startswith("error: go is not on PATH")


def test_unknown_toolset_is_told_with_the_known_ones(go_runs, capsys):
    assert build.main(["--only", "etdc"]) == 1
    assert "no toolset is called etdc\n  hint: choose from etcd, kubernetes-1.37" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_job_count_below_one_is_refused(jobs, capsys):
    with pytest.raises(SystemExit) as caught:
        build.main(["--jobs", jobs])
    assert caught.value.code == 2
    assert "--jobs" in capsys.readouterr().err


def test_binary_that_is_not_built_says_make_tools(go_runs):
    with pytest.raises(ToolError, match="kube-apiserver is not built") as caught:
        build.binary("kube-apiserver")
    assert caught.value.hint == "run `make tools`"


def test_binary_that_is_built_by_name_only_says_so(go_runs):
    with pytest.raises(ToolError, match="kueue is not built") as caught:
        build.binary("kueue")
    assert caught.value.hint == "run `python -m tools.build --only kueue`"


def test_binary_of_another_go_does_not_count(go_runs, monkeypatch):
    build.main(["--only", "etcd"])
    monkeypatch.setattr(build, "go_version", lambda: "go version go2.0.0 linux/amd64")
    with pytest.raises(ToolError, match="etcd is not built"):
        build.binary("etcd")


def stamped(version, *, before=b""):
    """A program as Go writes it, as far as it says who built it."""
    settings = f"path\tx\nbuild\tGOARCH=amd64\nbuild\tGOOS=linux\nbuild\tGOAMD64=v1\n{'x' * 200}".encode()
    header = b"\xff Go buildinf:\x08\x02" + bytes(16)
    lengths = [bytes([len(version)]), bytes([len(settings) & 0x7F | 0x80, len(settings) >> 7])]
    return before.ljust(64, b"\0") + header + lengths[0] + version.encode() + lengths[1] + settings


@pytest.fixture
def built_etcd(go_runs, monkeypatch, tmp_path):
    """An etcd that is built, by the Go of `go_runs`, and no Go any more."""
    build.main(["--only", "etcd"])
    path = build.binary("etcd")
    path.write_bytes(stamped("go1.99.0"))
    build.go_version.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    return path


def test_without_go_a_binary_is_taken_where_all_else_fits(built_etcd):
    assert build.binary("etcd") == built_etcd


@pytest.mark.parametrize("words", [["--list"], []])
def test_without_go_what_is_built_is_shown(built_etcd, capsys, words):
    assert build.main([*words, "--only", "etcd", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["binaries"]
    assert (row["state"], row["path"]) == ("cached", str(built_etcd))


def test_without_go_nothing_is_built(built_etcd, capsys):
    assert build.main(["--only", "etcd", "helm"]) == 1
    assert "error: go is not on PATH" in capsys.readouterr().err


def test_without_go_a_binary_of_another_go_mod_does_not_count(built_etcd):
    built_etcd.parent.rename(built_etcd.parent.with_name("etcd-0123456789abcdef"))
    with pytest.raises(ToolError, match=r"etcd is not built .*, and go is not on PATH") as caught:
        build.binary("etcd")
    assert caught.value.hint.endswith("and run `make tools`")


@pytest.mark.parametrize(
    "content", [b"", b"binary", stamped("go1.98.0"), stamped("go1.99.0")[:90], stamped("go1.99.0")[:96]]
)
def test_without_go_a_binary_that_does_not_say_who_built_it_does_not_count(built_etcd, content):
    built_etcd.write_bytes(content)
    with pytest.raises(ToolError, match="etcd is not built"):
        build.binary("etcd")


def test_a_program_that_looks_for_what_go_writes_is_read_as_well(built_etcd):
    built_etcd.write_bytes(stamped("go1.99.0", before=b"x\xff Go buildinf:"))
    assert build.binary("etcd") == built_etcd


def test_unknown_binary_is_an_error(go_runs):
    with pytest.raises(ToolError, match="kubelett: no toolset has a binary of that name"):
        build.binary("kubelett")


def test_own_binaries_are_taken_from_the_folder_that_the_environment_names(tmp_path, no_go, monkeypatch):
    monkeypatch.setenv("DRA_INFRA_BIN", str(tmp_path))
    (tmp_path / "etcd").touch()
    assert build.binary("etcd") == tmp_path / "etcd"
    with pytest.raises(ToolError, match="kubectl is not in"):
        build.binary("kubectl")


def test_build_waits_for_another_one_and_takes_its_result(go_runs, user_cache):
    [etcd] = [toolset for toolset in toolsets.load() if toolset.name == "etcd"]
    said = io.StringIO()
    command = [sys.executable, "-m", "tools.build", "--only", "etcd"]
    with cache.locked("etcd", lambda: None):
        other = subprocess.Popen(
            command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        first_line = other.stderr.readline()
        with cache.unfinished(etcd) as folder:
            (folder / "etcd").write_text("from the first")
            cache.publish(etcd, build.go_version(), folder, seconds=1)
    other.communicate(timeout=120)
    assert first_line == "etcd: another process builds it, waiting for that\n"
    assert other.returncode == 0
    assert go_runs() == []
    [row] = build.build([etcd], jobs=1, progress=Progress(said))
    assert (row.state, Path(row.path).read_text()) == ("cached", "from the first")
