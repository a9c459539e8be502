from __future__ import annotations

import pytest

from dra_infra.errors import InvalidSpecError
from dra_infra.specs.attachments import ContainerView, choose_containers

ONE = (ContainerView(name="train"),)
TWO = (ContainerView(name="train"), ContainerView(name="side"))


def choose(pod: tuple[ContainerView, ...], **arguments: object) -> tuple[str, ...]:
    return choose_containers(pod, entry="trainer", requests=["gpu"], **arguments)  # type: ignore[arg-type]


def code_of(error: pytest.ExceptionInfo[InvalidSpecError]) -> tuple[str, str]:
    (problem,) = error.value.problems
    return problem.path, problem.code


def test_the_only_container_need_not_be_named():
    assert choose(ONE) == ("train",)


def test_init_containers_do_not_count_as_the_only_container():
    pod = (ContainerView(name="fetch", init=True), ContainerView(name="train"))
    assert choose(pod) == ("train",)
    assert choose(pod, containers=["fetch"]) == ("fetch",)


def test_one_of_several_containers_must_be_named():
    with pytest.raises(InvalidSpecError) as error:
        choose(TWO)
    assert code_of(error) == ("containers", "containers-not-named")


def test_containers_are_given_back_in_the_order_of_the_pod():
    assert choose(TWO, containers=["side", "train"]) == ("train", "side")


def test_a_misspelt_container_is_named_with_the_nearest():
    with pytest.raises(InvalidSpecError) as error:
        choose(TWO, containers=["trian"])
    assert code_of(error) == ("containers[0]", "unknown-container")
    assert "'train'" in error.value.problems[0].hint


def test_a_request_that_the_claim_does_not_have_is_refused():
    with pytest.raises(InvalidSpecError) as error:
        choose(ONE, request="nic")
    assert code_of(error) == ("request", "unknown-request")


@pytest.mark.parametrize(
    ("used", "wanted", "refused"),
    [
        (None, None, True),
        (None, "gpu", True),
        ("gpu", None, True),
        ("gpu", "gpu", True),
        ("other", "gpu", False),
    ],
)
def test_a_container_uses_a_claim_once_or_each_of_its_requests_once(
    used: str | None, wanted: str | None, refused: bool
):
    pod = (ContainerView(name="train", claims=(("trainer", used),)),)
    if not refused:
        assert choose(pod, request=wanted) == ("train",)
        return
    with pytest.raises(InvalidSpecError) as error:
        choose(pod, request=wanted)
    assert code_of(error) == ("containers", "claim-attached-twice")


def test_two_claims_may_be_used_by_one_container():
    pod = (ContainerView(name="train", claims=(("nic", None),)),)
    assert choose(pod) == ("train",)
