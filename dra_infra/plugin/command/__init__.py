"""The command `dra-infra-plugin`: settings, what an operator sees, and the joining of all parts."""
