"""Damaged documents: a tree or a text that was whole, changed in one to four places as an attacker or a bad disk would.

All choices come from the `random.Random` that is given, so a document is found again by the seed of its run.
"""

from __future__ import annotations

import copy
import datetime as dt
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import yaml

Tree = Any
Path = tuple[Any, ...]

ODD_TEXTS: Final = (
    "",
    " ",
    "\x00",
    "\ud800",
    "\ufeffv1",
    "\u202egpj.exe",
    "\x1b[31mred",
    "é.io/x",
    "\u0131",
    "a/b/c",
    "/",
    "-",
    "..",
    "{{ .Values.x }}",
    "${SECRET}",
    "<script>",
    "@everyone",
    "1e999999999",
    "0x7fffffffffffffff",
    "99999999999999999999Ei",
    "1e-400",
    "NaN",
    "2026-01-01T00:00:00Z",
    "9999999-99-99T99:99:99Z",
    "::::",
    "[0-9",
    "(((((((((((((((((((((((((((((",
    "device.attributes['a'].b == c &&",
    "x" * 70,
    "x" * 5_000,
    "a.b" * 300,
)
ODD_NUMBERS: Final = (
    0,
    -1,
    1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    10**30,
    10**400,
    0.5,
    -0.0,
    1e308,
    5e-324,
)
NOT_JSON: Final = (float("nan"), float("inf"), dt.date(2026, 1, 1), b"\xff\x00")
EMPTY: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    [{}],
    {"": None},
    [1, "a", None, []],
)


def paths_in(tree: Tree, path: Path = ()) -> Iterator[Path]:
    """The path of every value in *tree*, its own first."""
    yield path
    if isinstance(tree, dict):
        for key in tree:
            yield from paths_in(tree[key], (*path, key))
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from paths_in(item, (*path, index))


def mutate_tree(tree: Tree, random: Random, others: tuple[Tree, ...] = ()) -> Tree:
    """A copy of *tree* that is changed in one to four places; *others* lend values.

    A tree that earlier changes have nested deeper than Python copies is returned as it is.
    """
    try:
        changed = copy.deepcopy(tree)
        for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
            changed = _change(changed, random, others)
    except RecursionError:
        return tree
    return changed


def _change(tree: Tree, random: Random, others: tuple[Tree, ...]) -> Tree:
    path = random.choice(list(paths_in(tree)))
    if not path:
        return tree if random.random() < 0.9 else _odd_value(random)
    holder = tree
    for step in path[:-1]:
        holder = holder[step]
    random.choice(_CHANGES)(holder, path[-1], random, others)
    return tree


def _odd_value(random: Random) -> Any:
    return copy.deepcopy(random.choice(random.choice((ODD_TEXTS, ODD_NUMBERS, EMPTY))))


def _replace(holder: Any, key: Any, random: Random, _others: tuple[Tree, ...]) -> None:
    holder[key] = _odd_value(random)


def _drop(holder: Any, key: Any, _random: Random, _others: tuple[Tree, ...]) -> None:
    del holder[key]


def _wrap(holder: Any, key: Any, random: Random, _others: tuple[Tree, ...]) -> None:
    value = holder[key]
    holder[key] = random.choice(([value], {"a": value}, {"name": value}, [value, value], [value] * 40))


def _retype(holder: Any, key: Any, _random: Random, _others: tuple[Tree, ...]) -> None:
    value = holder[key]
    if isinstance(value, str):
        holder[key] = len(value)
    elif isinstance(value, (dict, list)):
        holder[key] = json.dumps(value, default=str)
    else:
        holder[key] = str(value)


def _cut(holder: Any, key: Any, random: Random, _others: tuple[Tree, ...]) -> None:
    value = holder[key]
    if isinstance(value, str) and value:
        at = random.randrange(len(value))
        holder[key] = value[:at] + random.choice(ODD_TEXTS) + value[at + random.randrange(2) :]
    else:
        _replace(holder, key, random, ())


