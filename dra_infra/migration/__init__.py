"""Migration of what people have, requests to a device plugin and old DRA, to claims of resource.k8s.io/v1.

Everything here is from plain data to plain data; who reads files and writes them is elsewhere.
"""
