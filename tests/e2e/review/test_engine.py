"""What the preview of the real engine adds to a review, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.review.conftest import Reviewed
from tests.support.processes import wait_for_end
from tools.cluster import Api

pytestmark = pytest.mark.e2e

PACK = Path(__file__).with_name("policy_pack")
SERVING = 'deployment("serving", dra.GpuClaimTemplate("server", device_class=h100, namespace=NAMESPACE), 1, "i:{}")\n'


def test_policies_drift_secrets_and_what_the_program_lost(project: Reviewed, gpus: Api):
    project.deploy(
        SERVING.format("1")
        + 'k8s.core.v1.ConfigMap("drifting", metadata={"name": "drifting", "namespace": NAMESPACE}, data={"k": "1"})\n'
    )
    lost = (
        'k8s.core.v1.ConfigMap("lost", metadata={"name": "lost", "namespace": NAMESPACE}, data={"k": "1"})\n'
    )
    kept = 'k8s.core.v1.ConfigMap("drifting", metadata={"name": "drifting", "namespace": NAMESPACE}, data={"k": "1"})\n'
    # Deployed by hand from a branch that never got into the base.
    project.write(SERVING.format("1") + kept + lost)
    project.stack.up().check()
    gpus.patch("v1/ConfigMap", "drifting", {"data": {"k": "by hand"}}, namespace=project.namespace)
    secret = (
        'k8s.core.v1.Secret("key", metadata={"name": "key", "namespace": NAMESPACE},'
        ' string_data={"key": pulumi.Output.secret("hunter2-of-stack")})\n'
        'pulumi.log.warn("careful")\nprint("noise")\n'
    )
    project.write(SERVING.format("latest") + kept + secret)

    answer = project.review("--policy-pack", str(PACK), TEAM_TOKEN="hunter2-of-environment")

    assert answer.code == 1, answer.text
    refreshed = project.review("--refresh")
    drifted = {each["name"]: each["why"] for each in refreshed.data["engine"]["others"]}
    assert drifted == {"drifting": "drift", "lost": "gone"}
    policies = {
        (each["severity"], each["path"])
        for each in answer.data["problems"]
        if each["code"] == "policy-violated"
    }
    serving = f"Deployment {project.namespace}/serving"
    assert policies == {("error", serving), ("warning", serving)}
    assert {each["level"] for each in answer.data["engine"]["policies"]} == {"mandatory", "advisory"}
    others = {each["name"]: (each["why"], each["steps"]) for each in answer.data["engine"]["others"]}
    assert others == {"lost": ("gone", ["delete"])}
    assert [each["text"] for each in answer.data["engine"]["warnings"]] == ["careful"]
    assert answer.data["engine"]["whole"]
    assert answer.change("Secret", "key")["steps"] == ["create"]
    assert "hunter2" not in answer.text + str(answer.data)
    assert "noise" not in str(answer.data)


def test_what_the_server_refuses_in_the_dry_run_is_a_problem_at_the_users_line(project: Reviewed):
    program = 'dra.GpuClaimTemplate("fixed", device_class=h100, count={}, namespace=NAMESPACE, object_name="fixed")\n'
    project.deploy(program.format(1))
    project.write(program.format(2))

    answer = project.review()

    (refused,) = [each for each in answer.data["problems"] if each["code"] == "engine-refused"]
    assert answer.code == 1
    assert refused["path"] == f"ResourceClaimTemplate {project.namespace}/fixed"
    assert "immutable" in refused["message"]
    assert refused["place"]["file"] == "__main__.py"
    assert not answer.data["engine"]["whole"]


def test_a_stack_whose_base_was_never_deployed_is_told(project: Reviewed):
    project.write(SERVING.format("1"))
    project.commit()
    project.write(SERVING.format("2"))

    answer = project.review()

    assert answer.change("Deployment", "serving")["steps"] == ["create"]
    assert any("the engine creates it" in note for note in answer.data["notes"])
    assert {each["why"] for each in answer.data["engine"]["others"]} <= {"missing", "component", "provider"}


def test_a_cluster_that_is_away_is_not_known_and_no_problem_of_the_change(project: Reviewed, tmp_path: Path):
    project.deploy(SERVING.format("1"))
    project.write(SERVING.format("2"))
    kubeconfig = tmp_path / "away"
    text = Path(project.stack.environment["KUBECONFIG"]).read_text()
    # Port 9 is discard: nobody answers.
    lines = [
        f"{line.partition('server:')[0]}server: https://127.0.0.1:9" if "server:" in line else line
        for line in text.splitlines()
    ]
    kubeconfig.write_text("\n".join(lines))

    answer = project.review(KUBECONFIG=str(kubeconfig))

    assert answer.change("Deployment", "serving")["steps"] == ["update"]
    assert any("no API server answered" in each["reason"] for each in answer.data["notKnown"])
    assert [each["code"] for each in answer.data["problems"]] == []
    assert answer.code == 0

    # To read the cluster first needs one.
    answer = project.review("--refresh", KUBECONFIG=str(kubeconfig))
    assert (answer.code, answer.data["engine"]["failure"]["code"]) == (2, "engine-cluster-away")


@pytest.mark.parametrize(
    ("code", "arguments", "environment"),
    [
        pytest.param("engine-passphrase", (), {"PULUMI_CONFIG_PASSPHRASE": "wrong"}, id="passphrase"),
        pytest.param("engine-backend", (), {"PULUMI_BACKEND_URL": "file:///gone"}, id="backend"),
        pytest.param("engine-stack-missing", ("--stack", "nope"), {}, id="stack"),
    ],
)
def test_without_a_preview_the_offline_review_is_whole_and_the_exit_code_is_2(
    offline_project: Reviewed, code: str, arguments: tuple[str, ...], environment: dict[str, str]
):
    # A stack without a file is refused before the engine is asked; with one, the engine says that it has none.
    (offline_project.stack.directory / "Pulumi.nope.yaml").touch()

    answer = offline_project.review(*arguments, **environment)

    assert answer.code == 2
    assert answer.data["engine"]["failure"]["code"] == code
    assert any(f"[{code}]" in each["reason"] for each in answer.data["notKnown"])
    assert answer.change("ConfigMap", "a")["steps"] == []


def test_a_program_that_hangs_under_the_engine_is_ended_with_its_hosts(
    cold_offline_project: Reviewed, tmp_path: Path
):
    pid = tmp_path / "pid"
    cold_offline_project.write(
        'k8s.core.v1.ConfigMap("a", metadata={"name": "a", "namespace": NAMESPACE}, data={"k": "2"})\n'
        "import os, signal, time\n"
        'if "PULUMI_CONFIG" in os.environ:\n'
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        f"    open({str(pid)!r}, 'w').write(f'{{os.getpid()}} {{os.getppid()}}')\n"
        "    time.sleep(600)\n"
    )

    # On a busy machine it may not have begun within the first time.
    for seconds in ("20", "100"):
        answer = cold_offline_project.review("--timeout", seconds)
        if pid.exists():
            break

    assert answer.code == 2
    assert answer.data["engine"]["failure"]["code"] == "engine-timeout"
    assert answer.change("ConfigMap", "a")["steps"] == []
    for number in pid.read_text().split():
        assert wait_for_end(int(number))


def test_a_program_that_raises_only_under_the_engine_is_a_problem(offline_project: Reviewed):
    offline_project.write('import os\nif "PULUMI_CONFIG" in os.environ:\n    raise RuntimeError("boom")\n')

    answer = offline_project.review()

    assert answer.code == 1, answer.text
    (problem,) = [each for each in answer.data["problems"] if each["code"] == "engine-error"]
    assert "boom" in problem["message"]


def test_a_missing_plugin_has_a_code(offline_project: Reviewed):
    file = offline_project.stack.directory / "Pulumi.yaml"
    lines = file.read_text().splitlines()
    file.write_text("name: project\nruntime: python\n")

    answer = offline_project.review()

    assert lines != file.read_text().splitlines()
    assert (answer.code, answer.data["engine"]["failure"]["code"]) == (2, "engine-plugin-missing")
