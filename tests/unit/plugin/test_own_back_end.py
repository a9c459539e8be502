"""A driver of one's own, as docs/write-your-own-driver.md has it, runs; what is none is told."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.command import back_end_loading
from tests.support.plugin.whole_plugin import machine_in, wait_until
from tests.unit.plugin.faults import codes

PAGE = Path(__file__).parents[3] / "docs" / "write-your-own-driver.md"
DRIVER = "serial.example.com"


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which modules are found, also by processes."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    back_end_loading.load.cache_clear()
    return tmp_path


@pytest.fixture
def ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "ports"
    folder.mkdir()
    (folder / "usb-Demo_Port-if00").symlink_to("/dev/zero")
    monkeypatch.setenv("SERIAL_PORTS", str(folder))
    return folder


def codes_of_page() -> list[str]:
    """The driver of the page, and its test."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_test_of_the_page_passes_and_fails_for_a_driver_that_forgets(modules: Path):
    code, test = codes_of_page()
    (modules / "test_serial_ports.py").write_text(test)
    outcomes = {}
    for name, driver in {
        "good": code,
        "counting": code.replace(
            "SERIAL_PORT={path}", "SERIAL_PORT={path}:{__import__('time').monotonic_ns()}"
        ),
    }.items():
        (modules / "serial_ports.py").write_text(driver)
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_serial_ports.py"]
        done = subprocess.run(words, cwd=modules, capture_output=True, text=True, check=False)
        outcomes[name] = done.returncode
    assert outcomes == {"good": 0, "counting": 1}


def test_the_driver_of_the_page_registers_publishes_prepares_and_releases(
    modules: Path, ports: Path, folder: Path
):
    code, _ = codes_of_page()
    (modules / "serial_ports.py").write_text(code)
    with machine_in(folder, DRIVER) as machine:
        machine.back_end = ("--back-end", "serial_ports:SerialPorts")
        machine.start_and_register()

        def slices() -> list[dict[str, Any]]:
            return machine.server.store.list("resourceslices")

        wait_until(lambda: bool(slices()))
        (device,) = slices()[0]["spec"]["devices"]
        assert device == {
            "name": "usb-demo-port-if00",
            "attributes": {"id": {"string": "usb-Demo_Port-if00"}},
        }
        claim = machine.allocate(1, device["name"])
        assert not machine.prepare(claim).error
        (spec,) = machine.cdi.glob("*.json")
        (prepared,) = json.loads(spec.read_text())["devices"]
        assert prepared["containerEdits"] == {
            "env": ["SERIAL_PORT=/dev/zero"],
            "deviceNodes": [{"path": "/dev/zero"}],
        }
        assert not machine.release(claim)
        assert machine.prepared() == (set(), set())
        (ports / "usb-Demo_Port-if00").unlink()
        wait_until(lambda: not any(each["spec"].get("devices") for each in slices()))
        assert "was unplugged" in machine.prepare(claim).error


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "there is no module none_of_ours"),
        ("import nothing_such", "there is no module nothing_such"),
        ("x = 1", "has no class Lamps"),
        ("class Lamps:\n  def __init__(self, wires): ...", "TypeError"),
        ("class Lamps:\n  def __init__(self): self.wires", "AttributeError"),
        ("class Lamps:\n  driver = 'lamp.example.com'", "has no inventory, watch, prepare, release, close"),
        (
            "class Lamps:\n  driver = 'Lamp'\n  inventory = watch = prepare = release = close = len",
            "its driver is called 'Lamp'",
        ),
    ],
)
def test_what_is_no_back_end_is_told(modules: Path, written: str, said: str):
    name = "none_of_ours" if not written else f"lamps_{abs(hash(written))}"
    if written:
        (modules / f"{name}.py").write_text(written)
    with pytest.raises(PluginError) as caught:
        back_end_loading.load(f"{name}:Lamps")
    assert codes(caught.value) == ["back-end-not-loaded"]
    assert said in str(caught.value)


def test_another_name_of_the_driver_than_the_class_has_is_refused(modules: Path):
    (modules / "bulbs.py").write_text(
        "class Bulbs:\n  driver = 'bulb.example.com'\n  inventory = watch = prepare = release = close = len"
    )
    assert back_end_loading.load("bulbs:Bulbs", driver="bulb.example.com").driver == "bulb.example.com"
    with pytest.raises(PluginError) as caught:
        back_end_loading.load("bulbs:Bulbs", driver="lamp.example.com")
    assert codes(caught.value) == ["back-end-not-loaded"]
