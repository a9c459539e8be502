"""Replacements of the status of stored claims: `PUT .../status`."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from tests.e2e.parity import bases
from tests.e2e.parity.cases import ADMIN, PLAIN, Case, Object
from tests.e2e.parity.faults import break_some, sweep
from tests.e2e.parity.gate_sets import DEFAULT, NONE
from tests.e2e.parity.odd_values import Path
from tests.e2e.parity.row import Row
from tests.e2e.parity.server import Server

_DRAWN = {DEFAULT: 50}
_DRAWN_OTHERWISE = 20
_SWEEP_STEP = {DEFAULT: 40}
_SWEEP_STEP_OTHERWISE = 100


def cases(server: Server, seed: int) -> Iterator[Case]:
    """Statuses put in the place of none and of a stored one, in namespaces with and without admin access."""
    whole = _whole(server)
    step = _SWEEP_STEP.get(server.gate_set, _SWEEP_STEP_OTHERWISE)
    for name, namespace, before in (
        ("empty", ADMIN, None),
        ("plain", PLAIN, None),
        ("set", ADMIN, whole["status"]),
    ):
        old = _stored(server, {**whole, "status": before}, f"status-{name}", namespace)
        for fault, status in _named(whole["status"]).items():
            yield _case(old, status, f"{name} {fault}")
        for index in range(_DRAWN.get(server.gate_set, _DRAWN_OTHERWISE)):
            random = Random(f"status {name}/{seed}/{index}")  # noqa: S311 - reproducible, not secret.
            faults = random.choice((1, 1, 1, 2, 3))
            broken = break_some(random, {"status": whole["status"]}, faults, _may_break)
            yield _case(old, broken.get("status"), f"{name}/{seed}/{index}")
        for index, (fault, broken) in enumerate(sweep({"status": whole["status"]}, _may_break)):
            if index % step == int(server.minor[-1]) % step:
                yield _case(old, broken().get("status"), f"sweep {name} {fault}")

    if server.gate_set == DEFAULT:
        yield from _of_deleted(server, whole)


def _of_deleted(server: Server, whole: Object) -> Iterator[Case]:
    """Statuses of a claim that is deleted and held by a finalizer."""
    status = {**whole["status"], "reservedFor": whole["status"]["reservedFor"][:1]}
    old = _stored(
        server, {**whole, "status": status}, "status-deleted", ADMIN, finalizers=["example.com/keep"]
    )
    old = Case(id=old.id, object=server.delete(old), namespace=ADMIN)
    yield _case(old, status, "deleted, same consumers")
    yield _case(old, {**status, "reservedFor": []}, "deleted, no consumers")
    yield _case(old, whole["status"], "deleted, another consumer")


def of_row(server: Server, row: Row, name: str) -> Case:
    """The question of a row about the status of its claim."""
    old = _stored(server, {**row.object, "status": row.stored_status}, name, row.namespace)
    return _case(old, row.status, row.id)


def _may_break(path: Path) -> bool:
    return path[0] == "status" and len(path) > 1


def _whole(server: Server) -> Object:
    built = bases.allocated_claim()
    if server.gate_set == NONE:
        # Where `firstAvailable` may be dropped, a request stands for it.
        plain = bases.claim(derived=False, distinct=False, choices=False)
        built["spec"] = plain["spec"]
        built["status"]["allocation"]["devices"]["results"][1]["request"] = "nic"
    if server.minor >= "1.37":
        built["status"]["allocation"]["devices"]["results"][0]["skipNodeOperations"] = ["*"]
    return built


def _stored(server: Server, claim: Object, name: str, namespace: str, **metadata: Any) -> Case:
    built = copy.deepcopy({key: value for key, value in claim.items() if key != "status"})
    built["metadata"] = {"name": name, **metadata}
    if namespace == PLAIN:
        for request in built["spec"]["devices"].get("requests", ()):
            request.get("exactly", {}).pop("adminAccess", None)
    old = Case(id=name, object=built, namespace=namespace)
    old = Case(id=name, object=server.store(old), namespace=namespace)
    if claim.get("status"):
        old = Case(id=name, object=server.store(_case(old, claim["status"], "first")), namespace=namespace)
    return old


def _case(old: Case, status: Any, name: str) -> Case:
    changed = {key: value for key, value in old.object.items() if key != "status"}
    if status is not None:
        changed["status"] = copy.deepcopy(status)
    return Case(
        id=f"status {name}", object=changed, namespace=old.namespace, old=old.object, subresource="status"
    )


def _named(status: Object) -> Mapping[str, Any]:
    allocation, devices = status["allocation"], status["allocation"]["devices"]
    without_admin = [
        {key: value for key, value in each.items() if key != "adminAccess"} for each in devices["results"]
    ]
    return {
        "whole": status,
        "cleared": {},
        "absent": None,
        "no consumers": {**status, "reservedFor": []},
        "no devices": {**status, "devices": []},
        "deallocated": {"devices": status["devices"]},
        "reserved alone": {"reservedFor": status["reservedFor"]},
        "other time": {**status, "allocation": {**allocation, "allocationTimestamp": "2020-01-01T00:00:00Z"}},
        "no nodes": {
            **status,
            "allocation": {key: value for key, value in allocation.items() if key != "nodeSelector"},
        },
        "one result": {
            **status,
            "allocation": {**allocation, "devices": {**devices, "results": devices["results"][:1]}},
        },
        "no admin access": {
            **status,
            "allocation": {**allocation, "devices": {**devices, "results": without_admin}},
        },
        "device twice": {**status, "devices": status["devices"] * 2},
        "consumer twice": {**status, "reservedFor": status["reservedFor"][:1] * 2},
    }
