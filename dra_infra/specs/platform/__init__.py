"""Installations of the GPU Operator, the NVIDIA DRA driver and the example driver: arguments to charts, values, problems."""
