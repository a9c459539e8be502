from __future__ import annotations

import json
import subprocess

import pytest

from dra_infra.cli.catalog import run
from dra_infra.cli.catalog_sections import SECTIONS, NameNotKnownError
from tests.support.warm_commands import warm


def catalog(capsys, *words, form="text"):
    section, name = (*words, None, None)[:2]
    assert run(section, name, form=form) == 0
    return capsys.readouterr().out


def entries(capsys, *words):
    answer = json.loads(catalog(capsys, *words, form="json"))
    assert answer["schema"] == "dra-infra.catalog/v1"
    return answer["entries"]


def command(*arguments):
    return subprocess.run(
        [warm().command, "catalog", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_a_section_the_sections_are_told(capsys):
    lines = catalog(capsys).splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        "gpus",
        "mig",
        "drivers",
        "fleets",
        "machines",
        "charts",
        "systems",
    ]


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_is_a_table_with_a_line_for_each_entry(capsys, section):
    lines = catalog(capsys, section).splitlines()
    assert lines[0].startswith("NAME ")
    assert len(lines) - 1 == len(entries(capsys, section)) > 0
    assert not any(line != line.rstrip() for line in lines)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_entry_is_found_by_its_name_and_tells_its_source(capsys, section):
    for name, entry in entries(capsys, section).items():
        assert name in entries(capsys, section, name)
        assert section == "mig" or entry["source"]
        assert catalog(capsys, section, name).startswith(name)


def test_a_short_name_tells_every_product_that_is_meant(capsys):
    text = catalog(capsys, "gpus", "h200")
    assert [line for line in text.splitlines() if line and line[0] != " "] == [
        "NVIDIA H200",
        "NVIDIA H200 NVL",
    ]
    assert "memory_mib               143771" in text
    assert "uncertain" in text


def test_profiles_of_a_gpu_are_a_table(capsys):
    text = catalog(capsys, "mig", "H100-SXM")
    assert "1g.10gb" in text
    assert "PLACEMENTS" in text
    assert "NVIDIA H100 80GB HBM3" in entries(capsys, "mig", "H100-SXM")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("0.5", ["gpu.nvidia.com=0.5", "compute-domain.nvidia.com=0.5"]),
        ("v0.4.1", ["gpu.nvidia.com=0.4", "compute-domain.nvidia.com=0.4"]),
        ("gpu.example.com=0.2", ["gpu.example.com=0.2"]),
        ("net.example.com", ["net.example.com=0.4"]),
    ],
)
def test_drivers_are_found_as_they_are_pinned(capsys, name, found):
    assert list(entries(capsys, "drivers", name)) == found


def test_a_fleet_is_found_by_its_other_names(capsys):
    assert list(entries(capsys, "fleets", "DGX-H100")) == ["hgx-h100"]
    assert entries(capsys, "fleets", "p5.4xlarge")["p5.4xlarge"]["count"] == 1
    assert entries(capsys, "machines", "P5.48XLARGE")["p5.48xlarge"]["gpu"] == "NVIDIA H100 80GB HBM3"
    assert "Standard_ND96isr_H200_v5" in entries(capsys, "machines", "ND96isr_H200_v5")


def test_a_driver_tells_its_gates_rules_and_what_it_publishes(capsys):
    entry = entries(capsys, "drivers", "0.5")["gpu.nvidia.com=0.5"]
    assert entry["gates"]["DynamicMIG"]["default"] is False
    assert "DynamicMIG excludes PassthroughSupport" in entry["rules"]
    assert entry["gpuDevice"]["gpu.nvidia.com/productName"] == "string"
    assert entry["kubernetesDocumented"] == "1.34.2"


def test_a_version_of_a_chart_tells_its_values(capsys):
    assert "webhook.enabled" in catalog(capsys, "charts", "dra-driver-nvidia-gpu=v0.4.1")
    assert entries(capsys, "charts", "gpu-operator=26.3.0")["gpu-operator=26.3.0"]["values"] == "not known"
    versions = entries(capsys, "charts", "gpu-operator")["gpu-operator"]["versions"]
    assert versions["26.7.0"]["values"] == "known"
    assert versions["26.3.0"]["values"] == "not known"


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["gpu"], "did you mean gpus?"),
        (["zzzzzz"], "known are gpus, mig, drivers, fleets, machines, charts, systems"),
        (["gpus", "H1000"], "H100"),
        (["systems", "hgx-h10"], "hgx-h100"),
        (["drivers", "0.55"], "0.5"),
        (["charts", "gpu-operatr"], "gpu-operator"),
        (["charts", "gpu-operator=26.7.9"], "gpu-operator=26.7.0"),
        (["fleets", "hgx-h10"], "hgx-h100"),
        (["machines", "p5.48xlarg"], "p5.48xlarge"),
        (["mig", "H1000"], "H100"),
        (["mig", "L40S"], "NVIDIA L40S: MIG cannot partition it"),
    ],
)
def test_a_name_that_is_not_known_gets_the_nearest(words, near):
    with pytest.raises(NameNotKnownError) as caught:
        run(*(*words, None)[:2], form="text")
    assert near in str(caught.value)


def test_wrong_usage_exits_with_2_and_prints_nothing_on_standard_output():
    done = command("gpus", "H1000")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean H100" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_may_be_several_words():
    done = command("gpus", "NVIDIA", "H100", "NVL", "--json")
    assert done.returncode == 0
    assert list(json.loads(done.stdout)["entries"]) == ["NVIDIA H100 NVL"]


def test_help_has_examples_in_lines_of_their_own():
    done = command("--help")
    assert done.returncode == 0
    assert "\n    dra-infra catalog gpus H100\n" in done.stdout


def test_headings_of_systems_are_explained_beside_the_table(capsys):
    assert run("systems", None, form="text") == 0
    said = capsys.readouterr()
    assert "PROMISE: how" in said.err
    assert "PROMISE: how" not in said.out


def test_raw_numbers_of_a_fleet_are_in_json_only(capsys):
    assert run("fleets", "hgx-h100", form="text") == 0
    assert not {"pci", "fabric"} & set(capsys.readouterr().out.split())
    assert run("fleets", "hgx-h100", form="json") == 0
    invented = json.loads(capsys.readouterr().out)["entries"]["hgx-h100"]["invented"]
    assert {"pci", "fabric"} <= set(invented)


def test_a_machine_that_cannot_be_a_fleet_is_told_with_the_reason():
    with pytest.raises(NameNotKnownError, match="Standard_ND96isr_MI300X_v5 has AMD GPUs: ask for mi300x"):
        run("machines", "Standard_ND96isr_MI300X_v5", form="text")
