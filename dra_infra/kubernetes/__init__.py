"""The rules of Kubernetes, by minor. Nothing here knows of GPUs, secrets, prices or our components.

    api        records of resource.k8s.io and of pods, quantities, names, versions and their conversion, feature gates
    cel        parser and checker of expressions, their cost, and one interpreter
    apiserver  validation, defaulting and dropping of fields, admission
    scheduler  the allocator, node filters, extended resources, the pods of a node

It imports nothing of the rest, so that what a server does can be read, tested and corrected without the product.
"""
