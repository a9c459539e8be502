from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_infra.kubernetes.api import DeviceTaint
from dra_infra.plugin.publishing.publisher import Publisher
from tests.support.plugin.api_server import ApiServer, RefusalError, serving
from tests.support.plugin.publishing import (
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

    def start(
        self,
        back_end: BackEnd | None = None,
        on_name_taken: Callable[[bool], None] | None = None,
        **options: Any,
    ) -> Publisher:
        publisher = Publisher(
            self.server.api(),
            back_end=back_end or self.back_end,
            node=NODE,
            observer=self.observer,
            **options,
        )
        publisher.start(on_name_taken=on_name_taken)
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


def test_a_pool_that_has_nothing_any_more_is_whole_all_the_time_and_is_no_new_one_later(bench: Bench) -> None:
    bench.published()
    events = len(bench.server.store.events)
    bench.back_end.change(inventory([]))
    wait_until(lambda: [each["spec"].get("devices", []) for each in bench.slices()] == [[]])
    # The first write is the pool as it is now; what goes then is of the generation before.
    first, *rest = [(each, item) for _, _, each, item in bench.server.store.events[events:]]
    assert (first[0], [each for each, _ in rest]) == ("MODIFIED", ["DELETED"])
    assert pool_of([first[1], rest[0][1]]) == []
    bench.back_end.change(inventory(["gpu-0"]))
    bench.wait_pool(["gpu-0"])
    assert bench.generations() == [3]


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
    # A watch has begun when what it tells is acted upon; one that ends before that begins with a list.
    told = len(bench.observer.publishings)
    bench.server.store.delete("resourceslices", "", bench.slices()[0]["metadata"]["name"])
    bench.wait_pool(["gpu-0"])
    # The answer to a write has come, too: one that is cut is a failure, for it is not known what became of it.
    wait_until(lambda: len(bench.observer.publishings) > told)
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
    bench.back_end.change(inventory([*MANY, "refused"]))
    bench.observer.wait_for_code("api-refused")
    bench.back_end.change(inventory([*MANY, *MANY]))
    bench.observer.wait_for_code("pool-not-usable")
    assert bench.pool() == MANY
    assert bench.generations() == [1, 1]
    assert bench.observer.problems == []


def test_devices_that_are_gone_are_taken_out_while_the_new_ones_are_refused(bench: Bench) -> None:
    bench.published()
    bench.back_end.change(inventory(["new", *MANY[1:-1], "refused"]))
    bench.wait_pool(MANY[1:-1])
    told = bench.observer.wait_for_code("devices-withdrawn")
    assert "gpu-0, gpu-129" in told.message
    bench.observer.wait_for_code("api-refused")
    assert bench.generations() == [2, 2]
    # Again and again it is refused, which changes nothing.
    failed, written = len(bench.observer.publishings), len(bench.server.writes())
    wait_until(lambda: len(bench.observer.publishings) >= failed + 2)
    assert all(error for _, _, error in bench.observer.publishings[failed:])
    assert len(bench.server.writes()) == written
    assert [each.code for each in bench.observer.problems] == ["devices-withdrawn"]
    bench.back_end.change(inventory(["new", *MANY[1:-1]]))
    bench.wait_pool(["new", *MANY[1:-1]])
    wait_until(lambda: bench.observer.publishings[-1][2] is None)


def test_a_plugin_that_starts_with_devices_that_are_refused_takes_out_what_is_gone(bench: Bench) -> None:
    bench.published().stop()
    bench.back_end.offered = inventory(["gpu-0", "gpu-0", *MANY[5:]])
    publisher = bench.start()
    bench.wait_pool([MANY[0], *MANY[5:]])
    bench.observer.wait_for_code("pool-not-usable")
    assert not publisher.wait(0)


def test_devices_that_are_to_be_kept_away_now_are_taken_out_while_their_taints_are_refused(
    bench: Bench,
) -> None:
    names = ["gpu-0", "gpu-1", "gpu-2"]
    bench.back_end.offered = inventory(["gpu-0", device("gpu-1", taint="sick"), "gpu-2"])
    bench.published()
    [before] = [each for each in bench.slices()[0]["spec"]["devices"] if each["name"] == "gpu-1"]
    bench.back_end.change(
        inventory([*(device(each, taint="sick") for each in names[:2]), "gpu-2", "refused"])
    )
    bench.wait_pool(["gpu-1", "gpu-2"])
    assert before in bench.slices()[0]["spec"]["devices"]
    assert bench.generations() == [2]


def test_who_may_not_publish_may_still_take_out_what_is_gone(bench: Bench) -> None:
    bench.published()
    bench.server.refuse = lambda method, _path: 403 if method == "POST" else None
    bench.back_end.change(inventory(MANY[:129]))
    bench.wait_pool(MANY[:129])
    bench.observer.wait_for_code("api-forbidden")


def test_a_server_that_fails_has_refused_nothing(bench: Bench) -> None:
    bench.published()
    written = len(bench.server.writes())
    bench.server.refuse = lambda method, _path: 503 if method == "POST" else None
    bench.back_end.change(inventory(MANY[1:]))
    bench.observer.wait_for_code("api-unreachable")
    assert len(bench.server.writes()) == written
    bench.server.refuse = lambda _method, _path: None
    bench.wait_pool(MANY[1:])


def test_a_server_that_asks_for_time_gets_it_before_the_next_try(bench: Bench) -> None:
    pauses: list[float] = []

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        bench.server.refuse = lambda _method, _path: None
        return False

    bench.server.refuse = lambda method, _path: 429 if method == "POST" else None
    bench.server.retry_after = "20"
    publisher = bench.start(wait=wait)
    assert publisher.wait(PATIENCE)
    [pause] = pauses
    assert 20.0 < pause <= 21.0


def test_an_unfinished_pool_of_nobody_knows_what_becomes_one_without_devices(bench: Bench) -> None:
    """While one is on a node, the scheduler answers no request there for all devices of whatever driver."""
    publisher = bench.published()
    publisher.stop()
    bench.server.store.delete("resourceslices", "", bench.slices()[0]["metadata"]["name"])
    bench.back_end.offered = inventory(["refused"])
    bench.start()
    bench.wait_pool([])
    bench.observer.wait_for_code("api-refused")


def test_slices_that_are_deleted_while_new_ones_are_refused_come_back(bench: Bench) -> None:
    bench.published()
    bench.back_end.change(inventory([*MANY[1:], "refused"]))
    bench.wait_pool(MANY[1:])
    bench.server.store.delete("resourceslices", "", bench.slices()[0]["metadata"]["name"])
    bench.wait_pool(MANY[1:])


def test_taking_devices_out_goes_on_where_it_ended(bench: Bench) -> None:
    """Gone devices are in two slices, and the server fails between the two writes."""
    bench.published()
    updates: list[str] = []

    def refuse(method: str, path: str) -> int | None:
        if method != "PUT":
            return None
        updates.append(path)
        return 409 if len(updates) == 2 else None

    bench.server.refuse = refuse
    bench.back_end.change(inventory([*MANY[1:-1], "refused"]))
    bench.wait_pool(MANY[1:-1])
    assert len(updates) > 2


def test_slices_that_are_refused_when_they_are_written_leave_those_of_before_less_what_is_gone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy may know what an update changes, where a dry run of a new slice is let through."""
    bench.published()
    update = bench.server.store.update

    def only_known(plural: str, namespace: str, name: str, body: Any) -> Any:
        if any(each["name"] == "new" for each in body["spec"]["devices"]):
            raise RefusalError(403, "the policy says so", "Forbidden")
        return update(plural, namespace, name, body)

    monkeypatch.setattr(bench.server.store, "update", only_known)
    bench.back_end.change(inventory([*MANY[1:-1], "new"]))
    bench.wait_pool(MANY[1:-1])
    bench.observer.wait_for_code("api-forbidden")


def test_an_inventory_that_cannot_be_laid_out_does_not_keep_devices_that_are_gone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.published()

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("dra_infra.plugin.publishing.desired_slices.lay_out", fails)
    bench.back_end.change(inventory(MANY[1:]))
    bench.wait_pool(MANY[1:])
    bench.observer.wait_for_code("plugin-failed")


def test_the_time_of_a_taint_is_kept_while_its_device_is_taken_out(bench: Bench) -> None:
    def taints(name: str) -> list[Any]:
        [found] = [each for each in bench.slices()[0]["spec"]["devices"] if each["name"] == name]
        return found["taints"]

    first = device("gpu-1", taint="worn")
    bench.back_end.offered = inventory(["gpu-0", first])
    bench.published()
    [before] = taints("gpu-1")
    both = first.changed({"taints": [*(first.taints or ()), DeviceTaint(key="sick", effect="NoSchedule")]})
    bench.back_end.change(inventory(["gpu-0", both, "refused"]))
    bench.wait_pool(["gpu-0"])
    wait_until(lambda: bench.observer.publishings[-1][2] is not None)
    bench.back_end.change(inventory(["gpu-0", both]))
    bench.wait_pool(["gpu-0", "gpu-1"])
    assert before["timeAdded"]
    assert before in taints("gpu-1")


def test_a_server_of_another_release_behind_a_watch_that_only_ended_gets_slices_of_its_own(
    bench: Bench,
) -> None:
    bench.server.minor = "34"
    bench.back_end.offered = inventory([device("mig-0", drawn="gpu-0")], [counters("gpu-0")])
    bench.published()
    assert len(bench.slices()) == 1
    wait_until(lambda: [query for _, _, query in bench.server.asked if query.get("watch")])
    bench.server.minor = "35"
    for connection in list(bench.server.open):
        connection.shutdown(2)
    wait_until(lambda: len(bench.slices()) == 2)
    assert bench.pool() == ["mig-0"]
    assert not [error for _, _, error in bench.observer.publishings if error]


def test_a_driver_of_the_same_name_is_left_alone_until_it_is_gone(bench: Bench) -> None:
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": [{"name": "theirs"}]}
    bench.server.store.create("resourceslices", "", {"metadata": {"name": "foreign"}, "spec": spec})
    other = {"metadata": {"name": "other"}, "spec": {**spec, "driver": "nic.example.com"}}
    elsewhere = {"metadata": {"name": "elsewhere"}, "spec": {**spec, "nodeName": "node-2"}}
    for each in (other, elsewhere):
        bench.server.store.create("resourceslices", "", each)
    told: list[bool] = []
    publisher = bench.start(on_name_taken=told.append)
    problem = bench.observer.wait_for_code("driver-name-taken")
    assert "foreign" in problem.message
    assert bench.server.writes() == []
    bench.server.store.delete("resourceslices", "", "foreign")
    assert publisher.wait(PATIENCE)
    assert (set(told[:-1]), told[-1]) == ({True}, False)
    # Later on claims have been prepared, and the kubelet has to find us to have them released.
    bench.server.store.create("resourceslices", "", {"metadata": {"name": "foreign"}, "spec": spec})
    bench.observer.publishings.clear()
    bench.observer.wait_for_code("driver-name-taken")
    assert told[-1] is False
    names = [each["metadata"]["name"] for each in bench.slices()]
    assert {"elsewhere", "foreign", "other"} < set(names)


def test_another_drivers_slices_that_stay_are_waited_out_for_a_while_only(bench: Bench) -> None:
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": [{"name": "theirs"}]}
    bench.server.store.create("resourceslices", "", {"metadata": {"name": "foreign"}, "spec": spec})
    told: list[bool] = []
    bench.start(on_name_taken=told.append, aside=0.3)
    wait_until(lambda: told and not told[-1])
    assert set(told[:-1]) == {True}
    assert [each["metadata"]["name"] for each in bench.slices()] == ["foreign"]


def test_a_name_is_free_where_our_own_slices_are_refused(bench: Bench) -> None:
    bench.back_end.offered = inventory(["gpu-0", "gpu-0"])
    told: list[bool] = []
    publisher = bench.start(on_name_taken=told.append)
    wait_until(lambda: told and bench.observer.publishings)
    assert told == [False]
    assert not publisher.wait(0)


def test_a_node_that_is_not_there_is_told(bench: Bench) -> None:
    bench.server.store.delete("nodes", "", NODE)
    publisher = bench.start()
    assert bench.observer.wait_for_code("node-not-known").path == "--node-name"
    bench.server.store.create("nodes", "", {"metadata": {"name": NODE, "uid": "new-uid"}})
    assert publisher.wait(PATIENCE)


def test_stopping_leaves_the_slices(bench: Bench) -> None:
    publisher = bench.published()
    publisher.stop()
    assert bench.pool() == MANY


def test_an_api_server_that_is_away_is_found_again_with_all_that_changed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dra_infra.plugin.api_server.requests.BUDGET", 1.0)
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
    wait_until(lambda: newer.is_successor)
    assert not older.is_successor
    older.stop()
    assert newer.wait(PATIENCE)
    # Its readiness did not end in between.
    assert newer.is_successor
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
