from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.catalog import load_fleet
from dra_infra.cli.app import app
from dra_infra.errors import ProblemsError

ROOT = Path(__file__).parents[3]
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "any"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]},
}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "four", "namespace": "ml"},
    "spec": {
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "any", "count": 4}}]}
        }
    },
}
SERVING = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "serving", "namespace": "ml"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "serving"}},
        "template": {
            "metadata": {"labels": {"app": "serving"}},
            "spec": {
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "four"}],
                "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
            },
        },
    },
}


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    file = tmp_path / "serving.yaml"
    file.write_text(yaml.safe_dump_all([CLASS, TEMPLATE, SERVING]))
    return file


def simulate(*arguments: object):
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)], standalone_mode=False)


def answer(*arguments: object):
    result = simulate(*arguments, "--json")
    return result.return_value, json.loads(result.stdout)


def test_manifests_are_placed_as_programs_are(manifests):
    result = simulate(manifests, "--fleet", "hgx-h100")
    assert result.return_value == 0, result.output
    assert "✓ Deployment ml/serving" in result.stdout
    assert any(line.split() == ["any", "8", "0", "-"] for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    ("options", "fits", "more"),
    [
        ((), True, 2),
        (("--scale", "deployment/serving=4"), True, 0),
        (("--scale", "deployment/serving=5"), False, 0),
        (("--scale", "deployment/serving=5", "--add", "hgx-h100"), True, 1),
        (("--drain", "hgx-h100-0"), True, 0),
        (("--remove", "hgx-h100-*"), False, 0),
        (("--fail", "hgx-h100-0/gpu-[0-4]"), True, 0),
        (("--fail", "*/gpu-[0-4]"), False, 0),
    ],
)
def test_what_ifs_change_the_answer(manifests, options, fits, more):
    code, found = answer(manifests, "--fleet", "hgx-h100 x 2", *options)
    (workload,) = found["workloads"]
    assert (workload["verdict"] == "fits", workload["morePods"]) == (fits, more)
    assert code == (0 if fits else 1)
    assert len([note for note in found["notes"] if note.startswith("what if: ")]) == len(options) // 2


def test_headroom_is_told_before_and_after(manifests):
    _, found = answer(manifests, "--fleet", "hgx-h100 x 2", "--kubernetes", "1.36")
    assert found["provenance"]["placement"] == "1.36"
    rooms = {each["name"]: each for each in found["headroom"]}
    assert rooms["any"]["before"] == {
        "claims": 16,
        "largest": 8,
        "perNode": [{"claims": 8, "nodes": 2}],
    }
    assert rooms["any"]["after"] == {"claims": 8, "largest": 8, "perNode": [{"claims": 8, "nodes": 1}]}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--scale", "deployment/serving=-1"), "scale-number"),
        (("--scale", "daemonset/serving=2"), "scale-unknown"),
        (("--remove", "nope"), "what-if-node"),
        (("--fail", "hgx-h100-0/gpu-8"), "what-if-device"),
        (("--kubernetes", "1.99"), "unknown-kubernetes"),
        (("--gate", "Nope=true"), "unknown-gate"),
        (("--driver", "99"), "unknown-driver-release"),
    ],
)
def test_mistakes_of_a_what_if_are_told_with_their_code(manifests, options, code):
    result = simulate(manifests, "--fleet", "hgx-h100", *options)
    assert isinstance(result.exception, ProblemsError)
    assert code in [problem.code for problem in result.exception.problems]


def test_an_older_driver_publishes_an_older_fleet(manifests):
    _, found = answer(manifests, "--fleet", "hgx-h100", "--driver", "25.8")
    assert "driver=25.8" in found["fleet"]["name"]


