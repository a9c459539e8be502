from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

import pytest

from dra_infra.errors import Problem, ProgramError
from dra_infra.program import confinement, sandbox
from dra_infra.program.confinement import Allowance, describe, environment_for, explain, read_allowance
from dra_infra.program.isolated import RunningSynth
from tests.support.warm_commands import warm

HEAD = "import pulumi_kubernetes as k8s\nk8s.core.v1.Namespace('n', metadata={'name': 'n'})\n"

linux_only = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="Landlock and seccomp are Linux's"
)


@pytest.fixture
def project(tmp_path: Path):
    top = tmp_path / "repository"
    (top / "infra").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / ".git" / "config").write_text("extraheader = token-of-the-checkout\n")
    (top / "shared.txt").write_text("shared")
    # What another action checked out below, a submodule or a second repository, with its token.
    (top / "vendor" / "lib" / ".git").mkdir(parents=True)
    (top / "vendor" / "lib" / ".git" / "config").write_text("extraheader = token-of-another-checkout\n")
    (top / "vendor" / "lib" / "read.txt").write_text("vendored")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "netrc").write_text("password")
    for folder in (top, top / "infra"):
        (folder / "loot").symlink_to(tmp_path / "home")
        (folder / "file").symlink_to(tmp_path / "home" / "netrc")
        (folder / "g").symlink_to(top / ".git")
        (folder / "inner").symlink_to(top / "shared.txt")
    (top / "infra" / "Pulumi.yaml").write_text("name: app\nruntime: python\n")

    def run(program: str, allowance: Allowance | None = None) -> RunningSynth:
        (top / "infra" / "__main__.py").write_text(HEAD + program)
        return RunningSynth(top / "infra", inside=top, allowance=allowance)

    return run


