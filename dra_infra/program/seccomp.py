"""The seccomp filter of a confined program: the rules of `system_calls` as instructions that the kernel runs before each call.

See Documentation/userspace-api/seccomp_filter.rst and Documentation/networking/filter.rst. Since Linux 5.11 the kernel finds
out once which calls the filter always allows, and does not run it for these.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from typing import Final

from dra_infra.program.system_calls import UNKNOWN, Condition, Rule, rules

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The numbers that the kernel gives the machines (include/uapi/linux/audit.h)."""

_X32: Final = 0x40000000
"""From here on x86-64 counts the calls of x32, which do the same things under other numbers."""

# Offsets into the record of a call (struct seccomp_data). Of an argument, the lower half comes first on both machines.
_NUMBER, _ARCHITECTURE, _ARGUMENTS, _ARGUMENT_SIZE = 0, 4, 16, 8

_LOAD, _AND, _JUMP_IF_EQUAL, _JUMP_FROM, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
"""What a filter returns: run the call, or report the error number in the lower bits."""

_ALL_BITS: Final = 0xFFFFFFFF
_SET_SECCOMP, _MODE_FILTER = 22, 2


def install(machine: str, *, network: bool, loopback: bool = False) -> bool:
    """Restrict the system calls of this thread, and of all that it starts, for ever.

    Args:
        machine: The machine as uname(2) names it.
        network: Whether sockets may be made.
        loopback: Whether sockets of TCP may be made.

    Returns:
        Whether the filter is in force: False for a machine without a table, or a kernel without seccomp.
    """
    if machine not in _ARCHITECTURES:
        return False
    code = filter_for(machine, network=network, loopback=loopback)
    instructions = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    program = Program(len(code) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(program), 0, 0) == 0)


def filter_for(machine: str, *, network: bool, loopback: bool = False) -> bytes:
    """Return the filter for `x86_64` or `aarch64`, eight bytes for each instruction."""
    refused = _return(_FAIL | Rule().otherwise)
    ranges = _ranges(rules(machine, network=network, loopback=loopback))
    return b"".join(
        [
            # A process may make calls of another architecture, such as those of 32 bits, whose numbers mean something else.
            _instruction(_LOAD, _ARCHITECTURE),
            _instruction(_JUMP_IF_EQUAL, _ARCHITECTURES[machine], if_true=1),
            refused,
            _instruction(_LOAD, _NUMBER),
            _instruction(_JUMP_FROM, _X32, if_false=1),
            refused,
            *_search(ranges),
        ]
    )


def _ranges(by_number: dict[int, Rule]) -> list[tuple[int, Rule]]:
    """Return the first number of each range of calls with one rule, in rising order; the last range has no end."""
    end = max(by_number) + 2
    answers = ((number, by_number.get(number, UNKNOWN)) for number in range(end))
    groups = itertools.groupby(answers, key=lambda answer: answer[1])
    return [(next(calls)[0], rule) for rule, calls in groups]


def _search(ranges: list[tuple[int, Rule]]) -> list[bytes]:
    """Return the instructions that find the range of a number by halving, and answer."""
    if len(ranges) == 1:
        return _answer(ranges[0][1])
    half = len(ranges) // 2
    lower, upper = _search(ranges[:half]), _search(ranges[half:])
    # A jump counts the instructions that it skips, in one byte.
    return [_instruction(_JUMP_FROM, ranges[half][0], if_true=len(lower)), *lower, *upper]


def _answer(rule: Rule) -> list[bytes]:
    failed = _return(_FAIL | rule.otherwise)
    if not rule.allowed:
        return [failed]
    tests = [step for condition in rule.conditions for step in [*_test(condition), failed]]
    return [*tests, _return(_ALLOW)]


def _test(condition: Condition) -> list[bytes]:
    """Return instructions that skip the one after them if the condition holds."""
    steps = [_instruction(_LOAD, _ARGUMENTS + _ARGUMENT_SIZE * condition.argument)]
    if condition.mask != _ALL_BITS:
        steps.append(_instruction(_AND, condition.mask))
    remaining = range(len(condition.values), 0, -1)
    comparisons = zip(condition.values, remaining, strict=True)
    return [*steps, *(_instruction(_JUMP_IF_EQUAL, value, if_true=skipped) for value, skipped in comparisons)]


def _return(value: int) -> bytes:
    return _instruction(_RETURN, value)


def _instruction(code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
