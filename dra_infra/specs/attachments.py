"""Attaches a claim to a pod: one entry of the pod, and one line per container that uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.output.wording import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerView:
    """The name of a container, and the claims it uses, as `(entry, request)`.

    `claims` is None when they are a Pulumi Output, which cannot be extended.
    """

    name: str
    claims: tuple[tuple[str, str | None], ...] | None = ()
    init: bool = False


def choose_containers(
    pod: Sequence[ContainerView],
    *,
    entry: str,
    requests: Sequence[str],
    containers: str | Sequence[str] | None = None,
    request: str | None = None,
) -> tuple[str, ...]:
    """The names of the containers that get the claim, in the order of the pod.

    Args:
        pod: The containers of the pod spec, init containers first.
        entry: Name of the pod's entry for the claim.
        requests: Names of the claim's requests.
        containers: Names of containers and init containers; None when the pod has only one container.
        request: The one request whose devices the containers get; None for all of the claim.

    Raises:
        InvalidSpecError: With codes `unknown-container`, `containers-not-named`, `unknown-request`,
            `claim-attached-twice`, `wrong-type`.
    """
    problems: list[Problem] = []
    wanted = _wanted_names(pod, containers, problems)
    if request is not None and request not in requests:
        message = f"{request!r} is not a request of this claim"
        hint = f"its requests are {', '.join(map(repr, requests))}"
        problems.append(Problem(path="request", code="unknown-request", message=message, hint=hint))
    known = {container.name: container for container in pod}
    is_listed = containers is not None and not isinstance(containers, str)
    for index, name in enumerate(wanted):
        path = f"containers[{index}]" if is_listed else "containers"
        container = known.get(name)
        if container is None:
            problems.append(_unknown_container(path, name, list(known)))
        else:
            problems += _check_double_use(path, container, entry, request)
    if problems:
        raise InvalidSpecError(problems)
    return tuple(container.name for container in pod if container.name in wanted)


def _wanted_names(
    pod: Sequence[ContainerView], containers: str | Sequence[str] | None, problems: list[Problem]
) -> tuple[str, ...]:
    if isinstance(containers, str):
        return (containers,)
    given: object = containers
    if isinstance(given, Sequence):
        return tuple(str(name) for name in given)
    if given is not None:
        message = f"{type(given).__name__} is not a list of names"
        hint = 'name the containers plainly: containers=["train"]'
        problems.append(Problem(path="containers", code="wrong-type", message=message, hint=hint))
        return ()
    regular = [container.name for container in pod if not container.init]
    if len(regular) == 1:
        return (regular[0],)
    named = ", ".join(map(repr, regular)) or "none"
    message = f"the pod has {len(regular)} containers ({named}), and none is named"
    hint = f"name those that use the devices: containers=[{named if regular else ''}]"
    problems.append(Problem(path="containers", code="containers-not-named", message=message, hint=hint))
    return ()


def _unknown_container(path: str, name: str, known: Sequence[str]) -> Problem:
    near = nearest(name, known)
    hint = (
        f"did you mean {near!r}?" if near else f"its containers are {', '.join(map(repr, known)) or 'none'}"
    )
    return Problem(
        path=path, code="unknown-container", message=f"the pod has no container {name!r}", hint=hint
    )


def _check_double_use(
    path: str, container: ContainerView, entry: str, request: str | None
) -> Iterator[Problem]:
    if container.claims is None:
        message = f"resources.claims of container {container.name!r} is a Pulumi Output"
        hint = "give the list itself; names inside it may be Outputs"
        yield Problem(path=path, code="wrong-type", message=message, hint=hint)
        return
    # The server refuses the same entry twice, and a whole claim beside one of its requests, in either order
    # (validatePodResourceClaims in pkg/apis/core/validation/validation.go).
    for used, used_request in container.claims:
        if used == entry and (request is None or used_request is None or used_request == request):
            said = f" (request {used_request!r})" if used_request else ""
            message = f"container {container.name!r} already uses {entry!r}{said}"
            hint = "attach a claim once per container, or each request of it once"
            yield Problem(path=path, code="claim-attached-twice", message=message, hint=hint)
            return
