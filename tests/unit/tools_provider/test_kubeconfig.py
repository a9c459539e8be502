"""Kubeconfigs: where they come from, what they say, and what is wrong with them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.kubernetes_provider.kubeconfig import UnreachableError, load_access
from tools.kubernetes_provider.options import find_refused, read_options
from tools.kubernetes_provider.values import Secret

DOCUMENT: dict[str, Any] = {
    "clusters": [
        {"name": "one", "cluster": {"server": "https://127.0.0.1:1/"}},
        {"name": "two", "cluster": {"server": "https://127.0.0.1:2"}},
    ],
    "users": [
        {"name": "user", "user": {"token": "hush"}},
        {"name": "helper", "user": {"exec": {"command": "x"}}},
    ],
    "contexts": [
        {"name": "first", "context": {"cluster": "one", "user": "user", "namespace": "ml"}},
        {"name": "second", "context": {"cluster": "two", "user": "user"}},
        {"name": "third", "context": {"cluster": "one", "user": "helper"}},
        {"name": "fourth", "context": {"cluster": "gone", "user": "user"}},
    ],
    "current-context": "first",
}


def write(path: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> str:
    document = copy.deepcopy(DOCUMENT)
    change(document)
    path.write_text(yaml.safe_dump(document))
    return str(path)


@pytest.fixture(autouse=True)
def no_ambient_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_a_path_and_its_contents_mean_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "config")

    by_path, by_contents = load_access(path), load_access(Path(path).read_text())

    assert by_path.server == by_contents.server == "https://127.0.0.1:1"
    assert by_path.namespace == by_contents.namespace == "ml"
    assert by_path.headers == by_contents.headers == {"Authorization": "Bearer hush"}


def test_the_environment_counts_when_the_option_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", write(tmp_path / "config"))

    assert load_access("").server == "https://127.0.0.1:1"


def test_the_usual_file_counts_when_nothing_else_does(tmp_path: Path) -> None:
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    write(tmp_path / "home" / ".kube" / "config")

    assert load_access("").server == "https://127.0.0.1:1"


def test_context_cluster_and_namespace_can_be_overridden(tmp_path: Path) -> None:
    path = write(tmp_path / "config")

    assert load_access(path, context="second").server == "https://127.0.0.1:2"
    assert load_access(path, context="second").namespace == "default"
    assert load_access(path, cluster="two", namespace="other").namespace == "other"
    assert load_access(path, cluster="two").server == "https://127.0.0.1:2"


def test_credentials_are_not_shown(tmp_path: Path) -> None:
    assert "hush" not in repr(load_access(write(tmp_path / "config")))


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        ("third", "'exec' is not part of the stand-in provider"),
        ("fourth", "cluster 'gone' does not exist in kubeconfig"),
        ("fifth", "context 'fifth' does not exist in kubeconfig"),
    ],
)
def test_a_context_that_cannot_be_used_says_why(tmp_path: Path, context: str, reason: str) -> None:
    with pytest.raises(UnreachableError, match=reason):
        load_access(write(tmp_path / "config"), context=context)


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        ("token: [hush\n", "failed to parse kubeconfig: not YAML"),
        ("- hush\n", "failed to parse kubeconfig: not a mapping"),
        ("token: hush\n", "no context is set in kubeconfig"),
        ("current-context: a\ncontexts: 3\n", "context 'a' does not exist in kubeconfig"),
    ],
)
def test_broken_contents_say_what_is_wrong_without_showing_them(contents: str, reason: str) -> None:
    with pytest.raises(UnreachableError, match=reason) as caught:
        load_access(contents)

    assert "hush" not in str(caught.value)


def test_a_certificate_that_is_none_is_a_reason(tmp_path: Path) -> None:
    path = write(
        tmp_path / "config",
        lambda document: document["clusters"][0]["cluster"].update({"certificate-authority-data": "?"}),
    )

    with pytest.raises(UnreachableError, match="unable to use kubeconfig credentials"):
        load_access(path)


def test_several_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "config")
    monkeypatch.setenv("KUBECONFIG", f"{path}:{path}")

    with pytest.raises(UnreachableError, match="several files"):
        load_access("")


def test_an_option_wins_over_its_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_K8S_ENABLE_PATCH_FORCE", "true")

    assert read_options({}).force_patches
    assert not read_options({"enablePatchForce": "false"}).force_patches


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [(None, 30.0), ('{"timeout": 5}', 5.0), ({"timeout": 7}, 7.0), ("{", 30.0), ({"timeout": -1}, 30.0)],
)
def test_the_timeout_of_requests_is_read_from_client_settings(settings: object, seconds: float) -> None:
    assert read_options({"kubeClientSettings": settings}).request_seconds == seconds


def test_a_secret_kubeconfig_is_read_and_not_shown() -> None:
    options = read_options({"kubeconfig": Secret("hush")})

    assert options.kubeconfig == "hush"
    assert "hush" not in repr(options)


def test_options_that_cannot_be_honoured_are_named_and_all_others_accepted() -> None:
    given = {
        "renderYamlToDirectory": "out",
        "enableServerSideApply": "false",
        "upsertExistingObjects": "false",
        "suppressDeprecationWarnings": "true",
        "somethingNew": "1",
    }

    assert sorted(find_refused(given)) == ["enableServerSideApply", "renderYamlToDirectory"]
