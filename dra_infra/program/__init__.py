"""Runs a user's program: in process, without the CLI, a network or a cluster.

`synth` gives what `pulumi preview` would register, as plain records. Nothing here knows a rule of Kubernetes.
"""
