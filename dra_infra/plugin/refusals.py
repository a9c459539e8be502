"""Why a claim is not prepared although it could be: what other claims, or an earlier state of its own, have of this node."""

from __future__ import annotations

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import Claim, ClaimDevice


def held(claim: Claim, device: ClaimDevice, holder: str) -> PluginError:
    """Code `device-held`."""
    problem = Problem(
        path=f"{claim}: device {device.pool}/{device.device}",
        code="device-held",
        message=f"is prepared for {holder}",
        hint="the kubelet asks again when that claim's pods are gone; if it stays so, look for them",
    )
    return PluginError([problem])


def prepared_otherwise(claim: Claim, before: Claim) -> PluginError:
    """Code `claim-prepared-otherwise`."""
    old, new = (", ".join(each.device for each in one.devices) for one in (before, claim))
    problem = Problem(
        path=str(claim),
        code="claim-prepared-otherwise",
        message=f"is prepared with {old or 'other devices'}, and allocated {new} now",
        hint="the kubelet releases it when its old pods are gone, and asks again",
    )
    return PluginError([problem])


def not_restored(claim: Claim, uid: str) -> PluginError:
    """Code `claim-not-restored`: the claim *uid* has devices here, and nobody knows which."""
    problem = Problem(
        path=str(claim),
        code="claim-not-restored",
        message=f"any device may be that of the claim with the UID {uid}, whose file was set aside",
        hint="delete the pods of that claim: the kubelet then releases it",
    )
    return PluginError([problem])
