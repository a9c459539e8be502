"""Options and help of each command; its work is loaded when it is called.

Help and completion of a command answer in 0.3 s so, and would take up to 2 s with what the command works with (ADR 11).
"""
