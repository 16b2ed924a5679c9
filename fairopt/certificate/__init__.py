"""The certificate: residuals recomputed from an answer and its dual prices, independently of every engine.

=====================  ============================================================================
``certificate``        `Certificate`, and the residuals of each goal
``levels``             the proof of a leximin, level by level, with what lower levels imply
``leximin_levels``     who is settled at which level, and the worst residuals
``plain_level``        the plain proof of a level, from its own prices
``plain_levels``       the plain proofs of all levels at once
``price_parts``        which parts of the prices of a level are noise or rounding
``finish_times``       the levels of finish times
``ruled_levels``       the proof of a leximin with rules, rows of any sign
``tree_levels``        the proof of a tree that is filled
``tree_course``        the course of the filling of a tree, by its definition
``nested_levels``      the proof of the leximins of a tree, one depth after another
``floors``             how far guarantees are met together, and levels that keep these floors
``one_level``          a leximin of one level in a program of all pairs, without columns
``one_worth``          an alpha-fair optimum in such a program
``table_excess``       what tasks of such a program exceed its limits by
``conditions``         the conditions of alpha-fair goals, of equilibria and of unions of polytopes
``hidden_prices``      what rounding hides in the prices of an alpha-fair answer
``price_response``     how far what users have would move with it
``distance``           how far an allocation can be from an alpha-fair optimum at most, in floats
``enclosure``          the same in ball arithmetic, without rounding
``exact``              the certificate in fractions, without a tolerance
``exact_levels``       its proof of a leximin
``exact_trees``        its proof of trees of queues
``exact_floors``       its proof of how far guarantees are met together
``exact_equilibrium``  its proof of an equilibrium of servers
``exact_largest``      its proof that a point of a linear program has the largest value
=====================  ============================================================================
"""

from __future__ import annotations

from fairopt.certificate.certificate import Certificate, allocation_excess, certify, limit_excess, marginal_worth

__all__ = ["Certificate", "allocation_excess", "certify", "limit_excess", "marginal_worth"]
