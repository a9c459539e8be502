"""Build the image of the node plugin, or that of the command: ``python -m tools.image`` or ``make image``, ``make image-cli``."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.errors import ToolError
from tools.image.plugin_image import COMMAND, PLUGIN, build


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
    parser.add_argument("--cli", action="store_true", help="build the image of the command dra-infra")
    options = parser.parse_args(arguments)
    kind = COMMAND if options.cli else PLUGIN
    try:
        _check(options.output)
        built = build(kind)
        archive = _copied(built.archive, options.output) if options.output else built.archive
    except ToolError as error:
        print(f"make image: {error}", file=sys.stderr)
        return 1
    print(
        f"{built.name}: {archive} ({archive.stat().st_size / 1e6:.0f} MB{'' if built.is_fresh else ', as built before'})"
    )
    if kind is PLUGIN:
        print(f"on each node: ctr --namespace k8s.io images import {archive.name}")
    registry = f"YOUR-REGISTRY/{kind.command}"
    print(
        f"for a registry: skopeo copy --preserve-digests oci-archive:{archive.name} docker://{registry}:{built.name.rpartition(':')[2]}"
    )
    if kind is PLUGIN:
        print(f'and in the program: image="{registry}@{built.digest}"')
    else:
        print(f'and in a job: docker run --rm -v "$PWD:/work" -w /work {registry}@{built.digest} validate .')
    return 0


if __name__ == "__main__":
    sys.exit(main())
