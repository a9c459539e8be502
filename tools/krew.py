"""Write the archive and the manifest of `kubectl dra-infra` for krew: ``python -m tools.krew FOLDER --address URL``.

krew installs an archive by its hash, and links one file of it. So the archive has the two scripts by which kubectl finds and completes the command, and the
command itself is installed as a Python package.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tools.release import sources

ARCHIVE: Final = "kubectl-dra-infra.tar.gz"
MANIFEST: Final = "dra-infra.yaml"

_SCRIPTS: Final = ("bin/kubectl-dra_infra", "bin/kubectl_complete-dra_infra")
_CAVEATS: Final = """\
The plugin runs the command dra-infra, which has to be on PATH: pipx install dra-infra

krew links no completion. For it, make the link yourself:

  ln -s ~/.krew/store/dra-infra/v{version}/kubectl_complete-dra_infra ~/.krew/bin/
"""


def archive() -> bytes:
    """Return the archive; equal sources give equal bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as opened:
        for name in (*_SCRIPTS, "LICENSE"):
            data = (sources.ROOT / name).read_bytes()
            member = tarfile.TarInfo(Path(name).name)
            member.size = len(data)
            member.mode = 0o755 if name in _SCRIPTS else 0o644
            opened.addfile(member, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), mtime=0)


def manifest(address: str, version: str, digest: str) -> dict[str, Any]:
    """Return the manifest (krew's docs, "Writing Krew plugin manifests").

    Args:
        address: Where the archive can be fetched.
        version: Of dra-infra.
        digest: SHA-256 of the archive, in hexadecimal digits.
    """
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "dra-infra"},
        "spec": {
            "version": f"v{version}",
            "homepage": address.partition("/releases/")[0],
            "shortDescription": "Check, place and explain DRA claims",
            "description": "Checks manifests of Dynamic Resource Allocation as the API server does, says where pods fit and why "
            "one gets no devices, and shows the claims of a cluster.\n",
            "caveats": _CAVEATS.format(version=version),
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": "linux"}},
                    "uri": address,
                    "sha256": digest,
                    "bin": "kubectl-dra_infra",
                }
            ],
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.krew")
    parser.add_argument("folder", type=Path, help="folder that gets both files")
    parser.add_argument(
        "--address", required=True, metavar="URL", help="where the archive will be: https://.../releases/..."
    )
    options = parser.parse_args(arguments)
    data = archive()
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / ARCHIVE).write_bytes(data)
    described = manifest(options.address, sources.version(), hashlib.sha256(data).hexdigest())
    (options.folder / MANIFEST).write_text(yaml.safe_dump(described, sort_keys=False, width=100))
    return 0


if __name__ == "__main__":
    sys.exit(main())
