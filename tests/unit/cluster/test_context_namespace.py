"""The namespace of a kubeconfig's context, where `explain` is asked without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_infra.answers.asking import ask_cluster
from dra_infra.errors import ProgramError
from tests.unit.cluster.conftest import Server


def a_kubeconfig(folder: Path, server: Server, namespace: str | None) -> Path:
    context = {"cluster": "c", "user": "u", **({"namespace": namespace} if namespace else {})}
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "contexts": [{"name": "x", "context": context}],
        "users": [{"name": "u", "user": {}}],
        "current-context": "x",
    }
    file = folder / "config"
    file.write_text(json.dumps(config))
    return file


def pods(*namespaces: str) -> dict[str, Any]:
    metadata = [{"name": "train", "namespace": each, "uid": each} for each in namespaces]
    items = [
        {"metadata": each, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}} for each in metadata
    ]
    return {"kind": "PodList", "metadata": {}, "items": items}


@pytest.mark.parametrize(
    ("of_context", "named", "expected"),
    [("ml", None, "ml"), ("dev", None, "dev"), ("dev", "ml", "ml"), ("other", None, None)],
)
def test_of_several_pods_that_in_the_namespace_of_the_context_is_explained(
    server: Server, tmp_path: Path, of_context: str, named: str | None, expected: str | None
) -> None:
    server.says("/api/v1/pods", (200, pods("ml", "dev")))
    file = a_kubeconfig(tmp_path, server, of_context)
    if expected is None:
        with pytest.raises(ProgramError):
            ask_cluster("pod/train", kubeconfig=file)
    else:
        found = ask_cluster("pod/train", namespace=named, kubeconfig=file)
        assert found.subject_question.subject == f"Pod {expected}/train"


def test_with_rights_in_one_namespace_that_of_the_context_is_read(server: Server, tmp_path: Path) -> None:
    server.says("/api/v1/pods", (403, {"message": "no"}))
    server.says("/api/v1/namespaces/ml/pods", (200, pods("ml")))
    found = ask_cluster("pod/train", kubeconfig=a_kubeconfig(tmp_path, server, "ml"))
    assert found.subject_question.subject == "Pod ml/train"
    assert "cluster-forbidden" in {each.code for each in found.not_seen}
