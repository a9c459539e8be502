"""Programs in other languages than Python: they run in the host of their language, against the monitor of `synth`.

A host is a program of Pulumi that runs programs of one language and speaks gRPC. The engine is not needed for that: here the
monitor answers it as it answers a program in Python.
"""
