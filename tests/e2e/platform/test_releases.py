"""Releases on the real engine, the real helm and a real API server, with a chart that says what it was given."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.platform.wording import check_words
from tests.support.charts import VALUES, write_chart
from tests.support.lab import Lab
from tools.cluster import Api, ControlPlane
from tools.engine_cli import Result
from tools.kubernetes_provider.values import UNKNOWN_STRING

pytestmark = pytest.mark.e2e

CLOSED = {
    "type": "object",
    "properties": {
        "color": {"type": ["string", "null"]},
        "token": {"type": "string", "pattern": "^[a-z-]*$"},
        "extra": {"type": "object"},
    },
    "additionalProperties": False,
}

BROKEN = """apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-broken, namespace: {{ .Values.extra.namespace | default "no-such-namespace" }}}
"""

Helm = Callable[..., str]

NEVER_BOUND = """apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: waits}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""

NEEDS_FIRST = """{{- if and .Release.IsInstall (not (lookup "v1" "ConfigMap" .Release.Namespace "first-values")) }}
{{- fail "first is missing" }}
{{- end }}
"""


@pytest.fixture
def lab(platform_lab: Lab) -> Lab:
    """A project with the chart `paint` in its folder."""
    paint(platform_lab)
    return platform_lab


def paint(lab: Lab, **changes: Any) -> Path:
    """Write the chart that these tests install, in the folder of the program."""
    values = {"color": "blue", "token": "", "extra": {}}
    written = {"values": values, "schema": CLOSED, "appVersion": "9.9", **changes}
    return write_chart(lab.stack.directory / "paint", **written)


def release(resource: str = "paint", /, **arguments: Any) -> str:
    """Return a program that installs the chart; strings that start with `=` are Python."""
    given = {
        "name": resource,
        "chart": "./paint",
        "namespace": "studio",
        "create_namespace": True,
        **arguments,
    }
    words = ", ".join(
        f"{key}={value[1:] if isinstance(value, str) and value.startswith('=') else repr(value)}"
        for key, value in given.items()
        if value is not None
    )
    return f"k8s.helm.v3.Release({resource!r}, {words})\n"


def shown(api: Api, name: str = "paint", namespace: str = "studio") -> dict[str, Any]:
    """Return the values that a release was rendered with."""
    found = api.get("v1/ConfigMap", f"{name}-values", namespace=namespace)
    values: dict[str, Any] = json.loads(found["data"]["values"])
    return values


def outputs(lab: Lab, name: str = "paint") -> dict[str, Any]:
    """Return the outputs of a release in the state."""
    found: dict[str, Any] = lab.resource(name)["outputs"]
    return found


def test_an_install_says_what_it_installed_and_a_second_look_changes_nothing(
    lab: Lab, plane_api: Api
) -> None:
    lab.up(release(values={"color": "red"}))

    assert shown(plane_api)["color"] == "red"
    assert outputs(lab)["status"] == {
        "appVersion": "9.9",
        "chart": "paint",
        "name": "paint",
        "namespace": "studio",
        "revision": 1,
        "status": "deployed",
        "version": "1.0.0",
    }
    assert outputs(lab)["resourceNames"] == {"ConfigMap/v1": ["studio/paint-values"]}
    assert lab.resource("paint")["id"] == "studio/paint"
    lab.stack.preview("--expect-no-changes").check()
    lab.stack.preview("--refresh", "--expect-no-changes").check()


def test_a_changed_value_upgrades_the_release(lab: Lab, plane_api: Api) -> None:
    lab.up(release(values={"color": "red", "extra": {"kept": 1}}))
    lab.write(release(values={"color": "green", "extra": {"kept": 1}}))

    preview = lab.stack.preview().check()
    lab.stack.up().check()

    assert preview.step("paint", "update").changes == {"values.color": "update"}
    assert shown(plane_api)["color"] == "green"
    assert outputs(lab)["status"]["revision"] == 2


