from __future__ import annotations

import json

from dra_infra.review import render_json, review


def test_the_report_names_its_schema_and_verdict(sample):
    report = json.loads(render_json(sample))
    assert (report["schema"], report["failed"], report["grade"]) == ("dra-infra.review/v1", True, "failed")
    assert report["counts"] == {
        "replaced": 4,
        "deleted": 2,
        "retained": 0,
        "changed": 2,
        "created": 2,
        "unchanged": 7,
    }


def test_every_finding_has_its_code(sample):
    report = json.loads(render_json(sample))
    assert [problem["code"] for problem in report["problems"]] == ["no-longer-fits"]
    assert [danger["code"] for danger in report["dangers"]] == [
        "workload-deleted",
        "job-replaced",
    ]
    assert [(each["code"], each["level"]) for each in report["rollouts"]] == [("workload-rolls", "note")]


def test_placements_before_and_after_are_data(sample):
    report = json.loads(render_json(sample))
    train = next(item for item in report["workloads"] if item["object"]["name"] == "train")
    assert (train["before"]["morePods"], train["after"]["morePods"], train["after"]["nodeCount"]) == (
        31,
        15,
        8,
    )
    assert [device["device"] for device in train["after"]["example"]["devices"]] == [
        "gpu-0",
        "gpu-1",
        "gpu-2",
        "gpu-3",
    ]


def test_characters_that_steer_a_terminal_are_escaped_and_kept(make):
    label = "a\x9b\u202e\u2028\x7fé"
    text = render_json(review(make.program(), make.program(), base_label=label))
    assert not {"\x9b", "\u202e", "\u2028", "\x7f"} & set(text)
    assert "é" in text
    assert json.loads(text)["base"] == label


def test_names_of_nodes_are_limited_and_counted(make):
    fleet = make.fleet(*(make.node(f"n{index:03}", gpus=1) for index in range(120)))
    placed = make.place(fleet, ("Job", "a", 1, 1, "H100 80GB HBM3"))
    report = json.loads(render_json(review(make.program(), make.program(), base_label="main", after=placed)))
    assert (report["workloads"][0]["after"]["nodeCount"], len(report["workloads"][0]["after"]["nodes"])) == (
        120,
        16,
    )
