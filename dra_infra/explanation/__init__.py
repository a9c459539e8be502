"""Why claims get no devices: counted devices, proofs in words, and the smallest edits that fit.

Everything here asks the ported allocator and reads what it reads; nothing decides about an allocation by itself.
"""
