"""A stranger's program uses system calls that no rule on files covers: what others share, watch and own is its to take."""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import json
import os
import platform
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from dra_infra.program.system_calls import numbers, rules
from tests.e2e.attacks.conftest import Loot
from tests.support.forge.runner import clean_environment

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "aarch64"),
        reason="the filter knows Linux on x86-64 and arm64",
    ),
]

IPC_CREAT, IPC_RMID, SETVAL, GETVAL = 0o1000, 0, 16, 12
GET_FLAGS, NO_DUMP = 0x80086601, 0x40

HEAD = """
import ctypes, errno, fcntl, json, mmap, os, signal, socket, struct, sys
import pulumi_kubernetes as k8s
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def call(number, *arguments):
    ctypes.set_errno(0)
    return libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))

def report(name, value):
    k8s.core.v1.ConfigMap(name, metadata={"name": name}, data={"value": json.dumps(value)})

with open("given.json") as file:
    given = json.load(file)
calls = given["calls"]
"""

# Each attempt leaves words that only a successful one can have.
ATTEMPTS = """
import fcntl
got = {}

def attempt(what):
    def run(function):
        try:
            got[what] = function()
        except OSError as error:
            # What is refused; any other exception is a mistake of this test, and ends the program.
            got[what] = None
            print(what, repr(error))
    return run

@attempt("shared memory")
def _():
    texts = []
    room = ctypes.create_string_buffer(512)
    for index in range(call(calls["shmctl"], 0, 14, room) + 1):
        segment = call(calls["shmctl"], index, 13, room)
        address = call(calls["shmat"], segment, 0, 0o10000)
        if address != -1:
            texts.append(ctypes.string_at(address, 32).decode("latin1"))
    return texts

@attempt("memory that stays")
def _():
    return call(calls["shmget"], given["key"] + 1, 4096, 0o1600)

@attempt("a message")
def _():
    room = ctypes.create_string_buffer(64)
    call(calls["msgrcv"], call(calls["msgget"], given["key"], 0), room, 48, 0, 0o4000)
    return room.raw.decode("latin1")

@attempt("a semaphore")
def _():
    return call(calls["semctl"], call(calls["semget"], given["key"], 1, 0), 0, 16, 9)

@attempt("a queue of POSIX")
def _():
    return call(calls["mq_unlink"], given["queue"].encode())

@attempt("an attribute")
def _():
    return os.getxattr(given["outside"], "user.secret").decode()

@attempt("names of attributes")
def _():
    return os.listxattr(given["outside"])

@attempt("a watch")
def _():
    watches = call(calls["inotify_init1"], 0)
    return call(calls["inotify_add_watch"], watches, os.path.dirname(given["outside"]).encode(), 0xFFF) >= 0

@attempt("connections")
def _():
    return open("/proc/self/net/unix").read()

@attempt("ports")
def _():
    return open("/proc/self/net/tcp").read()

@attempt("mounts")
def _():
    return len(open("/proc/self/mountinfo").read()) > 0

@attempt("interfaces")
def _():
    room = ctypes.create_string_buffer(4096)
    request = bytearray(struct.pack("iP", 4096, ctypes.addressof(room)))
    fcntl.ioctl(socket.socketpair()[0], 0x8912, request)
    return room.raw[:2].decode()

@attempt("flags of a file")
def _():
    fcntl.ioctl(os.open("Pulumi.yaml", os.O_RDONLY), 0x40086602, bytearray(struct.pack("l", 0x40)))
    return True

@attempt("a lease")
def _():
    fcntl.fcntl(os.open("Pulumi.yaml", os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)
    return True

@attempt("a namespace")
def _():
    child = os.fork()
    if child == 0:
        os._exit(0 if call(calls["unshare"], 0x10000000) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0

@attempt("a namespace by clone")
def _():
    child = call(calls["clone"], 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    return child > 0 and os.waitpid(child, 0)[1] == 0

@attempt("a namespace by clone3")
def _():
    flags = struct.pack("=8Q", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    child = call(calls["clone3"], flags, len(flags))
    if child == 0:
        os._exit(0)
    return child > 0 and os.waitpid(child, 0)[1] == 0

@attempt("the priority of the supervisor")
def _():
    os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid()))
    return True

@attempt("the processors of the supervisor")
def _():
    os.sched_setaffinity(os.getppid(), os.sched_getaffinity(os.getppid()))
    return True

@attempt("the disk priority of the supervisor")
def _():
    return call(calls["ioprio_set"], 1, os.getppid(), 3 << 13) == 0

report("got", got)
"""


