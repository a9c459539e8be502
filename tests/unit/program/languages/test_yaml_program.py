"""What is read of a program in YAML before its host runs it."""

from __future__ import annotations

import json
from pathlib import Path

from dra_infra.errors import Place
from dra_infra.program.languages.yaml_program import YamlProgram, read_program

PROGRAM = """\
name: gpus
runtime: yaml
resources:
  cluster:
    type: pulumi:providers:kubernetes
    properties: {namespace: ml}
  web:
    type: kubernetes:core/v1:ConfigMap
    name: front
    properties:
      metadata: {name: front}
      data: {host: "${bucket.endpoint}", name: '${bucket["arn"]}'}
  bucket:
    type: aws:s3:Bucket
    properties:
      tags:
        fn::invoke: {function: aws:index:getTags, arguments: {id: a}}
variables:
  manifest:
    fn::kubernetes:yaml:decode: {text: a}
"""


def read(folder: Path, text: str) -> YamlProgram:
    (folder / "Pulumi.yaml").write_text(text)
    return read_program(folder, folder)


def test_each_resource_has_the_line_of_its_key_by_its_name_in_pulumi(tmp_path: Path):
    places = read(tmp_path, PROGRAM).places
    assert places == {
        "cluster": Place(file="Pulumi.yaml", line=4),
        "front": Place(file="Pulumi.yaml", line=7),
        "bucket": Place(file="Pulumi.yaml", line=13),
    }


def test_the_schema_of_a_package_has_what_the_program_gives_and_asks_for(tmp_path: Path):
    program = read(tmp_path, PROGRAM)
    assert program.packages == {"kubernetes", "aws"}

    of_aws = json.loads(program.schema("aws"))
    bucket = of_aws["resources"]["aws:s3:Bucket"]
    assert bucket["inputProperties"].keys() == {"tags"}
    assert bucket["properties"].keys() == {"tags", "endpoint", "arn"}
    assert of_aws["functions"]["aws:index:getTags"]["inputs"]["properties"].keys() == {"id"}

    of_kubernetes = json.loads(program.schema("kubernetes"))
    assert of_kubernetes["resources"].keys() == {"kubernetes:core/v1:ConfigMap"}
    assert of_kubernetes["provider"]["inputProperties"].keys() == {"namespace"}
    assert of_kubernetes["functions"].keys() == {"kubernetes:yaml:decode"}


def test_a_file_that_is_no_program_is_left_to_the_host(tmp_path: Path):
    assert read_program(tmp_path, tmp_path) == YamlProgram()
    assert read(tmp_path, "resources: [") == YamlProgram()
    assert read(tmp_path, "resources: {a: 1, b: [c]}").places.keys() == {"a", "b"}


def test_a_program_of_aliases_is_read_once(tmp_path: Path):
    levels = "\n".join(f"  a{each}: &a{each} [{', '.join([f'*a{each - 1}'] * 9)}]" for each in range(1, 12))
    assert read(tmp_path, f"variables:\n  a0: &a0 [b]\n{levels}\n") == YamlProgram()
