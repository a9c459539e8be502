"""A stranger's program leaves processes and files behind, and uses more of them than it may.

Each attack runs on the machine as it is, as a plain user, where namespaces are refused, and where there is no Landlock
either. A process that stays holds a lock on a file of its repository, so the lock says whether one is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.attacks.conftest import Loot
from tests.e2e.attacks.machines import PLAIN_USER
from tests.support.forge.runner import clean_environment

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what is attacked is Linux"),
]

WAYS = ("", "plain-user", "no-namespaces", "plain-user,no-namespaces", "no-namespaces,old-kernel")
BEYOND = 20
"""Seconds beyond its limit in which a command must end, with its own start on a busy machine."""

OBJECT = (
    "import pulumi_kubernetes as k8s\nk8s.core.v1.ConfigMap('c', metadata={'name': 'c'}, data={'a': %s})\n"
)

LOCK = """
import fcntl, os, subprocess, sys, time
def lock(name):
    # Held by this process and by all that it forks.
    held = os.open(name, os.O_RDONLY)
    os.set_inheritable(held, True)
    fcntl.flock(held, fcntl.LOCK_EX)
    return held
def start(text, *files):
    subprocess.Popen([sys.executable, "-I", "-S", "-c", text], pass_fds=files)
"""

# One process lives at any time: it forks and ends, and its child goes on, in a session of its own.
CHAIN = """
import os, time
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
"""

DAEMON = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(60)\n"
STOPPED = "import os, signal\nos.setsid()\nos.kill(os.getpid(), signal.SIGSTOP)\n"
# Its child waits for a writer before it runs anything, and it waits for its child, deaf to all signals but one.
IN_VFORK = """
import os
os.setsid()
fifo = os.path.expanduser("~/fifo")
os.mkfifo(fifo)
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 9, fifo, os.O_RDONLY, 0)])
"""
LASTING = {
    "a chain of forks": CHAIN,
    "a daemon": DAEMON,
    "a stopped process": STOPPED,
    "a process in vfork": IN_VFORK,
}


@dataclass
class Machine:
    """A folder with a program, and commands that run it in one of `WAYS`."""

    top: Path
    way: str
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def temp(self) -> Path:
        """Where the command has its temporary folders."""
        return self.top / "temp"

    @property
    def head(self) -> Path:
        """What the command writes."""
        return self.top / "out" / "head.json"

    def file(self, name: str) -> Path:
        """A file beside the program, that it may read and lock."""
        path = self.top / "infra" / name
        path.touch()
        return path

    def start(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        """Start `dra-infra compile` of *program*."""
        (self.top / "infra" / "__main__.py").write_text(program)
        if "plain-user" in self.way:
            for path in (self.top, *self.top.rglob("*")):
                os.chown(path, PLAIN_USER, PLAIN_USER)
        script = "from dra_infra.cli.process import main; main()"
        command = [sys.executable, "-P", "-c", script, "compile", "infra"]
        launcher = (
            [sys.executable, str(Path(__file__).with_name("machines.py")), self.way] if self.way else []
        )
        running = subprocess.Popen(
            [*launcher, *command, "--output", str(self.head), *arguments],
            cwd=self.top,
            env=clean_environment(HOME=str(self.top / "home"), TMPDIR=str(self.temp)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.started.append(running)
        return running

    def run(self, program: str, *arguments: str) -> tuple[str, float]:
        """Run it; what it prints, and the seconds that it took."""
        before = time.monotonic()
        said, _ = self.start(program, *arguments).communicate(timeout=120)
        return said, time.monotonic() - before

    def value(self) -> str:
        """What the program put into its object; empty where there is no answer."""
        if not self.head.exists():
            return ""
        program = json.loads(self.head.read_text()).get("program") or {"objects": []}
        return "".join(
            str(each["manifest"]["data"]["a"]) for each in program["objects"] if "manifest" in each
        )

    def files_left(self) -> list[Path]:
        """What lies among the temporary files."""
        return [*self.temp.iterdir()]


def is_held(file: Path) -> bool:
    """Whether a process holds the lock on *file*."""
    with file.open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def wait_until(condition: Callable[[], object], seconds: float = 60) -> bool:
    """Whether *condition* becomes true in time."""
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() > end:
            return False
        pause.wait(0.01)
    return True


@pytest.fixture(params=WAYS, ids=[each.replace(",", "+") or "as-it-is" for each in WAYS])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    way: str = request.param
    if "plain-user" in way and os.geteuid() != 0:
        pytest.skip("the tests run as a plain user already")
    top = Path(tempfile.mkdtemp(prefix="dra-infra-attack-"))
    top.chmod(0o755)
    for name in ("infra", "temp", "out", "home"):
        (top / name).mkdir()
    (top / "infra" / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    made = Machine(top, way)
    yield made
    for running in made.started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    # Removed by a program that manages what Python's own removal does not.
    subprocess.run(["rm", "-rf", str(top)], check=True)


def start_lasting(machine: Machine) -> tuple[str, dict[str, Path]]:
    """A program that starts all of `LASTING`, and the files that they lock."""
    files = {name: machine.file(name.replace(" ", "-")) for name in LASTING}
    starts = "".join(f"start({text!r}, lock({files[name].name!r}))\n" for name, text in LASTING.items())
    return LOCK + starts, files


def test_a_process_outlives_the_command(machine: Machine, loot: Loot) -> None:
    program, files = start_lasting(machine)
    said, _ = machine.run(program + OBJECT % "'b'")
    for name, file in files.items():
        loot.add_if(is_held(file), f"{name} that outlives the command")
    loot.add_if(machine.files_left(), "files that stay")
    assert machine.value() == "b", said


def test_a_command_is_held_beyond_its_time(machine: Machine, loot: Loot) -> None:
    program, files = start_lasting(machine)
    busy = "while True:\n    try:\n        time.sleep(60)\n    except BaseException:\n        pass\n"
    said, seconds = machine.run(program + busy, "--timeout", "5")
    for name, file in files.items():
        loot.add_if(is_held(file), f"{name} that outlives the command")
    loot.add_if(seconds > 5 + BEYOND, f"a command that is held for {seconds:.0f} s")
    loot.add_if(machine.files_left(), "files that stay")
    assert "[program-timeout]" in said


def test_the_table_of_processes_fills_up(machine: Machine, loot: Loot) -> None:
    ready, go = machine.file("ready"), machine.file("go")
    # Each has lost its parent when it ends, so somebody else must take its exit status.
    orphans = "import os\nfor _ in range(40):\n    if os.fork() == 0:\n        for _ in range(50):\n            if os.fork() == 0:\n                os._exit(0)\n        os._exit(0)\n    os.wait()\n"
    program = (
        f"{LOCK}subprocess.run([sys.executable, '-I', '-S', '-c', {orphans!r}])\nlock('ready')\n"
        f"fcntl.flock(os.open('go', os.O_RDONLY), fcntl.LOCK_SH)\n{OBJECT % repr('b')}"
    )
    with go.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        running = machine.start(program)
        assert wait_until(lambda: is_held(ready) or running.poll() is not None)
        wait_until(lambda: zombies_below(running.pid) < 100)
        left = zombies_below(running.pid)
    said, _ = running.communicate(timeout=60)
    loot.add_if(left >= 100, f"{left} places in the table of processes")
    assert machine.value() == "b", said


def zombies_below(process: int) -> int:
    """Processes below *process* that have ended, and whose exit status nobody has taken."""
    count = 0
    processes = [process]
    for each in processes:
        with contextlib.suppress(OSError):
            count += (
                Path(f"/proc/{each}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
            )
            for task in Path(f"/proc/{each}/task").iterdir():
                processes += map(int, (task / "children").read_text().split())
    return count


def test_a_fork_bomb(machine: Machine, loot: Loot) -> None:
    # Its processes wait for an end that the program does not wait for.
    bomb = "import os, time\ncount = 0\nwhile count < 4000:\n    try:\n        if os.fork() == 0:\n            os.close(1)\n            time.sleep(60)\n            os._exit(0)\n        count += 1\n    except BlockingIOError:\n        break\nprint(count)\n"
    program = f"{LOCK}made = subprocess.run([sys.executable, '-I', '-S', '-c', {bomb!r}], stdout=subprocess.PIPE, text=True)\n"
    said, _ = machine.run(program + "time.sleep(1)\n" + OBJECT % "made.stdout")
    count = int(machine.value() or 0)
    loot.add_if(count > 2000, f"{count} processes")
    assert 0 < count <= 2000 or "[program-too-large]" in said, said


def test_a_folder_stays_on_the_disk(machine: Machine, loot: Loot) -> None:
    program = """
