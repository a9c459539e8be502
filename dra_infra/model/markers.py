"""Texts that stand in manifests for values that are not to be had."""

from __future__ import annotations

UNKNOWN = "[unknown]"
"""Stands in manifests for a value that only exists after `pulumi up`."""

SECRET = "[secret]"  # noqa: S105  (a marker, not a password)
"""Stands in manifests for a secret value."""
