from __future__ import annotations

import os
import re
from collections import Counter

import pytest

from dra_infra.cli.explain import read_codes
from dra_infra.codes import CODES
from dra_infra.codes.authoring import AUTHORING
from dra_infra.codes.clusters import CLUSTERS
from dra_infra.codes.migrations import MIGRATIONS
from dra_infra.codes.objects import OBJECTS
from dra_infra.codes.reviews import REVIEWS
from dra_infra.codes.upgrades import UPGRADES
from tests.support.pages import problem_pages
from tests.support.pages.documents import ROOT

# Without the tables of the codes, where each of them stands.
SOURCES = {
    path: path.read_text()
    for path in sorted((ROOT / "dra_infra").rglob("*.py"))
    if path.parent.name != "codes"
}
TESTS = "\n".join(
    path.read_text() for path in sorted((ROOT / "tests").rglob("*.py")) if path.name != "test_errors.py"
)


def used_codes() -> set[str]:
    # Quoted slugs behind `code=`, and codes handed on as a first argument of a function that makes problems.
    return {code for code in CODES if any(f'"{code}"' in text for text in SOURCES.values())}


def test_every_code_is_used():
    assert set(CODES) - used_codes() == set()


def test_every_code_that_the_package_writes_is_in_the_catalogue():
    written = {code for text in SOURCES.values() for code in re.findall(r'\bcode="([a-z0-9-]+)"', text)}
    assert written - set(CODES) == set()


def test_no_code_stands_in_two_tables():
    tables = [AUTHORING, CLUSTERS, MIGRATIONS, OBJECTS, REVIEWS, UPGRADES]
    assert Counter(code for table in tables for code in table) == Counter(list(CODES))


def test_every_code_is_documented_once_and_every_documented_code_exists():
    documented = Counter(code for page in problem_pages.pages() for code, _ in page.sections)
    assert documented == Counter(list(CODES))


@pytest.mark.parametrize("page", problem_pages.pages(), ids=lambda page: page.area)
def test_every_section_says_something(page: problem_pages.Page):
    assert page.title
    assert [code for code, text in page.sections if len(text.split()) < 4] == []


@pytest.mark.parametrize("name", ["index", "shipped"])
def test_what_is_written_from_the_pages_says_what_they_say(name: str):
    path = {"index": problem_pages.INDEX, "shipped": problem_pages.SHIPPED}[name]
    now = getattr(problem_pages, name)()
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        path.write_text(now)
    assert path.read_text() == now, "run `make golden`, and read what it wrote"


def test_the_command_reads_every_section():
    told = read_codes()
    assert {code: each.area for code, each in told.items()} == {
        code: page.area for page in problem_pages.pages() for code, _ in page.sections
    }
    assert [code for code, each in told.items() if not each.text or "](" in each.text] == []


def test_every_code_is_triggered_by_a_test():
    assert {code for code in CODES if f'"{code}"' not in TESTS} == set()
