"""The policy pack on the real engine, in programs without our components: what `validate` refuses, in its words, in each language."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from dra_infra.advice.objects import validate
from dra_infra.target import ClusterTarget
from tests.e2e.languages import automation
from tests.e2e.languages.pages import block, lines_shown
from tests.e2e.languages.refused_objects import API, H100, OBJECTS, REFUSED, Json, claim, request, selected
from tests.support.lab import Lab
from tests.support.pages.documents import ROOT
from tools import sdk_programs
from tools.cluster import Api
from tools.engine_cli import Result
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e

PAGE = ROOT / "docs" / "policy-pack.md"

UNGUARDED = 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"'

POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train", "namespace": "ml"},
    "spec": {
        "containers": [
            {"name": "a", "image": "registry.example/a:1", "resources": {"claims": [{"name": "gpu"}]}}
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpus"}],
    },
}

PYTHON = """
import json

class Plain(pulumi.CustomResource):
    def __init__(self, token, name, manifest):
        super().__init__(token, name, manifest, ResourceOptions(version="4.34.2"))

def make(manifest):
    version = manifest["apiVersion"]
    group = version if "/" in version else f"core/{version}"
    return Plain(f"kubernetes:{group}:{manifest['kind']}", manifest["metadata"]["name"], manifest)
"""


@pytest.fixture
def offline(home: PulumiHome, tmp_path: Path) -> Lab:
    """A project whose engine reaches no cluster."""
    return Lab.create(tmp_path, home=home, namespace="ml", environment={})


def in_python(lab: Lab, objects: Sequence[Json]) -> None:
    lab.write(f"{PYTHON}\nfor manifest in json.loads({json.dumps(objects)!r}):\n    make(manifest)\n")


def in_yaml(lab: Lab, objects: Sequence[Json]) -> None:
    resources = {each["metadata"]["name"]: {"type": token(each), "properties": each} for each in objects}
    project = {"name": "project", "runtime": "yaml", "plugins": lab.home.plugins, "resources": resources}
    lab.stack.directory.joinpath("Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False))


def token(manifest: Json) -> str:
    version = manifest["apiVersion"]
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{manifest['kind']}"


@pytest.fixture
def preview(offline: Lab, pack: Path) -> Callable[..., Result]:
    """Preview the program with the pack and its configuration."""

    def run(config: Json | None = None, *flags: str) -> Result:
        if config is not None:
            file = offline.stack.directory / "pack.json"
            file.write_text(json.dumps(config))
            flags = (*flags, "--policy-pack-config", str(file))
        return offline.stack.preview("--policy-pack", str(pack), *flags)

    return run


def said(result: Result) -> str:
    """What was printed, on one line."""
    return " ".join(result.text.split())


def preview_typescript(lab: Lab, pack: Path) -> tuple[int, str]:
    """Preview the objects by a program in TypeScript."""
    automation.write_project(lab, "nodejs")
    file = lab.stack.directory / "objects.json"
    file.write_text(json.dumps(OBJECTS))
    done = automation.run(lab, sdk_programs.in_typescript(), "preview", "objects", str(file), str(pack))
    return done.returncode, done.stdout


def preview_written(write: Callable[[Lab, Sequence[Json]], None]) -> Callable[[Lab, Path], tuple[int, str]]:
    def preview(lab: Lab, pack: Path) -> tuple[int, str]:
        write(lab, OBJECTS)
        result = lab.stack.preview("--policy-pack", str(pack))
        return result.exit_code, result.text

    return preview


@pytest.mark.parametrize(
    "run",
    [preview_written(in_python), preview_written(in_yaml), preview_typescript],
    ids=["Python", "YAML", "TypeScript"],
)
def test_what_validate_refuses_is_refused_in_its_words(
    offline: Lab, pack: Path, run: Callable[[Lab, Path], tuple[int, str]]
) -> None:
    expected = validate(OBJECTS, ClusterTarget())
    refused = {each.code for each in expected if each.severity == "error"}
    assert refused >= set(REFUSED)

    exit_code, printed = run(offline, pack)

    assert exit_code == 1
    shown = " ".join(printed.split())
    assert [str(each) for each in expected if " ".join(str(each).split()) not in shown] == []
    for each in expected:
        level = "mandatory" if each.severity == "error" else "advisory"
        assert f"[{level}] {each.code} (" in shown
    assert "Traceback" not in printed


def test_a_level_of_the_configuration_decides(offline: Lab, preview: Callable[..., Result]) -> None:
    in_python(offline, [H100, REFUSED["count-below-one"], claim("unguarded", selected(UNGUARDED))])

    levels = {"count-below-one": "advisory", "cel-unguarded-read": "disabled"}
    result = preview(levels).check()
    assert "[advisory] count-below-one (" in said(result)
    assert "cel-unguarded-read" not in said(result)
    strict = preview(
        {"all": "disabled", "cel-unguarded-read": {"enforcementLevel": "mandatory", "warnings": "mandatory"}}
    )
    assert strict.exit_code == 1
    assert "[mandatory] cel-unguarded-read (" in said(strict)
    assert "count-below-one" not in said(strict)


def test_what_a_hint_says_exactly_is_remedied(offline: Lab, preview: Callable[..., Result]) -> None:
    flat = {"name": "gpu", "deviceClassName": "h100", "count": 2}
    in_python(offline, [H100, claim("unguarded", selected(UNGUARDED)), claim("flat", flat)])
    codes = ("cel-unguarded-read", "unknown-field")

    result = preview(dict.fromkeys(codes, "remediate"), "--show-policy-remediations").check()

    for code in codes:
        assert f"[remediate] {code} (" in said(result)
    assert "[mandatory]" not in said(result)
    guarded = f'has(device.attributes["gpu.nvidia.com"].architecture) && {UNGUARDED}'
    for name, expected in {"unguarded": selected(guarded), "flat": request(count=2)}.items():
        assert result.step(name, "create").inputs["spec"] == claim(name, expected)["spec"]


def test_a_workload_that_does_not_fit_the_fleet_of_the_stack_is_refused(
    offline: Lab, preview: Callable[..., Result]
) -> None:
    in_python(offline, [H100, claim("gpus", request(count=9)), POD])
    assert "✅ dra-infra@v" in preview().check().text
    offline.stack.configure("dra-infra:fleet", "hgx-h100")

    result = preview()

    assert result.exit_code == 1
    head = "[mandatory] does-not-fit (kubernetes:core/v1:Pod: train) Pod ml/train: does not fit hgx-h100"
    assert head in said(result)


def test_a_wrong_configuration_is_a_problem_with_a_code(offline: Lab, preview: Callable[..., Result]) -> None:
    in_python(offline, [H100])

    result = preview({"settings": {"fleet": "hgx-h1000"}})

    assert result.exit_code == 1
    assert "[mandatory] settings (" in said(result)
    assert "[fleet-unknown]" in result.text
    assert "Traceback" not in result.text


def test_what_is_secret_or_known_only_after_up_is_neither_shown_nor_decided(
    offline: Lab, preview: Callable[..., Result]
) -> None:
    offline.stack.configure("project:token", "planted-setting", "--secret")
    offline.write(
        f"""{PYTHON}
