"""What the vision team runs: two models that are served."""

from acme_gpus import Model, Platform

platform = Platform.of("vision")

Model("detector", platform=platform, image="registry.example/detector:1.0", gpus=2, replicas=2)
Model("segmenter", platform=platform, image="registry.example/segmenter:1.0")
