"""Two policies in the engine's own protocol for packs.

The library that packs are usually written with is not among the pinned requirements; it speaks this protocol too
(proto/pulumi/analyzer.proto of pulumi/pulumi).
"""

from __future__ import annotations

from concurrent import futures
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2

PACK, VERSION = "team", "1.0.0"
POLICIES = {
    "no-latest": (analyzer_pb2.MANDATORY, "images need a tag other than latest"),
    "has-owner": (analyzer_pb2.ADVISORY, "the label owner is missing"),
}


class Analyzer(analyzer_pb2_grpc.AnalyzerServicer):
    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: N802  (named by the protocol)
        return analyzer_pb2.AnalyzerHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802  (named by the protocol)
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetAnalyzerInfo(self, request: Any, context: Any) -> Any:  # noqa: N802  (named by the protocol)
        policies = [
            analyzer_pb2.PolicyInfo(name=name, description=text, enforcementLevel=level)
            for name, (level, text) in POLICIES.items()
        ]
        return analyzer_pb2.AnalyzerInfo(name=PACK, displayName=PACK, version=VERSION, policies=policies)

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802  (named by the protocol)
        return empty_pb2.Empty()

    def ConfigureStack(self, request: Any, context: Any) -> Any:  # noqa: N802  (named by the protocol)
        return analyzer_pb2.AnalyzerStackConfigureResponse()

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802  (named by the protocol)
        return empty_pb2.Empty()

    def Remediate(self, request: Any, context: Any) -> Any:  # noqa: N802  (named by the protocol)
        return analyzer_pb2.RemediateResponse()

    def AnalyzeStack(self, request: Any, context: Any) -> Any:  # noqa: N802  (named by the protocol)
        return analyzer_pb2.AnalyzeResponse()

    def Analyze(self, request: Any, context: Any) -> Any:  # noqa: N802  (named by the protocol)
        broken = []
        if request.type == "kubernetes:apps/v1:Deployment":
            broken = ["has-owner", *(["no-latest"] if ":latest" in str(request.properties) else [])]
        return analyzer_pb2.AnalyzeResponse(
            diagnostics=[
                analyzer_pb2.AnalyzeDiagnostic(
                    policyName=name,
                    policyPackName=PACK,
                    policyPackVersion=VERSION,
                    message=POLICIES[name][1],
                    enforcementLevel=POLICIES[name][0],
                    urn=request.urn,
                )
                for name in broken
            ]
        )


server = grpc.server(futures.ThreadPoolExecutor(4))
analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Analyzer(), server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
server.wait_for_termination()
