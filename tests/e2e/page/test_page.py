"""The page of a review as people get it: in a browser, at the widths of a phone and of a desk, light and dark.

Pictures of what was looked at are left in `.cache/page/`, for eyes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from tests.e2e.page.browser import Browser

pytestmark = pytest.mark.e2e

PICTURES = Path(__file__).parents[3] / ".cache/page"
WIDTHS = (360, 1280)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
Pages = Callable[[str], Path]

OPEN_ALL = "document.querySelectorAll('details').forEach((each, at) => { if (at < 60) each.open = true })"
AXE = """axe.run(document).then(({violations}) => JSON.stringify(violations.map(
    ({id, help, nodes}) => `${id}: ${help}: ${nodes[0].html.slice(0, 160)}: ${nodes[0].failureSummary}`)))"""
FOCUS = "(document.activeElement.id || document.activeElement.className || document.activeElement.textContent).trim()"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["sample", "empty", "hostile", "joined", "never", "teams", "dense"])
def test_the_page_is_no_wider_than_the_window_and_has_no_barriers(
    browser: Browser, page: Pages, axe: str, name: str, width: int, scheme: Literal["light", "dark"]
):
    browser.show(page(name), width=width, scheme=scheme)
    # Whole, where that is no wall of text.
    browser.picture(PICTURES / f"{name}-{width}-{scheme}.png", whole=name != "hostile")
    browser.run(OPEN_ALL)
    browser.settle()
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    browser.run(f"{axe};0")
    assert json.loads(browser.run(AXE)) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_two_schemes_differ(browser: Browser, page: Pages, width: int):
    colors = set()
    for scheme in SCHEMES:
        browser.show(page("sample"), width=width, scheme=scheme)
        colors.add(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert len(colors) == 2


@pytest.mark.parametrize("name", ["sample", "hostile", "large", "platform"])
def test_nothing_is_loaded_and_nothing_is_blocked_or_thrown(browser: Browser, page: Pages, name: str):
    browser.show(page(name))
    browser.run(OPEN_ALL)
    browser.settle()
    assert browser.requests == [page(name).resolve().as_uri()]
    assert browser.complaints == []


def test_texts_of_others_do_not_run(browser: Browser, page: Pages):
    browser.show(page("hostile"))
    browser.run(OPEN_ALL)
    browser.settle()
    assert "hit" not in browser.run("document.title.split(':')")
    assert browser.run("document.querySelectorAll('img, script:not(#diffs)').length") == 1
    assert browser.run("document.body.innerText.includes('\\u202e')") is False


def test_a_script_that_is_not_the_page_s_own_does_not_run(browser: Browser, page: Pages, tmp_path: Path):
    text = page("sample").read_text(encoding="utf-8")
    changed = tmp_path / "changed.html"
    changed.write_text(
        text.replace("</body>", "<script>document.title = 'hit'</script></body>"), encoding="utf-8"
    )
    browser.show(changed)
    assert browser.run("document.title") != "hit"
    assert any("Content Security Policy" in each for each in browser.complaints)


WORK_SECONDS = 0.05
WORK = """(() => {
  const list = document.createElement("ul")
  for (let number = 0; number < 40000; number++) {
    const each = list.appendChild(document.createElement("li"))
    each.className = "change"
    each.textContent = `serve-${number}`
  }
  return list.children.length
})()"""


def test_five_thousand_objects_can_be_used_within_a_second(
    browser: Browser, page: Pages, record_property: Callable[[str, object], None]
):
    """Counted in time of the page's thread, for other tests run on the same processors; the clock is told too.

    Where a processor is slower than that on which a second was promised, as `WORK` tells, the page has so much longer.
    """
    file = page("large")
    browser.count_thread_time()
    measured = []
    work = []
    for _ in range(5):
        browser.show(file)
        browser.settle()
        clock = browser.run("performance.now()")
        loaded = browser.thread_seconds()
        assert browser.run(WORK) == 40_000
        work.append(browser.thread_seconds() - loaded)
        measured.append((loaded, clock / 1000))
    browser.run("document.getElementById('find').focus()")
    before = browser.thread_seconds()
    browser.write("serve-77")
    browser.settle()
    typing = (browser.thread_seconds() - before) / len("serve-77")
    assert browser.run("document.getElementById('found').textContent") == "11 of 5,000 shown"
    thread, clock = min(measured)
    told = (
        f"5,000 objects, 500 nodes, {file.stat().st_size / 1e6:.1f} MB: usable after {thread:.2f} s of its thread, "
        f"{clock:.2f} s by the clock; {1000 * typing:.0f} ms per key in the filter"
    )
    record_property("page", told)
    print(told)
    slower = max(1.0, min(work) / WORK_SECONDS)
    assert thread < 1 * slower
    assert typing < 0.2 * slower
    assert file.stat().st_size < 6_000_000


def test_five_thousand_nodes_and_a_thousand_workloads_are_a_small_page(
    browser: Browser, page: Pages, record_property: Callable[[str, object], None]
):
    """What bounds the browser's work is counted; the time that it took is told, and `large` is held to a second."""
    file = page("platform")
    browser.count_thread_time()
    browser.show(file)
    browser.settle()
    seconds = browser.thread_seconds()
    size = file.stat().st_size
    elements = browser.run("document.querySelectorAll('*').length")
    drawn = browser.run("[...document.querySelectorAll('*')].filter((each) => each.checkVisibility()).length")
    told = (
        f"5,000 nodes, 1,000 workloads, {size / 1e6:.2f} MB, {elements:,} elements of which {drawn:,} show: "
        f"usable after {seconds:.2f} s of its thread"
    )
    record_property("platform", told)
    print(told)
    assert size < 1_500_000
    assert elements < 12_000
    assert drawn < 1_500
    assert browser.run("document.documentElement.scrollHeight") < 6_000


