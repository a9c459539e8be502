"""Intent to objects, as pure functions: the rules behind every component.

A spec takes plain arguments and returns model records, or raises `InvalidSpecError` with every problem in the user's
terms. Nothing here knows Pulumi; where an argument is only known after `pulumi up`, `program_objects.UNKNOWN` stands
in for it and the component puts the real value in.
"""
