from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from dra_infra.client.credentials import Credentials, Shown
from dra_infra.client.kubeconfig import Account, User
from dra_infra.client.refusals import shorten
from dra_infra.client.session import Session
from dra_infra.client.transport import open_pool
from dra_infra.errors import ClusterError
from tests.unit.cluster.conftest import Server


def code_of(session: Session, path: str = "/x") -> str:
    with pytest.raises(ClusterError) as caught:
        session.get_json(path)
    (problem,) = caught.value.problems
    return problem.code


def test_a_server_that_is_busy_is_asked_again(server: Server) -> None:
    server.says("/x", (429, {}), (503, {}), (200, {"a": 1}))
    assert server.session().get_json("/x") == (200, {"a": 1})


def test_a_server_that_stays_busy_is_given_up(server: Server) -> None:
    server.says("/x", (503, {"message": "overloaded"}))
    assert server.session().get_json("/x") == (503, "overloaded")
    assert len(server.asked) == 5


def test_nobody_at_the_address_is_told() -> None:
    session = Session(Account(name="n", server="http://127.0.0.1:9"), {})
    assert code_of(session) == "cluster-unreachable"


def test_a_refused_token_is_read_again_from_its_file(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    session = server.session(User(token_file=file))
    replies = [(401, {}), (200, {})]

    def say(_query: object) -> tuple[int, object]:
        # While the request with the old one is on its way.
        file.write_text("new")
        return replies.pop(0)

    server.answers["/x"] = say
    assert session.get_json("/x")[0] == 200
    assert [headers["Authorization"] for _, _, headers in server.asked] == ["Bearer old", "Bearer new"]


def test_a_token_of_a_file_is_read_for_each_request_and_kept_where_it_cannot_be(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    credentials = Credentials(Account(name="n", server="http://x", user=User(token_file=file)))
    assert credentials.show().authorization == "Bearer first"
    file.write_text("second")
    assert credentials.show().authorization == "Bearer second"
    file.write_text("")
    assert credentials.show().authorization == "Bearer second"
    file.unlink()
    assert credentials.show().authorization == "Bearer second"


def test_authorities_and_certificates_of_files_are_read_again(tmp_path: Path) -> None:
    names = ("ca.crt", "tls.crt", "tls.key")
    # As Kubernetes mounts volumes: a link that is swapped, and links through it.
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        for name in names:
            (tmp_path / version / name).write_text(f"{name} {version}")
    data = tmp_path / "..data"
    data.symlink_to("one")
    files = [tmp_path / name for name in names]
    for each in files:
        each.symlink_to(f"..data/{each.name}")
    user = User(certificate="a", certificate_file=files[1], key="b", key_file=files[2])
    credentials = Credentials(Account(name="n", server="https://x", ca="c", ca_file=files[0], user=user))
    shown = credentials.show()
    assert (shown.ca, shown.certificate, shown.key) == ("ca.crt one", "tls.crt one", "tls.key one")
    (tmp_path / "..new").symlink_to("two")
    (tmp_path / "..new").rename(data)
    shown = credentials.show()
    assert (shown.ca, shown.certificate, shown.key) == ("ca.crt two", "tls.crt two", "tls.key two")
    # An empty one must not have the authorities of the system take its place.
    (tmp_path / "two" / "ca.crt").write_text("\n")
    assert credentials.show().ca == "ca.crt two"


def test_who_is_refused_after_another_renewed_shows_what_the_other_found(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    credentials = Credentials(Account(name="n", server="http://x", user=User(token_file=file)))
    old = credentials.show()
    file.write_text("new")
    assert credentials.renew(old)
    assert credentials.renew(old)
    assert not credentials.renew(credentials.show())


def test_a_token_that_stays_refused_is_told(server: Server) -> None:
    server.says("/x", (401, {}))
    assert code_of(server.session(User(token="t0ken"))) == "cluster-unauthorized"
    assert len(server.asked) == 1


def test_credentials_do_not_follow_a_redirect(server: Server) -> None:
    server.says("/x", (302, {}))
    assert code_of(server.session()) == "cluster-answer"


def test_what_is_not_json_is_no_api_server(server: Server) -> None:
    server.says("/x", (200, b"<html>log in</html>"))
    assert code_of(server.session()) == "cluster-answer"


def test_credentials_are_not_sent_where_they_can_be_read(server: Server) -> None:
    with pytest.raises(ClusterError) as caught:
        Session(Account(name="n", server="http://cluster.invalid", user=User(token="t")), {})
    assert caught.value.problems[0].code == "cluster-credentials"


def test_only_get_is_ever_sent(server: Server) -> None:
    assert not [name for name in dir(Session) if name in {"post", "put", "patch", "delete", "request"}]


@pytest.mark.parametrize(
    ("environment", "proxied"),
    [
        ({}, False),
        ({"HTTPS_PROXY": "http://proxy.invalid:3128"}, True),
        ({"HTTPS_PROXY": "http://proxy.invalid:3128", "NO_PROXY": ".invalid"}, False),
    ],
)
def test_proxies_of_the_environment_count_as_for_kubectl(
    environment: dict[str, str], *, proxied: bool
) -> None:
    account = Account(name="n", server="https://cluster.invalid")
    assert (open_pool(account, Shown(), environment).proxy is not None) == proxied
    here = dataclasses.replace(account, server="https://127.0.0.1:6443")
    assert open_pool(here, Shown(), environment).proxy is None
    own = dataclasses.replace(account, proxy="http://other.invalid:1")
    assert str(open_pool(own, Shown(), environment).proxy) == "http://other.invalid:1"


def test_a_proxy_of_another_kind_is_refused() -> None:
    account = Account(name="n", server="https://cluster.invalid", proxy="socks5://proxy.invalid:1")
    with pytest.raises(ClusterError) as caught:
        open_pool(account, Shown(), {})
    assert caught.value.problems[0].code == "kubeconfig-unreadable"


def test_a_certificate_that_is_none_is_told() -> None:
    account = Account(name="n", server="https://cluster.invalid")
    with pytest.raises(ClusterError) as caught:
        open_pool(account, Shown(certificate="no PEM", key="no PEM"), {})
    assert caught.value.problems[0].code == "cluster-credentials"


def test_foreign_words_steer_no_terminal() -> None:
    assert shorten("a\x1b[2J\nb") == "a\\u001b[2J b"
