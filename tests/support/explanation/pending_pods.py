"""Pending pods among the objects of a small cluster: what `explain` says of them, and their objects with an edit made.

An edit is made as a person makes it: by the printed line, at the printed place.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dra_infra.answers.asking import ask_files
from dra_infra.cli import explain
from tests.support.allocator.cases import Case, defaults_of, make_case
from tests.support.allocator.known import a_slice, selecting

Object = dict[str, Any]
GPU: Final = "gpu.nvidia.com"
ROOT: Final = "resource.kubernetes.io/pcieRoot"
API: Final = "resource.k8s.io/v1"
SUBJECT: Final = "pod/train"
MINOR: Final = "1.37"


@dataclass(frozen=True, kw_only=True)
class PendingPod:
    """A row of the table.

    Args:
        name: Which causes meet.
        objects: All objects of the cluster, the pod `ml/train` among them.
        says: What the answer names, each a piece of its text.
        edit: Kind of the change that is offered and a piece of its printed lines; None where none is.
        is_deep: Whether the change is one of two edits.
        planned: Kinds of objects that are not in the cluster yet, but in files beside it.
        verdict: Of the answer.
        is_judged: Whether Kubernetes' allocator gives the answer, and not the API server or the time.
        mended: Of two causes, the objects with the one and with the other put right.
        whole: The objects with both put right.
    """

    name: str
    objects: Sequence[Object] = field(repr=False)
    says: tuple[str, ...]
    edit: tuple[str, ...] | None
    is_deep: bool = False
    planned: tuple[str, ...] = ()
    verdict: str = "does-not-fit"
    is_judged: bool = True
    mended: Sequence[Sequence[Object]] = field(default=(), repr=False)
    whole: Sequence[Object] = field(default=(), repr=False)


def a_node(
    name: str = "n0", *, cpu: str = "64", labels: Mapping[str, str] | None = None, **spec: Any
) -> Object:
    """A node with room for eight pods."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "256Gi", "pods": "8"}},
    }


def a_gpu(name: str, *, memory: str = "80Gi", product: str = "H100", root: str = "", **rest: Any) -> Object:
    """A whole GPU; its index is the number at the end of its name."""
    attributes = {
        "productName": {"string": product},
        "type": {"string": "gpu"},
        "index": {"int": int(name[-1])},
        **({ROOT: {"string": root}} if root else {}),
    }
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}, **rest}


def gpus(number: int, **rest: Any) -> list[Object]:
    """GPUs `gpu-0` and so on."""
    return [a_gpu(f"gpu-{at}", **rest) for at in range(number)]


def slice_of(*devices: Object, node: str = "n0", driver: str = GPU, **rest: Any) -> Object:
    """The only slice of the pool of a node, unless *rest* says otherwise."""
    rest = {"name": f"{node}-{driver}", "pool": node, **rest}
    where = {} if rest.keys() & {"allNodes", "nodeSelector"} else {"nodeName": node}
    return {"apiVersion": API, "kind": "ResourceSlice", **a_slice(*devices, driver=driver, **where, **rest)}


def a_class(name: str = "gpu", test: str = "", driver: str = GPU) -> Object:
    """A class for the devices of a driver."""
    text = f"device.driver == '{driver}'" + (f" && {test}" if test else "")
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selecting(text)},
    }


def asking(*tests: str, count: int = 1, of: str = "gpu", **rest: Any) -> Object:
    """A request for devices of a class."""
    exactly = {"deviceClassName": of, "allocationMode": "ExactCount", "count": count, **rest}
    if tests:
        exactly["selectors"] = [each for test in tests for each in selecting(test)]
    return exactly


def a_claim(*requests: Object, name: str = "gpus", namespace: str = "ml", **devices: Any) -> Object:
    """A claim that has no devices yet."""
    written = [{"name": f"r{at}", "exactly": each} for at, each in enumerate(requests)]
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"claim-{name}"},
        "spec": {"devices": {"requests": written, **devices}},
    }


