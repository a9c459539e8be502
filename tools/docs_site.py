"""Build the site of the documentation, offline: ``python -m tools.docs_site`` or ``make docs``.

README, docs, examples and what they link to become one tree of pages: mkdocs checks every link and anchor of it. The site
loads nothing from elsewhere, which is checked at the end.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from tools import cache
from tools.errors import ToolError

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = ROOT / ".cache" / "docs"
PINS: Final = ROOT / "requirements" / "docs.txt"
PAGES_VARIABLE: Final = "DRA_INFRA_DOCS_PAGES"
"""Names the folder of pages to mkdocs.yml."""

_LINK: Final = re.compile(r"(?P<before>\]\()(?P<target>[^)\s#]+)(?P<after>#[^)\s]*)?\)")
_FENCE: Final = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LOADING: Final = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
    "embed": "src",
}
_ELSEWHERE: Final = re.compile(r"(?:https?:)?//", re.IGNORECASE)
_LOADED_BY_STYLE: Final = re.compile(
    r"(?:@import\s+|url\()\s*['\"]?((?:https?:)?//[^'\")\s]+)", re.IGNORECASE
)


def main() -> None:
    """Build, check, and say where it is."""
    try:
        python = environment()
        site = build(python)
    except ToolError as error:
        sys.exit(f"make docs: {error}")
    print(f"the site: {site / 'index.html'}")


def build(python: Path, folder: Path = FOLDER) -> Path:
    """The built site.

    Args:
        python: Python of an environment with mkdocs.
        folder: Gets the pages and the site.

    Raises:
        ToolError: When mkdocs warns of anything, or a page would load something from elsewhere.
    """
    source = folder / "pages"
    site = folder / "site"
    shutil.rmtree(source, ignore_errors=True)
    for page, text in pages(ROOT).items():
        (source / page).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, str):
            (source / page).write_text(text, encoding="utf-8")
        else:
            shutil.copyfile(text, source / page)
    command = [
        *(str(python), "-m", "mkdocs", "build", "--strict"),
        *("--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(site)),
    ]
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        # Material advertises its successor otherwise.
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", PAGES_VARIABLE: str(source)},
    )
    if result.returncode:
        raise ToolError(f"mkdocs: {result.stdout}{result.stderr}")
    found = [
        f"{path.relative_to(site)}: {address}"
        for path in sorted(site.rglob("*"))
        for address in loads_from(path)
    ]
    if found:
        raise ToolError("the site would load from elsewhere:\n" + "\n".join(found))
    return site


def pages(root: Path) -> dict[str, str | Path]:
    """Path in the site → text of a page, or the file that is copied there.

    Raises:
        ToolError: When a page links to what is not there.
    """
    sources = _sources(root)
    places = {source: page for page, source in sources.items()}
    found: dict[str, str | Path] = {}
    for page, source in sources.items():
        text = (
            _recipe(source.parent)
            if page.startswith("how-to/") and page != "how-to/index.md"
            else source.read_text()
        )
        found[page] = _relinked(text, page, source, places, root, found)
    found["how-to/index.md"] = _overview(root)
    return found


def loads_from(path: Path) -> Iterator[str]:
    """Addresses elsewhere that a browser would ask when it shows the file: scripts, styles, fonts, pictures, frames."""
    if path.suffix == ".html":
        parser = _Loads()
        parser.feed(path.read_text(encoding="utf-8"))
        yield from parser.found
    elif path.suffix == ".css":
        yield from _LOADED_BY_STYLE.findall(path.read_text(encoding="utf-8"))


class _Loads(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        # Where a page is at home is said, not loaded.
        if tag == "link" and given.get("rel") in ("canonical", "prev", "next", "edit"):
            return
        address = given.get(_LOADING.get(tag, ""), "")
        if _ELSEWHERE.match(address.strip()):
            self.found.append(address)
        self.found += _LOADED_BY_STYLE.findall(given.get("style", ""))
        self._in_style = tag == "style"

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.found += _LOADED_BY_STYLE.findall(data)
            self._in_style = False


def _sources(root: Path) -> dict[str, Path]:
    found = {"index.md": root / "README.md", "contributing.md": root / "CONTRIBUTING.md"}
    found["changelog.md"] = root / "CHANGELOG.md"
    for source in sorted((root / "docs").rglob("*.md")):
        found[source.relative_to(root / "docs").as_posix()] = source
    for source in sorted((root / "examples").glob("*/README.md")):
        found[f"how-to/{source.parent.name}.md"] = source
    return found


def _recipe(folder: Path) -> str:
    """What an example says, with its program and the objects of it; or its programs, each in a folder of its own."""
    text = (folder / "README.md").read_text()
    for program in sorted(folder.rglob("*.py")):
        whose = "" if program.parent == folder else f" of {program.parent.name}"
        text += f"\n## The program{whose}\n\n```python\n{program.read_text()}```\n"
        objects = program.parent / "expected.yaml"
        if objects.exists():
            text += f"\n## {f'The objects{whose}' if whose else 'Its objects'}\n\n```yaml\n{objects.read_text()}```\n"
    return text


def _overview(root: Path) -> str:
    lines = [
        "# Recipes\n",
        "Each is a program to copy, with what it compiles to; the tests run all of them.\n",
    ]
    for source in sorted((root / "examples").glob("*/README.md")):
        title = source.read_text().partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({source.parent.name}.md)")
    return "\n".join(lines) + "\n"


def _relinked(
    text: str,
    page: str,
    source: Path,
    places: Mapping[Path, str],
    root: Path,
    files: dict[str, str | Path],
) -> str:
    """*text* with links to where the pages are in the site; other files of the repository come along."""

    def replace(link: re.Match[str]) -> str:
        target = link["target"]
        if re.match(r"[a-z]+:", target):
            return link[0]
        linked = (source.parent / target).resolve()
        if linked == root / "examples":
            place = "how-to/index.md"
        elif linked == root / "docs" / "adr":
            place = "adr/0001-components-report-specs-raise.md"
        else:
            linked = linked / "README.md" if linked.is_dir() else linked
            if not linked.is_file() or not linked.is_relative_to(root):
                raise ToolError(f"{source.relative_to(root)} links to {target}, which is not there")
            place = places.get(linked) or _file_of(linked.relative_to(root).as_posix())
            if linked not in places:
                files[place] = linked
        relative = os.path.relpath(place, Path(page).parent)
        return f"{link['before']}{relative}{link['after'] or ''})"

    parts = _FENCE.split(text)
    return "".join(part if index % 2 else _LINK.sub(replace, part) for index, part in enumerate(parts))


def _file_of(path: str) -> str:
    # What is Markdown and no page, such as a report beside an example, is shown as it is written.
    return f"files/{path}.txt" if path.endswith(".md") else f"files/{path}"


def environment() -> Path:
    """The Python of an environment from the hashed pins, made once for them."""
    home = FOLDER / "venv"
    python = home / "bin" / "python"
    stamp = home / "pins.sha256"
    pins = hashlib.sha256(PINS.read_bytes()).hexdigest()
    # Tests in several processes ask for it.
    with cache.locked("docs", lambda: None):
        if not (stamp.is_file() and stamp.read_text() == pins):
            _make_environment(home, python)
            stamp.write_text(pins)
    return python


def _make_environment(home: Path, python: Path) -> None:
    uv = Path(sys.executable).parent / "uv"
    try:
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, home], check=True)
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", PINS], check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise ToolError(f"the environment cannot be made: {error}") from error


if __name__ == "__main__":
    main()
