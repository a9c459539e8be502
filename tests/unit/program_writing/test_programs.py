"""Written programs: they make the very objects that the plain migration gives, and read as a person would write them."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.documents.yaml import read_manifests, write_manifests
from dra_infra.program.synth import synth_function
from dra_infra.program_writing.checking import check_objects, check_program_text
from dra_infra.program_writing.claims import of_minor
from dra_infra.program_writing.program import write_program
from tests.support.migration.program_cases import made_by, rows, sorted_objects
from tests.support.pages.documents import ROOT

ROWS = rows()


def objects(text: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


@pytest.mark.parametrize("row", ROWS)
def test_a_program_of_what_a_row_became_makes_the_same_objects(row: str):
    program = write_program(ROWS[row])
    assert check_objects(ROWS[row]) == []
    assert made_by(program.text) == sorted_objects(ROWS[row])
    assert check_program_text(program.text, ROWS[row]) == []


@pytest.mark.parametrize(
    "example", sorted(path.parent.name for path in ROOT.glob("examples/*/expected.yaml"))
)
def test_what_an_example_makes_goes_to_components_and_back(example: str):
    found = read_manifests((ROOT / "examples" / example / "expected.yaml").read_text())
    back = read_manifests(write_manifests(made_by(write_program(found).text)))
    assert sorted_objects(back) == sorted_objects(found)


def test_programs_are_laid_out_as_a_formatter_lays_them_out(tmp_path: Path):
    for index, each in enumerate(ROWS.values()):
        (tmp_path / f"p{index}.py").write_text(write_program(each).text)
    ruff = [sys.executable, "-m", "ruff"]
    for arguments in (["format", "--check", "--line-length", "100"], ["check"]):
        done = subprocess.run(
            [*ruff, *arguments, "--isolated", str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def test_the_same_objects_give_the_same_program():
    every = [each for row in ROWS.values() for each in row if each["kind"] != "Namespace"]
    assert write_program(every).text == write_program(every).text


SERVE = """
apiVersion: v1
kind: Namespace
metadata: {name: ml}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: ml}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers: [{name: main, image: "serve:1", resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: serve}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: serve, namespace: ml, labels: {team: a}}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: h100, count: 2}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: h100}
spec:
  selectors:
  - cel: {expression: 'device.driver == "gpu.nvidia.com" && has(device.attributes["gpu.nvidia.com"].type) && device.attributes["gpu.nvidia.com"].type == "gpu"'}
  - cel: {expression: 'has(device.capacity["gpu.nvidia.com"].memory) && device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("79Gi")) >= 0'}
"""


def test_what_is_used_stands_first_and_is_named():
    assert (
        write_program(objects(SERVE)).text
        == '''\
"""Objects of a cluster, as `dra-infra migrate` wrote them."""

import pulumi_kubernetes as k8s

import dra_infra as dra

ml = k8s.core.v1.Namespace("ml", metadata={"name": "ml"})

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.memory >= "79Gi")

serve = dra.GpuClaimTemplate(
    "serve",
    device_class=h100,
    count=2,
    namespace=ml.metadata["name"],
    object_name="serve",
    labels={"team": "a"},
)

k8s.apps.v1.Deployment(
    "serve",
    metadata={"name": "serve", "namespace": ml.metadata["name"]},
    spec={
        "selector": {"match_labels": {"app": "serve"}},
        "template": {
            "metadata": {"labels": {"app": "serve"}},
            "spec": serve.attach(
                {"containers": [{"name": "main", "image": "serve:1"}]},
                entry="gpu",
            ),
        },
    },
)
'''
    )


def test_a_claim_that_several_containers_use_by_request_is_attached_once_for_each():
    found = objects("""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: pair}
spec:
  devices:
    requests:
    - {name: big, exactly: {deviceClassName: gpu.nvidia.com}}
    - {name: small, firstAvailable: [{name: a, deviceClassName: mine}, {name: b, deviceClassName: gpu.nvidia.com, allocationMode: All}]}
