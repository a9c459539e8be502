"""From what Go printed to what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_MODULE_AT_VERSION = r"[A-Za-z0-9._~/-]+\.[A-Za-z0-9._~/-]+@v[0-9][^\s:,)]*"
_HOST_AND_PORT = r"(?:\[[^\]\s]*\]|[^\s:\[]+)(?::\d+)?"
_TAIL_LINES = 15
_LINE_LENGTH = 400
_KILLED = -9


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Why Go failed.

    Args:
        cause: Stable slug.
        message: What is wrong, with the module at fault where Go names one.
        hint: The likely fix.
    """

    cause: str
    message: str
    hint: str


@dataclass(frozen=True)
class _Rule:
    cause: str
    pattern: str
    message: Callable[[re.Match[str]], str]
    hint: str


def _about(found: re.Match[str]) -> str:
    """The module named nearest to the symptom: on its line, else the last one before it."""
    text = found.string
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    line = text[start : end if end >= 0 else len(text)]
    for where in (re.findall(_MODULE_AT_VERSION, line), re.findall(_MODULE_AT_VERSION, text[:start])):
        if where:
            return str(where[-1])
    return "a module"


# In this order: a full disk and a killed process make Go complain of everything else as well.
_RULES = (
    _Rule(
        "disk-full",
        r"no space left on device|disk quota exceeded",
        lambda _: "the disk is full",
        "free 6 GB, or point GOCACHE, GOMODCACHE and DRA_INFRA_CACHE at a larger disk",
    ),
    _Rule(
        "out-of-memory",
        r"signal: killed|out of memory|cannot allocate memory",
        lambda _: "a compiler or linker process was killed, most likely for memory",
        "free 3 GB of memory for each job and build with fewer: `python -m tools.build --jobs 1`",
    ),
    _Rule(
        "go-too-old",
        r"requires go >= ([0-9.a-z]+) \(running go ([0-9.a-z]+)",
        lambda found: f"Go {found[2]} is too old: go.mod requires {found[1]}",
        "install that version of Go or a newer one and put it first on PATH",
    ),
    _Rule(
        "checksum-mismatch",
        r"checksum mismatch|SECURITY ERROR",
        lambda found: f"{_about(found)} is not the one that go.sum pins: checksum mismatch",
        "do not switch the check off; clear the module cache (`go clean -modcache`) and ask who serves other bytes",
    ),
    _Rule(
        "go-sum-incomplete",
        r"missing go\.sum entry(?: for (?:module providing package |go\.mod file)?(\S+?);? )?"
        r"|updates to go\.(?:mod|sum) needed",
        lambda found: f"go.sum has no entry for {found[1] or 'a module of go.mod'}",
        "restore both files; after a wanted change of a version run `GOFLAGS=-mod=mod go list -deps tool` beside them",
    ),
    _Rule(
        "no-such-package",
        r"(?:but does not contain|no required module provides|cannot find module providing) package ([^\s:;]+)",
        lambda found: f"there is no package {found[1]}",
        "check the names of the commands, and the packages in tools/toolsets.toml",
    ),
    _Rule(
        "module-refused",
        r"\b(?:403|404|410|451) [A-Z]|version is not available|unknown revision|invalid version|not found: ",
        lambda found: f"{_about(found)} is refused by the module proxy or the checksum database",
        "pin another version in go.mod; the settings GOPROXY and GOPRIVATE decide who is asked",
    ),
    _Rule(
        "network",
        r"no such host|i/o timeout|connection (?:refused|reset)|network is unreachable|TLS handshake|x509: |"
        r"server misbehaving|\b50[0234] [A-Z]|unexpected EOF",
        lambda found: f"{_about(found)} cannot be downloaded: the module proxy does not answer",
        "check the network and the setting GOPROXY, then run this again: what is there already is kept",
    ),
)


def diagnose(output: str, status: int) -> Diagnosis:
    """Name the cause of a failed Go command from its *output* and exit *status* (negative: a signal)."""
    if status == _KILLED:
        output = f"{output}\nsignal: killed"
    for rule in _RULES:
        if found := re.search(rule.pattern, output):
            return Diagnosis(cause=rule.cause, message=rule.message(found), hint=rule.hint)
    return Diagnosis(
        cause="unknown",
        message=f"go ended with status {status}",
        hint="the last lines above say why; with an unchanged checkout this is a fault of ours, please report it",
    )


def redact(text: str, hosts: Iterable[str] = ()) -> str:
    """Take addresses out of *text*: they may hold credentials and say where a company gets its modules.

    Module paths stay, although they look like hosts.

    Args:
        text: Output of Go.
        hosts: Names to remove wherever they stand alone, such as those in GOPROXY and GOSUMDB.
    """
    text = re.sub(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>]+", "<address>", text)
    text = re.sub(rf"\b(lookup|dial tcp) {_HOST_AND_PORT}(?: on {_HOST_AND_PORT})?", r"\1 <address>", text)
    for host in sorted(set(hosts), key=len, reverse=True):
        text = re.sub(rf"(?<![\w./-]){re.escape(host)}(?![\w/-]|\.\w)", "<address>", text)
    return text


def tail(text: str) -> str:
    """The last lines of *text* without Go's download messages."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("go: downloading ")]
    return "\n".join(line[:_LINE_LENGTH] for line in lines[-_TAIL_LINES:])
