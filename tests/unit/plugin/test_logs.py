"""The log: one line each, with its operation, and nothing secret or forged in it."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import ClaimReference
from dra_infra.plugin.command import logs
from dra_infra.plugin.command.operation_log import Observers, OperationLog
from dra_infra.plugin.observing import Observer, Operation

CLAIM = ClaimReference(namespace="ml", name="train", uid="00000001-0000-4000-8000-0000000000ab")
PROBLEM = Problem(path="device gpu-0", code="device-held", message="is prepared for b", hint="wait")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.handlers[:], root.level, logs.LOG.level)
    hooks = (sys.excepthook, threading.excepthook, sys.unraisablehook)
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = before[:2]
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    logs.LOG.setLevel(before[2])
    logs.set_context({})


def start(
    log_format: str = "json", level: str = "info", stream: io.StringIO | None = None, **environment: str
) -> io.StringIO:
    stream = stream or io.StringIO()
    logs.set_up(log_format=log_format, level=level, environment=environment, stream=stream)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_time_level_message_and_fields():
    stream = start()
    logs.log("warning", "published", slices=2)
    (line,) = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {"level": "warning", "message": "published", "slices": 2}


def test_it_is_json_where_no_terminal_is_and_text_on_one():
    assert start(log_format="").getvalue() == ""
    piped = start(log_format="")
    terminal = None
    logs.log("info", "hello")
    assert json.loads(piped.getvalue())["message"] == "hello"
    terminal = start(log_format="", stream=Terminal())
    logs.log("error", "hello")
    assert "\x1b[31mERROR  \x1b[0m hello" in terminal.getvalue()


def test_there_is_colour_on_a_terminal_alone_and_not_where_nobody_wants_it():
    for stream, environment in ((io.StringIO(), {}), (Terminal(), {"NO_COLOR": "1"})):
        start(log_format="text", stream=stream, **environment)
        logs.log("error", "hello")
        assert "\x1b" not in stream.getvalue()


def test_every_line_of_an_operation_names_it_and_its_claim():
    stream = start(level="debug")
    operation = Operation(kind="prepare", claim=CLAIM)
    log = OperationLog()
    log.began(operation)
    logs.log("info", "of a back end")
    log.ended(operation, seconds=0.0123456789, error=None)
    logs.log("info", "afterwards")
    *within, after = lines(stream)
    assert [line["message"] for line in within] == ["prepare begins", "of a back end", "prepared"]
    for line in within:
        assert (line["operation"], line["namespace"], line["claim"], line["uid"]) == (
            operation.id,
            "ml",
            "train",
            CLAIM.uid,
        )
    assert within[-1]["seconds"] == 0.012346
    assert "operation" not in after


def test_a_failed_operation_has_a_line_for_each_problem():
    stream = start()
    second = Problem(path="device gpu-1", code="cdi-refused", message="changes nothing")
    OperationLog().ended(
        Operation(kind="release", claim=CLAIM), seconds=1, error=PluginError([PROBLEM, second])
    )
    assert [(line["level"], line["message"], line["code"], line.get("hint")) for line in lines(stream)] == [
        ("warning", "release failed", "device-held", "wait"),
        ("warning", "release failed", "cdi-refused", None),
    ]


def test_what_nobody_expected_is_told_with_its_trace():
    stream = start()
    error = PluginError([Problem(path="x", code="plugin-failed", message="failed")])
    with pytest.raises(ZeroDivisionError) as raised:
        _ = 1 / 0
    error.__cause__ = raised.value
    OperationLog().ended(Operation(kind="prepare", claim=CLAIM), seconds=1, error=error)
    warning, line = lines(stream)
    assert (warning["level"], line["level"]) == ("warning", "error")
    assert line["error"] == "ZeroDivisionError: division by zero"
    assert "test_logs.py" in line["trace"]


def test_levels_below_the_one_that_is_asked_for_are_not_written():
    stream = start(level="warning")
    OperationLog().ended(Operation(kind="prepare", claim=CLAIM), seconds=1, error=None)
    OperationLog().noticed([PROBLEM])
    assert [line["level"] for line in lines(stream)] == ["error"]


def test_of_libraries_only_what_is_wrong_is_written_and_it_is_named():
    stream = start()
    logging.getLogger("urllib3").info("connecting")
    logging.getLogger("urllib3").warning("retrying")
    assert [(line["library"], line["message"]) for line in lines(stream)] == [("urllib3", "retrying")]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_secret_of_the_environment_is_in_a_line(log_format: str):
    stream = start(log_format=log_format, API_TOKEN="hunter2-hunter2")
    logs.log("info", "sent hunter2-hunter2", address="https://me:password@host/")
    logs.log_error("error", "failed", ValueError("hunter2-hunter2"))
    assert "hunter2" not in stream.getvalue()
    assert "password" not in stream.getvalue()


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_name_cannot_forge_a_line(log_format: str):
    stream = start(log_format=log_format)
    hostile = ClaimReference(namespace="a\nlevel=error", name="\x1b[2J" + "x" * 10_000, uid='"')
    OperationLog().ended(Operation(kind="prepare", claim=hostile), seconds=1, error=None)
    logs.log("info", "a\nb")
    text = stream.getvalue()
    assert len(text.splitlines()) == 2
    assert "\x1b" not in text
    assert len(text) < 1000


def test_each_observer_is_told_although_another_fails():
    stream = start()

    class Failing(Observer):
        def registered(self, *, registered: bool, text: str) -> None:
            raise RuntimeError(text)

    Observers(Failing(), OperationLog()).registered(registered=False, text="no such version")
    failed, told = lines(stream)
    assert (failed["message"], failed["error"]) == ("an observer failed", "RuntimeError: no such version")
    assert (told["level"], told["reason"]) == ("error", "no such version")


def test_everything_that_is_observed_has_a_line():
    stream = start(level="debug")
    observers = Observers(OperationLog())
    operation = Operation(kind="release", claim=CLAIM)
    observers.began(operation)
    observers.ended(operation, seconds=0.1, error=None)
    observers.registered(registered=True, text="")
    observers.published(slices=2, generation=3, error=None)
    observers.published(slices=2, generation=3, error=PluginError([PROBLEM]))
    observers.devices({"healthy": 7, "unhealthy": 1})
    observers.reconciled(prepared=3, released=1, restored=0)
    observers.noticed([PROBLEM])
    observers.malformed(method="Health/Check", peer="unix:")
    assert [(line["level"], line["message"]) for line in lines(stream)] == [
        ("debug", "release begins"),
        ("info", "released"),
        ("info", "registered at the kubelet"),
        ("info", "published"),
        ("warning", "not published yet"),
        ("warning", "devices"),
        ("warning", "compared with the claims of the API server"),
        ("error", "noticed"),
        ("warning", "a request is malformed"),
    ]


def test_what_nobody_catches_is_a_line_as_well():
    stream = start()

    class Odd:
        def __del__(self) -> None:
            raise ValueError("while it went")

    thread = threading.Thread(target=lambda: 1 / 0, name="worker")
    thread.start()
    thread.join()
    Odd()
    with pytest.raises(KeyError) as raised:
        _ = {}["of the first thread"]
    sys.excepthook(KeyError, raised.value, raised.tb)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    found = lines(stream)
    assert [each.get("error") for each in found[:3]] == [
        "ZeroDivisionError: division by zero",
        "ValueError: while it went",
        "KeyError: 'of the first thread'",
    ]
    assert found[0]["thread"] == "worker"
    assert all("Traceback" in each["trace"] for each in found[:3])
    assert found[3]["library"] == "py.warnings"


def test_what_strangers_bring_about_is_told_some_times_a_minute(monkeypatch: pytest.MonkeyPatch):
    now = 0.0
    monkeypatch.setattr(logs.time, "monotonic", lambda: now)
    stream = start()
    for number in range(100):
        logs.log("warning", "ended a connection", peer=f"10.0.0.{number}")
        logging.getLogger("asyncio").error("odd: %s", number)
        logs.log("info", "prepared")
    found = [each["message"].partition(":")[0] for each in lines(stream)]
    assert [found.count(each) for each in ("ended a connection", "odd", "prepared")] == [20, 20, 100]
    now = 61.0
    logs.log("warning", "ended a connection", peer="10.0.0.1")
    assert lines(stream)[-1]["left_out"] == 80
    logs.log("warning", "ended a connection", peer="10.0.0.1")
    assert "left_out" not in lines(stream)[-1]


def test_a_statement_of_a_library_that_strangers_repeat_silences_no_other(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logs.time, "monotonic", lambda: 0.0)
    stream = start()
    library = logging.getLogger("grpc._cython.cygrpc")
    for number in range(100):
        library.error("a stranger's %s", number)
        library.error(f"a stranger's own words, {number}")
    library.error("the socket is gone: %s", "none")
    library.error("the event loop hangs")
    found = [each["message"] for each in lines(stream)]
    assert sum("own words" in each for each in found) == sum("stranger's" in each for each in found) / 2 == 20
    assert found[-2:] == ["the socket is gone: none", "the event loop hangs"]


def test_a_request_that_is_malformed_is_a_line_without_a_trace():
    stream = start()
    Observers(OperationLog()).malformed(method="Health/Check", peer="unix:")
    (line,) = lines(stream)
    assert (line["level"], line["message"], line["method"]) == (
        "warning",
        "a request is malformed",
        "Health/Check",
    )
    assert "trace" not in line
