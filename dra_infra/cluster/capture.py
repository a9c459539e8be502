"""Captures a cluster, read once, as one text that `load_snapshot` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.client.kinds import CRD_GROUPS, DEFINITIONS, EXTRA, NODES, SLICES, SNAPSHOT
from dra_infra.client.refusals import nothing_seen
from dra_infra.cluster.pruning import prune
from dra_infra.cluster.reading import Listing, Reader
from dra_infra.documents.json_texts import MAX_BYTES, without_half_pairs, write_lines
from dra_infra.documents.yaml import write_manifest
from dra_infra.errors import Problem
from dra_infra.output.escaping import one_line
from dra_infra.output.secrets import SecretMask

MOST_PRETTY: Final = 2_000
"""Objects that are written for people to read; more are lines of JSON, which are read back 40 times as fast."""

_MARK: Final = "# A snapshot of a cluster"


@dataclass(frozen=True, kw_only=True, slots=True)
class Capture:
    """The snapshot, as text, with what could not be read.

    Args:
        text: YAML with a document for each object, and a comment that says how new each kind is.
        counts: Objects by kind.
        problems: What could not be seen; none of it keeps the rest from being used.
    """

    text: str
    counts: dict[str, int]
    problems: tuple[Problem, ...] = ()


def capture(
    reader: Reader, *, mask: SecretMask, made_by: str, tell: Callable[[str], None] = lambda _text: None
) -> Capture:
    """Read everything that `kinds.SNAPSHOT` names; *made_by* is the name and version of what writes the file.

    Raises:
        ClusterError: The codes of `Session`, and `cluster-forbidden` when nothing at all may be read.
    """
    listings = [reader.list(kind, names_only=kind is DEFINITIONS) for kind in SNAPSHOT]
    problems = [
        problem for each in listings for problem in each.problems if each.is_seen or each.kind not in EXTRA
    ]
    if not any(each.is_seen for each in listings):
        raise nothing_seen(problems)
    tell("writing")
    objects: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    for listing in listings:
        for item in _wanted(listing):
            kept = prune(item, mask)
            if kept is not None:
                objects.append(kept)
                counts[listing.kind.name] = counts.get(listing.kind.name, 0) + 1
    # Versions are the server's word: none of them ends the comment that it stands in.
    header = "".join(f"{one_line(line)}\n" for line in _header(reader, listings, made_by))
    if _is_large(listings):
        text = write_lines(objects, header=header)
    else:
        text = "---\n".join([header, *map(_write, objects)])
    return Capture(text=text, counts=counts, problems=(*problems, *_size(text)))


def _write(manifest: Mapping[str, Any]) -> str:
    try:
        return write_manifest(manifest)
    except UnicodeEncodeError:
        # JSON can hold half of a character pair, YAML cannot.
        return write_manifest(without_half_pairs(manifest))


def _is_large(listings: Sequence[Listing]) -> bool:
    return sum(len(each.items) for each in listings) > MOST_PRETTY


def _wanted(listing: Listing) -> Iterator[dict[str, Any]]:
    for item in listing.items:
        if listing.kind is not DEFINITIONS or str(item["metadata"].get("name")).endswith(CRD_GROUPS):
            yield item


def _header(reader: Reader, listings: Sequence[Listing], made_by: str) -> Iterator[str]:
    yield f"{_MARK}, by {made_by}. Plain objects without Secrets, ConfigMaps, environments and annotations."
    if reader.namespaces:
        yield f"# Of namespaces: {', '.join(reader.namespaces)}"
    yield "# Each kind was read at its own moment; resourceVersion says which:"
    for each in listings:
        if each.is_seen:
            versions = ", ".join(
                f"{namespace}: {version}" if namespace else version
                for namespace, version in each.resource_versions.items()
            )
            read = "" if each.version == each.kind.versions[0] else f", read as {each.version}"
            yield f"#   {each.kind.plural}: {versions}{read}"
    for each in listings:
        for problem in each.problems:
            yield f"# not seen: {each.kind.plural} [{problem.code}]"


def _size(text: str) -> Iterator[Problem]:
    size = len(text.encode())
    if size > MAX_BYTES:
        yield Problem(
            path=f"{NODES.plural}, {SLICES.plural}",
            code="snapshot-too-large",
            message=f"the snapshot has {size >> 20} MiB, and files of up to {MAX_BYTES >> 20} MiB are read back",
            hint="read fewer namespaces: --namespace NAME, which may be repeated",
            severity="warning",
        )