def test_taking_all_values_away_keeps_them_unless_helm_is_told_to_reset(lab: Lab, plane_api: Api) -> None:
    lab.up(release(values={"color": "red"}))

    lab.up(release())
    kept = shown(plane_api)["color"]
    lab.up(release(reset_values=True))

    assert kept == "red"
    assert shown(plane_api)["color"] == "blue"


def test_a_changed_chart_is_seen_by_its_version_alone(lab: Lab) -> None:
    lab.up(release())
    paint(lab, templates={"values.yaml": VALUES, "more.yaml": VALUES.replace("-values", "-more")})
    lab.stack.preview("--expect-no-changes").check()
    paint(
        lab,
        version="1.1.0",
        templates={"values.yaml": VALUES, "more.yaml": VALUES.replace("-values", "-more")},
    )

    preview = lab.stack.preview().check()
    lab.stack.up().check()

    assert preview.step("paint", "update").changes == {"version": "update"}
    check_words(lab, preview.text, "+ ConfigMap/v1 studio/paint-more", "~ ConfigMap/v1 studio/paint-values")
    assert outputs(lab)["status"]["version"] == "1.1.0"


def test_a_preview_shows_the_objects_and_leaves_the_cluster_alone(lab: Lab, plane_api: Api) -> None:
    lab.write(release(namespace="nowhere-yet"))

    preview = lab.stack.preview().check()

    check_words(lab, preview.text, "+ ConfigMap/v1 nowhere-yet/paint-values")
    assert preview.step("paint", "create").outputs["status"] == UNKNOWN_STRING
    assert plane_api.find("v1/Namespace", "nowhere-yet") is None


def test_a_key_that_the_chart_does_not_know_fails_with_the_words_of_helm(lab: Lab, plane_api: Api) -> None:
    lab.write(release(values={"colour": "red"}))

    preview = lab.stack.preview().check()
    up = lab.stack.up()

    check_words(lab, preview.text, "does not render", "additional properties 'colour' not allowed")
    assert up.exit_code == 1
    failure = "".join(up.errors)
    check_words(lab, failure, "Helm release studio/paint of chart ./paint 1.0.0 was not created")
    assert "values don't meet the specifications of the schema(s)" in failure
    assert "additional properties 'colour' not allowed" in failure
    assert lab.names() == []
    assert plane_api.find("v1/ConfigMap", "paint-values", namespace="studio") is None


def test_a_refused_upgrade_leaves_the_release_as_it_was(lab: Lab, plane_api: Api) -> None:
    lab.up(release(values={"color": "red"}))
    lab.write(release(values={"colour": "green"}))

    up = lab.stack.up()

    assert up.exit_code == 1
    check_words(lab, up.text, "Helm release studio/paint of chart ./paint 1.0.0 was not updated")
    assert shown(plane_api)["color"] == "red"
    assert lab.resource("paint")["inputs"]["values"] == {"color": "red"}


def test_a_name_of_the_providers_own_is_kept(lab: Lab) -> None:
    lab.up(release(name=None))
    name = outputs(lab)["name"]
    lab.up(release(name=None, values={"color": "red"}))

    assert name.startswith("paint-")
    assert outputs(lab)["name"] == name
    assert outputs(lab)["status"]["revision"] == 2


@pytest.mark.parametrize(
    ("change", "path"),
    [({"namespace": "gallery"}, "namespace"), ({"name": "paint-2"}, "name")],
    ids=["namespace", "name"],
)
def test_another_name_or_namespace_is_another_release(
    lab: Lab, plane_api: Api, change: dict[str, str], path: str
) -> None:
    lab.up(release())
    lab.write(release(**change))

    up = lab.stack.up().check()

    place = {"name": "paint", "namespace": "studio"} | change
    assert up.step("paint", "create-replacement").changes == {path: "update-replace"}
    assert shown(plane_api, place["name"], place["namespace"])["color"] == "blue"
    assert plane_api.find("v1/ConfigMap", "paint-values", namespace="studio") is None


