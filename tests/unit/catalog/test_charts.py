from __future__ import annotations

import copy
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog.charts import above_path, chart_of, charts, check_values, value_types
from dra_infra.catalog.vocabulary import read_data
from tools.chart_keys import main, render

DRIVER, OPERATOR = "dra-driver-nvidia-gpu", "gpu-operator"
KNOWN = [
    (name, version)
    for name, chart in charts().items()
    for version, each in chart.versions.items()
    if each.keys
]
RIGHT = {"string": "x", "bool": True, "int": 1, "number": 0.5, "list": [], "map": {"any": 1}, "any": None}
WRONG = {"string": True, "bool": "yes", "int": "1", "number": "1", "list": "x", "map": 1}

# A values file of a real chart is needed to see that the script still writes what is committed.
REAL_VALUES = Path(os.environ.get("DRA_INFRA_TESTDATA") or "not-named", "chart-values")
SOURCES = {
    ("nvidia-dra-driver-gpu", "25.3.2"): "nvidia-dra-driver-gpu-v25.3.2.yaml",
    ("nvidia-dra-driver-gpu", "25.8.1"): "nvidia-dra-driver-gpu-v25.8.1.yaml",
    ("nvidia-dra-driver-gpu", "25.12.0"): "nvidia-dra-driver-gpu-v25.12.0.yaml",
    (DRIVER, "0.4.1"): "dra-driver-nvidia-gpu-v0.4.1.yaml",
    (DRIVER, "0.5.0"): "dra-driver-nvidia-gpu-main-95932046.yaml",
    (OPERATOR, "25.10.1"): "gpu-operator-v25.10.1.yaml",
    (OPERATOR, "26.3.3"): "gpu-operator-v26.3.3.yaml",
    (OPERATOR, "26.7.0"): "gpu-operator-v26.7.0.yaml",
    ("dra-example-driver", "0.4.0"): "dra-example-driver-v0.4.0.yaml",
}


def nested(path, value):
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def codes(problems):
    return [(problem.path, problem.code) for problem in problems]


@pytest.mark.parametrize(("name", "version"), KNOWN)
def test_every_value_of_its_type_is_right_and_of_another_type_is_wrong(name, version):
    for path, types in value_types(name, version).items():
        for type_ in types.split("|"):
            assert check_values(name, version, nested(path, RIGHT[type_])) == []
        assert check_values(name, version, nested(path, None)) == []
        for type_, value in WRONG.items():
            if types == type_:
                assert codes(check_values(name, version, nested(path, value))) == [(path, "chart-value-type")]


@given(
    st.sampled_from(KNOWN).flatmap(
        lambda each: st.tuples(st.just(each), st.sampled_from(sorted(value_types(*each))))
    )
)
def test_a_misspelt_key_is_told_with_the_one_that_is_meant(drawn):
    (name, version), path = drawn
    head, _, last = path.rpartition(".")
    wrong = f"{head}.{last}x" if head else f"{last}x"
    (problem,) = check_values(
        name, version, nested(wrong, RIGHT[value_types(name, version)[path].split("|")[0]])
    )
    assert (problem.path, problem.code) == (wrong, "unknown-chart-value")
    assert path in problem.hint


def test_the_key_of_the_walk_through_that_no_chart_knows_is_named():
    values = {
        "gpuResourcesEnabledOverride": True,
        "resources-computeDomains": {"enabled": False},
        "controller": {"affinity": {}},
    }
    (problem,) = check_values(DRIVER, "v0.4.1", values)
    assert (problem.path, problem.code) == ("resources-computeDomains", "unknown-chart-value")
    assert 'write resources: {computeDomains: {"enabled": false}}' in problem.hint


