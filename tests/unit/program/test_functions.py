"""Functions and components of providers: what is local is expanded as pulumi-kubernetes does, everything else is not known."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

from dra_infra.answers import compare
from dra_infra.kubernetes.api import Placeholder
from dra_infra.markers import as_shown, marker_kind
from dra_infra.program.synth import synth, synth_function
from dra_infra.program_objects import Program

MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ml}
data: {a: "1"}
---
apiVersion: v1
kind: List
items:
- apiVersion: batch/v1
  kind: Job
  metadata: {name: train, namespace: ml}
  spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
"""


@pytest.fixture
def run(tmp_path: Path):
    """Runs a program in a project with a folder of manifests."""
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "all.yaml").write_text(MANIFEST)

    def call(program: str) -> Program:
        head = "import pathlib\nimport pulumi\nimport pulumi_kubernetes as k8s\n"
        (tmp_path / "__main__.py").write_text(head + program)
        return synth(tmp_path)

    return call


def names(program: Program) -> list[str]:
    return [str(each.ref) for each in program.objects]


BOTH = ["ConfigMap ml/settings", "Job ml/train"]


@pytest.mark.parametrize(
    "program",
    [
        "k8s.yaml.ConfigFile('f', file='manifests/all.yaml')",
        "k8s.yaml.ConfigGroup('f', files=['manifests/*.yaml'])",
        "k8s.yaml.ConfigGroup('f', yaml=[pathlib.Path('manifests/all.yaml').read_text()])",
        "k8s.yaml.v2.ConfigFile('f', file='manifests/all.yaml')",
        "k8s.yaml.v2.ConfigGroup('f', files=['manifests/*.yaml'])",
        "k8s.yaml.v2.ConfigGroup('f', yaml=pathlib.Path('manifests/all.yaml').read_text())",
    ],
)
def test_yaml_of_the_project_is_expanded(run, program: str):
    result = run(program)
    assert (names(result), result.not_seen, result.problems) == (BOTH, (), ())


def test_children_have_the_urns_of_the_engine(run):
    (settings, _) = run("k8s.yaml.ConfigFile('f', file='manifests/all.yaml')").objects
    assert settings.urn == (
        "urn:pulumi:dev::app::kubernetes:yaml:ConfigFile$kubernetes:core/v1:ConfigMap::ml/settings"
    )
    (settings, _) = run("k8s.yaml.v2.ConfigFile('f', file='manifests/all.yaml')").objects
    assert settings.urn == (
        "urn:pulumi:dev::app::kubernetes:yaml/v2:ConfigFile$kubernetes:core/v1:ConfigMap::f:ml/settings"
    )


