from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import Device
from dra_infra.plugin.publishing.slice_writing import MANAGED_BY
from tests.e2e.plugin.conftest import NODE, plugin_api
from tests.support.plugin.publishing import (
    DRIVER,
    PATIENCE,
    BackEnd,
    device,
    inventory,
    names_of,
    pool_of,
    wait_until,
)
from tools.cluster import Api, ControlPlane
from tools.cluster.control_plane import parts

pytestmark = pytest.mark.e2e

SLICE = "resource.k8s.io/v1/ResourceSlice"
MANY = [f"gpu-{number}" for number in range(200)]


def pool(api: Api) -> list[str] | None:
    return names_of(pool_of(api.list(SLICE)))


def generations(api: Api) -> set[int]:
    return {each["spec"]["pool"]["generation"] for each in api.list(SLICE)}


def test_slices_come_back_when_the_kubelet_or_a_person_deletes_or_edits_them(
    server: ControlPlane, publish
) -> None:
    publisher, _ = publish(plugin_api(server), BackEnd(inventory(MANY)))
    assert publisher.wait(PATIENCE)
    with server.api() as api:
        assert pool(api) == MANY
        [owner] = api.list(SLICE)[0]["metadata"]["ownerReferences"]
        assert owner["uid"] == api.get("v1/Node", NODE)["metadata"]["uid"]
        # As the kubelet does at its start.
        api.request(
            "DELETE",
            "/apis/resource.k8s.io/v1/resourceslices",
            params={"fieldSelector": f"spec.nodeName={NODE}"},
        )
        wait_until(lambda: pool(api) == MANY)
        assert generations(api) == {1}
        name = api.list(SLICE)[1]["metadata"]["name"]
        api.delete(SLICE, name)
        wait_until(lambda: pool(api) == MANY)
        assert generations(api) == {1}
        spec = api.list(SLICE)[0]["spec"]
        api.patch(SLICE, api.list(SLICE)[0]["metadata"]["name"], {"spec": {"devices": spec["devices"][1:]}})
        wait_until(lambda: pool(api) == MANY)
        publisher.stop()
        assert pool(api) == MANY


def test_taints_keep_their_time_when_the_plugin_starts_anew_and_more_devices_fail(
    server: ControlPlane, publish
) -> None:
    back_end = BackEnd(inventory(["gpu-0", device("gpu-1", taint="sick")]))
    publisher, _ = publish(plugin_api(server), back_end)
    assert publisher.wait(PATIENCE)

    def times(api: Api) -> dict[str, str]:
        devices = pool_of(api.list(SLICE)) or ()
        return {each["name"]: each["taints"][0]["timeAdded"] for each in devices if "taints" in each}

    with server.api() as api:
        before = times(api)
        version = api.list(SLICE)[0]["metadata"]["resourceVersion"]
        publisher.stop()
        again, _ = publish(plugin_api(server), back_end)
        assert again.wait(PATIENCE)
        assert api.list(SLICE)[0]["metadata"]["resourceVersion"] == version
        back_end.change(inventory([device("gpu-0", taint="sick"), device("gpu-1", taint="sick")]))
        wait_until(lambda: len(times(api)) == 2)
        assert times(api)["gpu-1"] == before["gpu-1"]
        assert generations(api) == {2}


def test_amounts_in_another_spelling_are_no_change(server: ControlPlane, publish) -> None:
    odd = Device.from_manifest({"name": "gpu-0", "capacity": {"memory": {"value": "1024Mi"}}})
    offered = inventory([odd])
    with server.api() as api:
        for _ in range(2):
            publisher, observer = publish(plugin_api(server), BackEnd(offered))
            assert publisher.wait(PATIENCE)
            publisher.stop()
            assert generations(api) == {1}
            assert observer.problems == []
        [kept] = api.list(SLICE)
        assert kept["spec"]["devices"][0]["capacity"]["memory"]["value"] == "1Gi"


def test_an_api_server_that_starts_anew_finds_the_slices_as_they_should_be(
    server: ControlPlane, publish
) -> None:
    back_end = BackEnd(inventory(MANY))
    publisher, observer = publish(plugin_api(server), back_end)
    assert publisher.wait(PATIENCE)
    with server.without(parts.APISERVER):
        back_end.change(inventory(MANY[:3]))
        observer.wait_for_code("api-unreachable")
    with server.api() as api:
        wait_until(lambda: pool(api) == MANY[:3])
        api.delete(SLICE, api.list(SLICE)[0]["metadata"]["name"])
        wait_until(lambda: pool(api) == MANY[:3])


def test_the_token_of_the_node_is_enough_and_is_held_to_the_node(server: ControlPlane, publish) -> None:
    own = plugin_api(server, server.node_kubeconfig(NODE))
    back_end = BackEnd(inventory(["gpu-0"]))
    publisher, _ = publish(own, back_end)
    assert publisher.wait(PATIENCE)
    with server.api() as api:
        api.delete(SLICE, api.list(SLICE)[0]["metadata"]["name"])
        wait_until(lambda: pool(api) == ["gpu-0"])
        back_end.change(inventory(["gpu-0", "gpu-1"]))
        wait_until(lambda: pool(api) == ["gpu-0", "gpu-1"])
        api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-2"}})
    _, observer = publish(own, BackEnd(inventory(["gpu-0"])), "node-2")
    assert "node-2" in observer.wait_for_code("api-forbidden").path


def test_slices_of_another_driver_of_the_name_are_left_alone(server: ControlPlane, publish) -> None:
    pool_ = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    foreign = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "foreign"},
        "spec": {"driver": DRIVER, "nodeName": NODE, "pool": pool_, "devices": [{"name": "theirs"}]},
    }
    with server.api() as api:
        before = api.create(foreign)
        publisher, observer = publish(plugin_api(server), BackEnd(inventory(["gpu-0"])))
        observer.wait_for_code("driver-name-taken")
        assert api.list(SLICE) == [before]
        api.delete(SLICE, "foreign")
        assert publisher.wait(PATIENCE)
        [ours] = api.list(SLICE)
        assert ours["metadata"]["labels"][MANAGED_BY]


def test_what_is_refused_is_told_in_the_servers_words_and_changes_nothing(
    server: ControlPlane, publish
) -> None:
    back_end = BackEnd(inventory(["gpu-0"]))
    publisher, observer = publish(plugin_api(server), back_end)
    assert publisher.wait(PATIENCE)
    back_end.change(inventory(["gpu-0", "No_Label"]))
    problem = observer.wait_for_code("api-refused")
    assert "spec.devices[1].name" in problem.message
    with server.api() as api:
        assert pool(api) == ["gpu-0"]
        assert observer.problems == []


def test_a_device_that_is_gone_is_taken_out_though_the_others_are_refused(
    server: ControlPlane, publish
) -> None:
    back_end = BackEnd(inventory(MANY))
    publisher, observer = publish(plugin_api(server), back_end)
    assert publisher.wait(PATIENCE)
    with server.api() as api:
        back_end.change(inventory([*MANY[1:-1], "No_Label"]))
        wait_until(lambda: pool(api) == MANY[1:-1])
        observer.wait_for_code("devices-withdrawn")
        back_end.change(inventory([]))
        wait_until(lambda: pool(api) == [])
        # The surplus one goes behind the update.
        wait_until(lambda: len(api.list(SLICE)) == 1)
        [empty] = api.list(SLICE)
        assert empty["spec"]["pool"]["resourceSliceCount"] == 1
        back_end.change(inventory(["gpu-0"]))
        wait_until(lambda: pool(api) == ["gpu-0"])
