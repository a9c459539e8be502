from __future__ import annotations

import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.client.credentials import Credentials
from dra_infra.client.kubeconfig import User, find_account
from dra_infra.errors import ClusterError


def config(server: str = "https://one.invalid:6443", **user: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user or {"token": "t0ken"}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "ml"}}],
        "current-context": "main",
    }


def write(file: Path, document: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return file


def refusal(file: Path | None, context: str | None = None, **environment: str) -> tuple[str, str]:
    with pytest.raises(ClusterError) as caught:
        find_account(file, context, environment)
    (problem,) = caught.value.problems
    return problem.code, f"{problem.message} | {problem.hint}"


def plugin(file: Path, script: str) -> dict[str, Any]:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": f"./{file.name}",
        "installHint": "install me",
    }


def test_the_current_context_names_server_user_and_namespace(tmp_path: Path) -> None:
    account = find_account(write(tmp_path / "config", config()), None, {})
    assert (account.server, account.namespace, account.user.token) == (
        "https://one.invalid:6443",
        "ml",
        "t0ken",
    )
    assert "t0ken" not in repr(account)


def test_the_first_of_several_files_wins_and_paths_are_relative_to_their_own(tmp_path: Path) -> None:
    write(tmp_path / "b" / "ca.pem", "PEM of b")
    write(tmp_path / "b" / "token", "from a file\n")
    second = config("https://two.invalid", tokenFile="token")
    second["clusters"][0]["cluster"]["certificate-authority"] = "ca.pem"
    second["contexts"].append({"name": "other", "context": {"cluster": "c", "user": "u"}})
    first = {"current-context": "other", "clusters": []}
    files = [write(tmp_path / "a", first), tmp_path / "missing", write(tmp_path / "b" / "config", second)]
    account = find_account(None, None, {"KUBECONFIG": ":".join(map(str, files))})
    assert (account.name, account.server, account.ca) == ("other", "https://two.invalid", "PEM of b")
    assert Credentials(account).show().authorization == "Bearer from a file"


def test_the_file_of_the_home_folder_is_taken_and_else_the_account_of_the_pod(tmp_path: Path) -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
    for name, content in (("ca.crt", "PEM"), ("namespace", "here"), ("token", "mounted")):
        write(tmp_path / "account" / name, content)
    account = find_account(None, None, pod, service_account=tmp_path / "account")
    assert (account.server, account.namespace) == ("https://[fd00::1]:443", "here")
    assert Credentials(account).show().authorization == "Bearer mounted"
    write(tmp_path / ".kube" / "config", config())
    assert find_account(None, None, pod).name == "main"


@pytest.mark.parametrize(
    "document",
    [
        "a: [",
        "just a text",
        {"clusters": {}, "current-context": "main", "contexts": "no"},
        {**config(), "clusters": []},
        {**config(), "users": []},
        config("ftp://one.invalid"),
        config(**{"auth-provider": {"name": "gcp"}}),
        config(**{"client-certificate": "not-there.pem"}),
        config(**{"client-certificate-data": "%%%"}),
        config(exec={"command": "x", "apiVersion": "client.authentication.k8s.io/v9"}),
    ],
)
def test_a_kubeconfig_that_says_too_little_is_refused(tmp_path: Path, document: Any) -> None:
    file = write(tmp_path / "config", document)
    code, text = refusal(file)
    assert code == "kubeconfig-unreadable"
    assert str(file) in text


def test_a_kubeconfig_that_is_no_yaml_is_refused_with_the_place_and_without_its_text(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("users:\n- name: a\n  user: {token: secret-9f3a]\n")
    code, text = refusal(file)
    assert code == "kubeconfig-unreadable"
    assert "it is not YAML at line 3, column 28" in text
    assert "9f3a" not in text


def test_a_file_that_is_not_there_and_none_at_all_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none")[0] == "kubeconfig-unreadable"
    assert refusal(None, HOME=str(tmp_path))[0] == "kubeconfig-unreadable"
    assert refusal(None, KUBECONFIG=str(tmp_path / "none"))[0] == "kubeconfig-unreadable"


def test_a_text_that_is_not_yaml_is_not_quoted(tmp_path: Path) -> None:
    _, text = refusal(write(tmp_path / "config", "token: s3cr3t-value\n  bad: ["))
    assert "s3cr3t" not in text


def test_a_context_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    file = write(tmp_path / "config", config())
    code, text = refusal(file, "prod")
    assert code == "context-not-known"
    assert "main" in text
    assert "name one with --context: main" in text
    assert refusal(write(file, {**config(), "current-context": ""}))[0] == "context-not-known"
    with pytest.raises(ClusterError) as caught:
        find_account(file, None, {}, can_choose=False)
    (problem,) = caught.value.problems
    assert (problem.path, problem.code) == ("--kubeconfig", "context-not-known")
    assert problem.hint.endswith("; there are main")


def test_an_exec_plugin_is_told_what_it_is_asked_for_and_its_token_is_used(tmp_path: Path) -> None:
    said = json.dumps({"status": {"token": "of-the-plugin"}})
    user = plugin(tmp_path / "login", f"echo \"$KUBERNETES_EXEC_INFO $EXTRA\" > info\necho '{said}'")
    user |= {"env": [{"name": "EXTRA", "value": "more"}], "provideClusterInfo": True}
    account = find_account(write(tmp_path / "config", config(exec=user)), None, {})
    script = tmp_path / "login"
    script.write_text(script.read_text().replace("> info", f"> {tmp_path}/info"))
    assert Credentials(account).show().authorization == "Bearer of-the-plugin"
    info, _, extra = (tmp_path / "info").read_text().rpartition(" ")
    assert extra.strip() == "more"
    assert json.loads(info)["spec"]["cluster"]["server"] == "https://one.invalid:6443"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo no session >&2; exit 3", "no session"),
        ("echo nonsense", "no ExecCredential"),
        (None, "install me"),
    ],
)
def test_an_exec_plugin_that_fails_is_told(tmp_path: Path, script: str | None, expected: str) -> None:
    user = plugin(tmp_path / "login", script or "")
    if script is None:
        (tmp_path / "login").unlink()
    account = find_account(write(tmp_path / "config", config(exec=user)), None, {})
    with pytest.raises(ClusterError) as caught:
        Credentials(account).show()
    (problem,) = caught.value.problems
    assert problem.code == "cluster-credentials"
    assert expected in str(problem)


def test_names_and_passwords_and_certificates_are_read(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM").decode()
    user = {"username": "a", "password": "b", "client-certificate-data": data, "client-key-data": data}
    shown = Credentials(find_account(write(tmp_path / "config", config(**user)), None, {})).show()
    assert (shown.authorization, shown.certificate, shown.key) == ("Basic YTpi", "PEM", "PEM")
    assert repr(User(token="s3cr3t", password="s3cr3t", key="s3cr3t")).count("s3cr3t") == 0
