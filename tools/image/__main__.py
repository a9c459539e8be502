"""Build the image of the node plugin: ``python -m tools.image`` or ``make image``."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.errors import ToolError
from tools.image.plugin_image import build


def _check(output: Path | None) -> None:
    """What can be known of the file before minutes of building."""
    if output and output.is_dir():
        raise ToolError(f"{output} is a folder", hint=f"IMAGE={output / 'dra-infra-plugin.tar'}")
    if output and not output.parent.is_dir():
        raise ToolError(f"there is no folder {output.parent}", hint="make it, or name another file in IMAGE")


def _copied(archive: Path, output: Path) -> Path:
    try:
        return Path(shutil.copyfile(archive, output))
    except OSError as error:
        raise ToolError(f"{output} cannot be written: {error.strerror or error}") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.image", description="Build the image of the node plugin."
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="copy the archive to FILE")
    options = parser.parse_args(arguments)
    try:
        _check(options.output)
        built = build()
        archive = _copied(built.archive, options.output) if options.output else built.archive
    except ToolError as error:
        print(f"make image: {error}", file=sys.stderr)
        return 1
    print(
        f"{built.name}: {archive} ({archive.stat().st_size / 1e6:.0f} MB{'' if built.is_fresh else ', as built before'})"
    )
    print(f"on each node: ctr --namespace k8s.io images import {archive.name}")
    registry = "YOUR-REGISTRY/dra-infra-plugin"
    print(
        f"for a registry: skopeo copy --preserve-digests oci-archive:{archive.name} docker://{registry}:{built.name.rpartition(':')[2]}"
    )
    print(f'and in the program: image="{registry}@{built.digest}"')
    return 0


if __name__ == "__main__":
    sys.exit(main())