@pytest.mark.parametrize(
    ("name", "version", "values", "path", "hint"),
    [
        (
            DRIVER,
            "0.4.1",
            {"nodeSelector": {}},
            "nodeSelector",
            "controller.nodeSelector, kubeletPlugin.nodeSelector or",
        ),
        (
            DRIVER,
            "0.4.1",
            {"consumableShares": 3},
            "consumableShares",
            "a value of dra-driver-nvidia-gpu 0.5.0",
        ),
        (DRIVER, "0.5.0", {"nvidiaCtkPath": "/x"}, "nvidiaCtkPath", "fails on it"),
        (DRIVER, "0.5.0", {"zzz": 1}, "zzz", "at the top there are allowDefaultNamespace"),
        (
            DRIVER,
            "0.5.0",
            {"image": {"zzz": 1}},
            "image.zzz",
            "below image there are pullPolicy, repository, tag",
        ),
        (
            OPERATOR,
            "v26.7.0",
            {"devicePlugin.enabled": False},
            "devicePlugin.enabled",
            "write devicePlugin: {enabled: false}",
        ),
        (
            OPERATOR,
            "26.7.0",
            {"cdi": {"default": True}},
            "cdi.default",
            "gpu-operator 25.10.0 to gpu-operator 26.3.3",
        ),
        (
            OPERATOR,
            "26.7.0",
            {"draDriver": {"gpus": {"kubeletPlugin": {"envs": []}}}},
            "draDriver.gpus.kubeletPlugin.envs",
            "draDriver: {gpus: {kubeletPlugin: {env: []}}}",
        ),
    ],
)
def test_unknown_values_are_told_with_what_to_do(name, version, values, path, hint):
    (problem,) = check_values(name, version, values)
    assert (problem.path, problem.code) == (path, "unknown-chart-value")
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("values", "path", "hint"),
    [
        ({"webhook": {"enabled": "false"}}, "webhook.enabled", "write enabled: false, without quotes"),
        ({"controller": {"replicas": "2"}}, "controller.replicas", "write replicas: 2"),
        ({"image": {"tag": 0.5}}, "image.tag", 'write tag: "0.5"'),
        ({"imagePullSecrets": "mine"}, "imagePullSecrets", 'write imagePullSecrets: ["mine"]'),
        ({"webhook": True}, "webhook", "webhook holds affinity"),
        ({"controller": {"replicas": True}}, "controller.replicas", "a whole number"),
    ],
)
def test_values_of_the_wrong_type_are_told_with_the_line_to_write(values, path, hint):
    (problem,) = check_values(DRIVER, "0.5.0", values)
    assert (problem.path, problem.code) == (path, "chart-value-type")
    assert hint in problem.hint


def test_values_that_are_no_mapping_are_of_the_wrong_type():
    assert codes(check_values(OPERATOR, "26.7.0", ["a"])) == [("", "chart-value-type")]  # type: ignore[arg-type]


def test_all_problems_are_told_at_once():
    values = {"webhok": {}, "image": {"tag": 1, "tga": "x"}, "logVerbosity": 6}
    assert codes(check_values(DRIVER, "0.5.0", values)) == [
        ("webhok", "unknown-chart-value"),
        ("image.tag", "chart-value-type"),
        ("image.tga", "unknown-chart-value"),
    ]


def test_what_is_only_known_later_is_not_judged():
    later = object()
    assert check_values(OPERATOR, "26.7.0", {"driver": later, "nfd": {"enabled": later}}) == []
    (problem,) = check_values(OPERATOR, "26.7.0", {"drivr": later})
    assert problem.code == "unknown-chart-value"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=10,
)


@given(
    st.dictionaries(
        st.text(max_size=12) | st.sampled_from(["webhook", "image", "resources"]), JSON, max_size=4
    )
)
def test_any_values_get_problems_with_paths_that_are_theirs(values):
    for problem in check_values(DRIVER, "0.5.0", values):
        assert problem.code in ("unknown-chart-value", "chart-value-type")
        assert any(problem.path.startswith(key) for key in values)
        assert problem.hint


@pytest.mark.parametrize(
    ("name", "version", "hint"),
    [
        (OPERATOR, "26.3.0", "known are the values of 25.10.0, 25.10.1, 26.3.2"),
        ("nvidia-dra-driver-gpu", "0.4.1", "0.4.1 is a version of the chart dra-driver-nvidia-gpu"),
        ("gpu-operatr", "1.0", "did you mean the chart gpu-operator?"),
        ("zzz", "1.0", "known charts are nvidia-dra-driver-gpu"),
    ],
)
def test_a_version_without_known_values_is_a_warning(name, version, hint):
    (problem,) = check_values(name, version, {"anything": 1})
    assert (problem.code, problem.severity) == ("values-not-known", "warning")
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("product", "version", "name"),
    [
        ("NVIDIA DRA driver", "25.12.0", "nvidia-dra-driver-gpu"),
        ("NVIDIA DRA driver", "v0.4.0", DRIVER),
        ("GPU Operator", "26.7.0", OPERATOR),
        ("DRA example driver", "0.4.0", "dra-example-driver"),
    ],
)
def test_the_name_of_a_chart_follows_the_version(product, version, name):
    found = chart_of(product, version)
    assert found is not None
    assert found.name == name