---
apiVersion: v1
kind: Pod
metadata: {name: work}
spec:
  initContainers: [{name: fetch, image: i, resources: {claims: [{name: pair, request: small}]}}]
  containers:
  - {name: a, image: i, resources: {claims: [{name: pair, request: big}]}}
  - {name: b, image: i, resources: {claims: [{name: pair, request: small}], limits: {cpu: 1}}}
  resourceClaims: [{name: pair, resourceClaimName: pair}]
""")
    text = write_program(found).text
    assert "work_pod: k8s.core.v1.PodSpecArgsDict = {\n" in text
    assert 'work_pod = pair.attach(work_pod, containers=["fetch", "b"], request="small")\n' in text
    assert 'work_pod = pair.attach(work_pod, containers="a", request="big")\n' in text
    assert 'dra.Alternative("a", device_class=dra.class_ref("mine")),' in text
    assert made_by(text) == sorted_objects(found)


BOTH = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: pair}
spec: {devices: {requests: [{name: big, exactly: {deviceClassName: gpu.nvidia.com}}, {name: small, exactly: {deviceClassName: gpu.nvidia.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: work}
spec:
  initContainers: [{name: side, image: i, restartPolicy: Always, resources: {claims: [{name: p, request: small}]}}]
  containers: [{name: main, image: i, resources: {claims: [{name: p, request: big}, {name: p, request: small}]}}]
  resourceClaims: [{name: p, resourceClaimName: pair}]
"""


def test_two_requests_of_one_claim_are_attached_in_the_order_of_the_container_that_has_both():
    found = objects(BOTH)
    program = write_program(found)
    assert program.remarks == [(), ()]
    calls = [line for line in program.text.splitlines() if ".attach(" in line]
    assert ['request="big"' in each for each in calls] == [True, False]
    assert made_by(program.text) == sorted_objects(found)


@pytest.mark.parametrize(
    "claims", ["[{name: p, request: small}, {name: p, request: big}]", "[{name: p, request: big}, {name: p, request: [x]}]"]
)  # fmt: skip
def test_requests_that_two_containers_have_in_two_orders_stay_as_they_are(claims: str):
    found = objects(BOTH.replace("[{name: p, request: small}]", claims))
    program = write_program(found)
    assert [each.code for each in program.remarks[1]] == ["kept-as-object"]
    assert ".attach(" not in program.text


def test_an_entry_that_attach_does_not_take_is_written_as_it_is():
    found = objects(
        SERVE.replace("{name: gpu, resourceClaim", "{name: gpu.5gb, resourceClaim").replace(
            "[{name: gpu}]", "[{name: gpu.5gb}]"
        )
    )
    program = write_program(found)
    assert ".attach(" not in program.text
    assert check_program_text(program.text, found) == []


def test_what_attach_would_put_in_another_order_stays_and_says_so():
    found = objects(
        SERVE.replace(
            "resourceClaims: [", "resourceClaims: [{name: other, resourceClaimName: elsewhere}, "
        ).replace("claims: [{name: gpu}]", "claims: [{name: gpu}, {name: other}]")
    )
    program = write_program(found)
    assert [each.code for each in program.remarks[1]] == ["kept-as-object"]
    assert ".attach(" not in program.text
    assert made_by(program.text) == sorted_objects(found)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("spec: {spec:", "spec: {metadata: {labels: {a: b}}, spec:", "no argument says spec.metadata"),
        ("labels: {team: a}", "finalizers: [a/b]", "no argument says metadata.finalizers"),
        ("resource.k8s.io/v1\nkind: ResourceClaimTemplate", "resource.k8s.io/v1beta2\nkind: ResourceClaimTemplate", "version"),
        ("count: 2", "count: 2, nothing: known", "it has what no argument says"),
        ("count: 2", "selectors: [{cel: {expression: 'true'}}, {cel: {expression: 'true'}}]", "several selectors"),
    ],
)  # fmt: skip
def test_what_no_component_says_is_written_as_the_object_that_it_is(old: str, new: str, why: str):
    found = objects(SERVE.replace(old, new))
    program = write_program(found)
    (remark,) = program.remarks[2]
    assert (remark.code, remark.outcome) == ("kept-as-object", "kept")
    assert why in remark.message
    assert "dra.GpuClaimTemplate" not in program.text
    assert made_by(program.text) == sorted_objects(found)


