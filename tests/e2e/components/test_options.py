"""Resource options of components on the real engine: what reaches the object, and what that does to names by content."""

from __future__ import annotations

import pytest

from tests.support.lab import Lab
from tools.cluster import Api
from tools.kubernetes_provider.values import UNKNOWN_STRING

pytestmark = pytest.mark.e2e

TEMPLATE = "resource.k8s.io/v1/ResourceClaimTemplate"

PROGRAM = (
    "import dra_infra as dra\n{before}\n"
    'gpus = dra.GpuClaimTemplate("gpus", device_class="gpu.example.com", count={count}, {more},\n'
    "    opts=ResourceOptions({options}))\n"
)


def program(options: str = "", before: str = "", count: int = 1, more: str = "namespace=NAMESPACE") -> str:
    return PROGRAM.format(options=options, before=before, count=count, more=more)


def templates(api: Api, lab: Lab) -> dict[str, dict[str, str]]:
    """The labels of the templates, by name."""
    found = api.list(TEMPLATE, namespace=lab.namespace)
    return {each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in found}


LABELLED = """
def label(args):
    if args.type_.startswith("kubernetes:"):
        metadata = {**args.props["metadata"], "labels": {"team": "ml"}}
        return pulumi.ResourceTransformResult(props={**args.props, "metadata": metadata}, opts=args.opts)
"""


def test_a_transform_of_the_component_changes_the_object_and_not_its_name(lab: Lab, cluster_api: Api) -> None:
    lab.up(program())
    (name,) = templates(cluster_api, lab)

    lab.up(program("transforms=[label]", LABELLED))

    assert templates(cluster_api, lab) == {name: {"team": "ml"}}


COUNTED = """
def more(args):
    if args.type_.startswith("kubernetes:"):
        args.props["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = {count}
        return pulumi.ResourceTransformResult(props=args.props, opts=args.opts)
"""


def test_a_transform_of_the_spec_is_behind_the_name_so_that_its_change_is_refused(lab: Lab) -> None:
    lab.up(program("transforms=[more]", COUNTED.format(count=2)))
    lab.write(program("transforms=[more]", COUNTED.format(count=3)))

    preview = lab.stack.preview()

    assert preview.exit_code == 1
    assert "field is immutable" in preview.text


def test_a_protected_claim_does_not_roll_over(lab: Lab, cluster_api: Api) -> None:
    lab.up(program("protect=True"))
    before = templates(cluster_api, lab)
    lab.write(program("protect=True", count=2))

    preview = lab.stack.preview()
    up = lab.stack.up()

    assert (preview.exit_code, up.exit_code) == (1, 1)
    assert "protect" in preview.text
    assert templates(cluster_api, lab) == before


def test_an_object_that_is_retained_outlives_the_stack(lab: Lab, cluster_api: Api) -> None:
    lab.up(program("retain_on_delete=True"))
    before = templates(cluster_api, lab)

    lab.stack.destroy().check()

    assert lab.names() == []
    assert templates(cluster_api, lab) == before


def test_an_object_that_goes_with_its_namespace_is_not_deleted_by_itself(lab: Lab) -> None:
    before = 'home = k8s.core.v1.Namespace("home", metadata={"name": f"{NAMESPACE}-home"})'
    lab.up(program("deleted_with=home", before, more='namespace=home.metadata["name"]'))

    assert lab.resource("gpus")["deletedWith"] == lab.resource("home")["urn"]
    lab.stack.destroy().check()


def test_labels_of_others_are_left_to_them(lab: Lab, cluster_api: Api) -> None:
    ignored = 'ignore_changes=["metadata.labels"]'
    lab.up(program(ignored, more='namespace=NAMESPACE, labels={"revision": "1"}'))
    lab.write(program(ignored, more='namespace=NAMESPACE, labels={"revision": "2"}'))

    preview = lab.stack.preview().check()

    # The component is registered with its new argument, and the object stays.
    changed = [(step.type, step.operation) for step in preview.steps if step.operation != "same"]
    assert changed == [("dra-infra:index:GpuClaimTemplate", "update")]
    assert list(templates(cluster_api, lab).values()) == [{"revision": "1"}]


def test_a_component_waits_for_what_it_depends_on_and_is_waited_for(lab: Lab) -> None:
    lab.write(
        program("depends_on=[first]", 'first = config_map("first")')
        + 'config_map("last", opts=ResourceOptions(depends_on=[gpus]))\n'
    )

    up = lab.stack.up().check()
    down = lab.stack.destroy().check()

    objects = ["first", "gpus", "last"]
    made = [step.name for step in up.steps if step.type.startswith("kubernetes:")]
    gone = [step.name for step in down.steps if step.type.startswith("kubernetes:")]
    assert (made, gone) == (objects, objects[::-1])


