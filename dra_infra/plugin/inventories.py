"""What an API server would refuse of an inventory, found without one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from dra_infra.errors import Problem
from dra_infra.kubernetes.api.names import LABEL_LENGTH, is_dns_label
from dra_infra.output.escaping import literal
from dra_infra.plugin.back_end import Inventory


def find_refused_names(inventory: Inventory) -> Iterator[Problem]:
    """Yield `device-name-refused` for names that no slice may have, that two devices have, and for health of no device.

    The names are DNS labels, and unique in a pool: validateDevice in pkg/apis/resource/validation/validation.go.
    """
    numbers = Counter(each.name for each in inventory.devices)
    for name, number in numbers.items():
        path = f"device {literal(name)}"
        if not is_dns_label(name):
            message = f"{literal(name)} is no DNS label, so no slice may have it"
            hint = f"call it {_nearest(name)}: lower case letters, digits and dashes, at most {LABEL_LENGTH}"
            yield Problem(path=path, code="device-name-refused", message=message, hint=hint)
        if number > 1:
            message = f"{number} devices have the name {literal(name)}"
            hint = "give each device a name of its own"
            yield Problem(path=path, code="device-name-refused", message=message, hint=hint)
    for name in inventory.health.keys() - numbers.keys():
        message = f"health has {literal(name)}, which is the name of no device"
        hint = "name a device of the inventory"
        yield Problem(path=f"device {literal(name)}", code="device-name-refused", message=message, hint=hint)


def _nearest(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:LABEL_LENGTH].strip("-") or "device-0"
