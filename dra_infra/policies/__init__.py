"""The checks of dra-infra as a policy pack of Pulumi, for programs in all languages (ADR 25).

The engine starts it, sends it the resources of a program, and prints what it finds. It has no rules of its own: `dra_infra.answers` checks
and places.
"""
