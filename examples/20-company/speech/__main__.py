"""What the speech team runs: one model on three pods."""

from acme_gpus import Model, Platform

Model(
    "recognizer",
    platform=Platform.of("speech"),
    image="registry.example/recognizer:1.0",
    gpus=2,
    replicas=3,
)
