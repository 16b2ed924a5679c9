"""The certificate: residuals recomputed from an answer and its dual prices, independently of every engine.

====================================  ====================================================================================
``certificate``                       `Certificate`, and the residuals of each goal
``plain_level``                       the plain proof of a level of a leximin, from its own prices
``levels``, ``leximin_levels``        the proof of a leximin, level by level, with what lower levels imply
``price_parts``                       which parts of the prices of a level are noise or rounding
``ruled_levels``                      the proof of a leximin with rules, rows of any sign
``tree_levels``, ``nested_levels``    the proofs of a tree that is filled, and of a nested leximin
``tree_course``                       the course of the filling of a tree, by its definition
``floors``                            how far guarantees are met together, and levels that keep these floors
``one_level``, ``one_worth``          a leximin of one level, and an alpha-fair optimum, in a program of all pairs, without columns
``table_excess``                      what tasks of such a program exceed its limits by
``conditions``                        the conditions of alpha-fair goals, of equilibria and of unions of polytopes
``hidden_prices``                     what rounding hides in the prices of an alpha-fair answer,
``price_response``                    and how far what users have would move with it
``distance``, ``enclosure``           how far an allocation can be from an alpha-fair optimum at most
``exact``, and what begins with it    the proofs in fractions, without a tolerance
====================================  ====================================================================================
"""

from __future__ import annotations

from fairopt.certificate.certificate import Certificate, allocation_excess, certify, limit_excess, marginal_worth

__all__ = ["Certificate", "allocation_excess", "certify", "limit_excess", "marginal_worth"]
