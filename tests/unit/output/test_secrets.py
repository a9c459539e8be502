from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from dra_infra.errors import Problem
from dra_infra.markers import CHANGED_SECRET, SECRET, Secret
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secret_names import is_secret_name
from dra_infra.output.secrets import SecretMask, secret_texts, secret_values
from tests.support.growth import takes_linear_time


@pytest.mark.parametrize(
    "name",
    [
        *(
            "TOKEN",
            "GITHUB_TOKEN",
            "githubtoken",
            "PGPASSWORD",
            "db-password",
            "MYSQL_PWD",
            "API_KEY",
            "apiKey",
        ),
        *(
            "AWS_SECRET_ACCESS_KEY",
            "CREDENTIALS",
            "PASSPHRASE",
            "sshKey",
            "tls.key",
            "app:authToken",
            "APIKEY",
            "APIKEY_PROD",
            "AWS_ACCESSKEY_ID",
            "PRIVATEKEY_PEM",
        ),
    ],
)
def test_names_of_secrets_say_so(name: str):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "KEYBOARD", "MONKEY_ISLAND", "PWDX", "HOME", "keyring", "replicas"),
        *("PWD", "OLDPWD", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "GNOME_KEYRING_CONTROL", "XKB_DEFAULT_LAYOUT"),
    ],
)
def test_other_names_do_not(name: str):
    assert not is_secret_name(name)


def test_short_texts_and_words_are_not_looked_for():
    named = {"A_TOKEN": "short", "B_TOKEN": "default", "C_TOKEN": "123456", "PLAIN": "not secret"}
    assert secret_texts(named) == ("123456",)


def test_the_folder_where_a_shell_stands_is_no_secret():
    shell = {"PWD": "/home/ada/infra", "OLDPWD": "/home/ada", "DB_PWD": "hunter22"}
    assert secret_texts(shell) == ("hunter22",)


def test_the_longest_text_is_hidden_first():
    mask = SecretMask(["secret-a", "secret-a-and-b"])
    assert mask.text("x secret-a-and-b y secret-a") == "x [secret] y [secret]"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("https://user:pass@host/x", "https://[secret]@host/x"),
        ("redis://:pass@host", "redis://[secret]@host"),
        ("https://user@host/x", "https://user@host/x"),
        ("http://host:80/a@b", "http://host:80/a@b"),
        ("run --password=abc --x=1", "run --password=[secret] --x=1"),
        ("-token=abc", "-token=[secret]"),
        ("--tokens-per-second 7", "--tokens-per-second 7"),
        ("a=b", "a=b"),
    ],
)
def test_what_is_written_like_a_secret_is_hidden(text: str, hidden: str):
    assert SecretMask().text(text) == hidden


def test_problems_are_hidden_whole():
    found = SecretMask(["hunter22"]).problem(
        Problem(path="hunter22", code="c", message="a hunter22", hint="hunter22!")
    )
    assert (found.path, found.message, found.hint) == ("[secret]", "a [secret]", "[secret]!")


