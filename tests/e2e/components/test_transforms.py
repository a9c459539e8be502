"""Transforms and objects without a name: the same program under the real engine's preview and in `synth` gives the same objects."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.markers import SECRET
from dra_infra.program.surroundings import SIGNATURE_KEY
from dra_infra.program.synth import synth
from tests.support.lab import Lab
from tools.kubernetes_provider.values import UNKNOWN_STRING

pytestmark = pytest.mark.e2e

PROGRAM = """
import asyncio
import dra_infra as dra

def tag(who):
    def transform(args):
        if not args.type_.startswith("kubernetes:"):
            return None
        metadata = dict(args.props.get("metadata") or {})
        labels = dict(metadata.get("labels") or {})
        labels[who] = f"{len(labels)}-{args.name}-{args.custom}"
        return pulumi.ResourceTransformResult({**args.props, "metadata": {**metadata, "labels": labels}}, args.opts)
    return transform

async def late(args):
    await asyncio.sleep(0)
    if args.type_.endswith(":ConfigMap"):
        data = {**(args.props.get("data") or {}), "late": maker.metadata.name}
        return pulumi.ResourceTransformResult({**args.props, "data": data}, args.opts)

def told(args):
    if args.name == "options":
        opts = args.opts
        shown = {
            "protect": str(opts.protect), "ignore": ",".join(opts.ignore_changes or []),
            "replace": ",".join(opts.replace_on_changes or []), "first": str(opts.delete_before_replace),
            "depends": str(len(opts._depends_on_list())), "parent": str(opts.parent is not None),
            "aliases": ",".join(alias.name for alias in opts.aliases or []),
            "timeout": str(opts.custom_timeouts and opts.custom_timeouts.create),
            "retain": str(opts.retain_on_delete), "import": str(opts.import_), "version": str(opts.version),
        }
        return pulumi.ResourceTransformResult({**args.props, "data": {**args.props["data"], **shown}}, args.opts)

maker = config_map("maker")
before = config_map("before", name="before")
pulumi.runtime.register_resource_transform(tag("stack"))
pulumi.runtime.register_resource_transform(told)

class Team(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("team:index:Team", name, None, opts)
        own = ResourceOptions(parent=self, transforms=[tag("own"), tag("own-2")])
        self.inner = config_map("inner", {"secret": pulumi.Output.secret("hush"), "plain": "x"}, opts=own, name="inner")
        config_map("later", {}, name="later",
                   opts=ResourceOptions(parent=self, transforms=[late]))

outer = Team("outer", ResourceOptions(transforms=[tag("outer")]))
config_map("options", {"a": "b"}, name="options", opts=ResourceOptions(
    protect=False, ignore_changes=["data.a"], replace_on_changes=["data"], delete_before_replace=True,
    depends_on=[maker, before], aliases=[pulumi.Alias(name="former")],
    custom_timeouts=pulumi.CustomTimeouts(create="5m"), retain_on_delete=True))
dra.GpuClaimTemplate("gpus", device_class="gpu.example.com", namespace=NAMESPACE,
                     opts=ResourceOptions(transforms=[tag("component")]))
claim_template("unnamed", 1)
k8s.core.v1.ConfigMap("without-metadata", data={"of": maker.metadata.name})
"""

_MADE_UP = re.compile(r"(maker|unnamed|without-metadata)-[0-9a-f]{8}")


def shown(value: Any) -> Any:
    """*value* of the engine as a program's objects show it."""
    if isinstance(value, str):
        return UNKNOWN if value == UNKNOWN_STRING else _MADE_UP.sub(r"\1-*", value)
    if isinstance(value, dict):
        if SIGNATURE_KEY in value:
            return SECRET
        return {key: shown(item) for key, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list) else value


def previewed(lab: Lab) -> dict[str, Any]:
    """The inputs of every object in the engine's preview, by URN, without the namespace that the cluster's context gives."""
    preview = lab.stack.preview().check()
    found = {
        step.urn: shown(step.inputs) for step in preview.steps if "kubernetes:" in step.urn.split("::")[2]
    }
    for each in found.values():
        if each["metadata"].get("namespace") == "default":
            del each["metadata"]["namespace"]
    return found


def test_the_engine_and_synth_make_the_same_objects(lab: Lab) -> None:
    lab.write(PROGRAM)

    of_engine = previewed(lab)
    of_synth = {each.urn: dict(each.manifest) for each in synth(lab.stack.directory).objects}

    assert of_synth == of_engine
    labels = of_synth[next(urn for urn in of_synth if urn.endswith("::inner"))]["metadata"]["labels"]
    assert labels == {name: f"{at}-inner-True" for at, name in enumerate(("own", "own-2", "outer", "stack"))}


RAISED = """
def refuse(args):
    raise ValueError("not this one")

config_map("refused", name="refused", opts=ResourceOptions(transforms=[refuse]))
"""


def test_what_a_transform_raises_ends_both(lab: Lab) -> None:
    lab.write(RAISED)

    assert "not this one" in lab.stack.preview().text
    with pytest.raises(Exception, match="not this one"):
        synth(lab.stack.directory)
