from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from dra_infra.program import seccomp, system_calls
from dra_infra.program.system_calls import numbers, rules

MACHINES = ("x86_64", "aarch64")
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
RUN, FAIL = "runs", 0x00050000
HEADERS = {
    "x86_64": ("x86_64-linux-gnu/asm/unistd_64.h", "asm/unistd_64.h"),
    "aarch64": ("asm-generic/unistd.h",),
}
"""Where distributions keep the numbers of the kernel that their C library is built for."""


def answer(
    machine: str,
    number: int,
    *arguments: int,
    network: bool = False,
    loopback: bool = False,
    architecture: int | None = None,
) -> str | int:
    """Run the filter as the kernel does (Documentation/networking/filter.rst); `RUN` or the error number."""
    code = seccomp.filter_for(machine, network=network, loopback=loopback)
    architecture = ARCHITECTURE[machine] if architecture is None else architecture
    record = struct.pack("<iIQ6Q", number, architecture, 0, *(*arguments, *[0] * 6)[:6])
    steps = list(struct.iter_unpack("=HBBI", code))
    at, value = 0, 0
    while True:
        operation, if_true, if_false, operand = steps[at]
        at += 1
        if operation == 0x20:
            (value,) = struct.unpack_from("<I", record, operand)
        elif operation == 0x54:
            value &= operand
        elif operation == 0x15:
            at += if_true if value == operand else if_false
        elif operation == 0x35:
            at += if_true if value >= operand else if_false
        else:
            assert operation == 0x06
            return RUN if operand == 0x7FFF0000 else operand - FAIL


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_installed_kernel_headers(machine: str):
    headers = [Path("/usr/include") / name for name in HEADERS[machine]]
    header = next((each for each in headers if each.exists()), None)
    if header is None:
        pytest.skip("no kernel headers are installed here")
    # A name such as __NR3264_lseek stands for one of two calls, by the size of a word.
    definitions = re.findall(r"^#define\s+__NR(?:3264)?_(\w+)\s+(\d+)$", header.read_text(), re.MULTILINE)
    defined = {name: int(number) for name, number in definitions}
    if machine == "aarch64":
        defined["newfstatat"] = defined.pop("fstatat")
        # Calls of 32 bits have numbers of their own; the others are no calls of arm64.
        of_32_bits = {name for name, number in defined.items() if 403 <= number <= 423}
        for name in {*of_32_bits, "sync_file_range2", "arch_specific_syscall", "syscalls"}:
            defined.pop(name, None)
    newest = max(defined.values())
    known = {name: number for name, number in numbers(machine).items() if number <= newest}
    # Later kernels gave these two the numbers of a gap.
    for calls in (defined, known):
        calls.pop("uretprobe", None)
        calls.pop("uprobe", None)
    assert defined == known


def test_every_call_has_one_rule_and_every_rule_a_call():
    named = [name for names, _ in system_calls._rules_by_names(network=False) for name in names.split()]
    assert len(named) == len(set(named))
    assert set(named) == set(numbers("x86_64")) | set(numbers("aarch64"))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("network", [False, True])
def test_the_filter_answers_every_number_as_the_rules_say(machine: str, network: bool):
    by_number = rules(machine, network=network)
    for number in range(max(by_number) + 100):
        rule = by_number.get(number, system_calls.UNKNOWN)
        fitting = [0] * 6
        for condition in rule.conditions:
            fitting[condition.argument] = condition.values[-1]
        expected = RUN if rule.allowed else rule.otherwise
        assert answer(machine, number, *fitting, network=network) == expected
        for condition in rule.conditions:
            other = fitting.copy()
            other[condition.argument] = 0x7FFFFFFE & condition.mask
            assert answer(machine, number, *other, network=network) == rule.otherwise


@pytest.mark.parametrize("machine", MACHINES)
def test_a_program_with_loopback_makes_sockets_of_tcp_and_no_others(machine: str):
    number = numbers(machine)
    internet, internet6, unix, netlink, stream, datagram, raw, non_blocking = 2, 10, 1, 16, 1, 2, 3, 0o4000
    for family in (internet, internet6):
        assert answer(machine, number["socket"], family, stream | non_blocking, loopback=True) == RUN
        for kind in (datagram, raw):
            assert answer(machine, number["socket"], family, kind, loopback=True) == errno.EACCES
    for family in (unix, netlink):
        assert answer(machine, number["socket"], family, stream, loopback=True) == errno.EACCES
    for name in ("bind", "connect", "listen", "accept4"):
        assert answer(machine, number[name], loopback=True) == RUN
        assert answer(machine, number[name]) == errno.EACCES


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("read", (0, 0, 0), RUN),
        ("shmget", (0, 4096, 0o1600), errno.EPERM),
        ("mq_open", (), errno.EPERM),
        ("inotify_init1", (), errno.EPERM),
        ("getxattr", (), errno.EOPNOTSUPP),
        ("fchmod", (3, 0o777), 0),
        ("clone3", (), errno.ENOSYS),
        ("clone", (17,), RUN),
        ("clone", (0x10000000 | 17,), errno.EPERM),
        # What the upper half of an argument holds does not count, as in the kernel.
        ("clone", (0x100000000 | 17,), RUN),
        ("prlimit64", (0, 7), RUN),
        ("prlimit64", (1, 7), errno.EPERM),
        ("setpriority", (0, 0, 5), RUN),
        ("setpriority", (2, 0, 5), errno.EPERM),
        ("setpriority", (0, 1, 5), errno.EPERM),
        ("sched_setaffinity", (1,), errno.EPERM),
        ("personality", (0xFFFFFFFF,), RUN),
        ("personality", (0x0400000,), errno.EPERM),
        ("ioctl", (0, 0x5401), RUN),
        ("ioctl", (0, 0x5412), errno.ENOTTY),
        ("ioctl", (0, 0x8912), errno.ENOTTY),
        ("fcntl", (0, 1030), RUN),
        ("fcntl", (0, 1024), errno.EPERM),
        ("socket", (1, 1), errno.EACCES),
        ("socketpair", (1, 1), RUN),
        ("socketpair", (1, 1 | 0o2000000), RUN),
        ("socketpair", (1, 2), errno.EACCES),
        ("socketpair", (30, 1), errno.EACCES),
    ],
)
def test_what_a_program_may_call(machine: str, name: str, arguments: tuple[int, ...], expected: str | int):
    assert answer(machine, numbers(machine)[name], *arguments) == expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["socket", "socketpair", "bind", "connect", "listen", "accept", "accept4"])
def test_sockets_are_made_where_the_network_is_allowed(machine: str, name: str):
    assert answer(machine, numbers(machine)[name], 2, 2, network=True) == RUN
    assert answer(machine, numbers(machine)[name], 2, 2) == errno.EACCES


@pytest.mark.parametrize("machine", MACHINES)
def test_the_network_reads_the_addresses_of_the_machine_and_changes_none(machine: str):
    number = numbers(machine)["ioctl"]
    assert answer(machine, number, 3, 0x8912, network=True) == RUN
    # SIOCSIFADDR
    assert answer(machine, number, 3, 0x8916, network=True) == errno.ENOTTY


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_architecture_are_refused(machine: str):
    other = ARCHITECTURE["aarch64" if machine == "x86_64" else "x86_64"]
    assert answer(machine, numbers(machine)["read"], architecture=other) == errno.EPERM
    assert answer(machine, 0x40000000 | numbers(machine)["read"]) == errno.EPERM
    assert answer(machine, -1) == errno.EPERM


def test_a_machine_without_a_table_gets_no_filter():
    assert not seccomp.install("riscv64", network=False)
