"""Build what a release consists of from the sources beside this file: ``python -m tools.release.artefacts FOLDER``."""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.errors import ToolError
from tools.image import plugin_image
from tools.release import sbom, sources

IMAGE: Final = "dra-infra-plugin.tar"
WHEEL_SBOM: Final = "dra-infra.cdx.json"
IMAGE_SBOM: Final = "dra-infra-plugin.cdx.json"

_NO_TIME: Final = "315532800"
"""1980, the first that a wheel can name; the wheel in the image has it too."""


def build(folder: Path, *, with_image: bool, time: int) -> None:
    """Build sdist, wheel, image, and the bills of materials of the two latter into *folder*.

    Args:
        folder: Is there, and empty.
        with_image: Whether the image is built, which needs apt.
        time: Seconds since 1970 that the bills of materials are dated with.

    Raises:
        ToolError: When something cannot be built.
    """
    hatch("sdist", sources.ROOT, folder)
    wheel = hatch("wheel", sources.ROOT, folder)
    version = sources.version()
    subject = sbom.Subject("dra-infra", version, digest(wheel), is_image=False)
    pins = sbom.python_packages(sources.ROOT / "requirements" / "run.txt")
    (folder / WHEEL_SBOM).write_text(sbom.write(subject, pins, time=time))
    if with_image:
        archive = folder / IMAGE
        archive.write_bytes(plugin_image.build().archive.read_bytes())
        subject = sbom.Subject("dra-infra-plugin", version, digest(archive), is_image=True)
        found = sbom.packages_of_image(archive, sources.ROOT / "requirements" / "plugin.txt")
        (folder / IMAGE_SBOM).write_text(sbom.write(subject, found, time=time))


def hatch(target: str, source: Path, folder: Path) -> Path:
    """Build the `sdist` or the `wheel` of *source* into *folder*.

    Raises:
        ToolError: When the build fails.
    """
    before = set(folder.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": _NO_TIME, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    built = set(folder.iterdir()) - before
    if done.returncode or len(built) != 1:
        raise ToolError(f"the {target} was not built: {done.stderr.strip() or done.stdout.strip()}")
    return built.pop()


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.artefacts")
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--time", type=int, required=True, metavar="SECONDS", help="what bills of materials are dated with"
    )
    parser.add_argument("--no-image", action="store_true", help="leave the image out")
    options = parser.parse_args(arguments)
    try:
        build(options.folder, with_image=not options.no_image, time=options.time)
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
