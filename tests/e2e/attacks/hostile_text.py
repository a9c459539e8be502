"""Strings that steer what shows them, what counts as steering, and runs of the program on many of them."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_PARTS: Final = (
    # What a terminal obeys: colours, titles, links, moves of the cursor, in seven and in eight bits.
    *(
        "\x1b[31m",
        "\x1b]0;title\x07",
        "\x1b]8;;http://evil.example/\x1b\\",
        "\x1b[2J\x1b[H",
        "\x1b[1A\x1b[2K",
    ),
    *("\x9b31m", "\x9d0;title\x9c", "\x90q", "\x85", "\x80", "\x7f", "\x08\x08\x08", "\rok", "\x0b", "\x0c"),
    *("\x0e", "\x1c", "\x1f", "\x00"),
    # What turns the reading direction round.
    *map(
        chr, (0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069, 0x200E, 0x200F, 0x061C)
    ),
    # What nobody sees.
    *map(
        chr, (0x00AD, 0x034F, 0x115F, 0x17B4, 0x180E, 0x200B, 0x200D, 0x2060, 0x3164, 0xFFA0, 0xFEFF, 0x2800)
    ),
    *map(chr, (0xFFF9, 0xFE0F, 0xE0001, 0xE0041, 0xE0100)),
    # What is no character, or no one knows which.
    *map(chr, (0xD800, 0xDFFF, 0xFFFE, 0xFDD0, 0x1FFFF, 0xE000, 0x0378)),
    # What ends a line, and what a runner reads as a command.
    *("\u2028", "\u2029", "\n::error::pwned", "\n  ::warning::pwned", "##[error]pwned", "%0A::error::pwned"),
    ",title=x::pwned\r\n::warning::pwned",
)

STRINGS: Final = tuple(f"n{number:02}{part}z" for number, part in enumerate(_PARTS))
"""Each begins with a name of its own, by which it is found again."""

_IGNORABLE: Final = (
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, 0x2800),
    *range(0x180B, 0x1810),
    *range(0xFE00, 0xFE10),
    *range(0xE0000, 0xE1000),
)
"""What Unicode's `Default_Ignorable_Code_Point` has beside format characters, and the blank of Braille."""


def hidden_in(text: str) -> set[str]:
    """Characters of *text* that nobody sees or a terminal obeys; breaks of lines, and emoji's own selector, are none."""
    found = {
        each
        for each in set(text)
        if each not in "\n\t"
        and (
            unicodedata.category(each) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
            or ord(each) in _IGNORABLE
        )
    }
    if "\ufe0f" in found and not any(
        follows == "\ufe0f" and unicodedata.category(before) not in ("So", "Sm")
        for before, follows in itertools.pairwise(text)
    ):
        found.discard("\ufe0f")
    return found


def commands_in(log: str) -> list[str]:
    """Lines that the runner of GitHub's workflows takes for commands and that our strings brought."""
    lines = log.replace("\r", "\n").split("\n")
    return [line for line in lines if line.lstrip().startswith("::") or "##[" in line]


def stolen(text: str, *, ours: tuple[str, ...] = ()) -> set[str]:
    """Names of the strings that got through in *text*: steering characters, or a command that is none of *ours*."""
    hidden = hidden_in(text)
    found = {each[:3] for each in STRINGS if hidden & set(each) and each[:-1] in text}
    seen = {letter for each in STRINGS if each[:3] in found for letter in each}
    found |= {f"{ord(each):#x}" for each in hidden - seen}
    for line in commands_in(text):
        if not (ours and line.startswith(ours)):
            found |= set(re.findall(r"n\d\d(?=\n*[#:%])|pwned", line)) or {line[:40]}
    return found


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run of the program: what it printed, as bytes were, and how it ended."""

    arguments: Sequence[str]
    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Both streams; a byte that is no UTF-8 is a character that nobody knows."""
        return (self.out + b"\n" + self.err).decode("utf-8", "surrogateescape")


