"""Options and help of the commands that ask a forge: comment and pull-request."""

from __future__ import annotations

import click

from dra_infra.cli import options


@options.command("dra_infra.cli.pull_requests:comment")
@click.argument(
    "file", metavar="FILE", type=options.FILE, help="What `dra-infra review --output review.md` wrote."
)
@click.option(
    "--repository",
    "-r",
    metavar="OWNER/NAME",
    help="Repository of the pull request (default: the CI's own); on GitLab also a number.",
)
@click.option(
    "--number",
    "-n",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    help="Pull or merge request; else the one that the CI runs for.",
)
@click.option("--forge", metavar="FORGE", help="github or gitlab (default: the one whose CI this is).")
@click.option("--api", metavar="URL", help="Address of the API; else the CI's own, else the public one.")
@click.option(
    "--token-variable", metavar="NAME", help="Variable with the token; else GITHUB_TOKEN or GITLAB_TOKEN."
)
@click.option("--account", metavar="LOGIN", help="Account that owns the comment (default: the token's own).")
@options.seconds(300.0, "Time limit for everything, waiting for rate limits included.", least=1)
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
@options.report_form("text", "json")
def comment() -> None:
    """Post a review on a pull request, as one comment that later runs bring up to date.

    The comment is found again by a hidden marker, among those of the same account. It is written whole or not at all,
    and not at all when it says the same. The token is read from the environment and never printed.

    \b
    Examples:
      dra-infra comment review.md
      dra-infra comment review.md --repository team/infra --number 42 --dry-run
      dra-infra comment review.md --forge gitlab --api https://git.example.com/api/v4 -r team/infra -n 7

    Exits with 0 when the comment is there, 2 when it is not.
    """  # noqa: D301  (click reads the character)


@options.command("dra_infra.cli.pull_requests:pull_request")
@click.option(
    "--commit", metavar="COMMIT", required=True, help="Full hash of the pull request's newest commit."
)
@click.option(
    "--verdict",
    metavar="VERDICT",
    type=options.OneOf(["open", "closed", "none"]),
    help="Instead of asking, show this at the commit, as a status: open, closed or none.",
)
@click.option(
    "--context", metavar="NAME", default="dra-infra review", help="With --verdict: name of the status."
)
@click.option(
    "--repository", "-r", metavar="OWNER/NAME", help="Repository of the commit (default: the CI's own)."
)
@click.option("--api", metavar="URL", help="Address of the API; else the CI's own, else the public one.")
@options.seconds(120.0, "Time limit for everything, waiting for rate limits included.", least=1)
def pull_request() -> None:
    """Ask GitHub for the one open pull request of a commit, or show a verdict at the commit.

    A workflow of the event `workflow_run` has rights, and is not told the pull request. What the pull request's own workflow
    says of itself does not count, so GitHub is asked. The token is read from GITHUB_TOKEN. The answer is lines that a step of
    a workflow can put into its outputs: number, head, merge, target. With --verdict it is one line for the log, and no outputs.

    \b
    Examples:
      dra-infra pull-request --commit "$HEAD_SHA" >> "$GITHUB_OUTPUT"
      dra-infra pull-request --commit "$HEAD_SHA" --verdict closed

    Exits with 0 when it is found or shown, 2 when it is not.
    """  # noqa: D301  (click reads the character)
