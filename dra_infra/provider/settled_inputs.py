"""Inputs of a component as a program in another language gives them, with the values of Outputs that are known already.

Over the wire all numbers are floats, and values that depend on a resource are Outputs although most of them are known. What decides
which objects a component makes has to be known before it is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi


@dataclass(frozen=True, kw_only=True)
class Settled:
    """A value that is known, and no secret, with the resources that it depends on.

    Args:
        value: The value.
        resources: The resources, by a name that tells them apart.
        output: The Output that it came from.
    """

    value: Any
    resources: Mapping[str, pulumi.Resource]
    output: pulumi.Output[Any]


async def settle(value: Any) -> Any:
    """Return inputs with what is known in place of Outputs: a value without dependencies as it is, one with some as `Settled`.

    Secrets and what is not known yet stay Outputs.
    """
    if isinstance(value, Mapping):
        items = await asyncio.gather(*map(settle, value.values()))
        return dict(zip(value, items, strict=True))
    if isinstance(value, list):
        return list(await asyncio.gather(*map(settle, value)))
    if isinstance(value, pulumi.output.Unknown):
        return pulumi.Output.from_input(value)
    if not isinstance(value, pulumi.Output):
        return whole(value)
    if await value.is_secret() or not await value.is_known():
        return value.apply(whole)
    known = whole(await value.future())
    resources = await value.resources()
    if not resources:
        return known
    urns = await asyncio.gather(*(each.urn.future() for each in resources))
    named = {str(urn): each for urn, each in zip(urns, resources, strict=True) if urn}
    return Settled(value=known, resources=dict(sorted(named.items())), output=value.apply(whole))


def whole(value: Any) -> Any:
    """Return *value* with whole numbers where it has floats without a fraction, at any depth."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return value