@pytest.fixture
def starts_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has programs run in copies of a process that has loaded all: what confines them is entered after that."""
    monkeypatch.setattr(sys, "executable", warm().python)


def test_a_checkout_on_the_module_path_is_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    inside = tmp_path / "checkout"
    for each in (".git", "infra", ".venv/lib/packages", "vendored/.git"):
        (inside / each).mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(inside)
    searched = []
    scan = os.scandir

    def watch(folder):
        searched.append(str(folder))
        return scan(folder)

    taken = {}
    monkeypatch.setattr(os, "scandir", watch)
    monkeypatch.setattr(confinement.sandbox, "enter", lambda **options: taken.update(options) or ())
    monkeypatch.setattr(sys, "path", [*sys.path, str(inside), str(link)])
    confinement.enter(
        inside / "infra", inside=inside, home=tmp_path, allowance=confinement.ONLY_ITS_OWN, modules=[inside]
    )
    below = [each for each in searched if Path(each).is_relative_to(tmp_path)]
    assert sorted(below) == sorted({*below})
    assert str(inside / ".venv/lib") in below
    assert inside / ".venv" in taken["unfollowed"]
    assert not [
        each for each in (*taken["read"], *taken["unfollowed"]) if each.name == ".git" or each == inside
    ]


def said_by(running: RunningSynth) -> Problem:
    with pytest.raises(ProgramError) as error:
        running.result()
    (problem,) = error.value.problems
    return problem


@linux_only
@pytest.mark.parametrize(
    "program",
    [
        "open('/proc/%d/environ' % __import__('os').getppid()).read()",
        "open('../.git/config').read()",
        "open('../vendor/lib/.git/config').read()",
        "open('loot/netrc').read()",
        "open('file').read()",
        "open('g/config').read()",
        "open('../loot/netrc').read()",
        "open('../file').read()",
        "open('../g/config').read()",
        "open('/etc/shadow').read()",
        "open('written.txt', 'w')",
        "open('../../outside.txt').read()",
        "__import__('socket').socket()",
        "__import__('socket').create_connection(('127.0.0.1', 9))",
        "__import__('socket').socket(__import__('socket').AF_UNIX)",
        "__import__('os').kill(__import__('os').getppid(), 0)",
        "__import__('os').truncate('Pulumi.yaml', 0)",
        "__import__('os').rename('Pulumi.yaml', 'other.yaml')",
        "__import__('os').symlink('/', 'link')",
        "__import__('resource').prlimit(__import__('os').getppid(), 7, (0, 0))",
        "__import__('socket').socketpair(type=__import__('socket').SOCK_DGRAM)",
    ],
)
def test_a_program_is_refused_what_is_not_its_own(project, starts_warm, tmp_path: Path, program: str):
    (tmp_path / "outside.txt").write_text("x")
    problem = said_by(project(program + "\n"))
    assert problem.code == "program-raised"
    assert problem.message.startswith("PermissionError: ")
    assert "--allow" in problem.hint


@linux_only
def test_a_program_reads_its_repository_and_writes_to_its_temporary_folder(project):
    program = (
        "import pathlib, subprocess, tempfile, multiprocessing, asyncio\n"
        "assert open('../shared.txt').read() == open('inner').read() == open('../inner').read() == 'shared'\n"
        "assert open('../vendor/lib/read.txt').read() == 'vendored'\n"
        "with tempfile.TemporaryDirectory() as folder:\n    (pathlib.Path(folder) / 'a').write_text('a')\n"
        "(pathlib.Path.home() / '.cache').mkdir()\n"
        "assert subprocess.run(['echo', 'a'], capture_output=True, text=True).stdout == 'a\\n'\n"
        "open('/dev/null', 'w').write('x')\n"
    )
    running = project(program)
    assert len(running.result().objects) == 1
    assert running.in_force == sandbox.ALL


@linux_only
def test_what_is_allowed_is_open_and_nothing_else(project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEAM", "ml")
    monkeypatch.setenv("DB_PASSWORD", "planted")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("a")
    program = (
        "import os, socket\n"
        "assert os.environ['TEAM'] == 'ml' and 'DB_PASSWORD' not in os.environ\n"
        f"assert open({str(outside / 'a')!r}).read() == 'a'\n"
        "socket.socket()\nopen('written.txt', 'w')\n"
    )
    allowed = read_allowance(["env:TEAM", f"read:{outside}", f"write:{tmp_path / 'repository'}", "network"])
    running = project(program, allowed)
    running.result()
    assert running.in_force == tuple(each for each in sandbox.ALL if each != sandbox.NETWORK)
    assert said_by(project(f"open({str(outside / 'b')!r}, 'w')\n", allowed)).message.startswith(
        "PermissionError"
    )


@linux_only
@pytest.mark.parametrize("way", ["read", "write", "PYTHONPATH"])
def test_a_link_in_the_place_of_what_is_allowed_opens_nothing(
    project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
):
    # The workflow names a folder of the repository; a pull request puts a link there.
    named = tmp_path / "repository" / "loot"
    if way == "PYTHONPATH":
        monkeypatch.setenv("PYTHONPATH", str(named))
    allowed = Allowance() if way == "PYTHONPATH" else read_allowance([f"{way}:{named}"])
    for program in ("open('loot/netrc').read()\n", "open('../loot/new', 'w')\n"):
        assert said_by(project(program, allowed)).message.startswith("PermissionError: ")


def test_all_takes_everything_back(project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEAM", "ml")
    running = project(
        "import os\nassert os.environ['TEAM'] == 'ml'\nopen('written.txt', 'w')\n", read_allowance(["all"])
    )
    running.result()
    assert running.in_force == ()


@linux_only
def test_modes_times_and_keys_of_others_stay_as_they_are(project, tmp_path: Path):
    outside = tmp_path / "outside.txt"
    outside.write_text("x")
    before = outside.stat()
    program = (
        "import ctypes, os, platform, resource, shutil, tempfile\n"
        f"os.chmod({str(outside)!r}, 0)\nos.utime({str(outside)!r}, (1, 1))\nos.chown({str(outside)!r}, 1, 1)\n"
        "folder = tempfile.mkdtemp()\nopen(folder + '/a', 'w').write('a')\nshutil.copy2(folder + '/a', folder + '/b')\n"
        "resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "call = {'x86_64': 250, 'aarch64': 219}[platform.machine()]\n"
        "assert ctypes.CDLL(None).syscall(call, 0, -3, 0) == -1\n"
    )
    project(program).result()
    after = outside.stat()
    assert (after.st_mode, after.st_mtime, after.st_uid) == (before.st_mode, before.st_mtime, before.st_uid)


# Threads, processes, files and events as interpreters and libraries use them, each by the calls that the C library chooses.
ORDINARY = """
import asyncio, concurrent.futures, fcntl, mmap, multiprocessing, os, resource, shutil, sqlite3, subprocess
import sys, tempfile
import numpy
home = os.environ["HOME"]
threads = concurrent.futures.ThreadPoolExecutor(4)
assert list(threads.map(abs, range(-4, 0))) == [4, 3, 2, 1]
forking = multiprocessing.get_context("fork")
near, far = forking.Pipe()
child = forking.Process(target=far.send, args=("sent",))
child.start()
assert near.recv() == "sent"
child.join()
spawned = "import math, multiprocessing as m; p = m.get_context('spawn').Process(target=math.sqrt, args=(4,)); p.start(); p.join()"
subprocess.run([sys.executable, "-c", spawned + "; assert p.exitcode == 0"], check=True)
async def events():
    process = await asyncio.create_subprocess_exec("echo", "a", stdout=asyncio.subprocess.PIPE)
    assert await process.communicate() == (b"a\\n", None)
    await asyncio.gather(asyncio.sleep(0.001), asyncio.to_thread(abs, 1))
