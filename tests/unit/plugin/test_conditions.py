from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dra_infra.plugin.api_server.binding import results_of, to_write


@dataclass(frozen=True)
class Said:
    state: Literal["met", "failed"]
    message: str = ""


def result(device: str, **more: Any) -> dict[str, Any]:
    return {
        "driver": "d",
        "pool": "p",
        "device": device,
        "bindingConditions": ["attached", "ready"],
        "bindingFailureConditions": ["failed"],
        **more,
    }


def entry(device: str, *types: str, status: str = "True", **more: str) -> dict[str, Any]:
    conditions = [{"type": each, "status": status, "message": "before"} for each in types]
    return {"driver": "d", "pool": "p", "device": device, "conditions": conditions, **more}


def claim(results: list[dict[str, Any]], *entries: dict[str, Any]) -> dict[str, Any]:
    return {"status": {"allocation": {"devices": {"results": results}}, "devices": list(entries)}}


def written(found: dict[str, Any], **said: Said) -> dict[str, list[tuple[str, str]]]:
    entries = to_write(found, results_of(found, driver="d", pool="p"), said.get)
    return {each["device"]: [(one["type"], one["message"]) for one in each["conditions"]] for each in entries}


def test_what_was_said_before_is_said_again_for_it_would_be_taken_back() -> None:
    found = claim([result("a"), result("b")], entry("a", "attached", "ready"))
    assert written(found, b=Said("failed", "no room")) == {
        "a": [("attached", "before"), ("ready", "before")],
        "b": [("failed", "no room")],
    }


def test_where_nothing_is_new_nothing_is_written() -> None:
    found = claim([result("a"), result("b")], entry("a", "attached", "ready"))
    assert written(found) == {}
    assert written(found, a=Said("met", "another message")) == {}


def test_what_was_said_first_of_a_device_stays() -> None:
    found = claim([result("a"), result("b")], entry("a", "attached", "ready"), entry("b", "failed"))
    assert written(found, a=Said("failed"), b=Said("met")) == {}


def test_what_is_lacking_of_several_conditions_is_added() -> None:
    found = claim([result("a")], entry("a", "attached"))
    assert written(found, a=Said("met", "now")) == {"a": [("attached", "before"), ("ready", "now")]}


def test_what_others_say_is_left_to_them() -> None:
    found = claim([result("a")], entry("a", "Ready"), entry("a", "ready", driver="other"))
    assert written(found, a=Said("met", "now")) == {"a": [("attached", "now"), ("ready", "now")]}
    unsure = claim([result("a")], entry("a", "ready", status="False"))
    assert written(unsure, a=Said("failed", "now")) == {"a": [("failed", "now")]}


def test_a_device_that_is_there_for_two_requests_has_one_entry() -> None:
    found = claim([result("a", request="use"), result("a", request="watch"), result("a", shareID="s")])
    entries = to_write(found, results_of(found, driver="d", pool="p"), {"a": Said("met")}.get)
    assert [each.get("shareID") for each in entries] == [None, "s"]


def test_devices_of_others_and_without_conditions_are_not_waited_for() -> None:
    found = claim([result("a", driver="x"), result("b", pool="x"), result("c", bindingConditions=[])])
    assert results_of(found, driver="d", pool="p") == []
