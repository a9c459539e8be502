"""Helm is started with a list of arguments, homes of its own and a bounded time; what it says is read."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.kubernetes_provider import helm_release
from tools.kubernetes_provider.helm_charts import locate
from tools.kubernetes_provider.helm_command import Helm, HelmError
from tools.kubernetes_provider.kubeconfig import flatten, load_access
from tools.kubernetes_provider.manifests import describe_changes, list_names

REPORT = """#!/bin/sh
printf '%s\\n' "$@" > "{folder}/arguments"
env > "{folder}/environment"
cat > "{folder}/input"
cat "$KUBECONFIG" > "{folder}/kubeconfig"
ls -l "$KUBECONFIG" > "{folder}/mode"
{then}
"""

MANIFEST = """
---
# Source: chart/templates/empty.yaml
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: ml}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: ml}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a program called helm on PATH, which reports how it was started and then does something."""

    def place(then: str = "") -> Path:
        binary = tmp_path / "bin" / "helm"
        binary.parent.mkdir(exist_ok=True)
        binary.write_text(REPORT.format(folder=tmp_path, then=then))
        binary.chmod(0o755)
        monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")
        return tmp_path

    return place


def test_helm_has_homes_of_its_own_and_nothing_of_the_users(
    fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake("echo done")
    for name in ("HELM_NAMESPACE", "HELM_KUBECONTEXT", "HELM_DRIVER", "KUBECONFIG", "SOME_TOKEN"):
        monkeypatch.setenv(name, "of-the-user")
    helm = Helm("the-cluster")

    with helm.home() as home:
        printed = home.run("list", "a b; $(c)", seconds=60, text="values")

    environment = dict(line.split("=", 1) for line in (folder / "environment").read_text().splitlines())
    assert printed == "done\n"
    assert (folder / "arguments").read_text() == "list\na b; $(c)\n"
    assert (folder / "input").read_text() == "values"
    assert (folder / "kubeconfig").read_text() == "the-cluster"
    assert (folder / "mode").read_text().startswith("-rw-------")
    assert "of-the-user" not in environment.values()
    assert {"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} <= environment.keys()
    assert not Path(environment["KUBECONFIG"]).exists()
    helm.close()


def test_an_error_is_what_helm_says_after_its_warnings(fake: Any) -> None:
    fake("echo 'WARNING: old' >&2; echo 'Error: INSTALLATION FAILED: no' >&2; echo '- at /a' >&2; exit 1")

    with Helm("").home() as home, pytest.raises(HelmError) as error:
        home.run("install", seconds=60)

    assert str(error.value) == "INSTALLATION FAILED: no\n- at /a"


def test_a_helm_that_takes_too_long_is_stopped_and_may_say_why(fake: Any, tmp_path: Path) -> None:
    trapped = tmp_path / "trapped"
    fake(f"trap 'echo \"Error: context canceled\" >&2; exit 1' TERM; : > {trapped}; sleep 60 & wait")
    # On a busy machine it may not have begun within the first time.
    for seconds in (2, 30):
        start = time.monotonic()
        with Helm("").home() as home, pytest.raises(HelmError) as error:
            home.run("install", seconds=seconds)
        took = time.monotonic() - start
        if trapped.exists():
            break

    assert str(error.value) == f"stopped after {seconds} s: context canceled"
    assert took < seconds + 120


def test_after_a_stop_helm_may_look_but_not_change(fake: Any) -> None:
    folder = fake('test "$1" = status || exec sleep 60')
    helm = Helm("")
    errors: list[str] = []

    def install() -> None:
        with helm.home() as home:
            try:
                home.run("install", seconds=600)
            except HelmError as error:
                errors.append(str(error))

    worker = threading.Thread(target=install)
    worker.start()
    while worker.is_alive() and not (folder / "mode").exists():
        time.sleep(0.01)
    helm.stop()
    worker.join(60)

    with helm.home() as home:
        home.run("status", seconds=60, reading=True)
        with pytest.raises(HelmError, match="cancelled"):
            home.run("upgrade", seconds=60)
    assert len(errors) == 1


def test_a_missing_helm_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with Helm("").home() as home, pytest.raises(HelmError, match="make tools"):
        home.run("version", seconds=60)


def test_values_go_through_standard_input_and_options_follow_the_inputs(fake: Any) -> None:
    folder = fake()
    inputs = {
        "name": "driver",
        "namespace": "gpu",
        "chart": "oci://host.invalid/driver",
        "version": "1.2.3",
        "atomic": True,
        "createNamespace": True,
        "skipCrds": True,
        "timeout": 7,
        "values": {"token": "hush"},
    }

    with Helm("").home() as home:
        helm_release.install(home, locate(inputs), inputs, seconds=60)
        installed = (folder / "arguments").read_text().split()
        helm_release.upgrade(home, locate(inputs), inputs, seconds=60)
        upgraded = (folder / "arguments").read_text().split()

    assert json.loads((folder / "input").read_text()) == {"token": "hush"}
    assert "hush" not in " ".join(installed)
    assert {"--atomic", "--create-namespace", "--skip-crds", "--wait"} <= set(installed)
    assert installed[installed.index("--timeout") + 1] == "7s"
    assert installed[-8:] == [
        *("driver", "oci://host.invalid/driver", "--namespace", "gpu"),
        *("--version", "1.2.3", "--values", "-"),
    ]
    # Helm's own upgrade command knows neither, as the vendor's provider does not use them there.
    assert {"--create-namespace", "--skip-crds"}.isdisjoint(upgraded)
    assert upgraded[upgraded.index("--history-max") + 1] == "0"


def test_a_chart_of_the_program_comes_before_one_of_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "charts" / "mine").mkdir(parents=True)
    (tmp_path / "charts" / "mine" / "Chart.yaml").touch()
    (tmp_path / "mine-1.tgz").touch()
    (tmp_path / "no-chart").mkdir()
    monkeypatch.chdir(tmp_path)

    assert locate({"chart": "charts/mine"}).chart == str(tmp_path / "charts" / "mine")
    assert locate({"chart": "./mine-1.tgz"}).chart == str(tmp_path / "mine-1.tgz")
    assert locate({"chart": "no-chart"}).chart == "no-chart"
    repository = {"repo": "https://host.invalid/charts"}
    found = locate({"chart": "mine", "repositoryOpts": repository})
    assert (found.chart, found.options) == ("mine", ("--repo", "https://host.invalid/charts"))


def test_a_password_is_typed_and_no_argument() -> None:
    account = {"username": "me", "password": "hush"}

    of_repository = locate({"chart": "c", "repositoryOpts": {"repo": "https://host.invalid", **account}})
    of_registry = locate({"chart": "oci://host.invalid/a/c", "repositoryOpts": account})

    assert of_repository.chart == "repository/c"
    assert of_repository.login[:4] == ("repo", "add", "repository", "https://host.invalid")
    assert of_registry.login[:3] == ("registry", "login", "host.invalid")
    for found in (of_repository, of_registry):
        assert found.password == "hush"
        assert "--password-stdin" in found.login
        assert "hush" not in f"{found!r} {found.login} {found.options}"


def test_names_are_grouped_as_the_vendor_does() -> None:
    assert list_names(MANIFEST) == {
        "ConfigMap/v1": ["ml/a", "ml/b"],
        "DeviceClass.resource.k8s.io/resource.k8s.io/v1": ["gpu.example.com"],
    }


def test_changes_of_objects_are_shown_without_their_contents() -> None:
    after = MANIFEST.replace("name: b,", "name: c,").replace(
        "gpu.example.com}", "gpu.example.com, labels: {a: hush}}"
    )

    assert describe_changes(MANIFEST, after).splitlines() == [
        "  ConfigMap/v1 ml/a",
        "- ConfigMap/v1 ml/b",
        "+ ConfigMap/v1 ml/c",
        "~ DeviceClass.resource.k8s.io/resource.k8s.io/v1 gpu.example.com",
    ]


def test_a_kubeconfig_for_helm_has_one_context_and_needs_no_other_files(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hush")
    document = {
        "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [
            {"name": "user", "user": {"token": "hush"}},
            {"name": "other", "user": {"tokenFile": "token"}},
        ],
        "contexts": [
            {"name": "first", "context": {"cluster": "one", "user": "user"}},
            {"name": "second", "context": {"cluster": "one", "user": "other", "namespace": "ml"}},
        ],
        "current-context": "first",
    }
    (tmp_path / "config").write_text(yaml.safe_dump(document))

    text = flatten(str(tmp_path / "config"), context="second")

    found = yaml.safe_load(text)
    assert [len(found[name]) for name in ("clusters", "users", "contexts")] == [1, 1, 1]
    assert found["users"][0]["user"] == {"tokenFile": str(tmp_path / "token")}
    assert load_access(text).headers == {"Authorization": "Bearer hush"}
    assert load_access(text).namespace == "ml"
