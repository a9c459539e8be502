"""A node whose claims are prepared through a socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import Claim, ClaimReference
from dra_infra.plugin.observing import Observer, Operation
from dra_infra.plugin.service.node import NodeService
from dra_infra.plugin.service.serving import Pool, Server
from tests.unit.plugin.faults import Node


class Notes(Observer):
    """An observer that remembers."""

    def __init__(self) -> None:
        self.open: dict[str, Operation] = {}
        self.done: list[tuple[str, str, list[str]]] = []
        self.problems: list[Problem] = []
        self.causes: list[BaseException] = []
        self.registrations: list[tuple[bool, str]] = []
        self.refused: list[str] = []

    def began(self, operation: Operation) -> None:
        self.open[operation.id] = operation

    def ended(self, operation: Operation, *, seconds: float, error: PluginError | None) -> None:
        assert seconds >= 0
        del self.open[operation.id]
        codes = [each.code for each in error.problems] if error else []
        self.done.append((operation.kind, operation.claim.name, codes))
        if error and error.__cause__:
            self.causes.append(error.__cause__)

    def registered(self, *, registered: bool, text: str) -> None:
        self.registrations.append((registered, text))

    def noticed(self, problems: Sequence[Problem]) -> None:
        self.problems += problems

    def malformed(self, *, method: str, peer: str) -> None:
        assert peer == "unix:"
        self.refused.append(method)


class Api:
    """What the API server says of claims."""

    def __init__(self, *claims: Claim) -> None:
        self.claims = {each.uid: each for each in claims}
        self.before: Callable[[], Any] = lambda: None

    def read(self, reference: ClaimReference) -> Claim:
        self.before()
        try:
            return self.claims[reference.uid]
        except KeyError:
            problem = Problem(
                path=str(reference), code="claim-gone", message="there is\nno such claim", hint="look again"
            )
            raise PluginError([problem]) from None


class Served:
    """The node service at a socket."""

    def __init__(self, folder: Path, *claims: Claim, threads: int = 16) -> None:
        self.path = folder / "dra.sock"
        self.node = Node(folder)
        self.api = Api(*claims)
        self.notes = Notes()
        pool = Pool(threads, "test")
        service = NodeService(
            preparations=self.node.plugin, read_claim=self.api.read, observer=self.notes, pool=pool
        )
        self.server = Server([self.path], service.handlers(), pool=pool)
        self.server.start()
        self.server.show(self.path)

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.server.stop(60)


def errors(answers: Mapping[str, Any]) -> list[str]:
    """What went wrong, by claim in the order of the answer; empty texts where nothing did."""
    return [answer.error for answer in answers.values()]
