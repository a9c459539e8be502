from __future__ import annotations

import pytest

from tools.errors import ToolError
from tools.kubernetes_module import main, wrapper

UPSTREAM = """\
module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
\tgithub.com/example/other v0.0.0
\tk8s.io/api v0.0.0
\tk8s.io/client-go v0.0.0
\tk8s.io/utils v0.0.0-20260101000000-000000000000
)

require k8s.io/gengo v1.0.0 // indirect

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/client-go => ./staging/src/k8s.io/client-go
\tk8s.io/sample-cli-plugin => ./staging/src/k8s.io/sample-cli-plugin
)
"""

WRAPPER = """\
module dra-infra.invalid/tools/kubernetes-1.37

go 1.26.0

godebug default=go1.26

tool (
\tk8s.io/kubernetes/cmd/kube-apiserver
\tk8s.io/kubernetes/cmd/kubectl
)

require k8s.io/kubernetes v1.37.1

replace (
\tk8s.io/api => k8s.io/api v0.37.1
\tk8s.io/client-go => k8s.io/client-go v0.37.1
)
"""


def write_wrapper(upstream=UPSTREAM, version="v1.37.1"):
    return wrapper(upstream, version=version, name="kubernetes-1.37", commands=["kubectl", "kube-apiserver"])


def test_wrapper_repeats_go_godebug_and_the_required_staging_modules():
    assert write_wrapper() == WRAPPER


def test_release_without_godebug_gets_none():
    assert "godebug" not in write_wrapper(UPSTREAM.replace("godebug default=go1.26\n\n", ""))


def test_pre_release_keeps_its_suffix():
    assert "k8s.io/api => k8s.io/api v0.38.0-alpha.0\n" in write_wrapper(version="v1.38.0-alpha.0")


def test_staging_module_that_is_replaced_nowhere_is_an_error():
    with pytest.raises(ToolError, match=r"requires k8s\.io/api v0\.0\.0 but replaces it nowhere"):
        write_wrapper(UPSTREAM.replace("\tk8s.io/api => ./staging/src/k8s.io/api\n", ""))


@pytest.mark.parametrize("version", ["1.37.1", "v1.37", "v2.0.0", "latest", "v1.37.1\nreplace x => y"])
def test_version_that_is_none_of_kubernetes_is_refused(tmp_path, version, capsys):
    assert main([version, str(tmp_path / "wrapper"), "kubectl"]) == 1
    assert "is not one of Kubernetes" in capsys.readouterr().err
    assert not (tmp_path / "wrapper").exists()
