from __future__ import annotations

import json
import shutil

from tests.support.agent_tools.agent import COMMAND
from tests.support.pages.documents import ROOT, blocks_of


def test_the_settings_of_the_page_start_the_server() -> None:
    shown = next(block for block in blocks_of(ROOT / "docs" / "agents.md") if block.language == "json")
    server = json.loads(shown.text)["mcpServers"]["dra-infra"]
    assert shutil.which(server["command"], path=str(COMMAND.parent)) == str(COMMAND)
    assert server["args"] == ["mcp"]