import os
home = os.path.expanduser("~")
here = os.getcwd()
for start, mode in ((b"closed-\\xff", 0), (b"deep", 0o700)):
    os.chdir(home)
    for level in range(4000 if mode else 3):
        os.mkdir(start * 5)
        os.chdir(start * 5)
    open(b"\\xfe\\n", "w").close()
    os.symlink("/", "link")
os.chmod(os.path.join(os.fsencode(home), b"closed-\\xff" * 5), 0)
os.chdir(here)
"""
    said, _ = machine.run(program + OBJECT % "'b'")
    loot.add_if(machine.files_left(), "files that stay")
    assert machine.value() == "b" or "[program-too-large]" in said, said


MORE_BYTES = """
import os
for number in range(3):
    opened = os.open(os.path.expanduser(f"~/file{number}"), os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(opened, 0, 1 << 29)
time.sleep(1)
"""
MORE_FILES = """
import os
for number in range(30_000):
    os.close(os.open(os.path.expanduser("~/%d" % number), os.O_RDWR | os.O_CREAT))
time.sleep(1)
"""


@pytest.mark.parametrize("what", [MORE_BYTES, MORE_FILES], ids=["bytes", "files"])
def test_a_program_fills_the_disk(machine: Machine, loot: Loot, what: str) -> None:
    said, _ = machine.run("import time\n" + what + OBJECT % "'b'")
    loot.add_if(machine.value(), "more of the disk than it may have")
    loot.add_if(machine.files_left(), "files that stay")
    assert "[program-too-large]" in said or "No space left on device" in said, said


def test_one_file_fills_the_disk_where_the_user_lets_it_write(machine: Machine, loot: Loot) -> None:
    folder = machine.top / "allowed"
    folder.mkdir()
    program = f"import os\nopened = os.open({str(folder / 'file')!r}, os.O_RDWR | os.O_CREAT)\nos.ftruncate(opened, 5 << 30)\n"
    said, _ = machine.run(program + OBJECT % "'b'", "--allow", f"write:{folder}")
    loot.add_if(machine.value(), "a file of 5 GiB")
    assert "File too large" in said, said


@pytest.mark.parametrize("who", ["the command", "its supervisor"])
def test_it_outlives_a_process_that_was_killed(machine: Machine, loot: Loot, who: str) -> None:
    program, files = start_lasting(machine)
    ready = machine.file("ready")
    running = machine.start(program + "time.sleep(0.5)\nlock('ready')\ntime.sleep(60)\n")
    assert wait_until(lambda: is_held(ready) or running.poll() is not None)
    assert is_held(ready), running.communicate()
    (supervisor,) = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    os.kill(running.pid if who == "the command" else int(supervisor), signal.SIGKILL)
    running.wait(60)
    for name, file in files.items():
        loot.add_if(not wait_until(lambda file=file: not is_held(file)), f"{name} that goes on")
    loot.add_if(not wait_until(lambda: not machine.files_left()), "files that stay")
