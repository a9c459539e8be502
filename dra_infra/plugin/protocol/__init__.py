"""What the kubelet and a plugin say to each other, over gRPC at Unix sockets.

The `.proto` files have the fields, numbers and names of the kubelet's (k8s.io/kubelet, pkg/apis), with what we know of them.
`make protos` writes the modules beside them.
"""
