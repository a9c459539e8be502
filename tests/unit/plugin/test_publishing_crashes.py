"""Publishing that dies at any request, between changes of devices and of slices by others: what schedulers see, and where it ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dra_infra.client.kinds import Kind
from dra_infra.errors import PluginError
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.publishing.publisher import Publisher
from tests.support.plugin.api_server import Store
from tests.support.plugin.publishing import NODE, BackEnd, counters, device, inventory, names_of, pool_of


class Killed(BaseException):
    """The process is gone."""


class StoreApi:
    """A store, asked as `Api` is, and a process that dies at a request: before it is done, or after."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.left: int | None = None
        self.done_first = False
        self.minor_ = 37

    def minor(self) -> int:
        return self.minor_

    def forget(self) -> None:
        pass

    def get(self, kind: Kind, name: str, namespace: str = "") -> dict[str, Any]:
        return self._step(lambda: self.store.get(kind.plural, namespace, name))

    def list(self, kind: Kind, *, field_selector: str = "") -> tuple[list[dict[str, Any]], str]:
        return self._step(lambda: (self.store.list(kind.plural), str(self.store.version)))

    def create(self, kind: Kind, manifest: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        return self._step(lambda: self.store.create(kind.plural, "", dict(manifest), dry_run=dry_run))

    def update(self, kind: Kind, manifest: Mapping[str, Any]) -> dict[str, Any]:
        return self._step(
            lambda: self.store.update(kind.plural, "", manifest["metadata"]["name"], dict(manifest))
        )

    def delete(self, kind: Kind, item: Mapping[str, Any]) -> None:
        metadata = item["metadata"]
        self._step(lambda: self.store.delete(kind.plural, "", metadata["name"], metadata))

    def _step(self, work: Callable[[], Any]) -> Any:
        if self.left is None:
            return work()
        if self.left:
            self.left -= 1
            return work()
        self.left = None
        if self.done_first:
            work()
        raise Killed


def offered(sizes: list[int], tainted: int, version: int) -> Inventory:
    """Devices of which each change differs."""
    devices = [
        device(f"gpu-{place}-{number}", drawn=f"set-{place}" if place == 0 else "", index=version)
        for place, many in enumerate(sizes)
        for number in range(many)
    ]
    if devices:
        at = tainted % len(devices)
        name = devices[at].name
        devices[at] = device(name, taint="sick", drawn="set-0" if name.startswith("gpu-0") else "")
    return inventory(devices, [counters("set-0")] if sizes and sizes[0] else [])


SIZES = ([5, 3], [0, 9], [4], [3, 3], [5, 4], [0, 0, 12], [7, 7], [1], [])
INVENTORIES = st.tuples(st.sampled_from(SIZES), st.integers(0, 20))


class Publishing(RuleBasedStateMachine):
    """Whatever happens, a whole pool is one that the back end offered, unless somebody else made it so."""

    @initialize(first=INVENTORIES)
    def begin(self, first: tuple[list[int], int]) -> None:
        # Pools of many slices, and few devices.
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("dra_infra.plugin.publishing.pools._DEVICES", 4)
        self.patch.setattr("dra_infra.plugin.publishing.pools._ADVANCED", 2)
        self.store = Store()
        self.store.create("nodes", "", {"metadata": {"name": NODE, "uid": "node-uid"}})
        self.api = StoreApi(self.store)
        self.version = 0
        self.back_end = BackEnd(inventory([]))
        self.was_offered: list[list[str]] = []
        self.meddled = False
        self.seen_events = len(self.store.events)
        self.shown: dict[str, dict[str, Any]] = {}
        self.restart()
        self.offer(first)

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()

    def offer(self, chosen: tuple[list[int], int]) -> None:
        self.version += 1
        self.back_end.offered = offered(*chosen, self.version)
        self.was_offered.append([self._seen(each) for each in self.back_end.offered.devices])

    @staticmethod
    def _seen(each: Any) -> str:
        return f"{each.name} {each.attributes['index'].int_} {len(each.taints or ())}"

    def restart(self) -> None:
        self.publisher = Publisher(
            self.api,  # type: ignore[arg-type]  (the part of it that publishing uses)
            back_end=self.back_end,
            node=NODE,
            observer=Observer(),
        )

    @rule(chosen=INVENTORIES)
    def devices_change(self, chosen: tuple[list[int], int]) -> None:
        self.offer(chosen)

    @rule(left=st.integers(0, 20), done_first=st.booleans(), chosen=INVENTORIES)
    def devices_change_and_publishing_dies(
        self, left: int, done_first: bool, chosen: tuple[list[int], int]
    ) -> None:
        self.offer(chosen)
        self.publishing_dies(left, done_first)

    @rule(left=st.integers(0, 20), done_first=st.booleans())
    def publishing_dies(self, left: int, done_first: bool) -> None:
        self.api.left = left
        self.api.done_first = done_first
        try:
            self.publisher._sync()
        except Killed:
            self.restart()
        except PluginError:
            pytest.fail("nothing here is refused")
        finally:
            self.api.left = None

    @rule()
    def published(self) -> None:
        self.meddled = False
        self.publisher._sync()
        slices = self.store.list("resourceslices")
        pool = pool_of(slices)
        assert [self._seen_object(each) for each in pool or ()] == self.was_offered[-1]
        # Nothing is left over, and once more is nothing to do.
        assert pool is not None or not slices
        version = self.store.version
        self.publisher._sync()
        assert self.store.version == version

    @rule(place=st.integers(0, 10))
    def the_kubelet_deletes_some(self, place: int) -> None:
        for each in self.store.list("resourceslices")[place:]:
            self.store.delete("resourceslices", "", each["metadata"]["name"])

    @rule(place=st.integers(0, 10), generation=st.integers(-1, 3))
    def somebody_edits_a_slice(self, place: int, generation: int) -> None:
        slices = self.store.list("resourceslices")
        if slices:
            self.meddled = True
            chosen = slices[place % len(slices)]

            def edit(item: dict[str, Any]) -> None:
                item["spec"].get("devices", []).reverse()
                item["spec"]["pool"]["generation"] += generation

            self.store.change("resourceslices", "", chosen["metadata"]["name"], edit)

    @rule(place=st.integers(0, 10))
    def somebody_copies_a_slice(self, place: int) -> None:
        slices = self.store.list("resourceslices")
        if slices:
            self.meddled = True
            chosen = slices[place % len(slices)]
            metadata = {key: value for key, value in chosen["metadata"].items() if key not in ("uid", "name")}
            name = f"{chosen['metadata']['name']}x{self.store.version}"
            self.store.create("resourceslices", "", {**chosen, "metadata": {**metadata, "name": name}})

    @invariant()
    def no_scheduler_sees_a_wrong_pool(self) -> None:
        """Every state that a scheduler could have seen on the way, event by event."""
        if not hasattr(self, "store"):
            return
        for _, plural, type_, item in self.store.events[self.seen_events :]:
            if plural != "resourceslices":
                continue
            name = item["metadata"]["name"]
            if type_ == "DELETED":
                self.shown.pop(name, None)
            else:
                self.shown[name] = item
            pool = pool_of(list(self.shown.values()))
            if pool is not None and not self.meddled:
                assert [self._seen_object(each) for each in pool] in self.was_offered, names_of(pool)
        self.seen_events = len(self.store.events)

    @staticmethod
    def _seen_object(each: Mapping[str, Any]) -> str:
        return f"{each['name']} {each['attributes']['index']['int']} {len(each.get('taints', ()))}"


@pytest.mark.parametrize("done_first", [False, True])
@pytest.mark.parametrize(
    ("before", "after"), [([5, 3], [5, 3]), ([5, 3], [0, 9]), ([0, 3], [7, 7]), ([7, 7], [1])]
)
def test_a_kill_at_any_request_of_a_change_shows_no_mixed_pool_and_is_put_right_by_the_next_start(
    before: list[int], after: list[int], *, done_first: bool
) -> None:
    deaths = 0
    for step in itertools.count():
        machine = Publishing()
        machine.begin((before, 1))
        machine.published()
        machine.offer((after, 2))
        last = machine.publisher
        machine.publishing_dies(step, done_first)
        machine.no_scheduler_sees_a_wrong_pool()
        died = machine.publisher is not last
        machine.published()
        machine.no_scheduler_sees_a_wrong_pool()
        machine.teardown()
        if not died:
            break
        deaths += 1
    assert deaths > len(after) + 3


def test_a_slice_too_many_goes_when_the_others_are_right() -> None:
    machine = Publishing()
    machine.begin(([5, 3], 0))
    machine.published()
    machine.somebody_edits_a_slice(place=1, generation=0)
    machine.somebody_copies_a_slice(place=0)
    machine.no_scheduler_sees_a_wrong_pool()
    # Without the copy, and before the edit is undone, the pool would be whole and wrong.
    machine.published()
    machine.no_scheduler_sees_a_wrong_pool()
    machine.teardown()


def test_copies_of_a_slice_do_not_stand_for_those_that_are_lacking() -> None:
    machine = Publishing()
    machine.begin(([1], 0))
    machine.publishing_dies(left=5, done_first=False)
    machine.somebody_copies_a_slice(place=0)
    machine.somebody_copies_a_slice(place=0)
    machine.no_scheduler_sees_a_wrong_pool()
    machine.published()
    machine.no_scheduler_sees_a_wrong_pool()
    machine.teardown()


TestPublishing = Publishing.TestCase
TestPublishing.settings = settings(
    max_examples=40, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