def test_what_holds_no_secret_is_the_same_object():
    manifest = {"kind": "Pod", "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "b"}]}]}}
    assert SecretMask(["hunter22"]).manifest(manifest) is manifest


def test_containers_are_told_apart_by_name_when_they_are_compared():
    def pod(*values: tuple[str, str]) -> dict[str, object]:
        return {
            "kind": "Pod",
            "spec": {
                "containers": [
                    {"name": name, "env": [{"name": "A_TOKEN", "value": value}]} for name, value in values
                ]
            },
        }

    found = SecretMask().manifest(pod(("b", "2"), ("a", "9")), pod(("a", "1"), ("b", "2")))
    assert found == pod(("b", SECRET), ("a", CHANGED_SECRET))


def test_values_of_charts_are_hidden_by_their_keys():
    values = {"auth": {"adminPassword": "old-one", "user": "admin"}, "tokens": ["token-a"], "secretName": ""}
    new = {"auth": {"adminPassword": "new-one", "user": "admin"}, "tokens": ["token-a"], "secretName": ""}
    assert list(secret_values(values)) == ["old-one", "token-a"]
    assert SecretMask().values(new, values, by_name=True) == {
        "auth": {"adminPassword": CHANGED_SECRET, "user": "admin"},
        "tokens": [SECRET],
        "secretName": "",
    }


@pytest.mark.parametrize("data", ["text", ["list"], 7])
def test_malformed_values_of_a_secret_are_hidden_too(data: object):
    assert SecretMask().manifest({"kind": "Secret", "data": data})["data"] == SECRET
    assert SecretMask().manifest({"kind": "Secret", "data": data}, {"data": {}})["data"] == CHANGED_SECRET


LONG = 2**20 if os.environ.get("DRA_INFRA_SOAK") else 2**18
"""Characters of a text that is made to be slow; a megabyte in `make soak`."""

SLOW_PARTS = (
    *(
        "--token",
        "token",
        "://",
        "://a:b",
        "--a-key-",
        "-",
        ":",
        "password=",
        "token=a(",
        "password: |\n",
        "token=[",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "<password>",
        "mysql ",
        "docker login ",
        "login a password ",
        "eyJhbGci",
        "AKIA1",
    ),
    *(
        "authorization: ",
        "-u a:",
        "name: token value: ",
        'password="\\"',
        "QUJDREVGR0hJSktMTU5PUA==",
        "[secret]",
    ),
    *(
        "password=[secret]",
        "https://a/hooks/",
        "a/",
        "\x1f--password",
        "xoxb-1-",
        "//a/:_authToken=",
        "1-us",
        "a=b;",
        "-p",
    ),
    *(
        "password: | #",
        "password=a;",
        "password: |\r\n",
        "password:\r",
        "password:\n  ",
        "password: &a ",
        " " * 200 + "password: $(",
        "password={{",
        "WEBHOOK_URL=a",
        "password: 'a''",
        '<password a="',
        "--user a:",
    ),
)
SLOW_WORDS = (("", "a-", "1Z"), ('password: "$', "pass", '!"'), ("", "password={{", "}}"))
"""What is slow for its end: beginnings, parts and ends."""


@pytest.mark.parametrize(
    ("begin", "part", "end"), [*(("x= --", each, "") for each in SLOW_PARTS), *SLOW_WORDS]
)
def test_texts_made_to_be_slow_are_searched_in_linear_time(begin: str, part: str, end: str):
    def prepare(size: int) -> Callable[[], object]:
        text = begin + part * (size // len(part)) + end
        return lambda: report_mask().text(text)

    assert takes_linear_time(prepare, LONG)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (("password", "", ""), ("$", "pass", "!")),
        (("WEBHOOK_URL", "", ""), ("", "://a/", "!")),
        (("", "MAX_", "TOKEN"), ("hunter2", "", "")),
    ],
    ids=["reference", "address", "name"],
)
def test_names_and_values_made_to_be_slow_are_judged_in_linear_time(
    name: tuple[str, str, str], value: tuple[str, str, str]
):
    def prepare(size: int) -> Callable[[], object]:
        key, text = (begin + part * (size // 4) + end for begin, part, end in (name, value))

        def work() -> None:
            assert report_mask().values({"env": [{"name": key, "value": text}]}) is not None
            assert report_mask().values({key: text}) is not None

        return work

    assert takes_linear_time(prepare, LONG)


def test_a_long_list_of_arguments_is_read_in_linear_time():
    def prepare(size: int) -> Callable[[], object]:
        old, new = ({"args": ["--password", value] * size} for value in "xy")

        def work() -> None:
            masked = report_mask().values(old, new)
            assert masked["args"][:2] == ["--password", CHANGED_SECRET]

        return work

    assert takes_linear_time(prepare, 50_000)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("password=[secret]more", "password=[secret][secret]"),
        ("a [secret] (changed) b", "a [secret] (changed) b"),
        ("invalid token: unexpected end of input", "invalid token: unexpected end of input"),
        (
            "urn:pulumi:dev::app::kubernetes:core/v1:Secret::name",
            "urn:pulumi:dev::app::kubernetes:core/v1:Secret::name",
        ),
        ('["--password", "hunter2", "--port", "80"]', '["--password", "[secret]", "--port", "80"]'),
        ('{\\"password\\": \\"hunter2\\", \\"a\\": 1}', '{\\"password\\": \\"[secret]\\", \\"a\\": 1}'),
        ("tokens:\n- hunter2\n- hunter3\nport: 80", "tokens:\n- [secret]\n- [secret]\nport: 80"),
        ("- name: DB_PASS\n  value: hunter2\n- name: A\n", "- name: DB_PASS\n  value: [secret]\n- name: A\n"),
        ("mysql -p'hunter2' -e x", "mysql -p'[secret]' -e x"),
        ("host=db password=hunter2 user=ada", "host=db password=[secret] user=ada"),
        ("host=db password=hunt&er2 user=ada", "host=db password=[secret] user=ada"),
        ("https://a.example/?password=hunter2&user=ada", "https://a.example/?password=[secret]&user=ada"),
        ('{"password":1234567,"user":"ada"}', '{"password":[secret],"user":"ada"}'),
        ("TOKEN=hunter2 && exec serve --port 80", "TOKEN=[secret] && exec serve --port 80"),
        ("TOKEN=$OTHER_TOKEN exec serve", "TOKEN=$OTHER_TOKEN exec serve"),
        ("password: !!str |\r\n  hunter2\r\na: 1", "password: !!str |\r\n  [secret]\r\na: 1"),
        ("password: &a\n  hunter2\na: 1", "password: [secret]\n  [secret]\na: 1"),
        ("password:\n  value: 1\n", "password:\n  value: 1\n"),
        ("password: {SSHA}hunter2", "password: [secret]"),
        ("password: {file: a.txt}", "password: {file: a.txt}"),
        (
            'curl ["--user", "ada:hunter2"] --proxy-user ada:hunter2',
            'curl ["--user", "ada:[secret]"] --proxy-user ada:[secret]',
        ),
        ("postgres://$(USER):$(PASSWORD)@db/x", "postgres://$(USER):$(PASSWORD)@db/x"),
    ],
)
def test_a_secret_is_hidden_to_its_end_and_no_further(text: str, hidden: str):
    assert report_mask().text(text) == hidden


