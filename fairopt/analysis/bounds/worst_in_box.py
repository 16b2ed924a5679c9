"""The worst instance of a box, with a bound: no instance of the box has a larger regret.

`fairopt.worst_case` with ``cluster=`` calls it. The topology is given, and what varies is a box (`fairopt.analysis.bounds.boxes`). The
lower end is an instance of the box, solved by fairopt; the upper end holds for every instance, and for every answer of a heuristic that has
several.

>>> import fairopt as fo
>>> cluster = fo.Instance([[10, 2], [2, 10]], [[1, 1], [1, 1]])
>>> worst = fo.worst_case("uniform", "drfh", cluster=cluster, vary={"demands": (1, 2)}, measure="level", bound=True, gap=0.01)
>>> worst.value > 0.24, 0.25 <= worst.bound <= worst.value + 0.01
(True, True)
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.bounds.boxes import Box
from fairopt.analysis.bounds.branching import BOUNDED, Course, Regrets
from fairopt.analysis.bounds.cells import Part, parts_of
from fairopt.analysis.bounds.data_rules import Data
from fairopt.analysis.bounds.enclosures import SHARES
from fairopt.analysis.bounds.greedy import PLACEMENTS, Filling
from fairopt.analysis.bounds.heuristics import KNOWN, Heuristic, LeximinOfParts, bounded
from fairopt.analysis.bounds.kept import arrays_of_data, data_of
from fairopt.analysis.bounds.optima import check_notion, has_one_level
from fairopt.analysis.bounds.right_hand_sides import RightHandSides, bound_by_one_program, of_right_hand_sides
from fairopt.analysis.regrets import Regret
from fairopt.analysis.worst_cases.kept import Kept, identity, identity_of_notion
from fairopt.analysis.worst_cases.objective import MEASURES, Objective, Schedule, Subject, has_whole_optimum
from fairopt.errors import NoSolution, Unsupported
from fairopt.files.progress import of_text, text_of
from fairopt.files.stores import Arrays
from fairopt.instance import BoolArray, Instance
from fairopt.models import Notion
from fairopt.results import finite, plain, result
from fairopt.scheduling.baselines import Baseline
from fairopt.show.equality import ComparesItself
from fairopt.solving import notion_of
from fairopt.validation import check_time_limit, check_whole_number, check_yes_or_no, is_number
from fairopt.wording import did_you_mean, figure, joined, plural

__all__ = ["Asked", "WorstCaseInBox", "worst_in_box"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WorstCaseInBox(ComparesItself):
    """The worst instance found in a box, and a bound on all of them.

    Attributes
    ----------
    instance : Instance
        An instance of the box.
    own, exact : Allocation
        What the heuristic gives on it, and the exact allocation.
    regret : Regret
        The regret of the heuristic on it.
    value : float
        The value of ``measure`` on it.
    bound : float or None
        No instance of the box has a larger value, whichever answer the heuristic gives where it has several; None of a search without one.
    name, measure : str
        The heuristic, and the number of the regret.
    nodes, open_parts : int
        Parts of the box that were bounded (without a bound: instances that were tried), and parts that were not yet; 0 of one program.
    stopped : str
        "" if both ends met within the gap asked for, or could come no closer; else "time limit" or "interrupted".
    proof : str
        How the bound is proved, in a sentence; "" without one.
    seconds : float
    question : mapping
        The arguments of `fairopt.worst_case`, as plain data.
    """

    instance: Instance
    own: Allocation
    exact: Allocation
    regret: Regret
    value: float
    bound: float | None
    name: str
    measure: str
    nodes: int
    open_parts: int
    stopped: str
    proof: str
    seconds: float = field(default=float("nan"), compare=False)
    question: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """How far apart both ends are."""
        return None if self.bound is None else self.bound - self.value

    @property
    def proved(self) -> Fraction | None:
        """The value as a Fraction, if it was asked for."""
        numbers = self.regret.exact or {}
        return next(
            (numbers[name] for name in (("largest", "goal") if self.measure == "worst" else (self.measure,)) if name in numbers), None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        found = {
            "name": self.name,
            "notion": self.regret.notion,
            "measure": self.measure,
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            **({} if self.proved is None else {"exact": str(self.proved)}),
            "regret": self.regret.numbers(),
            "instance": self.instance.to_dict(),
            "tasks": {"own": self.own.tasks.tolist(), "exact": self.exact.tasks.tolist()},
            "nodes": self.nodes,
            "open_parts": self.open_parts,
            "stopped": self.stopped,
            "proof": self.proof,
            "time_s": finite(self.seconds),
        }
        return result("worst-case-bound", self.question, self.instance.units, found)

    def __repr__(self) -> str:
        value, number = figure(self.value if self.proved is None else self.proved), "" if self.measure == "worst" else f" ({self.measure})"
        ends = (
            f"{value}, the largest of {plural(self.nodes, 'instance')} tried" if self.bound is None else f"{value} to {figure(self.bound)}"
        )
        stopped = f"; stopped: {self.stopped}" if self.stopped else ""
        return f"WorstCaseInBox({self.name} against {self.regret.notion}: regret{number} {ends}{stopped})"


_FILES = {True: "bound.npz", False: "search.npz"}

_BY_BRANCHING = (
    "Branch and bound over the data: each part's bound is computed from the prices of a linear program, with all errors of rounding added."
)

_BY_ONE_PROGRAM = (
    "One mixed-integer program over right-hand sides and the optimality conditions of the heuristic: "
    "the bound is numerical, HiGHS's within its tolerances."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for, beside the heuristic, the notion and the box; `fairopt.worst_case` says what each is."""

    measure: str | None = None
    bound: bool = False
    gap: float = 1e-3
    integral: bool | None = None
    seed: int = 0
    tries: int = 1000
    time_limit: float | None = None
    exact: bool = False
    resume: Path | None = None
    where: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for word, value, least in (("seed", self.seed, 0), ("tries", self.tries, 1)):
            check_whole_number(word, value, least)
        check_time_limit(self.time_limit)
        for word in ("bound", "exact"):
            check_yes_or_no(word, getattr(self, word))
        if self.measure is not None and self.measure not in MEASURES and not self.bound:
            raise Unsupported(
                f'there is no measure "{self.measure}"{did_you_mean(self.measure, MEASURES)}; there are {", ".join(MEASURES)}'
            )
        if self.bound and self.measure is not None and self.measure not in BOUNDED:
            raise Unsupported(f'"{self.measure}" has no bound{did_you_mean(self.measure, BOUNDED)}; use level, user or total')
        if not (is_number(self.gap) and 0 <= self.gap < 1):
            raise Unsupported(f"gap is {self.gap!r}; give how far apart both ends may stay, >= 0 and < 1, such as 0.001")
        if self.bound and self.integral:
            raise Unsupported("no bound is known against the optimum of whole tasks; leave out integral=True")


