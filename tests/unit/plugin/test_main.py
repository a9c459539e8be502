"""The command: it starts, works, ends and refuses as it says."""

from __future__ import annotations

import ctypes
import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

import dra_infra
from dra_infra.plugin.command import instance
from dra_infra.plugin.command.checks import check_addresses
from dra_infra.plugin.command.program import run
from dra_infra.plugin.command.settings import Address, Settings
from tests.support.plugin.whole_plugin import DRIVER, SECONDS, Machine, health, machine_in, wait_until

UIDS = [f"0000000{number}-0000-4000-8000-0000000000ab" for number in (1, 2)]
ABRUPT = """
import os, signal, sys
from dra_infra.plugin.disk import Disk
from dra_infra.plugin.command.program import run

class Fatal(Disk):
    left = 4
    def rename(self, old, new):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        super().rename(old, new)

sys.exit(run(sys.argv[1:], os.environ, disk=Fatal()))
"""


@pytest.fixture
def machine(folder: Path) -> Iterator[Machine]:
    with machine_in(folder) as found:
        yield found


def answer(capsys: pytest.CaptureFixture[str], *words: str, **environment: str) -> tuple[int, str, str]:
    code = run(words, environment)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]):
    assert answer(capsys, "--version") == (0, f"dra-infra-plugin {dra_infra.__version__}\n", "")


def test_mistakes_in_the_settings_are_printed_and_the_exit_code_is_two(capsys: pytest.CaptureFixture[str]):
    code, out, err = answer(capsys, "--back-end", "simm", DRA_INFRA_PLUGIN_LOG_LEVEL="loud")
    assert (code, out) == (2, "")
    assert err.count("[plugin-setting-") == 3


def test_a_back_end_that_is_none_is_a_mistake_in_the_settings(capsys: pytest.CaptureFixture[str]):
    code, _, err = answer(capsys, "--back-end", "none_of_ours:Lamps", "--node-name", "n")
    assert (code, "[back-end-not-loaded]" in err) == (2, True)


def test_a_kubeconfig_without_a_current_context_is_told_in_the_words_of_this_command(machine: Machine):
    document = json.loads(machine.kubeconfig.read_text())
    machine.kubeconfig.write_text(json.dumps({**document, "current-context": ""}))
    assert machine.start().wait(SECONDS) == 2
    said = machine.log.read_text()
    assert f"--kubeconfig: {machine.kubeconfig} has no current context [context-not-known]" in said
    assert f"kubectl config use-context NAME --kubeconfig {machine.kubeconfig}; there are test" in said
    assert "--context" not in said


def test_a_fleet_that_is_not_known_is_a_mistake_in_the_settings(capsys: pytest.CaptureFixture[str]):
    code, _, err = answer(capsys, "--back-end", "sim", "--node-name", "n", "--fleet", "hgx-h10")
    assert code == 2
    assert "[fleet-unknown]" in err


def test_a_kubelet_that_is_not_there_is_told_and_the_exit_code_is_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    words = ("--back-end", "sim", "--node-name", "n", "--fleet", "example", "--kubelet-root", str(tmp_path))
    code, _, err = answer(capsys, *words)
    assert code == 1
    assert "[plugin-folder-not-usable]" in err
    assert "--root-dir" in err


def test_it_registers_publishes_prepares_and_releases(machine: Machine):
    machine.start_and_register()
    claim = machine.allocate(1, "gpu-0")
    prepared = machine.prepare(claim)
    assert (prepared.error, [each.device_name for each in prepared.devices]) == ("", ["gpu-0"])
    assert machine.prepared() == ({claim.uid}, {claim.uid})
    wait_until(lambda: bool(machine.server.store.list("resourceslices")))
    assert machine.release(claim) == ""
    assert machine.prepared() == (set(), set())


def test_it_ends_when_it_is_asked_to_and_keeps_what_is_prepared(machine: Machine):
    process = machine.start_and_register()
    claim = machine.allocate(1, "gpu-0")
    before = machine.prepare(claim)
    assert machine.end(process) == 0
    assert list(machine.kubelet.registry.glob("[!.]*")) == []
    messages = [each["message"] for each in machine.lines()]
    assert (messages.count("stopping"), messages[-1]) == (1, "stopped")
    machine.kubelet.look()
    machine.start_and_register()
    assert machine.prepare(claim) == before


def test_it_ends_on_ctrl_c_as_well(machine: Machine):
    process = machine.start_and_register()
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == 0


def test_a_signal_that_another_thread_takes_ends_it_too(machine: Machine):
    """The kernel may give it to any thread, and Python's handlers wait for the first one, which sleeps."""
    process = machine.start_and_register()
    tasks = Path(f"/proc/{process.pid}/task")
    taking = next(task for task in tasks.iterdir() if int(task.name) != process.pid and takes_signals(task))
    assert ctypes.CDLL(None).tgkill(process.pid, int(taking.name), signal.SIGTERM) == 0
    assert process.wait(SECONDS) == 0


