"""Authorities, certificates and tokens of the plugin that change while it works, and an API server that is lost.

The plugin is the real process, the API server is a real one behind a front whose certificate is changed, and files are
changed as Kubernetes does it in the volumes of pods.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.attacks.conftest import Loot
from tests.e2e.plugin.conftest import make_node
from tests.support.forge.tls_front import Authority, Front
from tests.support.plugin.whole_plugin import NODE, Machine, health, machine_in
from tools.cluster import Api, ControlPlane
from tools.cluster.control_plane import parts

pytestmark = pytest.mark.e2e

SLICES = "resource.k8s.io/v1/ResourceSlice"
PATIENCE = 30.0
"""Seconds for what takes the plugin one: it comes back some seconds after a server that went."""

FIRST, SECOND = "first-token", "second-token"

IMPATIENT = """
import os, sys
from dra_infra.plugin.api_server import requests
requests.LOST, requests.HOPELESS = 1.0, (4.0, 4.0)
from dra_infra.plugin.command.program import run
sys.exit(run(sys.argv[1:], os.environ))
"""
"""The plugin itself, with other times: a minute, and half an hour, are too long for a test."""


class Volume:
    """Files in a folder, all of which change in one step, as in a volume of Kubernetes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._versions = itertools.count()
        folder.mkdir()

    def write(self, **files: str) -> None:
        """Have these files, and no others."""
        version = self.folder / f"..{next(self._versions)}"
        version.mkdir()
        for name, content in files.items():
            (version / name).write_text(content)
            link = self.folder / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        new = self.folder / "..new"
        new.symlink_to(version.name)
        new.rename(self.folder / "..data")


class Scene:
    """A plugin that publishes by way of the front."""

    def __init__(self, machine: Machine, front: Front, api: Api, volume: Volume) -> None:
        self.machine = machine
        self.front = front
        self.api = api
        self.volume = volume
        self.probes = 0

    def start(self, *program: str, server_name: str = "", **user: object) -> None:
        """Start the plugin with a kubeconfig that names files, and wait until it has published.

        Args:
            program: What runs it, where that is not the command itself.
            server_name: Whom the server's certificate has to be for, in place of its address.
            user: Credentials beside the file of the token, which is taken where there is no exec plugin.
        """
        named = {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [
                {
                    "name": "test",
                    "cluster": {
                        "server": self.front.url,
                        "certificate-authority": f"{self.volume.folder}/ca",
                        **({"tls-server-name": server_name} if server_name else {}),
                    },
                }
            ],
            "users": [
                {
                    "name": "test",
                    "user": user if "exec" in user else {"tokenFile": f"{self.volume.folder}/token", **user},
                }
            ],
        }
        self.machine.kubeconfig.write_text(json.dumps(named))
        words = ("--health-address", "127.0.0.1:0", "--log-format", "json")
        if program:
            self.machine.start_and_register(*words, program=program)
        else:
            self.machine.start_and_register(*words)
        self.probes = self.machine.port("probes are answered")
        assert self.published(), self.machine.log.read_text()

    def published(self) -> bool:
        """Whether slices come; those that are there are deleted first, for the plugin to bring them back."""
        for each in self.slices():
            self.api.delete(SLICES, each)
        return soon(self.slices)

    def slices(self) -> list[str]:
        """Names of the slices that are there."""
        return [each["metadata"]["name"] for each in self.api.list(SLICES)]

    def probe(self, service: str) -> str:
        """What the kubelet is told."""
        return health(self.probes, service)


