from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from dra_infra.client.kinds import CLAIMS, NODES, SLICES
from dra_infra.client.kubeconfig import Account, User
from dra_infra.client.transport import read_retry_after
from dra_infra.errors import PluginError
from dra_infra.plugin.api_server import requests
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.api_server.refusals import ApiError
from tests.support.plugin import api_server
from tests.support.plugin.api_server import ApiServer, Clock, Handler, serving


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with serving() as made:
        made.store.create("nodes", "", {"metadata": {"name": "node-1"}})
        yield made


def slice_of(name: str = "a", driver: str = "gpu.example.com") -> dict[str, object]:
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    return {"metadata": {"name": name}, "spec": {"driver": driver, "nodeName": "node-1", "pool": pool}}


def refusal(call, *arguments: object, **options: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call(*arguments, **options)
    return caught.value


def test_objects_are_made_read_changed_and_deleted(server: ApiServer) -> None:
    api = server.api()
    made = api.create(SLICES, slice_of())
    assert made["apiVersion"] == "resource.k8s.io/v1"
    assert api.get(SLICES, "a") == made
    changed = api.update(SLICES, {**made, "spec": {**made["spec"], "devices": []}})
    assert refusal(api.update, SLICES, made).status == 409
    items, version = api.list(SLICES, field_selector="spec.driver=gpu.example.com")
    assert (items, version) == ([changed], str(server.store.version))
    assert api.list(SLICES, field_selector="spec.driver=other")[0] == []
    assert refusal(api.delete, SLICES, made).status == 409
    api.delete(SLICES, changed)
    api.delete(SLICES, changed)
    assert api.get(SLICES, "a") is None


def test_long_lists_come_in_pages(server: ApiServer) -> None:
    for number in range(501):
        server.store.create("resourceslices", "", slice_of(f"slice-{number:03}"))
    assert len(server.api().list(SLICES)[0]) == 501
    kept, _ = server.api().list(SLICES, keep=lambda item: item["metadata"]["name"].endswith("0"))
    assert len(kept) == 51


def test_a_dry_run_writes_nothing(server: ApiServer) -> None:
    api = server.api()
    assert api.create(SLICES, slice_of(), dry_run=True)["metadata"]["uid"]
    assert api.get(SLICES, "a") is None


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_the_version_that_is_served_is_found_once_and_objects_are_in_the_shape_of_v1(
    server: ApiServer, version: str
) -> None:
    server.versions = [version]
    api = server.api()
    whole = slice_of()
    whole["spec"]["devices"] = [{"name": "gpu-0", "attributes": {"index": {"int": 0}}}]  # type: ignore[index]
    made = api.create(SLICES, whole)
    assert made["spec"]["devices"] == whole["spec"]["devices"]  # type: ignore[index]
    stored = server.store.get("resourceslices", "", "a")
    assert ("basic" in stored["spec"]["devices"][0]) == (version == "v1beta1")
    assert stored["apiVersion"] == f"resource.k8s.io/{version}"
    api.get(SLICES, "a")
    assert [path for _, path, _ in server.asked].count(f"/apis/resource.k8s.io/{version}") == 1


def test_another_version_after_an_upgrade_is_found(server: ApiServer) -> None:
    server.versions = ["v1beta2"]
    api = server.api()
    api.list(SLICES)
    server.versions = ["v1"]
    assert refusal(api.list, SLICES).status == 404
    assert api.list(SLICES)[0] == []


def test_a_server_without_dra_is_told(server: ApiServer) -> None:
    server.versions = []
    assert refusal(server.api().list, SLICES).problems[0].code == "kind-not-served"


@pytest.mark.parametrize(("minor", "number"), [("37", 37), ("34+", 34)])
def test_the_minor_is_found(server: ApiServer, minor: str, number: int) -> None:
    server.minor = minor
    assert server.api().minor() == number


def test_a_server_of_another_release_is_noticed_where_it_was_asked_before(server: ApiServer) -> None:
    api = server.api()
    assert not api.is_another()
    assert api.minor() == 37
    assert not api.is_another()
    server.minor = "38"
    server.refuse = lambda _method, _path: 503
    assert not api.is_another()
    server.refuse = lambda _method, _path: None
    assert api.minor() == 37
    assert api.is_another()
    assert api.minor() == 38
    assert not api.is_another()


def test_a_busy_server_is_asked_again_for_what_changes_nothing(server: ApiServer) -> None:
    answers = [503, 429, 500]
    server.refuse = lambda _method, path: answers.pop() if answers and path.endswith("node-1") else None
    assert server.api(clock=Clock()).get(NODES, "node-1") is not None


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_server_gets_the_time_that_it_asks_for(server: ApiServer, method: str) -> None:
    answers = [429, 429]
    server.refuse = lambda asked, _path: answers.pop() if answers and asked == method else None
    server.retry_after = "3"
    clock = Clock()
    api = server.api(clock=clock)
    if method == "GET":
        api.get(NODES, "node-1")
    else:
        api.create(SLICES, slice_of())
    assert len(clock.waits) == 2
    assert all(3.0 < each <= 3.0 + 1.0 for each in clock.waits)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("method", ["GET", "POST", "watch"])
def test_a_server_that_asks_for_more_time_than_a_call_has_is_left_alone_at_once(
    server: ApiServer, status: int, method: str
) -> None:
    api = server.api(clock=(clock := Clock()))
    _, since = api.list(SLICES)
    server.refuse = lambda _method, _path: status
    server.retry_after = "40"
    asked = {
        "GET": lambda: api.list(SLICES),
        "POST": lambda: api.create(SLICES, slice_of()),
        "watch": lambda: list(api.watch(SLICES, since)),
    }
    error = refusal(asked[method])
    assert (error.status, error.retry_after, clock.waits) == (status, 40.0, [])


@pytest.mark.parametrize("odd", ["-3", "soon", "Sun, 22 Nov 2026 04:00:00 GMT", "٣", ""])
def test_what_a_server_asks_for_in_another_way_is_nothing(server: ApiServer, odd: str) -> None:
    server.refuse = lambda method, _path: 503 if method == "POST" else None
    server.retry_after = odd if odd.isascii() else ""
    assert refusal(server.api().create, SLICES, slice_of()).retry_after == 0.0
    assert read_retry_after(odd) == 0.0


def test_a_server_that_stays_busy_is_given_up(server: ApiServer) -> None:
    server.refuse = lambda _method, _path: 503
    clock = Clock()
    assert refusal(server.api(clock=clock).get, NODES, "node-1").status == 503
    assert 5.0 < clock.now <= 15.0


def test_what_may_have_been_written_is_not_written_again(server: ApiServer) -> None:
    server.refuse = lambda method, _path: 500 if method == "POST" else None
    error = refusal(server.api().create, SLICES, slice_of())
    assert (error.status, error.problems[0].code) == (500, "api-unreachable")
    assert len(server.writes()) == 1
    tries = [429]
    server.refuse = lambda method, _path: tries.pop() if method == "POST" and tries else None
    server.api(clock=Clock()).create(SLICES, slice_of())


def test_a_right_that_is_lacking_is_named_with_the_line_to_write(server: ApiServer) -> None:
    server.refuse = lambda method, _path: 403 if method == "DELETE" else None
    [problem] = refusal(server.api().delete, SLICES, slice_of()).problems
    assert (problem.code, problem.path) == ("api-forbidden", "delete ResourceSlice a")
    assert 'resources: ["resourceslices"], verbs: ["delete"]' in problem.hint


def test_a_refusal_is_told_in_the_servers_words(server: ApiServer) -> None:
    whole = slice_of()
    whole["spec"]["devices"] = [{"name": "refused"}]  # type: ignore[index]
    [problem] = refusal(server.api().create, SLICES, whole).problems
    assert problem.code == "api-refused"
    assert "spec.devices: Invalid value" in problem.message


def test_nobody_at_the_address_is_told() -> None:
    clock = Clock()
    api = Api(Account(name="n", server="http://127.0.0.1:9"), {}, clock=clock, wait=clock.wait)
    [problem] = refusal(api.get, NODES, "node-1").problems
    assert (problem.code, problem.path) == ("api-unreachable", "get Node node-1")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_answer_that_comes_byte_by_byte_is_left_in_time(
    server: ApiServer, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = server.api(clock=(clock := Clock()))
    api.list(SLICES)
    monkeypatch.setattr(requests, "_TOTAL_TIMEOUT", 0.3)
    monkeypatch.setattr(api_server.Handler, "send", drip)
    error = refusal(api.get, NODES, "node-1") if method == "GET" else refusal(api.create, SLICES, slice_of())
    assert [each.code for each in error.problems] == ["api-unreachable"]
    assert "is not complete after 0.3 s" in str(error)
    assert bool(clock.waits) == (method == "GET")


def test_a_refusal_of_a_watch_that_comes_byte_by_byte_is_left_in_time(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = server.api().watch(SLICES, "1")
    monkeypatch.setattr(watching, "_seconds", 0.3)
    monkeypatch.setattr(api_server.Handler, "do_GET", lambda handler: drip(handler, status=403))
    error = refusal(list, watching)
    assert "is not complete after 0.3 s" in str(error)


def drip(handler: api_server.Handler, *_: object, status: int = 200) -> None:
    """Send a byte each 20 ms, until the client goes."""
    handler.send_response(status)
    handler.send_header("Content-Length", "500")
    handler.end_headers()
    pace = threading.Event()
    with suppress(OSError):
        while not handler.server_of_test.ended and not pace.wait(0.02):
            handler.wfile.write(b" ")


def test_a_token_of_a_pod_is_read_again_when_it_is_another(server: ApiServer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    server.token = "first"
    api = server.api(User(token_file=file))
    api.list(SLICES)
    server.token = "second"
    assert refusal(api.list, SLICES).problems[0].code == "api-unauthorized"
    file.write_text("second\n")
    results: list[object] = []
    threads = [threading.Thread(target=lambda: results.append(api.list(SLICES)[0])) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == [[]] * 8


def test_a_token_that_is_not_there_is_told(tmp_path: Path) -> None:
    account = Account(name="in-cluster", server="http://127.0.0.1:9", user=User(token_file=tmp_path / "none"))
    with pytest.raises(PluginError) as caught:
        Api(account, {})
    assert caught.value.problems[0].code == "api-no-credentials"


def test_a_watch_tells_what_happens_until_it_is_stopped(server: ApiServer) -> None:
    api = server.api()
    _, since = api.list(SLICES)
    watching = api.watch(SLICES, since, field_selector="spec.driver=gpu.example.com")
    events: list[tuple[str, str]] = []
    both = threading.Event()

    def follow() -> None:
        for type_, item in watching:
            events.append((type_, item["metadata"]["name"]))
            if len(events) == 2:
                both.set()

    thread = threading.Thread(target=follow)
    thread.start()
    api.create(SLICES, slice_of("other", "other"))
    api.delete(SLICES, api.create(SLICES, slice_of()))
    assert both.wait(60)
    watching.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert events == [("ADDED", "a"), ("DELETED", "a")]


def test_a_watch_that_is_too_old_is_told(server: ApiServer) -> None:
    api = server.api()
    _, since = api.list(CLAIMS)
    server.store.create("nodes", "", {"metadata": {"name": "node-2"}})
    server.store.forget()
    assert refusal(lambda: list(api.watch(CLAIMS, since))).status == 410


def test_a_page_that_is_too_large_is_asked_for_in_smaller_ones(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(requests, "LARGEST", 200_000)
    for number in range(40):
        item = {"metadata": {"name": f"slice-{number}"}, "spec": {"x": "a" * 9000}}
        server.store.create("resourceslices", "", item)
    items, _ = server.api().list(SLICES)
    assert len(items) == 40
    limits = [query["limit"] for _, path, query in server.asked if path.endswith("/resourceslices")]
    assert limits == ["100", *["10"] * 4]


def test_an_object_that_is_too_large_is_asked_for_once(server: ApiServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(requests, "LARGEST", 10_000)
    server.store.create("resourceclaims", "ml", {"metadata": {"name": "claim"}, "spec": {"x": "a" * 20_000}})
    error = refusal(server.api().get, CLAIMS, "claim", "ml")
    assert error.problems[0].code == "api-unreachable"
    assert sum(path.endswith("/claim") for _, path, _ in server.asked) == 1


def test_pages_without_an_end_are_left(server: ApiServer):
    items = [{"metadata": {"name": f"slice-{number}"}, "spec": {"x": "a" * 4000}} for number in range(100)]
    page = {"items": items, "metadata": {"resourceVersion": "1", "continue": "more"}}

    def lie(_method: str, path: str, _query: Mapping[str, str]) -> Callable[[Handler], None] | None:
        return (lambda handler: handler.send(200, page)) if path.endswith("/resourceslices") else None

    server.lie = lie
    assert refusal(server.api().list, SLICES).problems[0].code == "api-refused"
    assert sum(path.endswith("/resourceslices") for _, path, _ in server.asked) < 100


def test_a_head_that_is_too_large_is_left(server: ApiServer):
    def write(handler: Handler) -> None:
        handler.send_response(200)
        for number in range(90):
            handler.send_header(f"X-{number}", "a" * 65_000)
        handler.end_headers()

    server.lie = lambda _method, path, _query: write if path == "/version" else None
    assert refusal(server.api(clock=Clock()).minor).problems[0].code == "api-unreachable"