RULE = """
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: service, labels: {team: a}}
spec: {deviceSelector: {driver: gpu.nvidia.com, pool: node-1}, taint: {key: a/b, value: x, effect: NoExecute}}
"""


@pytest.mark.parametrize(("version", "minor"), [("v1", "1.37"), ("v1beta2", "1.36"), ("v1alpha3", "1.35")])
def test_a_taint_rule_is_a_component_for_a_minor_of_its_version(version: str, minor: str):
    found = objects(RULE.replace("resource.k8s.io/v1", f"resource.k8s.io/{version}"))
    program = write_program(found)
    assert (program.components, program.remarks) == (1, [()])
    assert f'target=dra.ClusterTarget(kubernetes="{minor}")' in program.text
    assert made_by(program.text) == sorted_objects(found)
    assert check_program_text(program.text, found) == []


@pytest.mark.parametrize(("minor", "version"), [("1.34", "v1"), ("1.35", "v1alpha3")])
def test_a_taint_rule_with_an_effect_that_a_minor_lacks_keeps_its_version(minor: str, version: str):
    (found,) = objects(RULE.replace("NoExecute", '"None"'))
    assert of_minor(found, minor)["apiVersion"] == f"resource.k8s.io/{version}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("driver: gpu.nvidia.com, pool: node-1", ""),
        ("pool: node-1", "pool: false"),
        ("pool: node-1", "selectors: []"),
        ("value: x", 'timeAdded: "2026-01-01T00:00:00Z"'),
        ("value: x, effect: NoExecute", 'value: ""'),
        ("name: service", "name: service, namespace: ml"),
        ("resource.k8s.io/v1", "resource.k8s.io/v1beta9"),
    ],
)
def test_a_taint_rule_that_no_component_makes_stays_and_says_so(old: str, new: str):
    found = objects(RULE.replace(old, new))
    program = write_program(found)
    assert [[each.code for each in remarks] for remarks in program.remarks] == [["kept-as-object"]]


def test_a_class_that_begins_with_another_selector_is_written_as_the_object_that_it_is():
    found = objects(SERVE.replace(' == "gpu"\'', ' != "gpu"\''))
    program = write_program(found)
    assert [each.code for each in program.remarks[3]] == ["kept-as-object"]
    assert 'device_class=dra.class_ref("h100")' in program.text
    assert made_by(program.text) == sorted_objects(found)


def test_fields_of_typed_resources_are_spelt_as_the_vendor_spells_them_and_keys_of_users_stay():
    found = objects("""
apiVersion: v1
kind: Service
metadata: {name: a, labels: {clusterIP: no-field}}
spec: {clusterIP: None, clusterIPs: [None], externalTrafficPolicy: Local, clusterIp: not-known, selector: {matchLabels: a}}
""")
    text = write_program(found).text
    for part in (
        '"cluster_ip": "None"',
        '"cluster_ips": [',
        '"external_traffic_policy": "Local"',
        '"clusterIp": ',
        '{"clusterIP": "no-field"}',
        '{"matchLabels": "a"}',
    ):
        assert part in text
    assert made_by(text) == sorted_objects(found)


def test_objects_of_one_name_get_names_of_their_own():
    found = objects(SERVE)
    other = objects(
        SERVE.replace("ml", "other").replace("name: serve, namespace: other", "name: serve, namespace: other")
    )
    both = [*found[:3], *other]
    text = write_program(both).text
    assert 'other_serve = dra.GpuClaimTemplate(\n    "other-serve",' in text
    assert made_by(text) == sorted_objects(both)


def named(text: str) -> dict[tuple[str, str, str], str]:
    """The name of the resource that makes each object, by kind, namespace and name."""

    def program() -> None:
        exec(compile(text, "__main__.py", "exec"), {"__name__": "__main__"})  # noqa: S102

    return {
        (each.ref.kind, each.ref.namespace, each.ref.name): each.urn.rpartition("::")[2]
        for each in synth_function(program).objects
    }


