"""Samples as servers expose them: which metrics they are of, and as input of promtool."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from dra_infra.specs.metrics import Metric, metrics
from dra_infra.target import Release

MINUTES = 20


@dataclass(frozen=True)
class Sample:
    """One line of a text of metrics, with the job that it was scraped by."""

    name: str
    labels: Mapping[str, str]
    value: float

    def to_series(self) -> dict[str, str]:
        """A series as promtool reads it, that grows by the value each minute."""
        labels = ", ".join(f"{key}={json.dumps(value)}" for key, value in self.labels.items())
        return {"series": f"{self.name}{{{labels}}}", "values": f"{self.value:g}+{self.value:g}x{MINUTES}"}


def read(job: str, text: str) -> list[Sample]:
    """The samples of a server, as Prometheus has them once it has scraped *job*."""
    return [
        Sample(each.name, {**each.labels, "job": job}, each.value)
        for family in text_string_to_metric_families(text)
        for each in family.samples
        if math.isfinite(each.value)
    ]


def missing(samples: Iterable[Sample], release: Release, *exposed_by: str) -> dict[str, str]:
    """Metrics of the catalogue that nobody exposes in *samples*, or not with their labels, by key: why."""
    seen: dict[str, set[str]] = {}
    for each in samples:
        seen.setdefault(each.name, set()).update(each.labels)
    return {
        key: why
        for key, metric in metrics().items()
        if metric.exposed_by in exposed_by and (why := _why(metric, release, seen))
    }


def _why(metric: Metric, release: Release, seen: Mapping[str, set[str]]) -> str:
    name = metric.name_in(release)
    if not name:
        return ""
    for part in (f"{name}_bucket", f"{name}_count") if metric.form == "histogram" else (name,):
        if part not in seen:
            return f"{part} is not exposed"
        if absent := set(metric.labels) - seen[part]:
            return f"{part} has no label {', '.join(sorted(absent))}"
    return ""


def named_in_catalogue(samples: Iterable[Sample], release: Release) -> list[Sample]:
    """Samples of the catalogue's metrics alone."""
    known = {each.name_in(release) for each in metrics().values()} - {""}
    known |= {f"{name}{part}" for name in known for part in ("_bucket", "_count")}
    return [each for each in samples if each.name in known]
