"""What an engine is: Program -> Solution, with its abilities declared and its package looked up without importing it."""

from __future__ import annotations

import copy
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from typing import ClassVar

import numpy as np

from fairopt.errors import NoSolution, SolverUnavailable, Unsupported
from fairopt.program import Feature, Program, Solution, Stage, TreeFilling
from fairopt.wording import figure, plural

__all__ = [
    "ALWAYS",
    "NEVER",
    "NO_LIMIT",
    "Backend",
    "Deadline",
    "Method",
    "Status",
    "Work",
    "final_levels",
    "limited_work",
    "named_in",
    "nothing_to_solve",
]


ALWAYS, NEVER = -1.0, float("inf")  # as residuals above which to polish (`Method.polish_above`)
_FOUND: set[str] = set()  # packages that were looked up once: every solve asks for them


class Status(Enum):
    """Why a run ended; the value says it in a sentence."""

    OPTIMAL = "an optimal solution was found"
    TIME_LIMIT = "the time limit was reached"
    INFEASIBLE = "the program has no feasible point"
    UNBOUNDED = "the goal grows without bound"
    FAILED = "the solver gave up"


@dataclass(slots=True)
class Work:
    """Steps of work, and the most that there may be."""

    most: float
    spent: float = 0.0


_WORK: ContextVar[tuple[Work, ...]] = ContextVar("fairopt.solvers.backend.work", default=())


@contextmanager
def limited_work(most: float) -> Iterator[Work]:
    """Let all deadlines that this thread makes inside a ``with`` statement share at most this work.

    >>> with limited_work(10) as work:
    ...     Deadline(None).spend(4)
    ...     Deadline(3.0).spend(4)
    >>> work
    Work(most=10, spent=8.0)
    """
    work = Work(most)
    before = _WORK.set((*_WORK.get(), work))
    try:
        yield work
    finally:
        _WORK.reset(before)


