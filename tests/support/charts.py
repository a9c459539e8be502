"""Charts for tests: real ones where the user names a folder of them, else stand-ins made of the values of the real ones.

A stand-in has the name, the version, the values and the CRDs of the chart that it stands for, a schema that knows no
other values, and a few templates of ours. The schema comes from the values file, not from our catalogue, so that a key
that the catalogue has wrong fails the install. Nothing of the files that it is made of is kept.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dra_infra.catalog.charts import Chart, charts
from dra_infra.catalog.drivers import ShippedClass, drivers
from tools.chart_keys import key_types

TESTDATA = "DRA_INFRA_TESTDATA"
"""Environment variable: folder with `chart-values` and `crds` of other projects."""

REAL_CHARTS = "DRA_INFRA_CHARTS"
"""Environment variable: folder with real charts, `<name>-<version>.tgz` or `<name>-<version>/`."""

SOURCES = {
    "0.5.0": "main-95932046",
}
"""Versions whose files were read before the release, and the name of what was read."""

FREE = {"gpu-operator": ("node-feature-discovery",)}
"""Values of subcharts, whose keys are not in the values file."""

JSON_TYPES = {"list": "array", "map": "object", "bool": "boolean", "int": "integer"}

DRIVER_CHARTS = ("nvidia-dra-driver-gpu", "dra-driver-nvidia-gpu")

NAMING = """{{- define "name" -}}{{ .Values.nameOverride | default .Chart.Name }}{{- end -}}
"""

VALUES = """apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-values
  namespace: {{ .Release.Namespace }}
data:
  chart: {{ .Chart.Name }}-{{ .Chart.Version }}
  values: {{ toJson .Values | quote }}
"""

CONTROLLER = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "name" . }}-controller
  namespace: {{ .Release.Namespace }}
spec:
  # Nobody runs it; its selector, which cannot be changed, is what tests look at.
  replicas: 0
  selector: &selector
    matchLabels: &labels
      app.kubernetes.io/name: {{ include "name" . }}
      app.kubernetes.io/instance: {{ .Release.Name }}
      {{ include "name" . }}-component: controller
  template:
    metadata: {labels: *labels}
    spec:
      containers: [{name: controller, image: "registry.invalid/controller:1"}]
"""

REFUSALS = """{{- if and (eq .Release.Namespace "default") (not .Values.allowDefaultNamespace) }}
{{- fail "the namespace default needs allowDefaultNamespace=true" }}
{{- end }}
{{- if and .Values.resources.gpus.enabled (not .Values.gpuResourcesEnabledOverride) }}
{{- fail "resources.gpus.enabled=true needs gpuResourcesEnabledOverride=true" }}
{{- end }}
"""

CUSTOM_RESOURCES = """{{- if (.Values.clusterPolicy | default (dict "deployCR" true)).deployCR }}
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec:
  daemonsets: {}
  dcgm: {}
  dcgmExporter: {}
  devicePlugin: {enabled: {{ .Values.devicePlugin.enabled }}}
  driver: {}
  gfd: {}
  nodeStatusExporter: {}
  operator: {defaultRuntime: containerd}
  toolkit: {}
{{- end }}
"""


EXTRA_OBJECTS = """{{- range .Values.extraObjects }}
---
{{ tpl (toYaml .) $ }}
{{- end }}
"""


@dataclass(frozen=True, kw_only=True)
class ChartFolder:
    """A chart on this machine.

    Args:
        name: Of the chart.
        version: As in `Chart.yaml`, `v26.7.0` for the operator.
        path: Folder or archive.
        crds: The definitions that it brings; of a real chart, those of the test data.
        real: Not a stand-in.
    """

    name: str
    version: str
    path: Path
    crds: tuple[dict[str, Any], ...]
    real: bool


def find_testdata(environment: Mapping[str, str]) -> Path | None:
    """Return the folder of the test data, None where it is not named or not whole."""
    folder = Path(environment.get(TESTDATA) or "not-named")
    return folder if (folder / "chart-values").is_dir() and (folder / "crds").is_dir() else None


def known_versions(testdata: Path) -> list[tuple[str, str]]:
    """Return the charts and versions that the test data has values of."""
    return [
        (name, version)
        for name, chart in charts().items()
        for version in chart.versions
        if _values_file(testdata, name, version).is_file()
    ]


def provide(folder: Path, name: str, version: str, testdata: Path) -> ChartFolder:
    """Return the real chart where the user has it, else a stand-in made below *folder*."""
    chart = charts()[name]
    written = chart.helm_version(version)
    crds = tuple(_read_crds(testdata, name, version))
    real = _find_real(name, written)
    path = real or folder / f"{name}-{written}"
    if real is None and not path.exists():
        _write(path, name, version, testdata)
    return ChartFolder(name=name, version=written, path=path, crds=crds, real=real is not None)


