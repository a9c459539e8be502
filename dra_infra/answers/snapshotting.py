"""The answer of `dra-infra snapshot`: what a live cluster holds, as one text."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from dra_infra.client.kubeconfig import REQUEST_TIMEOUT
from dra_infra.cluster.capture import Capture, capture
from dra_infra.cluster.reading import open_reader
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.release import VERSION


def take_snapshot(
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    request_timeout: float = REQUEST_TIMEOUT,
    namespaces: Sequence[str] = (),
    tell: Callable[[str], None] = lambda _: None,
) -> Capture:
    """Read a cluster once, and return its nodes, devices, claims and what runs there, without secrets.

    Args:
        kubeconfig: The kubeconfig; None takes the one that kubectl would take.
        context: Its context; None takes the current one.
        request_timeout: Seconds of silence after which a request is given up.
        namespaces: Namespaces to read; empty for all.
        tell: Called with what is being read, for a progress line.

    Raises:
        ClusterError: When nothing can be read.
    """
    reader = open_reader(
        kubeconfig, context, namespaces=namespaces, request_timeout=request_timeout, tell=tell
    )
    mask = report_mask(secret_texts(os.environ))
    return capture(reader, mask=mask, made_by=f"dra-infra {VERSION}", tell=tell)