def two_sizes(tmp_path, *, ones, eights):
    """A folder with a Deployment of pods with one GPU, and one of pods with all eight of a node."""

    def sized(name, count, replicas):
        template = copy.deepcopy(TEMPLATE)
        template["metadata"]["name"] = name
        template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = count
        serving = copy.deepcopy(SERVING)
        serving["metadata"]["name"] = name
        serving["spec"]["replicas"] = replicas
        serving["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = name
        return template, serving

    objects = [CLASS, *sized("one", 1, ones), *sized("eight", 8, eights)]
    path = tmp_path / "two-sizes.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def test_all_workloads_at_once_never_fit_though_each_does(tmp_path):
    path = two_sizes(tmp_path, ones=9, eights=1)
    code, found = answer(path, "--fleet", "hgx-h100 x 2")
    assert [each["verdict"] for each in found["workloads"]] == ["fits", "fits"]
    assert (code, found["joint"]["verdict"]) == (1, "never")
    (proof,) = found["joint"]["reasons"]
    assert proof == (
        "17 devices asked (8 devices by Deployment ml/eight, 9 devices by Deployment ml/one); "
        "2 nodes (hgx-h100-0..1) can serve pods that ask for 16 devices at once"
    )
    assert (
        "✗ All at once: never fit at once: 17 devices asked"
        in simulate(path, "--fleet", "hgx-h100 x 2").stdout
    )


@pytest.mark.parametrize(("ones", "code", "verdict"), [(8, 0, "depends-on-order"), (9, 1, "never")])
def test_one_node_of_each_kind_is_drained_in_turn(tmp_path, ones, code, verdict):
    path = two_sizes(tmp_path, ones=ones, eights=1)
    options = (path, "--fleet", "hgx-h100 x 3", "--drain", "1")
    found_code, found = answer(*options)
    assert (found_code, len(found["workloads"][0]["nodes"])) == (code, 3)
    (drained,) = found["drained"]
    assert (drained["node"], drained["alike"]) == ("hgx-h100-0", 3)
    assert drained["joint"]["verdict"] == verdict
    assert "With hgx-h100-0 drained, or one of 2 other nodes like it: " in simulate(*options).stdout
    two = simulate(path, "--fleet", "hgx-h100 x 2", "--drain", "1").stdout
    assert "With hgx-h100-0 drained, or the other node like it: " in two


@pytest.fixture
def others(tmp_path):
    """A snapshot of two nodes of eight GPUs, on the first of which a pod of another program has four."""
    owner = {"kind": "StatefulSet", "name": "others", "controller": True}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "others-0", "namespace": "ml", "uid": "1", "ownerReferences": [owner]},
        "spec": {**SERVING["spec"]["template"]["spec"], "nodeName": "hgx-h100-0"},
        "status": {
            "phase": "Running",
            "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "others-0"}],
        },
    }
    gpus = [
        {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "hgx-h100-0", "device": f"gpu-{each}"}
        for each in range(4)
    ]
    claim = {
        **TEMPLATE,
        "kind": "ResourceClaim",
        "metadata": {
            "name": "others-0",
            "namespace": "ml",
            "ownerReferences": [{"kind": "Pod", "name": "others-0", "uid": "1", "controller": True}],
        },
        "spec": TEMPLATE["spec"]["spec"],
        "status": {
            "allocation": {"devices": {"results": gpus}},
            "reservedFor": [{"resource": "pods", "name": "others-0", "uid": "1"}],
        },
    }
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([*load_fleet("hgx-h100 x 2").to_manifests(), pod, claim]))
    return file


@pytest.mark.parametrize("change", ["--drain=*-0", "--remove=*-0", "--fail=*-0/*", "--drain=1"])
@pytest.mark.parametrize(("pods", "verdict"), [(1, "always"), (2, "never")])
def test_pods_of_others_on_a_node_that_is_lost_need_room_too(tmp_path, others, change, pods, verdict):
    path = tmp_path / "serving.yaml"
    path.write_text(
        yaml.safe_dump_all([CLASS, TEMPLATE, {**SERVING, "spec": {**SERVING["spec"], "replicas": pods}}])
    )
    options = (path, "--snapshot", others, "--kubernetes=1.37", change)
    code, found = answer(*options)
    text = simulate(*options).stdout
    if change == "--drain=1":
        first, second = found["drained"]
        assert (first["evicted"], first["joint"]["verdict"], second["evicted"]) == (1, verdict, 0)
        assert "With hgx-h100-0 drained, and 1 pod of others evicted: " in text
    else:
        assert found["joint"]["verdict"] == verdict
        assert "evicted, and placed anew with the others: 1 pod of StatefulSet ml/others" in found["notes"]
    assert code == (pods == 2)