@pytest.mark.parametrize("mode", ["verbatim", "disabled"])
def test_autonaming_is_not_asked_because_every_object_has_a_name(
    lab: Lab, cluster_api: Api, mode: str
) -> None:
    lab.up(program())
    before = templates(cluster_api, lab)
    lab.stack.configure("pulumi:autonaming.mode", mode, "--path")

    lab.stack.preview("--expect-no-changes").check()

    lab.up(program(count=2))
    assert templates(cluster_api, lab).keys().isdisjoint(before)


LATER = """
other = k8s.core.v1.Namespace("other", metadata={"name": f"{NAMESPACE}-other"})
later = lambda value: other.status["phase"].apply(lambda _: value)
"""


def test_a_namespace_that_is_known_after_up_leaves_the_name_known(lab: Lab, cluster_api: Api) -> None:
    lab.write(program(before=LATER, more="namespace=later(NAMESPACE)"))

    preview = lab.stack.preview().check()
    (inputs,) = [step.inputs for step in preview.steps if step.type.endswith(":ResourceClaimTemplate")]
    lab.stack.up().check()

    # The engine takes metadata as one value: with a part of it, all of it is not known.
    assert UNKNOWN_STRING in str(inputs["metadata"])
    assert [name.startswith("gpus-") for name in templates(cluster_api, lab)] == [True]
    lab.stack.preview("--expect-no-changes").check()


def test_everything_that_may_be_an_output_may_be_known_after_up(lab: Lab, cluster_api: Api) -> None:
    more = (
        'namespace=later(NAMESPACE), object_name=later("late"), labels={"team": later("ml")}, '
        'annotations={"owner": later("us")}'
    )
    lab.write(program(before=LATER, more=more))

    lab.stack.preview().check()
    lab.stack.up().check()

    assert templates(cluster_api, lab) == {"late": {"team": "ml"}}
    lab.stack.preview("--expect-no-changes").check()


def test_a_target_that_is_a_component_leaves_its_object_unless_dependents_are_asked_for(
    lab: Lab, cluster_api: Api
) -> None:
    lab.up(program(more="namespace=NAMESPACE, labels={'team': 'a'}"))
    lab.write(program(more="namespace=NAMESPACE, labels={'team': 'b'}"))
    everything = lab.stack.export()["resources"]
    (target,) = [each["urn"] for each in everything if each["type"].startswith("dra-infra:")]

    def label_after(*flags: str) -> str:
        lab.stack.up("--target", target, *flags).check()
        (labels,) = templates(cluster_api, lab).values()
        return labels["team"]

    assert [label_after(), label_after("--target-dependents")] == ["a", "b"]


def test_a_count_that_is_an_output_makes_the_object_of_the_number(lab: Lab, cluster_api: Api) -> None:
    lab.up(program(count=2))
    (name,) = templates(cluster_api, lab)
    lab.write(program().replace("count=1", "count=pulumi.Output.from_input(2.0)"))

    lab.stack.preview("--expect-no-changes").check()

    assert list(templates(cluster_api, lab)) == [name]


def test_a_count_that_is_known_after_up_is_judged_by_up(lab: Lab, cluster_api: Api) -> None:
    lab.write(program(before=LATER).replace("count=1", "count=later(99)"))

    preview, up = lab.stack.preview(), lab.stack.up()

    assert (preview.exit_code, up.exit_code) == (0, 1)
    assert "too-many-devices" in up.text
    assert not templates(cluster_api, lab)


def test_the_name_of_a_claim_that_is_known_after_up_reaches_its_pods(lab: Lab, cluster_api: Api) -> None:
    name = 'object_name=later("gpus-late"), namespace=NAMESPACE'
    pod = (
        'pulumi.export("claim", gpus.object_name)\n'
        'metadata = {"name": "pod", "namespace": NAMESPACE, "annotations": {"pulumi.com/skipAwait": "true"}}\n'
        'spec = {"containers": [{"name": "main", "image": "registry.example/main:1"}]}\n'
        'k8s.core.v1.Pod("pod", metadata=metadata, spec=gpus.attach(spec))\n'
    )
    lab.write(program(before=LATER, more=name) + pod)

    lab.stack.up().check()

    assert list(templates(cluster_api, lab)) == ["gpus-late"]
    (found,) = cluster_api.list("v1/Pod", namespace=lab.namespace)
    assert found["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == "gpus-late"
