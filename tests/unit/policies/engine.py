"""The engine's side of the policy pack, in the test's own process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format, struct_pb2
from pulumi.runtime.proto import analyzer_pb2

from dra_infra.policies.analyzer import Analyzer

LEVELS = {
    "advisory": analyzer_pb2.ADVISORY,
    "mandatory": analyzer_pb2.MANDATORY,
    "remediate": analyzer_pb2.REMEDIATE,
    "disabled": analyzer_pb2.DISABLED,
}
NAMES = {number: name for name, number in LEVELS.items()}


@dataclass
class Engine:
    """Sends objects to a pack, as the engine does in a preview."""

    analyzer: Analyzer = field(default_factory=Analyzer)
    urns: list[str] = field(default_factory=list)

    def configure(
        self, config: Mapping[str, Any], stack: Mapping[str, str] | None = None, secret: Sequence[str] = ()
    ) -> None:
        """Send the settings of the stack and the configuration of the pack, which the engine has completed with the defaults."""
        settings = analyzer_pb2.AnalyzerStackConfigureRequest(
            stack="dev", project="project", config=stack or {}, config_secret_keys=secret
        )
        self.analyzer.ConfigureStack(settings, None)
        request = analyzer_pb2.ConfigureAnalyzerRequest()
        for name, value in config.items():
            given = {"enforcementLevel": value} if isinstance(value, str) else dict(value)
            level = given.pop("enforcementLevel", "mandatory")
            request.policyConfig[name].enforcementLevel = LEVELS[level]
            request.policyConfig[name].properties.update(given)
        self.analyzer.Configure(request, None)

    def send(
        self, manifest: Mapping[str, Any], *, type_: str = "", parent: str = "", name: str = ""
    ) -> list[str]:
        """Send an object, remediate it first, and return the codes that were remedied."""
        version = manifest.get("apiVersion", "v1")
        type_ = type_ or f"kubernetes:{version if '/' in version else f'core/{version}'}:{manifest['kind']}"
        name = name or manifest["metadata"]["name"]
        properties = struct_pb2.Struct()
        properties.update(manifest)
        urn = f"urn:pulumi:dev::project::{type_}::{name}"
        request = analyzer_pb2.AnalyzeRequest(type=type_, urn=urn, name=name, properties=properties)
        request.options.parent = parent
        remedied = self.analyzer.Remediate(request, None).remediations
        for each in remedied:
            request.properties.CopyFrom(each.properties)
        self.last = json_format.MessageToDict(request.properties)
        self.urns.append(urn)
        assert not self.analyzer.Analyze(request, None).diagnostics
        return [each.policyName for each in remedied]

    def findings(self) -> list[tuple[str, str, str]]:
        """Return level, policy and text of each violation."""
        request = analyzer_pb2.AnalyzeStackRequest()
        for urn in self.urns:
            request.resources.add(urn=urn)
        found = self.analyzer.AnalyzeStack(request, None).diagnostics
        return [(NAMES[each.enforcementLevel], each.policyName, each.message) for each in found]

    def urns_found(self) -> list[str]:
        """Return the resource of each violation."""
        request = analyzer_pb2.AnalyzeStackRequest()
        for urn in self.urns:
            request.resources.add(urn=urn)
        return [each.urn for each in self.analyzer.AnalyzeStack(request, None).diagnostics]
