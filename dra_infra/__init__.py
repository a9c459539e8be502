"""Declarative GPU infrastructure for Kubernetes Dynamic Resource Allocation."""