def template(name: str, namespace: str) -> dict[str, Any]:
    (found,) = objects(SERVE)[2:3]
    return {**found, "metadata": {"name": name, "namespace": namespace}}


LONG = "a-very-long-name-of-a-deployment-that-some-template-made-for-a-team"
CROWDED = [
    *objects(SERVE)[1:],
    *objects(SERVE.replace("ml", "other"))[1:3],
    *(template(name, "ml") for name in ("1st-tmpl", "1st.tmpl", f"{LONG}-gpu", f"{LONG}-side-gpu", "other-serve")),
    template("alone", "ml"),
]  # fmt: skip


def test_what_a_resource_is_called_does_not_depend_on_the_order():
    found = named(write_program(CROWDED).text)
    for seed in range(5):
        shuffled = random.Random(seed).sample(CROWDED, len(CROWDED))  # noqa: S311
        assert named(write_program(shuffled).text) == found
    assert len({(kind, name) for (kind, _, _), name in found.items()}) == len(found)


def test_all_that_have_one_name_get_their_namespace_and_none_that_is_alone():
    found = named(write_program(CROWDED).text)
    assert found["Deployment", "ml", "serve"] == "ml-serve"
    assert found["Deployment", "other", "serve"] == "other-serve"
    assert found["ResourceClaimTemplate", "ml", "serve"] == "ml-serve"
    assert found["ResourceClaimTemplate", "ml", "alone"] == "alone"
    assert found["ResourceClaimTemplate", "ml", "other-serve"] == "other-serve"
    assert found["ResourceClaimTemplate", "other", "serve"].startswith("serve-")
    assert found["ResourceClaimTemplate", "ml", "1st-tmpl"] == "1st-tmpl"
    assert found["ResourceClaimTemplate", "ml", "1st.tmpl"] == "ml-1st-tmpl"


MADE_UP = """
apiVersion: v1
kind: Namespace
metadata: {name: team-*, annotations: {pulumi.com/autonamed: "true"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: auto-*, namespace: team-*, annotations: {pulumi.com/autonamed: "true", a: b}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: team-*}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train-*, namespace: team-*, annotations: {pulumi.com/autonamed: "true"}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: i, envFrom: [{configMapRef: {name: auto-*}}], resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
"""


def test_names_that_pulumi_makes_up_are_left_to_it_and_referred_to():
    found = objects(MADE_UP)
    program = write_program(found)
    assert "-*" not in program.text
    assert "autonamed" not in program.text
    assert '"config_map_ref": {"name": auto.metadata["name"]}' in program.text
    assert 'namespace=team.metadata["name"]' in program.text
    assert (program.components, program.remarks[2]) == (1, ())
    assert check_program_text(program.text, found) == []
    assert made_by(program.text) == sorted_objects(found)


def test_made_up_names_of_one_resource_name_are_told_apart():
    again = MADE_UP.replace("auto-*", "auto-*-1a2b3c4d").replace(
        "name: gpu, namespace", "name: own, namespace"
    )
    found = [*objects(MADE_UP), *objects(again)[1:3]]
    program = write_program(found)
    names = [value for (kind, _, _), value in named(program.text).items() if kind == "ConfigMap"]
    assert sorted(each[:5] for each in names) == ["auto-", "auto-"]
    assert check_program_text(program.text, found) == []


def test_a_namespace_whose_name_is_made_up_tells_objects_of_one_name_apart_by_its_resource():
    elsewhere = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "auto", "namespace": "other"}}
    found = [*objects(MADE_UP), elsewhere]
    program = write_program(found)
    assert 'k8s.core.v1.ConfigMap(\n    "team-auto",' in program.text
    assert 'k8s.core.v1.ConfigMap("other-auto",' in program.text
    assert check_program_text(program.text, found) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("image: i,", "image: i, args: [http://auto-*.team],", ["ConfigMap team-*/auto-*"]),
        ("a: b", "auto-*: b", ["ConfigMap team-*/auto-*"]),
        ("restartPolicy: Never", "hostname: train-*", ["program"]),
    ],
)
def test_a_text_with_a_made_up_name_that_no_reference_says_is_told(old: str, new: str, told: list[str]):
    found = objects(MADE_UP.replace(old, new))
    problems = check_program_text(write_program(found).text, found)
    assert [(each.code, each.path) for each in problems] == [("not-in-program", each) for each in told]