def test_a_version_that_is_not_known_has_no_chart():
    assert chart_of("NVIDIA DRA driver", "26.4.0") is None


def test_what_helm_is_given_and_what_it_installs():
    assert charts()[OPERATOR].helm_version("26.7.0") == charts()[OPERATOR].app_version("26.7.0") == "v26.7.0"
    assert charts()["dra-example-driver"].helm_version("0.4.0") == "0.4.0"
    assert charts()["dra-example-driver"].app_version("0.4.0") == "v0.4.0"
    assert charts()[OPERATOR].versions["26.7.0"].dra_driver == "0.5.0"
    assert charts()[OPERATOR].newest == "26.7.0"


def test_a_map_with_entries_below_it_takes_only_those():
    types = value_types(OPERATOR, "26.7.0")
    assert "draDriver.gpus.kubeletPlugin" not in types
    assert types["draDriver.gpus.kubeletPlugin.env"] == "list"
    for path in types:
        assert not set(above_path(path)) & set(types)


def test_files_of_keys_are_those_that_versions_name():
    for name, chart in charts().items():
        for each in chart.versions.values():
            if each.keys:
                written = read_data(f"chart_values/{name}-{each.keys}.yaml")
                assert (written["chart"], written["version"]) == (name, each.keys)
    assert {(name, charts()[name].versions[version].keys) for name, version in KNOWN} == set(SOURCES)


def test_the_script_writes_paths_and_types_sorted_and_no_defaults():
    values = {
        "b": {"y": "secret", "x": None, "nodeSelector": {"disk": "ssd"}},
        "a": [1],
        "resources": {"gpus": {"enabled": True}},
        "c": {"resources": {"limits": {"cpu": "1"}}, "ratio": 0.5, "port": 8080, "free": {}},
        "subchart": {"anything": 1},
    }
    text = render(values, chart="demo", version="1.0", free=["subchart"])
    assert text == render(copy.deepcopy(values), chart="demo", version="1.0", free=["subchart"])
    assert "secret" not in text
    assert yaml.safe_load(text) == {
        "chart": "demo",
        "version": "1.0",
        "keys": {
            "a": "list",
            "b.nodeSelector": "map",
            "b.x": "any",
            "b.y": "string",
            "c.free": "map",
            "c.port": "int",
            "c.ratio": "number",
            "c.resources": "map",
            "resources.gpus.enabled": "bool",
            "subchart": "map",
        },
    }
    assert list(yaml.safe_load(text)["keys"]) == sorted(yaml.safe_load(text)["keys"])


def test_the_script_refuses_what_is_no_values_file(tmp_path, capsys):
    path = tmp_path / "values.yaml"
    path.write_text("- a\n")
    assert main([str(path), "--chart", "x", "--version", "1"]) == 1
    assert "not a mapping" in capsys.readouterr().err


@pytest.mark.parametrize(("chart", "version"), SOURCES)
def test_the_script_writes_what_is_committed(chart, version, capsys):
    source = REAL_VALUES / SOURCES[chart, version]
    if not source.is_file():
        pytest.skip(f"{source} is not here: set DRA_INFRA_TESTDATA to the folder with chart-values/")
    free = ["--free", "node-feature-discovery"] if chart == OPERATOR else []
    assert main([str(source), "--chart", chart, "--version", version, *free]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == read_data(f"chart_values/{chart}-{version}.yaml")


@pytest.mark.parametrize(("chart", "version"), SOURCES)
def test_the_charts_own_values_are_right(chart, version):
    source = REAL_VALUES / SOURCES[chart, version]
    if not source.is_file():
        pytest.skip(f"{source} is not here: set DRA_INFRA_TESTDATA to the folder with chart-values/")
    assert check_values(chart, version, yaml.safe_load(source.read_text())) == []
