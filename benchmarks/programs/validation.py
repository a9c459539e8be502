"""Validate 10,000 claim templates with three-clause selectors, one in ten broken: KIND, then FILE or FOLDER.

`write` makes the files in FOLDER; `warm` and `distinct` take objects that are parsed already, with twenty expressions or
all different, and print the seconds that checking them took.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

NUMBER = 10_000
SEED = 20260101


def template(index: int, draw: random.Random, *, distinct: bool) -> dict[str, Any]:
    """One claim template."""
    number = index if distinct else index % 20
    domain = "gpu.nvidia.com"
    memory = f'device.capacity["{domain}"].memory'
    # With its guard, so that the templates that are not broken are right: advice on all of them would hide the rest.
    expression = f'device.driver == "{domain}" && has({memory}) && {memory}.compareTo(quantity("{40_000 + number}Mi")) >= 0'
    exactly = {
        "deviceClassName": domain,
        "count": 1 + index % 8,
        "selectors": [{"cel": {"expression": expression}}],
    }
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": f"t{index}", "namespace": "ml", "labels": {"app.kubernetes.io/name": "trainer"}},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }
    if draw.random() < 0.1:
        draw.choice([_negative, _misspelt, _nameless])(exactly)
    return manifest


def _negative(exactly: dict[str, Any]) -> None:
    exactly["count"] = -1


def _misspelt(exactly: dict[str, Any]) -> None:
    exactly["conut"] = exactly.pop("count")


def _nameless(exactly: dict[str, Any]) -> None:
    del exactly["deviceClassName"]


def templates(*, distinct: bool) -> list[dict[str, Any]]:
    """All of them, the same each time."""
    draw = random.Random(SEED)  # noqa: S311  (the same broken ones each time)
    return [template(index, draw, distinct=distinct) for index in range(NUMBER)]


def write(folder: Path) -> None:
    """Make the files that the other kinds read."""
    from dra_infra.documents.yaml import write_manifests

    folder.mkdir(parents=True, exist_ok=True)
    for name, distinct in (("warm", False), ("distinct", True)):
        lines = "".join(f"{json.dumps(each)}\n" for each in templates(distinct=distinct))
        (folder / f"{name}.jsonl").write_text(lines)
    every = templates(distinct=False)
    (folder / "all.yaml").write_text(write_manifests(every))
    (folder / "one.yaml").write_text(write_manifests(every[1:2]))


def main() -> None:
    """Run one kind."""
    kind = sys.argv[1]
    path = Path(sys.argv[2])
    if kind == "write":
        write(path)
        return
    from dra_infra import ClusterTarget, validate

    objects = [json.loads(line) for line in path.open()]
    started = time.perf_counter()
    found = validate(objects, ClusterTarget(kubernetes="1.37"))
    seconds = time.perf_counter() - started
    assert kind in ("warm", "distinct")
    assert len(found) > NUMBER // 20
    print(seconds)


if __name__ == "__main__":
    main()
