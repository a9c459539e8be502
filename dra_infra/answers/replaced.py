"""Objects that a server does not change in place: whoever applies them has to delete what is there before."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dra_infra.kubernetes.api import WorkloadKinds, group_of, value_at
from dra_infra.migration.outcomes import Migrated, Remark
from dra_infra.output.wording import join_words
from dra_infra.review.replacement import find_immutable_fields
from dra_infra.sources.files import SourceObject


def find_replaced(
    sources: Sequence[SourceObject], migrated: Sequence[Migrated], kinds: WorkloadKinds
) -> list[Migrated]:
    """Add a remark to each object whose change a server refuses where the object is there already.

    Args:
        sources: The objects as they were read.
        migrated: What became of each.
        kinds: Kinds of objects that make pods.
    """
    replaced: list[Migrated] = []
    for source, done in zip(sources, migrated, strict=True):
        if done.manifest is not None and done.manifest is not source.manifest:
            remark = _tell(source.manifest, done.manifest, kinds)
            replaced.append(replace(done, remarks=(*done.remarks, remark)) if remark else done)
        else:
            replaced.append(done)
    return replaced


def _tell(before: Mapping[str, Any], after: Mapping[str, Any], kinds: WorkloadKinds) -> Remark | None:
    name = value_at(after, "metadata", "name")
    if not isinstance(name, str) or before.get("apiVersion") != after.get("apiVersion"):
        # A made-up name is another object each time, and old versions are not served any more.
        return None
    # A suspended Job may change its selection of nodes, and no claims (ValidateJobUpdate).
    started = (
        {**before, "spec": {**before["spec"], "suspend": False}} if before.get("kind") == "Job" else before
    )
    fields = find_immutable_fields(started, after)
    kind = kinds.find(after)
    if kind is not None and kind.anew and not fields:
        message = f"one that is there {kind.on_change or kind.keeps_pods}"
    elif fields:
        message = (
            f"one that is there cannot change {join_words(fields, most=4)}, so servers refuse the update"
        )
    else:
        return None
    names = f"{after.get('kind')}.{group_of(after)}".lower()
    names = names if names.count(".") > 1 else names.partition(".")[0]
    namespace = value_at(after, "metadata", "namespace")
    command = ["kubectl", "delete", names, name, *(["-n", str(namespace)] if namespace else [])]
    hint = f"delete it right before you apply it: {shlex.join(command)}"
    return Remark("", "changed", "not-changed-in-place", message, hint)
