"""The scheduler's allocator: which devices of a node the claims of a pod get, as each Kubernetes minor chooses them.

`allocator.Allocator` answers for one node at a time, from values that are never changed.
"""