def test_a_release_that_is_there_but_failed_is_in_the_state_and_is_set_right(
    lab: Lab, plane_api: Api
) -> None:
    paint(lab, templates={"values.yaml": VALUES, "broken.yaml": BROKEN})
    lab.write(release())

    failed = lab.stack.up()
    status = outputs(lab)["status"]["status"]
    lab.up(release(values={"extra": {"namespace": "studio"}}))

    assert failed.exit_code == 1
    check_words(lab, failed.text, "was created, but failed to become available")
    assert 'namespaces "no-such-namespace" not found' in "".join(failed.errors)
    assert status == "failed"
    assert outputs(lab)["status"]["status"] == "deployed"
    assert plane_api.find("v1/ConfigMap", "paint-broken", namespace="studio")


def test_an_atomic_install_leaves_nothing_of_a_failure(lab: Lab, plane_api: Api) -> None:
    paint(lab, templates={"values.yaml": VALUES, "broken.yaml": BROKEN})
    lab.write(release(atomic=True))

    failed = lab.stack.up()

    assert failed.exit_code == 1
    assert lab.names() == []
    assert plane_api.find("v1/ConfigMap", "paint-values", namespace="studio") is None


def test_a_release_of_somebody_else_is_not_taken_over(lab: Lab, helm: Helm, plane_api: Api) -> None:
    helm("install", "paint", str(lab.stack.directory / "paint"), "-n", "studio", "--create-namespace")
    lab.write(release(values={"color": "red"}))

    up = lab.stack.up()
    color = shown(plane_api)["color"]
    helm("uninstall", "paint", "-n", "studio")

    assert up.exit_code == 1
    assert "cannot re-use a name that is still in use" in "".join(up.errors)
    assert lab.names() == []
    assert color == "blue"


def test_a_release_that_is_there_is_taken_over_by_an_import(lab: Lab, helm: Helm) -> None:
    chart = str(lab.stack.directory / "paint")
    helm("install", "paint", chart, "-n", "studio", "--create-namespace", "--set", "color=red")
    lab.up("")

    token = "kubernetes:helm.sh/v3:Release"
    place = ("--generate-code=false", "--protect=false", "--yes")
    lab.stack.run("import", token, "paint", "studio/paint", *place, "--stack", lab.stack.name).check()
    imported = lab.resource("paint")
    lab.up(release(chart="paint", version="1.0.0", values={"color": "red"}))

    assert imported["inputs"]["values"] == {"color": "red"}
    assert outputs(lab)["status"]["status"] == "deployed"
    assert lab.resource("paint")["id"] == "studio/paint"


def test_an_upgrade_by_hand_is_found_by_a_refresh_and_undone(lab: Lab, helm: Helm, plane_api: Api) -> None:
    program = release(values={"color": "red"})
    lab.up(program)
    helm("upgrade", "paint", str(lab.stack.directory / "paint"), "-n", "studio", "--set", "color=black")

    lab.stack.refresh().check()
    preview = lab.stack.preview().check()
    lab.stack.up().check()

    assert preview.step("paint", "update").changes == {"values.color": "update"}
    assert shown(plane_api)["color"] == "red"


def test_a_release_that_is_gone_is_installed_again_after_a_refresh(
    lab: Lab, helm: Helm, plane_api: Api
) -> None:
    lab.up(release())
    helm("uninstall", "paint", "-n", "studio")

    lab.stack.refresh().check()
    lab.stack.up().check()

    assert shown(plane_api)["color"] == "blue"


def test_values_files_come_first_and_a_null_takes_a_default_away(lab: Lab, plane_api: Api) -> None:
    (lab.stack.directory / "values.yaml").write_text("color: red\nextra: {a: 1, b: 2}\n")
    files = '=[pulumi.FileAsset("values.yaml"), pulumi.StringAsset("extra: {b: 3}")]'

    lab.up(release(value_yaml_files=files, values={"color": None, "extra": {"c": 4}}))

    values = shown(plane_api)
    assert "color" not in values
    assert values["extra"] == {"a": 1, "b": 3, "c": 4}
    lab.stack.preview("--expect-no-changes").check()


