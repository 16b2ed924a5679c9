"""The engine of all interior points (`fairopt.solvers.interior_point.paths`), and the programs for which it is the fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairopt.errors import NoSolution, Unsupported
from fairopt.instance.tolerances import EXACT
from fairopt.program import AllPairs, Feature, Leximin, LimitKind, Program, Solution, TreeFilling
from fairopt.program.components import components
from fairopt.program.limits import ACROSS_SERVERS
from fairopt.solvers.backend import ALWAYS, Backend, Deadline, Method
from fairopt.solvers.interior_point.market import as_market, is_large
from fairopt.solvers.interior_point.settings import ENGINE, weights_differ
from fairopt.wording import plural

if TYPE_CHECKING:
    from fairopt.solvers.interior_point.paths import Path

__all__ = ["InteriorPoint"]


class InteriorPoint(Backend):
    """Levels, trees, totals, alpha-fair goals and trade-offs, all by ``interior_point.steps``.

    The paths of levels, totals and alpha-fair goals whose limits belong to servers run on tables that may live on another device:
    ``solver="interior-point:torch:cuda"``, or ``":torch"``, ``":cupy"``; ``":numpy"`` is the default.

    An equilibrium of servers that divide their time is solved as a market.

    >>> import fairopt as fo
    >>> instance = fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])
    >>> fo.solve(instance, "drfh", solver="interior-point").tasks_per_user.round(6)
    array([10., 10.])
    """

    name = "interior-point"
    title = "Interior point: alpha-fair goals, trade-offs with the total; leximins, trees, totals and markets of many users and servers"
    takes_solver = True  # which arrays: "numpy", "torch", "torch:cuda", "cupy"
    features = frozenset(
        {
            Feature.ALPHA_FAIR,
            Feature.FLOORS,
            Feature.TRADEOFF,
            Feature.LEXIMIN,
            Feature.EQUALIZE,
            Feature.TOTAL,
            Feature.TREE,
            Feature.MARKET,
            Feature.SEVERAL_SERVERS,
        }
    )

    @classmethod
    def wins(cls, program: Program) -> bool:
        """Is this a large leximin of users with several servers, a large tree, total or market? See ``settings`` and ``market``."""
        if program.is_market:
            return is_large(program)
        pairs = program.n_pairs
        if program.goal.is_filling:
            if pairs < ENGINE.pairs_of_trees:
                return False
            from fairopt.solvers.interior_point.tree import obstacle_of_tree

            return not obstacle_of_tree(program, program.goal_as(TreeFilling))
        if program.goal.has_levels:
            large = _is_large_leximin(program)
        else:
            large = program.goal.feature is Feature.TOTAL and any(
                pairs >= max(least, each * len(program.limits)) for least, each in ENGINE.sizes_of_totals
            )
        if not large:
            return False
        from fairopt.solvers.structure.scaling import obstacle

        return not obstacle(program)

    def methods(self, program: Program, tolerance: float) -> Sequence[Method]:
        """Return the paths that lead to an answer, the fastest first.

        Raises
        ------
        Unsupported
            Where the arrays asked for are of a device, and the only path is one for NumPy.
        """
        from fairopt.solvers.interior_point import paths
        from fairopt.solvers.structure.arrays import array_namespace
        from fairopt.solvers.structure.scaling import obstacle

        goal, arrays = program.goal, array_namespace(self.within)
        if goal.is_equilibrium:
            market = paths.paths_of_market(as_market(program), arrays)
            return tuple(self._method(path, skip_below=ENGINE.digit * tolerance) for path in market)
        if not goal.has_gradient:
            # Of large programs rounding alone leaves more than a tenth of the tolerance: there no polish does better.
            path, enough = paths.structured_path(arrays), tolerance if self.wins(program) else None
            by_levels = self._method(path, skip_below=enough, polish_above=enough)
            if _has_far_weights(program) and _may_have_one_level(program):
                return (self._method(paths.one_level_path(arrays)), replace(by_levels, skip_below=tolerance))
            return (by_levels,)
        if self.within and (goal.feature is Feature.TRADEOFF or obstacle(program)):
            raise Unsupported(
                f'"{self.name}:{self.within}" is for levels, totals, and alpha-fair goals whose limits belong to servers, with limits on '
                f'tasks only where these are worth the same everywhere; "{program.name}" is none of these: leave ":{self.within}" out'
            )
        small = program.n_pairs < ENGINE.pairs_to_polish
        few = program.n_pairs < ENGINE.few_pairs
        enough = EXACT if few else None if small else tolerance
        by_paths = tuple(
            self._method(path, skip_below=None if path.last_resort and not few else enough, polish_above=ALWAYS if small else tolerance)
            for path in paths.paths_of_alpha_fair(program, arrays)
        )
        return (Method("known active sets", _on_known_sets), *by_paths) if small and _has_known_sets(program) else by_paths

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Return the end of the first path that has one.

        Raises
        ------
        NoSolution
            At the deadline, if memory runs out, or if no path converges.
        """
        for method in self.methods(program, tolerance):
            found = method.solve(program, tolerance, deadline, None)
            if found is not None:
                return found
        raise NoSolution(f'"{self.name}" did not converge on "{program.name}"; use another solver', {})

    def _method(self, path: Path, skip_below: float | None = None, polish_above: float | None = None) -> Method:
        """Return a path as a method, with the errors of arrays that do not fit into memory as errors of ours."""
        from fairopt.solvers.structure.arrays import first_line, is_out_of_memory

        def solve(program: Program, tolerance: float, deadline: Deadline, best: Solution | None) -> Solution | None:
            try:
                return path.follow(program, tolerance, deadline, best)
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                said = first_line(error)
            # Raised out here: the other error keeps alive all arrays of the calls that it came through.
            name = ":".join(filter(None, (self.name, self.within)))
            away = self.within not in (None, "numpy")
            elsewhere = f'try solver="{self.name}", which has all the memory that NumPy can get, or ' if away else ""
            raise NoSolution(
                f'"{name}" ran out of memory on {plural(program.n_pairs, "pair")} of users and servers ({said}); '
                f"{elsewhere}ask about fewer pairs: make one user, or one server, of several that are nearly alike"
            )

        return Method(path.name or self.name, solve, skip_below, polish_above)