def _duplicate(holder: Any, key: Any, random: Random, _others: tuple[Tree, ...]) -> None:
    value = copy.deepcopy(holder[key])
    if isinstance(holder, list):
        holder.insert(key, value)
    else:
        holder[
            random.choice((f"{key}2", "", "name", "spec", key.upper() if isinstance(key, str) else "x"))
        ] = value


def _rename(holder: Any, key: Any, random: Random, _others: tuple[Tree, ...]) -> None:
    if isinstance(holder, dict):
        holder[random.choice((*ODD_TEXTS[:20], True, 7, None))] = holder.pop(key)
    else:
        _drop(holder, key, random, ())


def _borrow(holder: Any, key: Any, random: Random, others: tuple[Tree, ...]) -> None:
    if not others:
        return
    other = random.choice(others)
    value = other
    for step in random.choice(list(paths_in(other))):
        value = value[step]
    holder[key] = copy.deepcopy(value)


def _deepen(holder: Any, key: Any, random: Random, _others: tuple[Tree, ...]) -> None:
    value = holder[key]
    for _ in range(random.choice((5, 30, 61, 70, 300))):
        value = [value] if random.random() < 0.5 else {"a": value}
    holder[key] = value


def _not_json(holder: Any, key: Any, random: Random, _others: tuple[Tree, ...]) -> None:
    holder[key] = random.choice(NOT_JSON)


_CHANGES: Final[tuple[Callable[[Any, Any, Random, tuple[Tree, ...]], None], ...]] = (
    _replace,
    _replace,
    _replace,
    _drop,
    _wrap,
    _retype,
    _cut,
    _duplicate,
    _rename,
    _borrow,
    _deepen,
    _not_json,
)


class _Writer(yaml.CSafeDumper):
    """PyYAML's, which writes anchors where a value is used twice."""


def as_text(trees: list[Tree], random: Random) -> str:
    """The documents of *trees* as YAML or JSON, in one of the forms that people and programs write."""
    form = random.random()
    if form < 0.55:
        try:
            return yaml.dump_all(
                trees, Dumper=_Writer, sort_keys=False, default_flow_style=random.choice((False, None))
            )
        except (yaml.YAMLError, RecursionError, UnicodeEncodeError):
            pass
    texts = [json.dumps(tree, default=str, skipkeys=True, indent=random.choice((None, 1))) for tree in trees]
    if form < 0.7 and len(trees) > 1:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": trees}, default=str, skipkeys=True)
    return random.choice(("\n---\n", "\n", "---\n", "\n...\n")).join(texts)


_INSERTED: Final = (
    b"%YAML 1.1\n",
    b"%TAG ! tag:x,2000:\n",
    b"---\n",
    b"...\n",
    b"--- ",
    b"\t",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x00",
    b"\r",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"&a ",
    b"*a",
    b"<<: *a\n",
    b"!!binary ",
    b"!!python/object:os.system ",
    b"!!set {a}\n",
    b"? ",
    b": ",
    b"- ",
    b"[",
    b"]",
    b"{",
    b"}",
    b"|\n",
    b">-\n",
    b"'",
    b'"',
    b"#",
    b"\\u0000",
    b"\\ud800",
    b"\xf0\x9f\x98\x80",
    b"\xed\xa0\x80",
    b"{{ .x }}",
)


def mutate_bytes(data: bytes, random: Random) -> bytes:
    """*data* with a few bytes flipped, cut, repeated or put in."""
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(data) + 1)
        kind = random.random()
        if kind < 0.5:
            if random.random() < 0.5:
                # Most signs of YAML mean something at the beginning of a line.
                at = data.rfind(b"\n", 0, at) + 1
            data = data[:at] + random.choice(_INSERTED) + data[at:]
        elif kind < 0.7 and data:
            at = min(at, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]
        elif kind < 0.8:
            data = data[:at]
        elif kind < 0.9:
            data = data[:at] + data[at + random.randrange(1, 60) :]
        else:
            data = data[:at] + data[max(at - 100, 0) : at] * random.randrange(1, 4) + data[at:]
    return data
