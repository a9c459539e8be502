"""The `dra-infra pull-request` command: finds the open pull request of a commit, or shows a verdict there."""

from __future__ import annotations

import os
from typing import cast

from dra_infra.cli.printing import EXIT_NO_ANSWER, print_problems, write_output
from dra_infra.errors import ForgeError
from dra_infra.forge import Mask, Session, destination_of
from dra_infra.forge.forges import HEADERS
from dra_infra.forge.pull_requests import Verdict, check_commit, find_pull_request, set_verdict


def run(
    *,
    commit: str,
    verdict: str | None,
    context: str,
    repository: str | None,
    api: str | None,
    timeout: float,
) -> int:
    """Print the pull request of a commit, or show a verdict at it; 2 when GitHub does not take or know it."""
    try:
        check_commit(commit)
        where = destination_of(os.environ, forge="github", api=api, repository=repository, with_number=False)
        mask = Mask(where.token, os.environ)
        session = Session(where, mask=mask, headers=HEADERS, total=timeout)
        if verdict is not None:
            set_verdict(session, commit, cast("Verdict", verdict), context=context)
            write_output(f"{verdict}: {commit[:12]}")
            return 0
        found = find_pull_request(session, commit)
    except ForgeError as error:
        print_problems(error.problems)
        return EXIT_NO_ANSWER
    write_output(f"number={found.number}\nhead={found.head}\nmerge={found.merge}\ntarget={found.target}")
    return 0
