"""Pulumi component resources: thin shells over `specs`.

A component turns its arguments into a spec, registers the children that the spec compiles to, and reports problems
instead of raising, so that one run shows all of them. No rule about Kubernetes or hardware lives here.
"""
