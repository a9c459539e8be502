from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.api_server.claim_reading import ClaimReader
from dra_infra.plugin.api_server.reconciling import GRACE_SECONDS, Reconciled, Reconciler, claims_of_kubelet
from dra_infra.plugin.claims import Claim
from tests.support.plugin.api_server import ApiServer, serving
from tests.support.plugin.publishing import Remembering, wait_until
from tests.unit.plugin.faults import DRIVER, SPEC, Node, claim_of, uid_of


def write_kubelet_state(path: Path, *uids: str) -> None:
    infos = [{"ClaimUID": uid, "ClaimName": "x", "Namespace": "ml", "PodUIDs": {}} for uid in uids]
    data = json.dumps({"kind": "DRACheckpoint", "ClaimInfoStateList": infos})
    path.write_text(json.dumps({"Data": data, "Checksum": zlib.crc32(data.encode())}))


class Bench:
    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server = server
        self.node = Node(folder)
        self.observer = Remembering()
        self.state = folder / "dra_manager_state"
        self.now = 0.0

    def claim(self, number: int, *devices: str, reserved: bool = True) -> None:
        """Prepared here, and on the API server."""
        self.node.plugin.prepare(claim_of(number, *devices))
        self.store(number, *devices, reserved=reserved)

    def store(self, number: int, *devices: str, reserved: bool = True) -> None:
        results = [{"driver": DRIVER, "pool": "node-1", "device": each, "request": "gpu"} for each in devices]
        status: dict[str, Any] = {"allocation": {"devices": {"results": results}}}
        if reserved:
            status["reservedFor"] = [{"resource": "pods", "name": "a", "uid": "1"}]
        metadata = {"name": f"claim-{number}", "uid": uid_of(number)}
        self.server.store.objects.pop(("resourceclaims", "ml", f"claim-{number}"), None)
        self.server.store.create("resourceclaims", "ml", {"metadata": metadata, "status": status})

    def lose(self, number: int, *, spec: bool = False) -> None:
        """Damage a claim's file, and take its spec away too."""
        (self.node.claims / f"{uid_of(number)}.json").write_text("{")
        if spec:
            (self.node.cdi / SPEC.format(uid_of(number))).unlink()
        self.node.restart()

    def reconciler(self, *, with_state: bool = False) -> Reconciler:
        api = self.server.api()
        return Reconciler(
            api,
            reader=ClaimReader(api, driver=DRIVER, node="node-1"),
            preparations=self.node.plugin,
            observer=self.observer,
            kubelet_state=self.state if with_state else None,
            clock=lambda: self.now,
        )

    def prepared(self) -> set[str]:
        return set(self.node.plugin.prepared())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with serving() as server:
        yield Bench(server, tmp_path)


def test_a_lost_claim_that_a_pod_has_is_restored_with_the_same_ids(bench: Bench) -> None:
    bench.claim(1, "gpu-0")
    before = (bench.node.cdi / SPEC.format(uid_of(1))).read_bytes()
    bench.lose(1)
    assert bench.node.plugin.not_restored() == {uid_of(1)}
    assert bench.reconciler().look() == Reconciled(restored=(uid_of(1),))
    assert (bench.prepared(), bench.node.plugin.not_restored()) == ({uid_of(1)}, frozenset())
    assert (bench.node.cdi / SPEC.format(uid_of(1))).read_bytes() == before


def test_a_lost_claim_that_is_gone_is_released_when_the_kubelet_has_had_its_turn(bench: Bench) -> None:
    bench.claim(1, "gpu-0")
    bench.lose(1, spec=True)
    bench.server.store.delete("resourceclaims", "ml", "claim-1")
    reconciler = bench.reconciler()
    assert reconciler.look() == Reconciled()
    bench.now = GRACE_SECONDS - 1
    assert reconciler.look() == Reconciled()
    bench.now = GRACE_SECONDS
    assert reconciler.look() == Reconciled(released=(uid_of(1),))
    assert bench.node.check() == set()


