"""The resource `kubernetes:helm.sh/v3:Release`: what the engine asks about a Helm release."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Final, NoReturn

import grpc
from pulumi.runtime.proto import provider_pb2

from tools.kubernetes_provider import helm_release, values
from tools.kubernetes_provider.answers import reporting
from tools.kubernetes_provider.api_server import RefusedError
from tools.kubernetes_provider.checks import NameSource
from tools.kubernetes_provider.cluster_session import ClusterSession
from tools.kubernetes_provider.comparison import describe
from tools.kubernetes_provider.engine_log import EngineLog
from tools.kubernetes_provider.failures import abort_partially
from tools.kubernetes_provider.helm_charts import locate, read_metadata
from tools.kubernetes_provider.helm_command import HelmError, HelmHome
from tools.kubernetes_provider.helm_release import LiveRelease
from tools.kubernetes_provider.helm_values import ValuesFileError, merge
from tools.kubernetes_provider.kubeconfig import UnreachableError
from tools.kubernetes_provider.manifests import describe_changes, list_names
from tools.kubernetes_provider.release_inputs import (
    DEPRECATED,
    KEYRING,
    REFUSED,
    complete,
    find_release_changes,
)
from tools.kubernetes_provider.resource_types import parse_id, random_name
from tools.kubernetes_provider.values import UNKNOWN, Object

TYPE: Final = "kubernetes:helm.sh/v3:Release"

Response = provider_pb2.DiffResponse


class ReleaseResource:
    """Answers for the releases of one cluster."""

    def __init__(self, session: ClusterSession, log: EngineLog) -> None:
        self._session = session
        self._log = log

    def check(self, request: provider_pb2.CheckRequest) -> provider_pb2.CheckResponse:
        """Complete the inputs; the chart is looked at when all of them are known, and its version written down."""
        inputs = values.decode(request.news)
        old = values.reveal(values.decode(request.olds))
        failures = [
            provider_pb2.CheckFailure(property=name, reason=reason)
            for name, reason in REFUSED.items()
            if values.reveal(inputs.get(name))
        ]
        for name, warning in DEPRECATED.items():
            if values.reveal(inputs.get(name)) is True:
                self._log.warn(request.urn, warning)
        source = NameSource.of(request)
        defaults = {
            "name": old.get("name") or random_name(source.resource, source.seed),
            "namespace": self._session.default_namespace,
            "keyring": os.path.expandvars(KEYRING),
        }
        try:
            completed = complete(inputs, version="", **defaults)
        except ValuesFileError as error:
            failures.append(provider_pb2.CheckFailure(property="valueYamlFiles", reason=str(error)))
            return provider_pb2.CheckResponse(inputs=request.news, failures=failures)
        if not values.has_unknown(inputs):
            try:
                with self._session.helm.home() as home:
                    completed["version"] = read_metadata(home, locate(completed))["version"]
            except HelmError as error:
                reason = f"chart {values.reveal(completed).get('chart')}: {error}"
                reason += "; check the chart name and repository configuration."
                failures.append(provider_pb2.CheckFailure(property="chart", reason=reason))
        return provider_pb2.CheckResponse(inputs=values.encode(completed), failures=failures)

    def diff(self, request: provider_pb2.DiffRequest) -> provider_pb2.DiffResponse:
        """Compare two deployments of a release; another name or namespace is another release."""
        changes = find_release_changes(
            values.decode(request.old_inputs), values.decode(request.olds), values.decode(request.news)
        )
        return provider_pb2.DiffResponse(
            changes=Response.DIFF_SOME if changes else Response.DIFF_NONE,
            replaces=[change.path for change in changes if change.replaces],
            detailedDiff={change.path: describe(change) for change in changes},
            hasDetailedDiff=True,
        )

    def create(
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        """Install a release; a preview renders it."""
        inputs = values.decode(request.properties)
        if request.preview:
            self._show(request.urn, inputs)
            return provider_pb2.CreateResponse(properties=values.encode(_preview_outputs(inputs)))
        live = self._deploy(inputs, context, upgrade=False, seconds=request.timeout)
        properties = values.encode(_outputs(inputs, live))
        return provider_pb2.CreateResponse(id=_id(inputs), properties=properties)

    def update(
        self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        """Upgrade a release; a preview renders it and says which objects differ."""
        inputs = values.decode(request.news)
        if request.preview:
            self._show(request.urn, inputs)
            return provider_pb2.UpdateResponse(properties=values.encode(_preview_outputs(inputs)))
        live = self._deploy(inputs, context, upgrade=True, seconds=request.timeout)
        return provider_pb2.UpdateResponse(properties=values.encode(_outputs(inputs, live)))

    def read(
        self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ReadResponse:
        """Look a release up; one without inputs is imported, under its chart's name alone."""
        if self._session.unreachable and self._session.options.delete_unreachable:
            return provider_pb2.ReadResponse()
        inputs = values.decode(request.inputs)
        with (
            reporting(context, f"resource {request.urn} was not read"),
            self._reach() as home,
        ):
            live = helm_release.find(home, *parse_id(request.id))
        if live is None:
            return provider_pb2.ReadResponse()
        found = inputs or complete(
            {"name": live.name, "chart": live.chart, "values": live.values},
            name=live.name,
            namespace=live.namespace,
            version=live.version,
            keyring="",
        )
        return provider_pb2.ReadResponse(
            id=request.id, properties=values.encode(_outputs(found, live)), inputs=values.encode(found)
        )

    def delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> None:
        """Uninstall a release; CRDs of the `crds/` folder stay, as Helm leaves them."""
        if self._session.unreachable and self._session.options.delete_unreachable:
            return
        stored = values.decode(request.properties)
        namespace, name = parse_id(request.id)
        known = {**values.reveal(stored), "name": name, "namespace": namespace}
        what = f"Helm release {request.id} was not uninstalled"
        with reporting(context, what), self._reach() as home:
            helm_release.uninstall(home, known, seconds=request.timeout)

    def _reach(self) -> AbstractContextManager[HelmHome]:
        if self._session.unreachable:
            raise UnreachableError(
                f"configured Kubernetes cluster is unreachable: {self._session.unreachable}"
            )
        return self._session.helm.home()

    def _deploy(
        self,
        inputs: Object,
        context: grpc.ServicerContext,
        *,
        upgrade: bool,
        seconds: float,
    ) -> LiveRelease:
        known = values.reveal(inputs)
        name = _id(inputs)
        done = "updated" if upgrade else "created"
        what = f"Helm release {name} of chart {known['chart']} {known.get('version', '')}"
        deploy = helm_release.upgrade if upgrade else helm_release.install
        with reporting(context, f"{what} was not {done}"), self._reach() as home:
            before = helm_release.find(home, known["namespace"], known["name"])
            try:
                source = locate(known)
                source.enter(home)
                deploy(home, source, known, seconds=seconds)
            except HelmError as error:
                live = self._find_failed(home, known, before)
                if live is None:
                    raise
                message = (
                    f"{what} was {done}, but failed to become available: {error}\n"
                    f"It has the status {live.status}; look at it with `helm status`, correct it, then retry."
                )
                _abort_with_state(context, message, inputs, live)
            found = helm_release.find(home, known["namespace"], known["name"])
            if found is None:
                raise HelmError("the release is gone")
        return found

    @staticmethod
    def _find_failed(home: HelmHome, known: Object, before: LiveRelease | None) -> LiveRelease | None:
        """Return the release that a failed command has left, None where it has left none of its own."""
        after = helm_release.find(home, known["namespace"], known["name"])
        if after is None or (before is not None and before.revision == after.revision):
            return None
        return after

    def _show(self, urn: str, inputs: Object) -> None:
        """Render a release as far as that is possible, and tell the user which objects it has.

        As with the vendor's provider, a preview does not fail: definitions and namespaces that a chart needs may
        come from the same program.
        """
        if values.has_unknown(inputs) or self._session.unreachable:
            return
        known = values.reveal(inputs)
        what = f"chart {known['chart']} {known.get('version', '')}"
        try:
            with self._session.helm.home() as home:
                live = helm_release.find(home, known["namespace"], known["name"])
                if live is not None and known.get("reuseValues"):
                    known = {**known, "values": merge(live.values, known.get("values") or {})}
                source = locate(known)
                source.enter(home)
                capabilities = self._session.read_capabilities()
                rendered = helm_release.render(home, source, known, capabilities, upgrade=live is not None)
        except (HelmError, RefusedError, UnreachableError) as error:
            text = f"Helm release {_id(inputs)}: {what} does not render: {error}"
            self._log.warn(urn, text)
            return
        changes = describe_changes(live.manifest if live else "", rendered)
        self._log.info(urn, f"Helm release {_id(inputs)}, objects of {what}:\n{changes}")


