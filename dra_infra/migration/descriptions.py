"""Texts and files that name resources and ask for none: dashboards, alerts, schemas, tests of charts, words for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from dra_infra.documents.yaml_events import RefusedYamlError, read_documents

_FOR_PEOPLE: Final = frozenset(
    {
        "$comment",
        "comment",
        "description",
        "displayName",
        "display_name",
        "help",
        "summary",
        "title",
        "x-documentation",
    }
)
"""Fields that people read, such as those of a profile of JupyterHub."""

_KINDS: Final = {
    ("monitoring.coreos.com", "PrometheusRule"): "rules of Prometheus",
    ("operator.victoriametrics.com", "VMRule"): "rules of VictoriaMetrics",
    ("grafana.integreatly.org", "GrafanaDashboard"): "a dashboard of Grafana",
}
"""Objects of monitoring, which count what others ask for."""

_MARKS: Final = re.compile(r'"panels"|"\$schema"|\bpanels:|\$schema:')


def describe_document(document: Mapping[str, Any]) -> str:
    """Say what a file or an object is that names resources and asks for none; empty for all others."""
    group = str(document.get("apiVersion") or "").rpartition("/")[0]
    if kind := document.get("kind"):
        return _KINDS.get((group, str(kind)), "")
    panels = document.get("panels", document.get("dashboard"))
    if isinstance(panels, (list, Mapping)) and ("title" in document or "dashboard" in document):
        return "a dashboard of Grafana"
    if "$schema" in document or (document.get("type") == "object" and "properties" in document):
        return "a schema"
    tests = document.get("tests")
    if isinstance(tests, list) and any(isinstance(each, Mapping) and "asserts" in each for each in tests):
        return "a test of a chart"
    groups = document.get("groups")
    if isinstance(groups, list) and any(isinstance(each, Mapping) and "rules" in each for each in groups):
        return "rules of Prometheus"
    return ""


def describe_text(path: str, text: str) -> str:
    """Say what a text of an object is that names resources and asks for none; empty for all others.

    Args:
        path: Where it stands.
        text: The text.
    """
    if path.rpartition(".")[2] in _FOR_PEOPLE:
        return "words for people"
    if not _MARKS.search(text):
        return ""
    try:
        documents = [each.data for each in read_documents(text)]
    except RefusedYamlError:
        return ""
    descriptions = [describe_document(each) if isinstance(each, Mapping) else "" for each in documents]
    return descriptions[0] if descriptions and all(descriptions) else ""
