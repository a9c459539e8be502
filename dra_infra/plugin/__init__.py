"""The node plugin: prepares claims on a node so that nothing is leaked, lost or given twice (docs/adr/0009).

It is no public API yet, and no command starts it.
"""
