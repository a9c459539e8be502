"""Commands that ask a forge: `dra-infra comment` posts a review on a pull request, `dra-infra pull-request` finds one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import cast

from dra_infra.cli.printing import EXIT_NO_ANSWER, print_problems, write_json, write_lines, write_output
from dra_infra.errors import ForgeError
from dra_infra.forge.comments import Outcome, keep_one, look
from dra_infra.forge.destinations import Destination, destination_of
from dra_infra.forge.forges import HEADERS, Account, Forge, GitHub, GitLab
from dra_infra.forge.messages import Mask, Message, read_message
from dra_infra.forge.pull_requests import Verdict, check_commit, find_pull_request, set_verdict
from dra_infra.forge.session import Session
from dra_infra.output.report_data import make_report, to_data
from dra_infra.output.wording import count_of


def comment(
    file: Path,
    *,
    forge: str | None,
    api: str | None,
    repository: str | None,
    number: int | None,
    token_variable: str | None,
    account: str | None,
    timeout: float,
    dry_run: bool,
    form: str,
) -> int:
    """Post a review, or bring its comment up to date; 2 when the forge did not take it."""
    try:
        where = destination_of(
            os.environ,
            forge=forge,
            api=api,
            repository=repository,
            number=number,
            token_variable=token_variable,
            with_token=not dry_run,
        )
        mask = Mask(where.token, os.environ)
        message = read_message(file, forge=where.forge, mask=mask)
        outcome = _act(where, message, mask, account=account, timeout=timeout, dry_run=dry_run)
        outcome = replace(outcome, url=mask.quote(outcome.url))
    except ForgeError as error:
        print_problems(error.problems)
        if form == "json":
            write_json(_as_json(None, None, error))
        return EXIT_NO_ANSWER
    if form == "json":
        write_json(_as_json(where, outcome))
    else:
        write_lines([_as_text(where, outcome)])
    return 0


def _act(
    where: Destination, message: Message, mask: Mask, *, account: str | None, timeout: float, dry_run: bool
) -> Outcome:
    session = Session(where, mask=mask, headers=HEADERS if where.forge == "github" else None, total=timeout)
    forge: Forge = GitHub(session) if where.forge == "github" else GitLab(session)
    whose = Account(login=account) if account else None
    return look(forge, message, account=whose) if dry_run else keep_one(forge, message, account=whose)


def _as_text(where: Destination, outcome: Outcome) -> str:
    said = outcome.action.replace("-", " ")
    place = outcome.url or f"a comment on {where}"
    removed = f", and deleted {count_of(len(outcome.removed), 'double')} of it" if outcome.removed else ""
    return f"{said}: {place}{removed}"


def _as_json(
    where: Destination | None, outcome: Outcome | None, error: ForgeError | None = None
) -> dict[str, object]:
    data = {
        "action": outcome.action if outcome else "none",
        "comment": outcome.identifier if outcome and outcome.identifier else None,
        "url": outcome.url if outcome and outcome.url else None,
        "removed": list(outcome.removed) if outcome else [],
        "forge": where.forge if where else None,
        "repository": where.repository if where else None,
        "number": where.number if where else None,
        "problems": to_data(error.problems if error else ()),
    }
    return make_report("comment", data)


def pull_request(
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
