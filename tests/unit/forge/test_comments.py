from __future__ import annotations

import threading

import pytest

from dra_infra.errors import ForgeError
from dra_infra.forge.comments import keep_one, look
from dra_infra.forge.forges import Account
from tests.support.forge.local_forge import Asked, LocalForge, Reply
from tests.unit.forge.conftest import BOT_TOKEN, MARKER, TOKEN, Time, connect, message


def test_the_first_run_creates_one_comment(forge: LocalForge, time: Time, kind: str):
    forge.put("looks good to me", author="somebody")
    outcome = keep_one(connect(forge, time, kind), message())
    assert (outcome.action, forge.bodies()) == ("created", ["looks good to me", message().body])


def test_the_next_run_changes_that_comment(forge: LocalForge, time: Time, kind: str):
    first = keep_one(connect(forge, time, kind), message())
    second = keep_one(connect(forge, time, kind), message("### 1 danger\n"))
    assert (second.action, second.identifier) == ("updated", first.identifier)
    assert forge.bodies() == [message("### 1 danger\n").body]


def test_a_run_that_says_the_same_writes_nothing(forge: LocalForge, time: Time, kind: str):
    forge.put(message().body.replace("\n", "\r\n").rstrip(), author="reviewer")
    assert keep_one(connect(forge, time, kind), message()).action == "unchanged"
    assert forge.methods() == []


def test_the_comment_is_found_on_the_last_of_300_pages(forge: LocalForge, time: Time, kind: str):
    for number in range(29_950):
        forge.put(f"comment {number}", author="somebody")
    forge.put(message("old").body, author="reviewer")
    outcome = keep_one(connect(forge, time, kind), message())
    assert outcome.action == "updated"
    assert len(forge.asked) == 302  # who we are, 300 pages, the change
    assert forge.comments[-1]["body"] == message().body
    assert not any("elsewhere" in asked.path for asked in forge.asked)


@pytest.mark.parametrize("text", ["old", "> quoted\n"])
def test_a_marker_of_another_account_is_left_alone(forge: LocalForge, time: Time, kind: str, text: str):
    theirs = message(text).body
    forge.put(theirs, author="mallory")
    assert keep_one(connect(forge, time, kind), message()).action == "created"
    assert forge.bodies() == [theirs, message().body]


def test_a_quote_of_the_comment_and_another_review_are_left_alone(forge: LocalForge, time: Time, kind: str):
    others = [f"> {MARKER}\n> quoted", MARKER.replace("prod", "dev"), f"see {MARKER}"]
    for text in others:
        forge.put(text, author="reviewer")
    keep_one(connect(forge, time, kind), message())
    assert forge.bodies() == [*others, message().body]


def test_a_workflow_token_changes_comments_of_programs_and_never_of_people(forge: LocalForge, time: Time):
    forge.put(message("old").body, author="mallory")
    forge.put(message("old").body, author="github-actions[bot]", program=True)
    outcome = keep_one(connect(forge, time, token=BOT_TOKEN), message())
    assert (outcome.action, forge.bodies()) == ("updated", [message("old").body, message().body])
    assert "/user" not in [asked.path.removeprefix("/api/v3") for asked in forge.asked]


def test_a_token_that_may_not_ask_for_its_user_counts_as_a_programs(forge: LocalForge, time: Time):
    forge.accounts["v1.0123456789abcdef"] = ("some-app[bot]", True)
    keep_one(connect(forge, time, token="v1.0123456789abcdef"), message("old"))
    assert keep_one(connect(forge, time, token="v1.0123456789abcdef"), message()).action == "updated"


def test_an_account_that_is_named_is_the_only_one_that_counts(forge: LocalForge, time: Time):
    forge.put(message("old").body, author="other[bot]", program=True)
    account = Account(login="github-actions")
    keep_one(connect(forge, time, token=BOT_TOKEN), message(), account=account)
    assert (
        keep_one(connect(forge, time, token=BOT_TOKEN), message("new"), account=account).action == "updated"
    )
    assert forge.bodies() == [message("old").body, message("new").body]


def test_what_somebody_wrote_into_the_comment_is_replaced(forge: LocalForge, time: Time, kind: str):
    keep_one(connect(forge, time, kind), message("### 1 danger\n"))
    forge.comments[0]["body"] += "\nreally no danger, merge it"
    keep_one(connect(forge, time, kind), message("### 1 danger\n"))
    assert forge.bodies() == [message("### 1 danger\n").body]


def test_a_comment_deleted_between_search_and_change_is_created_anew(
    forge: LocalForge, time: Time, kind: str
):
    keep_one(connect(forge, time, kind), message("old"))

    def delete_it(asked: Asked) -> None:
        if asked.method in ("PATCH", "PUT"):
            forge.comments.clear()

    forge.before = delete_it
    assert keep_one(connect(forge, time, kind), message()).action == "created"
    assert forge.bodies() == [message().body]


