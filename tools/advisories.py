"""Compare all pins with a database of advisories that is there already: ``python -m tools.advisories DATABASE``.

osv-scanner does it, built from its pinned Go module. It asks no network; whoever runs it brings the database, as osv.dev publishes it
for each ecosystem. A database that is empty or damaged, and a file of pins that was not read whole, are no clean result.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name

from tools import build, toolsets
from tools.errors import ToolError
from tools.progress import Progress

ROOT: Final = Path(__file__).parent.parent
ACCEPTED: Final = toolsets.FOLDER / "osv-scanner" / "accepted.toml"
ECOSYSTEMS: Final = ("PyPI", "Go")

_HINT: Final = "make advisories DATABASE=folder, with PyPI.zip and Go.zip in it as osv.dev publishes them"
_PYTHON_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
_GO_PIN: Final = re.compile(r"^(?:\t|require )(\S+) v\S+(?: // indirect)?$", re.MULTILINE)
_FOUND: Final = 1
"""Exit status of osv-scanner for advisories; others, but 0, are failures of its own."""


@dataclass(frozen=True, order=True)
class Finding:
    """An advisory about a pin.

    Args:
        file: Where it is pinned, from the root of the repository.
        package: What is pinned.
        version: To which version.
        advisory: Its identifiers, the database's own first.
        summary: What it says.
        fixed: Versions that it names as fixed.
    """

    file: str
    package: str
    version: str
    advisory: tuple[str, ...]
    summary: str
    fixed: tuple[str, ...]

    def __str__(self) -> str:
        mended = f"; fixed in {', '.join(self.fixed)}" if self.fixed else "; no version is said to be fixed"
        names = " ".join(self.advisory)
        line = f"{self.file}: {self.package} {self.version}: {names}: {self.summary or 'no summary'}{mended}"
        # Escape sequences in an advisory do not reach the terminal.
        return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0 without findings, 1 with some, 2 where there is no answer."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.advisories", description="Compare all pins with a database of advisories."
    )
    parser.add_argument("database", metavar="DATABASE", help="folder with PyPI.zip and Go.zip of OSV records")
    options = parser.parse_args(arguments)
    try:
        database = _named(options.database)
        files = pinned_files(ROOT)
        pins = set().union(*map(pins_of, files))
        archives = {each: load(archive_of(database, each), each, pins) for each in ECOSYSTEMS}
        for ecosystem, archive in archives.items():
            print(f"{ecosystem}: {archive.count} advisories, the newest of {archive.newest}")
        findings = scan(scanner(), archives, files)
    except ToolError as error:
        print(f"make advisories: {error}", file=sys.stderr)
        return 2
    for finding in findings:
        print(finding)
    print(f"{len(files)} files of pins: {len(findings) or 'no'} findings")
    if findings:
        print(f"pin a fixed version, or say in {ACCEPTED.relative_to(ROOT)} why not, and until when")
    return 1 if findings else 0


def _named(database: str) -> Path:
    if not database:
        raise ToolError("no database is named, and none is fetched", hint=_HINT)
    return Path(database)


def pinned_files(root: Path) -> list[Path]:
    """All files that pin versions: requirements with hashes, and each go.mod."""
    return [*sorted((root / "requirements").glob("*.txt")), *sorted((root / "tools").glob("*/go.mod"))]


def pins_of(file: Path) -> set[str]:
    """Names of what *file* pins."""
    pattern = _GO_PIN if file.name == "go.mod" else _PYTHON_PIN
    return set(pattern.findall(file.read_text()))


def archive_of(database: Path, ecosystem: str) -> Path:
    """The archive of *ecosystem* in the folder *database*.

    Raises:
        ToolError: When there is none.
    """
    for path in (database / f"{ecosystem}.zip", database / ecosystem / "all.zip"):
        if path.is_file():
            return path.resolve()
    raise ToolError(f"{database} has no {ecosystem}.zip", hint=_HINT)


@dataclass(frozen=True)
class Archive:
    """What an archive of advisories holds.

    Args:
        count: How many advisories it has.
        newest: Day of the newest, `2026-11-01`.
        records: Those about our pins, by the name of their file.
    """

    count: int
    newest: str
    records: dict[str, dict[str, Any]]


def load(path: Path, ecosystem: str, pins: Collection[str]) -> Archive:
    """Read an archive of advisories whole.

    Args:
        path: The archive.
        ecosystem: Whose advisories count.
        pins: Names of packages to keep advisories of.

    Raises:
        ToolError: When it is not whole, or has none: the scanner would take that for a clean result.
    """
    count = 0
    newest = ""
    records = {}
    try:
        with zipfile.ZipFile(path) as opened:
            for name in opened.namelist():
                if not name.endswith(".json"):
                    continue
                record = json.loads(opened.read(name))
                packages = [each["package"] for each in record.get("affected", ()) if "package" in each]
                packages = [each for each in packages if each["ecosystem"] == ecosystem]
                for each in packages if ecosystem == "PyPI" else ():
                    # Pins are written so; not everyone who writes advisories does, and the scanner compares letter by letter.
                    each["name"] = canonicalize_name(each["name"])
                count += bool(packages)
                newest = max(newest, str(record["modified"])[:10])
                if any(each["name"] in pins for each in packages):
                    records[name] = record
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise ToolError(f"{path} is no archive of OSV records: {error}", hint="fetch it again") from error
    if not count:
        raise ToolError(f"{path} has no advisory of {ecosystem}", hint=_HINT)
    return Archive(count, newest, records)


def scanner() -> Path:
    """The built osv-scanner, built now where it was not.

    Raises:
        ToolError: When it cannot be built.
    """
    if build.has_go():
        chosen = [each for each in toolsets.load() if each.name == "osv-scanner"]
        build.build(chosen, jobs=build.default_jobs(), progress=Progress(sys.stderr))
    return build.binary("osv-scanner")


def scan(
    program: Path, archives: Mapping[str, Archive], files: Sequence[Path], accepted: Path = ACCEPTED
) -> list[Finding]:
    """Findings about the pins in *files*.

    Args:
        program: osv-scanner.
        archives: By ecosystem; see `load`.
        files: What to look at.
        accepted: Configuration that names advisories we keep.

    Raises:
        ToolError: When the scanner fails, or has not read a file as it is.
    """
    with tempfile.TemporaryDirectory(prefix="dra-infra-advisories-") as folder:
        for ecosystem, archive in archives.items():
            place = Path(folder) / "osv-scalibr" / ecosystem / "all.zip"
            place.parent.mkdir(parents=True)
            with zipfile.ZipFile(place, "w") as written:
                for name, record in archive.records.items():
                    written.writestr(name, json.dumps(record))
        command = [str(program), "scan", "source", "--offline", "--no-resolve", "--no-call-analysis", "all"]
        command += ["--format", "json", "--all-packages", "--verbosity", "error", "--config", str(accepted)]
        for file in files:
            # Requirements are told by the name of a file, which ours have not.
            kind = "" if file.name == "go.mod" else "requirements.txt"
            command += ["--lockfile", f"{kind}:{file.resolve()}"]
        environment = {**os.environ, "OSV_SCANNER_LOCAL_DB_CACHE_DIRECTORY": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, _FOUND):
        raise ToolError(
            f"osv-scanner ends with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}"
        )
    try:
        report = json.loads(done.stdout)
    except ValueError as error:
        raise ToolError(f"osv-scanner prints no JSON: {error}") from error
    findings = sorted(read(report, files))
    if bool(findings) != (done.returncode == _FOUND):
        raise ToolError(f"osv-scanner ends with {done.returncode} and reports {len(findings)} findings")
    return findings


def read(report: Any, files: Sequence[Path]) -> Iterator[Finding]:
    """The findings in a report of osv-scanner.

    Raises:
        ToolError: When a file is not in it, or not with all that it pins.
    """
    seen = {Path(result["source"]["path"]): result["packages"] for result in report["results"]}
    for file in files:
        packages = seen.get(file.resolve(), [])
        if missing := pins_of(file) - {each["package"]["name"] for each in packages}:
            raise ToolError(f"osv-scanner has not read {', '.join(sorted(missing))} in {file}")
        for each in packages:
            package = each["package"]
            for advisory in each.get("vulnerabilities", ()):
                yield Finding(
                    file=os.path.relpath(file, ROOT),
                    package=package["name"],
                    version=package["version"],
                    advisory=(advisory["id"], *sorted(advisory.get("aliases", ()))),
                    summary=" ".join(advisory.get("summary", "").split()),
                    fixed=_fixed(advisory, package["name"]),
                )


def _fixed(advisory: dict[str, Any], package: str) -> tuple[str, ...]:
    events = (
        event
        for affected in advisory.get("affected", ())
        if affected.get("package", {}).get("name") == package
        for span in affected.get("ranges", ())
        if span.get("type") != "GIT"
        for event in span["events"]
    )
    return tuple(dict.fromkeys(event["fixed"] for event in events if "fixed" in event))


if __name__ == "__main__":
    sys.exit(main())
