"""Ported modules name their upstream sources, these exist, and what changed from 1.36 to 1.37 is found in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_infra.kubernetes.api.patches import COMPARED_PATCHES, PATCH_ROWS
from tools.upstream.changes import find_changes, find_missing
from tools.upstream.modules import KUBERNETES, Sources, module_cache
from tools.upstream.ported import PACKAGE, PortedModule, load

MODULES = load()
PORTED = [each for each in MODULES if each.files]
NEWEST, BEFORE = "1.37", "1.36"
NEWEST_NUMBER = 37
CHANGED_MEANWHILE = 60
"""Ported modules that changed upstream from 1.36 to 1.37, at least."""


def sources_of(minor: str) -> Sources:
    """The sources of the patch that the servers of a minor are built from; skips where they were not downloaded."""
    cache = module_cache()
    if cache is None:
        pytest.skip("there is no Go here, so no module cache")
    release = f"v{COMPARED_PATCHES[minor]}"
    sources = Sources(release=release, cache=cache)
    if sources.folder(KUBERNETES) is None:
        pytest.skip(
            f"{KUBERNETES} {release} is not in Go's module cache: `make tools` or `make upstream` downloads it"
        )
    return sources


def has_all(module: PortedModule, *releases: Sources) -> bool:
    return all(each.folder(file.module) is not None for each in releases for file in module.files)


def distinguishes(path: Path, number: int) -> Iterator[int]:
    """Lines in which a module tells a minor from the one before it: its number, or a comparison that ends with the one before."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and node.value == number and type(node.value) is int:
            yield node.lineno
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.LtE | ast.Gt):
            right = node.comparators[0]
            if isinstance(right, ast.Constant) and right.value == number - 1:
                yield node.lineno


def test_every_module_has_an_upstream_source_or_says_why_it_has_none():
    there = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    assert {each.name for each in MODULES} == there
    assert [each.name for each in MODULES] == sorted(each.name for each in MODULES)
    assert [each.name for each in MODULES if bool(each.files) == bool(each.ours)] == []


def test_files_of_the_table_of_patches_are_sources_of_ported_modules():
    known = {file.text for module in PORTED for file in module.files}
    assert {file for row in PATCH_ROWS.values() for file in row.files} <= known


def test_every_upstream_source_exists_in_the_release_that_we_compare_with():
    sources = sources_of(NEWEST)
    here = [each for each in PORTED if has_all(each, sources)]
    if not here:
        pytest.skip("no module that a ported module needs was downloaded")
    assert [missing for each in here for missing in find_missing(each, sources, NEWEST_NUMBER)] == []


def test_a_module_that_tells_1_37_from_1_36_names_the_declarations_that_changed():
    told = {each.name for each in MODULES if not each.ours and list(distinguishes(each.path, NEWEST_NUMBER))}
    assert told <= {each.name for each in MODULES if each.differs.get(NEWEST)}


def test_what_the_port_tells_apart_between_1_36_and_1_37_is_listed_as_changed():
    newer, older = sources_of(NEWEST), sources_of(BEFORE)
    here = [each for each in PORTED if has_all(each, older, newer)]
    if not here:
        pytest.skip("no module that a ported module needs was downloaded for both minors")
    changed = {each.name: {change.name for change in find_changes(each, older, newer)} for each in here}
    unlisted = [
        f"{each.name}: {name}"
        for each in here
        for name in each.differs.get(NEWEST, ())
        if name not in changed[each.name]
    ]
    assert unlisted == []
    if len(here) == len(PORTED):
        assert sum(map(bool, changed.values())) >= CHANGED_MEANWHILE
