"""Failures of preparation and of background threads, as `PluginError`s.

A claim is not prepared although it could be, when other claims, or an earlier state of its own, have something of
this node.

Threads that have to go on meet what nobody expected: a bug in one part is told, and tried again, and stops no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Final

from dra_infra.errors import PluginError
from dra_infra.plugin.claims import Claim, ClaimDevice


def held(claim: Claim, device: ClaimDevice, holder: str) -> PluginError:
    """Code `device-held`."""
    return PluginError.of(
        path=f"{claim}: device {device.pool}/{device.device}",
        code="device-held",
        message=f"is prepared for {holder}",
        hint="the kubelet asks again when that claim's pods are gone; if it stays so, look for them",
    )


def prepared_otherwise(claim: Claim, before: Claim) -> PluginError:
    """Code `claim-prepared-otherwise`."""
    old, new = (", ".join(each.device for each in one.devices) for one in (before, claim))
    return PluginError.of(
        path=str(claim),
        code="claim-prepared-otherwise",
        message=f"is prepared with {old or 'other devices'}, and allocated {new} now",
        hint="the kubelet releases it when its old pods are gone, and asks again",
    )


def not_restored(claim: Claim, uid: str) -> PluginError:
    """Code `claim-not-restored`: the claim *uid* has devices here, and nobody knows which."""
    return PluginError.of(
        path=str(claim),
        code="claim-not-restored",
        message=f"any device may be that of the claim with the UID {uid}, whose file was set aside",
        hint="delete the pods of that claim: the kubelet then releases it",
    )


_LONGEST: Final = 2000
"""Characters of a stranger's text; what is answered to the kubelet is cut again (service/answers.py)."""


@contextmanager
def as_plugin_error(what: str, *, then: str = "it is tried again") -> Iterator[None]:
    """Raise every exception inside as `PluginError`: with code `plugin-failed`, and its cause, where it is none.

    Args:
        what: Is done, for a person.
        then: What becomes of it.
    """
    try:
        yield
    except PluginError:
        raise
    except Exception as error:
        # A bug of ours, or of a back end: it fails this claim with a reason, and the plugin serves the others.
        raise PluginError.of(
            path=what,
            code="plugin-failed",
            message=f"nobody expected this: {type(error).__name__}: {str(error)[:_LONGEST]} ({_line(error)})",
            hint=f"{then}; tell its authors, with the log",
        ) from error


def _line(error: Exception) -> str:
    """File, line and function that raised it, for authors of back ends: not each log has the traceback."""
    last = extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}, in {last.name}"
