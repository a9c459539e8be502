"""Several clusters in one program: what each provider of Pulumi deploys is judged by itself.

A provider of pulumi-kubernetes is a connection to a cluster. Two of them may lead to the same one, with other settings,
so nothing is divided unless the user says by which provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.errors import ProgramError
from dra_infra.output.wording import join_words, nearest
from dra_infra.program_objects import DEFAULT_PROVIDER, NotSeen, Program


def of_provider(program: Program, name: str) -> Program:
    """The part of a program that one provider deploys.

    Args:
        program: All that a run gave.
        name: Of the provider; `default` for objects that name none.

    Raises:
        ProgramError: `provider-not-known`, when nothing comes by it.
    """
    known = _providers(program)
    if name not in known:
        near = nearest(name, known)
        raise ProgramError.of(
            path="--provider",
            code="provider-not-known",
            message=f"nothing of the program comes by the provider {name}",
            hint=f"did you mean {near}?" if near else f"its providers are {join_words(sorted(known))}",
        )
    return keep_provider(program, name)


def keep_provider(program: Program, name: str) -> Program:
    """Keeps what one provider deploys, which may be nothing, as at the base of a review that adds a cluster."""
    return replace(
        program,
        objects=tuple(each for each in program.objects if each.provider == name),
        releases=tuple(each for each in program.releases if each.provider == name),
    )


def find_several_clusters(program: Program) -> Iterator[NotSeen]:
    """A note where pods of a program come by several providers: all are placed on one fleet."""
    providers = {each.provider for each in program.objects if any(find_pod_templates(each.manifest))}
    if len(providers) > 1:
        named = join_words(sorted(providers))
        reason = "all pods are placed on one fleet and counted in one quota; choose one by --provider"
        yield NotSeen(what="clusters of the providers", name=named, reason=reason)


def _providers(program: Program) -> set[str]:
    objects, releases = ({each.provider for each in made} for made in (program.objects, program.releases))
    return objects | releases or {DEFAULT_PROVIDER}
