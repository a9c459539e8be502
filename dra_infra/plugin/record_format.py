"""Format 1 of the checkpoint's files.

A release that changes it counts on, and reads every format that was released.

    {"format": 1, "checksum": "sha256:...", "record": {...}}

The checksum is that of `record` as JSON with sorted keys and no spaces, so that a person may lay the file out anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from dra_infra.plugin.claims import Claim, ClaimDevice, DeviceNode, Edits, Hook, Mount, Record
from dra_infra.plugin.disk import LARGEST, MOST_PARTS, may_be_parsed

FORMAT: Final = 1

_Kind = TypeVar("_Kind")


class DamagedError(ValueError):
    """A file is not as this plugin writes it; the text says what is wrong."""


class NewerError(ValueError):
    """A file has a format of a later release."""


def encode(record: Record) -> bytes:
    """The file of a record."""
    plain = _plain(record)
    document = {"format": FORMAT, "checksum": _checksum(plain), "record": plain}
    # In one line: Python lays JSON out several times as slowly, and a claim is waited for.
    return json.dumps(document).encode()


def decode(content: bytes, *, uid: str) -> Record:
    """The record of a file.

    Args:
        content: The file's bytes.
        uid: The claim that it has to be of.

    Raises:
        DamagedError: It is cut, was changed, or is another claim's.
        NewerError: A later release wrote it.
    """
    if not may_be_parsed(content):
        raise DamagedError(f"it has more than {LARGEST} bytes, or {MOST_PARTS} objects and lists")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        said = "it is no JSON" if content else "it is empty, or no file that can be read"
        raise DamagedError(said) from error
    number = document.get("format") if isinstance(document, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise DamagedError("it has no format")
    if number > FORMAT:
        raise NewerError(f"it has format {str(number)[:20]}, and this release reads up to {FORMAT}")
    plain = document.get("record")
    try:
        record = _record(plain) if document.get("checksum") == _checksum(plain) else None
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise DamagedError("it lacks something, or has a value of another type") from error
    if record is None:
        raise DamagedError("the checksum is of something else")
    if record.claim.uid != uid:
        raise DamagedError("it is the file of another claim")
    return record


def _checksum(plain: object) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _plain(record: Record) -> dict[str, Any]:
    claim = record.claim
    return {
        "claim": {
            "uid": claim.uid,
            "namespace": claim.namespace,
            "name": claim.name,
            "podClaimName": claim.pod_claim_name,
            "devices": [
                {
                    "pool": each.pool,
                    "device": each.device,
                    "request": each.request,
                    "subrequest": each.subrequest,
                    "shareId": each.share_id,
                    "adminAccess": each.admin_access,
                    "configs": list(each.configs),
                    **({"named": list(each.named)} if each.named else {}),
                    "capacity": dict(each.capacity),
                }
                for each in claim.devices
            ],
        },
        "state": record.state,
        "preparation": record.preparation,
        "bootId": record.boot_id,
        "edits": [
            {
                "env": list(each.env),
                "deviceNodes": [
                    {
                        "path": node.path,
                        "hostPath": node.host_path,
                        "type": node.type,
                        "major": node.major,
                        "minor": node.minor,
                        "fileMode": node.file_mode,
                        "permissions": node.permissions,
                        "uid": node.uid,
                        "gid": node.gid,
                    }
                    for node in each.device_nodes
                ],
                "mounts": [
                    {
                        "hostPath": mount.host_path,
                        "containerPath": mount.container_path,
                        "options": list(mount.options),
                    }
                    for mount in each.mounts
                ],
                "hooks": [
                    {
                        "name": hook.name,
                        "path": hook.path,
                        "arguments": list(hook.arguments),
                        "env": list(hook.env),
                    }
                    for hook in each.hooks
                ],
                "additionalGids": list(each.additional_gids),
            }
            for each in record.edits
        ],
    }


def _record(plain: Any) -> Record:
    claim = plain["claim"]
    state = _typed(plain["state"], str)
    # One text in memory for all devices that have the same config.
    texts: dict[str, str] = {}
    record = Record(
        claim=Claim(
            uid=_typed(claim["uid"], str),
            namespace=_typed(claim["namespace"], str),
            name=_typed(claim["name"], str),
            pod_claim_name=_typed(claim["podClaimName"], str),
            devices=tuple(
                ClaimDevice(
                    pool=_typed(each["pool"], str),
                    device=_typed(each["device"], str),
                    request=_typed(each["request"], str),
                    subrequest=_typed(each["subrequest"], str),
                    share_id=_typed(each["shareId"], str),
                    admin_access=_typed(each["adminAccess"], bool),
                    configs=tuple(texts.setdefault(config, config) for config in _texts(each["configs"])),
                    named=tuple(_typed(named, bool) for named in _typed(each.get("named", []), list)),
                    capacity=tuple(
                        sorted(
                            (name, _typed(amount, str))
                            for name, amount in _typed(each["capacity"], dict).items()
                        )
                    ),
                )
                for each in _typed(claim["devices"], list)
            ),
        ),
        state="completed" if state == "completed" else "started",
        preparation=_typed(plain["preparation"], str),
        boot_id=_typed(plain["bootId"], str),
        edits=tuple(_edits(each) for each in _typed(plain["edits"], list)),
    )
    if record.state != state or len(record.edits) != (
        len(record.claim.devices) if state == "completed" else 0
    ):
        raise ValueError(state)
    return record


def _edits(plain: Mapping[str, Any]) -> Edits:
    return Edits(
        env=_texts(plain["env"]),
        device_nodes=tuple(
            DeviceNode(
                path=_typed(node["path"], str),
                host_path=_typed(node["hostPath"], str),
                type=_typed(node["type"], str),
                major=_typed(node["major"], int),
                minor=_typed(node["minor"], int),
                file_mode=_number(node["fileMode"]),
                permissions=_typed(node["permissions"], str),
                uid=_number(node["uid"]),
                gid=_number(node["gid"]),
            )
            for node in _typed(plain["deviceNodes"], list)
        ),
        mounts=tuple(
            Mount(
                host_path=_typed(mount["hostPath"], str),
                container_path=_typed(mount["containerPath"], str),
                options=_texts(mount["options"]),
            )
            for mount in _typed(plain["mounts"], list)
        ),
        hooks=tuple(
            Hook(
                name=_typed(hook["name"], str),
                path=_typed(hook["path"], str),
                arguments=_texts(hook["arguments"]),
                env=_texts(hook["env"]),
            )
            for hook in _typed(plain["hooks"], list)
        ),
        additional_gids=tuple(_typed(group, int) for group in _typed(plain["additionalGids"], list)),
    )


def _number(value: Any) -> int | None:
    return None if value is None else _typed(value, int)


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(_typed(each, str) for each in _typed(values, list))


def _typed(value: Any, of: type[_Kind]) -> _Kind:
    if type(value) is not of:
        raise TypeError(value)
    return value