class Project:
    """A repository with a program of a stranger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.infra = folder / "infra"
        self.infra.mkdir()
        (self.infra / "Pulumi.yaml").write_text("name: app\nruntime: python\n")

    def compile(self, program: str, **given: object) -> dict[str, object]:
        """What the program reports, when the real command ran it confined."""
        (self.infra / "__main__.py").write_text(HEAD + program)
        given["calls"] = numbers(platform.machine())
        (self.infra / "given.json").write_text(json.dumps(given))
        head = self.folder / "head.json"
        done = subprocess.run(
            [
                *(sys.executable, "-P", "-c", "from dra_infra.cli.process import main; main()"),
                *("compile", "infra", "--output", str(head)),
            ],
            cwd=self.folder,
            env=clean_environment(HOME=str(self.folder), TMPDIR=str(self.folder)),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        objects = json.loads(head.read_text())["program"]["objects"]
        manifests = [each["manifest"] for each in objects]
        return {each["metadata"]["name"]: json.loads(each["data"]["value"]) for each in manifests}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def _call(name: str, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    """Make a system call by its name, as the neighbour whom the attack meets."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    number = ctypes.c_long(numbers(platform.machine())[name])
    return int(libc.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)))


@pytest.fixture
def key() -> Iterator[int]:
    """A key of System V, under which a neighbour keeps memory, a message and a semaphore."""
    value = secrets.randbelow(2**30)
    memory = _call("shmget", value, 4096, IPC_CREAT | 0o600)
    queue = _call("msgget", value, IPC_CREAT | 0o600)
    semaphore = _call("semget", value, 1, IPC_CREAT | 0o600)
    assert min(memory, queue, semaphore) >= 0
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(memory, None, 0)
    ctypes.memmove(address, b"planted-in-memory", 18)
    message = (1).to_bytes(8, sys.byteorder) + b"planted-message"
    assert _call("msgsnd", queue, message, len(message) - 8, 0) == 0
    assert _call("semctl", semaphore, 0, SETVAL, 7) == 0
    yield value
    libc.shmdt(ctypes.c_void_p(address))
    _call("shmctl", memory, IPC_RMID, 0)
    _call("msgctl", queue, IPC_RMID, 0)
    _call("semctl", semaphore, 0, IPC_RMID, 0)


@pytest.fixture
def queue() -> Iterator[str]:
    """A message queue of POSIX of a neighbour. Landlock keeps a program from opening it, but not from removing it."""
    name = f"dra-infra-attack-{secrets.token_hex(8)}"
    attributes = array.array("l", [0, 1, 64, 0, 0, 0, 0, 0]).tobytes()
    descriptor = _call("mq_open", name.encode(), os.O_CREAT | os.O_RDWR, 0o600, attributes)
    assert descriptor >= 0
    yield name
    os.close(descriptor)
    _call("mq_unlink", name.encode())


def test_what_is_shared_outside_of_files_is_taken_and_kept(
    project: Project, loot: Loot, tmp_path: Path, key: int, queue: str
):
    outside = tmp_path / "home" / "outside"
    outside.parent.mkdir()
    outside.write_text("x")
    # A file system without attributes has none to take.
    with suppress(OSError):
        os.setxattr(outside, "user.secret", b"planted-attribute")
    flags = _flags(project.infra / "Pulumi.yaml")
    with ExitStack() as neighbours:
        web = neighbours.enter_context(socket.create_server(("127.0.0.1", 0)))
        daemon = neighbours.enter_context(socket.socket(socket.AF_UNIX))
        daemon.bind("\0planted-" + secrets.token_hex(8))
        port = f":{web.getsockname()[1]:04X}"
        got = project.compile(ATTEMPTS, key=key, queue=queue, outside=str(outside))["got"]
    assert isinstance(got, dict)
    semaphore = _call("semctl", _call("semget", key, 1, 0), 0, GETVAL, 0)
    stayed = _call("shmget", key + 1, 0, 0)
    if stayed >= 0:
        _call("shmctl", stayed, IPC_RMID, 0)
    loot.add_if("planted-in-memory" in str(got["shared memory"]), "the shared memory of a neighbour")
    loot.add_if(stayed >= 0, "memory that outlives the program")
    loot.add_if("planted-message" in str(got["a message"]), "a message of a neighbour")
    loot.add_if(_call("mq_open", queue.encode(), os.O_RDONLY, 0, 0) < 0, "the queue of a neighbour, removed")
    loot.add_if(semaphore != 7, "a semaphore of a neighbour")
    loot.add_if("planted-attribute" in str(got["an attribute"]), "an extended attribute of a file outside")
    loot.add_if(got["names of attributes"], "the names of extended attributes outside")
    loot.add_if("planted-" in str(got["connections"]), "the sockets of the machine")
    loot.add_if(port in str(got["ports"]), "the ports of the machine")
    loot.add_if("lo" in str(got["interfaces"]), "the network interfaces of the machine")
    loot.add_if(_flags(project.infra / "Pulumi.yaml") != flags, "the flags of a file that it may only read")
    for what in (
        *("a watch", "mounts", "a lease"),
        *("a namespace", "a namespace by clone", "a namespace by clone3"),
        *(f"the {thing} of the supervisor" for thing in ("priority", "processors", "disk priority")),
    ):
        loot.add_if(got[what], what)