def test_a_made_up_name_that_two_objects_have_is_told_where_a_text_has_it():
    found = [*objects(MADE_UP), *objects(MADE_UP.replace("kind: ConfigMap", "kind: Secret"))[1:2]]
    problems = check_program_text(write_program(found).text, found)
    assert [each.path for each in problems] == ["ConfigMap team-*/auto-*", "Secret team-*/auto-*"]


def test_what_a_server_names_is_named_by_pulumi_for_server_side_apply_takes_no_other():
    found = objects(
        "{apiVersion: batch/v1, kind: Job, metadata: {generateName: train-, labels: {a: b}}, spec: {}}"
    )
    text = write_program(found).text
    assert 'k8s.batch.v1.Job("train", metadata={"labels": {"a": "b"}}, spec={})\n' in text
    assert check_program_text(text, found) == []


def test_a_number_that_pulumi_rounds_is_told():
    found = objects("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    big = {
        "apiVersion": "example.com/v1",
        "kind": "Big",
        "metadata": {"name": "b"},
        "spec": {"n": [1, {"m": 2**53 + 1}]},
    }
    (problem,) = check_program_text(write_program([*found, big]).text, [*found, big])
    assert (problem.code, problem.path) == ("not-in-program", "Big b")
    assert problem.message == "Pulumi would make another object of it: spec.n[1].m would differ"


MISFITS = {
    "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: [1]}": "spec",
    "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: {port: 1}}}": "spec.ports",
    "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{name: [b]}]}}": "spec.ports[0].name",
    "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: [b]}}": "spec.selector",
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: {c: d}}}": "data.b",
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: yes}}": "data.b",
    "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: [{csi: {volumeAttributes: {b: true}}}]}}": "spec.volumes[0].csi.volumeAttributes.b",
    "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{targetPort: {b: 1}}]}}": "spec.ports[0].targetPort",
    "{apiVersion: example.com/v1, kind: Own, metadata: {name: a, labels: [b]}, spec: [1]}": "metadata.labels",
    "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: a}, spec: {devices: [1]}}": "spec.devices",
    "{apiVersion: resource.k8s.io/v1, kind: DeviceTaintRule, metadata: {name: a}, spec: {deviceSelector: [1]}}": "spec.deviceSelector",
}


@pytest.mark.parametrize("text", MISFITS)
def test_a_value_that_the_class_of_its_kind_does_not_take_is_told_of_its_object_alone(text: str):
    (problem,) = check_objects([*objects(SERVE), *objects(text)])
    assert (problem.code, problem.path) == ("not-in-program", f"{objects(text)[0]['kind']} a")
    assert f"{MISFITS[text]} is of another type" in problem.message


def test_a_type_that_is_one_of_several_is_taken():
    (found,) = objects(
        "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: owns.example.com}, "
        "spec: {versions: [{name: v1, schema: {openAPIV3Schema: {items: {type: string}}}}]}}"
    )
    assert check_objects([found]) == []


def test_what_no_class_holds_to_types_may_be_anything():
    found = objects("{apiVersion: example.com/v1, kind: Own, metadata: {name: a}, spec: [1], more: {b: [c]}}")
    assert check_objects(found) == []
    assert made_by(write_program(found).text) == found


def test_an_object_that_a_program_lacks_is_told():
    found = objects(SERVE)
    problems = check_program_text(write_program(found[:2]).text, found)
    assert [each.path for each in problems] == ["ResourceClaimTemplate ml/serve", "DeviceClass h100"]


def test_what_lies_too_deep_for_pythons_parser_is_read_from_a_text():
    deep: Any = "end"
    for _ in range(150):
        deep = {"in": deep}
    found = [{"apiVersion": "example.com/v1", "kind": "Deep", "metadata": {"name": "d"}, "spec": deep}]
    text = write_program(found).text
    assert "import json\n" in text
    assert made_by(text) == found
