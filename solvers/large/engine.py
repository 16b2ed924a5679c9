"""The engine of very large programs: groups of similar users where all may run everywhere, regions of servers where they may not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fairopt.errors import NoSolution, Unsupported
from fairopt.program import AllPairs, AlphaFair, Feature, Leximin, LimitKind, Program, Solution
from fairopt.solvers.backend import NEVER, Backend, Deadline, Method
from fairopt.solvers.interior_point.settings import weights_differ
from fairopt.solvers.large.settings import SETTINGS

__all__ = ["Large", "suits_groups", "suits_regions"]

_Solve = Callable[[Program, float, Deadline, Solution | None], Solution | None]


class Large(Backend):
    """Groups of similar users (`groups`, `alpha_fair_groups`), and levels region by region (`regions`).

    Both solve small programs with the paths of `fairopt.solvers.interior_point`. Of smaller programs there is nothing to gain.
    """

    name = "large"
    title = "Large: groups of similar users, and regions of servers, for leximins and alpha-fair goals of 100,000 pairs and more"
    features = frozenset({Feature.LEXIMIN, Feature.ALPHA_FAIR, Feature.SEVERAL_SERVERS})

    @classmethod
    def suits(cls, program: Program) -> bool:
        """Are groups, or regions, faster than the path of all pairs?"""
        return suits_groups(program) or suits_regions(program)

    @classmethod
    def wins(cls, program: Program) -> bool:
        """Of all programs that it suits."""
        return cls.suits(program)

    def methods(self, program: Program, tolerance: float) -> Sequence[Method]:
        """Return the method by groups, or the two methods by regions: the second takes its regions from the answer of the first.

        Raises
        ------
        Unsupported
            Neither applies.
        """
        if isinstance(program, AllPairs) and (isinstance(program.goal, Leximin) or _has_fast_groups(program)):
            return (Method(self.name, _guarded(_in_groups), polish_above=NEVER),)  # groups have a polish of their own
        if suits_regions(program):
            return tuple(
                Method(name, _guarded(solve), skip_below=tolerance, polish_above=tolerance)
                for name, solve in ((self.name, _in_regions), ("regions of the first answer", _in_regions_again))
            )
        raise Unsupported(
            f'"{self.name}" is for leximins and alpha-fair goals of at least 100,000 pairs of users and servers, and "{program.name}" is '
            "smaller here, or has rows that it does not know; leave solver out"
        )

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Return the answer of the first method that has one.

        Raises
        ------
        NoSolution
            At the deadline, or where groups or regions give no answer.
        """
        for method in self.methods(program, tolerance):
            found = method.solve(program, tolerance, deadline, None)
            if found is not None:
                return found
        raise NoSolution(f'"{self.name}" did not converge on "{program.name}"; use another solver', {})


def suits_groups(program: Program) -> bool:
    """Are there so many pairs of all users and all servers that groups of users are faster?"""
    if not isinstance(program, AllPairs):
        return False
    (n, m), k = program.demands.shape, program.capacities.shape[0]
    users_for_a_server = SETTINGS.users_for_a_server[min(m, len(SETTINGS.users_for_a_server)) - 1]
    if n * k < SETTINGS.least_pairs or k < SETTINGS.least_servers or n < max(SETTINGS.least_users, users_for_a_server * k):
        return False
    if isinstance(program.goal, Leximin):
        many = n * k >= SETTINGS.pairs_of_levels or n >= SETTINGS.users_of_levels * k
        return many or weights_differ(program.goal.weights)
    return k <= SETTINGS.most_servers and _has_fast_groups(program)


def _has_fast_groups(program: AllPairs) -> bool:
    goal = program.goal
    return isinstance(goal, AlphaFair) and SETTINGS.least_alpha <= goal.alpha <= SETTINGS.most_alpha and program.demands.shape[1] > 1


def suits_regions(program: Program) -> bool:
    """Is this a large leximin of capacities and task limits alone, whose tasks are worth the same on all servers of a user?"""
    if not isinstance(program.goal, Leximin) or isinstance(program, AllPairs) or program.n_pairs < SETTINGS.pairs_of_regions:
        return False
    kinds, users = program.limits.kinds, program.pair_users
    of_servers = kinds == LimitKind.CAPACITY
    if np.count_nonzero(of_servers) < SETTINGS.limits_of_regions or not (of_servers | (kinds == LimitKind.TASKS)).all():
        return False
    same_worth = (program.utilities[1:] == program.utilities[:-1])[users[1:] == users[:-1]].all()
    if not same_worth or program.members.size < len(program.users):
        return False
    from fairopt.solvers.structure.scaling import obstacle

    return not obstacle(program)


# Methods ----------------------------------------------------------------------------------------------------------------------------


def _in_groups(program: Program, tolerance: float, deadline: Deadline, _: Solution | None) -> Solution | None:
    assert isinstance(program, AllPairs)
    if isinstance(program.goal, Leximin):
        from fairopt.solvers.large.groups import solve_level

        return solve_level(program, tolerance, deadline)
    from fairopt.solvers.large.alpha_fair_groups import solve_alpha_fair

    assert isinstance(program.goal, AlphaFair)
    return solve_alpha_fair(program, program.goal, deadline)


def _in_regions(program: Program, tolerance: float, deadline: Deadline, _: Solution | None) -> Solution | None:
    from fairopt.solvers.large.rough_levels import rough_levels

    return _in_regions_again(program, tolerance, deadline, rough_levels(program, deadline))


def _in_regions_again(program: Program, tolerance: float, deadline: Deadline, rough: Solution | None) -> Solution | None:
    from fairopt.solvers.large.regions import solve_in_regions

    assert isinstance(program.goal, Leximin)
    return None if rough is None else solve_in_regions(program, program.goal, rough, tolerance, deadline)


def _guarded(solve: _Solve) -> _Solve:
    """Return the same in one thread, with None where memory runs out: an engine after this one says so."""

    def guarded(program: Program, tolerance: float, deadline: Deadline, best: Solution | None) -> Solution | None:
        from fairopt.solvers.structure.threads import one_thread

        try:
            with np.errstate(all="ignore"), one_thread():  # a path that overflows fails, and says so
                return solve(program, tolerance, deadline, best)
        except MemoryError:
            return None

    return guarded