threads.submit(asyncio.run, events()).result()
square = numpy.random.default_rng(1).random((200, 200))
assert (square @ square).shape == (200, 200)
database = sqlite3.connect(home + "/database")
database.execute("pragma journal_mode=wal")
database.execute("create table t(a)")
database.commit()
with tempfile.TemporaryFile() as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.truncate(100)
    os.posix_fallocate(file.fileno(), 0, 100)
    mmap.mmap(file.fileno(), 100).close()
shutil.copytree(os.path.dirname(os.__file__) + "/json", home + "/json")
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.nice(1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "exit 0"], os.environ), 0)
shell = "cp -a /etc/passwd p && ls -l p && touch -d yesterday p && tar cf t p && tar xf t && nice true && timeout 5 cat p | sort"
subprocess.run(["sh", "-e", "-c", shell], cwd=home, check=True, stdout=subprocess.DEVNULL)
"""


@linux_only
def test_interpreters_and_libraries_work_by_the_list_of_system_calls(project):
    assert len(project(ORDINARY).result().objects) == 1


@linux_only
@pytest.mark.parametrize("name", ["net/unix", "net/tcp", "net/route", "mountinfo", "task"])
def test_a_program_sees_no_connections_and_mounts_of_the_machine(project, name: str):
    seen = (
        f"__import__('os').listdir('/proc/self/{name}')" if name == "task" else f"open('/proc/self/{name}')"
    )
    assert said_by(project(seen + "\n")).message.startswith("PermissionError: ")


@linux_only
def test_a_program_reads_its_own_status_and_lists_its_descriptors(project):
    program = (
        "import os\nassert 'Seccomp:\\t2' in open('/proc/self/status').read()\n"
        "assert os.listdir('/proc/self/fd') and open('/proc/self/maps').read() and open('/proc/self/cgroup').read()\n"
    )
    project(program).result()


@linux_only
def test_an_old_kernel_that_lets_files_be_emptied_is_not_said_to_keep_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "_version", lambda: 2)
    monkeypatch.setattr(sandbox, "_call", lambda *_: 0)
    monkeypatch.setattr(sandbox.os, "close", lambda _: None)
    assert sandbox._restrict_files((), (), (), ()) == [sandbox.PROCESSES]


@linux_only
def test_a_child_that_left_its_session_ends_with_the_program(project, tmp_path: Path):
    mark = tmp_path / "repository" / "mark"
    mark.touch()
    program = (
        f"import fcntl, os, time\nfcntl.flock(os.open({str(mark)!r}, os.O_RDONLY), fcntl.LOCK_EX)\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\n"
        "    os._exit(0)\n"
    )
    project(program).result()
    # Every process that was forked has the lock until it ends.
    with mark.open() as opened:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)


@linux_only
@pytest.mark.parametrize(
    ("error", "number"),
    [
        ("OSError(28, 'No space left on device')", 28),
        ("OSError(27, 'File too large')", 27),
        ("BlockingIOError(11, 'x')", 11),
    ],
)
def test_a_bound_that_was_met_is_named(project, starts_warm, error: str, number: int):
    problem = said_by(project(f"raise {error}\n"))
    assert f"[Errno {number}]" in problem.message
    assert "1 GiB" in problem.hint


def test_a_program_gets_variables_by_name():
    environment = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "GITLAB_TOKEN": "t",
        "AWS_SECRET_ACCESS_KEY": "s",
        "HOME": "/root",
        "LANGCHAIN_API_KEY": "k",
        "LANGFUSE_SECRET_KEY": "k",
    }
    home = Path("/tmp/home")
    given = environment_for(environment, Allowance(), home=home)
    assert given == {"PATH": "/bin", "LC_ALL": "C", "HOME": "/tmp/home", "TMPDIR": "/tmp/home"}
    assert "GITLAB_TOKEN" in environment_for(environment, read_allowance(["env:GITLAB_TOKEN"]), home=home)


@pytest.mark.parametrize(
    "word", ["", "env:", "env:A=B", "env:1", "read:", "read:\0", "files", "network:", "all:x"]
)
def test_words_that_allow_nothing_are_refused(word: str):
    with pytest.raises(ProgramError) as error:
        read_allowance([word, "network"])
    (problem,) = error.value.problems
    assert (problem.path, problem.code) == ("--allow", "wrong-allowance")


def test_a_variable_that_is_missing_names_the_option_that_gives_it():
    problem = Problem(path="__main__.py", code="program-raised", message="KeyError: 'TEAM'")
    assert "--allow env:TEAM" in explain(problem, ()).hint


def test_what_is_not_in_force_is_said():
    assert "this system holds nothing back" in describe((), Allowance())
    assert "not in force here: no signals to other processes" in describe(
        tuple(each for each in sandbox.ALL if each != sandbox.SIGNALS), Allowance()
    )
    assert "not in force" not in describe(
        tuple(each for each in sandbox.ALL if each != sandbox.NETWORK), Allowance(network=True)
    )
    assert "--allow all" in describe((), Allowance(everything=True))
