"""Starts the Pulumi package of the dra-infra that is installed: what `python -m dra_infra.provider` does."""

import runpy

runpy.run_module("dra_infra.provider", run_name="__main__", alter_sys=True)