PLAIN = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: readers}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: one}
"""
DEFINITION = """\
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {group: example.com, names: {kind: Widget, plural: widgets}, scope: Namespaced}
"""


def names_of_children(program: Program) -> list[str]:
    return sorted(each.urn.rpartition("::")[2] for each in program.objects)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("'f', yaml=%r", ["f:default/settings", "f:one", "f:readers"]),
        ("'f', yaml=%r, resource_prefix='mine'", ["mine:default/settings", "mine:one", "mine:readers"]),
        ("'f', yaml=%r, resource_prefix=''", ["default/settings", "one", "readers"]),
        (
            "'f', yaml=%r, opts=pulumi.ResourceOptions(provider=k8s.Provider('p', namespace='ml'))",
            ["f:ml/settings", "f:one", "f:readers"],
        ),
    ],
)
def test_children_are_named_as_the_provider_names_them(run, arguments: str, expected: list[str]):
    """The names of `Normalize` and `register` in pulumi-kubernetes, provider/pkg/provider/yaml/v2/yaml.go."""
    assert names_of_children(run(f"k8s.yaml.v2.ConfigGroup({arguments % PLAIN})\n")) == expected


def test_a_definition_beside_an_object_says_if_it_has_a_namespace(run):
    result = run(f"k8s.yaml.v2.ConfigGroup('f', yaml={PLAIN + DEFINITION!r})\n")
    assert "f:default/one" in names_of_children(result)


def test_objects_in_the_program_and_their_secrets_are_registered(run):
    result = run(
        "secret = {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 's'}, 'stringData': {'a': 'b'}}\n"
        "k8s.yaml.v2.ConfigGroup('f', objs=[secret], skip_await=True)\n"
    )
    (item,) = result.objects
    assert str(item.ref) == "Secret default/s"
    assert item.manifest["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    assert as_shown(item.manifest["stringData"]) == "[secret]"


@pytest.fixture
def kustomization(tmp_path: Path):
    """A folder with a kustomization beside the program."""
    if not (shutil.which("kubectl") or shutil.which("kustomize")):
        pytest.skip("needs kubectl or kustomize on PATH")
    folder = tmp_path / "overlay"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text("namePrefix: new-\nresources: [one.yaml]\n")
    (folder / "one.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n")
    return folder


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("k8s.kustomize.Directory('f', directory='overlay')", "new-settings"),
        ("k8s.kustomize.v2.Directory('f', directory='overlay')", "f:default/new-settings"),
        ("k8s.kustomize.v2.Directory('f', directory='./overlay', namespace='ml')", "f:ml/new-settings"),
    ],
)
@pytest.mark.usefixtures("kustomization")
def test_a_local_kustomization_is_built(run, program: str, name: str):
    result = run(program)
    assert (names_of_children(result), result.not_seen, result.problems) == ([name], (), ())


@pytest.mark.parametrize("version", ["k8s.kustomize", "k8s.kustomize.v2"])
def test_a_kustomization_with_a_base_at_an_address_is_not_expanded(run, kustomization: Path, version: str):
    (kustomization / "kustomization.yaml").write_text("resources: ['https://example.invalid/all.yaml']\n")
    result = run(f"{version}.Directory('f', directory='overlay')")
    assert (names(result), [each.hides_objects for each in result.not_seen]) == ([], [True])
    assert "no change is known, not expanded" in compare(result, result, base_label="main").summary


HOOK = """\
apiVersion: batch/v1
kind: Job
metadata: {name: hook, annotations: {helm.sh/hook: %s}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
"""


@pytest.fixture
def chart(tmp_path: Path):
    """A chart beside the program, with an object that stays, a hook and a hook of its tests."""
    if not shutil.which("helm"):
        pytest.skip("needs helm on PATH")
    folder = tmp_path / "chart"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: chart\nversion: 1.0.0\n")
    (folder / "values.yaml").write_text("size: 1\n")
    (folder / "templates" / "one.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\n"
        "metadata: {name: settings, annotations: {helm.sh/resource-policy: keep}}\n"
        'data: {size: "{{ .Values.size }}"}\n'
    )
    (folder / "templates" / "hook.yaml").write_text(HOOK % "pre-install")
    (folder / "templates" / "test.yaml").write_text(HOOK.replace("name: hook", "name: test") % "test")
    return folder


@pytest.mark.usefixtures("chart")
def test_a_local_chart_is_rendered_as_its_component_does(run):
    """helm.v4.Chart leaves hooks out and keeps what the chart keeps; helm.v3.Chart registers hooks like all others."""
    result = run("k8s.helm.v4.Chart('f', chart='./chart', values={'size': 64})")
    (item,) = result.objects
    assert (names_of_children(result), result.not_seen) == (["f:default/settings"], ())
    assert item.manifest["data"] == {"size": "64"}
    assert result.options[item.urn].retain_on_delete
    old = run(
        "from pulumi_kubernetes.helm.v3 import Chart, LocalChartOpts\n"
        "Chart('f', LocalChartOpts(path='./chart', namespace='ml', values={'size': 64}))\n"
    )
    assert (names_of_children(old), old.not_seen) == (["ml/hook", "ml/settings"], ())


@pytest.mark.usefixtures("chart")
def test_a_chart_whose_values_are_known_later_is_not_expanded(run):
    result = run(
        "uid = k8s.core.v1.Pod('p', spec={'containers': []}).metadata.uid\n"
        "k8s.helm.v4.Chart('f', chart='./chart', values={'size': uid})\n"
        "k8s.helm.v3.Chart('g', k8s.helm.v3.LocalChartOpts(path='./chart', values={'size': uid}))\n"
    )
    assert names_of_children(result) == ["p"]
    assert [each.hides_objects for each in result.not_seen] == [True, True]


def test_transformations_of_the_program_count(run):
    result = run(
        "def change(obj, opts):\n    obj['metadata']['namespace'] = 'other'\n"
        "k8s.yaml.ConfigFile('f', file='manifests/all.yaml', transformations=[change])\n"
    )
    assert names(result) == ["ConfigMap other/settings", "Job other/train"]


def test_children_inherit_protection(run):
    result = run(
        "k8s.yaml.v2.ConfigFile('f', file='manifests/all.yaml', opts=pulumi.ResourceOptions(protect=True))"
    )
    assert all(result.options[each.urn].protect for each in result.objects)


@pytest.mark.parametrize(
    ("program", "what"),
    [
        (
            "k8s.yaml.v2.ConfigFile('f', file='https://example.invalid/all.yaml')",
            "kubernetes:yaml/v2:ConfigFile f",
        ),
        ("k8s.helm.v4.Chart('f', chart='oci://example.invalid/chart')", "kubernetes:helm.sh/v4:Chart f"),
        (
            "k8s.kustomize.Directory('f', directory='https://github.com/example/example')",
            "function kubernetes:kustomize:directory",
        ),
        (
            "k8s.yaml.ConfigGroup('f', yaml=[k8s.core.v1.Pod('p', spec={'containers': []}).metadata.uid])",
            "function kubernetes:yaml:decode",
        ),
    ],
)
def test_what_is_not_expanded_never_means_that_nothing_changes(run, program: str, what: str):
    result = run(program)
    assert any(each.hides_objects and f"{each.what} {each.name}" == what for each in result.not_seen)
    summary = compare(result, result, base_label="main").summary
    assert summary.startswith("no change is known, not expanded: ")
    assert what in summary


def test_a_file_that_is_not_there_fails_as_it_does_under_the_engine(run):
    with pytest.raises(Exception, match=r"file-unreadable|cannot be read"):
        run("k8s.yaml.v2.ConfigFile('f', file='absent.yaml')")


@pulumi.output_type
class Zone:
    def __init__(self, id: str, ports: list[int]):  # noqa: A002
        pulumi.set(self, "id", id)
        pulumi.set(self, "ports", ports)

    @property
    @pulumi.getter
    def id(self) -> str:
        return pulumi.get(self, "id")

    @property
    @pulumi.getter
    def ports(self) -> list[int]:
        return pulumi.get(self, "ports")


@pulumi.output_type
class Lookup:
    """As generated SDKs write results, with their checks of types."""

    def __init__(self, account_id: str, size: int, names: list[str], zone: Zone, tags: dict[str, str]):
        for name, value, type_ in (
            ("account_id", account_id, str),
            ("size", size, int),
            ("names", names, list),
            ("zone", zone, Zone),
            ("tags", tags, dict),
        ):
            if value and not isinstance(value, type_):
                raise TypeError(f"Expected argument {name!r} to be a {type_}")
            pulumi.set(self, name, value)

    @property
    @pulumi.getter(name="accountId")
    def account_id(self) -> str:
        return pulumi.get(self, "account_id")

    @property
    @pulumi.getter
    def size(self) -> int:
        return pulumi.get(self, "size")

    @property
    @pulumi.getter
    def names(self) -> list[str]:
        return pulumi.get(self, "names")

    @property
    @pulumi.getter
    def zone(self) -> Zone:
        return pulumi.get(self, "zone")

    @property
    @pulumi.getter
    def tags(self) -> dict[str, str]:
        return pulumi.get(self, "tags")


def lookup() -> Any:
    return pulumi.runtime.invoke("cloud:index:lookup", {}, typ=Lookup).value


def data_of(make) -> dict[str, Any]:
    def program():
        k8s.core.v1.ConfigMap("c", metadata={"name": "c"}, data=make())

    (item,) = synth_function(program).objects
    return item.manifest["data"]


def test_the_direct_form_of_a_function_gives_unknown_fields():
    def make():
        found = lookup()
        return {
            "account": found.account_id,
            "inside": f"arn:{found.account_id}:role",
            "size": found.size,
            "third": found.names[2],
            "zone": found.zone.id,
            "tag": found.tags["team"],
        }

    data = data_of(make)
    assert {
        key: marker_kind(value) if isinstance(value, Placeholder) else value for key, value in data.items()
    } == dict.fromkeys(data, "unknown")
    assert as_shown(data["inside"]) == "arn:[unknown]:role"


def test_the_direct_form_without_a_type_gives_unknown_fields():
    data = data_of(lambda: {"a": pulumi.runtime.invoke("cloud:index:lookup", {}).value["any"]})
    assert marker_kind(data["a"]) == "unknown"


def test_a_file_may_stand_in_for_a_result(run, tmp_path: Path):
    (tmp_path / "dra-infra.yaml").write_text("functions:\n  cloud:index:lookup: lookup.json\n")
    (tmp_path / "lookup.json").write_text('{"accountId": "123"}')
    result = run(
        "found = pulumi.runtime.invoke('cloud:index:lookup', {}).value\n"
        "k8s.core.v1.ConfigMap('c', metadata={'name': 'c'}, data={'a': found['accountId']})\n"
    )
    assert result.objects[0].manifest["data"] == {"a": "123"}
    assert [str(each) for each in result.not_seen] == [
        "function cloud:index:lookup: lookup.json stands in for its result"
    ]
