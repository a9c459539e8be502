from __future__ import annotations

import os
import re
from typing import Any

import yaml

from dra_infra.catalog.personas import personas, rules_of
from dra_infra.client.kinds import SNAPSHOT
from tests.support.pages.documents import ROOT

PAGE = ROOT / "docs" / "teams.md"
_TABLE = re.compile(r"(\| Persona \| Bound in \|.*?\n\| --- .*?\n)(.*?)(<!-- end of personas -->)", re.DOTALL)


def rendered(text: str) -> str:
    rows = [
        f"| `{name}` | {'the cluster' if each.scope == 'cluster' else 'the namespace of a tenant'} | {each.meaning} |\n"
        for name, each in personas().items()
    ]
    return _TABLE.sub(lambda found: found[1] + "".join(rows) + found[3], text)


def test_the_page_has_every_persona():
    now = rendered(PAGE.read_text())
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        PAGE.write_text(now)
    assert PAGE.read_text() == now, "run `make golden`, and read what it wrote"
    assert "| `on-call` | the cluster |" in now


def test_the_role_of_readers_is_the_one_that_the_page_on_clusters_shows():
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "cluster.md").read_text(), re.DOTALL)
    (shown,) = [each for each in map(yaml.safe_load, blocks) if each["kind"] == "ClusterRole"]

    def in_order(rules: Any) -> Any:
        return [{key: sorted(values) for key, values in rule.items()} for rule in rules]

    assert in_order(shown["rules"]) == in_order(rules_of("reader"))


def test_a_reader_may_list_and_watch_each_kind_of_a_snapshot_and_write_nothing():
    rules = [each for each in rules_of("reader") if "resources" in each]
    may = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    assert {(kind.group, kind.plural) for kind in SNAPSHOT} <= may
    assert all(rule["verbs"] == ["list", "watch"] for rule in rules)


def test_no_persona_may_do_everything_or_read_secrets():
    rules = [rule for name in personas() for rule in rules_of(name)]
    assert all("*" not in values for rule in rules for values in rule.values())
    assert all("secrets" not in rule.get("resources", ()) for rule in rules)
