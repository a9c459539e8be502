"""Reading a live cluster: nothing here writes to one, and no Secret or ConfigMap is ever asked for."""
