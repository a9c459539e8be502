"""Options and help of `dra-infra comment`."""

from __future__ import annotations

from pathlib import Path

import click

from dra_infra.cli import options


@click.command()
@click.argument(
    "file", metavar="FILE", type=options.FILE, help="What `dra-infra review --markdown FILE` wrote."
)
@click.option("--repository", "-r", metavar="OWNER/NAME", help="Else the CI's own; on GitLab also a number.")
@click.option(
    "--number",
    "-n",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    help="Pull or merge request; else the one that the CI runs for.",
)
@click.option("--forge", metavar="FORGE", help="github or gitlab; else the one whose CI this is.")
@click.option("--api", metavar="URL", help="Address of the API; else the CI's own, else the public one.")
@click.option(
    "--token-variable", metavar="NAME", help="Variable with the token; else GITHUB_TOKEN or GITLAB_TOKEN."
)
@click.option("--account", metavar="LOGIN", help="Whose comments are ours; else the token's own account.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=1),
    default=300.0,
    help="For everything, waiting for rate limits included.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
@options.as_json
def comment(
    file: Path,
    *,
    repository: str | None,
    number: int | None,
    forge: str | None,
    api: str | None,
    token_variable: str | None,
    account: str | None,
    timeout: float,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Post a review on a pull request, as one comment that later runs bring up to date.

    The comment is found again by a hidden marker, among those of the same account. It is written whole or not at all,
    and not at all when it says the same. The token is read from the environment and never printed.

    \b
    Examples:
      dra-infra comment review.md
      dra-infra comment review.md --repository team/infra --number 42 --dry-run
      dra-infra comment review.md --forge gitlab --api https://git.example.com/api/v4 -r team/infra -n 7
    \b
    Exits with 0 when the comment is there, 2 when it is not.
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.comment import run

    return run(
        file,
        forge=forge,
        api=api,
        repository=repository,
        number=number,
        token_variable=token_variable,
        account=account,
        timeout=timeout,
        dry_run=dry_run,
        as_json=as_json,
    )
