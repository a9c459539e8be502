"""The damaged documents of a run: number and seed of the run say which target gets which bytes."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final, NamedTuple

import yaml

from tests.unit.hostile import seeds
from tests.unit.hostile.mutations import as_text, mutate_bytes, mutate_tree

_MOST: int = 6
"""Objects of one document: what goes wrong does so with few, and small ones are many in a second."""


_TARGETS: Final = (
    *("validate", "validate", "snapshot", "fleet", "program", "forge", "cluster", "migrate"),
    *("components", "plugin-config"),
)


class Document(NamedTuple):
    """What a target is given."""

    target: str
    data: bytes


def make_document(seed: int, number: int) -> Document:
    """The document of *number* in the run of *seed*."""
    random = Random(f"{seed}/{number}")  # noqa: S311
    target = random.choice(_TARGETS)
    if target == "forge":
        return Document(target, _answer(random.choice(seeds.COMMENTS), random))
    if target == "cluster":
        return Document(target, _list(random))
    if target == "fleet" and random.random() < 0.4:
        trees = [mutate_tree(each, random) for each in seeds.NODE_GROUPS]
    elif target == "plugin-config":
        trees = [mutate_tree(random.choice(seeds.PLUGIN_CONFIGS), random)]
    else:
        trees = _objects(target, random)
    data = as_text(trees, random).encode("utf-8", "surrogatepass")
    return Document(target, mutate_bytes(data, random) if random.random() < 0.35 else data)


def _objects(target: str, random: Random) -> list[Any]:
    if target in ("snapshot", "fleet"):
        whole = seeds.snapshot()
    else:
        whole = random.choice(seeds.estates() if target in ("migrate", "components") else seeds.examples())
    chosen = [each for each in whole if random.random() < _MOST / len(whole)] or [random.choice(whole)]
    damaged = random.randrange(len(chosen))
    return [
        mutate_tree(each, random, whole) if index == damaged or random.random() < 0.15 else each
        for index, each in enumerate(chosen)
    ]


def _list(random: Random) -> bytes:
    cluster = seeds.cluster()
    plural = random.choice((*sorted(cluster), "version", "resource.k8s.io", "apis", "v1"))
    items = [mutate_tree(each, random, cluster["nodes"]) for each in cluster.get(plural, ())]
    body: Any = {
        "metadata": {"resourceVersion": "7"},
        "items": items,
        "gitVersion": "v1.36.0",
        "versions": [{"version": "v1"}],
        **seeds.SERVED,
    }
    if random.random() < 0.3:
        body = mutate_tree(body, random)
    return f"{plural}\n".encode() + _answer(body, random, is_whole=True)


def _answer(tree: Any, random: Random, *, is_whole: bool = False) -> bytes:
    body = tree if is_whole else mutate_tree(tree, random)
    try:
        data = json.dumps(body, default=str, skipkeys=True).encode("utf-8", "surrogatepass")
    except RecursionError:
        data = yaml.dump(body).encode()
    return mutate_bytes(data, random) if random.random() < 0.2 else data
