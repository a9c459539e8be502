"""Stand-in for the vendor's Kubernetes provider, for tests against a real API server.

The vendor's provider is not available as a Go module, so the project cannot build it. This one answers for
the same type tokens and copies the vendor's rules for names, replacement, field managers and awaiting; what
it copies and what it leaves out is written in `docs/stand-in-provider.md`. Where the vendor's plugin is
installed, the same tests use that.
"""
