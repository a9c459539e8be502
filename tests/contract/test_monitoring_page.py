from __future__ import annotations

import os
import re

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.specs.metrics import Alert, Metric, alerts, metrics
from tests.support.pages.documents import ROOT

PAGE = ROOT / "docs" / "monitoring.md"
_BEGIN = "<!-- made by: tests/contract/test_monitoring_page.py -->\n"
_PART = "{begin}.*?<!-- end of {what} -->"


def of_alert(name: str, alert: Alert) -> str:
    usual = f" Its threshold is {alert.threshold:g}." if alert.threshold else ""
    wait = f" after {alert.wait}" if alert.wait != "0m" else ""
    return f"### {name}\n\n{alert.summary} {alert.severity.capitalize()}{wait}.{usual} {alert.means}\n\n{alert.act}\n"


def of_metric(metric: Metric) -> str:
    names = []
    for minor, name in metric.names.items():
        others = [each for each in metric.names if each > minor]
        last = f"to {_before(others[0])}" if others else ""
        since = f"from {minor}" if minor != SUPPORTED_MINORS[0] else ""
        span = " ".join(filter(None, (since, last)))
        names.append(f"`{name}`{f' ({span})' if span else ''}")
    labels = ", ".join(f"`{each}`" for each in metric.labels)
    gate = f"with `{metric.gate}`" if metric.gate else ""
    return f"| {', '.join(names)} | {metric.exposed_by} | {labels} | {gate} |\n"


def _before(minor: str) -> str:
    return SUPPORTED_MINORS[SUPPORTED_MINORS.index(minor) - 1]


def rendered(text: str) -> str:
    parts = {
        "alerts": "\n".join(of_alert(*each) for each in alerts().items()),
        "metrics": "| Metric | Job | Labels | |\n| --- | --- | --- | --- |\n"
        + "".join(map(of_metric, metrics().values())),
    }
    for what, made in parts.items():
        pattern = re.compile(_PART.format(begin=re.escape(_BEGIN), what=what), re.DOTALL)
        # The nearest beginning: that of another part stands before its own end.
        start = text.rindex(_BEGIN, 0, text.index(f"<!-- end of {what} -->"))
        put = f"{_BEGIN}{made}<!-- end of {what} -->"
        text = text[:start] + pattern.sub(lambda _found, put=put: put, text[start:], count=1)
    return text


def test_the_page_has_every_alert_and_metric():
    now = rendered(PAGE.read_text())
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        PAGE.write_text(now)
    assert PAGE.read_text() == now, "run `make golden`, and read what it wrote"
    assert now.count("\n### ") == len(alerts())
    assert "`resourceclaim_controller_resource_claims` (to 1.36)" in now


def test_alerts_are_written_as_those_of_kubernetes_mixin():
    for name, alert in alerts().items():
        assert re.fullmatch(r"(KubeDRA|DraInfraPlugin)([A-Z][a-z]+)+", name)
        assert alert.description.endswith((".", "}}"))
        assert re.fullmatch(r"\d+m", alert.wait)
        assert "by (" not in alert.expr or "cluster" in alert.expr


def test_every_metric_is_used_and_only_metrics_are_named():
    text = (ROOT / "dra_infra" / "catalog" / "data" / "monitoring.yaml").read_text()
    used = set(re.findall(r"<([a-z_]+)>", text.partition("\nalerts:")[2]))
    used = {each.removesuffix("_bucket").removesuffix("_count") for each in used}
    assert used - {"any", "job", "rate", "threshold"} == set(metrics())
