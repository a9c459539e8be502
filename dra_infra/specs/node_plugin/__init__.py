"""Our node plugin on a cluster: which objects, with which rights."""