@pytest.mark.parametrize(
    "path",
    ["Database x.spec.password", "Database x.spec.users[0].clientSecret", "Database x.spec.tokens.ci[0]"],
)
def test_a_problem_with_a_secret_does_not_quote_it(path: str):
    problem = Problem(path=path, code="c", message='Invalid value: "hunter2": too short')
    assert SecretMask().problem(problem).message == 'Invalid value: "[secret]": too short'


def test_secrets_that_change_are_told_apart_from_those_that_stay_in_one_text():
    mask = SecretMask()
    old = {"f": "a: 1\npassword: hunter2\ntoken: abcdefgh1\n"}
    new = {"f": "a: 2\npassword: hunter2\ntoken: abcdefgh2\n"}
    shown = Secret("a: 2\npassword: [secret]\ntoken: [secret] (changed)\n")
    assert mask.values(new, old) == {"f": shown}


CHANGES = {
    "a number": ({"password": "hunter2"}, {"password": 12345678}, {"password": CHANGED_SECRET}),
    "that was a number": (
        {"password": 12345678},
        {"password": "hunter2"},
        {"password": CHANGED_SECRET},
    ),
    "that was a mapping": (
        {"password": {"value": 1}},
        {"password": "hunter2"},
        {"password": CHANGED_SECRET},
    ),
    "a pair that was a number": (
        {"a": [{"name": "db-password", "value": 12345678}]},
        {"a": [{"name": "db-password", "value": 12345679}]},
        {"a": [{"name": "db-password", "value": CHANGED_SECRET}]},
    ),
    "a variable that is a number": (
        {"env": [{"name": "API_KEY2", "value": 12345678}]},
        {"env": [{"name": "API_KEY2", "value": 12345678}]},
        {"env": [{"name": "API_KEY2", "value": SECRET}]},
    ),
    "a user in front of another": (
        {"a": [{"user": "ada", "password": "hunter2"}]},
        {"a": [{"user": "bob", "password": "hunter3"}, {"user": "ada", "password": "hunter2"}]},
        {"a": [{"user": "bob", "password": SECRET}, {"user": "ada", "password": SECRET}]},
    ),
    "users in another order": (
        {"a": [{"id": 1, "password": "hunter2"}, {"id": 2, "password": "hunter3"}]},
        {"a": [{"id": 2, "password": "hunter4"}, {"id": 1, "password": "hunter2"}]},
        {"a": [{"id": 2, "password": CHANGED_SECRET}, {"id": 1, "password": SECRET}]},
    ),
    "one of two of a name": (
        {"a": [{"user": "ada", "password": "hunter2"}, {"user": "ada", "password": "hunter3"}]},
        {"a": [{"user": "ada", "password": "hunter2"}, {"user": "ada", "password": "hunter4"}]},
        {"a": [{"user": "ada", "password": SECRET}, {"user": "ada", "password": CHANGED_SECRET}]},
    ),
    "a text in front of another": (
        {"tokens": ["hunter2"]},
        {"tokens": ["hunter3", "hunter2"]},
        {"tokens": [CHANGED_SECRET, SECRET]},
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_secret_is_compared_with_what_it_was_before(what: str):
    old, new, shown = CHANGES[what]
    assert SecretMask().values(new, old) == shown


def test_kinds_that_hold_secrets_elsewhere_show_their_fields():
    manifest = {"kind": "ExternalSecret", "spec": {"data": [{"secretKey": "db-password-1234"}]}}
    assert SecretMask().manifest(manifest) == manifest
    assert SecretMask().manifest({**manifest, "kind": "Other"}) != manifest


def test_numbers_under_names_of_passwords_are_hidden():
    values = {"password": 1234, "maxTokens": 4096, "secrets": 10, "enabled": True}
    assert SecretMask().values(values) == {**values, "password": SECRET}


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        ("no such class gpu at spec.devices.requests[0]: sha256:0123456789abcdef0123", False),
        ("a" * 20 + "1B", True),
    ],
)
def test_the_detector_is_loaded_for_what_may_be_a_token(text: str, loads: bool):
    program = f"""
import sys
from dra_infra.output.secret_detector import report_mask
report_mask().text({text!r})
print("detect_secrets" in sys.modules)
"""
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    assert answer.stdout.strip() == str(loads)
