"""A small cluster, and pods that come one after the other."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Self

from tools.cluster import Manifest


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What is put on the control plane.

    Args:
        name: Shown when it fails.
        fleet: Classes, nodes and slices, in the order in which they are created.
        objects: Claims, templates, and whatever else the pods need.
        pods: In the order in which they are created.
        pinned: Whether the first pod is also sent to each node by itself, to see which ones take it.
    """

    name: str
    fleet: tuple[Manifest, ...]
    objects: tuple[Manifest, ...]
    pods: tuple[Manifest, ...]
    pinned: bool = True

    def __str__(self) -> str:
        return self.name

    def with_direct_claims(self) -> Self:
        """The same with a claim by name in place of each that a controller would make of a template."""
        specs = {
            each["metadata"]["name"]: each["spec"]["spec"]
            for each in self.objects
            if each["kind"] == "ResourceClaimTemplate"
        }
        objects = [each for each in self.objects if each["kind"] != "ResourceClaimTemplate"]
        pods = []
        for pod in self.pods:
            changed = copy.deepcopy(pod)
            for entry in changed["spec"]["resourceClaims"]:
                template = entry.pop("resourceClaimTemplateName", None)
                if template is None:
                    continue
                name = f"{pod['metadata']['name']}-{entry['name']}"
                entry["resourceClaimName"] = name
                metadata = {"name": name, "namespace": pod["metadata"]["namespace"]}
                objects.append(
                    {
                        "apiVersion": "resource.k8s.io/v1",
                        "kind": "ResourceClaim",
                        "metadata": metadata,
                        "spec": specs[template],
                    }
                )
            pods.append(changed)
        return replace(self, objects=tuple(objects), pods=tuple(pods), pinned=False)