def _id(inputs: Object) -> str:
    known = values.reveal(inputs)
    return f"{known['namespace']}/{known['name']}" if known.get("namespace") else str(known["name"])


def _outputs(inputs: Object, live: LiveRelease) -> Object:
    """Return the outputs of a release: its inputs as the cluster has them, secret where they are, and more."""
    seen: Object = {
        **values.reveal(inputs),
        "name": live.name,
        "namespace": live.namespace,
        "version": live.version,
        "resourceNames": list_names(live.manifest),
        "status": {
            "appVersion": live.app_version,
            "chart": live.chart,
            "name": live.name,
            "namespace": live.namespace,
            "revision": live.revision,
            "status": live.status,
            "version": live.version,
        },
    }
    own = seen.get("values")
    if own or live.values:
        seen["values"] = merge(own or {}, live.values)
    return values.mark_secrets(seen, inputs)


def _preview_outputs(inputs: Object) -> Object:
    return {**inputs, "resourceNames": UNKNOWN, "status": UNKNOWN}


def _abort_with_state(
    context: grpc.ServicerContext, message: str, inputs: Object, live: LiveRelease
) -> NoReturn:
    abort_partially(
        context,
        message,
        resource_id=_id(inputs),
        properties=_outputs(inputs, live),
        inputs=inputs,
        reasons=(),
    )