def test_a_lost_claim_that_nobody_has_now_is_released_only_where_the_kubelet_does_not_know_it(
    bench: Bench,
) -> None:
    bench.claim(1, "gpu-0", reserved=False)
    bench.lose(1)
    unseen, seen = bench.reconciler(), bench.reconciler(with_state=True)
    write_kubelet_state(bench.state, uid_of(1))
    for each in (unseen, seen):
        each.look()
    bench.now = GRACE_SECONDS
    for each in (unseen, seen):
        assert each.look() == Reconciled(left_over=(uid_of(1),))
    write_kubelet_state(bench.state, uid_of(2))
    assert seen.look() == Reconciled(released=(uid_of(1),))


def test_a_prepared_claim_that_is_gone_is_left_to_the_kubelet_and_told_once(bench: Bench) -> None:
    bench.claim(1, "gpu-0")
    bench.claim(2, "gpu-1")
    bench.server.store.delete("resourceclaims", "ml", "claim-1")
    reconciler = bench.reconciler()
    reconciler.look()
    for later in (GRACE_SECONDS, 2 * GRACE_SECONDS):
        bench.now = later
        assert reconciler.look() == Reconciled(left_over=(uid_of(1),))
    assert [each.code for each in bench.observer.problems] == ["claim-left-over"]
    assert bench.prepared() == {uid_of(1), uid_of(2)}


def test_a_prepared_claim_that_is_gone_and_that_the_kubelet_has_forgotten_is_released(bench: Bench) -> None:
    bench.claim(1, "gpu-0")
    bench.claim(2, "gpu-1")
    bench.server.store.delete("resourceclaims", "ml", "claim-1")
    # Another one of its name is no reason to keep it.
    bench.store(9, "gpu-0")
    write_kubelet_state(bench.state, uid_of(1), uid_of(2))
    reconciler = bench.reconciler(with_state=True)
    reconciler.look()
    bench.now = GRACE_SECONDS
    assert reconciler.look().left_over == (uid_of(1),)
    write_kubelet_state(bench.state, uid_of(2))
    assert reconciler.look() == Reconciled(released=(uid_of(1),))
    assert bench.prepared() == {uid_of(2)}


def test_a_claim_that_is_used_again_meanwhile_counts_anew(bench: Bench) -> None:
    bench.claim(1, "gpu-0", reserved=False)
    bench.lose(1)
    write_kubelet_state(bench.state)
    reconciler = bench.reconciler(with_state=True)
    reconciler.look()
    bench.store(1, "gpu-0")
    bench.now = GRACE_SECONDS
    assert reconciler.look() == Reconciled(restored=(uid_of(1),))


def test_a_claim_that_the_kubelet_has_prepared_before_our_turn_to_release_it_stays(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.claim(1, "gpu-0", reserved=False)
    bench.lose(1)
    write_kubelet_state(bench.state)
    reconciler = bench.reconciler(with_state=True)
    reconciler.look()
    bench.now = GRACE_SECONDS
    released = bench.node.plugin.release

    def after_the_kubelet(uid: str, **options: Any) -> None:
        # It writes a claim into its file before it asks for it.
        write_kubelet_state(bench.state, uid)
        bench.node.plugin.prepare(claim_of(1, "gpu-0"))
        released(uid, **options)

    monkeypatch.setattr(bench.node.plugin, "release", after_the_kubelet)
    assert reconciler.look() == Reconciled(left_over=(uid_of(1),))
    assert bench.prepared() == {uid_of(1)}


def test_a_lost_claim_that_the_kubelet_has_released_before_our_turn_is_not_prepared_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.claim(1, "gpu-0")
    bench.lose(1)
    restore = bench.node.plugin.restore

    def after_the_kubelet(claim: Claim) -> bool:
        bench.node.plugin.release(claim.uid)
        return restore(claim)

    monkeypatch.setattr(bench.node.plugin, "restore", after_the_kubelet)
    assert bench.reconciler().look() == Reconciled()
    assert bench.node.check() == set()


def test_a_lost_claim_with_other_devices_now_is_left_and_told(bench: Bench) -> None:
    bench.claim(1, "gpu-0")
    bench.lose(1)
    bench.store(1, "gpu-1")
    assert bench.reconciler().look() == Reconciled()
    assert [each.code for each in bench.observer.problems] == ["claim-prepared-otherwise"]


def left_half_way(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Claim], Callable[[], None]]:
    """A claim has its device, was not prepared, and could not be undone; tries to do so, and what makes one succeed."""
    devices = bench.node.devices
    answers = devices.release
    tries: list[Claim] = []

    def silent(claim: Claim) -> None:
        tries.append(claim)
        raise PluginError([Problem(path="gpu-0", code="device-held", message="does not answer")])

    devices.broken = True
    monkeypatch.setattr(devices, "release", silent)
    with pytest.raises(PluginError):
        bench.node.plugin.prepare(claim_of(1, "gpu-0"))
    bench.node.restart()
    devices.broken = False

    return tries, lambda: monkeypatch.setattr(devices, "release", answers)


