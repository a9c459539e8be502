"""The command itself in a process of its own, between a kubelet and an API server that are stand-ins."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc

from dra_infra.plugin.claims import Claim, ClaimDevice
from dra_infra.plugin.protocol import grpc_health_v1_pb2
from tests.support.plugin.api_server import ApiServer, serving
from tests.support.plugin.kubelet import Kubelet

DRIVER = "gpu.example.com"
NODE = "node-1"
SECONDS = 120
"""A start takes half a second of processor time, which a busy machine has in ten."""

PROGRAM = ("-m", "dra_infra.plugin.command.main")


class Machine:
    """A node: folders, a kubelet, an API server, and the plugin's processes."""

    def __init__(self, folder: Path, server: ApiServer, driver: str) -> None:
        self.server = server
        self.driver = driver
        self.kubelet = Kubelet(folder / "kubelet")
        self.cdi = folder / "cdi"
        self.state = folder / "kubelet" / "plugins" / driver
        self.log = folder / "log"
        self.log.touch()
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(_kubeconfig(server.url)))
        server.store.create("nodes", "", {"metadata": {"name": NODE}})
        self.processes: list[subprocess.Popen[bytes]] = []
        self.back_end: tuple[str, ...] = ("--back-end", "sim", "--fleet", "example")

    def words(self, *more: str) -> list[str]:
        return [
            *(*self.back_end, "--node-name", NODE),
            *("--kubelet-root", str(self.kubelet.root), "--cdi-folder", str(self.cdi)),
            *("--kubeconfig", str(self.kubeconfig), *more),
        ]

    def start(self, *more: str, program: Sequence[str] = PROGRAM) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *program, *self.words(*more)], stderr=log, stdout=log, cwd=_ROOT
            )
        self.processes.append(process)
        return process

    def start_and_register(self, *more: str, program: Sequence[str] = PROGRAM) -> subprocess.Popen[bytes]:
        before = set(self.kubelet.plugins)
        process = self.start(*more, program=program)

        def registered() -> bool:
            assert process.poll() is None, self.log.read_text()
            # A socket that a killed instance left refuses, and is looked at again.
            with suppress(grpc.RpcError):
                self.kubelet.look()
            return bool(set(self.kubelet.plugins) - before)

        wait_until(registered)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        # A connection of the kubelet's is gone with the process, and made anew when it is registered again.
        for name in list(self.kubelet.plugins):
            self.kubelet.plugins.pop(name).channel.close()

    def end(self, process: subprocess.Popen[bytes]) -> int:
        process.send_signal(signal.SIGTERM)
        return process.wait(SECONDS)

    def close(self) -> None:
        self.kubelet.close()
        for each in self.processes:
            each.kill()
            each.wait()

    def allocate(self, number: int, *devices: str) -> Claim:
        """A claim as the scheduler leaves it."""
        claim = Claim(
            uid=f"{number:08x}-0000-4000-8000-0000000000ab",
            namespace="ml",
            name=f"claim-{number}",
            devices=tuple(ClaimDevice(pool=NODE, device=each, request="gpu") for each in devices),
        )
        results = [
            {"request": "gpu", "driver": self.driver, "pool": NODE, "device": each} for each in devices
        ]
        consumer = {"resource": "pods", "name": f"pod-{number}", "uid": claim.uid}
        item = {
            "metadata": {"name": claim.name, "uid": claim.uid},
            "spec": {},
            "status": {"allocation": {"devices": {"results": results}}, "reservedFor": [consumer]},
        }
        self.server.store.create("resourceclaims", "ml", item)
        return claim

    def prepare(self, claim: Claim) -> Any:
        return self.kubelet.call(lambda plugin: plugin.prepare(claim, timeout=SECONDS))[claim.uid]

    def release(self, claim: Claim) -> str:
        return str(self.kubelet.call(lambda plugin: plugin.release(claim, timeout=SECONDS))[claim.uid].error)

    def prepared(self) -> tuple[set[str], set[str]]:
        """UIDs in the checkpoint and in the CDI folder."""
        specs = {each.stem.rpartition("_")[2] for each in self.cdi.glob("*.json")}
        return {each.stem for each in (self.state / "claims").glob("*.json")}, specs

    def lines(self) -> list[dict[str, Any]]:
        # The last line may be half written.
        whole = self.log.read_bytes().rpartition(b"\n")[0].decode()
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def told(self, message: str) -> bool:
        """Whether the log has a line with it."""
        return any(each["message"] == message for each in self.lines())

    def port(self, message: str) -> int:
        wait_until(lambda: self.told(message))
        return int(next(each["port"] for each in self.lines() if each["message"] == message))


@contextmanager
def machine_in(folder: Path, driver: str = DRIVER) -> Iterator[Machine]:
    with serving() as server:
        machine = Machine(folder, server, driver)
        try:
            yield machine
        finally:
            machine.close()


def health(port: int, service: str) -> str:
    """What a probe is answered."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            grpc_health_v1_pb2.HealthCheckRequest.SerializeToString,
            grpc_health_v1_pb2.HealthCheckResponse.FromString,
        )
        status = call(grpc_health_v1_pb2.HealthCheckRequest(service=service), timeout=SECONDS).status
        return str(grpc_health_v1_pb2.HealthCheckResponse.ServingStatus.Name(status))


def wait_until(holds: Callable[[], bool], tell: Callable[[], str] = lambda: "") -> None:
    """Wait for a condition; when it never comes, the failure has what *tell* returns."""
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until, tell()
        time.sleep(0.02)


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "users": [{"name": "test", "user": {}}],
    }


_ROOT = Path(__file__).parents[3]
