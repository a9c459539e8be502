"""Print what changed upstream for each ported module: ``python -m tools.upstream FROM TO [--module NAME] [--names]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.errors import ToolError
from tools.upstream.changes import ChangedDeclaration, find_changes, find_rows
from tools.upstream.modules import Sources, module_cache
from tools.upstream.ported import PortedModule, load


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.upstream",
        description="Print what changed in the upstream sources of each ported module, with the places of ours that it touches.",
    )
    parser.add_argument("older", metavar="FROM", help="such as v1.36.4")
    parser.add_argument("newer", metavar="TO", help="such as v1.37.1")
    parser.add_argument(
        "--module", action="append", default=[], help="only this module, such as api/gates.py"
    )
    parser.add_argument("--names", action="store_true", help="print names only, without diffs")
    options = parser.parse_args(arguments)
    try:
        modules = _chosen(options.module)
        cache = _cache()
        older, newer = (
            Sources(release=each, cache=cache, may_download=True) for each in (options.older, options.newer)
        )
        changed = 0
        for module in modules:
            found = list(find_changes(module, older, newer))
            changed += bool(found)
            for line in _describe(module, found, names_only=options.names):
                print(line)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(
        f"{changed} of {len(modules)} ported modules changed upstream from {older.release} to {newer.release}"
    )
    return 0


def _cache() -> Path:
    cache = module_cache()
    if cache is None:
        raise ToolError("go is not on PATH", hint="install the Go version that tools/*/go.mod names")
    return cache


def _chosen(names: Sequence[str]) -> list[PortedModule]:
    modules = [each for each in load() if each.files]
    unknown = sorted(set(names) - {each.name for each in modules})
    if unknown:
        raise ToolError(
            f"--module: no ported module is called {', '.join(unknown)}",
            hint="see tools/upstream/ported.toml",
        )
    return [each for each in modules if not names or each.name in names]


def _describe(
    module: PortedModule, changes: Sequence[ChangedDeclaration], *, names_only: bool
) -> Iterator[str]:
    if not changes:
        return
    yield f"{module.name}: {len(changes)} changed"
    for change in changes:
        how = "is new" if not change.before else "is gone" if not change.after else "changed"
        yield f"  {change.name} of {change.file.text} {how}"
        if names_only:
            continue
        yield from (f"    ours: {row}" for row in find_rows(module, change))
        yield from (f"    {line}" for line in change.diff.splitlines())
    yield ""


if __name__ == "__main__":
    sys.exit(main())
