from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.errors import PluginError
from dra_infra.plugin.api_server.claim_reading import ClaimReader
from dra_infra.plugin.claims import ClaimReference
from tests.support.plugin.api_server import ApiServer, serving

DRIVER = "gpu.example.com"
UID = "0b5e1f6e-5b0f-4d41-9a8c-5f0f0c6b8a11"
SHARE = "5f0f0c6b-0b5e-4d41-9a8c-0b5e1f6e8a11"
REFERENCE = ClaimReference(namespace="ml", name="trainer", uid=UID)


def result(device: str = "gpu-0", request: str = "gpu", **more: object) -> dict[str, Any]:
    return {"driver": DRIVER, "pool": "node-1", "device": device, "request": request, **more}


def config(source: str, value: object, *requests: str, driver: str = DRIVER) -> dict[str, Any]:
    opaque = {"driver": driver, "parameters": {"kind": "GpuConfig", "value": value}}
    return {"source": source, "opaque": opaque, **({"requests": list(requests)} if requests else {})}


def claim(*results: dict[str, Any], configs: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]
    return {
        "metadata": {"name": "trainer", "namespace": "ml", "uid": UID},
        "status": {
            "allocation": {
                "devices": {"results": list(results), "config": list(configs)},
                "nodeSelector": {"nodeSelectorTerms": terms},
            },
            "reservedFor": [{"resource": "pods", "name": "trainer", "uid": "1"}],
        },
    }


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with serving() as made:
        yield made


@pytest.fixture
def read(server: ApiServer) -> Callable[..., Any]:
    def read(item: dict[str, Any], reference: ClaimReference = REFERENCE, **options: bool) -> Any:
        server.store.objects.pop(("resourceclaims", "ml", "trainer"), None)
        server.store.create("resourceclaims", "ml", item)
        return ClaimReader(server.api(), driver=DRIVER, node="node-1", **options).read(reference)

    return read


def values(configs: tuple[str, ...]) -> list[object]:
    return [json.loads(each)["value"] for each in configs]


def test_a_claim_is_read_with_all_that_preparing_needs(read: Callable[..., Any]) -> None:
    item = claim(
        result("gpu-1", "main/second", shareID=SHARE, consumedCapacity={"memory": "10Gi"}),
        result("gpu-0", "watch", adminAccess=True),
        {**result("nic-0"), "driver": "nic.example.com", "pool": "elsewhere"},
    )
    item["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    found = read(item)
    assert (found.uid, found.namespace, found.name, found.pod_claim_name) == (UID, "ml", "trainer", "gpu")
    watched, shared = found.devices
    assert (watched.device, watched.request, watched.admin_access, watched.share_id) == (
        "gpu-0",
        "watch",
        True,
        "",
    )
    assert (shared.device, shared.request, shared.subrequest) == ("gpu-1", "main", "second")
    assert (shared.share_id, watched.subrequest) == (SHARE, "")
    assert shared.capacity == (("memory", "10Gi"),)


def test_configs_of_the_class_come_before_those_of_the_claim(read: Callable[..., Any]) -> None:
    configs = (
        config("FromClaim", "claim 1"),
        config("FromClass", "class 1", "gpu"),
        config("FromClaim", "other driver", driver="other"),
        config("FromClaim", "claim 2", "gpu"),
        config("FromClaim", "other request", "nic"),
        config("FromClass", "class 2", "gpu"),
    )
    [device] = read(claim(result(), configs=configs)).devices
    assert values(device.configs) == ["class 1", "class 2", "claim 1", "claim 2"]
    assert device.named == (True, True, False, True)


def test_a_config_of_the_class_that_names_no_request_is_one_for_whatever_it_fits(
    read: Callable[..., Any],
) -> None:
    # So the scheduler of 1.37 writes one that is for all requests of the claim.
    [device] = read(claim(result(), configs=(config("FromClass", "class"),))).devices
    assert (values(device.configs), device.named) == (["class"], (False,))


def test_devices_with_the_same_config_have_one_text_in_memory(read: Callable[..., Any]) -> None:
    item = claim(result("gpu-0"), result("gpu-1"), configs=(config("FromClaim", "all"),))
    first, second = read(item).devices
    assert first.configs[0] is second.configs[0]


def test_a_config_for_the_main_request_counts_for_the_chosen_subrequest(read: Callable[..., Any]) -> None:
    configs = (
        config("FromClass", "class", "gpu/big"),
        config("FromClaim", "main", "gpu"),
        config("FromClaim", "big", "gpu/big"),
        config("FromClaim", "small", "gpu/small"),
    )
    item = claim(result(request="gpu/big"), configs=configs)
    assert values(read(item).devices[0].configs) == ["class", "main", "big"]
    # As NVIDIA's driver has it.
    assert values(read(item, whole_names_only=True).devices[0].configs) == ["class", "big"]


def without(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(item: dict[str, Any]) -> None:
        for key in path[:-1]:
            item = item[key]
        item.pop(path[-1])

    return change


def setting(value: object, *path: str | int) -> Callable[[dict[str, Any]], None]:
    def change(item: Any) -> None:
        for key in path[:-1]:
            item = item[key]
        item[path[-1]] = value

    return change


RESULTS = ("status", "allocation", "devices", "results")
CONFIGS = ("status", "allocation", "devices", "config")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (setting("1b5e1f6e-5b0f-4d41-9a8c-5f0f0c6b8a11", "metadata", "uid"), "claim-made-anew"),
        (without("status", "allocation"), "claim-without-allocation"),
        (without("status"), "claim-without-allocation"),
        (without("status", "reservedFor"), "claim-not-reserved"),
        (setting([], "status", "reservedFor"), "claim-not-reserved"),
        (setting([], *RESULTS), "claim-no-device"),
        (setting("other.example.com", *RESULTS, 0, "driver"), "claim-no-device"),
        (setting("node-2", *RESULTS, 0, "pool"), "claim-other-node"),
        (
            setting(
                [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}],
                "status",
                "allocation",
                "nodeSelector",
                "nodeSelectorTerms",
            ),
            "claim-other-node",
        ),
        (setting("../../etc", *RESULTS, 0, "device"), "claim-malformed"),
        (setting("gpu/../x", *RESULTS, 0, "request"), "claim-malformed"),
        (setting(7, *RESULTS, 0, "device"), "claim-malformed"),
        (setting("no uuid", *RESULTS, 0, "shareID"), "claim-malformed"),
        (setting("yes", *RESULTS, 0, "adminAccess"), "claim-malformed"),
        (setting({"memory": 7}, *RESULTS, 0, "consumedCapacity"), "claim-malformed"),
        (setting("all", *RESULTS), "claim-malformed"),
        (setting([result(f"gpu-{number}") for number in range(33)], *RESULTS), "claim-malformed"),
        (setting([config("FromClaim", "x" * 30_000)], *CONFIGS), "claim-malformed"),
        (setting([config("FromClaim", 1)] * 65, *CONFIGS), "claim-malformed"),
        (setting("gpu", *CONFIGS, 0, "requests"), "claim-malformed"),
        (setting([1], *CONFIGS, 0, "opaque", "parameters"), "claim-malformed"),
    ],
)
def test_a_claim_that_cannot_be_prepared_is_refused(
    read: Callable[..., Any], change: Callable[[dict[str, Any]], None], code: str
) -> None:
    item = claim(result(), configs=(config("FromClaim", 1),))
    change(item)
    with pytest.raises(PluginError) as caught:
        read(item)
    [problem] = caught.value.problems
    assert problem.code == code
    assert problem.path.startswith("ResourceClaim ml/trainer")