def test_what_could_not_be_undone_at_the_start_is_tried_again_and_told_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, mend = left_half_way(bench, monkeypatch)
    told = len(bench.node.noticed)
    reconciler = bench.reconciler()
    for _ in range(3):
        bench.now += GRACE_SECONDS
        reconciler.look()
        with pytest.raises(PluginError, match="is prepared for"):
            bench.node.plugin.prepare(claim_of(2, "gpu-0"))
    assert len(bench.node.noticed) == told
    mend()
    bench.now += GRACE_SECONDS
    reconciler.look()
    bench.node.plugin.prepare(claim_of(2, "gpu-0"))
    assert bench.node.check() == {uid_of(2)}


def test_what_could_not_be_undone_is_not_tried_at_each_look_while_the_api_server_is_away(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, _ = left_half_way(bench, monkeypatch)
    reconciler = bench.reconciler()
    reconciler.look()
    before = len(tries)
    reconciler.look()
    assert len(tries) == before
    bench.now += GRACE_SECONDS
    reconciler.look()
    assert len(tries) == before + 1


def test_what_could_not_be_undone_is_tried_again_before_the_next_regular_look(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dra_infra.plugin.api_server.reconciling.GRACE_SECONDS", 0.0)
    tries, mend = left_half_way(bench, monkeypatch)
    before = len(tries)
    reconciler = bench.reconciler()
    reconciler.start()
    try:
        wait_until(lambda: len(tries) > before + 2)
        mend()
        wait_until(lambda: not bench.node.ready())
    finally:
        reconciler.stop()
    assert bench.node.check() == frozenset()


def test_an_api_server_that_is_away_keeps_everything_as_it_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dra_infra.plugin.api_server.requests.BUDGET", 0.1)
    bench.claim(1, "gpu-0")
    bench.lose(1)
    bench.server.refuse = lambda _method, _path: 503
    reconciler = bench.reconciler()
    reconciler.start()
    assert bench.observer.wait_for_code("api-unreachable")
    assert bench.node.plugin.not_restored() == {uid_of(1)}
    bench.server.refuse = lambda _method, _path: None
    wait_until(lambda: not bench.node.plugin.not_restored())
    reconciler.stop()
    assert bench.prepared() == {uid_of(1)}


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", '{"Data": 1, "Checksum": 1}', '{"Data": "{}", "Checksum": 0}', "[" * 100_000],
)
def test_a_file_of_the_kubelet_that_is_not_as_it_should_be_says_nothing(tmp_path: Path, content: str) -> None:
    path = tmp_path / "dra_manager_state"
    assert claims_of_kubelet(path) is None
    path.write_text(content)
    assert claims_of_kubelet(path) is None
    write_kubelet_state(path, uid_of(1))
    assert claims_of_kubelet(path) == {uid_of(1)}
    path.write_text(path.read_text().replace(uid_of(1), uid_of(2)))
    assert claims_of_kubelet(path) is None


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_file_in_the_place_of_the_kubelets_says_nothing_and_holds_nobody(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "dra_manager_state"
    make(path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    said: list[frozenset[str] | None] = []
    asking = threading.Thread(target=lambda: said.append(claims_of_kubelet(path)), daemon=True)
    asking.start()
    asking.join(60)
    assert said == [None]
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_file_of_the_kubelet_that_was_replaced_behind_a_mount_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "dra_manager_state"
    write_kubelet_state(path, uid_of(1))
    with path.open("rb") as kept:
        mounted = Path(f"/proc/self/fd/{kept.fileno()}")
        assert claims_of_kubelet(mounted) == {uid_of(1)}
        write_kubelet_state(tmp_path / "new", uid_of(2))
        (tmp_path / "new").replace(path)
        assert claims_of_kubelet(mounted) is None
    assert claims_of_kubelet(path) == {uid_of(2)}
