"""The CustomResourceDefinitions that go before a chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dra_infra.errors import Problem, ProblemsError
from dra_infra.model.yaml import read_manifests

_KIND = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def read_definitions(text: str, *, file: str) -> tuple[list[dict[str, Any]], list[Problem]]:
    """The definitions in a text, and problems at `crds`: those of `read_manifests`, and `not-a-crd`.

    Args:
        text: YAML of one file.
        file: Its name, for messages.
    """
    try:
        found = read_manifests(text, file=file)
    except ProblemsError as error:
        return [], [problem.below("crds") for problem in error.problems]
    definitions = [each for each in found if (each.get("apiVersion"), each.get("kind")) == _KIND]
    return definitions, list(_refuse(found, file))


def _refuse(found: tuple[dict[str, Any], ...], file: str) -> Iterator[Problem]:
    for each in found:
        metadata = each.get("metadata")
        named = isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
        if (each.get("apiVersion"), each.get("kind")) != _KIND or not named:
            yield Problem(
                path="crds",
                code="not-a-crd",
                message=f"{file} holds a {str(each.get('kind'))[:80]} of {str(each.get('apiVersion'))[:80]}"
                + ("" if named else " without a name"),
                hint="point at the folder crds/ of the chart; everything else is installed by the chart",
            )
