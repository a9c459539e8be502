"""NVIDIA facts and fleets as packaged data."""
