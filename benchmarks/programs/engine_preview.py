"""The engine's own preview of the program in FOLDER, into an empty stack and without a cluster; prints its seconds."""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.build import binary  # noqa: E402  (this is a program, run by its path)
from tools.engine_cli import Stack  # noqa: E402
from tools.pulumi_home import assemble, choose_provider  # noqa: E402

with tempfile.TemporaryDirectory() as folder:
    home = assemble(Path(folder, "home"), binaries=binary, provider=choose_provider(os.environ))
    project, state = Path(folder, "project"), Path(folder, "state")
    shutil.copytree(sys.argv[1], project, ignore=shutil.ignore_patterns(".git"))
    settings = yaml.safe_load((project / "Pulumi.yaml").read_text())
    (project / "Pulumi.yaml").write_text(yaml.safe_dump({**settings, "plugins": home.plugins}))
    state.mkdir()
    stack = Stack(project, home=home, environment={"PULUMI_BACKEND_URL": state.as_uri()})
    stack.init()
    started = time.monotonic()
    result = stack.preview()
    seconds = time.monotonic() - started
    assert "create" in result.text, result.text
    print(result.text[-300:])
    print(f"{seconds:.3f}")
