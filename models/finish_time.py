r"""Finish-time fairness: nobody shall finish much later than alone.

A user has work left, L[n]; it has been there for e[n] seconds, and alone it would have needed a[n] seconds for what it has done so far.
With the rate U[n] (the work that its tasks do in a second) it finishes after e[n] + L[n] / U[n] seconds. Alone with the slice
phi[n] / sum of phi of every server and of every resource of the cluster it works at the rate r[n], and finishes after a[n] + L[n] / r[n].
The quotient is its finish-time ratio,

    rho[n] = (e[n] + L[n] / U[n]) / (a[n] + L[n] / r[n]),

and the notion minimises the largest rho, then the second largest, and so on: the leximin of the shares

    s[n] = 1 / rho[n] = z[n] / (1 + delta[n] z[n]),    z[n] = (a[n] + L[n] / r[n]) / L[n] U[n],    delta[n] = e[n] / (a[n] + L[n] / r[n]).

A share of 1 is to finish when one would alone. For a given rho the rates that are needed are constants, so that a level is a linear program
in one parameter, and its prices prove it as those of any leximin do (`fairopt.certificate.finish_times`). For who has just come (e = a = 0)
s[n] = U[n] / r[n], and the notion equalises, like "cdrf", what users have in parts of what they could do alone.

*Source.* Themis (Mahajan et al. 2020) defines rho, for jobs of machine learning, and serves those with the largest rho in auctions; Gavel
(Narayanan et al. 2020) minimises the largest rho by programs with a fixed rho. Neither goes on to the second largest.

*Properties.* Pareto optimal, as every s[n] grows with U[n]; U[n] is unique. What has passed, e and a, counts: a user who waited gets more,
and may hold more than another with the same demand, so nothing is envy-free in general.

Two users share 8 cores with equal work left; alone, each would have 4. The second has waited for an hour:

>>> import fairopt as fo
>>> cores = fo.Instance([[8]], [[1], [1]], users=["new", "late"])
>>> fo.solve(cores, "finish-time", left=14400).tasks_per_user
array([4., 4.])
>>> late = fo.solve(cores, "finish-time", left=14400, elapsed=[0, 3600])
>>> late.tasks_per_user.round(4), (1 / late.shares).round(4)
(array([2.3431, 5.6569]), array([1.7071, 1.7071]))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.fractions import fractions_of
from fairopt.models.notion import Notion, Property, Sharing
from fairopt.models.queue_tree import check_no_queues
from fairopt.models.share_notion import ShareNotion
from fairopt.program import FinishTimes, Goal, Leximin, Program
from fairopt.program.exact import ExactProgram
from fairopt.program.filling import Criterion
from fairopt.program.most_work import work_of_slice
from fairopt.validation import check, numbers
from fairopt.wording import figure, plural

__all__ = ["FinishTime"]

_RULES = {"left": "finite and > 0", "elapsed": "finite and >= 0", "alone": "finite and >= 0"}
_UNITS = {"left": "work left", "elapsed": "time elapsed", "alone": "time alone"}


def _listed(given: Any) -> Any:
    """Return the numbers of "600+0+30", as a specification has them; anything else as it is."""
    try:
        return tuple(float(part) for part in given.split("+")) if isinstance(given, str) and "+" in given else given
    except ValueError:
        return given


@dataclass(frozen=True, eq=False)
class FinishTime(ShareNotion):
    """Leximin of 1 / rho, rho = (elapsed + left / rate) / (alone + left / rate alone).

    In a specification, the numbers of the users stand in the order of the users, with + between them: "finish-time:left=60:elapsed=0+30".

    Parameters
    ----------
    left : number, or array (users,)
        The work left, > 0: the sum of the durations of the tasks, on servers of speed 1. Default 1.
    elapsed : number, or array (users,)
        The time since the user, or its job, came, >= 0, in the unit of time of the work.
    alone : number, or array (users,)
        The time that what it has done so far would have taken it alone, with its slice, >= 0.
    """

    left: npt.ArrayLike = 1
    elapsed: npt.ArrayLike = 0
    alone: npt.ArrayLike = 0

    name = "finish-time"
    title = "Finish-time fairness"
    source = "Mahajan, Balasubramanian, Singhvi, Venkataraman, Akella, Phanishayee and Chawla (2020); Narayanan et al. (2020)"
    references = ("Mahajan2020", "Narayanan2020")
    symmetric = True
    by_server = True
    satisfies: ClassVar = {
        Property.PARETO: "a share grows with the rate, as of every leximin",
        Property.SHARING_INCENTIVE: "where no time has elapsed: the slices of all fit together, so nobody finishes later than alone",
    }
    proofs_cover_shared = True
    proofs_cover_work = frozenset({Property.SHARING_INCENTIVE})

    def __post_init__(self) -> None:
        super().__post_init__()
        for word, rule in _RULES.items():
            given = _listed(getattr(self, word))
            object.__setattr__(self, word, given)
            if isinstance(given, Mapping) or np.ndim(given) > 1:
                raise InvalidInstance(f"{word} of finish-time is one number, or one for each user, shape (users,)")
            values = numbers(given, f'numbers "{word}" of finish-time')
            whose = tuple(f"user {k + 1}" for k in range(values.size)) if values.ndim else ("all users",)
            good = np.isfinite(values) & ((values > 0) if word == "left" else (values >= 0))
            check(np.atleast_1d(values), np.atleast_1d(good), _UNITS[word], rule, whose)

    @property
    def merge_alpha(self) -> None:
        """None: users differ in what they have left, and in when they came."""
        return None

    @property
    def is_symmetric(self) -> bool:
        """Are work and times the same for all?"""
        return super().is_symmetric and not any(np.ndim(getattr(self, word)) for word in _RULES)

    @property
    def waits(self) -> bool:
        """Has any time elapsed? Else the goal is a leximin of rates."""
        return bool(np.any(np.asarray(self.elapsed, float) > 0))

    def promise(self, wanted: Property, instance: Instance, sharing: Sharing) -> str | None:
        """Return the citation; of the sharing incentive only where no time has elapsed."""
        return None if wanted is Property.SHARING_INCENTIVE and self.waits else super().promise(wanted, instance, sharing)

    def restricted(self, users: IntArray | None = None, servers: IntArray | None = None) -> Notion:
        """Return the notion with the work and times of these users."""
        if users is None:
            return self
        own = {word: np.asarray(getattr(self, word))[users] for word in _RULES if np.ndim(getattr(self, word))}
        return self.changed(**own) if own else self

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse numbers for other users, a weight per resource, time division, and what every notion refuses."""
        super().check(instance, sharing)
        for word in _RULES:
            shape = np.shape(getattr(self, word))
            if shape not in ((), (instance.n_users,)):
                raise InvalidInstance(
                    f"{word} of finish-time has {plural(shape[0], 'number')}; give one number, or one for each of {instance.n_users} users"
                )

    def check_queues(self, instance: Instance) -> None:
        """Refuse queues: a queue finishes at no time."""
        super().check_queues(instance)
        check_no_queues(self.name, instance)

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return phi[n] (a[n] + L[n] / r[n]) / L[n], the share of a unit of rate without delay, times the weight by which it is divided."""
        alone = self._time_alone(instance)
        alone = np.where(alone == np.inf, self._of("left", instance), alone)  # who has no tasks does nothing, whatever its share counts
        share: FloatArray = instance.weights * safe_ratio(alone, self._of("left", instance))
        return share

    def _of(self, word: str, instance: Instance) -> FloatArray:
        values = np.broadcast_to(np.asarray(getattr(self, word)), (instance.n_users,))
        return fractions_of(values) if instance.capacities.dtype == object else np.asarray(values, float)

    def _time_alone(self, instance: Instance) -> FloatArray:
        """Return a[n] + L[n] / r[n], (users,); inf for who can do nothing alone."""
        return np.asarray(self._of("alone", instance) + safe_ratio(self._of("left", instance), work_of_slice(instance)))

    def goal(self, weights: FloatArray) -> Goal:
        """Return the leximin of rates, or with delays, which `formulate` fills in, that of finish times."""
        return FinishTimes(weights, np.zeros(weights.shape)) if self.waits else Leximin(weights)

    def criterion(self, instance: Instance) -> Criterion:
        """Return the share of a task where no time has elapsed."""
        return Notion.criterion(self, instance) if self.waits else super().criterion(instance)

    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Return the program; its goal has the delays delta."""
        if not self.waits:
            return super().formulate(instance, sharing=sharing, integral=integral)
        if integral:
            raise Unsupported('no engine finds whole tasks of "finish-time" once time has elapsed; leave integral out, or use a schedule')
        program = super().formulate(instance, sharing=sharing, integral=integral)
        delay = safe_ratio(self._of("elapsed", instance), self._time_alone(instance))
        return replace(program, goal=FinishTimes(instance.weights, delay))

    def in_fractions(self, instance: Instance, program: Program) -> ExactProgram:
        """Return the program in fractions where no time has elapsed: else levels are roots of polynomials."""
        if self.waits:
            raise Unsupported('the levels of "finish-time" are irrational in general once time has elapsed; leave exact out')
        return super().in_fractions(instance, program)

    def shares(self, instance: Instance, tasks: FloatArray) -> FloatArray | None:
        """Return 1 / rho where time has elapsed."""
        if not self.waits:
            return None
        alone = self._time_alone(instance)
        per_work = safe_ratio(alone, self._of("left", instance))
        z = instance.work(tasks) * np.where(np.isfinite(per_work), per_work, 0.0)  # inf: who can do nothing
        return np.asarray(z / (1 + safe_ratio(self._of("elapsed", instance), alone) * z))

    def ratios(self, instance: Instance, tasks: FloatArray) -> FloatArray:
        """Return rho of each user, (users,), with these tasks, (users, servers); inf: it never finishes; nan: it could not alone."""
        alone, work = self._time_alone(instance), instance.work(tasks)
        left, elapsed = self._of("left", instance), self._of("elapsed", instance)
        ends = np.where(work > 0, elapsed + np.divide(left, work, out=np.zeros_like(work), where=work > 0), np.inf)
        return np.asarray(np.divide(ends, alone, out=np.full_like(ends, np.nan), where=np.isfinite(alone)))

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return when it would finish alone, as text."""
        alone: Any = self._time_alone(instance)[user]
        if alone == np.inf:
            return "when it finishes, which is never, alone or not: it can do nothing"
        return f"when it finishes, against {figure(float(alone))} after it came, when it would have finished alone with its slice"
