"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Speed is measured by `make bench`: on a busy machine a deadline or a slow generator says nothing about the code.
settings.register_profile("dra-infra", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dra-infra")
