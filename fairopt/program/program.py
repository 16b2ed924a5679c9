"""The optimisation model that a notion of fairness declares and that an engine solves.

This is a small fixed vocabulary, not a modelling language. There is one column x[p] >= 0 for each eligible pair p = (user, server), and

    U[n] = sum over the pairs p of n of u[p] x[p]          utilities, sparse: one coefficient a pair
    A x <= b,  A >= 0, b >= 0                              limits, named rows
    one goal over the U[n]                                 Leximin, FinishTimes, Equalize, Total, AlphaFair, Tradeoff, Separate,
                                                           Equilibrium, Disjunctive; of a tree of queues TreeFilling, Nested

Pairs that are not eligible have no column. All coefficients of limits but those of rules (`Program.with_rule`) are >= 0, so that without
rules reducing x keeps it feasible (`Program.down_closed`); engines and certificates rely on this. ``print(program)`` shows the program as
mathematics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from fairopt.instance import BoolArray, FloatArray, IntArray, safe_ratio
from fairopt.instance.rules import Sense
from fairopt.instance.tolerances import SAME
from fairopt.program.goals import Equilibrium, Goal, Leximin, Separate
from fairopt.program.kept_parts import KeptParts, KeptRow
from fairopt.program.likeness import Likeness
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.objective import Feature, Objective
from fairopt.program.own_floors import OwnFloors
from fairopt.program.queue_limits import stack_rows
from fairopt.program.scaling import ScaledColumns
from fairopt.program.stated_rows import StatedRow, with_rows
from fairopt.program.text import limit_name, lines_of
from fairopt.show.drawing import ShowsItself

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Program"]

G = TypeVar("G")


@dataclass(frozen=True, slots=True, eq=False)
class Program(ShowsItself):
    """The program of a notion of fairness for one instance.

    Attributes
    ----------
    name, title : str
        Name and title of the notion.
    users, servers, resources : tuples of str
        Labels.
    pair_users, pair_servers : int arrays (pairs,)
        User and server of each column, sorted by user, then by server.
    utilities : array (pairs,)
        u[p] > 0.
    limits : Limits
    goal : Goal
        Its weights are (users,). Users without a column are not in the goal.
    integral : bool
        Whether x must be integral: whole tasks only.
    queue_limits : tuple of str
        Names of the limits of queues, by their keys.
    kept : KeptParts or None
        What queues keep of their guarantees: a family of limits.
    kept_rows : tuple of KeptRow
        Those of the family that are among the limits, in their order: they are the last of ``queue_limits``. The others are made where an
        answer exceeds them (`with_broken`).
    stated : tuple of StatedRow
        The limits that `with_limit` added, as they were given.
    likeness : Likeness or None
        What is known of the answer from that to a program much like it.
    source : Source or None
        What `fairopt.formulate` made it of (`fairopt.solving.formulation.Source`): `fairopt.solve` needs it.
    """

    name: str
    title: str
    users: tuple[str, ...]
    servers: tuple[str, ...]
    resources: tuple[str, ...]
    pair_users: IntArray
    pair_servers: IntArray
    utilities: FloatArray
    limits: Limits
    goal: Goal
    integral: bool = False
    queue_limits: tuple[str, ...] = ()
    kept: KeptParts | None = None
    kept_rows: tuple[KeptRow, ...] = ()
    stated: tuple[StatedRow, ...] = ()
    likeness: Likeness | None = None
    source: Any = None
    _largest: FloatArray | None = field(default=None, init=False, repr=False)  # cache of `largest`; `replace` returns a program without it
    _share_limits: Any = field(default=None, init=False, repr=False)  # cache of `fairopt.program.share_limits.ShareLimits.of`

    def with_goal(self, goal: Goal) -> Program:
        """Return the program with another goal; what has been found of columns and limits alone is kept."""
        return self._of_same_rows(goal=goal)

    def with_likeness(self, likeness: Likeness) -> Program:
        """Return the program with what is known of its answer; what has been found is kept."""
        return self._of_same_rows(likeness=likeness)

    def _of_same_rows(self, **changes: Any) -> Program:
        """Return the program with changes that leave its columns and limits as they are, and with what has been found of these."""
        program = replace(self, **changes)
        for cache in ("_largest", "_share_limits"):
            object.__setattr__(program, cache, getattr(self, cache))
        return program

    @property
    def several_levels(self) -> bool:
        """Is a program much like it known to have several levels that prices prove?"""
        return self.likeness is not None and self.likeness.several_levels

    @property
    def n_pairs(self) -> int:
        """Number of columns."""
        return int(self.pair_users.size)

    @property
    def members(self) -> IntArray:
        """The users that have a column, and so are in the goal; positions, ascending."""
        has_column = np.zeros(len(self.users), bool)
        has_column[self.pair_users] = True
        return np.flatnonzero(has_column)

    def range_of_utilities(self, of: BoolArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the least and the most that a task of each user is worth, (users,), on some pairs; inf and 0 of a user with none of them.

        >>> import fairopt as fo
        >>> fo.formulate(fo.Instance([[4], [4]], [[1], [1]]), "max-min", utility=[[1, 2], [3, 3]]).range_of_utilities()
        (array([1., 3.]), array([2., 3.]))
        """
        users, utilities = (self.pair_users, self.utilities) if of is None else (self.pair_users[of], self.utilities[of])
        least, most = np.full(len(self.users), np.inf), np.zeros(len(self.users))
        np.minimum.at(least, users, utilities)
        np.maximum.at(most, users, utilities)
        return least, most

    @property
    def worth(self) -> FloatArray:
        """What a task of each pair counts in the goal, (pairs,): u / phi in a level, u phi in a total, u in other goals."""
        return self.goal.worth(self.utilities, self.pair_users)

    @property
    def inner_goal(self) -> Objective:
        """The goal; of `Separate`, the goal of each server."""
        return self.goal.inner

    @property
    def is_separate(self) -> bool:
        """Does each server pursue a goal of its own, so that a solution is made of those of its `part` of each server?"""
        return self.goal.inner is not self.goal

    def goal_as(self, kind: type[G]) -> G:
        """Return the goal of a program whose goal is known to be of this kind."""
        if not isinstance(self.goal, kind):
            raise TypeError(f"the goal of {self.name} is {type(self.goal).__name__}, not {kind.__name__}")
        return self.goal

    def features(self) -> frozenset[Feature]:
        """Return what an engine must support to solve this program."""
        goal = self.inner_goal
        needs = {Feature.MARKET if self.is_market else goal.feature}
        if self.integral:
            whole = goal.feature_of_whole_tasks
            needs = {whole} if whole is Feature.WHOLE_ALPHA_FAIR and not self.is_market else needs | {whole}
        if not self.is_separate and self.members.size < self.n_pairs:
            needs.add(Feature.SEVERAL_SERVERS)
        if not self.down_closed:
            needs.add(Feature.FLOORS if goal.feature is Feature.ALPHA_FAIR and OwnFloors.of(self) is not None else Feature.RULES)
        return frozenset(needs)

    @property
    def down_closed(self) -> bool:
        """Is every x' with 0 <= x' <= x feasible where x is? So it is without rules; who relies on it asks first."""
        return not bool((self.limits.kinds == LimitKind.RULE).any())

    def with_rule(self, name: str, coefficients: Mapping[tuple[str, str], Any] | npt.ArrayLike, sense: Sense, bound: Any) -> Program:
        """Return the program with one more row, of any sign: ``coefficients`` x <=, == or >= ``bound``.

        Parameters
        ----------
        name, coefficients, bound
            As of `with_limit`, and of any sign.
        sense : {"<=", "==", ">="}
            Two rows of the form <= stand for ==.

        Raises
        ------
        InvalidInstance
            The name is taken, a user or a server is unknown, a number is not finite, or the sense is another one.

        >>> import fairopt as fo
        >>> program = fo.formulate(fo.Instance([[9]], [[1], [2]], users=["a", "b"], servers=["s"]), "max-min")
        >>> ruled = program.with_rule("a twice b", {("a", "s"): 1, ("b", "s"): -2}, ">=", 0)
        >>> ruled.down_closed, ruled.limits.matrix.toarray()[-1].tolist()
        (False, [-1.0, 2.0])
        """
        row = StatedRow.of(self, name, coefficients, bound, cast("Sense", "None") if sense is None else sense)  # None would be a limit
        return with_rows(self, [row])

    def with_rows(self, rules: Sequence[tuple[str, FloatArray, Sense, float]]) -> Program:
        """Return the program with rules: of each the name, the coefficients, (pairs,), the sense and the bound."""
        from fairopt.program.rule_limits import rule_limits

        limits, names = rule_limits(rules, self.n_pairs, len(self.queue_limits))
        return replace(self, limits=Limits.stack([self.limits, limits]), queue_limits=(*self.queue_limits, *names)) if rules else self

    @property
    def is_market(self) -> bool:
        """Is it an equilibrium that the convex program of Eisenberg and Gale solves, with the default order of turns?

        True if the only limits are those on servers' time (`fairopt.models.psdsf` has the proof).
        """
        goal = self.goal
        return goal.is_equilibrium and self.goal_as(Equilibrium).order == "sequential" and bool((self.limits.kinds == LimitKind.TIME).all())

    def per_user(self, values: FloatArray) -> FloatArray:
        """Return the sum of values, (pairs,), over the pairs of each user, (users,)."""
        return np.asarray(np.bincount(self.pair_users, weights=values, minlength=len(self.users)), np.float64)

    def cheapest(self, cost: FloatArray, pairs: IntArray | slice = slice(None)) -> FloatArray:
        """Return the lowest cost over the pairs of each user, (users,); 0 of a user without a pair of finite cost.

        With prices p of the limits and the cost (A'p)[pair] / worth[pair], this is q[n], the cheapest price of a unit of level.

        Parameters
        ----------
        cost : array
            Of all pairs, or of some.
        pairs : int array or slice
            These pairs; the default is all.
        """
        q = np.full(len(self.users), np.inf)
        np.minimum.at(q, self.pair_users[pairs], cost)
        return np.where(np.isfinite(q), q, 0.0)

    @property
    def can_run(self) -> BoolArray:
        """Which users can have something, (users,)."""
        return self.per_user(self.largest()) > 0

    def table(self, x: FloatArray) -> FloatArray:
        """Return a value per column as a table, (users, servers)."""
        table = np.zeros((len(self.users), len(self.servers)))
        table[self.pair_users, self.pair_servers] = x
        return table

    def utility(self, table: FloatArray) -> FloatArray:
        """Return U of tasks, (users, servers), by user."""
        return self.per_user(self.utilities * table[self.pair_users, self.pair_servers])

    def largest(self) -> FloatArray:
        """Return the largest value that each column can take by itself, min over rows of b / a, (pairs,).

        Computed once: the limits of a program never change, and the array cannot be written to.
        """
        if self._largest is None:
            best = np.full(self.n_pairs, np.inf)
            limits = self.limits if self.down_closed else self.limits.select(self.limits.kinds != LimitKind.RULE)
            entries = limits.matrix
            np.minimum.at(best, entries.indices, safe_ratio(np.repeat(limits.bounds, np.diff(entries.indptr)), entries.data))
            best.setflags(write=False)
            object.__setattr__(self, "_largest", best)
        assert self._largest is not None
        return self._largest

    def with_tasks(self, tasks: FloatArray, weights: FloatArray) -> Program:
        """Return a leximin with these numbers in the limits on tasks that users have, and with these weights, both (users,)."""
        rows = self.limits.kinds == LimitKind.TASKS
        bounds = self.limits.bounds.copy()
        bounds[rows] = tasks[self.limits.keys[rows, 0]]
        return replace(self, limits=self.limits.with_bounds(bounds), goal=Leximin(weights))

    def keeping(self, kept: KeptParts | None) -> Program:
        """Return the program in which queues keep these parts, with the rows to begin with."""
        return self if kept is None else replace(self, kept=kept).with_kept_rows(kept.start)

    def with_kept_rows(self, more: Sequence[KeptRow]) -> Program:
        """Return the program with more rows of what queues keep."""
        assert self.kept is not None
        rows = [self.kept.row(each) for each in more]
        limits = stack_rows(self.kept.kinds, rows, self.pair_users, self.pair_servers)
        limits.keys[:, 0] += len(self.queue_limits)
        return replace(
            self,
            limits=Limits.stack([self.limits, limits]),
            queue_limits=(*self.queue_limits, *(row.name for row in rows)),
            kept_rows=(*self.kept_rows, *more),
        )

    def broken_rows(self, *points: FloatArray) -> tuple[KeptRow, ...]:
        """Return the rows of what queues keep that points, (pairs,), exceed and that are not among the limits yet."""
        if self.kept is None:
            return ()
        found = dict.fromkeys(each for x in points for each in self.kept.broken(lambda servers: self._tasks_on(x, servers)))  # noqa: B023
        return tuple(each for each in found if each not in self.kept_rows)

    def with_broken(self, *points: FloatArray) -> Program | None:
        """Return the program with the `broken_rows` of points; None if there are none."""
        more = self.broken_rows(*points)
        return self.with_kept_rows(more) if more else None

    def kept_excess(self, x: FloatArray) -> float:
        """Return the largest relative excess of a point over the rows of what queues keep, those that were never made included."""
        return 0.0 if self.kept is None else self.kept.excess(lambda servers: self._tasks_on(x, servers))

    def _tasks_on(self, x: FloatArray, servers: BoolArray) -> FloatArray:
        counted = np.append(servers, False)[np.minimum(self.pair_servers, servers.size)]  # see `stack_rows`
        return self.per_user(np.where(counted, x, 0.0))

    def with_limit(self, name: str, coefficients: Mapping[tuple[str, str], Any] | npt.ArrayLike, bound: Any) -> Program:
        """Return the program with one more limit, sum of a[n,i] x[n,i] <= b, which `fairopt.solve` solves.

        Parameters
        ----------
        name : str
            Of which prices, explanations and errors speak. No other limit of the program has it.
        coefficients : mapping (user, server) -> a, or array (pairs,)
            a >= 0; 0 of pairs that are not named. An array is in the order of ``pair_users`` and ``pair_servers``. The coefficient of a
            pair that is not eligible has no meaning. With ``exact=True``, ints and Fractions are as given, a float its shortest decimal.
        bound : number
            b >= 0.

        Raises
        ------
        InvalidInstance
            The name is taken, a user or a server is unknown, or a number is negative or not finite.

        >>> import fairopt as fo
        >>> lab = fo.Instance([[8], [8]], [[1], [1]], users=["a", "b"], servers=["new", "old"])
        >>> program = fo.formulate(lab, "drfh").with_limit("budget of a", {("a", "new"): 3, ("a", "old"): 1}, 6)
        >>> fo.solve(program, exact=True).exact.tasks_per_user
        array([Fraction(6, 1), Fraction(10, 1)], dtype=object)
        """
        return with_rows(self, [StatedRow.of(self, name, coefficients, bound)])

    def scaled(self) -> ScaledColumns:
        """Return the columns with room in units in which each reaches 1 and every limit is 1, and the way back."""
        return ScaledColumns.of(self)

    def part(self, server: int, x: FloatArray) -> tuple[Program, IntArray]:
        """Return the program over one server's columns, with x fixed elsewhere, and the positions of these columns."""
        inner = self.goal_as(Separate).goal
        columns = np.flatnonzero(self.pair_servers == server)
        rest = x.copy()
        rest[columns] = 0.0
        matrix = self.limits.matrix[:, columns]
        left = self.limits.bounds - self.limits.matrix @ rest
        left[left < SAME * self.limits.bounds] = 0.0  # what is left is only rounding
        limits = Limits(matrix, left, self.limits.kinds, self.limits.keys).select(np.diff(matrix.indptr) > 0)
        part = replace(
            self,
            pair_users=self.pair_users[columns],
            pair_servers=self.pair_servers[columns],
            utilities=self.utilities[columns],
            limits=limits,
            goal=inner,
        )
        return part, columns

    # Mathematics ---------------------------------------------------------------------------------------------------------------

    def limit_name(self, row: int) -> str:
        """Return the name of a limit.

        ``cpu @ server-3``, ``licences of the cluster``, ``time of channel-2``, ``tasks of alice``, ``servers of alice`` (its parallelism),
        or ``slice of alice @ server-3``.
        """
        return limit_name(self, row)

    def to_text(self, lines: int | None = None, terms: int | None = None) -> str:
        """Return the program as mathematics, with at most ``lines`` lines in a block and ``terms`` terms in a sum (default: all)."""
        return "\n".join(lines_of(self, lines, terms)) + "\n"

    def to_latex(self, lines: int | None = None, terms: int | None = None) -> str:
        r"""Return the program as LaTeX, to stand in display mathematics of a paper that uses amsmath; ``lines`` and ``terms`` as above.

        >>> import fairopt as fo
        >>> print(fo.formulate(fo.Instance([[9]], [[2], [1]], users=["a", "b"]), "drf").to_latex(lines=1))  # doctest: +ELLIPSIS
        \begin{array}{ll}
        \text{maximise} & \mathop{\operatorname{leximin}}\limits_{n}\,U_{n} \\
        \text{where} & U_{\text{a}} = 0.222222\,x_{\text{a} , \text{server-1}} \\
         & \text{… and 1 more utility} \\
        \text{subject to} & 2\,x_{\text{a} , \text{server-1}} + x_{\text{b} , \text{server-1}} \le 9 \qquad ... \\
         & x \ge 0 \qquad \text{for 2 eligible pairs of 2 users and 1 server}
        \end{array}
        """
        from fairopt.program.formula import latex_of

        return latex_of(self, lines, terms)

    def to_mathml(self, lines: int | None = None, terms: int | None = None) -> str:
        """Return the program as MathML, which browsers draw by themselves; ``lines`` and ``terms`` as above."""
        from fairopt.program.formula import mathml_of

        return mathml_of(self, lines, terms)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per limit: its name, its kind, its bound, and how many pairs it limits."""
        import pandas as pd

        limits = self.limits
        columns = {
            "kind": [LimitKind(kind).name.lower() for kind in limits.kinds],
            "bound": limits.bounds,
            "pairs": np.diff(limits.matrix.indptr),
        }
        return pd.DataFrame(columns, index=pd.Index([self.limit_name(k) for k in range(len(limits))], name="limit"))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: the goal in words, the columns, and the limits with their terms."""
        from fairopt.program.as_data import program_data

        return program_data(self)

    def _repr_latex_(self) -> str:
        return f"$$\n{self.to_latex(lines=12, terms=6)}\n$$"

    def __str__(self) -> str:
        return self.to_text(lines=30, terms=8)

    def __repr__(self) -> str:
        goal = type(self.goal).__name__
        return f"Program({self.name}: {goal} over {self.members.size} users, {self.n_pairs} pairs, {len(self.limits)} limits)"
