"""The API as data: records in the `v1` shape, their versions, quantities, names and feature gates.

A record can hold what a server would refuse: no rule lives here.
"""