def a_pod(
    *claims: str, name: str = "train", templates: Sequence[str] = (), cpu: str = "1", **spec: Any
) -> Object:
    """A pod that uses claims by name, and templates."""
    entries = [
        *({"name": f"c{at}", "resourceClaimName": each} for at, each in enumerate(claims)),
        *({"name": f"t{at}", "resourceClaimTemplateName": each} for at, each in enumerate(templates)),
    ]
    container = {
        "name": "main",
        "image": "registry.invalid/main:1",
        "resources": {"requests": {"cpu": cpu}, "claims": [{"name": each["name"]} for each in entries]},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "uid": f"pod-{name}"},
        "spec": {"containers": [container], "resourceClaims": entries, **spec},
        "status": {"phase": "Pending"},
    }


def running(
    name: str, *devices: str, node: str = "n0", amount: Mapping[str, str] | None = None, **spec: Any
) -> list[Object]:
    """A pod that runs on a node, and its claim with devices there; of shares with what it takes of each."""
    pod = a_pod(f"{name}-gpus", name=name, nodeName=node, **spec)
    claim = a_claim(asking(count=len(devices)), name=f"{name}-gpus")
    share = {"shareID": "a-share", "consumedCapacity": dict(amount)} if amount else {}
    claim["status"] = {
        "allocation": {
            "devices": {
                "results": [
                    {"request": "r0", "driver": GPU, "pool": node, "device": each, **share}
                    for each in devices
                ]
            },
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
                ]
            },
        },
        "reservedFor": [{"resource": "pods", "name": name, "uid": f"pod-{name}"}],
    }
    pod["status"]["phase"] = "Running"
    return [pod, claim]


def _written(row: PendingPod, objects: Iterable[Object], folder: Path) -> dict[str, Any]:
    """The arguments of the command, with the files that it reads."""
    folder.mkdir(parents=True, exist_ok=True)
    there = [each for each in objects if each["kind"] not in row.planned]
    planned = [each for each in objects if each["kind"] in row.planned]
    snapshot = folder / "snapshot.json"
    program = folder / "program.json"
    snapshot.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": there}))
    if planned:
        program.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": planned}))
    return {
        "path": program if planned else None,
        "snapshot": snapshot,
        "namespace": "ml",
        "fleet": None,
        "kubernetes": MINOR,
        "gates": {},
        "stack": None,
        "config": {},
        "kinds": None,
        "timeout": 60.0,
    }


def answer(row: PendingPod, objects: Iterable[Object], folder: Path, *, as_json: bool) -> str:
    """What the command prints of the pod among *objects*."""
    with contextlib.redirect_stdout(io.StringIO()) as told:
        explain.run(
            SUBJECT,
            **_written(row, objects, folder),
            kubeconfig=None,
            context=None,
            is_deep=row.is_deep,
            request_timeout=1.0,
            form="json" if as_json else "text",
        )
    return told.getvalue()


def find_case(row: PendingPod, objects: Sequence[Object], folder: Path) -> Case | None:
    """What the scheduler asks its allocator for the pod; None where a claim of it is not there."""
    named = {each["metadata"]["name"]: each for each in objects if each["kind"] == "ResourceClaim"}
    (pod,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == ("Pod", "train")]
    entries = [each.get("resourceClaimName") for each in pod["spec"]["resourceClaims"]]
    if not named.keys() >= set(entries) or pod["spec"].get("schedulingGates"):
        return None
    asked = ask_files(SUBJECT, **_written(row, objects, folder)).subject_question.question
    eligible = {node.name for node in asked.eligible} if asked is not None else set()
    allocated: dict[str, list[Object]] = {"devices": [], "shares": [], "capacity": []}
    for claim in named.values():
        for each in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ()):
            device = {key: each[key] for key in ("driver", "pool", "device")}
            allocated["shares" if "shareID" in each else "devices"].append(device)
            if "consumedCapacity" in each:
                allocated["capacity"].append({**device, "capacity": each["consumedCapacity"]})
    return make_case(
        MINOR,
        gates=defaults_of(MINOR),
        slices=[each for each in objects if each["kind"] == "ResourceSlice"],
        classes=[each for each in objects if each["kind"] == "DeviceClass"],
        claims=[named[each] for each in entries if "status" not in named[each]],
        nodes=[each for each in objects if each["kind"] == "Node" and each["metadata"]["name"] in eligible],
        allocated={key: found for key, found in allocated.items() if found},
    )


