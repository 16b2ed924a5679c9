"""Regret: how far an allocation x is from the exact allocation x* of the same instance.

Each number of a regret is a relative *shortfall*,

    shortfall(best, own) = (best - own) / max(best, own),    0 where both are 0.

It is 0 if both are equal, 1 if ``own`` is 0, and negative, down to -1, if ``own`` is larger. The goal of the notion decides which numbers
are compared. Users of whom no task can run are left out.

* Leximin of shares (`Leximin`, and `Equalize`, its first step). Let s[1] <= ... <= s[N] be the shares of x in ascending order, and s*
  those of x*. ``level`` = shortfall(s*[1], s[1]) compares the smallest shares. x* is largest in the leximin order. So if s and s* differ
  first at position k, then s[k] < s*[k]; ``position`` is k, and ``leximin`` = shortfall(s*[k], s[k]) >= 0. The gap at k may be small and
  the gap at a higher position large: ``largest`` is the largest shortfall over all positions. (The sorted shares do not say which user
  falls short. For `Equalize`, the equal level need not be largest in the leximin order, so only ``level`` is >= 0.)
* Leximin of each server by itself (`Separate`). Each number is computed server by server, and the largest is taken. If users run out of
  tasks, what a server hands out depends on the servers before it; ``leximin`` may then be negative.
* Sum of phi[n] g(U[n]) (`AlphaFair`, `Total`), g' = U^-alpha. ``goal`` = shortfall(M*, M) >= 0 of the power mean of order 1 - alpha,

      M = (sum phi[n] U[n]^(1 - alpha) / sum phi[n])^(1 / (1 - alpha)),        the geometric mean for alpha = 1.

  M grows with the sum. Unlike the sum, M is in units of U: if every user had the utility M, the sum would be the same.
* Trade-offs (`Tradeoff`, "fds", "gfj"). ``goal`` is the shortfall of M^(1 - e) (sum U[n])^e, with M the power mean of order 1 - beta. The
  trade-off maximises the logarithm of this product.
* Equilibrium of servers (`Equilibrium`, "psdsf"). It maximises no order, and several allocations are exact, so no shortfall is defined.
  ``condition`` is the largest violation of the theorem that defines the notion. The violation of an eligible pair (n, i) is the minimum
  over the resources that n uses at i of the larger of two numbers: the free part of the resource, and how far the share of n lies below
  the largest share of a user who holds some of it.
* Tree of queues (`TreeFilling`, `Nested`). The exact shares of users are unique, and maximise no order of all users: each user is compared
  with itself. ``largest`` is the largest shortfall of the share of a user, and there is no ``leximin``. ``level`` compares the smallest
  shares, which a tree does not maximise: it may have any sign. (Of whole tasks the stop times are unique, and not who has which: against
  them, part of a shortfall may be the choice among equals.)
* Union of polytopes (`Disjunctive`, ``prefer=``). It maximises no order either; only ``total`` is compared.

``total`` = shortfall(sum_n x*[n], sum_n x[n]), in tasks, or in work where tasks do other work on other servers. It is >= 0 if the total is
the goal; otherwise it may have any sign, because the exact allocation may give up tasks for fairness.

*Queues.* Where users are in queues, ``queue`` is the largest shortfall of the share of a queue, whatever the goal, and ``worst_queue`` its
name. The share is the dominant share of what the queue holds, or the sum of its users' shares, as the notion fills the tree.
`Regret.to_frame` has all users, or all queues.

*The reference.* Schedules place whole tasks, and the best allocation of whole tasks is ``fo.solve(..., integral=True)``. Against this
reference, ``level``, ``leximin`` and ``goal`` are >= 0 up to the gap of branch and cut (``gap``), and a schedule can reach 0. If a time
limit ends branch and cut, the reference is the best allocation found so far (``best_found``). It may be worse than the schedule, so that
the numbers are lower bounds; ``gap`` says how far its value (its smallest share, or the goal) lies below a proved bound. The optimum of
divisible tasks (the *fluid* optimum) is at least as large as that of whole tasks. So ``level`` and ``goal`` against the fluid optimum are
upper bounds on those against whole tasks, and part of them no schedule can avoid. ``whole`` says which reference it is. An allocation that
exceeds a limit can be better than both.

*Tiny optima.* A user whose part of the fluid optimum is less than one task may have no whole task, and its shortfall is 1 whatever a
schedule does. One such user makes ``level``, ``leximin``, ``largest`` and many a ``goal`` 1, and hides all others. `Regret.tiny` names
these users, and `Regret.others` is the regret without them. `Regret.worst_user` names the one of
the others with the largest shortfall.

>>> import fairopt as fo
>>> instance = fo.Instance([[100, 30], [30, 100]], [[5, 1], [1, 5]])
>>> greedy = fo.schedule(instance, "drfh", placement="best-fit")
>>> greedy.tasks_per_user, fo.solve(instance, "drfh").tasks_per_user.round(3)
(array([21., 21.]), array([21.667, 21.667]))
>>> regret(greedy)
Regret(drfh, divisible tasks: level 0.0308, leximin 0.0308 at position 1 of 2, largest 0.0308, total 0.0308)
>>> regret(greedy, integral=True)
Regret(drfh, whole tasks: level 0, leximin 0, largest 0, total 0)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.allocation.holdings import tree_order
from fairopt.allocation.records import question_of
from fairopt.analysis.goal_shortfalls import Both, lost
from fairopt.analysis.shortfalls import in_fractions, shortfall
from fairopt.errors import InvalidInstance, NoSolution, Unsupported
from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models import NOTIONS, Notion, Stated
from fairopt.program import Feature, Program
from fairopt.results import plain, result
from fairopt.show.drawing import ShowsItself
from fairopt.show.equality import ComparesItself
from fairopt.solving import best_found, checked, solve
from fairopt.specs import written
from fairopt.wording import figure

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Compared", "Regret", "regret", "shortfall"]

_NUMBERS = ("members", "level", "leximin", "position", "largest", "goal", "total")


Numbers: TypeAlias = tuple[str, float, float, float, float]  # a name; tasks, exact tasks, share, exact share


@dataclass(frozen=True, slots=True)
class Compared:
    """What a regret compares: of each user, and of the cluster and each queue as `fairopt.Allocation.queue_holdings` lists them."""

    users: tuple[Numbers, ...]
    queues: tuple[Numbers, ...]
    queue_of: tuple[str | None, ...] | None


@dataclass(frozen=True, slots=True, repr=False)
class Regret(ComparesItself, ShowsItself):
    """How far an allocation is from the exact one. The module defines each number; None means that it does not apply to the goal.

    Attributes
    ----------
    notion : str
        The notion whose exact allocation is the reference, with its options: "drfh:only=gpu".
    whole : bool
        Whether the reference is of whole tasks; else it is of divisible tasks, and bounds that of whole tasks.
    level, leximin, largest : float or None
        Relative shortfalls: of the smallest share; at the first difference of the sorted shares; and the largest over all positions.
    position : int or None
        Position of the first difference, from 1; None if the sorted shares are equal.
    members : int
        How many shares are compared.
    goal : float or None
        Relative shortfall of the power mean, if the goal is a sum.
    condition : float or None
        Largest violation of the theorem, if the goal is an equilibrium.
    total : float
        Relative shortfall of the number of tasks, of any sign.
    gap : float
        Relative gap of branch and cut: how far the reference may lie below the optimum; 0 for divisible tasks.
    best_found : bool
        Whether the reference is the best allocation of whole tasks found within the time limit, and not proved to be optimal.
    queue : float or None
        Largest shortfall of the share of a queue; None where users are in no queues.
    worst_queue : str or None
        The queue that falls short by this, if one does.
    compared : Compared or None
        The shares and tasks that were compared, of which `to_frame` makes tables.
    tiny : tuple of str
        Users who have less than one task of the divisible optimum, and none here.
    others : Regret or None
        The regret without these users; None where there are none, or nobody else.
    exact : dict or None
        Of an allocation in fractions, those of the numbers that are rational, as Fractions: "total", and "level", "leximin" and "largest",
        or "goal" of a total. The reference is in fractions, too, or of whole tasks that keep every limit.
    question : mapping
        The arguments of `fairopt.regret`, as plain data.
    units : mapping
        The unit of each resource of which it is known.
    """

    notion: str
    whole: bool
    total: float
    members: int
    level: float | None = None
    leximin: float | None = None
    position: int | None = None
    largest: float | None = None
    goal: float | None = None
    condition: float | None = None
    gap: float = 0.0
    best_found: bool = False
    queue: float | None = None
    worst_queue: str | None = None
    compared: Compared | None = field(default=None, compare=False)
    tiny: tuple[str, ...] = ()
    others: Regret | None = field(default=None, compare=False)
    exact: dict[str, Fraction] | None = field(default=None, compare=False)
    question: Mapping[str, Any] = field(default_factory=dict, compare=False)
    units: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def user(self) -> float:
        """The largest 1 - own / exact over the users who have something in the exact allocation; negative if they all gain."""
        users = () if self.compared is None else self.compared.users
        least = CERTIFIED * max((best for *_, best in users), default=0.0)
        return max((1 - own / best for _, _, _, own, best in users if best > least), default=0.0)

    @property
    def worst_user(self) -> str | None:
        """The user whose own share falls short most, but the tiny ones; None if nobody's does."""
        users = () if self.compared is None else self.compared.users
        short = ((shortfall(best, own), name) for name, _, _, own, best in users if name not in self.tiny)
        most, name = max(short, key=lambda pair: pair[0], default=(0.0, None))
        return name if most > 0 else None

    @property
    def worst(self) -> float | None:
        """One number for any goal: ``largest``, ``goal`` or ``condition``, whichever applies."""
        return next((value for value in (self.largest, self.goal, self.condition) if value is not None), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; the numbers of single users and queues are in `to_frame`."""
        return result("regret", self.question, self.units, self.numbers())

    def numbers(self) -> dict[str, Any]:
        """Return the part of `to_dict` that a comparison has of each row."""
        apart = ("compared", "tiny", "others", "exact", "question", "units")
        data = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.name not in apart}
        if self.exact is not None:
            data["exact"] = {name: str(value) for name, value in self.exact.items()}
        others = None if self.others is None else {name: getattr(self.others, name) for name in _NUMBERS}
        return data | {"worst_user": self.worst_user, "tiny": list(self.tiny), "others": others, "worst": self.worst}

    def to_frame(self, by: Literal["user", "queue"] = "user") -> pd.DataFrame:
        """Return one row per user, or per queue, the whole cluster first: tasks, share, both of the exact allocation, and the shortfall.

        The shortfall is that of the share.

        Raises
        ------
        Unsupported
            There are no rows by ``by``.

        >>> import fairopt as fo
        >>> pool = fo.Instance([[9]], [[2], [1]], users=["a", "b"], queues=[fo.Queue("A"), fo.Queue("B")], queue_of=["A", "B"])
        >>> regret(fo.schedule(pool, "drfh")).to_frame(by="queue")["shortfall"].round(3).to_dict()
        {'the cluster': 0.0, 'A': 0.111, 'B': -0.1}
        """
        import pandas as pd

        if by not in ("user", "queue"):
            raise Unsupported(f'there are no rows by "{by}"; use by="user" or by="queue"')
        assert self.compared is not None
        rows = self.compared.users if by == "user" else self.compared.queues
        frame = pd.DataFrame(
            [(tasks, exact_tasks, share, exact, shortfall(exact, share)) for _, tasks, exact_tasks, share, exact in rows],
            index=pd.Index([name for name, *_ in rows], name=by),
            columns=["tasks", "exact tasks", "share", "exact share", "shortfall"],
        )
        if by == "user" and self.compared.queue_of is not None:
            frame.insert(0, "queue", list(self.compared.queue_of))
        return frame

    def __repr__(self) -> str:
        parts = []
        for name in ("level", "leximin", "largest", "goal", "condition", "queue", "total"):
            value = getattr(self, name)
            if value is not None:
                where = f" at position {self.position} of {self.members}" if name == "leximin" and self.position else ""
                where = f" ({self.worst_queue})" if name == "queue" and self.worst_queue else where
                parts.append(f"{name} {figure((self.exact or {}).get(name, value))}{where}")
        gap = f"; gap {self.gap:.1e}" if self.gap else ""
        against = "best found of whole" if self.best_found else "whole" if self.whole else "divisible"
        return f"Regret({self.notion}, {against} tasks: {', '.join(parts)}{gap})"


def regret(
    allocation: Allocation,
    notion: str | Notion | type[Notion] | None = None,
    *,
    exact: Allocation | None = None,
    integral: bool = False,
    time_limit: float | None = None,
    **options: Any,
) -> Regret:
    """Compare an allocation with the exact one of a notion on the same instance, under the same sharing.

    Parameters
    ----------
    allocation : Allocation
        A schedule, or any other allocation.
    notion : str or Notion, optional
        The default is the allocation's own.
    exact : Allocation, optional
        The result of `solve` for this notion, if you have it; otherwise it is solved here.
    integral : bool
        Compare with the best allocation of whole tasks. Ignored if ``exact`` is given, which is of whole or of divisible tasks.
    time_limit : float, optional
        Seconds for the solve. When the time limit is reached, the reference is the best allocation found (``best_found``).
    **options
        Options of the notion.

    Raises
    ------
    InvalidInstance
        If ``allocation`` or ``exact`` is no Allocation, or ``exact`` is of another instance, notion or sharing, or is not exact.
    Unsupported
        If the notion of the allocation has no optimum, or no engine finds its optimum of whole tasks.
    NoSolution
        If the time limit is reached and nothing is found.

    >>> import fairopt as fo
    >>> pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
    >>> regret(fo.schedule(pool, "drfh"), "proportional")
    Regret(proportional, divisible tasks: goal 0.0533, total 0.127)
    """
    for word, given in (("allocation", allocation), ("exact", exact)):
        if not isinstance(given, Allocation) and (word == "allocation" or given is not None):
            raise InvalidInstance(
                f"{word} is {type(given).__name__}; give an Allocation, as fairopt.solve and fairopt.schedule return it "
                "(fairopt.compare measures arrays of tasks)"
            )
    if notion is None:
        if allocation.notion not in NOTIONS:
            raise Unsupported(
                f'"{allocation.notion}" has no exact allocation to compare with; name the notion, such as regret(allocation, "drfh")'
            )
        question = allocation.question
        notion = question.notion if question is not None and isinstance(question.notion, Stated) else allocation.notion
        own = {} if allocation.question is None else allocation.question.notion.options
        options = {word: own[word] for word in ("resource_weights", "only") if word in own} | options
    sharing: Any = allocation.sharing
    chosen, how = checked(allocation.instance, notion, sharing, options)
    if exact is None:
        try:
            exact = _reference(allocation, chosen, how, integral, time_limit)
        except NoSolution as error:
            exact = best_found(allocation.instance, Optimum(chosen, integral=True, time_limit=time_limit), how, error)
            if exact is None:
                raise
    else:
        _check_exact(exact, allocation, chosen)
    program = chosen.formulate(allocation.instance, sharing=how, integral=False)
    found = _compared(program, written(chosen), allocation.tasks, exact)
    compared = _by_user_and_queue(allocation, program, exact)
    if allocation.exact is not None:
        found = dataclasses.replace(found, exact=in_fractions(chosen, program, allocation, exact))
    asked = {
        "allocation": question_of(allocation), "notion": chosen, "sharing": how, "integral": integral, "time_limit_s": time_limit
    }  # fmt: skip
    found = dataclasses.replace(
        found,
        compared=compared,
        question=plain(asked),
        units=allocation.instance.units,
        **_without_tiny(program, found.notion, allocation, exact),
    )
    if not allocation.instance.queues:
        return found
    most, worst = max((shortfall(best, own), name) for name, _, _, own, best in compared.queues[1:])
    return dataclasses.replace(found, queue=max(most, 0.0), worst_queue=worst if most > 0 else None)


def _reference(allocation: Allocation, notion: Notion, sharing: Any, integral: bool, time_limit: float | None) -> Allocation:
    """Return the exact allocation, in fractions if the other one is and the notion has an answer in fractions."""
    if allocation.exact is not None and not integral:
        try:
            return solve(allocation.instance, notion, sharing=sharing, exact=True, time_limit=time_limit)
        except Unsupported:
            pass
    return solve(allocation.instance, notion, sharing=sharing, integral=integral, time_limit=time_limit)


def _without_tiny(program: Program, name: str, allocation: Allocation, exact: Allocation) -> dict[str, Any]:
    """Return the users who have no whole task because their part of the divisible optimum is less than one, and the regret without them."""
    best, own = exact.tasks_per_user, allocation.tasks_per_user
    tiny = (best > 0) & (best < 1 - CERTIFIED) & (own <= CERTIFIED)
    if exact.certificate.whole_tasks or program.goal.feature in (Feature.DISJUNCTIVE, Feature.EQUILIBRIUM) or not tiny.any():
        return {}
    able = program.per_user(program.largest()) > 0
    others = _compared(program, name, allocation.tasks, exact, tiny) if (able & ~tiny).any() else None
    return {"tiny": tuple(allocation.instance.users[n] for n in np.flatnonzero(tiny)), "others": others}


def _check_exact(exact: Allocation, allocation: Allocation, chosen: Notion) -> None:
    if exact.certificate.qualifier and not exact.certificate.best_found:
        raise InvalidInstance(
            f'the reference "{exact.notion}" is {exact.certificate.qualifier}, not exact; give what fairopt.solve returns'
        )
    if exact.notion != chosen.name or exact.sharing != allocation.sharing:
        raise InvalidInstance(
            f'the reference is of "{exact.notion}", sharing {exact.sharing}, but the allocation is compared with "{chosen.name}", '
            f"sharing {allocation.sharing}; give that one, or leave exact out"
        )
    if exact.instance is not allocation.instance and exact.instance != allocation.instance:
        raise InvalidInstance("the reference is of another instance than the allocation; solve the same one")


def _by_user_and_queue(allocation: Allocation, program: Program, exact: Allocation) -> Compared:
    """Return the numbers of users and queues that are compared."""
    instance, tree = allocation.instance, allocation.instance.tree
    users, servers, weights = program.pair_users, program.pair_servers, getattr(program.goal, "weights", None)
    tasks = (allocation.tasks, exact.tasks)
    shares = [program.per_user(program.utilities * each[users, servers]) for each in tasks]
    by_weight = shares if weights is None or instance.is_tree else [share / weights for share in shares]

    def numbers(name: str, *values: float) -> Numbers:
        own, best, share, exact_share = map(float, values)
        return name, own, best, share, exact_share

    per_user = np.stack([*(instance.work(each) for each in tasks), *by_weight])
    of_users = tuple(numbers(name, *column) for name, column in zip(instance.users, per_user.T, strict=True))
    of_queues = []
    dominant, capacity = getattr(program.goal, "takes", None) is not None, instance.total_capacity
    for node in tree_order(tree):
        below = tree.below[node]
        used = [instance.held_of(each)[below].sum(axis=0) for each in tasks]
        parts = [np.divide(each, capacity, out=np.zeros(capacity.size), where=capacity > 0) for each in used]
        parts = [(each if exact.counting is None else exact.counting.weigh(each)).max() for each in parts]
        of_queue = parts if dominant else [share[below].sum() for share in shares]
        of_queues.append(numbers(tree.name(node), *(instance.work(each)[below].sum() for each in tasks), *of_queue))
    return Compared(of_users, tuple(of_queues), instance.queue_of if instance.queues else None)


def _compared(program: Program, name: str, tasks: FloatArray, exact: Allocation, left_out: BoolArray | None = None) -> Regret:
    users, servers = program.pair_users, program.pair_servers
    able = program.per_user(program.largest()) > 0
    kept = np.ones(users.size, bool)
    if left_out is not None:
        able, kept = able & ~left_out, ~left_out[users]
    x, best = tasks[users, servers], exact.tasks[users, servers]
    whole, speeds = exact.certificate.whole_tasks, exact.instance.speeds[users, servers]
    found: dict[str, Any] = {
        "notion": name,
        "whole": whole,
        "total": shortfall(float((speeds * best)[kept].sum()), float((speeds * x)[kept].sum())),
        "members": int(able.sum()),
        "gap": float(exact.details.get("gap", 0.0)) if whole else 0.0,
        "best_found": exact.certificate.best_found,
    }
    return Regret(**found, **lost(program.goal, program, Both(best, x, able, kept)))
