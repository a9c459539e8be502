"""Valid ResourceClaimTemplates."""

from __future__ import annotations

from random import Random

from tests.support.parity.cases import Object
from tests.support.parity.kinds import claim
from tests.support.parity.kinds.metadata import labels, metadata


def claim_template(random: Random) -> Object:
    """A template, half of them with labels for the claims made from it."""
    version = random.choice(claim.VERSIONS)
    spec: Object = {"spec": claim.spec(random, version)}
    if random.random() < 0.5:
        spec = {"metadata": {"labels": labels(), "annotations": {"example.com/note": "é"}}, **spec}
    return {
        "apiVersion": f"{claim.GROUP}/{version}",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata(random),
        "spec": spec,
    }
