"""Proof that an answer is what it claims to be, recomputed from the answer and its prices, independent of every engine.

===============  =========================================================================
``certificate``  `Certificate`, and which residuals a goal has
``levels``       the proof of a leximin, level by level
``conditions``   conditions of alpha-fair goals, of equilibria, and of unions of polytopes
===============  =========================================================================
"""

from __future__ import annotations

from fairopt.certificate.certificate import Certificate, allocation_excess, certify, marginal_worth

__all__ = ["Certificate", "allocation_excess", "certify", "marginal_worth"]
