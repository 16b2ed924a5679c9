"""Leximins level by level: what the engines that solve them share.

=================  ============================================================================================
``levels``         the loop over levels, the bound of a level by weak duality, the users that it settles
``polish``         an answer near the leximin, moved to where the equations of its levels hold exactly
``tree``           a tree of queues filled in floats: parts, levels, and points beyond the next change of rates
``parts``          a tree of queues filled part by part: guarantees first, then what is left
``tree_polish``    the polish of a filled tree
``nested_polish``  the polish of a tree whose depths are leximins, one after another
``least_change``   the least change of numbers that solves linear equations
``least_prices``   the least prices that prove the levels of an answer, one linear program a level
``ruled``          leximins and totals under rules, whose coefficients and bounds have any sign
``ruled_tree``     a tree of queues filled under rules, one linear program a level
``floors``         how far guarantees are met together, and levels that keep these floors
``agents``         the programs of agents for these floors, by HiGHS
``agent_rows``     the linear program of one level of agents
``settings``       which gains count, how far points beyond a change look, what a polish takes for rounding
=================  ============================================================================================
"""
