"""Writes the messages of the node plugin's protocol: `python -m tools.protos`, or `make protos`.

As protoc writes them, but for two things. Each file has a pool of its own: packages named `v1` are many, and in the common
pool two of them would keep each other out. And the running protobuf may be older than protoc's, as far as `pyproject.toml`
says: what these files call is there since 3.20.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = (Path("dra_infra/plugin/protocol"), Path("tests/support/plugin/protocol"))
"""What the plugin speaks, and what only tests speak: older versions of it, answered with the messages of the newer, and device plugins."""

_COMMON_POOL: Final = "_descriptor_pool.Default()"
_VERSION_CHECK: Final = re.compile(
    r"from google\.protobuf import runtime_version as _runtime_version\n"
    r"|_runtime_version\.ValidateProtobufRuntimeVersion\(\n.*?\n\)\n",
    re.DOTALL,
)
_HEADS: Final = {
    ".py": "# Written by `make protos`.\n",
    ".pyi": '# mypy: disable-error-code="type-arg"\n# Written by `make protos`.\n',
}


def generate() -> dict[Path, str]:
    """Files of the protocol below the repository, with the text they have to have."""
    with tempfile.TemporaryDirectory() as folder:
        protos = sorted(str(each / file.name) for each in FOLDERS for file in (ROOT / each).glob("*.proto"))
        protoc = [sys.executable, "-m", "grpc_tools.protoc", "-I."]
        subprocess.run(
            [*protoc, f"--python_out={folder}", f"--pyi_out={folder}", *protos], cwd=ROOT, check=True
        )
        written = sorted(file for each in FOLDERS for file in (Path(folder) / each).iterdir())
        return {file.relative_to(folder): _HEADS[file.suffix] + _ours(file.read_text()) for file in written}


def _ours(text: str) -> str:
    changed = _VERSION_CHECK.sub("", text).replace(_COMMON_POOL, "_descriptor_pool.DescriptorPool()")
    if "_runtime_version" in changed:
        raise ValueError("protoc writes its check of versions in another way now: see _VERSION_CHECK")
    return changed


if __name__ == "__main__":
    for name, content in generate().items():
        (ROOT / name).write_text(content)
