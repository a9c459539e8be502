"""Images with the names that the examples use, and one thing in all of them: print the environment, and wait for the end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tools import debian, oci_archive
from tools.node import RealNode, images

END: Final = "USR1"
"""The signal that ends a container as one whose work is done."""

LAST_LINE: Final = "--- that is all of it"
"""Behind the last variable."""

# A shell that waits ends at once when it is told to, which a sleep that is the first process of a pod never does.
SCRIPT: Final = f"""trap 'exit 0' TERM {END}
env
echo '{LAST_LINE}'
while :; do sleep 3600 & wait $!; done
"""

_IMAGE: Final = re.compile(r'"image": "([^"]+)"')

# What a name without a host means, to containerd as to others.
_DEFAULT_HOST: Final = "docker.io"


def write(path: Path, names: Iterable[str]) -> None:
    """Write an archive with an image of each name, as pods write it."""
    write_scripts(path, dict.fromkeys(names, SCRIPT))


def write_scripts(path: Path, scripts: Mapping[str, str]) -> None:
    """Write an archive with images that run scripts, by their names as pods write them."""
    layers = (images.layer(debian.program("busybox-static", "bin/busybox")),)
    made = [
        oci_archive.Image(
            name=_whole(name),
            layers=layers,
            config={**images.ENVIRONMENT, "Entrypoint": ["/bin/sh", "-c", script]},
        )
        for name, script in scripts.items()
    ]
    oci_archive.write(path, made)


def names_in(program: Path) -> list[str]:
    """The images that the containers of a program have, as it writes them."""
    return _IMAGE.findall(program.read_text())


def end(node: RealNode, container_id: str) -> None:
    """Have a container end as one whose work is done; *container_id* is as in a pod's status."""
    node.ctr("tasks", "kill", "--signal", f"SIG{END}", container_id.removeprefix("containerd://"))


def _whole(name: str) -> str:
    """An image's name with host and folder, as a container runtime completes it."""
    first, _, rest = name.partition("/")
    if rest and ("." in first or ":" in first):
        return name
    return f"{_DEFAULT_HOST}/{name}" if rest else f"{_DEFAULT_HOST}/library/{name}"