def soon(holds: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Whether something holds within some time."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture(scope="module")
def plane(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """An API server for all attacks."""
    with ControlPlane(components=(parts.ETCD, parts.APISERVER), binaries=binaries) as plane:
        with plane.api() as api:
            make_node(api, NODE)
        yield plane


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Authority]:
    """The authority of the cluster, and the one that comes after it."""
    folder = tmp_path_factory.mktemp("authorities")
    return Authority.make(folder, "old"), Authority.make(folder, "new")


@pytest.fixture
def scene(plane: ControlPlane, authorities: tuple[Authority, Authority]) -> Iterator[Scene]:
    """The plugin before it is started: it trusts the old authority, and has the first token."""
    front = Front(plane, authorities[0].issue("server"))
    front.token = FIRST
    with tempfile.TemporaryDirectory() as name, machine_in(Path(name)) as machine, plane.api() as api:
        volume = Volume(Path(name) / "volume")
        volume.write(ca=authorities[0].certificate.read_text(), token=FIRST)
        yield Scene(machine, front, api, volume)
        # Shown where the test failed.
        print(machine.log.read_text())
    front.stop()


def test_a_new_authority_of_the_cluster_is_taken_step_by_step(
    scene: Scene, loot: Loot, authorities: tuple[Authority, Authority]
) -> None:
    old, new = (each.certificate.read_text() for each in authorities)
    scene.start()
    scene.volume.write(ca=old + new, token=FIRST)
    loot.add_if(not scene.published(), "a plugin that is lost once both authorities are in its file")
    scene.front.show(authorities[1].issue("server"))
    loot.add_if(
        not scene.published(), "a plugin that is lost once the server shows the new one's certificate"
    )
    scene.volume.write(ca=new, token=FIRST)
    loot.add_if(not scene.published(), "a plugin that is lost once the old authority is gone")


def test_an_authority_that_was_withdrawn_is_told_no_token(
    scene: Scene, loot: Loot, authorities: tuple[Authority, Authority]
) -> None:
    """Its key was stolen, which is why there is a new one; the thief stands in the way to the server."""
    scene.start()
    scene.volume.write(ca=authorities[1].certificate.read_text(), token=SECOND)
    scene.front.token = SECOND
    scene.front.show(authorities[0].issue("thief"))
    told = soon(lambda: "CERTIFICATE_VERIFY_FAILED" in scene.machine.log.read_text())
    loot.add_if(not told, "a plugin that trusts the stolen authority, and says nothing")
    for each in scene.front.tokens:
        loot.add(f"the token {each}")
    scene.front.show(authorities[1].issue("server"))
    loot.add_if(not scene.published(), "a plugin that does not come back")


@pytest.mark.parametrize("broken", ["", "\n", "-----BEGIN CERTIFICATE-----\nhalf of it", "\0\1\2"])
def test_a_file_that_is_being_written_opens_no_door(
    scene: Scene, loot: Loot, authorities: tuple[Authority, Authority], broken: str
) -> None:
    scene.start()
    scene.volume.write(ca=broken, token=FIRST)
    loot.add_if(not scene.published(), "a plugin that is lost while the file is written")
    scene.front.show(authorities[1].issue("stranger"))
    told = soon(lambda: "CERTIFICATE_VERIFY_FAILED" in scene.machine.log.read_text())
    loot.add_if(not told, "trust in somebody whom the cluster does not know")
    for each in scene.front.tokens:
        loot.add(f"the token {each}")
    scene.volume.write(ca=authorities[1].certificate.read_text(), token=FIRST)
    loot.add_if(not scene.published(), "a plugin that does not come back")


def test_a_token_and_a_certificate_of_ours_are_shown_as_they_are_now(
    scene: Scene, loot: Loot, authorities: tuple[Authority, Authority]
) -> None:
    ca = authorities[0].certificate.read_text()

    def write(authority: Authority, token: str) -> None:
        certificate, key = authority.issue("client")
        files = {"certificate": certificate.read_text(), "key": key.read_text()}
        scene.volume.write(ca=ca, token=token, **files)

    write(authorities[0], FIRST)
    scene.front.show(authorities[0].issue("server"), clients=authorities[0])
    files = {"client-certificate": "certificate", "client-key": "key"}
    scene.start(**{key: f"{scene.volume.folder}/{name}" for key, name in files.items()})
    write(authorities[1], SECOND)
    scene.front.token = SECOND
    scene.front.show(authorities[0].issue("server"), clients=authorities[1])
    loot.add_if(not scene.published(), "a plugin that shows what is not accepted any more")
    loot.add_if(FIRST in scene.front.tokens, "the token that the new one took the place of")


def test_a_lost_server_is_told_and_restarts_nobody_whom_that_would_not_help(
    scene: Scene, loot: Loot, authorities: tuple[Authority, Authority]
) -> None:
    scene.start("-c", IMPATIENT)
    assert soon(lambda: scene.probe("readiness") == "SERVING")
    with scene.front.away():
        unready = soon(lambda: scene.probe("readiness") == "NOT_SERVING")
        loot.add_if(not unready, "a plugin that is ready without an API server")
        restarted = soon(lambda: scene.probe("liveness") != "SERVING", 8.0)
        loot.add_if(restarted, "a restart of each plugin of the cluster, for a server that is away")
    loot.add_if(not soon(lambda: scene.probe("readiness") == "SERVING"), "a plugin that stays unready")


def test_a_server_that_the_plugin_alone_does_not_know_has_it_started_anew(
    scene: Scene, loot: Loot, authorities: tuple[Authority, Authority]
) -> None:
    scene.start("-c", IMPATIENT)
    scene.front.show(authorities[1].issue("server"))
    content = not soon(lambda: scene.probe("liveness") == "NOT_SERVING")
    loot.add_if(content, "a plugin that is alive for ever and knows no API server")
    scene.front.show(authorities[0].issue("server"))
    loot.add_if(not soon(lambda: scene.probe("liveness") == "SERVING"), "a restart where all is well again")


CERTIFICATES_OF_OTHERS = {
    "another address": ("IP:127.0.0.2", 2),
    "a name": ("DNS:localhost", 2),
    "the address as a name": ("DNS:127.0.0.1", 2),
    "every name": ("DNS:*", 2),
    "a wildcard over addresses": ("DNS:*.0.0.1", 2),
    "a common name alone": ("", 2),
    "a certificate that has run out": ("IP:127.0.0.1", -1),
}


@pytest.mark.parametrize("certificate", CERTIFICATES_OF_OTHERS)
def test_a_certificate_for_somebody_else_is_told_no_token(
    scene: Scene, loot: Loot, authorities: tuple[Authority, Authority], certificate: str
) -> None:
    """The authority of the cluster signs certificates of kubelets and others too."""
    names, days = CERTIFICATES_OF_OTHERS[certificate]
    scene.start()
    # The common name is the right address: no client looks at it any more.
    scene.front.show(authorities[0].issue("127.0.0.1", names=names, days=days))
    told = soon(lambda: "CERTIFICATE_VERIFY_FAILED" in scene.machine.log.read_text())
    loot.add_if(not told, "a plugin that says nothing")
    for each in scene.front.tokens:
        loot.add(f"the token {each}")
    scene.front.show(authorities[0].issue("server"))
    loot.add_if(not scene.published(), "a plugin that does not come back")


def test_the_name_that_the_kubeconfig_gives_counts_in_place_of_the_address(
    scene: Scene, loot: Loot, authorities: tuple[Authority, Authority]
) -> None:
    scene.front.show(authorities[0].issue("api", names="DNS:api.internal.example"))
    scene.start(server_name="api.internal.example")
    for names in ("IP:127.0.0.1", "DNS:*.example", "DNS:internal.example"):
        scene.front.show(authorities[0].issue("other", names=names))
        before = len(scene.machine.log.read_text())
        told = soon(
            lambda before=before: "CERTIFICATE_VERIFY_FAILED" in scene.machine.log.read_text()[before:]
        )
        loot.add_if(not told, f"trust in a certificate for {names}")
        for each in scene.front.tokens:
            loot.add(f"the token {each} by a certificate for {names}")
    scene.front.show(authorities[0].issue("api", names="DNS:*.internal.example"))
    loot.add_if(not scene.published(), "a plugin that does not know a wildcard for its server")


def test_a_token_that_has_run_out_is_read_again(scene: Scene, loot: Loot) -> None:
    scene.start()
    claim = scene.machine.allocate(1, "gpu-0")
    # The server takes the old one no more, and the file has it still.
    scene.front.token = SECOND
    told = soon(lambda: "api-unauthorized" in str(scene.machine.prepare(claim).error))
    loot.add_if(not told, "a claim that was read with a token that has run out")
    scene.volume.write(ca=(scene.volume.folder / "ca").read_text(), token=SECOND)
    loot.add_if(not scene.published(), "a plugin that is lost once the new token is in its file")


def test_an_exec_plugin_is_asked_again_when_its_token_has_run_out(scene: Scene, loot: Loot) -> None:
    said = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    # A time long gone, as on a machine whose clock was set back and forth: the server's refusal counts, and no clock.
    status = {"expirationTimestamp": "2001-01-01T00:00:00Z", "token": FIRST}
    answer = scene.volume.folder / "answer"
    ca = (scene.volume.folder / "ca").read_text()
    scene.volume.write(ca=ca, answer=json.dumps({**said, "status": status}))
    runs = scene.volume.folder.parent / "runs"
    script = f"echo run >> {runs}; cat {answer}"
    command = {"apiVersion": said["apiVersion"], "command": "/bin/sh", "args": ["-c", script]}
    scene.start(exec={**command, "interactiveMode": "Never"})
    loot.add_if(len(runs.read_text().splitlines()) != 1, "more runs of the exec plugin than refusals")
    scene.volume.write(ca=ca, answer=json.dumps({**said, "status": {**status, "token": SECOND}}))
    scene.front.token = SECOND
    loot.add_if(not scene.published(), "a plugin that shows a token that has run out")
