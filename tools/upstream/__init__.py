"""What changed upstream in the functions that modules of ours are ported from."""
