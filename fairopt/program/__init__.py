"""The optimisation model that a notion declares and an engine solves, as plain data.

===================  ========================================================================
``program``          `Program`
``solution``         `Solution`, what an engine returns, and `Stage`, one level of it
``all_pairs``        a program of all pairs of users and servers, as tables
``objective``        what every goal says of itself, and `Feature`, what an engine must support
``goals``            the goals: Leximin, Total, AlphaFair, ...
``limits``           named rows, matrix @ x <= bounds
``sparse_rows``      sparse rows made, selected and stacked without SciPy's classes
``tree_filling``     the goal of a tree of queues: the rates of users
``guarantees``       how far guarantees are met together: asks, parts and floors
``promises``         what is promised: each guarantee of a resource, and what of it is held
``agents``           programs of agents, by which guarantees are met together
``undisturbed``      guaranteed nodes that a filling fills as it would fill them alone
``filled_together``  what such nodes would hold alone, from one filling of all
``stop_times``       the filling of a tree as a leximin of stop times, for whole tasks
``nested``           the goal of a tree that is fair among queues first
``past``             a leximin of past and present shares together
``stated_rows``      rows that somebody states by name: `Program.with_limit`
``rule_limits``      the rules of an instance as rows: lower bounds and equations
``checking``         a program of a notion of one's own, checked
``queue_limits``     limits and guarantees of queues as rows
``kept_parts``       what queues keep of their guarantees: a family of rows, made where they are needed
``share_limits``     limits that are limits on shares alone, wherever tasks run
``cluster_limits``   the columns and limits that all notions share
``scaling``          a program in scaled units, and the way back
``reduction``        a program with rows and columns that are alike taken together, and the way back
``exact``            a program in fractions: ``ExactProgram``
``exact_limits``     limits in fractions, from the instance, by the kind of each
``exact_reduction``  the reduction in fractions
``likeness``         what the answer to a program much like it says of a program
``text``             a program as text: what ``print(program)`` shows
``formula``          a program as a formula, LaTeX and MathML
``as_data``          a program as plain data, ready for JSON
``own_floors``       lower bounds on a user's utility: rules that say no more
``own_limits``       upper bounds on a user's level from its limits on tasks and on parallelism
``parallelism``      how many servers a user runs on at once
``most_work``        the most work that a user could do alone where tasks differ by server
``filling``          input of progressive filling: the criterion, and the arrays that are filled
``events``           input of a simulation of whole tasks
``placement``        whole tasks near an allocation, and where they run
``components``       which nodes of a graph are joined
===================  ========================================================================
"""

from __future__ import annotations

from fairopt.program.all_pairs import AllPairs
from fairopt.program.goals import (
    AlphaFair,
    Alternative,
    Disjunctive,
    Equalize,
    Equilibrium,
    FinishTimes,
    Goal,
    Leximin,
    Separate,
    Total,
    Tradeoff,
)
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.nested import Nested
from fairopt.program.objective import Feature
from fairopt.program.program import Program
from fairopt.program.scaling import ScaledColumns
from fairopt.program.solution import Solution, Stage
from fairopt.program.tree_filling import TreeFilling

__all__ = [
    "AllPairs",
    "AlphaFair",
    "Alternative",
    "Disjunctive",
    "Equalize",
    "Equilibrium",
    "Feature",
    "FinishTimes",
    "Goal",
    "Leximin",
    "LimitKind",
    "Limits",
    "Nested",
    "Program",
    "ScaledColumns",
    "Separate",
    "Solution",
    "Stage",
    "Total",
    "Tradeoff",
    "TreeFilling",
]
