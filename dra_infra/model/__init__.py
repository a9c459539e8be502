"""Records of resource.k8s.io in the `v1` shape, the claim parts of pods, and the objects of a program.

No rule, no defaulting and no input or output lives here: a record can hold what a server would refuse.
"""