def takes_signals(task: Path) -> bool:
    (blocked,) = (line for line in (task / "status").read_text().splitlines() if line.startswith("SigBlk:"))
    return not int(blocked.split()[1], 16) >> (signal.SIGTERM - 1) & 1


def test_a_second_signal_ends_it_at_once(machine: Machine):
    process = machine.start_and_register("--log-level", "debug")
    commands = machine.state / "sim-commands.json"
    commands.write_text(json.dumps({"prepare": [{"seconds": 3600}]}))
    claim = machine.allocate(1, "gpu-0")
    with ThreadPoolExecutor(1) as caller:
        call = caller.submit(machine.prepare, claim)
        wait_until(lambda: machine.told("prepare begins"))
        # It waits for the call, which does not end.
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: machine.told("stopping"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 128 + signal.SIGTERM
        assert call.exception() is not None


def test_what_was_prepared_survives_that_it_is_killed(machine: Machine):
    process = machine.start_and_register()
    claim = machine.allocate(1, "gpu-0")
    before = machine.prepare(claim)
    machine.kill(process)
    machine.start_and_register()
    assert machine.prepare(claim) == before


def test_a_script_of_a_few_lines_kills_it_at_a_step_of_the_disk(machine: Machine):
    process = machine.start_and_register(program=("-c", ABRUPT))
    first, second = machine.allocate(1, "gpu-0"), machine.allocate(2, "gpu-1")
    before = machine.prepare(first)
    with pytest.raises(grpc.RpcError):
        machine.prepare(second)
    assert process.wait(SECONDS) == -signal.SIGKILL
    machine.kill(process)
    machine.start_and_register()
    assert machine.prepare(first) == before
    assert machine.prepared() == ({first.uid}, {first.uid})
    assert machine.prepare(second).error == ""


def test_two_instances_of_a_rolling_update_are_alive_together(machine: Machine):
    old = machine.start_and_register("--pod-uid", UIDS[0])
    claim = machine.allocate(1, "gpu-0")
    before = machine.prepare(claim)
    machine.start_and_register("--pod-uid", UIDS[1], "--health-address", "127.0.0.1:0")
    assert machine.prepare(claim) == before
    # Only then is the old one ended: a DaemonSet without a gap waits for it.
    probes = machine.port("probes are answered")
    wait_until(lambda: health(probes, "readiness") == "SERVING")
    assert old.poll() is None
    assert machine.end(old) == 0
    machine.kubelet.look()
    assert machine.release(claim) == ""


def test_a_second_instance_without_a_pod_is_refused(machine: Machine):
    machine.start_and_register()
    assert machine.start().wait(SECONDS) == 1
    assert "[plugin-already-running]" in machine.log.read_text()
    machine.kubelet.look()
    assert machine.prepare(machine.allocate(1, "gpu-0")).error == ""


def test_probes_and_metrics_are_answered(machine: Machine):
    machine.start_and_register("--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0")
    machine.prepare(machine.allocate(1, "gpu-0"))
    probes = machine.port("probes are answered")
    # It asks itself, which may take too long on a busy machine.
    for each in ("liveness", "readiness"):
        wait_until(lambda each=each: health(probes, each) == "SERVING")
    connection = http.client.HTTPConnection("127.0.0.1", machine.port("metrics are served"), timeout=SECONDS)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    assert 'dra_infra_plugin_claims{state="prepared"} 1.0' in text
    assert f'driver="{DRIVER}"' in text


def test_a_plugin_whose_socket_was_taken_away_is_not_alive(machine: Machine):
    machine.start_and_register("--health-address", "127.0.0.1:0")
    (socket,) = machine.kubelet.registry.glob("[!.]*")
    socket.unlink()
    assert health(machine.port("probes are answered"), "liveness") == "NOT_SERVING"


def test_a_plugin_without_an_api_server_is_alive_and_not_ready(machine: Machine):
    machine.server.refuse = lambda _method, _path: 503
    machine.start_and_register("--health-address", "127.0.0.1:0")
    probes = machine.port("probes are answered")
    wait_until(lambda: health(probes, "liveness") == "SERVING")
    assert health(probes, "readiness") == "NOT_SERVING"


def test_a_signal_has_all_threads_written_at_any_level_and_ends_nothing(machine: Machine):
    process = machine.start_and_register("--log-format", "json", "--log-level", "error")
    process.send_signal(signal.SIGUSR2)
    wait_until(lambda: machine.told("tasks of the event loop"), machine.log.read_text)
    said = machine.log.read_text()
    assert said.count("Thread 0x") > 3
    assert "_wait_for" in said
    assert "run_forever" in said
    assert machine.prepare(machine.allocate(1, "gpu-0")).error == ""
    assert machine.end(process) == 0


def test_what_happens_to_simulated_devices_is_said_by_the_same_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    file = tmp_path / "commands.json"
    for words in (
        ("fail", "gpu-1", "--xid", "79"),
        ("withdraw", "gpu-2"),
        ("disturb", "--claim", "ml/a", "--seconds", "5"),
        ("hold", "gpu-3"),
        ("hold", "gpu-5"),
        ("unhold", "gpu-5"),
        ("bind", "ml/b", "--failed", "no room"),
        ("fail", "gpu-4", "--message", "burnt"),
        ("heal", "gpu-4"),
    ):
        assert answer(capsys, "sim", *words, "--file", str(file))[0] == 0
    code, out, _ = answer(capsys, "sim", "show", DRA_INFRA_PLUGIN_SIM_COMMANDS=str(file))
    assert code == 0
    assert json.loads(out) == {
        "devices": {"gpu-1": {"xid": 79}, "gpu-2": {"state": "gone"}},
        "prepare": [{"claim": "ml/a", "seconds": 5.0}],
        "bindingConditions": ["gpu-3"],
        "bindings": [{"claim": "ml/b", "state": "failed", "message": "no room"}],
    }


def test_one_device_of_all_that_are_held_is_not_let_go_in_silence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    file = ("--file", str(tmp_path / "commands.json"))
    assert answer(capsys, "sim", "hold", *file)[0] == 0
    code, _, err = answer(capsys, "sim", "unhold", "gpu-1", *file)
    assert (code, "[sim-commands-malformed]" in err) == (2, True)
    assert json.loads(answer(capsys, "sim", "show", *file)[1]) == {"bindingConditions": ["*"]}
    assert json.loads(answer(capsys, "sim", "unhold", *file)[1]) == {}


def test_a_disturbance_of_nothing_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    with pytest.raises(SystemExit) as ended:
        answer(capsys, "sim", "disturb", "--claim", "ml/a", "--file", str(tmp_path / "commands.json"))
    assert ended.value.code == 2
    assert "--seconds, --error" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_a_file_that_of_the_plugin_with_these_settings_is_meant(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    settings = {
        "DRA_INFRA_PLUGIN_BACK_END": "sim",
        "DRA_INFRA_PLUGIN_FLEET": "example",
        "DRA_INFRA_PLUGIN_STATE_FOLDER": str(tmp_path),
        "NODE_NAME": "n",
    }
    assert answer(capsys, "sim", "fail", "gpu-1", **settings)[0] == 0
    assert (tmp_path / "sim-commands.json").is_file()
    code, _, err = answer(capsys, "sim", "fail", "gpu-1")
    assert (code, "[plugin-setting-missing]" in err) == (2, True)


def test_check_says_what_holds_and_what_does_not(machine: Machine):
    machine.server.refuse = lambda _method, path: 403 if path == "/version" else None
    result = subprocess.run(
        [sys.executable, "-m", "dra_infra.plugin.command.main", "--check", "--json", *machine.words()],
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    assert result.returncode == 1, result.stderr
    said = json.loads(result.stdout)
    holds = {each["what"]: each["holds"] for each in said["checks"]}
    assert holds["devices"]
    assert holds["state folder"]
    # Nobody watches here, and the server is said to fail.
    assert [what for what, does in holds.items() if not does] == ["kubelet", "API server"]
    assert list(machine.kubelet.registry.iterdir()) == []
    assert not machine.state.exists()


PATIENT = """
from dra_infra.plugin.command import checks, main
checks.ask_kubelet.__kwdefaults__["seconds"] = 600
main.main()
"""


def test_ctrl_c_ends_a_check_quietly_and_leaves_nothing_for_the_kubelet(machine: Machine):
    with subprocess.Popen(
        [sys.executable, "-c", PATIENT, "--check", *machine.words()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            wait_until(lambda: any(machine.kubelet.registry.glob("check-*")))
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert (process.returncode, err) == (130, b"")
    assert b"state folder" in out
    assert list(machine.kubelet.registry.iterdir()) == []


def test_the_addresses_of_a_plugin_that_runs_hold_for_a_check_with_its_settings(machine: Machine):
    process = machine.start_and_register(
        "--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0"
    )
    settings = Settings(
        back_end="sim",
        node_name="node-1",
        metrics_address=Address("127.0.0.1", machine.port("metrics are served")),
        health_address=Address("127.0.0.1", machine.port("probes are answered")),
    )
    found = list(check_addresses(settings, machine.state / instance.INSTANCES_FILE))
    assert [each.what for each in found] == ["metrics address", "health address"]
    for each in found:
        assert each.holds
        assert f"process {process.pid} (" in each.found
    # Nobody can say so of another plugin's.
    assert not any(each.holds for each in check_addresses(settings, machine.cdi))


def test_help_and_mistakes_load_nothing_that_takes_long():
    program = (
        "import sys, os\nfrom dra_infra.plugin.command.program import run\nrun(['--log-level', 'x'], {})\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    loaded = set(result.stdout.split())
    assert "dra_infra" in loaded
    assert not loaded & {"grpc", "google", "pydantic", "urllib3", "yaml", "prometheus_client"}


def test_a_missing_extra_says_how_to_install_it():
    code = "import sys; sys.modules['grpc'] = None; from dra_infra.plugin.command.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--back-end", "sim", "--fleet", "example", "--node-name", "n0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(
        "✗ dra-infra-plugin: the module grpc is not installed\n  hint: pip install 'dra-infra[plugin]'"
    )
    assert "Traceback" not in done.stderr