def made(name, count, owner):
    manifest = {claim("gpus", request())!r}
    manifest["metadata"] = {{"name": name, "namespace": "ml", "annotations": {{"note": pulumi.Config().require("token")}},
        "labels": {{"owner": pulumi.Output.secret(owner)}}}}
    manifest["spec"]["devices"]["requests"][0]["exactly"]["count"] = count
    make(manifest)

make({H100!r})
made("later", config_map("other").id.apply(lambda _: -1), "planted owner")
made("secret", pulumi.Output.secret(-1), "planted owner")
made("plain", -1, "planted owner")
"""
    )

    result = preview()

    field = "spec.devices.requests[0].exactly.count"
    assert f"ResourceClaim ml/plain.{field}: Invalid value: -1" in said(result)
    assert f"ResourceClaim ml/later: {field} is known only after `pulumi up`" in said(result)
    assert "ResourceClaim ml/secret: spec.devices.requests is secret" in said(result)
    assert said(result).count("[count-below-one]") == 1
    for planted in ("planted owner", "planted-setting"):
        assert planted not in result.text


def test_the_page_shows_what_a_user_sees(offline: Lab, preview: Callable[..., Result]) -> None:
    program = yaml.safe_load(block(PAGE, "yaml", "runtime: yaml").text)
    offline.stack.directory.joinpath("Pulumi.yaml").write_text(
        yaml.safe_dump({**program, "name": "project", "plugins": offline.home.plugins})
    )

    result = preview()

    assert result.exit_code == 1
    shown = [line for line in lines_shown(block(PAGE, "console", "--policy-pack")) if "local:" not in line]
    assert len(shown) == 4
    assert [line for line in shown if line not in said(result)] == []


def test_the_configuration_on_the_page_is_one(offline: Lab, preview: Callable[..., Result]) -> None:
    config = json.loads(block(PAGE, "json", "settings").text)
    in_python(offline, [H100, claim("gpus", selected(UNGUARDED))])

    assert "[remediate] cel-unguarded-read (" in said(preview(config).check())


def test_up_decides_what_a_preview_leaves_open_and_makes_what_is_remedied(
    lab: Lab, pack: Path, cluster_api: Api
) -> None:
    flat = claim("flat", {"name": "gpu", "deviceClassName": "gpu.example.com", "count": 2})
    lab.write(
        f"""{PYTHON}
later = {claim("later", request())!r}
selector = config_map("other").id.apply(lambda _: {UNGUARDED!r})
later["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{{"cel": {{"expression": selector}}}}]
for manifest in ({flat!r}, later):
    manifest["metadata"]["namespace"] = NAMESPACE
    make(manifest)
"""
    )
    config = lab.stack.directory / "pack.json"
    config.write_text(json.dumps({"unknown-field": "remediate"}))
    flags = ("--policy-pack", str(pack), "--policy-pack-config", str(config))

    assert "[cel-unguarded-read]" not in said(lab.stack.preview(*flags).check())
    up = lab.stack.up(*flags).check()

    assert "[advisory] cel-unguarded-read (" in said(up)
    stored = cluster_api.get(f"{API}/ResourceClaim", "flat", namespace=lab.namespace)
    assert stored["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
    lab.stack.preview("--expect-no-changes", *flags).check()
