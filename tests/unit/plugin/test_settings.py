"""Settings: what is nearer to the command wins, and every mistake of every place is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.command.command_line import parse
from dra_infra.plugin.command.settings import Address, Settings, all_settings
from dra_infra.plugin.command.settings_reading import read_settings

NEEDED = "--back-end=nvml --node-name=node-1"


def read(words: str, **environment: str) -> Settings:
    return read_with_warnings(words, **environment)[0]


def read_with_warnings(words: str, **environment: str) -> tuple[Settings, tuple[Problem, ...]]:
    line = parse(words.split(), environment)
    return read_settings(line.flags, line.unknown, environment, line.file)


def refused(words: str, **environment: str) -> list[tuple[str, str]]:
    with pytest.raises(PluginError) as raised:
        read(words, **environment)
    return [(each.code, each.path) for each in raised.value.problems]


def hint_of(words: str, **environment: str) -> str:
    with pytest.raises(PluginError) as raised:
        read(words, **environment)
    (problem,) = raised.value.problems
    return problem.hint


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "plugin.yaml"


def test_flags_win_over_the_environment_and_that_over_the_file(file: Path):
    file.write_text(
        "backEnd: sim\nfleet: hgx-h100\nnodeName: of-the-file\nlogLevel: error\nlogFormat: json\n"
    )
    settings = read(
        f"--config {file} --node-name of-the-flag",
        NODE_NAME="of-the-environment",
        DRA_INFRA_PLUGIN_LOG_LEVEL="debug",
    )
    assert (settings.node_name, settings.log_level, settings.log_format) == ("of-the-flag", "debug", "json")
    assert (settings.back_end, settings.fleet) == ("sim", "hgx-h100")


def test_the_file_may_be_named_in_the_environment(file: Path):
    file.write_text("backEnd: nvml\nnodeName: node-1\n")
    assert read("", DRA_INFRA_PLUGIN_CONFIG=str(file)).node_name == "node-1"


def test_what_nobody_gives_has_its_default():
    settings = read(NEEDED)
    assert settings.kubelet_root == Path("/var/lib/kubelet")
    assert settings.cdi_folder == Path("/var/run/cdi")
    assert (settings.log_level, settings.metrics_address, settings.metadata_files) == ("info", None, False)


@pytest.mark.parametrize("back_end", ["sim", "nvml"])
def test_every_setting_is_read_in_every_place(file: Path, back_end: str):
    texts = {
        "back_end": back_end,
        "node_name": "node-1",
        "fleet": "hgx-h100",
        "driver": "gpu.example.com",
        "pod_uid": "00000001-0000-4000-8000-0000000000ab",
        "kubelet_root": "/a",
        "state_folder": "/b",
        "cdi_folder": "/c",
        "metadata_files": "on",
        "kubeconfig": "kubeconfig",
        "log_format": "text",
        "log_level": "warning",
        "metrics_address": ":8080",
        "health_address": "[::1]:51516",
        "driver_root": "/d",
        "driver_root_on_host": "/e",
        "toolkit": "/f",
        "sim_commands": "/g",
        "mig_delay": "250ms",
    }
    table = {each.name: each for each in all_settings()}
    assert set(texts) == set(table)
    texts = {name: text for name, text in texts.items() if table[name].about.back_end in ("", back_end)}
    file.write_text("".join(f"{table[name].key}: {text!r}\n" for name, text in texts.items()))
    by_flag = read(" ".join(f"{table[name].flag} {text}" for name, text in texts.items()))
    by_variable = read("", **{table[name].variable: text for name, text in texts.items()})
    by_file = read(f"--config {file}")
    assert by_flag == by_variable == by_file
    assert by_flag.metrics_address == Address("::", 8080)
    assert by_flag.health_address == Address("::1", 51516)
    assert by_flag.mig_delay == (0.25 if back_end == "sim" else 0)
    defaults = read(NEEDED)
    same = {name for name in texts if getattr(by_flag, name) == getattr(defaults, name)}
    assert same - {"back_end"} == {"node_name"}


def test_all_mistakes_of_all_places_are_told_at_once(file: Path):
    file.write_text("backEnd: sin\nlogLevl: info\ncdiFolder: [a]\nnodeName: a\nnodeName: b\n")
    assert refused(
        f"--config {file} --fleett hgx --driver Upper --mig-delay 3q --metrics-address",
        DRA_INFRA_PLUGIN_KUBELET_ROOT="relative",
        DRA_INFRA_PLUGIN_FLET="x",
    ) == [
        ("plugin-setting-invalid", "backEnd"),
        ("plugin-setting-unknown", "logLevl"),
        ("plugin-setting-invalid", "cdiFolder"),
        ("plugin-setting-invalid", "nodeName"),
        ("plugin-setting-invalid", "--driver"),
        ("plugin-setting-unknown", "--fleett"),
        ("plugin-setting-invalid", "--metrics-address"),
        ("plugin-setting-invalid", "--mig-delay"),
        ("plugin-setting-unknown", "DRA_INFRA_PLUGIN_FLET"),
        ("plugin-setting-invalid", "DRA_INFRA_PLUGIN_KUBELET_ROOT"),
    ]


def test_a_mistake_of_the_file_is_told_with_its_line(file: Path):
    file.write_text("# of node-1\nbackEnd: nvml\nnodeName: node-1\nlogLevel: inof\n")
    with pytest.raises(PluginError) as raised:
        read(f"--config {file}")
    (problem,) = raised.value.problems
    assert str(problem.place) == f"{file}:4:11"
    assert (problem.code, problem.hint) == ("plugin-setting-invalid", "did you mean info?")


def test_a_mistake_is_told_although_another_place_overrules_it():
    assert refused(f"{NEEDED} --log-level info", DRA_INFRA_PLUGIN_LOG_LEVEL="inof") == [
        ("plugin-setting-invalid", "DRA_INFRA_PLUGIN_LOG_LEVEL")
    ]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (f"{NEEDED} --kubelet-roots /a", "did you mean --kubelet-root?"),
        (f"{NEEDED} --log-level=warn", "did you mean warning?"),
        (f"{NEEDED} --log-format=xml", "one of text, json"),
    ],
)
def test_the_nearest_name_is_told(words: str, hint: str):
    assert hint_of(words) == hint


def test_what_must_be_given_is_told_with_all_ways_to_give_it():
    assert refused("") == [
        ("plugin-setting-missing", "--back-end"),
        ("plugin-setting-missing", "--node-name"),
    ]
    hint = hint_of("--back-end nvml")
    assert hint == "give --node-name, the variable NODE_NAME, or nodeName in the file"


def test_simulated_devices_need_a_fleet_and_real_ones_have_none():
    assert refused("--back-end sim --node-name a") == [("plugin-setting-missing", "--fleet")]
    assert refused(f"{NEEDED} --fleet hgx-h100") == [("plugin-setting-invalid", "--fleet")]


def test_a_variable_that_others_read_too_keeps_simulated_devices_from_nothing():
    words = "--back-end sim --node-name a --fleet hgx-h100"
    assert read(words, NVIDIA_DRIVER_ROOT="/run/nvidia/driver").back_end == "sim"
    assert refused(words, DRA_INFRA_PLUGIN_TOOLKIT="/usr/bin/nvidia-ctk") == [
        ("plugin-setting-invalid", "DRA_INFRA_PLUGIN_TOOLKIT")
    ]
    assert refused(f"{words} --driver-root /run") == [("plugin-setting-invalid", "--driver-root")]


def test_a_misspelt_variable_is_a_warning_alone():
    _, warnings = read_with_warnings(NEEDED, DRA_INFRA_PLUGIN_LOGLEVEL="debug")
    assert [(each.code, each.severity, each.hint) for each in warnings] == [
        ("plugin-setting-unknown", "warning", "did you mean DRA_INFRA_PLUGIN_LOG_LEVEL?")
    ]


def test_what_the_kubelet_sets_for_a_service_of_that_name_is_no_setting():
    environment = {
        "DRA_INFRA_PLUGIN_SERVICE_HOST": "10.0.0.1",
        "DRA_INFRA_PLUGIN_SERVICE_PORT_METRICS": "8080",
        "DRA_INFRA_PLUGIN_PORT": "tcp://10.0.0.1:8080",
        "DRA_INFRA_PLUGIN_PORT_8080_TCP_ADDR": "10.0.0.1",
    }
    assert read_with_warnings(NEEDED, **environment)[1] == ()


def test_an_empty_variable_is_none():
    assert read(NEEDED, DRA_INFRA_PLUGIN_LOG_FORMAT="").log_format == ""


def test_words_of_yaml_itself_are_taken_for_what_they_mean(file: Path):
    file.write_text("backEnd: nvml\nnodeName: node-1\nmetadataFiles: true\nlogFormat: null\n")
    settings = read(f"--config {file}")
    assert (settings.metadata_files, settings.log_format) == (True, "")


@pytest.mark.parametrize("content", ["a: [", "- a", "just words", "a: \x00"])
def test_a_file_that_is_no_mapping_is_told_as_such(file: Path, content: str):
    file.write_text(content)
    assert refused(f"{NEEDED} --config {file}")[0][0] == "plugin-settings-unreadable"


def test_a_file_that_is_not_there_is_told_with_what_else_is_wrong(file: Path):
    assert refused(f"--back-end nvml --log-level x --config {file}") == [
        ("plugin-setting-invalid", "--log-level"),
        ("plugin-settings-unreadable", str(file)),
    ]


@pytest.mark.parametrize("content", [b"backEnd: sim\n  fleet: x\n", b"- backEnd\n", b"\x01\x9c"])
def test_nothing_is_called_missing_that_a_file_may_have_which_cannot_be_read(file: Path, content: bytes):
    file.write_bytes(content)
    assert [code for code, _ in refused(f"--config {file}")] == ["plugin-settings-unreadable"]


def test_what_is_told_of_a_file_is_one_line(file: Path):
    file.write_bytes(b"\x9c\x01")
    with pytest.raises(PluginError) as raised:
        read(f"--config {file}")
    assert "\n" not in raised.value.problems[0].message


def test_nothing_is_called_missing_whose_name_was_misspelt(file: Path):
    file.write_text("backend: sim\nnode_name: a\n")
    assert refused(f"--config {file}") == [
        ("plugin-setting-unknown", "backend"),
        ("plugin-setting-unknown", "node_name"),
    ]
    assert refused("--backend sim --node-name a") == [("plugin-setting-unknown", "--backend")]


def test_a_flag_without_its_dashes_is_known():
    assert hint_of(f"{NEEDED} check") == "did you mean --check?"


def test_an_empty_value_is_told_with_what_may_have_made_it_empty():
    with pytest.raises(PluginError) as raised:
        read_settings({"back_end": "nvml", "node_name": ""}, (), {}, None)
    (problem,) = raised.value.problems
    assert (problem.message, problem.hint) == (
        "has no value; was a variable empty?",
        "write the Node's metadata.name",
    )


def test_an_empty_file_says_nothing(file: Path):
    file.write_text("# nothing yet\n")
    assert read(f"{NEEDED} --config {file}") == read(NEEDED)


@pytest.mark.parametrize("address", ["8080", "a b:1", "1.2.3.4:70000", "::1:80", "host:-1"])
def test_an_address_has_a_host_and_a_port(address: str):
    assert refused(f"{NEEDED} --metrics-address={address.replace(' ', '_')}") == [
        ("plugin-setting-invalid", "--metrics-address")
    ]


def test_addresses_are_written_as_they_are_read():
    assert str(Address("::", 80)) == "[::]:80"
    assert str(Address("127.0.0.1", 80)) == "127.0.0.1:80"
