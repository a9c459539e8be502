"""Real parts for development and tests: pinned binaries, and a Kubernetes control plane made of them.

Nothing here ships with the product: `dra_infra` never imports `tools`.
"""