def test_each_kind_of_node_is_drained_by_itself(tmp_path):
    path = two_sizes(tmp_path, ones=8, eights=1)
    _, found = answer(path, "--fleet", "hgx-h100 x 2, a100-80gb x 1", "--drain", "1")
    assert [(each["node"], each["alike"]) for each in found["drained"]] == [
        ("a100-80gb-0", 1),
        ("hgx-h100-0", 2),
    ]


def test_objects_of_unknown_kinds_are_named_beside_the_verdict_and_in_the_brief_report(manifests, tmp_path):
    custom = """
apiVersion: ml.example.com/v1
kind: TrainingRun
metadata: {name: big, namespace: ml}
spec: {pod: {resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]}}
"""
    folders = [tmp_path / name for name in ("alone", "beside", "base")]
    for each, text in zip(folders, (custom, f"{manifests.read_text()}---{custom}", ""), strict=True):
        each.mkdir()
        (each / "objects.yaml").write_text(text)
    named = "! not placed here, and so in no verdict: TrainingRun ml/big"
    alone, beside = (
        simulate(each, "--fleet", "hgx-h100", "--brief").stdout.splitlines()[:-1] for each in folders[:2]
    )
    assert alone == ["no workload that is placed here needs devices of hgx-h100 x 1", named]
    assert beside[-2:] == ["✓ All at once: fit in every order of arrival", named]
    arguments = ["review", str(folders[0]), "--base-path", str(folders[2]), "--fleet", "hgx-h100", "--brief"]
    reviewed = CliRunner().invoke(app, [*arguments, "--format", "markdown"])
    assert (
        "no workload that is placed needs devices of hgx-h100 x 1, TrainingRun ml/big not placed"
        in reviewed.stdout
    )


def test_an_order_that_works_and_one_that_does_not_are_both_shown(tmp_path):
    path = two_sizes(tmp_path, ones=2, eights=1)
    code, found = answer(path, "--fleet", "hgx-h100 x 2")
    joint = found["joint"]
    assert (code, joint["verdict"]) == (0, "depends-on-order")
    assert joint["works"]["pending"] == []
    assert joint["fails"]["pending"] == [
        {"object": {"kind": "Deployment", "namespace": "ml", "name": "eight", "part": ""}, "pods": 1}
    ]
    assert {each["node"] for each in joint["fails"]["arrivals"]} == {"hgx-h100-0", "hgx-h100-1"}
    lines = simulate(path, "--fleet", "hgx-h100 x 2").stdout.splitlines()
    assert (
        "    not all are:    Deployment ml/one on hgx-h100-0, Deployment ml/one on hgx-h100-1; "
        in "\n".join(lines)
    )
    assert any(line.endswith("pending: 1 x Deployment ml/eight") for line in lines)
    assert "\n".join(lines[:5]) in (ROOT / "docs/placement.md").read_text()


def test_room_in_every_order_is_one_line(tmp_path):
    path = two_sizes(tmp_path, ones=2, eights=1)
    result = simulate(path, "--fleet", "hgx-h100 x 4")
    assert result.return_value == 0
    assert "✓ All at once: fit in every order of arrival" in result.stdout.splitlines()


@pytest.fixture
def pools(tmp_path):
    def pools(least, most, price="98.32"):
        file = tmp_path / "pools.yaml"
        pool = {"name": "a3", "nodes": "hgx-h100", "min": least, "max": most, "price": price}
        file.write_text(yaml.safe_dump({"pools": [pool], "currency": "USD"}))
        return file

    return pools


def test_pods_that_fit_when_a_node_pool_grows_count_as_fitting(manifests, pools):
    result = simulate(manifests, "--fleet", pools(0, 4), "--scale", "deployment/serving=3")
    assert result.return_value == 0, result.output
    line = "+ Growth: fits when node pool a3 grows by 2 nodes (0 -> 2 of at most 4), +196.64 USD an hour; 4 of 16 devices of pools idle"
    assert line in result.stdout.splitlines()


