"""The real controllers of LeaderWorkerSet, JobSet, TrainJob and Kueue beside a control plane, with their webhooks on loopback."""

from __future__ import annotations

import base64
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.support.components.objects import define
from tools import workload_crds
from tools.cluster import Api, ControlPlane
from tools.cluster.connection import tls_context
from tools.cluster.supervision import Supervision

_PATIENCE = 60.0
_PORT = 9443
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


@dataclass(frozen=True)
class Controller:
    """One controller.

    Args:
        binary: As `make tools` names it.
        module: Go module of its definitions and webhooks.
        configuration: apiVersion of the file that configures it.
        certificates: The part of that file about certificates that it makes itself.
        below_tmp: Whether it looks for its certificate below /tmp where it is not told otherwise.
        settings: More of that file.
        below_etc: Folder below /etc in which it looks for a certificate, and nowhere else.
    """

    binary: str
    module: str
    configuration: str
    certificates: str = "internalCertManagement"
    below_tmp: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    below_etc: str | None = None


LWS: Final = Controller("lws-controller", "sigs.k8s.io/lws", "config.lws.x-k8s.io/v1alpha1", below_tmp=True)
JOBSET: Final = Controller("jobset-controller", "sigs.k8s.io/jobset", "config.jobset.x-k8s.io/v1alpha1")
TRAINER: Final = Controller(
    "trainer-controller-manager",
    "github.com/kubeflow/trainer/v2",
    "config.trainer.kubeflow.org/v1alpha1",
    certificates="certManagement",
)


def kueue(mappings: Sequence[Mapping[str, Any]]) -> Controller:
    """The controller of Kueue, which counts devices by *mappings* and queues Jobs; of its gates, also that of shares of devices."""
    return Controller(
        "kueue",
        "sigs.k8s.io/kueue",
        "config.kueue.x-k8s.io/v1beta2",
        below_tmp=True,
        settings={
            "integrations": {"frameworks": ["batch/job"]},
            "resources": {"deviceClassMappings": list(mappings)},
            # Visibility is an API server of its own, with a port that is always the same.
            "featureGates": {"KueueDRAIntegrationConsumableCapacity": True, "VisibilityOnDemand": False},
        },
        # For metrics, which are not served: it reads the certificate all the same.
        below_etc="kueue/metrics/certs",
    )


@contextmanager
def running_controllers(
    plane: ControlPlane,
    api: Api,
    binaries: Callable[[str], Path],
    folder: Path,
    controllers: Sequence[Controller] = (LWS, JOBSET, TRAINER),
) -> Iterator[None]:
    """Install the definitions of all, run them as the administrator, and send them what their webhooks are for."""
    supervision = Supervision()
    try:
        for controller in controllers:
            _start(controller, plane, api, binaries(controller.binary), folder, supervision)
        yield
    finally:
        supervision.stop()


def _start(
    controller: Controller,
    plane: ControlPlane,
    api: Api,
    binary: Path,
    folder: Path,
    supervision: Supervision,
) -> None:
    [module] = [each for each in workload_crds.load() if each.path == controller.module]
    define(api, module.definitions())
    # An address of its own: ports of 127.0.0.1 are given to whoever asks next, and a controller shares none.
    host = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    home = folder / controller.binary
    # Where a controller looks that is not told: below its folder for temporary files.
    certificate = _make_certificate(home / "k8s-webhook-server" / "serving-certs", host)
    webhook = {"host": host, "port": _PORT}
    if controller.below_tmp:
        webhook["certDir"] = str(certificate.parent)
    configuration = {
        "apiVersion": controller.configuration,
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        controller.certificates: {"enable": False},
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": webhook,
        **controller.settings,
    }
    file = home / "configuration.yaml"
    file.write_text(yaml.safe_dump(configuration))
    command = [str(binary), f"--config={file}"]
    if controller.below_etc is not None:
        shutil.copytree(certificate.parent, home / "etc" / controller.below_etc)
        # The machine's /etc stays as it is: this one is laid over it, and only the controller sees it.
        lay_over = 'mount -t overlay overlay -o "lowerdir=$0:/etc" /etc && exec "$@"'
        over = ["unshare", "--map-root-user", "--mount", "sh", "-c", lay_over, str(home / "etc")]
        command = [*over, *command]
    supervision.start(
        controller.binary,
        command,
        environment={"KUBECONFIG": str(plane.kubeconfig), "TMPDIR": str(home)},
    )
    _wait_until_served(host, certificate.read_text(), supervision)
    for webhooks in module.webhooks():
        api.create(_on_loopback(webhooks, controller.binary, host, certificate.read_bytes()))


def _on_loopback(
    webhooks: workload_crds.Manifest, name: str, host: str, authority: bytes
) -> workload_crds.Manifest:
    """The configuration of the project, with an address in the place of a service: there is no network of pods."""
    bundle = base64.b64encode(authority).decode()
    return {
        **webhooks,
        "metadata": {"name": name},
        "webhooks": [
            {
                **each,
                "clientConfig": {
                    "url": f"https://{host}:{_PORT}{each['clientConfig']['service']['path']}",
                    "caBundle": bundle,
                },
            }
            for each in webhooks["webhooks"]
        ],
    }


def _make_certificate(folder: Path, host: str) -> Path:
    """A certificate for *host* that is its own authority, beside its key, under the names that the controllers ask for."""
    folder.mkdir(parents=True)
    certificate = folder / "tls.crt"
    key = folder / "tls.key"
    command = [
        "openssl",
        "req",
        "-x509",
        *_CURVE,
        "-subj",
        "/CN=webhooks",
        "-addext",
        f"subjectAltName=IP:{host}",
    ]
    command += ["-keyout", str(key), "-out", str(certificate)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"openssl: {done.stderr.strip()}", pytrace=False)
    return certificate


def _wait_until_served(host: str, authority: str, supervision: Supervision) -> None:
    deadline = time.monotonic() + _PATIENCE
    with httpx.Client(verify=tls_context(authority), trust_env=False, timeout=5.0) as client:
        while time.monotonic() < deadline:
            with suppress(httpx.TransportError):
                # Any answer will do: the webhooks are served from then on.
                client.get(f"https://{host}:{_PORT}/")
                return
            supervision.pause(0.05)
    pytest.fail(f"a controller serves no webhooks after {_PATIENCE:g} s", pytrace=False)
