"""The command line: arguments in, text and exit codes out; every answer comes from the packages below.

Exit codes: 0 all is well, 1 problems were found or something does not fit, 2 there is no answer: wrong usage, a program
that does not run, something that cannot be read.
"""
