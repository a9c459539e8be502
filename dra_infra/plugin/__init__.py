"""The node plugin: prepares claims on a node so that nothing is leaked, lost or given twice (docs/adr/0009).

The command is `dra-infra-plugin` (docs/node-plugin.md). What is in here is no public API.
"""