_RUNS: Final = """
import json, os, sys
from dra_infra.cli import process
import dra_infra.cli.app, dra_infra.cli.commands.programs, dra_infra.cli.explain, dra_infra.cli.simulate
import dra_infra.cli.validate, dra_infra.cli.catalog, dra_infra.cli.review
folder = sys.argv[1]
for number, arguments in enumerate(json.load(open(f"{folder}/jobs.json"))):
    child = os.fork()
    if child == 0:
        for name, stream in (("out", 1), ("err", 2)):
            os.dup2(os.open(f"{folder}/{number}.{name}", os.O_WRONLY | os.O_CREAT, 0o600), stream)
        sys.argv = ["dra-infra", *arguments]
        process.main()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    open(f"{folder}/{number}.code", "w").write(str(os.waitstatus_to_exitcode(status)))
"""


def run_all(
    folder: Path, jobs: Sequence[Sequence[str]], *, cwd: Path, environment: Mapping[str, str] | None = None
) -> list[Ended]:
    """Run the program once for each of *jobs*; they are forks of one that has loaded everything, which saves a minute."""
    folder.mkdir()
    (folder / "jobs.json").write_text(json.dumps(jobs))
    subprocess.run(
        [sys.executable, "-c", _RUNS, str(folder)], check=True, cwd=cwd, env=environment, capture_output=True
    )
    return [
        Ended(
            arguments=arguments,
            code=int((folder / f"{number}.code").read_text()),
            out=(folder / f"{number}.out").read_bytes(),
            err=(folder / f"{number}.err").read_bytes(),
        )
        for number, arguments in enumerate(jobs)
    ]


def manifests_with(text: str) -> list[dict[str, Any]]:
    """Objects of every kind that is looked at, with *text* wherever a string may stand."""
    meta = {"name": text, "namespace": text, "labels": {text: text}, "annotations": {text: text}}
    request = {"name": text, "exactly": {"deviceClassName": text, text: text, "allocationMode": text}}
    selector = {"cel": {"expression": f"device.driver == '{text}' {text}"}}
    container = {"name": text, "image": text, text: text, "resources": {"claims": [{"name": text}]}}
    devices = {"requests": [request], "constraints": [{"matchAttribute": text, "requests": [text]}]}
    api = "resource.k8s.io/v1"
    return [
        {
            "apiVersion": api,
            "kind": "DeviceClass",
            "metadata": meta,
            "spec": {"selectors": [selector], text: text},
        },
        {"apiVersion": api, "kind": "ResourceClaim", "metadata": meta, "spec": {"devices": devices}},
        {"apiVersion": api, "kind": text, "metadata": meta},
        {"apiVersion": f"resource.k8s.io/{text}", "kind": "ResourceClaim", "metadata": meta},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {"run.sh": f"a\n{text}\n{text}", text: ""},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {text: text}},
                "template": {
                    "metadata": {"labels": {text: text}},
                    "spec": {
                        "nodeSelector": {text: text},
                        "containers": [container],
                        "resourceClaims": [{"name": text, "resourceClaimTemplateName": text}],
                    },
                },
            },
        },
    ]


def fleet_with(text: str, *, sound: bool) -> list[dict[str, Any]]:
    """A node and its slice that bear *text*; where *sound* is false also where it makes no sense."""
    device = {"name": text, "attributes": {text: {"string": text}}, "capacity": {"memory": {"value": text}}}
    if sound:
        device = {"name": "gpu-0", "attributes": {"model": {"string": text}}}
    pool = {"name": text, "generation": 1, "resourceSliceCount": 1}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": text, "labels": {"kubernetes.io/hostname": text}},
            "spec": {"taints": [{"key": text, "value": text, "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "8" if sound else text, "memory": "64Gi", "pods": "110"}},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": text},
            "spec": {"driver": "gpu.nvidia.com", "nodeName": text, "pool": pool, "devices": [device]},
        },
    ]


def write_objects(file: Path, objects: Sequence[Mapping[str, Any]]) -> Path:
    """*objects* as a list in JSON, which is YAML and holds what YAML's own readers refuse."""
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return file
