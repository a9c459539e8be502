"""Errors on the way to a cluster, each with its code and what to do.

No message holds a credential.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from dra_infra.errors import ClusterError, Problem
from dra_infra.output.escaping import one_line

_QUOTED: Final = 300
"""Most characters of a foreign text that are shown."""

ANOTHER_FILE: Final = "name another with --kubeconfig FILE, or set KUBECONFIG"


def bad_kubeconfig(file: Path, why: str) -> ClusterError:
    """A kubeconfig that says nothing useful."""
    return ClusterError.of(
        "--kubeconfig", "kubeconfig-unreadable", f"{file} cannot be used: {why}", ANOTHER_FILE
    )


def no_kubeconfig() -> ClusterError:
    """There is none, and this is no pod."""
    message = "there is no kubeconfig: KUBECONFIG is not set, and ~/.kube/config does not exist"
    return ClusterError.of(
        "--kubeconfig", "kubeconfig-unreadable", message, "name one with --kubeconfig FILE"
    )


def unknown_context(context: str, known: Sequence[str], file: Path, *, can_choose: bool) -> ClusterError:
    """A context that is not in the files, or none is current."""
    message = f"{file} has no context {context!r}" if context else f"{file} has no current context"
    names = ", ".join(known[:10]) + (" ..." if len(known) > 10 else "")
    if can_choose:
        path = "--context"
        hint = f"name one with --context: {names}"
    else:
        path = "--kubeconfig"
        hint = f"make one the current one: kubectl config use-context NAME --kubeconfig {file}; there are {names}"
    return ClusterError.of(path, "context-not-known", message, hint if known else ANOTHER_FILE)


def bad_credentials(context: str, why: str, hint: str = "") -> ClusterError:
    """The user of a context has nothing to show."""
    message = f"no credentials for context {context!r}: {shorten(why)}"
    return ClusterError.of(
        "--context", "cluster-credentials", message, hint or "log in again, as for kubectl"
    )


def unreachable(server: str, why: str) -> ClusterError:
    """Nobody answers, or not as who they should be."""
    return ClusterError.of(
        "--kubeconfig",
        "cluster-unreachable",
        f"{server} does not answer: {shorten(why)}",
        "is the cluster up, and are the network, VPN and proxy that lead to it? kubectl version asks the same server",
    )


class UntrustedError(ClusterError):
    """An API server shows a certificate of somebody else, or one of an authority that is not known here."""


def untrusted(server: str, why: str) -> UntrustedError:
    """Somebody answers, and nothing shows that it is the API server: it was told nothing."""
    return UntrustedError(unreachable(server, why).problems)


def unauthorized(server: str, context: str) -> ClusterError:
    """401."""
    return ClusterError.of(
        "--context",
        "cluster-unauthorized",
        f"{server} does not accept the credentials of context {context!r}",
        "log in again, as for kubectl; tokens run out",
    )


def strange_answer(server: str, path: str, why: str) -> ClusterError:
    """Something answers that is no API server, or one with a failure of its own."""
    return ClusterError.of(
        "--kubeconfig",
        "cluster-answer",
        f"{server} answers {path} with {shorten(why)}",
        "try again; if it stays, see whether kubectl get --raw with that path answers",
    )


class TooLargeError(ClusterError):
    """An answer is larger than what is read of one."""


def too_large(server: str, path: str, why: str) -> TooLargeError:
    """What is asked again is as large; a smaller page of a list may not be."""
    return TooLargeError(strange_answer(server, path, why).problems)


def nothing_seen(problems: Iterable[Problem]) -> ClusterError:
    """Not one kind may be read."""
    return ClusterError(replace(problem, severity="error") for problem in problems)


def shorten(text: str) -> str:
    """A foreign text in one line, of bounded length, with nothing that steers a terminal."""
    line = one_line(" ".join(text.split()))
    return line if len(line) <= _QUOTED else f"{line[:_QUOTED]}…"