def worst_in_box(
    heuristic: Schedule | Notion | type[Notion],
    notion: str | Notion | type[Notion] | None,
    cluster: Instance,
    vary: Mapping[str, Any],
    asked: Asked,
    done: Callable[[int, float, float], object] | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> WorstCaseInBox:
    """Return the worst instance of a box, and a bound on all if one is asked for.

    ``done`` is called with the number of parts or instances since the last call, and with both ends of the gap.

    Raises
    ------
    InvalidInstance, Unsupported
        An argument is invalid, or no bound is known for the heuristic, the notion or the cluster.
    NoSolution
        No instance was solved by the end.
    """
    began = time.perf_counter()
    subject = Subject.of(heuristic)
    if notion is None and subject.criterion is None:
        raise Unsupported(f'name the notion that "{subject.name}" is held to, such as notion="drfh"')
    if asked.exact and subject.baseline is not None:
        raise Unsupported(f'"{subject.name}" computes in floats, and nothing is proved of it in fractions; leave exact out')
    chosen = notion_of(subject.criterion if notion is None else notion, **options)
    box = Box.of(cluster, vary, asked.where)
    measure = asked.measure or (BOUNDED[0] if asked.bound else "worst")
    whole = asked.integral
    if whole is None:
        whole = not subject.is_divisible and not asked.bound and has_whole_optimum(cluster, chosen)
    objective = Objective(subject.run, chosen, measure, whole)
    course: Course | _OneProgram | _Draws
    course = _bounded(subject, box, objective, asked) if asked.bound else _Draws(box, objective, asked.seed, asked.tries)
    if asked.resume is not None and isinstance(course, _OneProgram):
        raise Unsupported("this bound is that of one mixed-integer program, of which nothing can be kept; leave resume out")
    ends = Box.of(cluster, vary).ranges  # as they were given, with what breaks a rule
    question = {
        "schedule": subject.name, "notion": chosen, "vary": {word: [ends.low[word], ends.high[word]] for word in box.varied},
        "where": list(asked.where), "measure": measure, "bound": asked.bound, "gap": asked.gap, "integral": asked.integral,
        "seed": asked.seed, "tries": asked.tries, "time_limit_s": asked.time_limit, "exact": asked.exact,
    }  # fmt: skip
    asked_of_file = {"search": "in the box of a cluster"} | {word: question[word] for word in ("vary", "where", "measure")} | {
        "schedule": subject.name if asked.resume is None else identity(heuristic), **identity_of_notion(notion, chosen, options),
        "cluster": cluster.to_dict(),
    } | ({} if asked.bound else {"seed": asked.seed, "whole tasks": whole})  # fmt: skip
    kept = Kept(None if isinstance(course, _OneProgram) else asked.resume, _FILES[asked.bound], asked_of_file, cast(Any, course))
    counted = 0

    def watch() -> None:
        nonlocal counted
        if done is not None:
            done(course.nodes - counted, course.value, course.bound)
            counted = course.nodes
        kept.offer()
        if stop is not None and stop():
            raise KeyboardInterrupt

    with kept:
        if isinstance(course, Course) and not kept.has_gone_on:
            course.add(_cells(box, course.regrets.heuristic, chosen, measure))
        course.run(None if asked.time_limit is None else time.monotonic() + asked.time_limit, watch)
    if course.worst is None:
        ended = {"time limit": "time was up", "interrupted": "the search was interrupted"}.get(
            course.stopped, "every instance tried failed"
        )
        known = f"; no regret is larger than {figure(course.bound)}" if asked.bound else ""
        raise NoSolution(f"no instance of the box was solved before {ended}{known}; give more time", {"bound": course.bound})
    answer = objective.strictly(box.at(course.worst))
    own, best, found = objective.in_fractions(box.at(course.worst), answer) if asked.exact else answer
    value = objective.value(answer)
    return WorstCaseInBox(
        instance=own.instance, own=own, exact=best, regret=found, value=value, bound=max(course.bound, value) if asked.bound else None,
        name=subject.name, measure=measure, nodes=course.nodes, open_parts=course.open_parts, stopped=course.stopped,
        proof={Course: _BY_BRANCHING, _OneProgram: _BY_ONE_PROGRAM}.get(type(course), ""),
        seconds=time.perf_counter() - began, question=plain(question),
    )  # fmt: skip


def _bounded(subject: Subject, box: Box, objective: Objective, asked: Asked) -> Course | _OneProgram:
    """Return the branch and bound, or the mixed-integer program."""
    notion, measure = objective.notion, objective.measure
    if subject.notion is not None and of_right_hand_sides(box, notion, subject.notion, subject.baseline, measure):
        return _OneProgram(RightHandSides.of(box, notion), subject.baseline, _Valued(box, objective))
    check_notion(notion, measure)
    box.check()
    heuristic = None if subject.notion is None else bounded(subject.notion, subject.baseline, box)
    if subject.schedule is not None and subject.schedule[0].name in SHARES and subject.schedule[1] in PLACEMENTS:
        if box.has_speeds:
            raise Unsupported(f'no bound is known for "{subject.name}" with speeds; leave them out')
        heuristic = Filling(subject.schedule[0], subject.schedule[1] == PLACEMENTS[0])
    if heuristic is None:
        raise Unsupported(
            f'no bound is known for "{subject.name}" here; bounds are known for {joined(KNOWN)}, and where only tasks and capacities vary, '
            'against "efficiency" with measure="total", for efficiency, efficiency:pop and efficiency:pinning. '
            "Without bound=True, bad instances of any schedule are searched for"
        )
    return Course(Regrets(box, heuristic, notion, measure), _Valued(box, objective), asked.gap)


@dataclass(slots=True, eq=False)
class _OneProgram:
    """The bound by one mixed-integer program, in the words of a branch and bound."""

    sides: RightHandSides
    baseline: Baseline | None
    value_of: _Valued
    value: float = float("-inf")
    worst: Data | None = None
    bound: float = 1.0
    nodes: int = 0
    stopped: str = ""
    open_parts: int = 0

    def run(self, deadline: float | None, watch: Callable[[], None]) -> None:
        """Solve it."""
        answer = bound_by_one_program(self.sides, self.baseline, None if deadline is None else max(0.0, deadline - time.monotonic()))
        self.bound, self.stopped = answer.bound, answer.stopped
        box = self.value_of.box
        found = (None if data is None else box.kept(data) for data in (answer.data, self.sides.data(self.sides.low)))
        for data in found:
            if data is not None and (value := self.value_of(data)) > self.value:
                self.value, self.worst = value, data
        watch()


@dataclass(frozen=True, slots=True, eq=False)
class _Valued:
    """The regret of an instance of a box, given its data."""

    box: Box
    objective: Objective

    def __call__(self, data: Data) -> float:
        return self.objective.value(self.objective.answer(self.box.at(data)))


@dataclass(slots=True, eq=False)
class _Draws:
    """A search without a bound: every number that varies is drawn evenly from its range, or is one of its ends."""

    box: Box
    objective: Objective
    seed: int
    tries: int
    value: float = float("-inf")
    worst: Data | None = None
    nodes: int = 0
    stopped: str = ""
    bound: float = float("nan")
    open_parts: int = 0
    random: Any = None

    def state(self) -> dict[str, Any]:
        """Return the state as arrays."""
        return arrays_of_data(self.worst) | {"nodes": self.nodes, "random": of_text(json.dumps(self.random))}

    def restore(self, arrays: Arrays) -> None:
        """Go on from a state. The regret of the worst instance is computed again."""
        worst, self.nodes, self.random = data_of(arrays, self.box), int(arrays["nodes"]), json.loads(text_of(arrays["random"]))
        if self.random is not None:
            np.random.default_rng(0).bit_generator.state = self.random
        if worst is not None:
            self.value, self.worst = _Valued(self.box, self.objective)(worst), worst
        if self.nodes > self.tries:
            raise NoSolution(
                f"has tried {plural(self.nodes, 'instance')} already, and tries is {self.tries:,}; give at least {self.nodes:,}"
            )

    def run(self, deadline: float | None, watch: Callable[[], None]) -> None:
        """Try instances until there were as many as asked for, time is up, or ``watch`` raises KeyboardInterrupt."""
        rng, value_of = np.random.default_rng(self.seed), _Valued(self.box, self.objective)
        if self.random is not None:
            rng.bit_generator.state = self.random
        try:
            while self.nodes < self.tries:
                if deadline is not None and time.monotonic() > deadline:
                    self.stopped = "time limit"
                    return
                data = self.box.draw(rng)
                value = value_of(data)
                self.nodes, self.random = self.nodes + 1, rng.bit_generator.state
                if value > self.value:
                    self.value, self.worst = value, data
                watch()
        except KeyboardInterrupt:
            self.stopped = "interrupted"


def _cells(box: Box, heuristic: Heuristic, notion: Notion, measure: str) -> Iterator[Part]:
    """Return the parts with which the search begins."""
    n = box.instance.n_users
    endless = np.isinf(box.ranges.high["tasks"])
    counts_tasks = notion.name not in SHARES or notion.name == "max-min"
    scaled: BoolArray = endless & (heuristic.scale_free and not counts_tasks and measure != "total")
    only_rises = measure == "level" or (measure == "user" and has_one_level(box))  # the optimum, as others demand less
    dominant = notion.name in ("drfh", "drf") and "capacities" not in box.varied and bool(scaled.all()) and not box.has_speeds
    ignored = np.zeros((n, n), bool)
    if only_rises and (dominant or notion.name == "max-min"):
        ignored = np.array([~heuristic.reads(box, user) for user in range(n)])
    kinds = heuristic.part_of if isinstance(heuristic, LeximinOfParts) else (0,) * n
    return parts_of(box, [None] if measure == "total" else list(range(n)), scaled, kinds, ignored)
