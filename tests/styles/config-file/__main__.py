"""Manifests that the SDK reads."""

import pulumi_kubernetes as k8s

k8s.yaml.ConfigFile("workloads", file="manifests/train.yaml")
