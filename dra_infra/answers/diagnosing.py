"""The answer of `dra-infra doctor`: what is wrong with devices in a live cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dra_infra.client.kubeconfig import REQUEST_TIMEOUT
from dra_infra.client.refusals import nothing_seen
from dra_infra.cluster.doctor import Diagnosis
from dra_infra.cluster.doctor import diagnose as diagnose_evidence
from dra_infra.cluster.evidence import gather
from dra_infra.cluster.reading import open_reader


def diagnose(
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    request_timeout: float = REQUEST_TIMEOUT,
    driver: str = "",
    tell: Callable[[str], None] = lambda _: None,
) -> Diagnosis:
    """Look at a cluster once, and return what is wrong with its API, gates, driver, classes, pools, nodes and claims.

    Args:
        kubeconfig: The kubeconfig; None takes the one that kubectl would take.
        context: Its context; None takes the current one.
        request_timeout: Seconds of silence after which a request is given up.
        driver: The only DRA driver to look at, such as `gpu.nvidia.com`; empty for all.
        tell: Called with what is being read, for a progress line.

    Raises:
        ClusterError: When nothing can be looked at.
    """
    evidence = gather(open_reader(kubeconfig, context, request_timeout=request_timeout, tell=tell))
    if not evidence.objects and evidence.problems:
        raise nothing_seen(evidence.problems)
    return diagnose_evidence(evidence, driver=driver)
