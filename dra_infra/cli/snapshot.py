"""The `dra-infra snapshot` command: reads a live cluster once into one file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dra_infra import __version__
from dra_infra.cli.printing import print_problems, progress, say, write_output
from dra_infra.cluster.capture import capture
from dra_infra.cluster.reading import open_reader
from dra_infra.documents.json_texts import are_lines
from dra_infra.errors import ClusterError, Problem
from dra_infra.output.escaping import escape_json
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.output.wording import count_of, join_words


def run(kubeconfig: Path | None, *, context: str | None, namespaces: Sequence[str], output: str) -> int:
    """Write what the cluster holds to *output*, `-` for standard output; what could not be seen is said.

    Raises:
        ClusterError: When nothing can be read, or `report-not-written`.
    """
    with progress() as tell:
        reader = open_reader(kubeconfig, context, namespaces=namespaces, tell=tell)
        taken = capture(
            reader,
            mask=report_mask(secret_texts(os.environ)),
            made_by=f"dra-infra {__version__}",
            tell=tell,
        )
    print_problems(taken.problems, with_count=False)
    if output == "-":
        # Lines are JSON, and a terminal gets no character that hides: above U+FFFF only a pair of escapes is JSON.
        write_output(escape_json(taken.text) if are_lines(taken.text) else taken.text)
        return 0
    write_private(Path(output), taken.text)
    parts = join_words((count_of(number, kind) for kind, number in taken.counts.items()), most=5)
    say(f"wrote {output}: {parts}")
    return 0


def write_private(file: Path, text: str) -> None:
    """Write *file* whole or not at all, for its owner alone.

    Raises:
        ClusterError: `report-not-written`.
    """
    partial = None
    try:
        if file.exists() and not file.is_file():
            # A device or a pipe, such as /dev/stdout: there is nothing to put in its place.
            file.write_text(text, "utf-8")
            return
        # Made with mode 0600, under a name of its own.
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        partial = Path(name)
        with os.fdopen(number, "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        partial.replace(file)
        partial = None
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror or error}"
        hint = "name a file in a folder that exists and may be written to, or - for standard output"
        problem = Problem(path="--output", code="report-not-written", message=message, hint=hint)
        raise ClusterError([problem]) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)
