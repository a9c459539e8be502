from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_infra.plugin.publishing.publisher import Publisher
from tests.unit.plugin.api_server import ApiServer, serving
from tests.unit.plugin.publishing import (
    DRIVER,
    NODE,
    PATIENCE,
    BackEnd,
    Remembering,
    counters,
    device,
    inventory,
    names_of,
    pool_of,
    wait_until,
)

MANY = [f"gpu-{number}" for number in range(130)]


class Bench:
    """A server, a back end, and publishers that end with the test."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.back_end = BackEnd(inventory(MANY))
        self.observer = Remembering()
        self.running: list[Publisher] = []
        self.server.store.create("nodes", "", {"metadata": {"name": NODE, "uid": "node-uid"}})

    def start(self, back_end: BackEnd | None = None, lock: Path | None = None) -> Publisher:
        publisher = Publisher(
            self.server.api(),
            back_end=back_end or self.back_end,
            node=NODE,
            observer=self.observer,
            lock=lock,
        )
        publisher.start()
        self.running.append(publisher)
        return publisher

    def published(self) -> Publisher:
        publisher = self.start()
        assert publisher.wait(PATIENCE)
        return publisher

    def slices(self) -> list[dict]:
        return self.server.store.list("resourceslices")

    def pool(self) -> list[str] | None:
        return names_of(pool_of(self.slices()))

    def generations(self) -> list[int]:
        return [each["spec"]["pool"]["generation"] for each in self.slices()]

    def wait_pool(self, names: list[str]) -> None:
        wait_until(lambda: self.pool() == names)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with serving() as server:
        made = Bench(server)
        yield made
        for publisher in made.running:
            publisher.stop()


def test_the_devices_are_published_in_order_as_one_whole_pool_of_the_node(bench: Bench) -> None:
    bench.published()
    assert bench.pool() == MANY
    assert bench.generations() == [1, 1]
    for number, each in enumerate(bench.slices()):
        assert each["metadata"]["name"].startswith(f"0000{number}-{DRIVER}-{NODE}-")
        [owner] = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Node", NODE, "node-uid")
        assert each["spec"]["nodeName"] == each["spec"]["pool"]["name"] == NODE
    assert bench.observer.publishings == [(2, 1, None)]
    assert bench.observer.states == {"healthy": 130, "unhealthy": 0, "unknown": 0}


def test_a_restart_with_the_same_devices_writes_nothing(bench: Bench) -> None:
    bench.back_end.offered = inventory([device("gpu-0", taint="sick"), *MANY[1:]])
    bench.published().stop()
    before = bench.slices()
    assert len(before) == 3
    written = len(bench.server.writes())
    bench.published()
    assert bench.slices() == before
    assert len(bench.server.writes()) == written


def test_a_change_raises_the_generation_of_all_slices(bench: Bench) -> None:
    bench.published()
    bench.back_end.change(inventory(["gpu-new", *MANY[1:], "gpu-130"]))
    bench.wait_pool(["gpu-new", *MANY[1:], "gpu-130"])
    assert bench.generations() == [2, 2]


def test_a_change_of_one_slice_of_several_is_one_write(bench: Bench) -> None:
    bench.published()
    written = len(bench.server.writes())
    bench.back_end.change(inventory([*MANY[:-1], "gpu-other"]))
    bench.wait_pool([*MANY[:-1], "gpu-other"])
    assert bench.generations() == [1, 1]
    assert len(bench.server.writes()) == written + 1


def test_a_pool_that_shrinks_loses_its_last_slices(bench: Bench) -> None:
    bench.published()
    bench.back_end.change(inventory(MANY[:3]))
    bench.wait_pool(MANY[:3])
    wait_until(lambda: bench.generations() == [2])
    bench.back_end.change(inventory([]))
    wait_until(lambda: bench.slices() == [])


def test_what_the_kubelet_deletes_is_published_again_at_once_and_is_no_change(bench: Bench) -> None:
    bench.published()
    for each in bench.slices():
        bench.server.store.delete("resourceslices", "", each["metadata"]["name"])
    bench.wait_pool(MANY)
    assert bench.generations() == [1, 1]
    bench.server.store.delete("resourceslices", "", bench.slices()[1]["metadata"]["name"])
    bench.wait_pool(MANY)
    assert bench.generations() == [1, 1]


def test_what_somebody_edits_is_put_right(bench: Bench) -> None:
    bench.published()
    name = bench.slices()[0]["metadata"]["name"]
    bench.server.store.change("resourceslices", "", name, lambda item: item["spec"]["devices"].pop())
    bench.wait_pool(MANY)
    bench.server.store.change(
        "resourceslices", "", name, lambda item: item["spec"]["pool"].update(generation=2**62)
    )
    wait_until(lambda: bench.pool() == MANY and max(bench.generations()) < 100)


def test_owners_and_second_slices_of_a_place_are_put_right(bench: Bench) -> None:
    bench.published()
    first = bench.slices()[0]
    bench.server.store.change(
        "resourceslices", "", first["metadata"]["name"], lambda item: item["metadata"].pop("ownerReferences")
    )
    wait_until(lambda: all("ownerReferences" in each["metadata"] for each in bench.slices()))
    copy = {key: value for key, value in first["metadata"].items() if key not in ("uid", "resourceVersion")}
    bench.server.store.create("resourceslices", "", {**first, "metadata": {**copy, "name": "00000-copy"}})
    wait_until(lambda: len(bench.slices()) == 2)
    assert bench.pool() == MANY


def test_since_when_a_taint_is_there_stays(bench: Bench) -> None:
    def times() -> dict[str, str]:
        found = [each for one in bench.slices() for each in one["spec"]["devices"] if "taints" in each]
        return {each["name"]: each["taints"][0]["timeAdded"] for each in found}

    bench.back_end.offered = inventory(["gpu-0", device("gpu-1", taint="sick")])
    bench.published()
    before = times()
    bench.back_end.change(inventory([device("gpu-0", taint="sick"), device("gpu-1", taint="sick"), "gpu-2"]))
    wait_until(lambda: len(times()) == 2)
    assert times()["gpu-1"] == before["gpu-1"] != times()["gpu-0"]
    after = times()
    for each in bench.slices():
        bench.server.store.delete("resourceslices", "", each["metadata"]["name"])
    wait_until(lambda: times() == after)


def test_fields_that_the_server_drops_are_told_and_do_not_make_it_write_again(bench: Bench) -> None:
    bench.server.store.dropped = {"bindingConditions"}
    odd = device("gpu-0").changed({"binding_conditions": ["example.com/ready"]})
    bench.back_end.offered = inventory([odd])
    bench.published()
    problem = bench.observer.wait_for_code("slice-fields-dropped")
    assert problem.severity == "warning"
    assert "bindingConditions" in problem.message
    assert "DRADeviceBindingConditions" in problem.hint
    written = len(bench.server.writes())
    bench.published()
    bench.running[0].publish()
    wait_until(lambda: len(bench.observer.publishings) >= 3)
    assert len(bench.server.writes()) == written


def test_parts_of_a_gpu_are_not_published_where_their_counters_are_dropped(bench: Bench) -> None:
    bench.server.store.dropped = {"sharedCounters", "consumesCounters"}
    parts = [device(f"mig-{number}", drawn="gpu-0") for number in range(3)]
    bench.back_end.offered = inventory([*parts, "gpu-1"], [counters("gpu-0")])
    bench.published()
    problem = bench.observer.wait_for_code("slice-fields-dropped")
    assert problem.severity == "error"
    assert "DRAPartitionableDevices" in problem.hint
    assert bench.pool() == ["gpu-1"]
    seen = [item for _, plural, _, item in bench.server.store.events if plural == "resourceslices"]
    assert not [
        one for item in seen for one in item["spec"].get("devices", ()) if one["name"].startswith("mig")
    ]


def test_a_sick_device_is_not_published_where_its_taint_is_dropped(bench: Bench) -> None:
    bench.server.store.dropped = {"taints"}
    bench.back_end.offered = inventory([device("gpu-0", taint="sick"), "gpu-1"])
    bench.published()
    assert bench.pool() == ["gpu-1"]


def test_a_server_that_comes_back_with_a_gate_gets_what_it_dropped_before(bench: Bench) -> None:
    def watches() -> int:
        return sum("watch" in query for _, _, query in bench.server.asked)

    bench.server.store.dropped = {"bindingConditions"}
    bench.back_end.offered = inventory(
        [device("gpu-0").changed({"binding_conditions": ["example.com/ready"]})]
    )
    bench.published()
    wait_until(watches)
    # It is away for a moment: requests that are tried again never fail.
    bench.server.refuse = lambda _method, _path: 503
    before = watches()
    for connection in list(bench.server.open):
        connection.shutdown(2)
    wait_until(lambda: watches() > before)
    bench.server.store.dropped = set()
    bench.server.refuse = lambda _method, _path: None
    wait_until(lambda: "bindingConditions" in bench.slices()[0]["spec"]["devices"][0])
    assert not [error for _, _, error in bench.observer.publishings if error]


def test_a_pool_of_which_a_slice_is_refused_is_not_begun(bench: Bench) -> None:
    bench.published()
    bench.back_end.change(inventory(["changed", *MANY[1:-1], "refused"]))
    bench.observer.wait_for_code("api-refused")
    assert bench.pool() == MANY
    bench.back_end.change(inventory(["gpu-0", "gpu-0"]))
    bench.observer.wait_for_code("pool-not-usable")
    assert bench.pool() == MANY


def test_a_driver_of_the_same_name_is_left_alone_until_it_is_gone(bench: Bench) -> None:
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": [{"name": "theirs"}]}
    bench.server.store.create("resourceslices", "", {"metadata": {"name": "foreign"}, "spec": spec})
    other = {"metadata": {"name": "other"}, "spec": {**spec, "driver": "nic.example.com"}}
    elsewhere = {"metadata": {"name": "elsewhere"}, "spec": {**spec, "nodeName": "node-2"}}
    for each in (other, elsewhere):
        bench.server.store.create("resourceslices", "", each)
    publisher = bench.start()
    problem = bench.observer.wait_for_code("driver-name-taken")
    assert "foreign" in problem.message
    assert bench.server.writes() == []
    bench.server.store.delete("resourceslices", "", "foreign")
    assert publisher.wait(PATIENCE)
    publisher.withdraw()
    assert [each["metadata"]["name"] for each in bench.slices()] == ["elsewhere", "other"]


def test_a_node_that_is_not_there_is_told(bench: Bench) -> None:
    bench.server.store.delete("nodes", "", NODE)
    publisher = bench.start()
    assert bench.observer.wait_for_code("node-not-known").path == "--node-name"
    bench.server.store.create("nodes", "", {"metadata": {"name": NODE, "uid": "new-uid"}})
    assert publisher.wait(PATIENCE)


def test_stopping_leaves_the_slices_and_withdrawing_deletes_them(bench: Bench) -> None:
    publisher = bench.published()
    publisher.stop()
    assert bench.pool() == MANY
    publisher.withdraw()
    assert bench.slices() == []


def test_an_api_server_that_is_away_is_found_again_with_all_that_changed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dra_infra.plugin.api_server.client._BUDGET", 1.0)
    publisher = bench.published()
    store, port = bench.server.store, bench.server.port
    with bench.server.hold_port():
        bench.server.stop()
        for each in store.list("resourceslices"):
            store.delete("resourceslices", "", each["metadata"]["name"])
        bench.back_end.change(inventory(["gpu-0"]))
        bench.observer.wait_for_code("api-unreachable")
        with serving(store, port):
            wait_until(lambda: names_of(pool_of(store.list("resourceslices"))) == ["gpu-0"])
            publisher.stop()


def test_a_watch_whose_beginning_is_too_old_begins_anew(bench: Bench) -> None:
    bench.published()
    store = bench.server.store
    wait_until(lambda: [query for _, _, query in bench.server.asked if query.get("watch")])
    # The history is gone, and then the connection.
    store.create("nodes", "", {"metadata": {"name": "node-9"}})
    store.forget()
    for connection in list(bench.server.open):
        connection.shutdown(2)
    store.delete("resourceslices", "", bench.slices()[0]["metadata"]["name"])
    bench.wait_pool(MANY)


def test_of_two_instances_the_older_one_publishes_until_it_ends(bench: Bench, tmp_path: Path) -> None:
    lock = tmp_path / "publisher.lock"
    older = bench.start(lock=lock)
    assert older.wait(PATIENCE)
    newer = bench.start(BackEnd(inventory(["newer"])), lock=lock)
    bench.back_end.change(inventory(["older"]))
    bench.wait_pool(["older"])
    assert not newer.wait(0.1)
    wait_until(lambda: newer.stands_by)
    assert not older.stands_by
    older.stop()
    assert newer.wait(PATIENCE)
    assert not newer.stands_by
    assert bench.pool() == ["newer"]


def test_who_changes_slices_back_each_time_is_not_answered_as_fast(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dra_infra.plugin.publishing.publisher._SLOW", 60.0)
    bench.back_end.offered = inventory(["gpu-0"])
    bench.published()
    done = threading.Event()

    def fight() -> None:
        while not done.wait(0.02):
            for each in bench.slices():
                bench.server.store.change(
                    "resourceslices",
                    "",
                    each["metadata"]["name"],
                    lambda item: item["spec"].update(devices=[]),
                )

    thread = threading.Thread(target=fight)
    thread.start()
    wait_until(lambda: len(bench.server.writes()) >= 5)
    done.wait(1.0)
    done.set()
    thread.join()
    assert len(bench.server.writes()) <= 6


def test_a_back_end_that_breaks_does_not_end_publishing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(bench.back_end, "inventory", lambda: 1 / 0)
        publisher = bench.start()
        assert "ZeroDivisionError" in bench.observer.wait_for_code("plugin-failed").message
    assert publisher.wait(PATIENCE)
    assert bench.pool() == MANY
