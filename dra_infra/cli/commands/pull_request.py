"""Options and help of `dra-infra pull-request`."""

from __future__ import annotations

import click

from dra_infra.cli import options


@click.command("pull-request")
@click.option("--commit", metavar="COMMIT", required=True, help="The full hash of its newest commit.")
@click.option(
    "--verdict",
    metavar="VERDICT",
    type=options.OneOf(["open", "closed", "none"]),
    help="Instead of asking, show this at the commit, as a status: open, closed or none.",
)
@click.option(
    "--context", metavar="NAME", default="dra-infra review", help="With --verdict: what the status is called."
)
@click.option("--repository", "-r", metavar="OWNER/NAME", help="Else the CI's own.")
@click.option("--api", metavar="URL", help="Address of the API; else the CI's own, else the public one.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=1),
    default=120.0,
    help="For everything, waiting for rate limits included.",
)
def pull_request(
    *,
    commit: str,
    verdict: str | None,
    context: str,
    repository: str | None,
    api: str | None,
    timeout: float,
) -> int:
    """Ask GitHub for the one open pull request of a commit, or show a verdict at the commit.

    A workflow of the event `workflow_run` has rights, and is not told the pull request. What the pull request's own workflow
    says of itself does not count, so GitHub is asked. The token is read from GITHUB_TOKEN. The answer is lines that a step of
    a workflow can put into its outputs: number, head, merge, target. With --verdict it is one line for the log, and no outputs.

    \b
    Examples:
      dra-infra pull-request --commit "$HEAD_SHA" >> "$GITHUB_OUTPUT"
      dra-infra pull-request --commit "$HEAD_SHA" --verdict closed
    \b
    Exits with 0 when it is found or shown, 2 when it is not.
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.pull_request import run

    return run(
        commit=commit,
        verdict=verdict,
        context=context,
        repository=repository,
        api=api,
        timeout=timeout,
    )