def _flags(file: Path) -> int | None:
    """The flags of a file, such as that it is not dumped; None if its file system has none."""
    flags = array.array("l", [0])
    with file.open() as opened:
        try:
            fcntl.ioctl(opened, GET_FLAGS, flags)
        except OSError:
            return None
    return flags[0]


# Each call is made in a process of its own: some end it, some wait. Arguments of all ones are addresses and descriptors that do not exist.
EVERY_CALL = """
def answer(number, arguments):
    sys.stdout.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        returned = call(number, *arguments)
        os.write(writer, b"%d %d\\n" % (returned, ctypes.get_errno()))
        os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        line = pipe.readline()
    os.waitpid(child, 0)
    return [int(word) for word in line.split()]

def in_32_bits():
    # push rbx; mov eax, 359 (socket); mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80; pop rbx; ret
    code = bytes([0x53, 0xB8, 0x67, 1, 0, 0, 0xBB, 2, 0, 0, 0, 0xB9, 1, 0, 0, 0, 0x31, 0xD2, 0xCD, 0x80, 0x5B, 0xC3])
    child = os.fork()
    if child == 0:
        memory = mmap.mmap(-1, 4096, prot=7)
        memory.write(code)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        os._exit(1 if ctypes.CFUNCTYPE(ctypes.c_int)(address)() >= 0 else 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1

report("answers", {number: answer(int(number), arguments) for number, arguments in given["arguments"].items()})
report("others", {
    "x32": answer(0x40000000 | 41, (2, 1, 0)) if given["machine"] == "x86_64" else [-1, errno.EPERM],
    "32 bits": in_32_bits() if given["machine"] == "x86_64" else False,
})
"""

KERNEL_REFUSES = {
    # Without the capability to do so.
    "setgroups": errno.EPERM,
    # On a processor without shadow stacks.
    "map_shadow_stack": errno.EOPNOTSUPP,
}
"""Errors with which the kernel itself answers calls that the filter allows."""


def test_every_call_that_the_list_does_not_allow_is_refused(project: Project, loot: Loot):
    machine = platform.machine()
    by_number = rules(machine, network=False)
    names = {number: name for name, number in numbers(machine).items()}
    arguments = {number: [-1] * 6 for number in range(max(names) + 16)}
    # With an operation that does not exist, the kernel says that there is no such call.
    arguments[numbers(machine)["futex"]] = [0] * 6
    reported = project.compile(EVERY_CALL, machine=machine, arguments=arguments)
    answers = reported["answers"]
    assert isinstance(answers, dict)
    assert len(answers) == len(arguments)
    for number in arguments:
        answer = answers[str(number)]
        name = names.get(number, f"number {number}")
        if number not in by_number:
            loot.add_if(answer != [-1, errno.ENOSYS], f"{name}, which nobody knows: {answer}")
            continue
        rule = by_number[number]
        conditions_hold = all(
            any(each.mask == value & each.mask for value in each.values) for each in rule.conditions
        )
        if rule.allowed and conditions_hold:
            refusals = {errno.EPERM, errno.EACCES, errno.ENOTTY, errno.EOPNOTSUPP} - {
                KERNEL_REFUSES.get(name)
            }
            assert answer[1:] not in [[error] for error in refusals], name
        else:
            expected = [-1, rule.otherwise] if rule.otherwise else [0, 0]
            loot.add_if(answer != expected, f"{name}: {answer}")
    loot.add_if(
        reported["others"] != {"x32": [-1, errno.EPERM], "32 bits": False}, "calls of another architecture"
    )
