"""The node plugin: prepares claims on a node so that nothing is leaked, lost or given twice (docs/adr/0009).

The command is `dra-infra-plugin` (docs/node-plugin.md). `back_end` and `claims` are what a driver of one's own is written with
(docs/write-your-own-driver.md); nothing else in here is public.
"""
