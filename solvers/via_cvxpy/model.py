r"""A program as a CVXPY problem, with the names that a reader recognises: to extend, to change and to solve.

    x["alice", "server-3"]     tasks of the pair, >= 0, whole numbers where the program is integral; ``x.vector`` has all of them, (pairs,)
    utility["alice"]           the expression U[n]; ``utility.vector`` has all, (users with a column,)
    limits                     one constraint of all rows, named by ``names``
    level, share               of a leximin or equal level: U[n] / phi[n] >= floor[n] + rises[n] level
    floor, rises               parameters of these rows: 0 and 1 at first; ``rises`` is 0 of users who can have nothing

One solve of a leximin finds its smallest level. The leximin is a loop over levels: users whose row has a price cannot rise, so they are
held at the level, and the others go on.

>>> import fairopt as fo
>>> pool = fo.Instance([[8], [6]], [[1], [1], [1]], users=["a", "b", "c"], servers=["s", "t"], eligibility=[[1, 0], [1, 0], [0, 1]])
>>> model = fo.to_cvxpy(pool, "max-min")
>>> while model.rises.value.any():
...     value = model.problem.solve(solver="HIGHS")
...     stop = (model.rises.value > 0) & (model.share.dual_value > 1e-9)
...     model.floor.value = np.where(stop, model.level.value, model.floor.value)
...     model.rises.value = np.where(stop, 0.0, model.rises.value)
>>> {user: round(float(each.value), 6) for user, each in model.utility.items()}
{'a': 4.0, 'b': 4.0, 'c': 6.0}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray
from fairopt.processes.streams import unwarned
from fairopt.program import AlphaFair, Equalize, Leximin, Program, Total, Tradeoff
from fairopt.wording import did_you_mean

__all__ = ["CvxpyModel", "Entries", "build"]

Key = TypeVar("Key")


class Entries(Mapping[Key, Any]):
    """The entries of a vector by name; ``vector`` is the vector."""

    def __init__(self, vector: Any, places: dict[Key, int]) -> None:
        self.vector, self._places = vector, places

    def __getitem__(self, name: Key) -> Any:
        if name not in self._places:
            names = [" on ".join(each) if isinstance(each, tuple) else str(each) for each in self._places]
            wanted = " on ".join(map(str, name)) if isinstance(name, tuple) else str(name)
            raise KeyError(f'there is no "{wanted}"{did_you_mean(wanted, names)}')
        return self.vector[self._places[name]]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@dataclass(slots=True, eq=False)
class CvxpyModel:
    """A program as a CVXPY problem.

    Attributes
    ----------
    problem : cvxpy.Problem
        To change it, make another one of its parts: ``cvxpy.Problem(model.problem.objective, [*model.problem.constraints, row])``.
    x : mapping (user, server) -> cvxpy expression
    utility : mapping user -> cvxpy expression
    limits : cvxpy constraint
        A x <= b, all rows.
    names : tuple of str
        Of the rows: as in ``print(program)``.
    level, share, floor, rises
        Of a leximin or equal level, see above; None of other goals.
    """

    problem: Any
    x: Entries[tuple[str, str]]
    utility: Entries[str]
    limits: Any
    names: tuple[str, ...]
    level: Any = None
    share: Any = None
    floor: Any = None
    rises: Any = None

    @property
    def prices(self) -> dict[str, float]:
        """The multipliers of the limits by name, after a solve."""
        return dict(zip(self.names, np.atleast_1d(self.limits.dual_value).tolist(), strict=True))


def build(program: Program) -> CvxpyModel:
    """Return the problem of a program.

    Raises
    ------
    Unsupported
        The goal is no single convex program.
    """
    if type(program.goal) not in value_of.registry:
        raise Unsupported(
            f'"{program.name}" is no one convex program ({type(program.goal).__name__.lower()} programs are solved in several); '
            "write the model of another notion, or fairopt.to_pyomo for a choice among alternatives"
        )
    if not program.n_pairs:
        raise Unsupported(f'nobody can run anything under "{program.name}", so there is no variable; give users servers where they may run')
    with unwarned():
        import cvxpy as cp

        x: Any = cp.Variable(program.n_pairs, integer=True) if program.integral else cp.Variable(program.n_pairs)
        pairs = [(program.users[n], program.servers[i]) for n, i in zip(program.pair_users, program.pair_servers, strict=True)]
        members = program.members
        row = np.searchsorted(members, program.pair_users)
        own = sp.csr_array((program.utilities, (row, np.arange(program.n_pairs))), shape=(members.size, program.n_pairs))
        limits = program.limits
        model = CvxpyModel(
            problem=None,
            x=Entries(x, {pair: p for p, pair in enumerate(pairs)}),
            utility=Entries(own @ x, {program.users[n]: k for k, n in enumerate(members.tolist())}),
            limits=limits.matrix @ x <= limits.bounds,
            names=tuple(program.limit_name(j) for j in range(len(limits))),
        )
        value = value_of(program.goal, cp, model, program, program.can_run[members])
        model.problem = cp.Problem(cp.Maximize(value), [x >= 0, model.limits, *([] if model.share is None else [model.share])])
    return model


@singledispatch
def value_of(goal: Any, cp: Any, model: CvxpyModel, program: Program, able: BoolArray) -> Any:
    """Return what is maximised; ``able`` are the users with a column who can have something."""
    raise TypeError(f"there is no CVXPY problem of the goal {type(goal).__name__}")


@value_of.register
def _(goal: Leximin | Equalize, cp: Any, model: CvxpyModel, program: Program, able: BoolArray) -> Any:
    weights = goal.weights[program.members]
    model.level = cp.Variable(name="level")
    model.floor, model.rises = (cp.Parameter(able.size, nonneg=True, name=name) for name in ("floor", "rises"))
    model.floor.value, model.rises.value = np.zeros(able.size), able.astype(float)
    share = cp.multiply(1 / weights, model.utility.vector)
    reached = model.floor + model.rises * model.level
    model.share = share == reached if goal.is_equal else share >= reached
    return model.level if able.any() else 0 * model.level


@value_of.register
def _(goal: Total, cp: Any, model: CvxpyModel, program: Program, able: BoolArray) -> Any:
    return goal.weights[program.members] @ model.utility.vector


@value_of.register
def _(goal: AlphaFair, cp: Any, model: CvxpyModel, program: Program, able: BoolArray) -> Any:
    weights, own, power = goal.weights[program.members][able], model.utility.vector[np.flatnonzero(able)], 1 - goal.alpha
    worth = cp.log(own) if power == 0 else cp.power(own, power) / power
    return weights @ worth


@value_of.register
def _(goal: Tradeoff, cp: Any, model: CvxpyModel, program: Program, able: BoolArray) -> Any:
    weights, own, power, e = goal.weights[program.members][able], model.utility.vector[np.flatnonzero(able)], 1 - goal.beta, goal.efficiency
    log_sum = cp.log(weights @ cp.power(own, power)) if power > 0 else cp.log_sum_exp(np.log(weights) + power * cp.log(own))
    return (1 - e) / power * log_sum + (e * cp.log(cp.sum(own)) if e else 0)
