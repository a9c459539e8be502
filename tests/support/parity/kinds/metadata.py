"""Valid object metadata."""

from __future__ import annotations

from random import Random

from tests.support.parity.cases import Object

NAMES = ("a", "claim-1", "team.example.com", "0", "x" * 63, ".".join(["a" * 63] * 3 + ["a" * 61]))


def metadata(random: Random) -> Object:
    """A name, or a prefix for one, and now and then labels, annotations, owners and finalizers."""
    built: Object = {"name": random.choice(NAMES)}
    if random.random() < 0.05:
        built = {"generateName": "made-"}
    if random.random() < 0.2:
        built["labels"] = labels()
    if random.random() < 0.2:
        built["annotations"] = {"example.com/note": "any text: é\n", "plain": ""}
    if random.random() < 0.08:
        built["finalizers"] = ["example.com/keep"]
    if random.random() < 0.08:
        built["ownerReferences"] = [owner()]
    return built


def labels() -> dict[str, str]:
    """Labels that are valid everywhere."""
    return {"app": "trainer", "example.com/team": "A_1.b-c", "empty": ""}


def owner() -> Object:
    """A reference to an object that need not exist."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "owner",
        "uid": "11111111-2222-3333-4444-555555555555",
        "controller": True,
    }
