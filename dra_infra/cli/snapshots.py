"""The file of `--snapshot`."""

from __future__ import annotations

from pathlib import Path

from dra_infra.catalog.snapshots import load_snapshot
from dra_infra.engine.nearest_paths import nearest_path
from dra_infra.errors import FleetError, Problem
from dra_infra.model.object_lines import MAX_BYTES
from dra_infra.model.snapshot import Snapshot


def read_snapshot(file: Path) -> Snapshot:
    """What `dra-infra snapshot` or kubectl wrote to *file*.

    Raises:
        FleetError: `fleet-unreadable`, and the codes of `load_snapshot`.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        return load_snapshot([data.decode("utf-8-sig")])
    except OSError as error:
        why = error.strerror or str(error)
    except UnicodeDecodeError as error:
        why = f"byte {error.start} is not UTF-8"
    raise FleetError(
        [
            Problem(
                path="--snapshot",
                code="fleet-unreadable",
                message=f"{file} cannot be read: {why}",
                hint=(not file.exists() and nearest_path(file))
                or "name a file that `dra-infra snapshot` or `kubectl get -o yaml` wrote",
            )
        ]
    )