def test_what_stays_is_folded_by_namespace_and_opened_by_key(browser: Browser, page: Pages):
    browser.show(page("platform"))
    folds = "[...document.querySelectorAll('.stays > summary')]"
    assert browser.run(f"{folds}.map((each) => each.textContent.split(':')[0])")[:3] == [
        "ads",
        "fraud",
        "maps",
    ]
    browser.run(f"{folds}[0].focus()")
    assert browser.run("document.activeElement.parentElement.open") is False
    browser.press("Enter")
    rows = "document.activeElement.parentElement.querySelectorAll('tbody tr')"
    assert browser.run(f"{rows}.length") == browser.run(
        "parseInt(document.activeElement.textContent.split(' ')[1])"
    )
    assert "hgx-h100-0000 (gpu-0" in browser.run(f"{rows}[0].innerText")
    browser.press("Tab")
    assert browser.run("document.activeElement.textContent").startswith("fraud: ")
    assert browser.run("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 2


def test_the_objects_of_a_pod_are_opened_by_key(browser: Browser, page: Pages):
    browser.show(page("platform"))
    summary = "document.querySelector('details:has(> .chain) > summary')"
    browser.run(f"{summary}.focus()")
    browser.press("Enter")
    chain = browser.run(
        f"[...{summary}.parentElement.querySelectorAll('.chain > li')].map((part) => part.innerText.split(' ')[0])"
    )
    assert chain[:5] == ["pod", "claim", "class", "devices", "node"]
    assert browser.run(f"{summary}.parentElement.querySelector('.chain').getBoundingClientRect().height") > 0


def test_the_map_of_many_nodes_is_one_picture_with_a_table_in_words(browser: Browser, page: Pages):
    browser.show(page("platform"))
    pictures = browser.accessible("img")
    assert "kinds of nodes; the map as a table says what they hold" in " ".join(pictures)
    browser.run(
        "[...document.querySelectorAll('summary')].find((each) => each.textContent.includes('as a table')).click()"
    )
    browser.settle()
    table = "document.querySelector('#fleet table.fleet')"
    assert browser.run(f"{table}.querySelectorAll('tbody tr').length") > 10
    assert "for namespace fraud" in browser.run(f"{table}.innerText")


def test_one_namespace_is_picked_out_on_the_map_by_key(browser: Browser, page: Pages):
    browser.show(page("platform"))
    of_fraud = browser.run(
        "[...document.querySelectorAll('.legend label')].find((each) => each.innerText.startsWith('fraud')).querySelector('input').value"
    )
    colors = "(() => { const style = getComputedStyle(document.querySelector('.dense')); return [0, 1, 2, 3, 4, 5, 6, 7, 8].map((each) => style.getPropertyValue(`--c${each}`) !== style.getPropertyValue('--cell')) })()"
    assert browser.run(colors) == [True] * 9
    browser.run(f"document.getElementById('w{of_fraud}').focus()")
    browser.press(" ")
    assert browser.run("document.getElementById('fleet').dataset.show") == of_fraud
    assert browser.run(colors) == [str(color) == of_fraud for color in range(9)]


def test_a_diff_is_drawn_when_it_is_opened(browser: Browser, page: Pages):
    browser.show(page("large"))
    last = "document.querySelector('.change:last-of-type')"
    assert browser.run(f"{last}.querySelector('pre')") is None
    browser.run(f"{last}.open = true")
    browser.settle()
    assert "maxSurge" not in browser.run(f"{last}.querySelector('pre').innerText")
    assert browser.run(f"{last}.querySelector('pre').ariaLabel").startswith("Diff of Deployment ml/serve-")
    assert browser.run(f"[...{last}.querySelectorAll('.add mark')].map((each) => each.textContent)") == ["2"]


def test_a_keyboard_reaches_everything(browser: Browser, page: Pages):
    browser.show(page("sample"))
    browser.press("Tab")
    assert browser.run(FOCUS) == "skip"
    browser.press("Enter")
    assert browser.run(FOCUS) == "main"
    reached = []
    for _ in range(60):
        browser.press("Tab")
        reached.append(
            browser.run(f"document.activeElement.matches('.change > summary') ? 'summary' : {FOCUS}")
        )
    assert {"find", "toggle", "summary", "w-all"} <= set(reached)
    assert reached.index("w-all") < reached.index("find") < reached.index("summary")
    # Every place where the focus stops can be seen.
    browser.run("document.querySelector('.change > summary').focus()")
    browser.press("Tab", shift=True)
    browser.press("Tab")
    assert browser.run("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 2
    assert browser.run("document.activeElement.parentElement.open") is True
    browser.press("Enter")
    assert browser.run("document.activeElement.parentElement.open") is False


def test_the_list_is_searched_and_filtered_by_key(browser: Browser, page: Pages):
    browser.show(page("sample"))
    browser.press("/")
    assert browser.run(FOCUS) == "find"
    browser.write("TRAIN gpuclaim")
    assert browser.run("document.getElementById('found').textContent") == "1 of 10 shown"
    assert (
        browser.run("document.querySelector('.change:not([hidden])').innerText").count("trainer-8d21c04e")
        == 1
    )
    browser.press("Escape")
    browser.press("Tab")
    browser.press(" ")
    assert browser.run("document.activeElement.ariaPressed") == "true"
    assert browser.run("document.getElementById('found').textContent") == "4 of 10 shown"
    shown = browser.run(
        "[...document.querySelectorAll('.change:not([hidden])')].map((each) => each.classList[1])"
    )
    assert set(shown) == {"replaced"}
    browser.run("document.getElementById('toggle').click()")
    assert browser.run("document.querySelectorAll('.change[open]').length") == 4


def test_a_finding_leads_to_its_change_and_opens_it(browser: Browser, page: Pages):
    browser.show(page("sample"))
    browser.run("document.querySelector('.findings a[href^=\"#c\"]').click()")
    browser.settle()
    assert browser.run("document.querySelector(':target').open") is True
    assert browser.run("document.querySelector(':target .name').textContent") == "ml/pretrain"
    assert browser.run(
        "Math.abs(document.querySelector(':target').getBoundingClientRect().top) < innerHeight"
    )


def test_one_workload_is_picked_out_on_the_map(browser: Browser, page: Pages):
    browser.show(page("sample"))
    browser.run("document.getElementById('w4').click()")
    seen = "[...document.querySelectorAll('.tile .cell:not(.join)')].filter((each) => getComputedStyle(each).opacity === '1')"
    browser.run("Promise.all(document.getAnimations().map((each) => each.finished)).then(() => 0)")
    assert browser.run(
        f"{seen}.map((each) => each.textContent).every((text) => /Job ml.train|^E+$/.test(text))"
    )
    assert browser.run(f"{seen}.length") >= 4


def test_the_page_can_be_read_where_scripts_do_not_run(browser: Browser, page: Pages):
    browser.show(page("sample"), scripts=False)
    assert browser.run("document.getElementById('tools').checkVisibility()") is False
    assert browser.run("document.querySelectorAll('.change pre').length") == 10
    assert "batch-size" in browser.run("document.querySelector('.change[open] pre').textContent")


def test_on_paper_the_diffs_are_open_and_what_is_clicked_is_left_out(browser: Browser, page: Pages):
    browser.show(page("sample"))
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.emulate_print(on=True)
    assert browser.run("document.querySelectorAll('.change[open]').length") == 10
    assert browser.run("document.getElementById('tools').checkVisibility()") is False
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    browser.picture(PICTURES / "sample-print.png")
    browser.emulate_print(on=False)
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run("document.querySelectorAll('.change[open]').length") == 1
