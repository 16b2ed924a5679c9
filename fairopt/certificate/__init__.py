"""The certificate: residuals recomputed from an answer and its dual prices, independently of every engine.

===============  =========================================================================
``certificate``  `Certificate`, and the residuals of each goal
``levels``       the proof of a leximin, level by level
``tree_course``  the course of the filling of a tree, by its definition
``one_level``    the same of a leximin of one level in a program of all pairs, without its columns
``one_worth``    the proof of an alpha-fair optimum in such a program
``exact``        the proof in fractions, without a tolerance
``conditions``   the conditions of alpha-fair goals, of equilibria and of unions of polytopes
===============  =========================================================================
"""

from __future__ import annotations

from fairopt.certificate.certificate import Certificate, allocation_excess, certify, marginal_worth

__all__ = ["Certificate", "allocation_excess", "certify", "marginal_worth"]
