from __future__ import annotations

import itertools
import json
import time as real_time
from typing import Any

import pytest

from dra_infra.errors import ForgeError, Problem
from dra_infra.forge import forges
from dra_infra.forge.comments import keep_one, look
from tests.support.forge.local_forge import LocalForge, Reply, serving
from tests.unit.forge.conftest import MARKER, TOKEN, Time, connect, message

SECONDARY = json.dumps({"message": "You have exceeded a secondary rate limit. Please wait a few minutes."})


def refused(forge: LocalForge, time: Time, kind: str = "github", **options: Any) -> Problem:
    with pytest.raises(ForgeError) as error:
        keep_one(connect(forge, time, kind, **options), message())
    (problem,) = error.value.problems
    assert forge.comments == []
    return problem


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [
        (401, "forge-unauthorized", "expired"),
        (403, "forge-forbidden", "permission"),
        (404, "forge-not-found", "--repository and --number"),
        (410, "forge-not-found", "--repository and --number"),
        (422, "forge-refused", "words"),
        (451, "forge-refused", "words"),
    ],
)
def test_a_refusal_says_what_to_do_and_is_not_repeated(
    forge: LocalForge, time: Time, status: int, code: str, hint: str
):
    forge.fail("POST", "", Reply(status, json.dumps({"message": "the forge's own words"})))
    problem = refused(forge, time)
    assert (problem.path, problem.code) == ("GitHub team/infra#42", code)
    assert hint in problem.hint
    assert "the forge's own words" in problem.message
    assert (forge.methods("POST"), time.pauses) == (["POST"], [])


def test_the_hint_for_403_names_the_permission_of_each_forge(forge: LocalForge, time: Time, kind: str):
    forge.fail("GET", "/42/", Reply(403, '{"message": "insufficient_scope"}'))
    hint = refused(forge, time, kind).hint
    assert ("pull-requests: write" if kind == "github" else "scope `api`") in hint


def test_a_forge_that_recovers_is_asked_again_with_growing_pauses(forge: LocalForge, time: Time, kind: str):
    forge.fail("GET", "/42/", Reply(503, "<html>busy</html>"), times=4)
    assert keep_one(connect(forge, time, kind), message()).action == "created"
    assert time.pauses == [0.5, 1.0, 2.0, 4.0]


def test_a_forge_that_stays_broken_is_given_up(forge: LocalForge, time: Time, kind: str):
    forge.fail("GET", "/42/", Reply(500, "<html>busy</html>"))
    assert refused(forge, time, kind).code == "forge-unavailable"
    assert len(time.pauses) == 5


def test_retry_after_is_waited_for_also_before_a_creation(forge: LocalForge, time: Time, kind: str):
    forge.fail("POST", "", Reply(429, "{}", {"Retry-After": "37"}), times=1)
    assert keep_one(connect(forge, time, kind), message()).action == "created"
    assert time.pauses == [37.0]


def test_a_secondary_limit_without_a_time_is_waited_for_a_minute(forge: LocalForge, time: Time):
    forge.fail("POST", "", Reply(403, SECONDARY), times=2)
    assert keep_one(connect(forge, time), message()).action == "created"
    assert time.pauses == [60.0, 120.0]


def test_a_limit_with_a_reset_is_waited_for_until_then(forge: LocalForge, time: Time):
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.now) + 90)}
    forge.fail("GET", "/42/", Reply(403, '{"message": "API limit exceeded"}', headers), times=1)
    keep_one(connect(forge, time), message())
    assert time.pauses == [90.0]


@pytest.mark.parametrize(
    "headers", [{"Retry-After": "3600"}, {"Retry-After": "Sun, 01 Jan 2040 00:00:00 GMT"}]
)
def test_a_limit_that_outlasts_the_time_is_said_at_once(
    forge: LocalForge, time: Time, headers: dict[str, str]
):
    forge.fail("GET", "/42/", Reply(429, SECONDARY, headers))
    problem = refused(forge, time)
    assert problem.code == "forge-rate-limited"
    assert "--timeout" in problem.hint
    assert time.pauses == []


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (200, "<!doctype html><title>Sign in</title>"),
        (200, '[{"id": 1, "body": "'),
        (200, "[" * 200_000),
        (200, '{"message": "an object"}'),
        (200, "null"),
        (200, ""),
        (304, ""),
    ],
)
def test_what_is_not_the_api_is_said(forge: LocalForge, time: Time, kind: str, status: int, text: str):
    forge.fail("GET", "/42/", Reply(status, text))
    problem = refused(forge, time, kind)
    assert problem.code == "forge-answer"
    assert "/api/v" in problem.hint


def test_a_redirect_on_the_same_host_is_followed(forge: LocalForge, time: Time):
    there = f"{forge.github}/repos/{forge.repository}/issues/42/comments"
    for method in ("GET", "POST"):
        query = "?per_page=100&page=1" if method == "GET" else ""
        forge.fail(method, "/42/", Reply(307, "", {"Location": there + query}), times=1)
    assert keep_one(connect(forge, time), message()).action == "created"