@pytest.mark.parametrize(
    ("most", "line"),
    [
        (
            2,
            "+ With a3-0 drained: fits when node pool a3 grows by 1 node (1 -> 2 of at most 2), +98.32 USD an hour; ",
        ),
        (1, "✗ With a3-0 drained: never within the limits: with a3 x 1, no node takes a pod"),
    ],
)
def test_a_node_pool_may_grow_while_one_of_its_nodes_is_drained(manifests, pools, most, line):
    result = simulate(manifests, "--fleet", pools(1, most), "--drain", "1")
    assert result.return_value == 2 - most, result.output
    assert any(each.startswith(line) for each in result.stdout.splitlines()), result.output
    _, found = answer(manifests, "--fleet", pools(1, most), "--drain", "1")
    (drained,) = found["drained"]
    assert drained["joint"]["verdict"] == "never"
    assert drained["growth"]["verdict"] == ("fits-grown" if most == 2 else "never-within-limits")


def test_growth_is_told_as_json_with_amounts_as_texts(manifests, pools):
    code, found = answer(manifests, "--fleet", pools(1, 4), "--scale", "deployment/serving=3")
    growth = found["growth"]
    assert code == 0
    assert (growth["verdict"], growth["cost"], growth["addedCost"]) == ("fits-grown", "196.64", "98.32")
    assert (growth["currency"], growth["per"], growth["devices"], growth["idleDevices"]) == (
        "USD",
        "hour",
        16,
        4,
    )
    (pool,) = growth["pools"]
    assert pool == {
        "name": "a3",
        "machine": "hgx-h100",
        "now": 1,
        "needed": 2,
        "max": 4,
        "unit": "node",
        "price": "98.32",
    }
    assert growth["joint"]["verdict"] == "always"
    assert answer(manifests, "--fleet", "hgx-h100")[1]["growth"] is None


def test_what_fits_now_and_what_never_fits_within_the_limits_is_told(manifests, pools):
    fits = simulate(manifests, "--fleet", pools(1, 4))
    assert (fits.return_value, "✓ Growth: fits now, 98.32 USD an hour" in fits.stdout) == (0, True)
    never = simulate(manifests, "--fleet", pools(0, 1), "--scale", "deployment/serving=3")
    assert never.return_value == 1
    assert "✗ Growth: never within the limits: with a3 x 1, 12 devices asked" in never.stdout


