"""The commands, a module each: its options and its help, and the call of what it does, imported when it runs.

A new command is a module here with a click command of the same name, and that name in `COMMANDS` of
`dra_infra.cli.app`. It returns the exit code.
"""
