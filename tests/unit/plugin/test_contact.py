"""A lost API server is told: to readiness after a minute, to liveness only where a new start may help."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from dra_infra.client.kinds import NODES
from dra_infra.client.kubeconfig import ExecPlugin, User
from dra_infra.client.refusals import (
    bad_credentials,
    bad_kubeconfig,
    strange_answer,
    unauthorized,
    unreachable,
    untrusted,
)
from dra_infra.errors import ClusterError
from dra_infra.plugin.api_server.refusals import ApiError, from_cluster_error
from dra_infra.plugin.api_server.requests import HOPELESS, LOST, Contact
from tests.support.plugin.api_server import Clock, serving


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def contact(clock: Clock) -> Contact:
    return Contact(clock)


def fail(contact: Contact, clock: Clock, seconds: float, *, ours: bool = False) -> None:
    """Every ten seconds, as who follows objects asks at the least."""
    until = clock.now + seconds
    while clock.now <= until:
        contact.failed("nobody is there", ours=ours)
        clock.now += 10.0


def test_a_server_that_was_not_asked_yet_is_not_lost(contact: Contact):
    assert (contact.lost(), contact.hopeless()) == ("", "")


def test_a_server_is_lost_after_a_minute_of_failures_and_found_by_one_answer(contact: Contact, clock: Clock):
    fail(contact, clock, LOST - 1)
    assert contact.lost() == ""
    fail(contact, clock, 20)
    assert contact.lost().endswith(": nobody is there")
    contact.answered()
    assert contact.lost() == ""


def test_one_failure_says_nothing_of_the_time_in_which_nobody_asked(contact: Contact, clock: Clock):
    fail(contact, clock, 0)
    clock.now += 10 * LOST
    assert contact.lost() == ""


def test_a_server_that_is_away_for_days_starts_no_plugin_anew(contact: Contact, clock: Clock):
    fail(contact, clock, 3 * 86400)
    assert contact.lost()
    assert contact.hopeless() == ""


def test_a_server_that_does_not_take_the_plugin_does(contact: Contact, clock: Clock):
    fail(contact, clock, HOPELESS[0] - 20, ours=True)
    assert contact.hopeless() == ""
    fail(contact, clock, HOPELESS[1] - HOPELESS[0] + 40, ours=True)
    assert contact.hopeless()
    # It went away for all: whoever starts now finds nobody.
    fail(contact, clock, 0)
    assert contact.hopeless() == ""


@pytest.mark.parametrize(
    ("error", "code", "ours"),
    [
        (untrusted("https://api", "it is another's"), "api-untrusted", True),
        (unauthorized("https://api", "test"), "api-unauthorized", True),
        (unreachable("https://api", "no route"), "api-unreachable", False),
        (strange_answer("https://api", "/version", "a page"), "api-unreachable", False),
        (bad_credentials("test", "the exec plugin ended with 1"), "api-no-credentials", False),
        (bad_kubeconfig(Path("config"), "the key is none"), "api-no-credentials", False),
    ],
)
def test_only_what_a_server_does_not_accept_may_be_the_plugins_fault(
    error: ClusterError, code: str, ours: bool
):
    told = from_cluster_error("get /version", error)
    assert (told.problems[0].code, told.may_be_ours) == (code, ours)


def failing(folder: Path) -> User:
    """A user whose exec plugin hands out a token as long as a file is there."""
    token = folder / "token"
    token.write_text('{"status": {"token": "first"}}')
    return User(plugin=ExecPlugin(command=("cat", str(token)), environment={}, api_version="v1"))


def test_an_exec_plugin_whose_cloud_is_away_starts_no_plugin_anew(clock: Clock, tmp_path: Path):
    with serving() as server:
        server.token = "first"
        server.store.create("nodes", "", {"metadata": {"name": "node-1"}})
        api = server.api(failing(tmp_path), clock)
        assert api.get(NODES, "node-1")
        (tmp_path / "token").unlink()
        server.token = "second"
        while clock.now <= 2 * HOPELESS[1]:
            with pytest.raises(ApiError) as caught:
                api.get(NODES, "node-1")
            assert [each.code for each in caught.value.problems] == ["api-no-credentials"]
            clock.now += 600.0
        assert api.contact.lost()
        assert api.contact.hopeless() == ""


def test_plugins_do_not_end_in_one_moment():
    clock = Clock()
    contacts = [Contact(clock) for _ in range(200)]
    ended = []
    while clock.now < HOPELESS[1]:
        for each in contacts:
            each.failed("nobody is trusted", ours=True)
        ended.append(sum(bool(each.hopeless()) for each in contacts))
        clock.now += 60.0
    steps = [after - before for before, after in itertools.pairwise(ended)]
    assert ended[29] == 0
    assert max(steps) < 30
