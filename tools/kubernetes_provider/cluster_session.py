"""The provider's side of a cluster: configured, perhaps unreachable, and cancelled at most once."""

from __future__ import annotations

import threading

from tools.kubernetes_provider.api_server import ApiServer, Capabilities, NotServedError, RefusedError
from tools.kubernetes_provider.helm_command import Helm
from tools.kubernetes_provider.kubeconfig import UnreachableError, flatten, load_access
from tools.kubernetes_provider.operations import Operations
from tools.kubernetes_provider.options import Options
from tools.kubernetes_provider.resource_types import GroupVersionKind, is_known_without_namespace


class ClusterSession:
    """Says whether there is a cluster and does things to its objects.

    Attributes:
        options: Of the provider.
        unreachable: Why there is no cluster; empty when there is one.
        default_namespace: Of objects that name none; empty where no kubeconfig can be read.
        helm: Acts on the same cluster; where there is none, it can still look at charts.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.unreachable = ""
        self.default_namespace = ""
        self._cancelled = threading.Event()
        self._server: ApiServer | None = None
        self.helm = Helm("")
        try:
            access = load_access(
                options.kubeconfig,
                context=options.context,
                cluster=options.cluster,
                namespace=options.namespace,
            )
            self.default_namespace = access.namespace
            server = ApiServer(access, timeout=options.request_seconds)
            server.check()
            helm = Helm(flatten(options.kubeconfig, context=options.context, cluster=options.cluster))
        except UnreachableError as reason:
            # A preview needs no cluster, so this is no error yet.
            self.unreachable = str(reason)
            return
        self._server = server
        self.helm = helm

    def cancel(self) -> None:
        """Make everything that waits stop waiting."""
        self._cancelled.set()
        self.helm.stop()

    def read_capabilities(self) -> Capabilities:
        """Return what charts may ask about the cluster.

        Raises:
            UnreachableError: There is no cluster.
            RefusedError: It does not tell.
        """
        if self._server is None:
            raise UnreachableError(f"configured Kubernetes cluster is unreachable: {self.unreachable}")
        return self._server.read_capabilities()

    def operations(self) -> Operations:
        """Return what can be done to objects.

        Raises:
            UnreachableError: There is no cluster to do it to.
        """
        if self._server is None:
            raise UnreachableError(f"configured Kubernetes cluster is unreachable: {self.unreachable}")
        return Operations(self._server, force=self.options.force_patches, cancelled=self._cancelled)

    def is_namespaced(self, kind: GroupVersionKind) -> bool:
        """Tell whether objects of *kind* have a namespace; where no server says so, all but a few are taken to have one."""
        if self._server is None:
            return not is_known_without_namespace(kind)
        try:
            return self._server.find_resource(kind).namespaced
        except (NotServedError, RefusedError, UnreachableError):
            return True

    def find_default_namespace(self, kind: GroupVersionKind) -> str:
        """Return the namespace of an object of *kind* that names none, empty for none."""
        return self.default_namespace if self.is_namespaced(kind) else ""
