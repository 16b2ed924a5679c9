"""Leximins level by level: what the engines that solve them share.

=================  ======================================================================================================
``levels``         the loop over levels, the bound of a level by weak duality, who is settled by it
``tree``           the parts of a filled tree of queues, and points beyond the next change of rates that need no program
``polish``         an answer near the leximin, moved to where the equations of its levels hold exactly
``tree_polish``    the same for a tree that is filled
``nested_polish``  the same for a tree whose depths are leximins, one after another
``least_change``   the least change of numbers that solves linear equations
=================  ======================================================================================================
"""
