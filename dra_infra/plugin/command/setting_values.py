"""Kinds of values that settings have: each reads a text and says what is wrong with another."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from dra_infra.model.names import is_dns_subdomain
from dra_infra.plugin.claims import is_uid

_LONGEST_DRIVER: Final = 63
"""Characters of a driver's name: DriverNameMaxLength of resource.k8s.io."""

_SECONDS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0}
_DURATION: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(ms|s|m|)")
_OWN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[0-9a-zA-Z.-]*):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, order=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """How the values of a setting look.

    Args:
        metavar: As help has it.
        read: The value of a text; raises `ValueError` with what is wrong.
        example: What a hint tells to write.
        choices: All values, where there are only a few.
    """

    metavar: str
    read: Callable[[str], Any]
    example: str
    choices: tuple[str, ...] = ()

    def hint(self, text: str) -> str:
        """What may be meant by a text that is no such value."""
        near = get_close_matches(text[:80].lower(), self.choices, n=1)
        if near:
            return f"did you mean {near[0]}?"
        return f"one of {', '.join(self.choices)}" if self.choices else f"write {self.example}"


def one_of(*choices: str) -> Kind:
    """A word of a few."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"{shortened(text)} is not known")
        return text

    return Kind(metavar="|".join(choices), read=read, example=choices[0], choices=choices)


def _back_end(text: str) -> str:
    if text not in _BACK_ENDS and not _OWN.fullmatch(text):
        raise ValueError(f"{shortened(text)} is not known")
    return text


def _switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise ValueError(f"{shortened(text)} is neither on nor off")
    return text == "on"


def _driver(text: str) -> str:
    if len(text) > _LONGEST_DRIVER or not is_dns_subdomain(text):
        raise ValueError(f"{shortened(text)} is no name of a driver")
    return text


def _node(text: str) -> str:
    if not is_dns_subdomain(text):
        raise ValueError(f"{shortened(text)} is no name of a node")
    return text


def _uid(text: str) -> str:
    if not is_uid(text):
        raise ValueError(f"{shortened(text)} is no UID of an API server")
    return text


def _path(text: str) -> Path:
    if "\0" in text:
        raise ValueError("no path has a zero byte")
    # The plugin may be started anywhere, and what it says of files is read elsewhere.
    if not text.startswith("/"):
        raise ValueError(f"{shortened(text)} does not start with /")
    return Path(text)


def _file(text: str) -> Path:
    if "\0" in text:
        raise ValueError("no path has a zero byte")
    return Path(text).expanduser()


def _words(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{shortened(text)} has characters that cannot be seen")
    return text


def _address(text: str) -> Address:
    match = _ADDRESS.fullmatch(text)
    if not match or int(match["port"]) > 65535:
        raise ValueError(f"{shortened(text)} is no address with a port")
    return Address(match["host"].strip("[]") or "::", int(match["port"]))


def _duration(text: str) -> float:
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError(f"{shortened(text)} is no time")
    return float(match[1]) * _SECONDS[match[2]]


_BACK_ENDS: Final = ("sim", "nvml")
BACK_END: Final = Kind(
    metavar="sim|nvml|MODULE:CLASS", read=_back_end, example="sim", choices=(*_BACK_ENDS, "MODULE:CLASS")
)
SWITCH: Final = Kind(metavar="on|off", read=_switch, example="on", choices=("on", "off"))
DRIVER: Final = Kind(metavar="NAME", read=_driver, example="a name like gpu.example.com")
NODE: Final = Kind(metavar="NAME", read=_node, example="the Node's metadata.name")
UID: Final = Kind(metavar="UID", read=_uid, example="the Pod's metadata.uid")
PATH: Final = Kind(metavar="PATH", read=_path, example="the path from / on")
FILE: Final = Kind(metavar="FILE", read=_file, example="the path of a file")
WORDS: Final = Kind(metavar="TEXT", read=_words, example="a text in one line")
ADDRESS: Final = Kind(
    metavar="HOST:PORT", read=_address, example="127.0.0.1:8080, or :8080 for all addresses"
)
DURATION: Final = Kind(metavar="TIME", read=_duration, example="seconds, or 250ms, 2s, 1m")


def shortened(text: str) -> str:
    """A value as a message quotes it."""
    return repr(text if len(text) <= 80 else f"{text[:79]}…")
