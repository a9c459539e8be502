"""Queries of the dashboard, put to Prometheus' engine over samples that were scraped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.monitoring.conftest import Tool, objects_of
from tests.support.monitoring.scraping import MINUTES, Sample


def queries_of(minor: str, *exposed_by: str) -> list[str]:
    """The queries of a minor's dashboard that ask *exposed_by*, with the variables filled in as Grafana does."""
    [text] = objects_of(minor)["ConfigMap"]["data"].values()
    targets = [target for panel in json.loads(text)["panels"] for target in panel["targets"]]
    filled = [
        each["expr"].replace("$__rate_interval", "5m").replace('"$cluster"', '".*"') for each in targets
    ]
    return [each for each in filled if any(f'job="{job}"' in each for job in exposed_by)]


def ask(promtool: Tool, folder: Path, queries: Sequence[str], samples: Sequence[Sample]) -> tuple[int, str]:
    """The answer of promtool: 0 where every query returns series."""
    asked: list[dict[str, Any]] = [
        {
            "expr": f"count({query}) > bool 0",
            "eval_time": f"{MINUTES}m",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for query in queries
    ]
    test = {
        "interval": "1m",
        "input_series": [each.to_series() for each in samples],
        "promql_expr_test": asked,
    }
    file = folder / "queries.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [test]}))
    said = promtool("test", "rules", file)
    return said.returncode, said.stdout