def _has_known_sets(program: Program) -> bool:
    """Are there tasks and prices of an alpha-fair optimum much like this one, whose active sets these show?"""
    likeness = program.likeness
    if likeness is None or program.goal.feature is not Feature.ALPHA_FAIR or not program.down_closed:
        return False
    return likeness.has_prices_of(program.limits)


def _on_known_sets(program: Program, _: float, __: Deadline, ___: Solution | None) -> Solution | None:
    from fairopt.solvers.active_sets.known_sets import solve_on_known_sets

    assert program.likeness is not None
    return solve_on_known_sets(program, program.likeness)


def _is_large_leximin(program: Program) -> bool:
    """Is this a leximin that HiGHS solves more slowly? HiGHS solves a small program for each level, and a path takes longer steps.

    There are many levels where users have few servers each, or use different resources: up to larger sizes HiGHS is the faster there.
    Users and servers in groups that share nothing have levels of their own: the size of a group counts.
    """
    pairs, users, servers = program.n_pairs, len(program.users), len(program.servers)
    size = pairs * int((program.limits.kinds != LimitKind.TASKS).sum())
    few_each = program.several_levels or pairs <= ENGINE.pairs_each * users
    if few_each and program.limits.of_kinds(*ACROSS_SERVERS).any():  # a hundred levels: HiGHS takes a third of the time
        return False
    some_each = few_each or (not program.goal.is_equal and pairs <= ENGINE.part_each * users * servers)
    differ = some_each and not _all_use_all(program)
    if few_each and differ and pairs < ENGINE.pairs_of_most_levels:
        return False
    many_levels = differ or program.several_levels or pairs <= ENGINE.pairs_each_alike * users
    least = ENGINE.size_of_many_levels if many_levels else ENGINE.size_of_levels
    if size < least or (not program.goal.is_equal and size < least * _number_of_groups(program) ** 2):
        return False
    return not _has_far_weights(program) or (pairs >= ENGINE.pairs_of_far_weights and _may_have_one_level(program))


def _number_of_groups(program: Program) -> int:
    """Return the number of groups of users and servers that share nothing: no user can run on a server of another group."""
    if isinstance(program, AllPairs) or program.limits.of_kinds(*ACROSS_SERVERS).any():
        return 1
    users = len(program.users)
    part = components(program.pair_users, program.pair_servers + users, users + len(program.servers))
    return np.unique(part[program.members]).size


def _has_far_weights(program: Program) -> bool:
    """Is this a leximin whose weights lie so far apart that its path does not prove who stops at a level?"""
    return isinstance(program.goal, Leximin) and weights_differ(program.goal.weights[program.members])


def _may_have_one_level(program: Program) -> bool:
    """Does nobody stop at a limit of its own, and everybody use all resources of most servers? Then all mostly stop together."""
    if program.several_levels:
        return False
    most = program.n_pairs > len(program.users) * len(program.servers) * ENGINE.part_each
    of_servers = isinstance(program, AllPairs) or bool((program.limits.kinds == LimitKind.CAPACITY).all())
    return most and of_servers and _all_use_all(program)


def _all_use_all(program: Program) -> bool:
    """Does everybody use all resources of its servers? Then those who share servers mostly stop together: there are few levels."""
    if isinstance(program, AllPairs):
        return True
    used = np.bincount(program.limits.matrix[program.limits.kinds == LimitKind.CAPACITY].indices, minlength=program.n_pairs)
    return bool((used == used.max(initial=0)).all())
