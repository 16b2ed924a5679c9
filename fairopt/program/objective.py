"""What every goal says of itself, so that nobody needs to ask for its class.

What another room does with a goal (a certificate, a text, a picture) is a function of that room, registered by the class of the goal with
`functools.singledispatch`.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from fairopt.instance import FloatArray, IntArray

__all__ = ["Feature", "Objective"]


class Feature(Enum):
    """What an engine must support to solve a program. The value completes the sentence "this program has ...".

    No engine supports a feature whose value also says what to do instead.
    """

    LEXIMIN = "a lexicographic max-min goal"
    EQUALIZE = "a goal of one equal level for all"
    FINISH_TIMES = "a goal of finish times"
    TOTAL = "a linear goal"
    ALPHA_FAIR = "an alpha-fair goal"
    TRADEOFF = "a goal that weighs fairness against the total"
    EQUILIBRIUM = "an equilibrium of servers"
    MARKET = "an equilibrium of servers that divide their time"
    DISJUNCTIVE = "a choice among alternatives"
    WHOLE_EQUAL = "one equal level of whole tasks, which seldom exists (use the leximin)"
    WHOLE_ALPHA_FAIR = "whole tasks of an alpha-fair goal"
    WHOLE_DIVIDED = (
        "whole tasks of a notion whose conditions are those of divisible tasks (leave integral out, or use proportional or drfh)"
    )
    WHOLE_TRADEOFF = "whole tasks of a sum that is not linear (leave integral out, or use proportional, efficiency or drfh)"
    WHOLE_BY_STOP_TIMES = "whole tasks in a tree of queues"  # in the order of `fairopt.program.stop_times`
    WHOLE_WITHOUT_STOP_TIMES = (
        "whole tasks in a tree where users of a queue have different dominant resources, or with guarantees='clamp' or tree='nested' (use "
        "queue_share='sum' and guarantees='surplus', leave integral out, or use a greedy schedule)"
    )
    INTEGRAL = "whole tasks"
    TREE = "a tree of queues to fill"
    NESTED = "a tree of queues that is fair among queues first"
    SEPARATE = "a goal of each server by itself"  # no engine needs it: an engine solves the goal of one server at a time
    SEVERAL_SERVERS = "users who may run on several servers"
    RULES = "rules, rows of any sign"
    FLOORS = "least tasks of users"  # rules of an alpha-fair goal that say no more (`fairopt.program.own_floors`); RULES implies it


class Objective:
    """The base of all goals.

    Class attributes
    ----------------
    feature : Feature
        What an engine must support to solve it.
    has_levels : bool
        Are users settled level by level, at a common U[n] / weights[n]?
    is_equal : bool
        Is there one level for all?
    has_gradient : bool
        Is it a smooth concave function of the utilities (with `log_worth`), whose optimum is irrational in general?
    is_equilibrium : bool
        Does each server pursue a goal of its own, given what the others do?
    in_shares : bool
        Is the share of a user U[n] / weights[n]? Else it is U[n].
    is_filling : bool
        Is a tree of queues filled in parts, each with levels of its own?
    tasks_are_caps : bool
        Is a limit on the tasks of a user a cap on its level or utility, where its tasks are worth the same on all servers, and not a row?
    weights : array (users,)
        Of all goals over utilities.
    """

    __slots__ = ()
    weights: FloatArray
    feature: ClassVar[Feature]
    has_levels: ClassVar[bool] = False
    is_equal: ClassVar[bool] = False
    has_gradient: ClassVar[bool] = False
    is_equilibrium: ClassVar[bool] = False
    in_shares: ClassVar[bool] = False
    is_filling: ClassVar[bool] = False
    tasks_are_caps: ClassVar[bool] = False

    @property
    def inner(self) -> Objective:
        """The goal itself; of a goal of separate servers, that of each server."""
        return self

    def worth(self, utilities: FloatArray, users: IntArray) -> FloatArray:
        """Return what a task of each pair counts, (pairs,), for its utility u[p] and its user: u[p] itself, or what a goal makes of it."""
        return utilities

    @property
    def feature_of_whole_tasks(self) -> Feature:
        """What an engine must support beside ``feature`` to solve it in whole tasks."""
        return Feature.INTEGRAL

    @property
    def no_whole_tasks(self) -> str:
        """Why no engine solves it in whole tasks, and what to do, as the end of a sentence; "" where one may."""
        return ""

    def part_title(self, part: int) -> str:
        """Return the name of a part of the goal that is pursued in parts; "" of others."""
        return ""
