"""Break valid objects: at random, once or many times, and systematically, each position in every way."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

from tests.support.parity import odd_values
from tests.support.parity.cases import Object
from tests.support.parity.odd_values import Path

WRONG_TYPES: tuple[Any, ...] = (
    None,
    "",
    "x",
    0,
    1,
    -1,
    1.5,
    2**63,
    True,
    False,
    [],
    {},
    ["x"],
    [None],
    [{}],
    {"x": 1},
)
UNKNOWN = ("bogus", "Name", "spec", "", "é", "x" * 40, "a.b", "nodeName")
_KEPT = (("apiVersion",), ("kind",), ("metadata", "namespace"))
_METADATA: Path = ("metadata",)
_LARGE = 4


def positions(value: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of everything within *value*, parents first, but for what says which request to send."""
    if path in _KEPT:
        return
    if path:
        yield path
    if "parameters" in path:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from positions(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from positions(item, (*path, index))


def is_of_claims(path: Path) -> bool:
    """Whether a path of a pod is about claims, which is what is judged of pods."""
    if "resourceClaims" in path:
        return True
    return "resources" in path and "claims" in path[path.index("resources") :]


def everything(path: Path) -> bool:
    """Whether a path may be broken at all: always."""
    return bool(path)


def break_some(
    random: Random, built: Object, count: int, may_break: Callable[[Path], bool] = everything
) -> Object:
    """A copy of *built* with up to *count* faults."""
    broken = copy.deepcopy(built)
    for _ in range(count):
        paths = [path for path in positions(broken) if may_break(path)]
        if paths:
            _break_one(random, broken, random.choice(paths))
    return broken


def sweep(
    built: Object, may_break: Callable[[Path], bool] = everything
) -> Iterator[tuple[str, Callable[[], Object]]]:
    """Every position of *built* broken in every way once, each with a name, made when called: servers get a part."""
    for path in positions(built):
        if may_break(path):
            name = to_text(path)
            for fault, other in _other_values(path, get(built, path)):
                yield f"{name}{fault}", partial(_with, built, path, other)
            yield f"{name}/deleted", partial(_without, built, path)


def _other_values(path: Path, value: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    for index, other in enumerate((*WRONG_TYPES, *odd_values.of(path))):
        yield f"={index}", partial(copy.deepcopy, other)
    if isinstance(value, dict):
        for key, other in _more_keys(path, value):
            yield f"+{key[:40]}", partial(copy.deepcopy, {**value, key: other})
    if isinstance(value, list) and value:
        for size in _sizes(path):
            yield f"*{size}", partial(_resized, value, size)
        for extra in (None, value[0], {}, "", 1):
            yield "+item", partial(copy.deepcopy, [*value, extra])


def _more_keys(path: Path, value: Object) -> Iterator[tuple[str, Any]]:
    for key in UNKNOWN:
        yield key, "x"
    for key in odd_values.keys_of(path):
        yield key, next(iter(value.values()), "x")
    if path == _METADATA:
        for key in odd_values.SERVER_SET:
            for other in odd_values.of((*path, key)):
                yield key, other


def get(value: Any, path: Path) -> Any:
    """What is at *path*."""
    for key in path:
        value = value[key]
    return value


def to_text(path: Path) -> str:
    """The path as the server writes it, roughly."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def _break_one(random: Random, broken: Object, path: Path) -> None:
    parent = get(broken, path[:-1])
    key = path[-1]
    value = parent[key]
    pick = random.random()
    odd = odd_values.of(path)
    if isinstance(value, dict) and pick < 0.35:
        _break_map(random, path, value)
    elif isinstance(value, list) and value and pick < 0.6:
        parent[key] = _broken_list(random, path, value)
    elif odd and pick < 0.9:
        parent[key] = copy.deepcopy(random.choice(odd))
    elif pick < 0.93:
        parent[key] = random.choice((None, type(value)()))
    elif pick < 0.96:
        parent[key] = copy.deepcopy(random.choice(WRONG_TYPES))
    else:
        del parent[key]


def _break_map(random: Random, path: Path, value: Object) -> None:
    pick = random.random()
    if path == _METADATA and pick < 0.4:
        key = random.choice(odd_values.SERVER_SET)
        value[key] = copy.deepcopy(random.choice(odd_values.of((*path, key))))
    elif names := odd_values.keys_of(path):
        value[random.choice(names)] = next(iter(value.values()), "x")
    elif pick < 0.7:
        value[random.choice(UNKNOWN)] = random.choice(("x", 1, None))
    elif value:
        del value[random.choice(sorted(value))]


def _broken_list(random: Random, path: Path, value: list[Any]) -> list[Any]:
    if random.random() < 0.5:
        return _resized(value, random.choice(_sizes(path)))
    return [*value, copy.deepcopy(random.choice((None, value[0], value[0], {}, "", 1)))]


def _sizes(path: Path) -> tuple[int, ...]:
    limit = odd_values.LIMITS.get(str(path[-1]), _LARGE)
    return (0, limit - 1, limit, limit + 1, 2 * limit + 5)


def _resized(items: list[Any], size: int) -> list[Any]:
    """The list with *size* items that differ in name, made from what it has."""
    made = [copy.deepcopy(item) for item in items[:size]]
    for index in range(len(made), size):
        item = copy.deepcopy(items[index % len(items)])
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            item["name"] = f"more-{index}"
        made.append(item)
    return made


def _with(built: Object, path: Path, make: Callable[[], Any]) -> Object:
    changed = copy.deepcopy(built)
    get(changed, path[:-1])[path[-1]] = make()
    return changed


def _without(built: Object, path: Path) -> Object:
    changed = copy.deepcopy(built)
    del get(changed, path[:-1])[path[-1]]
    return changed