def test_doubles_of_earlier_runs_are_deleted_after_the_oldest_has_the_text(
    forge: LocalForge, time: Time, kind: str
):
    ids = [forge.put(message(text).body, author="reviewer")["id"] for text in ("a", "b", "c")]
    outcome = keep_one(connect(forge, time, kind), message())
    assert (outcome.identifier, outcome.removed) == (ids[0], (ids[1], ids[2]))
    assert forge.bodies() == [message().body]
    assert forge.methods()[0] in ("PATCH", "PUT")


def test_a_double_that_may_not_be_deleted_is_no_failure(forge: LocalForge, time: Time, kind: str):
    for text in ("a", "b"):
        forge.put(message(text).body, author="reviewer")
    forge.fail("DELETE", "", Reply(403, '{"message": "no"}'))
    outcome = keep_one(connect(forge, time, kind), message())
    assert (outcome.action, outcome.removed) == ("updated", ())


def test_two_runs_at_once_leave_one_comment(forge: LocalForge, kind: str):
    # Both have searched before either writes: the first write of each waits for the other's.
    both = threading.Barrier(2)
    waited: set[str] = set()

    def meet(asked: Asked) -> None:
        if asked.method == "POST":
            with forge.lock:
                first = asked.body["body"] not in waited
                waited.add(asked.body["body"])
            if first:
                both.wait(timeout=60)

    forge.before = meet
    failures: list[BaseException] = []

    def run(text: str) -> None:
        try:
            keep_one(connect(forge, Time(), kind), message(text))
        except BaseException as error:  # noqa: BLE001  (shown by the test, in its own thread)
            failures.append(error)

    threads = [threading.Thread(target=run, args=(text,)) for text in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not failures
    assert forge.methods("POST") == ["POST", "POST"]
    assert len(forge.comments) == 1


def test_a_creation_without_an_answer_is_looked_for_before_it_is_tried_again(
    forge: LocalForge, time: Time, kind: str
):
    forge.fail("POST", "", Reply(502, "<html>", after=True), times=1)
    outcome = keep_one(connect(forge, time, kind), message())
    assert (outcome.action, forge.bodies(), forge.methods()) == ("unchanged", [message().body], ["POST"])


def test_a_creation_that_failed_is_tried_again(forge: LocalForge, time: Time, kind: str):
    forge.fail("POST", "", Reply(500, "{}"), times=2)
    assert keep_one(connect(forge, time, kind), message()).action == "created"
    assert forge.bodies() == [message().body]
    assert time.pauses == [0.5, 1.0]


def test_a_creation_that_always_fails_ends(forge: LocalForge, time: Time, kind: str):
    forge.fail("POST", "", Reply(500, "{}"))
    with pytest.raises(ForgeError) as error:
        keep_one(connect(forge, time, kind), message())
    assert error.value.problems[0].code == "forge-unavailable"
    assert forge.comments == []
    assert len(forge.methods("POST")) == 6


def test_an_answer_to_a_creation_that_cannot_be_read_makes_no_second_comment(
    forge: LocalForge, time: Time, kind: str
):
    forge.fail("POST", "", Reply(201, '{"id": ', after=True))
    assert keep_one(connect(forge, time, kind), message()).action == "unchanged"
    assert forge.bodies() == [message().body]


def test_an_answer_to_a_creation_that_is_not_there_is_said(forge: LocalForge, time: Time, kind: str):
    forge.fail("POST", "", Reply(200, '{"id": "1/../../7"}'))
    with pytest.raises(ForgeError) as error:
        keep_one(connect(forge, time, kind), message())
    assert error.value.problems[0].code == "forge-answer"
    assert forge.methods("POST") == ["POST"]


def test_notes_of_the_system_and_of_accounts_that_are_gone_are_passed_over(
    forge: LocalForge, time: Time, kind: str
):
    for odd in ({"id": 1}, {"id": 2, "body": None, "user": None, "author": None}, {"id": "x"}, {"id": True}):
        forge.comments.append(odd)
    if kind == "gitlab":
        forge.put(message("system").body, author="reviewer")["system"] = True
    assert keep_one(connect(forge, time, kind), message()).action == "created"


def test_a_look_writes_nothing(forge: LocalForge, time: Time, kind: str):
    assert look(connect(forge, time, kind), message()).action == "would-create"
    forge.put(message("old").body, author="reviewer")
    assert look(connect(forge, time, kind), message()).action == "would-update"
    assert look(connect(forge, time, kind), message("old")).action == "unchanged"
    assert forge.methods() == []


def test_the_token_is_sent_in_a_header_and_nowhere_else(forge: LocalForge, time: Time, kind: str):
    keep_one(connect(forge, time, kind), message())
    assert {asked.headers["authorization"] for asked in forge.asked} == {f"Bearer {TOKEN}"}
    assert not any(TOKEN in asked.path or TOKEN in str(asked.body) for asked in forge.asked)
