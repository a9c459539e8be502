"""Texts that stand in manifests for values that are not to be had: unknown before `pulumi up`, or secret.

They break no rule: what stands for a value is not the value. Nothing is loaded with them.
"""

from __future__ import annotations

UNKNOWN = "[unknown]"
"""Stands in manifests for a value that only exists after `pulumi up`."""

SECRET = "[secret]"  # noqa: S105  (a marker, not a password)
"""Stands in manifests for a secret value."""

CHANGED_SECRET = f"{SECRET} (changed)"
"""Stands for the new value where a secret changes."""