def test_prices_come_from_a_commands_output(manifests, pools, tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text('{"hgx-h100": "2.5"}')
    code, found = answer(manifests, "--fleet", pools(1, 4), "--prices", prices)
    assert (code, found["growth"]["cost"]) == (0, "2.5")
    arguments = ["simulate", str(manifests), "--fleet", str(pools(1, 4)), "--prices", "-", "--json"]
    result = CliRunner().invoke(app, arguments, input='{"a3": 7}', standalone_mode=False)
    assert json.loads(result.stdout)["growth"]["cost"] == "7"


@pytest.mark.parametrize("prices", ["none.json", "."])
def test_prices_that_cannot_be_read_are_refused(manifests, pools, tmp_path, prices):
    result = simulate(manifests, "--fleet", pools(1, 4), "--prices", tmp_path / prices)
    assert isinstance(result.exception, ProblemsError)
    assert [each.code for each in result.exception.problems] == ["prices-unreadable"]


def many(tmp_path, number):
    """A file with so many equal Deployments in two namespaces, and one that asks for too much."""
    objects = [CLASS]
    for index in range(number + 1):
        template, serving = copy.deepcopy(TEMPLATE), copy.deepcopy(SERVING)
        for each in (template, serving):
            each["metadata"]["namespace"] = ("ml", "search")[index % 2]
        template["metadata"]["name"] = serving["metadata"]["name"] = f"w{index:02}"
        if index == number:
            template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 16
        serving["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = f"w{index:02}"
        objects += [template, serving]
    path = tmp_path / "many.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


def test_where_many_workloads_fit_a_line_per_namespace_counts_them(tmp_path):
    lines = simulate(many(tmp_path, 21), "--fleet", "hgx-h100 x 30, l4 x 3").stdout.splitlines()
    assert lines[0].startswith("✗ Deployment search/w21  does not fit: 33 nodes: request gpu")
    assert lines[1:3] == ["✓ ml: 11 workloads fit", "✓ search: 10 workloads fit"]
    listed = simulate(many(tmp_path, 20), "--fleet", "hgx-h100 x 30, l4 x 3").stdout.splitlines()
    assert sum(line.startswith("✓ Deployment") for line in listed) == 20


def test_reasons_for_other_nodes_are_told_only_of_what_does_not_fit(manifests):
    fleet = "hgx-h100, example x 2"
    fits = simulate(manifests, "--fleet", fleet).stdout
    assert "of class any" not in fits
    lines = simulate(manifests, "--fleet", fleet, "--scale", "deployment/serving=5").stdout.splitlines()
    (also,) = (line for line in lines if line.startswith("    also: "))
    assert also.startswith("    also: 2 nodes: selector #0 of class any matches none of 8 devices")


def test_brief_tells_what_does_not_fit_how_many_do_and_all_at_once(tmp_path):
    lines = simulate(many(tmp_path, 3), "--fleet", "hgx-h100 x 30", "--brief").stdout.splitlines()
    assert [line[:30] for line in lines] == [
        "✗ Deployment search/w03  does ",
        "3 of 4 workloads fit on hgx-h1",
        "✗ All at once: never fit at on",
        "checked for Kubernetes 1.37 (r",
    ]


def test_a_file_of_kinds_among_the_manifests_is_not_told_as_not_seen(manifests):
    kinds, other = manifests.with_name("kinds.yaml"), manifests.with_name("other.yaml")
    kinds.write_text(
        "kinds: [{kind: TrainingRun, group: ml.example.com, parts: [{template: spec.template}]}]\n"
    )
    other.write_text("kind_of: something else\n")
    result = simulate(manifests.parent, "--kinds", kinds, "--fleet", "hgx-h100")
    assert result.return_value == 0, result.output
    assert [line for line in result.stderr.splitlines() if line.startswith("not seen: ")] == [
        f"not seen: file {other}: it holds no Kubernetes object"
    ]


@pytest.mark.parametrize(("more", "is_program"), [("", False), ("k8s/prod/made.py", True)])
def test_a_folder_of_a_project_with_manifests_below_it_is_manifests(tmp_path, more, is_program):
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (tmp_path / "__main__.py").write_text("")
    (tmp_path / "k8s/prod").mkdir(parents=True)
    (tmp_path / "k8s/prod/serving.yaml").write_text(yaml.safe_dump_all([CLASS, TEMPLATE, SERVING]))
    if more:
        (tmp_path / more).write_text("")
    result = simulate(tmp_path / "k8s", "--fleet", "hgx-h100 x 1")
    assert ("Deployment ml/serving" not in result.output) == is_program


@pytest.mark.parametrize("in_cluster", [True, False])
def test_what_kueue_never_admits_has_no_plain_sign(manifests, tmp_path, in_cluster):
    resources = [{"name": "any.deviceclass.resource.k8s.io/devices", "nominalQuota": 3}]
    group = {"coveredResources": [resources[0]["name"]], "flavors": [{"name": "f", "resources": resources}]}
    queues = [
        {"kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": {"resourceGroups": [group]}},
        {
            "kind": "LocalQueue",
            "metadata": {"name": "gpus", "namespace": "ml"},
            "spec": {"clusterQueue": "all"},
        },
    ]
    queues = [{"apiVersion": "kueue.x-k8s.io/v1beta2", **each} for each in queues]
    queued = copy.deepcopy(SERVING)
    queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpus"}
    manifests.write_text(yaml.safe_dump_all([CLASS, TEMPLATE, queued, *(() if in_cluster else queues)]))
    snapshot = tmp_path / "cluster.snapshot"
    snapshot.write_text(
        yaml.safe_dump_all([*load_fleet("hgx-h100").to_manifests(), *(queues if in_cluster else ())])
    )
    text = simulate(manifests, "--snapshot", snapshot)
    assert text.return_value == 0, text.output
    assert text.stdout.startswith("! Deployment ml/serving  2 pods, each 4 ")
    assert "asks for 4 of any.deviceclass.resource.k8s.io/devices at once, of which" in text.stdout
    _, found = answer(manifests, "--snapshot", snapshot)
    (workload,) = found["workloads"]
    assert (workload["verdict"], workload["reasons"][-1]["code"]) == ("fits", "queue-too-small")
