from __future__ import annotations

import time

import pytest

from dra_infra.errors import Problem
from dra_infra.model.secrets import SecretMask, says_secret, secret_texts, secret_values


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
        ),
    ],
)
def test_names_of_secrets_say_so(name: str):
    assert says_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "KEYBOARD", "MONKEY_ISLAND", "PWDX", "HOME", "keyring", "replicas"),
        *("PWD", "OLDPWD", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "GNOME_KEYRING_CONTROL", "XKB_DEFAULT_LAYOUT"),
    ],
)
def test_other_names_do_not(name: str):
    assert not says_secret(name)


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
    assert found == pod(("b", "[secret]"), ("a", "[secret] (changed)"))


def test_values_of_charts_are_hidden_by_their_keys():
    values = {"auth": {"adminPassword": "old-one", "user": "admin"}, "tokens": ["token-a"], "secretName": ""}
    new = {"auth": {"adminPassword": "new-one", "user": "admin"}, "tokens": ["token-a"], "secretName": ""}
    assert list(secret_values(values)) == ["old-one", "token-a"]
    assert SecretMask().values(new, values, by_name=True) == {
        "auth": {"adminPassword": "[secret] (changed)", "user": "admin"},
        "tokens": ["[secret]"],
        "secretName": "",
    }


@pytest.mark.parametrize("data", ["text", ["list"], 7])
def test_malformed_values_of_a_secret_are_hidden_too(data: object):
    assert SecretMask().manifest({"kind": "Secret", "data": data})["data"] == "[secret]"
    assert (
        SecretMask().manifest({"kind": "Secret", "data": data}, {"data": {}})["data"] == "[secret] (changed)"
    )


@pytest.mark.parametrize("part", ["--token", "token", "://", "://a:b", "--a-key-", "-", ":"])
def test_texts_made_to_be_slow_are_searched_in_linear_time(part: str):
    # A quadratic search of a megabyte takes many minutes, a linear one hundredths of a second.
    text = "x= --" + part * (2**20 // len(part))
    started = time.process_time()
    SecretMask().text(text)
    assert time.process_time() - started < 10