def test_an_input_without_effect_is_warned_of_and_upgrades_when_it_goes(lab: Lab) -> None:
    lab.up(release(values={"color": None}, allow_null_values=True))

    warned = lab.stack.preview("--expect-no-changes").check()
    lab.write(release(values={"color": None}))
    without = lab.stack.preview().check()

    assert "`allowNullValues` is deprecated and has no effect" in warned.text
    assert "deprecated" not in without.text
    assert without.step("paint", "update").changes == {"allowNullValues": "delete"}


def test_a_destroy_uninstalls(lab: Lab, plane_api: Api) -> None:
    lab.up(release())

    lab.stack.destroy().check()

    assert plane_api.find("v1/ConfigMap", "paint-values", namespace="studio") is None
    assert lab.resources() == []


def test_a_release_waits_for_the_one_that_it_depends_on_and_goes_before_it(lab: Lab) -> None:
    write_chart(lab.stack.directory / "second", templates={"values.yaml": VALUES, "needs.yaml": NEEDS_FIRST})
    options = "=ResourceOptions(depends_on=[first])"

    lab.write(f"first = {release('first')}" + release("second", chart="./second", opts=options))
    lab.stack.preview().check()
    up = lab.stack.up().check()
    destroy = lab.stack.destroy().check()

    names = [step.name for step in up.steps if step.name in {"first", "second"}]
    assert names == ["first", "second"]
    names = [step.name for step in destroy.steps if step.name in {"first", "second"}]
    assert names == ["second", "first"]


def test_secrets_in_values_reach_the_chart_and_nothing_else(lab: Lab, plane_api: Api) -> None:
    program = 'hidden = pulumi.Output.secret("hush-hush")\n' + release(values="={'token': hidden}")
    lab.write(program)

    printed = [lab.stack.preview("--diff").check(), lab.stack.up("--diff").check()]
    token = shown(plane_api)["token"]
    lab.write(program.replace("hush-hush", "HUSH 2"))
    printed += [lab.stack.preview("--diff"), lab.stack.up("--diff")]

    assert token == "hush-hush"
    assert printed[-1].exit_code == 1
    assert "'/token'" in "".join(printed[-1].errors)
    # Helm quotes the value that it refuses, as an API server does.
    assert not [each.command for each in printed if quotes(each, "hush-hush")]
    assert not [word for word in ("hush-hush", "HUSH 2") if word in json.dumps(lab.stack.export())]


def quotes(result: Result, *secrets: str) -> bool:
    """Tell whether a result has a secret in anything that was printed."""
    return any(secret in result.text for secret in secrets)


def test_a_stopped_deployment_stops_helm_and_the_next_one_goes_on(
    lab: Lab, plane: ControlPlane, plane_api: Api
) -> None:
    waiting = "{{- if .Values.extra.wait }}\n" + NEVER_BOUND + "{{- end }}\n"
    paint(lab, templates={"values.yaml": VALUES, "claim.yaml": waiting})
    lab.write(release(values={"extra": {"wait": True}}))

    up = lab.stack.start("up", "--yes", "--skip-preview")
    plane_api.wait_until("v1/PersistentVolumeClaim", "waits", bool, namespace="studio")
    up.send_signal(signal.SIGINT)
    code = up.wait(120)
    lab.up(release(values={"extra": {"wait": False}}))

    assert code != 0
    assert outputs(lab)["status"]["status"] == "deployed"
    # Helm does not wait for its finalizer.
    plane_api.wait_gone("v1/PersistentVolumeClaim", "waits", namespace="studio")


@pytest.fixture
def helm(binaries: Callable[[str], Path], plane: ControlPlane, tmp_path: Path) -> Helm:
    """Runs helm as somebody else does."""

    def run(*arguments: str) -> str:
        homes = {f"HELM_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "CONFIG", "DATA")}
        return subprocess.run(
            [str(binaries("helm")), *arguments],
            env={"HOME": str(tmp_path), "KUBECONFIG": str(plane.kubeconfig), **homes},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout

    return run
