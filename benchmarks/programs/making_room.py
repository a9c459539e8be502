"""A snapshot of N nodes of eight GPUs with M pods, for `dra-infra make-room`: writes it to a file.

Pods of one or two GPUs, of 100 Deployments, lie where they were drawn. All nodes but few have some, and about half of all GPUs are free.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

from dra_infra.catalog import load_fleet
from tests.support.running_clusters import a_request, a_running_pod, a_template, a_workload

NODES, PODS = 500, 3_000
OWNERS = 100


def write(file: Path) -> None:
    """Write the snapshot, and the Job that wants room."""
    rng = random.Random(39)  # noqa: S311
    fleet = load_fleet(f"hgx-h100 x {NODES}")
    objects: list[dict[str, Any]] = [*fleet.to_manifests()]
    objects += [a_template(name, a_request(count)) for name, count in (("one", 1), ("two", 2), ("eight", 8))]
    sizes = ["two" if number % 5 == 0 else "one" for number in range(OWNERS)]
    objects += [
        a_workload("Deployment", f"d{number}", size, PODS // OWNERS) for number, size in enumerate(sizes)
    ]
    free = {node.name: rng.sample(range(8), 8) for node in fleet.nodes}
    names = sorted(free)
    for number in range(PODS):
        size = 2 if sizes[number % OWNERS] == "two" else 1
        node = rng.choice([name for name in rng.sample(names, 40) if len(free[name]) >= size])
        devices = [f"gpu-{free[node].pop()}" for _ in range(size)]
        template, owner = sizes[number % OWNERS], ("Deployment", f"d{number % OWNERS}")
        objects += a_running_pod(f"p{number}", template, node, devices, owner=owner)
    objects.append(a_workload("Job", "train", "eight", 18))
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