def test_a_redirect_to_another_host_is_not_followed(forge: LocalForge, time: Time, kind: str):
    with serving(LocalForge(accounts=dict(forge.accounts))) as other:
        forge.fail("GET", "/42/", Reply(302, "", {"Location": f"{other.address}/steal?{TOKEN}"}))
        problem = refused(forge, time, kind)
        assert problem.code == "forge-answer"
        assert other.asked == []
    assert TOKEN not in str(problem)


def test_a_redirect_in_a_circle_ends(forge: LocalForge, time: Time):
    forge.fail("GET", "/42/", Reply(302, "", {"Location": f"{forge.github}/repos/x/42/"}))
    assert refused(forge, time).code == "forge-answer"


def test_a_list_that_repeats_its_first_page_for_ever_ends(forge: LocalForge, time: Time, kind: str):
    page = json.dumps([{"id": number, "body": "text"} for number in range(1, 101)])
    forge.fail("GET", "/42/", Reply(200, page, {"x-next-page": "2", "Link": '</x>; rel="next"'}))
    assert look(connect(forge, time, kind), message()).action == "would-create"
    assert len([asked for asked in forge.asked if "/42/" in asked.path]) == 2


def drip(handler: Any) -> None:
    """A byte every 20 ms, for as long as somebody listens."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
    try:
        while True:
            handler.wfile.write(b" ")
            handler.wfile.flush()
            real_time.sleep(0.02)  # the server is slow, the test waits for nothing
    except OSError:
        return


def test_a_body_that_does_not_end_is_left(forge: LocalForge):
    forge.fail("GET", "/42/", Reply(200, drip))
    started = real_time.monotonic()
    clock = Time()
    clock.read = real_time.monotonic  # type: ignore[method-assign]
    assert refused(forge, clock, total=0.5).code == "forge-unavailable"
    assert real_time.monotonic() - started < 60


def test_headers_that_do_not_end_are_left(forge: LocalForge):
    def slow(handler: Any) -> None:
        try:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while True:
                handler.wfile.write(b"x")
                handler.wfile.flush()
                real_time.sleep(0.01)  # the server is slow, the test waits for nothing
        except OSError:
            return

    forge.fail("GET", "/42/", Reply(200, slow))
    clock = Time()
    clock.read = real_time.monotonic  # type: ignore[method-assign]
    assert refused(forge, clock, total=0.5).code == "forge-unavailable"
    # On a busy machine the time may be over before the first question.
    assert len([asked for asked in forge.asked if "/42/" in asked.path]) <= 1


def test_pages_with_ever_new_comments_end(forge: LocalForge, time: Time, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(forges, "MOST_PAGES", 10)
    numbers = itertools.count(1)

    def endless(handler: Any) -> None:
        body = json.dumps([{"id": next(numbers), "body": "x"}]).encode()
        head = f'HTTP/1.1 200 OK\r\nLink: </x>; rel="next"\r\nContent-Length: {len(body)}\r\n\r\n'
        handler.wfile.write(head.encode() + body)

    forge.fail("GET", "/42/", Reply(200, endless))
    assert refused(forge, time).code == "forge-answer"
    assert next(numbers) == 11


def test_a_connection_that_is_cut_is_tried_again(forge: LocalForge, time: Time, kind: str):
    def cut(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n[")

    forge.fail("GET", "/42/", Reply(200, lambda handler: handler.wfile.write(b"garbage\r\n\r\n")), times=1)
    assert keep_one(connect(forge, time, kind), message()).action == "created"
    forge.fail("GET", "/42/", Reply(200, cut), times=1)
    assert keep_one(connect(forge, time, kind), message()).action == "unchanged"
    assert len(time.pauses) == 2


def test_an_answer_that_is_too_large_is_left(forge: LocalForge, time: Time):
    def flood(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 40000000\r\n\r\n")
        try:
            for _ in range(40):
                handler.wfile.write(b" " * 1_000_000)
        except OSError:
            return

    forge.fail("GET", "/42/", Reply(200, flood))
    assert refused(forge, time).code == "forge-answer"


def test_nobody_listening_is_said(time: Time, kind: str):
    with serving(LocalForge()) as forge:
        pass
    problem = refused(forge, time, kind)
    assert problem.code == "forge-unavailable"
    assert "cannot be reached" in problem.message


def test_a_passing_error_of_the_account_question_is_repeated(forge: LocalForge, time: Time, kind: str):
    forge.fail("GET", "/user", Reply(502, ""), times=1)
    assert keep_one(connect(forge, time, kind), message()).action == "created"


def test_an_account_without_a_name_is_not_taken_for_everybody(forge: LocalForge, time: Time):
    forge.put(f"{MARKER}\nold", author="")
    forge.fail("GET", "/user", Reply(200, "[]"))
    with pytest.raises(ForgeError) as error:
        keep_one(connect(forge, time, "gitlab"), message())
    assert error.value.problems[0].code == "forge-answer"


def test_a_request_without_a_token_says_which_variable_to_set(forge: LocalForge, time: Time, kind: str):
    problem = refused(forge, time, kind, token="")
    assert problem.code == "forge-unauthorized"
    assert f"{kind.upper()}_TOKEN" in problem.hint
