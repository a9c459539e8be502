"""The command line: arguments in, text and exit codes out; every answer comes from the packages below.

Exit codes: 0 all is well, 1 problems or something does not fit, 2 wrong usage.
"""
