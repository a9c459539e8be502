"""Messages between the kubelet and a plugin, over gRPC at Unix sockets.

The `.proto` files have the fields, numbers and names of the kubelet's (k8s.io/kubelet, pkg/apis), with what we know of them.
`make protos` writes the modules beside them.
"""
