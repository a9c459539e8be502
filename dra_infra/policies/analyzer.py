"""What the engine calls: the service of an analyzer, as `pulumi/analyzer.proto` describes it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2

from dra_infra.answers.enforcing import enforce, read_enforced_cluster
from dra_infra.errors import Problem, ProblemsError
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import SecretMask, secret_texts
from dra_infra.policies.pack import PACK, REMEDIED, SETTINGS, PolicyConfig, level_of, policies
from dra_infra.policies.remedies import remedies
from dra_infra.policies.resources import Resource, names_of_objects, read_program
from dra_infra.program.project import gates_of, kubernetes_of
from dra_infra.release import VERSION
from dra_infra.target import ClusterTarget

_LEVELS: Final = {
    "advisory": analyzer_pb2.ADVISORY,
    "disabled": analyzer_pb2.DISABLED,
    "mandatory": analyzer_pb2.MANDATORY,
    "remediate": analyzer_pb2.REMEDIATE,
}
_NAMES: Final = {number: name for name, number in _LEVELS.items()}

_TEXT: Final = {"type": "string", "enum": ["advisory", "mandatory"]}


class Analyzer(analyzer_pb2_grpc.AnalyzerServicer):
    """Takes down the inputs of each resource, and judges them together when the run has all."""

    def __init__(self) -> None:
        self._resources: dict[str, Resource] = {}
        self._configured: dict[str, PolicyConfig] = {}
        self._config: dict[str, str] = {}
        self._secrets: frozenset[str] = frozenset()
        self._project = ""
        self._stack = ""

    def Handshake(self, _request: Any, _context: Any) -> analyzer_pb2.AnalyzerHandshakeResponse:  # noqa: N802
        """Answer the engine."""
        return analyzer_pb2.AnalyzerHandshakeResponse()

    def GetPluginInfo(self, _request: Any, _context: Any) -> plugin_pb2.PluginInfo:  # noqa: N802
        """Return the version of dra-infra."""
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetAnalyzerInfo(self, _request: Any, _context: Any) -> analyzer_pb2.AnalyzerInfo:  # noqa: N802
        """Return the policies, each with what its configuration may say."""
        info = analyzer_pb2.AnalyzerInfo(name=PACK, version=VERSION, supportsConfig=True)
        for name, meaning in policies().items():
            policy = info.policies.add(
                name=name,
                description=meaning,
                enforcementLevel=analyzer_pb2.MANDATORY,
                policy_type=analyzer_pb2.POLICY_TYPE_STACK,
            )
            if name != SETTINGS:
                policy.configSchema.properties.update({"warnings": _TEXT})
        return info

    def ConfigureStack(  # noqa: N802
        self, request: analyzer_pb2.AnalyzerStackConfigureRequest, _context: Any
    ) -> analyzer_pb2.AnalyzerStackConfigureResponse:
        """Take the settings of the stack."""
        self._project, self._stack = request.project, request.stack
        self._config = dict(request.config)
        self._secrets = frozenset(request.config_secret_keys)
        return analyzer_pb2.AnalyzerStackConfigureResponse()

    def Configure(self, request: analyzer_pb2.ConfigureAnalyzerRequest, _context: Any) -> empty_pb2.Empty:  # noqa: N802
        """Take the configuration of the pack."""
        self._configured = {
            name: PolicyConfig(
                level=_NAMES.get(config.enforcementLevel, "mandatory"),  # type: ignore[arg-type]
                properties=json_format.MessageToDict(config.properties),
            )
            for name, config in request.policyConfig.items()
        }
        return empty_pb2.Empty()

    def Remediate(  # noqa: N802
        self, request: analyzer_pb2.AnalyzeRequest, _context: Any
    ) -> analyzer_pb2.RemediateResponse:
        """Return the inputs of an object as hints say it, for the codes that are to be remedied."""
        response = analyzer_pb2.RemediateResponse()
        codes = [code for code in REMEDIED if self._configured.get(code, PolicyConfig()).level == "remediate"]
        resource = Resource.read(request)
        if not codes or not resource.is_object:
            return response
        before = resource.manifest
        changed, remedied = remedies(before, self._target(), codes)
        if not remedied:
            return response
        meanings = policies()
        inputs = struct_pb2.Struct()
        inputs.CopyFrom(request.properties)
        inputs.update({name: changed[name] for name in changed if changed[name] != before.get(name)})
        for code in dict.fromkeys(each.code for each in remedied):
            response.remediations.add(
                policyName=code,
                policyPackName=PACK,
                policyPackVersion=VERSION,
                description=meanings[code],
                properties=inputs,
            )
        return response

    def Analyze(self, request: analyzer_pb2.AnalyzeRequest, _context: Any) -> analyzer_pb2.AnalyzeResponse:  # noqa: N802
        """Take down a resource; objects are judged together."""
        resource = Resource.read(request)
        self._resources[resource.urn] = resource
        return analyzer_pb2.AnalyzeResponse()

    def AnalyzeStack(  # noqa: N802
        self, request: analyzer_pb2.AnalyzeStackRequest, _context: Any
    ) -> analyzer_pb2.AnalyzeResponse:
        """Report every problem of the stack, at the resource that it is about."""
        mask = self._mask()
        meanings = policies()
        response = analyzer_pb2.AnalyzeResponse()
        for problem, urn in self._judge([each.urn for each in request.resources]):
            policy = problem.code if urn is not None else SETTINGS
            level = level_of(problem, self._configured) if urn is not None else "mandatory"
            if level == "disabled":
                continue
            response.diagnostics.add(
                policyName=policy,
                policyPackName=PACK,
                policyPackVersion=VERSION,
                description=meanings.get(policy, policy),
                message=str(mask.problem(problem)),
                urn=urn or "",
                enforcementLevel=_LEVELS[level],
            )
        return response

    def Cancel(self, _request: Any, _context: Any) -> empty_pb2.Empty:  # noqa: N802
        """Nothing runs between calls."""
        return empty_pb2.Empty()

    def _judge(self, urns: list[str]) -> list[tuple[Problem, str | None]]:
        """Return problems with the resource of each: empty for one of the whole stack, None for one of the settings."""
        properties = self._configured.get(SETTINGS, PolicyConfig()).properties
        try:
            cluster = read_enforced_cluster(self._config, properties)
        except ProblemsError as error:
            return [(_with_whole_path(problem), None) for problem in error.problems]
        program = read_program(
            self._resources, urns, cluster.config, project=self._project, stack=self._stack
        )
        names = names_of_objects(program)
        return [(problem, _urn_of(problem, names)) for problem in enforce(program, cluster)]

    def _target(self) -> ClusterTarget:
        """Return the cluster of remedies; wrong settings are reported at the end of the run."""
        properties = self._configured.get(SETTINGS, PolicyConfig()).properties
        try:
            config = read_enforced_cluster(self._config, {**properties, "fleet": "", "snapshot": ""}).config
        except ProblemsError:
            return ClusterTarget()
        return ClusterTarget(kubernetes=kubernetes_of(config), gates=gates_of(config))

    def _mask(self) -> SecretMask:
        """Return what takes secrets out of messages: those of the stack's settings and of the environment."""
        settings = (self._config[key] for key in self._secrets if key in self._config)
        return report_mask([*settings, *secret_texts(os.environ)])


def _with_whole_path(problem: Problem) -> Problem:
    """Return a problem of a file with the hint that the pack runs in its own folder, not in that of the project."""
    if problem.code != "fleet-unreadable" or Path(problem.path).is_absolute():
        return problem
    return replace(
        problem, hint=f"{problem.hint}; write the whole path of a file: the pack runs in a folder of its own"
    )


def _urn_of(problem: Problem, names: Mapping[str, str]) -> str:
    """Return the URN of the object that a path begins with; empty where it is about none."""
    ends = ("", ".", "[", "/", " ")
    names_in_path = [
        name for name in names if problem.path.startswith(name) and problem.path[len(name) :][:1] in ends
    ]
    return names[max(names_in_path, key=len)] if names_in_path else ""
