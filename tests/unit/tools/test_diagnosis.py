from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.diagnosis import diagnose, redact, tail

# What Go 1.26 prints, shortened; addresses as they look after redaction.
CHECKSUM_MISMATCH = """\
go: downloading go.uber.org/zap v1.27.1
verifying go.uber.org/zap@v1.27.1: checksum mismatch
\tdownloaded: h1:08RqriUEv8+ArZRYSTXy1LeBScaMpVSTBhCeaZYfMYc=
\tgo.sum:     h1:AAAAriUEv8+ArZRYSTXy1LeBScaMpVSTBhCeaZYfMYc=

SECURITY ERROR
This download does NOT match an earlier download recorded in go.sum.
"""
NO_GO_SUM_ENTRY = """\
mod/go.etcd.io/etcd/client/pkg/v3@v3.7.3/fileutil/fileutil.go:24:2: missing go.sum entry for module providing \
package go.uber.org/zap (imported by go.etcd.io/etcd/server/v3/etcdmain); to add:
\tgo get go.etcd.io/etcd/server/v3/etcdmain@v3.7.3
"""
NO_GO_SUM_ENTRY_OF_ROOT = """\
missing go.sum entry for module providing package go.etcd.io/etcd/server/v3; to add:
\tgo mod download go.etcd.io/etcd/server/v3
"""
GO_TOO_OLD = "go: go.mod requires go >= 1.26.0 (running go 1.24.1; GOTOOLCHAIN=local)\n"
MODULE_REFUSED = """\
go: downloading k8s.io/kubernetes v1.37.2
go: k8s.io/kubernetes@v1.37.2: reading <address> 403 Forbidden
\tserver response: This module version is not available.
"""
NOT_FOUND = "go: k8s.io/kubernetes@v1.99.0: reading <address> 404 Not Found\n"
NO_HOST = """\
go: downloading go.etcd.io/etcd/server/v3 v3.7.3
go.etcd.io/etcd/server/v3@v3.7.3: Get "<address>": dial tcp: lookup <address>: no such host
"""
REFUSED_CONNECTION = (
    'go.etcd.io/etcd/server/v3@v3.7.3: Get "<address>": dial tcp <address>: connect: connection refused\n'
)
DISK_FULL = """\
# github.com/cenkalti/backoff/v5
compile: writing output: write $WORK/b537/_pkg_.a: no space left on device
"""
LINKER_KILLED = """\
# k8s.io/kubernetes/cmd/kube-apiserver
$GOROOT/pkg/tool/linux_amd64/link: signal: killed
"""
NO_PACKAGE = """\
go: finding module for package k8s.io/kubernetes/cmd/no-such
module k8s.io/kubernetes@latest found (v1.36.3), but does not contain package k8s.io/kubernetes/cmd/no-such
"""
COMPILE_ERROR = """\
# example.com/broken
./main.go:3:1: syntax error: non-declaration statement outside function body
"""


@pytest.mark.parametrize(
    ("output", "cause", "named"),
    [
        pytest.param(CHECKSUM_MISMATCH, "checksum-mismatch", "go.uber.org/zap@v1.27.1", id="checksum"),
        pytest.param(NO_GO_SUM_ENTRY, "go-sum-incomplete", "go.uber.org/zap", id="no-go-sum-entry"),
        pytest.param(
            NO_GO_SUM_ENTRY_OF_ROOT,
            "go-sum-incomplete",
            "go.etcd.io/etcd/server/v3",
            id="no-go-sum-entry-of-root",
        ),
        pytest.param(
            GO_TOO_OLD, "go-too-old", "Go 1.24.1 is too old: go.mod requires 1.26.0", id="go-too-old"
        ),
        pytest.param(MODULE_REFUSED, "module-refused", "k8s.io/kubernetes@v1.37.2", id="refused"),
        pytest.param(NOT_FOUND, "module-refused", "k8s.io/kubernetes@v1.99.0", id="not-found"),
        pytest.param(NO_HOST, "network", "go.etcd.io/etcd/server/v3@v3.7.3", id="no-host"),
        pytest.param(REFUSED_CONNECTION, "network", "go.etcd.io/etcd/server/v3@v3.7.3", id="no-connection"),
        pytest.param(DISK_FULL, "disk-full", "disk", id="disk-full"),
        pytest.param(LINKER_KILLED, "out-of-memory", "memory", id="linker-killed"),
        pytest.param(NO_PACKAGE, "no-such-package", "k8s.io/kubernetes/cmd/no-such", id="no-package"),
    ],
)
def test_failure_of_go_is_named_with_what_is_at_fault(output, cause, named):
    found = diagnose(output, 1)
    assert found.cause == cause
    assert named in found.message
    assert found.hint


def test_killed_go_itself_is_taken_for_lack_of_memory():
    assert diagnose("", -9).cause == "out-of-memory"


def test_compile_error_is_not_taken_for_something_else():
    assert diagnose(COMPILE_ERROR, 1).cause == "unknown"


@pytest.mark.parametrize(
    "line",
    [
        "reading https://user:secret@modules.corp.example/k8s.io/@v/list: 404 Not Found",
        'Get "https://modules.corp.example/x": dial tcp: lookup modules.corp.example on 10.1.2.3:53: no such host',
        "dial tcp 10.1.2.3:443: connect: connection refused",
        "dial tcp [fd00::10.1.2.3]:443: connect: connection refused",
        "\tmodules.corp.example: h1:08RqriUEv8+ArZRYSTXy1LeBScaMpVSTBhCeaZYfMYc=",
    ],
)
def test_address_of_a_module_proxy_is_not_repeated(line):
    printed = redact(line, ["modules.corp.example"])
    assert "corp" not in printed
    assert "10.1.2.3" not in printed
    assert "secret" not in printed
    assert "<address>" in printed


def test_module_paths_survive_redaction_even_when_a_proxy_has_the_same_name():
    line = "verifying go.uber.org/zap@v1.27.1: go.uber.org/zap@v1.27.1: checksum mismatch"
    assert redact(line, ["go.uber.org"]) == line


@given(
    st.text(),
    st.from_regex(r"[a-z]{2,6}://[a-z]{3,9}\.(example|test)(:[0-9]{2,4})?(/[a-z@.]{1,9})?", fullmatch=True),
)
def test_no_url_survives_redaction(text, url):
    assert url not in redact(f"{text} {url} {text}")


@given(st.text())
def test_redaction_is_stable(text):
    once = redact(text, ["proxy.example"])
    assert redact(once, ["proxy.example"]) == once


def test_tail_leaves_out_downloads_and_is_bounded():
    downloads = "".join(f"go: downloading example.com/m{number} v1.0.0\n" for number in range(50))
    printed = tail(f"{downloads}{'x' * 10_000}\n" + "".join(f"line {number}\n" for number in range(10)))
    assert "downloading" not in printed
    assert printed.endswith("line 9")
    assert len(printed) < 1000