_WRITTEN_BY_HAND: Final = re.compile(r"\((?!delete)|\d+ more of the kind")
"""Lines that leave something to the person who writes."""


def is_written(suggestion: Mapping[str, Any]) -> bool:
    """Whether all lines of a change can be written as they are printed."""
    return not any(_WRITTEN_BY_HAND.match(each["line"]) for each in suggestion["changes"])


def with_change(objects: Iterable[Object], suggestion: Mapping[str, Any]) -> list[Object]:
    """The objects once a suggestion is carried out, line by line."""
    changed = copy.deepcopy(list(objects))
    for change in suggestion["changes"]:
        line = change["line"]
        if line.startswith("kubectl "):
            _command(changed, line)
            continue
        owner, _, path = change["where"].rpartition(": ")
        kind, _, name = owner.partition(" ")
        name = name.rpartition("/")[2]
        if owner == "the pod":
            kind = "Pod"
            name = SUBJECT.partition("/")[2]
        (target,) = [each for each in changed if (each["kind"], each["metadata"]["name"]) == (kind, name)]
        _write(target, re.findall(r"[^.\[\]]+|(?<=\[)\d+(?=\])", path), line)
    return [_without_gaps(each) for each in changed]


def _command(objects: list[Object], line: str) -> None:
    words = line.split()
    if words[1] == "uncordon":
        (node,) = [
            each for each in objects if each["kind"] == "Node" and each["metadata"]["name"] == words[2]
        ]
        node["spec"]["unschedulable"] = False
        return
    assert words[1] == "delete", line
    kind = {"pod": "Pod", "resourceclaim": "ResourceClaim"}[words[2]]
    name = words[-1]
    gone = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    assert gone, line
    for each in gone:
        objects.remove(each)
    # Its controller deallocates a claim that no pod is left to use.
    for each in objects:
        reserved = each.get("status", {}).get("reservedFor", [])
        if any(user["name"] == name for user in reserved):
            del each["status"]


def _write(target: Object, path: list[str], line: str) -> None:
    *above, last = path
    # Names of capacities and labels have dots and slashes of their own.
    if "nodeSelector" in above:
        at = above.index("nodeSelector")
        above, last = above[: at + 1], ".".join([*above[at + 1 :], last])
    place: Any = target
    for part in above:
        if part.isdigit():
            place = place[int(part)]
        elif part == "cel" and line.startswith("(delete"):
            break
        else:
            place = place.setdefault(part, {})
    if line.startswith("(delete"):
        _delete(target, path)
        return
    value = yaml.safe_load(line)
    if isinstance(value, list):
        place.setdefault(last, []).extend(value)
    elif isinstance(value, Mapping):
        place.update(value)
    else:
        pytest.fail(f"a line that is neither an entry nor a field: {line}")


def _delete(target: Object, path: list[str]) -> None:
    # A selector goes as a whole, and with it nothing of its own is left.
    path = path[: path.index("cel")] if "cel" in path else path
    if "nodeSelector" in path:
        at = path.index("nodeSelector")
        path = [*path[: at + 1], ".".join(path[at + 1 :])]
    place: Any = target
    for part in path[:-1]:
        place = place[int(part)] if part.isdigit() else place[part]
    if path[-1].isdigit():
        # Numbers of others stay as they are, for there may be another line.
        place[int(path[-1])] = None
    else:
        del place[path[-1]]


def _without_gaps(value: Any) -> Any:
    """A value without the entries of lists that were deleted."""
    if isinstance(value, Mapping):
        return {key: _without_gaps(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_gaps(item) for item in value if item is not None]
    return value
