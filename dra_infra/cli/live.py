"""The cluster that `--kubeconfig` and `--context` mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from dra_infra.cluster.kubeconfig import find_account
from dra_infra.cluster.reading import Reader
from dra_infra.cluster.session import Session


def open_reader(
    kubeconfig: Path | None,
    context: str | None,
    *,
    namespaces: Sequence[str] = (),
    tell: Callable[[str], None] = lambda _text: None,
) -> Reader:
    """What lists the cluster's objects.

    Args:
        kubeconfig: File; else as kubectl finds it.
        context: Its context; else the current one.
        namespaces: Those that are read; empty for all.
        tell: Is told what is read.

    Raises:
        ClusterError: `kubeconfig-unreadable`, `context-not-known`, `cluster-credentials`.
    """
    account = find_account(kubeconfig, context, os.environ)
    return Reader(Session(account), namespaces=namespaces, tell=tell)