def write_chart(
    path: Path,
    *,
    version: str = "1.0.0",
    values: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    templates: Mapping[str, str] | None = None,
    crds: Mapping[str, str] | None = None,
    **metadata: str,
) -> Path:
    """Write a chart, named as its folder where *metadata* has no name, and return its folder."""
    if path.exists():
        shutil.rmtree(path)
    about = {"apiVersion": "v2", "name": path.name, "version": version, **metadata}
    files = {"Chart.yaml": yaml.safe_dump(about), "values.yaml": yaml.safe_dump(dict(values or {}))}
    if schema is not None:
        files["values.schema.json"] = json.dumps(schema)
    files |= {f"templates/{name}": text for name, text in (templates or {"values.yaml": VALUES}).items()}
    files |= {f"crds/{name}": text for name, text in (crds or {}).items()}
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def _write(path: Path, name: str, version: str, testdata: Path) -> None:
    chart = charts()[name]
    values = yaml.safe_load(_values_file(testdata, name, version).read_text())
    types = dict(key_types(values, free=FREE.get(name, ()))) | dict(_unlisted(chart, version))
    types |= {path: type_ for path, type_ in chart.types.items() if path in types}
    metadata = {"name": name, "appVersion": chart.app_version(version)}
    if chart.versions[version].kubernetes:
        metadata["kubeVersion"] = chart.versions[version].kubernetes
    write_chart(
        path,
        version=chart.helm_version(version),
        values=values,
        schema=_schema(types),
        templates=_templates(name, version),
        crds={file.name: file.read_text() for file in _crd_files(testdata, name, version)},
        **metadata,
    )


def _templates(name: str, version: str) -> dict[str, str]:
    templates = {"values.yaml": VALUES}
    if name == "gpu-operator":
        return templates | {"custom-resources.yaml": CUSTOM_RESOURCES, "extra-objects.yaml": EXTRA_OBJECTS}
    classes = {f"class-{index}.yaml": text for index, text in enumerate(_classes(name, version))}
    if name not in DRIVER_CHARTS:
        return templates | classes
    return (
        templates | classes | {"_name.tpl": NAMING, "controller.yaml": CONTROLLER, "refusals.yaml": REFUSALS}
    )


def _classes(name: str, version: str) -> Iterator[str]:
    """Yield a template for each class that the catalogue says the version renders, and when."""
    chart = charts()[name]
    line = chart.versions[version].line
    product = "NVIDIA DRA driver" if name in DRIVER_CHARTS else "DRA example driver"
    for driver in drivers().values():
        release = driver.by_line.get(line)
        if driver.product != product or release is None:
            continue
        for shipped in release.classes:
            body = yaml.safe_dump(device_class(shipped))
            if name not in DRIVER_CHARTS:
                yield body
                continue
            part = "computeDomains" if driver.name.startswith("compute-domain") else "gpus"
            yield f"{{{{- if .Values.resources.{part}.enabled }}}}\n{body}{{{{- end }}}}\n"


def device_class(shipped: ShippedClass) -> dict[str, Any]:
    """Return a class of the catalogue as an object."""
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": shipped.expression}}]}
    if shipped.extended_resource_name:
        spec["extendedResourceName"] = shipped.extended_resource_name
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": shipped.name},
        "spec": spec,
    }


def _unlisted(chart: Chart, version: str) -> Iterator[tuple[str, str]]:
    line = chart.versions[version].keys
    return ((path, value.type) for path, value in chart.unlisted.items() if value.is_in(line))


def _schema(types: Mapping[str, str]) -> dict[str, Any]:
    """Return a schema that knows the paths of *types* and no other."""
    root: dict[str, Any] = _closed()
    for path, type_ in sorted(types.items()):
        *above, last = path.split(".")
        place = root
        for key in above:
            below = place["properties"].setdefault(key, _closed())
            # A mapping of which entries are known takes only those.
            below.setdefault("properties", {})
            below["additionalProperties"] = False
            place = below
        place["properties"].setdefault(last, _leaf(type_))
    return root


def _closed() -> dict[str, Any]:
    return {"type": ["object", "null"], "properties": {}, "additionalProperties": False}


def _leaf(type_: str) -> dict[str, Any]:
    if type_ == "any":
        return {}
    return {"type": [*(JSON_TYPES.get(each, each) for each in type_.split("|")), "null"]}


def _values_file(testdata: Path, name: str, version: str) -> Path:
    return testdata / "chart-values" / f"{name}-{SOURCES.get(version, f'v{version}')}.yaml"


def _crd_files(testdata: Path, name: str, version: str) -> list[Path]:
    folder = testdata / "crds" / f"{name}-{SOURCES.get(version, f'v{version}')}"
    return sorted(folder.glob("*.yaml"))


def _read_crds(testdata: Path, name: str, version: str) -> Iterator[dict[str, Any]]:
    for file in _crd_files(testdata, name, version):
        yield yaml.load(file.read_text(), yaml.CSafeLoader)


def _find_real(name: str, version: str) -> Path | None:
    folder = os.environ.get(REAL_CHARTS)
    if not folder:
        return None
    for path in (Path(folder, f"{name}-{version}"), Path(folder, f"{name}-{version}.tgz")):
        if path.exists():
            return path
    return None
