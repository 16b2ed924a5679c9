"""How far an allocation is from the exact one of the same instance: its regret.

Numbers are compared by one relative *shortfall*,

    shortfall(best, own) = (best - own) / max(best, own),    0 where both are 0:

between 0 (as good) and 1 (nothing), and negative, down to -1, where ``own`` is the larger. What is compared depends on the goal of the
notion. Users who are in no goal, because nothing can run of them, are left out. With x* the exact allocation,

* leximin of shares (`Leximin`, and `Equalize`, its first step). Let s[1] <= ... <= s[N] be the shares of x in ascending order, and s*
  those of x*. ``level`` = shortfall(s*[1], s[1]), of the smallest share. x* is largest in the leximin order, so at the first position k
  where the two differ s[k] < s*[k]: ``position`` is k, and ``leximin`` = shortfall(s*[k], s[k]) >= 0 decides the order. A small
  difference there may hide a large one further up: ``largest`` is the largest shortfall over all positions. (The sorted vector says
  nothing of who falls short. One equal level need not be the largest in the order: of `Equalize`, ``level`` alone is >= 0.)
* leximin of each server by itself (`Separate`): the same server by server, and of each number the largest. What a server hands out then
  depends on those before it where users run out of tasks, so there ``leximin`` may be negative.
* sum of phi[n] g(U[n]) (`AlphaFair`, `Total`), g' = U^-alpha. ``goal`` = shortfall(M*, M) >= 0 of the power mean of order 1 - alpha,

      M = (sum phi[n] U[n]^(1 - alpha) / sum phi[n])^(1 / (1 - alpha)),        the geometric mean for alpha = 1:

  M grows with the sum, and is in units of U where the sum is in none: what everybody would have if all had the same and it were as good.
* trade-offs (`Tradeoff`, "fds", "gfj"). ``goal`` is that of M^(1 - e) (sum U[n])^e, M the power mean of order 1 - beta: the logarithm
  of this is what they maximise.
* equilibrium of servers (`Equilibrium`, "psdsf"). No order is maximised and several allocations are exact, so nothing is said to be larger.
  ``condition`` is the largest violation of the theorem that defines the notion: over the eligible pairs (n, i), the smallest free part
  of the resources that n uses there, or, if larger, how far its share lies below the largest of those who hold some of it.
* union of polytopes (`Disjunctive`, ``prefer=``): no order either, and only ``total`` is compared.

``total`` = shortfall(sum_n x*[n], sum_n x[n]), in tasks: of any sign unless the total is the goal, as a notion may pay for fairness.

*Against which optimum.* Schedules place whole tasks, and the best of those is ``fo.solve(..., integral=True)``: against it, ``level``,
``leximin`` and ``goal`` are >= 0 up to the gap of branch and cut (``gap``), and 0 is reached. Where a time limit ends that search, the best
allocation *found* until then takes its place (``best_found``): it may be worse than the schedule, and numbers against it are lower bounds;
``gap`` then says how far what it reaches (its smallest share; the goal) lies below a proved bound. The optimum of divisible tasks (the
*fluid* optimum) is at least as large: ``level`` and ``goal`` against it are upper bounds of those against whole tasks, a part of which no
schedule can avoid. ``whole`` says which it is. Allocations that exceed a limit can beat both.

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
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from fairopt.allocation import Allocation
from fairopt.certificate.conditions import bottleneck_violation
from fairopt.errors import InvalidInstance, NoSolution, Unsupported
from fairopt.instance import FloatArray
from fairopt.models import NOTIONS, Notion
from fairopt.program import AlphaFair, Disjunctive, Equilibrium, Program, Separate, Total, Tradeoff
from fairopt.solving import best_found, checked, solve
from fairopt.wording import figure

__all__ = ["Regret", "regret", "shortfall"]

_SAME = 1e-8  # relative, what a certificate accepts: smaller differences are none


@dataclass(frozen=True, slots=True, repr=False)
class Regret:
    """How far an allocation is from the exact one; the module says what each number means. None: it does not apply to this goal.

    Attributes
    ----------
    notion : str
        Whose exact allocation it is measured against.
    whole : bool
        The best of whole tasks; else of divisible tasks, a bound for whole ones.
    level, leximin, largest : float or None
        Relative shortfalls: of the smallest share, of the first share in ascending order that differs, and the largest of all.
    position : int or None
        Where the first difference is, from 1; None where there is none.
    members : int
        How many shares are compared.
    goal : float or None
        Relative shortfall of the power mean, for sums.
    condition : float or None
        Largest violation of the theorem, for equilibria.
    total : float
        Relative shortfall of the number of tasks, of any sign.
    gap : float
        Relative gap of branch and cut that the reference may itself be below the optimum; 0 for divisible tasks.
    best_found : bool
        The reference is the best of whole tasks that was found within the time limit, not an optimum.
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

    @property
    def worst(self) -> float | None:
        """One number for every goal: ``largest``, ``goal`` or ``condition``, whichever applies."""
        return next((value for value in (self.largest, self.goal, self.condition) if value is not None), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return dataclasses.asdict(self)

    def __repr__(self) -> str:
        parts = []
        for name in ("level", "leximin", "largest", "goal", "condition", "total"):
            value = getattr(self, name)
            if value is not None:
                where = f" at position {self.position} of {self.members}" if name == "leximin" and self.position else ""
                parts.append(f"{name} {figure(value)}{where}")
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
        A schedule, or any other.
    notion : str or Notion, optional
        The default is the allocation's own.
    exact : Allocation, optional
        What `solve` returned for that notion, if it is there already; else it is solved here.
    integral : bool
        Compare with the best allocation of whole tasks. With ``exact``, that says itself which it is.
    time_limit : float, optional
        Seconds, of the solve. Whole tasks that were found by then are compared with (``best_found``).
    **options
        Of the notion.

    Raises
    ------
    InvalidInstance
        For what is no allocation, and where ``exact`` is of another instance, notion or sharing, or not exact.
    Unsupported
        Where the allocation's own notion has no optimum, or no engine finds it for whole tasks.
    NoSolution
        At the time limit, with nothing found.

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
        notion = allocation.notion
    sharing: Any = allocation.sharing
    chosen, how = checked(allocation.instance, notion, sharing, options)
    if exact is None:
        try:
            exact = solve(allocation.instance, chosen, sharing=how, integral=integral, time_limit=time_limit)
        except NoSolution as error:
            exact = best_found(allocation.instance, chosen, how, error)
            if exact is None:
                raise
    else:
        _check_exact(exact, allocation, chosen)
    program = chosen.formulate(allocation.instance, sharing=how, integral=False)
    return _compared(program, chosen.name, allocation.tasks, exact)


def shortfall(best: float, own: float) -> float:
    """Return (best - own) / max(best, own), 0 where they are the same up to what a certificate accepts.

    >>> shortfall(4.0, 3.0), shortfall(3.0, 4.0), shortfall(0.0, 0.0)
    (0.25, -0.25, 0.0)
    """
    larger = max(best, own)
    return 0.0 if abs(best - own) <= _SAME * larger else float((best - own) / larger)


def _check_exact(exact: Allocation, allocation: Allocation, chosen: Notion) -> None:
    if exact.certificate.reservation and not exact.certificate.best_found:
        raise InvalidInstance(
            f'the reference "{exact.notion}" is {exact.certificate.reservation}, not exact; give what fairopt.solve returns'
        )
    if exact.notion != chosen.name or exact.sharing != allocation.sharing:
        raise InvalidInstance(
            f'the reference is of "{exact.notion}", sharing {exact.sharing}, but the allocation is compared with "{chosen.name}", '
            f"sharing {allocation.sharing}; give that one, or leave exact out"
        )
    if exact.instance is not allocation.instance and exact.instance != allocation.instance:
        raise InvalidInstance("the reference is of another instance than the allocation; solve the same one")


def _compared(program: Program, name: str, tasks: FloatArray, exact: Allocation) -> Regret:
    users, servers = program.pair_users, program.pair_servers
    able = program.per_user(program.largest()) > 0
    x, best = tasks[users, servers], exact.tasks[users, servers]
    whole = exact.certificate.whole_tasks
    found: dict[str, Any] = {
        "notion": name,
        "whole": whole,
        "total": shortfall(float(best.sum()), float(x.sum())),
        "members": int(able.sum()),
        "gap": float(exact.details.get("gap", 0.0)) if whole else 0.0,
        "best_found": exact.certificate.best_found,
    }
    goal = program.goal
    if isinstance(goal, Disjunctive):
        return Regret(**found)
    if isinstance(goal, Equilibrium):
        return Regret(**found, condition=bottleneck_violation(program, goal, x))
    if isinstance(goal, Total | AlphaFair):
        alpha = goal.alpha if isinstance(goal, AlphaFair) else 0.0
        means = [_power_mean(program.per_user(program.utilities * y)[able], goal.weights[able], 1.0 - alpha) for y in (best, x)]
        return Regret(**found, goal=shortfall(*means))
    if isinstance(goal, Tradeoff):
        reached = [program.per_user(program.utilities * y)[able] for y in (best, x)]
        fair = [_power_mean(values, goal.weights[able], 1.0 - goal.beta) for values in reached]
        means = [a ** (1 - goal.efficiency) * values.sum() ** goal.efficiency for a, values in zip(fair, reached, strict=True)]
        return Regret(**found, goal=shortfall(*means))
    inner = goal.goal if isinstance(goal, Separate) else goal
    per_level = program.utilities / inner.weights[users]
    if isinstance(goal, Separate):
        groups = [np.flatnonzero((servers == i) & (program.largest() > 0)) for i in np.unique(servers)]
        compared = [_leximin(best[own] * per_level[own], x[own] * per_level[own]) for own in groups if own.size]
    else:
        compared = [_leximin(program.per_user(best * per_level)[able], program.per_user(x * per_level)[able])] if able.any() else []
    level, leximin, position, largest = max(compared, key=lambda numbers: numbers[1], default=(0.0, 0.0, None, 0.0))
    if len(compared) > 1:  # server by server, of each number the largest
        level, largest = max(numbers[0] for numbers in compared), max(numbers[3] for numbers in compared)
    return Regret(**found, level=level, leximin=leximin, position=position, largest=largest)


def _leximin(best: FloatArray, own: FloatArray) -> tuple[float, float, int | None, float]:
    """Return level, leximin, position and largest of two vectors of shares."""
    shortfalls = np.array([shortfall(a, b) for a, b in zip(np.sort(best), np.sort(own), strict=True)])
    different = np.flatnonzero(shortfalls)
    largest = float(max(shortfalls.max(), 0.0))
    if not different.size:
        return 0.0, 0.0, None, largest
    k = int(different[0])
    return float(shortfalls[0]), float(shortfalls[k]), k + 1, largest


def _power_mean(values: FloatArray, weights: FloatArray, order: float) -> float:
    """Return (sum weights values^order / sum weights)^(1/order), the geometric mean for order 0; by logarithms, which do not overflow."""
    if not values.size:
        return 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    if order <= 0 and not (values > 0).all():
        return 0.0
    if order == 0:
        return float(np.exp((weights @ logs) / weights.sum()))
    return float(np.exp((logsumexp(order * logs, b=weights) - np.log(weights.sum())) / order))
