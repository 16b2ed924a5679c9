"""Settings of the whole suite.

Hypothesis draws the same examples on every run, so that a failure is a change in the code. ``HYPOTHESIS_PROFILE=wide``
draws ten times as many new ones.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=_SLOW)
settings.register_profile("wide", deadline=None, max_examples=1000, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
