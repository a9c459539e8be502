"""Slices, claims and pods to the scheduler's answer: which nodes can take a pod, with which devices, or why none.

Pure and deterministic. What is modelled and what is not stands in docs/placement.md.
"""
