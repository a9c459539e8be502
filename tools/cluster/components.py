"""Command lines of the servers that make up a control plane.

Sources of the flags: the servers' own ``--help`` at 1.37, and what hand-made nodes need (no kubelet, no heartbeat).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ETCD = "etcd"
APISERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
ALL = (ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER)

# An API server starts with less of the processors' time where it seldom collects garbage. Not a limit of memory: a server with the
# definitions of all workload kinds holds more than 600 MiB for good, and one limited to that spent two thirds of a core collecting.
_ENVIRONMENT = {APISERVER: {"GOGC": "300"}}

_HOST = "127.0.0.1"
_SERVICES = ipaddress.IPv4Network("10.96.0.0/16")
_SERVICES_OF_ALL = ipaddress.IPv4Network("10.96.0.0/12")
# The port of an API server is the number of its part: 65,536 parts of 16 addresses.
_SERVICES_OF_ONE = 16
_DRA_VERSIONS = ("v1", "v1alpha3", "v1beta1", "v1beta2")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where the servers of one control plane listen and keep their files.

    Args:
        folder: State folder, private to the user.
        ports: TCP port on loopback by server name, plus ``etcd-peer``.
        components: Names of the servers that will run.
        feature_gates: Gate name to on or off, the same for all Kubernetes servers.
        emulated_version: Kubernetes minor to behave like (``"1.34"``), or None for the binary's own.
        serves_dra: Whether resource.k8s.io is served, in every version that the binary has.
        more_apis: Group versions to serve beside those that are served by default.
        nodes: Names of real nodes that will join.
    """

    folder: Path
    ports: Mapping[str, int]
    components: tuple[str, ...] = ALL
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    emulated_version: str | None = None
    serves_dra: bool = True
    more_apis: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """Address of the API server; its certificate is valid for the IP, not for ``localhost``."""
        return f"https://{_HOST}:{self.ports[APISERVER]}"

    @property
    def tokens(self) -> Path:
        """Token file of the API server: ``token,user,uid,"groups"`` per line."""
        return self.folder / "tokens.csv"

    @property
    def service_account_key(self) -> Path:
        """Private key that signs service account tokens."""
        return self.folder / "service-account.key"

    @property
    def ca(self) -> Path:
        """Certificate authority of the API server."""
        return self.folder / "ca.crt"

    def health_url(self, name: str) -> str:
        """Where *name* answers 200 once it works."""
        path = "readyz" if name == APISERVER else "healthz"
        return f"https://{_HOST}:{self.ports[name]}/{path}"

    def metrics_url(self, name: str) -> str:
        """Where a Kubernetes server called *name* tells its metrics."""
        return f"https://{_HOST}:{self.ports[name]}/metrics"

    def serving_certificate(self, name: str) -> Path:
        """File of the certificate that *name* makes for itself."""
        file = "apiserver.crt" if name == APISERVER else f"{name}.crt"
        return self._certificates(name) / file

    def kubeconfig(self, name: str) -> Path:
        """Kubeconfig of the user called *name*."""
        return self.folder / f"{name}.kubeconfig"

    def command(self, name: str, binary: Path) -> list[str]:
        """Argument list that starts *name*."""
        arguments = {
            ETCD: self._etcd,
            APISERVER: self._apiserver,
            CONTROLLER_MANAGER: self._controller_manager,
            SCHEDULER: self._scheduler,
        }[name]()
        return [str(binary), *arguments]

    def environment(self, name: str) -> dict[str, str]:
        """Variables that *name* is started with."""
        return dict(_ENVIRONMENT.get(name, {}))

    def _certificates(self, name: str) -> Path:
        return self.folder / f"{name}-certificates"

    def _etcd(self) -> list[str]:
        client = f"http://{_HOST}:{self.ports[ETCD]}"
        peer = f"http://{_HOST}:{self.ports['etcd-peer']}"
        return [
            "--name=dra-infra",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=dra-infra={peer}",
            "--socket-reuse-port",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _apiserver(self) -> list[str]:
        # TaintNodesByCondition taints every new node, and only the node-lifecycle controller, which is off because it
        # wants heartbeats, would take the taint away.
        disabled = ["TaintNodesByCondition"]
        if CONTROLLER_MANAGER not in self.components:
            # Nobody would create the service account that this plugin asks every pod to have.
            disabled.append("ServiceAccount")
        served = str(self.serves_dra).lower()
        apis = [f"resource.k8s.io/{version}={served}" for version in _DRA_VERSIONS]
        apis += [f"{group_version}=true" for group_version in self.more_apis]
        return [
            f"--etcd-servers=http://{_HOST}:{self.ports[ETCD]}",
            f"--advertise-address={_HOST}",
            *self._serving(APISERVER),
            f"--token-auth-file={self.tokens}",
            # The node authorizer watches ResourceSlices, and without them the server is never ready.
            f"--authorization-mode={'Node,RBAC' if self.serves_dra else 'RBAC'}",
            "--service-account-issuer=https://dra-infra.invalid",
            f"--service-account-key-file={self.service_account_key}",
            f"--service-account-signing-key-file={self.service_account_key}",
            f"--service-cluster-ip-range={self._services}",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            # Otherwise the names of nodes are looked up in DNS.
            "--kubelet-preferred-address-types=InternalIP",
            f"--disable-admission-plugins={','.join(disabled)}",
            # Real kubelets are held to their own node; hand-made ones have no user to be held.
            *(["--enable-admission-plugins=NodeRestriction"] if self.nodes else []),
            f"--runtime-config={','.join(apis)}",
            *self._versions(),
        ]

    @property
    def _services(self) -> ipaddress.IPv4Network:
        """Addresses of services. Real nodes of several clusters on one machine need different ones."""
        if not self.nodes:
            return _SERVICES
        return ipaddress.IPv4Network(
            (int(_SERVICES_OF_ALL[0]) + _SERVICES_OF_ONE * self.ports[APISERVER], 28)
        )

    def _controller_manager(self) -> list[str]:
        kubeconfig = self.kubeconfig(CONTROLLER_MANAGER)
        return [
            f"--kubeconfig={kubeconfig}",
            # Without them nobody may read its metrics.
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            *self._serving(CONTROLLER_MANAGER),
            f"--service-account-private-key-file={self.service_account_key}",
            f"--root-ca-file={self.ca}",
            "--controllers=*,-node-lifecycle-controller",
            *self._client_of_one_server(),
            *self._versions(),
        ]

    def _scheduler(self) -> list[str]:
        kubeconfig = self.kubeconfig(SCHEDULER)
        return [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            *self._serving(SCHEDULER),
            *self._client_of_one_server(),
            *self._versions(),
        ]

    def _serving(self, name: str) -> list[str]:
        return [
            f"--bind-address={_HOST}",
            f"--secure-port={self.ports[name]}",
            "--permit-port-sharing",
            f"--cert-dir={self._certificates(name)}",
        ]

    @staticmethod
    def _client_of_one_server() -> list[str]:
        # The default of 20 requests a second throttles pods with claim templates to ten a second.
        return ["--leader-elect=false", "--kube-api-qps=500", "--kube-api-burst=1000"]

    def _versions(self) -> list[str]:
        flags = []
        if self.feature_gates:
            gates = (f"{gate}={str(on).lower()}" for gate, on in sorted(self.feature_gates.items()))
            flags.append(f"--feature-gates={','.join(gates)}")
        if self.emulated_version is not None:
            flags.append(f"--emulated-version=kube={self.emulated_version}")
        return flags
