from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from dra_infra.plugin.api_server.binding import Binder, Bindings
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.back_ends.sim import SimulatedBackEnd
from dra_infra.plugin.claims import ClaimReference
from tests.unit.plugin.api_server import ApiServer, serving
from tests.unit.plugin.publishing import DRIVER, NODE, BackEnd, Remembering, device, wait_until


@dataclass(frozen=True)
class Said:
    state: Literal["met", "failed"]
    message: str = ""


class Waiting(BackEnd):
    """gpu-0 has conditions."""

    def __init__(self) -> None:
        odd = device("gpu-0").changed(
            {
                "binding_conditions": ["example.com/ready"],
                "binding_failure_conditions": ["example.com/failed"],
            }
        )
        super().__init__(Inventory(devices=(odd, device("gpu-1"))))
        self.said: dict[tuple[str, str], Said] = {}

    def binding(self, claim: ClaimReference, device: str) -> Said | None:
        return self.said.get((claim.name, device))

    def say(self, name: str, said: Said) -> None:
        self.said[name, "gpu-0"] = said
        self.change(self.offered)


class Bench:
    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.back_end = Waiting()
        self.observer = Remembering()

    def binder(self) -> Binder:
        return Binder(
            self.server.api(),
            back_end=self.back_end,
            bindings=self.back_end,
            node=NODE,
            observer=self.observer,
        )

    def claim(self, name: str, pool: str = NODE, **more: Any) -> None:
        result = {
            "driver": DRIVER,
            "pool": pool,
            "device": "gpu-0",
            "request": "gpu",
            "bindingConditions": ["example.com/ready"],
            "bindingFailureConditions": ["example.com/failed"],
            **more,
        }
        status = {"allocation": {"devices": {"results": [result]}}}
        self.server.store.create("resourceclaims", "ml", {"metadata": {"name": name}, "status": status})

    def conditions(self, name: str) -> list[tuple[str, str, str]]:
        status = self.server.store.get("resourceclaims", "ml", name)["status"]
        return [
            (each["type"], each["status"], each["message"])
            for entry in status.get("devices", ())
            for each in entry["conditions"]
        ]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with serving() as server:
        yield Bench(server)


@pytest.fixture
def binder(bench: Bench) -> Iterator[Binder]:
    made = bench.binder()
    yield made
    made.stop()


def test_the_simulated_back_end_says_what_is_written() -> None:
    said: type[Bindings] = SimulatedBackEnd
    assert said


def test_conditions_are_written_when_the_back_end_says_so(bench: Bench, binder: Binder) -> None:
    bench.claim("early")
    bench.claim("elsewhere", pool="node-2")
    binder.start()
    wait_until(lambda: any(query.get("watch") for _, _, query in bench.server.asked))
    assert bench.conditions("early") == []
    bench.back_end.say("early", Said("met", "it is there"))
    wait_until(lambda: bench.conditions("early") == [("example.com/ready", "True", "it is there")])
    bench.back_end.said["late", "gpu-0"] = Said("failed", "no room")
    bench.claim("late")
    wait_until(lambda: bench.conditions("late") == [("example.com/failed", "True", "no room")])
    assert bench.conditions("elsewhere") == []


def test_what_is_written_is_not_written_again(bench: Bench, binder: Binder) -> None:
    bench.claim("a")
    bench.back_end.said["a", "gpu-0"] = Said("met")
    binder.start()
    wait_until(lambda: bench.conditions("a"))
    bench.back_end.say("b", Said("met"))
    bench.claim("b")
    wait_until(lambda: bench.conditions("b"))
    assert [each for each in bench.server.writes() if "/a/" in each] == [
        "PATCH /apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/a/status"
    ]


def test_the_claims_of_a_cluster_are_not_watched_for_devices_without_conditions(
    bench: Bench, binder: Binder
) -> None:
    offered = bench.back_end.offered
    bench.back_end.offered = Inventory(devices=(device("gpu-1"),))
    bench.claim("a")
    bench.back_end.said["a", "gpu-0"] = Said("met")
    binder.start()
    assert bench.server.asked == []
    bench.back_end.change(offered)
    wait_until(lambda: bench.conditions("a"))


def test_a_right_that_is_lacking_is_told_and_tried_again(bench: Bench, binder: Binder) -> None:
    bench.server.refuse = lambda method, _path: 403 if method == "PATCH" else None
    bench.claim("a")
    bench.back_end.said["a", "gpu-0"] = Said("met")
    binder.start()
    told = bench.observer.wait_for_code("api-forbidden")
    assert "ml/a status" in told.path
    assert 'resources: ["resourceclaims/status"], verbs: ["patch"]' in told.hint
    bench.server.refuse = lambda _method, _path: None
    wait_until(lambda: bench.conditions("a"))
