"""Why there is no preview: what the engine said, as a problem with a code.

The engine says it in words only, and ends with 1 for nearly everything; 3 means that nobody is logged in, 6 that
there is no such stack (sdk/go/common/util/cmdutil/exitcodes.go of pulumi/pulumi). The words were read off its own
runs. Nothing here is of the making of the author of a change; what is comes as messages of the preview.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from dra_infra.errors import Problem

PATH: Final = "--engine"

_Rule = tuple[str, re.Pattern[str], str]

_CODES: Final = {3: "engine-backend", 6: "engine-stack-missing"}

_RULES: Final[tuple[_Rule, ...]] = (
    (
        "engine-passphrase",
        re.compile(r"passphrase must be set|incorrect passphrase|PULUMI_CONFIG_PASSPHRASE", re.IGNORECASE),
        "set PULUMI_CONFIG_PASSPHRASE, or PULUMI_CONFIG_PASSPHRASE_FILE, to the stack's passphrase",
    ),
    (
        "engine-stack-missing",
        re.compile(r"no stack named|no stack selected|stack '[^']*' not found"),
        "name a stack that exists with --stack; `pulumi stack ls` lists them, `pulumi stack init` makes one",
    ),
    (
        "engine-stack-locked",
        re.compile(r"stack is currently locked|Another update is currently in progress", re.IGNORECASE),
        "wait for the other run to end; `pulumi cancel` drops the lock of one that was killed",
    ),
    (
        "engine-plugin-missing",
        re.compile(
            r"no (resource|language|analyzer) plugin|failed to load (language )?plugin|could not find plugin"
            r"|unable to find (program|plugin)|plugin not found"
        ),
        "install it where the review runs: `pulumi install` in the folder of the project",
    ),
    (
        "engine-backend",
        re.compile(
            r"PULUMI_ACCESS_TOKEN must be set|invalid access token|unable to open state|unable to check if bucket"
            r"|performing HTTP request|not logged in|problem logging in|could not list bucket|\[401\]|\[403\]",
            re.IGNORECASE,
        ),
        "log in first: `pulumi login`, or set PULUMI_BACKEND_URL (and PULUMI_ACCESS_TOKEN for the service)",
    ),
    (
        "engine-cluster-away",
        re.compile(
            r"cluster is unreachable|unable to load schema information from the API server"
            r"|connection refused.*(/api|/openapi)|(/api/|/apis/|/openapi/).*(connection refused|i/o timeout|no such host"
            r"|context deadline exceeded|EOF|connection reset|certificate)",
            re.IGNORECASE | re.DOTALL,
        ),
        "let the review reach the cluster (KUBECONFIG), or run it without --engine",
    ),
)


def find_failure(texts: Iterable[str], *, exit_code: int | None = None) -> Problem | None:
    """The failure that *texts* or the exit code speak of; None when they speak of none that is known.

    Args:
        texts: What the engine said, masked.
        exit_code: Of the CLI, when its events did not begin.
    """
    text = "\n".join(texts)
    code = _CODES.get(exit_code or 0)
    for rule in _RULES:
        if rule[0] == code or (code is None and rule[1].search(text)):
            return _problem(rule, text)
    return None


def _problem(rule: _Rule, text: str) -> Problem:
    code, words, hint = rule
    said = [line.strip() for line in text.splitlines() if line.strip()]
    line = next((each for each in said if words.search(each)), said[-1] if said else "it gave no reason")
    return Problem(path=PATH, code=code, message=shorten(line), hint=hint)


def shorten(text: str, most: int = 400) -> str:
    """One line of *text*, without the engine's own prefix."""
    line = " ".join(text.split()).removeprefix("error: ")
    return line if len(line) <= most else f"{line[:most]}…"


def not_found() -> Problem:
    """The CLI is not there."""
    return Problem(
        path=PATH,
        code="engine-not-found",
        message="there is no `pulumi` on PATH",
        hint="install the Pulumi CLI, or run the review without --engine",
    )


def timed_out(seconds: float) -> Problem:
    """The preview did not end in time."""
    return Problem(
        path=PATH,
        code="engine-timeout",
        message=f"it did not end within {seconds:g} s and was cancelled",
        hint="--timeout gives it more time; a program or a cluster that hangs shows with `pulumi preview --debug`",
    )


def unknown_failure(texts: Iterable[str], exit_code: int) -> Problem:
    """The CLI ended without a preview, for a reason that no rule knows."""
    said = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    reason = shorten(said[-1]) if said else "it gave no reason"
    return Problem(
        path=PATH,
        code="engine-failed",
        message=f"pulumi ended with {exit_code}: {reason}",
        hint="run `pulumi preview` in the folder of the project; it says more",
    )