def test_a_claim_that_is_gone_is_told(server: ApiServer, read: Callable[..., Any]) -> None:
    read(claim(result()))
    server.store.delete("resourceclaims", "ml", "trainer")
    with pytest.raises(PluginError) as caught:
        ClaimReader(server.api(), driver=DRIVER, node="node-1").read(REFERENCE)
    assert caught.value.problems[0].code == "claim-gone"


@pytest.mark.parametrize(
    ("namespace", "name", "uid", "code"),
    [
        ("ml", "a/../../secrets", UID, "claim-malformed"),
        ("..", "trainer", UID, "claim-malformed"),
        ("ml?x", "trainer", UID, "claim-malformed"),
        ("ml", "", UID, "claim-malformed"),
        ("ml", "trainer", "../x", "invalid-claim-uid"),
    ],
)
def test_names_that_lead_elsewhere_are_not_asked_for(
    server: ApiServer, namespace: str, name: str, uid: str, code: str
) -> None:
    before = len(server.asked)
    with pytest.raises(PluginError) as caught:
        ClaimReader(server.api(), driver=DRIVER, node="node-1").read(
            ClaimReference(namespace=namespace, name=name, uid=uid)
        )
    assert caught.value.problems[0].code == code
    assert len(server.asked) == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    for key, each in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(each, (*path, key))


WHOLE = claim(
    result(shareID=SHARE, consumedCapacity={"memory": "1Gi"}, adminAccess=True),
    configs=(config("FromClass", 1, "gpu"), config("FromClaim", 2)),
)


@settings(max_examples=300, deadline=None)
@given(place=st.sampled_from(sorted(places(WHOLE), key=str)), value=JSON)
def test_whatever_an_object_holds_a_claim_comes_out_or_a_refusal_with_a_code(
    place: tuple[str | int, ...], value: object
) -> None:
    item = copy.deepcopy(WHOLE)
    setting(value, *place)(item)
    reader = ClaimReader(None, driver=DRIVER, node="node-1")  # type: ignore[arg-type]  (it is not asked)
    codes: set[str] = set()
    found = None
    try:
        found = reader.claim_of(item, REFERENCE)
    except PluginError as error:
        codes = {problem.code for problem in error.problems}
    assert all(code.startswith("claim-") for code in codes)
    assert codes or found
    if found:
        assert all(each.pool == "node-1" and each.device and each.request for each in found.devices)
