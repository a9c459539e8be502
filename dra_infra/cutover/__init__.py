"""The plan of a cut-over: nodes go from the device plugin to the DRA driver group by group, and workloads with them (ADR 19)."""
