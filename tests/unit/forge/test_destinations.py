from __future__ import annotations

import json
from pathlib import Path

import pytest

from dra_infra.errors import ForgeError, Problem
from dra_infra.forge.destinations import Destination, destination_of

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_REPOSITORY": "team/infra",
    "GITHUB_REF": "refs/pull/42/merge",
    "GITHUB_TOKEN": "ghs_0123456789",
}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_API_V4_URL": "https://git.example.com/api/v4",
    "CI_PROJECT_ID": "99",
    "CI_MERGE_REQUEST_PROJECT_ID": "7",
    "CI_MERGE_REQUEST_IID": "3",
    "GITLAB_TOKEN": "glpat-0123456789",
}


def problems(environment: dict[str, str], **options: object) -> list[Problem]:
    with pytest.raises(ForgeError) as error:
        destination_of(environment, **options)  # type: ignore[arg-type]
    assert {problem.code for problem in error.value.problems} == {"forge-settings"}
    return list(error.value.problems)


def test_github_actions_say_where(tmp_path: Path):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 43}}))
    found = destination_of(GITHUB | {"GITHUB_EVENT_PATH": str(event)})
    assert found == Destination(
        forge="github",
        api="https://api.github.com",
        repository="team/infra",
        number=43,
        token="ghs_0123456789",
        token_variable="GITHUB_TOKEN",
    )


@pytest.mark.parametrize(
    "event", ["", "{", "[]", '{"pull_request": []}', '{"pull_request": {"number": "43"}}']
)
def test_without_a_number_in_the_event_the_reference_says_it(tmp_path: Path, event: str):
    file = tmp_path / "event.json"
    file.write_text(event)
    assert destination_of(GITHUB | {"GITHUB_EVENT_PATH": str(file)}).number == 42
    assert destination_of(GITHUB | {"GITHUB_EVENT_PATH": str(tmp_path / "none")}).number == 42


def test_an_enterprise_server_is_taken_from_the_environment():
    api = "https://git.example.com/api/v3"
    assert destination_of(GITHUB | {"GITHUB_API_URL": f"{api}/"}).api == api


def test_gitlab_ci_says_where_and_names_the_project_of_the_merge_request():
    found = destination_of(GITLAB)
    assert (found.forge, found.api, found.repository, found.number) == (
        "gitlab",
        "https://git.example.com/api/v4",
        "7",
        3,
    )


def test_options_go_before_the_environment():
    found = destination_of(
        GITLAB | {"OTHER": "glpat-other"},
        api="https://other.example.com/api/v4",
        repository="group/sub/infra",
        number=5,
        token_variable="OTHER",
    )
    assert (found.api, found.repository, found.number, found.token) == (
        "https://other.example.com/api/v4",
        "group/sub/infra",
        5,
        "glpat-other",
    )


def test_all_that_is_missing_is_said_at_once():
    assert sorted(problem.path for problem in problems({})) == ["--number", "--repository", "GITHUB_TOKEN"]


def test_a_push_has_no_pull_request():
    assert [each.path for each in problems(GITHUB | {"GITHUB_REF": "refs/heads/main"})] == ["--number"]


def test_the_job_token_of_gitlab_is_not_taken():
    environment = {**GITLAB, "GITLAB_TOKEN": "", "CI_JOB_TOKEN": "glcbt-0123456789"}
    assert [each.path for each in problems(environment)] == ["GITLAB_TOKEN"]


@pytest.mark.parametrize(
    "repository",
    ["infra", "../infra", "team/..", "team/in fra", "team/infra/x", "team/infra?x", "team/", "a/b\n"],
)
def test_a_repository_is_an_owner_and_a_name(repository: str):
    assert [each.path for each in problems(GITHUB, repository=repository)] == ["--repository"]


@pytest.mark.parametrize(
    "api",
    [
        "git.example.com",
        "ftp://git.example.com",
        "http://git.example.com/api/v3",
        "https://",
        "https://[::1",
        "https://h:x/",
    ],
)
def test_an_api_is_an_https_address(api: str):
    assert [each.path for each in problems(GITHUB, api=api)] == ["--api"]


@pytest.mark.parametrize(
    "api", ["https://me:hunter22@git.example.com", "https://git.example.com/?key=hunter22"]
)
def test_an_address_with_a_password_is_refused_without_showing_it(api: str):
    (problem,) = problems(GITHUB, api=api)
    assert "hunter22" not in str(problem)


@pytest.mark.parametrize("token", ["two words", "line\nbreak0123", "ünï0123456", "bell\a0123456"])
def test_a_malformed_token_is_refused_without_showing_it(token: str):
    (problem,) = problems(GITHUB | {"GITHUB_TOKEN": token})
    assert problem.path == "GITHUB_TOKEN"
    assert token not in str(problem)


def test_a_forge_that_is_not_known_is_said():
    assert [each.path for each in problems(GITHUB, forge="gitea")] == ["--forge"]


def test_a_destination_does_not_print_its_token():
    assert "ghs_0123456789" not in repr(destination_of(GITHUB)) + str(destination_of(GITHUB))
