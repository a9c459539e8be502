from __future__ import annotations

import subprocess
import sys
from importlib import resources

import pytest

from dra_infra.catalog.autoscalers import autoscalers
from dra_infra.catalog.charts import charts, value_types
from dra_infra.catalog.driver_gates import driver_needs, gates_of
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.gpus import capabilities, systems
from dra_infra.catalog.machines import clouds
from dra_infra.catalog.personas import personas
from dra_infra.catalog.platforms import chart_rules, matrix, platforms
from dra_infra.catalog.pool_objects import pool_kinds
from dra_infra.catalog.records import fleet_kinds, gpu_products
from dra_infra.catalog.vocabulary import misnomers, product_memory, read_data
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.specs.metrics import alerts, metrics, panels

DATA = resources.files("dra_infra.catalog") / "data"

# What reads a file and checks it against its record; a file that nothing here reads is one that nobody checks.
READERS = {
    "autoscalers.yaml": autoscalers,
    "capabilities.yaml": capabilities,
    "chart_rules.yaml": lambda: [
        chart_rules(each) for each in ("NVIDIA DRA driver", "GPU Operator", "DRA example driver")
    ],
    "charts.yaml": charts,
    "driver_gates.yaml": lambda: gates_of("0.5"),
    "driver_releases.yaml": driver_needs,
    "drivers.yaml": drivers,
    "fleets.yaml": fleet_kinds,
    "gpus.yaml": gpu_products,
    "machines.yaml": clouds,
    "misnomers.yaml": lambda: (misnomers("attributes"), misnomers("domains")),
    "monitoring.yaml": lambda: (metrics(), alerts(), panels()),
    "node_pool_kinds.yaml": pool_kinds,
    "personas.yaml": personas,
    "platform_matrix.yaml": matrix,
    "platforms.yaml": platforms,
    "product_names.yaml": product_memory,
    "systems.yaml": systems,
    "workload_kinds.yaml": workload_kinds,
}
# Read by modules with tests of their own: tests/unit/catalog/test_mig*.py, test_device_configs.py, and for labels
# tests/unit/migration/test_node_labels.py.
READ_ELSEWHERE = {
    "mig_profiles.yaml",
    "mig_devices.yaml",
    "device_configs.yaml",
    "node_labels.yaml",
    "controller_releases.yaml",
    "migrated_charts.yaml",
    "migrated_kinds.yaml",
}
ENTRIES = [
    "capabilities.yaml",
    "chart_rules.yaml",
    "charts.yaml",
    "driver_releases.yaml",
    "drivers.yaml",
    "fleets.yaml",
    "gpus.yaml",
    "machines.yaml",
    "personas.yaml",
    "platforms.yaml",
    "systems.yaml",
]


def test_every_data_file_is_checked_by_a_test():
    files = {each.name for each in DATA.iterdir() if each.name.endswith(".yaml")}
    assert files - READ_ELSEWHERE == set(READERS)


@pytest.mark.parametrize("file", READERS)
def test_every_data_file_is_what_its_record_says(file):
    assert READERS[file]()


def test_every_kind_that_is_migrated_is_there_once_and_names_its_source():
    kinds = read_data("migrated_kinds.yaml")["kinds"]
    assert len({(each["group"], each["kind"]) for each in kinds}) == len(kinds)
    assert all(len(each["source"]) >= 10 for each in kinds)


@pytest.mark.parametrize("file", ENTRIES)
def test_every_entry_names_its_source(file):
    for name, entry in read_data(file).items():
        assert len(entry["source"]) >= 10, name


def test_files_of_one_source_and_of_groups_name_it():
    for each in read_data("workload_kinds.yaml")["kinds"]:
        assert len(each["source"]) >= 10, each["kind"]
    assert len(read_data("driver_gates.yaml")["source"]) >= 10
    for group in read_data("product_names.yaml").values():
        assert len(group["source"]) >= 10
    for entries in read_data("misnomers.yaml").values():
        assert all(entry["source"] for entry in entries)


def test_every_file_of_chart_values_belongs_to_a_chart_and_holds_paths_and_types():
    named = {
        f"{name}-{each.keys}.yaml"
        for name, chart in charts().items()
        for each in chart.versions.values()
        if each.keys
    }
    assert {each.name for each in (DATA / "chart_values").iterdir()} == named
    for name, chart in charts().items():
        for version, each in chart.versions.items():
            assert bool(value_types(name, version)) == bool(each.keys)


def test_types_of_values_that_are_said_better_are_those_of_real_values():
    for name, chart in charts().items():
        for path in chart.types:
            assert (
                any(path in value_types(name, version) for version in chart.versions)
                or path == "consumableShares"
            )
        for path in chart.refused:
            assert not any(path in value_types(name, version) for version in chart.versions)


def test_nothing_of_the_catalogue_is_loaded_before_it_is_needed():
    code = (
        "import sys, dra_infra.catalog.vocabulary as v, dra_infra.catalog.drivers, dra_infra.cli.app; "
        "v.product_memory(); v.product_names(); "
        "loaded = {'records', 'charts', 'gpus', 'driver_gates'}; "
        "print(sorted(name for name in loaded if f'dra_infra.catalog.{name}' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
