"""The node plugin on simulated devices: `python -m benchmarks.programs.node_plugin QUESTION`; the last line is the seconds that count.

prepare-50, prepare-99    a claim is prepared: the median, and what 99 of 100 stay below; fsyncs on a real disk included
release-50                a claim is released
calls                     1,000 claims over the socket, one after the other
flight-99                 the same with 64 in flight: what 99 of 100 calls stay below
start                     from the start of the process to both sockets
idle                      processor time in 20 s of doing nothing, with 1,000 claims prepared
serve FOLDER              the process behind `calls` and `flight-99`
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from dra_infra.plugin.claims import Claim, ClaimDevice, ClaimReference
from dra_infra.plugin.preparations import Preparations

NUMBER = 1000
IN_FLIGHT = 64
IDLE = 20.0
NODE = "node-1"
FLEET = "a100-80gb mig=1g.10gb*7"
"""56 devices: as many claims are prepared at a time as a node of 8 GPUs has of the smallest."""

WORK = Path(__file__).parents[2] / ".cache" / "benchmarks"
"""On a disk: in memory fsync takes no time."""


def preparations(folder: Path) -> tuple[Preparations, list[str]]:
    """A plugin without its sockets, and the names of its devices."""
    from dra_infra.plugin.back_ends.sim import SimulatedBackEnd
    from dra_infra.plugin.cdi import CdiFolder
    from dra_infra.plugin.checkpoint import Checkpoint
    from dra_infra.plugin.disk import Folder
    from dra_infra.plugin.locks import PreparationLock

    for name in ("claims", "cdi"):
        (folder / name).mkdir(exist_ok=True)
    back_end = SimulatedBackEnd(FLEET, node=NODE, folder=folder / "sim")
    made = Preparations(
        driver=back_end.driver,
        boot_id="benchmark",
        checkpoint=Checkpoint(Folder(folder / "claims")),
        specs=CdiFolder(Folder(folder / "cdi", mode=0o644), back_end.driver),
        back_end=back_end,
        lock=PreparationLock(folder / "turns"),
    )
    return made, [each.name for each in back_end.inventory().devices]


def claim_of(number: int, devices: list[str], *, admin: bool = False) -> Claim:
    """A claim of one device; with admin access any number of them have one."""
    device = devices[number % len(devices)]
    return Claim(
        uid=f"{number:08x}-0000-4000-8000-0000000000ab",
        namespace="bench",
        name=f"claim-{number}",
        devices=(ClaimDevice(pool=NODE, device=device, request="gpu", admin_access=admin),),
    )


def service_time(folder: Path) -> tuple[list[float], list[float]]:
    """Seconds of each prepare and of each release, sorted."""
    made, devices = preparations(folder)
    prepares = []
    releases = []
    claims = [claim_of(number, devices) for number in range(NUMBER)]
    for start in range(0, NUMBER, len(devices)):
        batch = claims[start : start + len(devices)]
        prepares += [timed(lambda claim=claim: made.prepare(claim)) for claim in batch]
        releases += [timed(lambda claim=claim: made.release(claim.uid)) for claim in batch]
    return sorted(prepares), sorted(releases)


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def below(seconds: list[float], part: float) -> float:
    """What that part of sorted *seconds* stays below."""
    return seconds[min(len(seconds) - 1, int(len(seconds) * part))]


class Nobody:
    """A publisher without an API server."""

    def start(self) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""


def serve(folder: Path) -> None:
    """Serve claims that are known without an API server, until standard input ends."""
    from dra_infra.plugin.driver import Driver
    from dra_infra.plugin.service.sockets import Sockets

    made, devices = preparations(folder)
    back_end = made._back_end  # noqa: SLF001

    def read(reference: ClaimReference) -> Claim:
        return claim_of(int(reference.name.rpartition("-")[2]), devices, admin=True)

    driver = Driver(
        node=NODE,
        back_end=back_end,  # type: ignore[arg-type]
        preparations=made,
        read_claim=read,
        publisher=Nobody(),
        sockets=Sockets(kubelet_root=folder, driver=back_end.driver),  # type: ignore[attr-defined]
    )
    driver.start()
    sys.stdin.read()
    driver.stop()


@contextmanager
def kubelet_folder() -> Iterator[Path]:
    """As a kubelet has it, on the disk of the working tree, with a short path: sockets have no room for a longer one."""
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="k", dir=WORK if len(str(WORK)) < 40 else "/var/tmp") as name:  # noqa: S108
        for each in ("plugins", "plugins_registry"):
            (Path(name) / each).mkdir()
        yield Path(name)


def wait_for(find: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    """Look every millisecond."""
    while not find():
        if process.poll() is not None:
            raise SystemExit("the plugin ended")
        time.sleep(0.001)


def caller(root: Path) -> Callable[[Claim], None]:
    """What prepares a claim over the socket."""
    import grpc

    from dra_infra.plugin.protocol import dra_v1_pb2 as messages

    (socket,) = root.glob("plugins/*/*.sock")
    channel = grpc.insecure_channel(f"unix:{socket}")
    call = channel.unary_unary(
        "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
        messages.NodePrepareResourcesRequest.SerializeToString,
        messages.NodePrepareResourcesResponse.FromString,
    )

    def prepare(claim: Claim) -> None:
        named = messages.Claim(namespace=claim.namespace, name=claim.name, uid=claim.uid)
        answer = call(messages.NodePrepareResourcesRequest(claims=[named]), timeout=60)
        error = answer.claims[claim.uid].error
        if error:
            raise SystemExit(error)

    return prepare


def over_the_socket(in_flight: int) -> tuple[float, list[float]]:
    """Seconds for all claims, and of each call, sorted."""
    with kubelet_folder() as root:
        command = [sys.executable, "-m", "benchmarks.programs.node_plugin", "serve", str(root)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            wait_for(lambda: list(root.glob("plugins_registry/[!.]*")), process)
            prepare = caller(root)
            claims = [claim_of(number, ["any"]) for number in range(NUMBER)]
            with ThreadPoolExecutor(in_flight) as pool:
                started = time.perf_counter()
                calls = list(pool.map(lambda claim: timed(lambda: prepare(claim)), claims))
                seconds = time.perf_counter() - started
    return seconds, sorted(calls)


def start(root: Path, kubeconfig: Path) -> tuple[subprocess.Popen[bytes], float]:
    """The command itself, and the seconds until both of its sockets were there."""
    words = ["--back-end", "sim", "--fleet", FLEET, "--node-name", NODE, "--log-level", "error"]
    words += ["--kubelet-root", str(root), "--cdi-folder", str(root / "cdi"), "--kubeconfig", str(kubeconfig)]
    words += ["--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0"]
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "dra_infra.plugin.command.main", *words])
    wait_for(lambda: list(root.glob("plugins_registry/[!.]*")), process)
    return process, time.perf_counter() - started


def write_kubeconfig(root: Path, server: str) -> Path:
    """One that names a server."""
    file = root / "kubeconfig"
    content = {
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "clusters": [{"name": "bench", "cluster": {"server": server}}],
        "users": [{"name": "bench", "user": {}}],
    }
    file.write_text(json.dumps(content))
    return file


def time_to_sockets() -> float:
    """Without an API server, which the start does not wait for."""
    with kubelet_folder() as root:
        process, seconds = start(root, write_kubeconfig(root, "http://127.0.0.1:9"))
        process.terminate()
        process.wait()
    return seconds


def idle_time() -> float:
    """Processor seconds of the plugin with 1,000 prepared claims, watching an API server."""
    from tests.support.plugin.api_server import ApiServer

    server = ApiServer()
    server.store.create("nodes", "", {"metadata": {"name": NODE}})
    with kubelet_folder() as root:
        process, _ = start(root, write_kubeconfig(root, server.url))
        wait_for(lambda: server.store.list("resourceslices"), process)
        slices = server.store.list("resourceslices")
        driver = slices[0]["spec"]["driver"]
        devices = [each["name"] for item in slices for each in item["spec"].get("devices", ())]
        prepare = caller(root)
        for number in range(NUMBER):
            claim = claim_of(number, devices, admin=True)
            server.store.create("resourceclaims", claim.namespace, allocated(claim, driver))
            prepare(claim)
        # The kubelet is away, and what was begun has to end.
        time.sleep(2.0)
        before = processor_seconds(process.pid)
        time.sleep(IDLE)
        seconds = processor_seconds(process.pid) - before
        process.terminate()
        process.wait()
    server.stop()
    return seconds


def allocated(claim: Claim, driver: str) -> dict[str, object]:
    """The claim as the scheduler leaves it."""
    results = [
        {"request": each.request, "driver": driver, "pool": NODE, "device": each.device, "adminAccess": True}
        for each in claim.devices
    ]
    reserved = [{"resource": "pods", "name": claim.name, "uid": claim.uid}]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    return {"metadata": {"name": claim.name, "uid": claim.uid}, "spec": {}, "status": status}


def processor_seconds(pid: int) -> float:
    """Of all threads; /proc/PID/stat counts ticks of 10 ms, which is as much as an idle plugin takes in ten seconds."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


def main() -> None:
    """Answer one question."""
    question = sys.argv[1]
    if question == "serve":
        serve(Path(sys.argv[2]))
        return
    if question == "start":
        seconds = time_to_sockets()
    elif question == "idle":
        seconds = idle_time()
    elif question == "calls":
        seconds, _ = over_the_socket(1)
    elif question == "flight-99":
        seconds = below(over_the_socket(IN_FLIGHT)[1], 0.99)
    else:
        WORK.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=WORK) as folder:
            prepares, releases = service_time(Path(folder))
        kind, _, part = question.partition("-")
        seconds = below(prepares if kind == "prepare" else releases, int(part) / 100)
    print(seconds)


if __name__ == "__main__":
    main()
