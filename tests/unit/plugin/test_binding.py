from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pytest

from dra_infra.plugin.api_server.binding import Binder, Bindings
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.back_ends.sim import SimulatedBackEnd
from dra_infra.plugin.claims import ClaimReference
from tests.support.plugin.api_server import ApiServer, serving
from tests.support.plugin.publishing import DRIVER, NODE, BackEnd, Remembering, device, wait_until


@dataclass(frozen=True)
class Said:
    state: Literal["met", "failed"]
    message: str = ""


class Waiting(BackEnd):
    """Two devices with conditions."""

    def __init__(self) -> None:
        odd = device("gpu-0").changed(
            {
                "binding_conditions": ["example.com/ready"],
                "binding_failure_conditions": ["example.com/failed"],
            }
        )
        other = odd.changed({"name": "gpu-1"})
        super().__init__(Inventory(devices=(odd, other)))
        self.said: dict[tuple[str, str], Said] = {}

    def binding(self, claim: ClaimReference, device: str) -> Said | None:
        return self.said.get((claim.name, device))

    def say(self, name: str, said: Said, device: str = "gpu-0") -> None:
        self.said[name, device] = said
        self.change(self.offered)


class Bench:
    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.back_end = Waiting()
        self.observer = Remembering()

    def binder(self, back_end: Waiting | None = None, **options: Any) -> Binder:
        return Binder(
            self.server.api(),
            back_end=back_end or self.back_end,
            bindings=back_end or self.back_end,
            node=NODE,
            observer=self.observer,
            **options,
        )

    def claim(self, name: str, pool: str = NODE, devices: Sequence[str] = ("gpu-0",)) -> None:
        results = [
            {
                "driver": DRIVER,
                "pool": pool,
                "device": each,
                "request": "gpu",
                "bindingConditions": ["example.com/ready"],
                "bindingFailureConditions": ["example.com/failed"],
            }
            for each in devices
        ]
        status = {"allocation": {"devices": {"results": results}}}
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


def test_a_server_that_asks_for_time_gets_it_before_the_next_write(bench: Bench) -> None:
    pauses: list[float] = []

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        bench.server.refuse = lambda _method, _path: None
        return False

    bench.server.refuse = lambda method, _path: 429 if method == "PATCH" else None
    bench.server.retry_after = "20"
    bench.claim("a")
    bench.back_end.said["a", "gpu-0"] = Said("met")
    binder = bench.binder(wait=wait)
    binder.start()
    wait_until(lambda: bench.conditions("a"))
    binder.stop()
    [pause] = pauses
    assert 20.0 < pause <= 21.0


def test_what_the_watch_tells_while_an_older_state_is_written_is_not_lost(
    bench: Bench, binder: Binder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pod was given another device before the answer to the write came: the next write is about that one."""
    store = bench.server.store
    apply = store.apply_status

    def answer_late(plural: str, namespace: str, name: str, item: Any) -> Any:
        written = apply(plural, namespace, name, item)
        [result] = written["status"]["allocation"]["devices"]["results"]
        if result["device"] == "gpu-0":
            store.change(
                plural,
                namespace,
                name,
                lambda found: found["status"]["allocation"]["devices"].update(
                    results=[{**result, "device": "gpu-1"}]
                ),
            )
            # Known here already when the answer comes.
            wait_until(lambda: "gpu-1" in str(binder._claims))
        return written

    monkeypatch.setattr(store, "apply_status", answer_late)
    bench.claim("a")
    bench.back_end.said["a", "gpu-0"] = Said("met", "first")
    bench.back_end.said["a", "gpu-1"] = Said("met", "second")
    binder.start()
    wait_until(lambda: ("example.com/ready", "True", "second") in bench.conditions("a"))


class Race:
    """Two instances of a rolling update, whose first writes come in the same moment."""

    def __init__(self, bench: Bench, ending: ExitStack) -> None:
        self.bench = bench
        self.back_ends = (Waiting(), Waiting())
        self.together = threading.Barrier(2, timeout=60)
        self.writes = itertools.count()
        bench.server.refuse = self.hold
        self.binders = [bench.binder(each) for each in self.back_ends]
        for each in self.binders:
            ending.callback(each.stop)

    def hold(self, method: str, _path: str) -> None:
        if method == "PATCH" and next(self.writes) < 2:
            self.together.wait()

    def start(self) -> None:
        for each in self.binders:
            each.start()

    def patches(self, name: str) -> int:
        return sum(f"/{name}/" in each for each in self.bench.server.writes())


@pytest.fixture
def race(bench: Bench) -> Iterator[Race]:
    with ExitStack() as ending:
        yield Race(bench, ending)


def test_two_instances_that_write_at_once_do_not_take_back_what_the_other_one_said(
    bench: Bench, race: Race
) -> None:
    bench.claim("a", devices=("gpu-0", "gpu-1"))
    older, newer = race.back_ends
    older.say("a", Said("met", "older"), "gpu-0")
    newer.say("a", Said("met", "newer"), "gpu-1")
    race.start()
    both = [("example.com/ready", "True", "newer"), ("example.com/ready", "True", "older")]
    wait_until(lambda: sorted(bench.conditions("a")) == both)
    # One of them was refused and wrote again; nobody has to write after that.
    for each in race.back_ends:
        each.say("b", Said("met"))
    bench.claim("b")
    wait_until(lambda: bench.conditions("b"))
    assert sorted(bench.conditions("a")) == both
    assert race.patches("a") == 3
    assert bench.observer.problems == []


def test_of_two_instances_that_think_otherwise_of_a_device_the_first_one_counts(
    bench: Bench, race: Race
) -> None:
    bench.claim("a")
    older, newer = race.back_ends
    older.say("a", Said("met"))
    newer.say("a", Said("failed"))
    race.start()
    wait_until(lambda: bench.conditions("a"))
    before = bench.conditions("a")
    assert len(before) == 1
    for number, each in enumerate(race.back_ends):
        each.say(f"late-{number}", Said("met"))
        bench.claim(f"late-{number}")
        wait_until(partial(bench.conditions, f"late-{number}"))
    assert bench.conditions("a") == before
    assert race.patches("a") == 2
    assert bench.observer.problems == []


def test_a_claim_that_is_gone_or_another_one_by_now_is_forgotten(bench: Bench, binder: Binder) -> None:
    bench.claim("a")
    anew = threading.Event()

    def gone(method: str, path: str) -> None:
        if method == "PATCH" and "/a/" in path and not anew.is_set():
            bench.server.store.delete("resourceclaims", "ml", "a")
            bench.claim("a")
            anew.set()

    bench.server.refuse = gone
    bench.back_end.said["a", "gpu-0"] = Said("met")
    binder.start()
    assert anew.wait(60)
    wait_until(lambda: bench.conditions("a"))
    assert bench.observer.problems == []


def test_a_change_by_others_that_no_watch_tells_does_not_keep_a_claim_from_being_written(
    bench: Bench, binder: Binder
) -> None:
    bench.claim("a")
    binder.start()
    wait_until(lambda: any(query.get("watch") for _, _, query in bench.server.asked))
    bench.server.store.objects["resourceclaims", "ml", "a"]["metadata"]["resourceVersion"] = "99999"
    bench.back_end.say("a", Said("met"))
    wait_until(lambda: bench.conditions("a"))
