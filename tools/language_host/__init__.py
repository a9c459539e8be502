"""Python language host for the real Pulumi engine, written from the protocol that the SDK's wheel carries.

The vendor's host is not available as a Go module, so the project cannot build it. This one runs programs,
policy packs and component providers. It does not generate SDKs, type-check or attach debuggers.
"""
