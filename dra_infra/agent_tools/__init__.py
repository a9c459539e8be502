"""Checks for coding agents: `dra-infra mcp`, a server of the Model Context Protocol on standard input and output (ADR 28).

It has no rules of its own. Each call runs one command of dra-infra in a confined process, and returns the JSON that the command prints.
"""