class Deadline:
    """A limit that several solves share: of seconds, if a user gives one, and of work, which is the same on every machine.

    Work is counted in steps of fractions (`fairopt.solvers.rational.settings`). Branch and cut by HiGHS counts its work in the same unit;
    other engines in floats count none.

    >>> deadline = Deadline(None).within(10)
    >>> deadline.spend(9)
    >>> deadline.left, deadline.is_spent
    (inf, False)
    >>> deadline.spend(1)
    >>> deadline.left, deadline.is_spent
    (0.0, True)
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds
        self._work = _WORK.get()

    def within(self, work: float) -> Deadline:
        """Return the same limit, with at most this work before it."""
        limited = copy.copy(self)
        limited._work = (*self._work, Work(work))
        return limited

    def spend(self, work: float) -> None:
        """Take work from what is left."""
        for each in self._work:
            each.spent += work

    @property
    def limits_work(self) -> bool:
        """Is there a limit on work?"""
        return any(each.most < float("inf") for each in self._work)

    @property
    def is_spent(self) -> bool:
        """Is no work left?"""
        return any(each.spent >= each.most for each in self._work)

    @property
    def seconds_left(self) -> float | None:
        """Seconds left for a solve of its own, a millisecond at least; None without a limit."""
        return None if self._end is None else max(1e-3, self._end - time.monotonic())

    @property
    def left(self) -> float:
        """Seconds left, never negative; inf without a limit, and 0 where no work is left."""
        if self.is_spent:
            return 0.0
        return float("inf") if self._end is None else max(0.0, self._end - time.monotonic())

    def passed(self, known: Mapping[str, object]) -> NoSolution:
        """Return the error to raise when time is up or no work is left, or when a solver was stopped although there is no limit."""
        levels = known.get("levels")
        found = ""
        if isinstance(levels, list) and levels:
            found = f"; {plural(len(levels), 'level was', 'levels were')} final by then, the last {figure(levels[-1], 6)}"
        elif isinstance(value := known.get("value"), float) and isinstance(bound := known.get("bound"), float):
            found = f"; {figure(value, 6)} was reached by then, and {figure(bound, 6)} is a bound"
        if self.is_spent:
            return NoSolution(f"no answer within the usual number of steps{found}; give a time limit, or solve a smaller instance", known)
        if self.seconds is None:
            return NoSolution(f"the solver was interrupted before it had an answer{found}; solve again, or use another solver", known)
        return NoSolution(f"no answer within the time limit of {self.seconds:g} s{found}; raise it or solve a smaller instance", known)


NO_LIMIT = Deadline(None)  # of neither seconds nor work: the default of functions that can end early


def named_in(options: Iterable[str], text: str) -> str | None:
    """Return the option that a message of a solver is about, if it names one of these.

    >>> named_in(["a", "Thread"], "Unknown parameter 'Thread'"), named_in(["a"], "a control")
    ('Thread', 'a')
    """
    return next((name for name in options if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)), None)


def final_levels(program: Program, stages: Sequence[Stage]) -> dict[str, object]:
    """Return the final levels and their users, for the error at a time limit."""
    return {"levels": [stage.value for stage in stages], "users": [program.users[n] for stage in stages for n in stage.users]}


def nothing_to_solve(program: Program) -> Solution:
    """Return the answer to a program in which nobody can hold a task: 0, in every part of a tree."""
    goal, x = program.goal, np.zeros(program.n_pairs)
    parts = (x,) * len(goal.parts) if isinstance(goal, TreeFilling) else ()
    gap = 0.0 if program.integral or goal.feature is Feature.DISJUNCTIVE else None
    return Solution(x, prices=np.zeros(len(program.limits)), gap=gap, programs_solved=0, parts=parts)


@dataclass(frozen=True, slots=True)
class Method:
    """A method of an engine. `fairopt.solving.policy` takes the methods of an engine in order, certifies each answer, and keeps the best.

    Attributes
    ----------
    name : str
        The engine's own name, or one of its own: "path in logarithms".
    solve : callable
        (program, tolerance, deadline, best) -> Solution, or None if it did not converge. ``best`` is the engine's best answer so far, or
        None. The answer is what the method found: neither polished nor checked.
    skip_below : float, optional
        The method is not tried if the best answer so far has at most this residual; the default is a tenth of the tolerance.
    polish_above : float, optional
        An answer with a larger residual is polished; the default is a tenth of the tolerance.
    rough_from : float
        Answers of so many levels are polished before they are certified: their rounding makes the certificate slow, and it would fail.
    """

    name: str
    solve: Callable[[Program, float, Deadline, Solution | None], Solution | None]
    skip_below: float | None = None
    polish_above: float | None = None
    rough_from: float = float("inf")


class Backend(ABC):
    """An engine. Subclasses state what they can do, and solve a program of that kind or say that they cannot.

    An engine never calls another, never certifies and never polishes an answer: what to do with an answer is decided in
    `fairopt.solving.policy`.

    Class attributes: ``name`` (the identifier), ``title``, ``features`` (what it can do), ``package`` (import name of what it needs,
    or None), ``requirement`` (how to install that), ``takes_solver`` (may a solver inside it be named, as in "pyomo:highs"),
    ``takes_options`` (do options of the user's own reach its solver), ``most_pairs`` (the largest program that it is tried on unasked,
    after another engine failed: on larger ones it would take too long).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    features: ClassVar[frozenset[Feature]]
    package: ClassVar[str | None] = None
    requirement: ClassVar[str] = ""
    takes_solver: ClassVar[bool] = False
    takes_options: ClassVar[bool] = False
    most_pairs: ClassVar[float] = float("inf")

    def __init__(self, within: str | None = None, options: Mapping[str, object] | None = None) -> None:
        if within and not self.takes_solver:
            raise Unsupported(f'"{self.name}" has no choice of solvers inside; leave ":{within}" out')
        if options and not self.takes_options:
            raise Unsupported(
                f'"{self.name}" takes no options of a solver, as {next(iter(options))} is; leave them out, or use "highs", "cvxpy:NAME" or '
                '"pyomo:NAME"'
            )
        self.within = within
        self.options = dict(options or {})

    @classmethod
    def lacks(cls, program: Program) -> frozenset[Feature]:
        """Return what the engine must support to solve a program, and does not. Who obeys all rules obeys least tasks of users."""
        implied = {Feature.FLOORS} if Feature.RULES in cls.features else set()
        return program.features() - cls.features - implied

    @classmethod
    def available(cls) -> bool:
        """Is the package there? Nothing is imported to find out."""
        if cls.package is not None and cls.package not in _FOUND and find_spec(cls.package) is not None:
            _FOUND.add(cls.package)
        return cls.package is None or cls.package in _FOUND

    @classmethod
    def require(cls) -> None:
        """Raise SolverUnavailable where the package is not there."""
        if not cls.available():
            raise SolverUnavailable(f'the solver "{cls.name}" is not installed; install it with: {cls.requirement}')

    @classmethod
    def solver_inside(cls, name: str) -> str | None:
        """Return how this engine names a solver that goes by this name, in any case of letters; None if it knows no such solver."""
        return None

    @classmethod
    def suits(cls, program: Program) -> bool:
        """Is a program with these features of a kind and size that this engine is for? If not, it is not tried unasked."""
        return True

    @classmethod
    def wins(cls, program: Program) -> bool:
        """Is this engine the faster one, by measurement, for a program that engines before it can solve as well?"""
        return False

    def methods(self, program: Program, tolerance: float) -> Sequence[Method]:
        """Return the engine's methods for a program, in the order in which to try them; the default is `solve` alone."""
        return (Method(self.name, lambda program, tolerance, deadline, _: self.solve(program, tolerance=tolerance, deadline=deadline)),)

    @abstractmethod
    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Solve a program whose features are among ``features`` and which has at least one column, by the first method that has an answer.

        Parameters
        ----------
        tolerance : float
            Relative error that the caller will accept of the certificate; an engine aims at least a digit below it.
        deadline : Deadline

        Raises
        ------
        NoSolution
            At the time limit, with what is known.
        """
