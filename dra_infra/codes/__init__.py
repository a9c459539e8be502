"""The stable codes of problems, with what each means, by where it is found; `docs/errors` has a section for each."""

from __future__ import annotations

from dra_infra.codes.authoring import AUTHORING
from dra_infra.codes.clusters import CLUSTERS
from dra_infra.codes.migrations import MIGRATIONS
from dra_infra.codes.objects import OBJECTS
from dra_infra.codes.reviews import REVIEWS
from dra_infra.codes.upgrades import UPGRADES

CODES: dict[str, str] = AUTHORING | OBJECTS | REVIEWS | CLUSTERS | MIGRATIONS | UPGRADES
"""Every stable code with its one-line meaning."""
