from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from dra_infra.forge.destinations import Destination
from dra_infra.forge.forges import HEADERS, Forge, GitHub, GitLab
from dra_infra.forge.messages import Mask, Message
from dra_infra.forge.session import Session
from dra_infra.review.markdown_report import marker_of
from tests.support.forge.local_forge import LocalForge, serving

TOKEN = "glpat-planted-0123456789abcdef"
BOT_TOKEN = "ghs_planted0123456789abcdef"
MARKER = marker_of("infra", "prod")


@dataclass
class Time:
    """A clock that only waiting moves."""

    now: float = 1_000_000.0
    pauses: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def read(self) -> float:
        return self.now


@pytest.fixture
def forge() -> Iterator[LocalForge]:
    accounts = {TOKEN: ("reviewer", False), BOT_TOKEN: ("github-actions[bot]", True)}
    with serving(LocalForge(accounts=accounts)) as running:
        yield running


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture(params=["github", "gitlab"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def connect(
    forge: LocalForge,
    time: Time,
    kind: str = "github",
    *,
    token: str = TOKEN,
    total: float = 300.0,
    api: str = "",
) -> Forge:
    where = Destination(
        forge=kind,
        api=api or (forge.github if kind == "github" else forge.gitlab),
        repository=forge.repository,
        number=forge.number,
        token=token,
        token_variable=f"{kind.upper()}_TOKEN",
    )
    session = Session(
        where,
        mask=Mask(token),
        headers=HEADERS if kind == "github" else None,
        total=total,
        sleep=time.sleep,
        clock=time.read,
        today=time.read,
        jitter=lambda: 0.0,
    )
    return GitHub(session) if kind == "github" else GitLab(session)


def message(text: str = "### all well\n") -> Message:
    return Message(marker=MARKER, body=f"{MARKER}\n{text}")
