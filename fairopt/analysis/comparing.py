"""Several allocations of one instance side by side: exact ones, schedules, and your own.

Each row is one allocation. Its measures are those of `fairopt.analysis.measures` (use of the cluster, Jain's index, envy), its
`fairopt.regret` against an exact allocation, and its *task efficiency*

    sum_n phi[n] x[n] / max over all allocations of divisible tasks of sum_n phi[n] x[n],

with phi = 1 where weights are per resource or among the users of a queue. Of queues, the limits alone bound the maximum. The notion
"efficiency" attains the maximum. If the reference or a notion is "finish-time", every row has the finish-time ratio of each user, by the
work and times of that notion. If a row cannot be computed, it says why, and the other rows are computed all the same. If an
allocation is infeasible, its row says where and by how much.

>>> import fairopt as fo
>>> instance = fo.Instance([[100, 30], [30, 100]], [[5, 1], [1, 5]], users=["A", "B"], resources=["cpu", "memory"])
>>> compare(instance, notions=["drfh", "tsf"], schedules=["drfh:best-fit", "tsf:first-fit"], allocations={"mine": [[20, 0], [0, 20]]})
Comparison of 5 allocations: 2 users, 2 servers, sharing rdm
                 kind    A    B  efficiency  Jain  envy against  level  total
drfh            exact 21.7 21.7           1     1     0
tsf             exact 21.7 21.7           1     1     0
drfh:best-fit  greedy   21   21       0.969     1     0    drfh 0.0308 0.0308
tsf:first-fit  greedy   10   10       0.462     1     0     tsf  0.538  0.538
mine            given   20   20       0.923     1     0    drfh 0.0769 0.0769
"""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairopt.allocation import GIVEN, Allocation, Approximation, Optimum
from fairopt.analysis.comparison import BEST_FOUND, Comparison, Row
from fairopt.analysis.finish_ratios import ratios_of_users
from fairopt.analysis.measures import cluster_use, dominant_shares, envy_applies, jain_index, largest_envy, takes_part, violations
from fairopt.analysis.own_schedulers import made
from fairopt.analysis.regrets import Regret, regret
from fairopt.analysis.rerun import given
from fairopt.errors import FairoptError, InvalidInstance, NoSolution, Unsupported
from fairopt.instance import FloatArray, Instance, require_instance
from fairopt.instance.tolerances import WRITTEN
from fairopt.models import NOTIONS, OPTIONS_OF_TREES, FinishTime, Notion, ShareNotion, Sharing, default_sharing
from fairopt.registry import line_at_fault
from fairopt.results import plain
from fairopt.scheduling import schedule
from fairopt.solving import best_found, notion_of, solve, without_remarks
from fairopt.specs import NotionSpec, OwnScheduler, ScheduleSpec, kind_of, read_notion, read_schedule
from fairopt.validation import check, check_time_limit, check_yes_or_no, numbers, require_labels
from fairopt.wording import percent

if TYPE_CHECKING:
    pass

__all__ = ["compare"]

log = logging.getLogger(__name__)

_EXACT_WHOLE = "exact, whole tasks"


def compare(
    instance: Instance,
    *,
    notions: Sequence[NotionSpec] = ("drfh",),
    schedules: Sequence[ScheduleSpec] = (),
    allocations: Mapping[str, npt.ArrayLike | Allocation | str | os.PathLike[str]] | None = None,
    integral: bool = False,
    sharing: Sharing | None = None,
    time_limit: float | None = None,
    reference: NotionSpec | None = None,
    exact: bool = False,
    done: Callable[[str], object] | None = None,
) -> Comparison:
    """Compute several allocations of one instance, and measure all of them in the same way.

    Parameters
    ----------
    instance : Instance
    notions : sequence
        Exact allocations: identifiers ("drfh"), with options "proportional:alpha=2" or ("proportional", {"alpha": 2}), or notions.
    schedules : sequence
        Greedy schedules: "criterion:placement" ("drfh:best-fit"), with options "drfh:best-fit:metric=cosine:ties=random" or as a mapping
        of the arguments of `schedule`; baselines: "notion:baseline" ("drfh:pop:parts=4"); (criterion, placement); an `Allocation` that
        was computed before; or a scheduler of your own, a function of an Instance that returns an Allocation or tasks (users, servers),
        or its name in a file, "mine.py:in_turn".
    allocations : mapping, optional
        Your own allocations, by name: arrays or frames (users, servers) of tasks, an `Allocation`, or the path of a CSV file
        (`fairopt.formats.allocations`). If one exceeds a limit, its row says where and by how much.
    integral : bool
        Also compute the best allocation of whole tasks of every notion, and measure the regret of schedules against it. If the time limit
        ends the search, the row is the best allocation found so far, with its gap, and is named so.
    sharing : {"rdm", "tdm"}, optional
        How all rows share servers: resources are divided, or time.
    time_limit : float, optional
        Seconds for each exact allocation. When the time limit is reached, the row says what was known by then.
    reference : optional
        The notion against which the regret of every row is measured. The default is the criterion of a schedule; for a schedule whose
        criterion has no optimum, and for given allocations, it is the first of ``notions``.
    exact : bool
        In fractions: exact allocations of divisible tasks, schedules, your own allocations (as they are written), and the measures that
        are rational (``row.exact``, ``row.regret.exact``). A notion without an answer in fractions has a row that says so.
    done : function, optional
        Called with the name of each row when the row is finished.

    Raises
    ------
    InvalidInstance, Unsupported
        If no row can be made: a notion or placement does not exist, or a file or array does not fit this instance.

    Examples
    --------
    >>> import fairopt as fo
    >>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
    >>> comparison = compare(instance, notions=["drfh", "efficiency"], schedules=["drfh:first-fit"], integral=True)
    >>> comparison["drfh:first-fit"].regret
    Regret(drfh, whole tasks: level 0, leximin 0, largest 0, total 0)
    >>> [(row.name, round(row.efficiency, 3)) for row in comparison]
    [('drfh', 0.873), ('drfh, whole tasks', 0.873), ('efficiency', 1.0), ('efficiency, whole tasks', 0.873), ('drfh:first-fit', 0.873)]
    """
    require_instance(instance)
    check_time_limit(time_limit)
    check_yes_or_no("exact", exact)
    how = default_sharing(instance) if sharing is None else sharing
    wanted = [read_notion(spec) for spec in ([notions] if isinstance(notions, str) else notions)]
    plans = [read_schedule(spec) for spec in ([schedules] if isinstance(schedules, str) else schedules)]
    for name, plan in plans:
        if isinstance(plan, Allocation):
            _tasks(plan, instance, how, name)
    own = {name: _tasks(value, instance, how, name, exact=exact) for name, value in (allocations or {}).items()}
    against = None if reference is None else read_notion(reference)[1]
    first = against or next((notion for _, notion in wanted), None)
    finish = next((notion for notion in (against, *(notion for _, notion in wanted)) if isinstance(notion, FinishTime)), None)
    work = _Work(instance, how, integral, time_limit, exact, finish)
    names = _Names()
    rows: list[Row] = []

    def add(row: Row) -> None:
        rows.append(row)
        if done is not None:
            done(row.name)

    for name, notion in wanted:
        add(work.exact(names.new(name), notion, against, whole=False))
        if integral:
            add(work.exact(names.new(f"{name}, whole tasks"), notion, against or notion, whole=True))
    for name, plan in plans:
        add(work.greedy(names.new(name), plan, against, [notion for _, notion in wanted]))
    for name, tasks in own.items():
        add(work.given(names.new(name), tasks, first))
    question = {
        "notions": [notion for _, notion in wanted],
        "schedules": [name for name, _ in plans],
        "allocations": list(own),
        "integral": integral,
        "sharing": how,
        "time_limit_s": time_limit,
        "reference": against,
        "exact": exact,
    }
    return Comparison(instance, how, tuple(rows), work.largest_total, plain(question))


# Rows ----------------------------------------------------------------------------------------------------------------------------


class _Work:
    """Computes the rows; computes every exact allocation only once."""

    def __init__(
        self,
        instance: Instance,
        sharing: Sharing,
        integral: bool,
        time_limit: float | None,
        exactly: bool,
        finish: FinishTime | None,
    ) -> None:
        self.exactly, self.finish = exactly, finish
        self.instance, self.sharing, self.integral, self.time_limit = instance, sharing, integral, time_limit
        self.solved: dict[tuple[Any, ...], Allocation | FairoptError] = {}
        # Weights per resource, and weights among the users of a queue, give no weight of a task: phi = 1 then.
        counted = instance if instance.weights.ndim == 1 and not instance.is_tree else instance.replace(weights=None)
        if instance.is_tree:
            counted = counted.replace(guarantees=None, queues=[queue.limits_alone for queue in instance.queues])
        self.weights = counted.weights
        self.exact_weights: Any = counted.exact.weights if exactly else None
        self.exact_total: Fraction | None = None
        self.largest_total, self.without = float("nan"), ""
        try:
            with _failures_are_refusals(), without_remarks():
                most = solve(counted, "efficiency", sharing=sharing, exact=exactly)
                self.largest_total = self._total(most)
                if most.exact is not None:
                    work: Any = most.in_fractions.work
                    total: Any = self.exact_weights @ work
                    self.exact_total = Fraction(total)
        except (InvalidInstance, Unsupported):  # the instance or the sharing is at fault: no row can be made
            raise
        except FairoptError as error:
            self.without = f"no task efficiency: {error}"

    def _total(self, allocation: Allocation) -> float:
        return float(self.weights @ allocation.work)

    def exact(self, name: str, notion: Notion, against: Notion | None, *, whole: bool) -> Row:
        kind = _EXACT_WHOLE if whole else "exact"
        started = time.perf_counter()
        try:
            allocation = self._solved(notion, whole)
        except FairoptError as error:
            return Row(name, kind, str(error))
        seconds = time.perf_counter() - started - allocation.seconds.get("load", 0.0)
        if not allocation.certificate.best_found:
            return self._measured(name, kind, allocation, seconds, against, whole=False)
        row = self._measured(name, BEST_FOUND, allocation, seconds, against, whole=False)
        note = f"the best found, not proved to be an optimum: {allocation.details['why']}"
        return dataclasses.replace(row, note="; ".join(text for text in (note, row.note) if text))

    def greedy(
        self, name: str, plan: Mapping[str, Any] | Allocation | OwnScheduler, against: Notion | None, wanted: Sequence[Notion]
    ) -> Row:
        first = against or next(iter(wanted), None)
        if isinstance(plan, OwnScheduler):
            started = time.perf_counter()
            try:
                with _failures_are_refusals():
                    own_allocation = made(self.instance, plan, self.sharing)
            except FairoptError as error:
                return Row(name, GIVEN, str(error))
            return self._measured(name, GIVEN, own_allocation, time.perf_counter() - started, against or first, whole=self.integral)
        if isinstance(plan, Allocation):
            exact = _EXACT_WHOLE if plan.certificate.whole_tasks else "exact"
            kind = BEST_FOUND if plan.certificate.best_found else plan.certificate.qualifier or exact
            seconds = float("nan")
            allocation, own = plan, notion_of(plan.notion) if plan.notion in NOTIONS else first
        else:
            kind, started = kind_of(plan), time.perf_counter()
            try:
                with _failures_are_refusals():
                    allocation = schedule(self.instance, sharing=self.sharing, **({**plan, "exact": True} if self.exactly else plan))
            except FairoptError as error:
                return Row(name, kind, str(error))
            seconds = time.perf_counter() - started - allocation.seconds.get("load", 0.0)
            criterion = plan["criterion"]
            has_optimum = not isinstance(criterion, str) or criterion in NOTIONS
            own = notion_of(criterion, **{key: plan[key] for key in ("utility",) if key in plan}) if has_optimum else first
            if isinstance(allocation.question, Approximation):
                own = allocation.question.notion
            own = next((notion for notion in wanted if _same_but_for_trees(notion, own)), own)  # as it is asked about: guarantees="clamp"
        return self._measured(name, kind, allocation, seconds, against or own, whole=self.integral)

    def given(self, name: str, tasks: FloatArray | Allocation, against: Notion | None) -> Row:
        allocation = tasks if isinstance(tasks, Allocation) else given(self.instance, tasks, self.sharing, exact=self.exactly)
        return self._measured(name, GIVEN, allocation, float("nan"), against, whole=self.integral)

    def _solved(self, notion: Notion, whole: bool) -> Allocation:
        key = (notion, whole)
        if key not in self.solved:
            try:
                with _failures_are_refusals():
                    exact = self.exactly and not whole
                    self.solved[key] = solve(
                        self.instance, notion, sharing=self.sharing, integral=whole, time_limit=self.time_limit, exact=exact
                    )
            except NoSolution as error:
                question = Optimum(notion, integral=whole, time_limit=self.time_limit)
                self.solved[key] = best_found(self.instance, question, self.sharing, error) or error
            except FairoptError as error:
                self.solved[key] = error
        found = self.solved[key]
        if isinstance(found, FairoptError):
            raise found
        return found

    def _measured(self, name: str, kind: str, allocation: Allocation, seconds: float, against: Notion | None, *, whole: bool) -> Row:
        part = takes_part(self.instance)
        shares = dominant_shares(allocation)[part]
        found, note = (None, "") if against is None else self._regret(allocation, against, whole)
        return Row(
            name,
            kind,
            seconds=seconds,
            allocation=allocation,
            smallest_share=float(shares.min()) if shares.size else float("nan"),
            efficiency=self._total(allocation) / self.largest_total if self.largest_total > 0 else float("nan"),
            jain=jain_index(shares),
            envy=largest_envy(allocation) if envy_applies(allocation) else None,
            use=cluster_use(allocation),
            regret=found,
            note="; ".join(text for text in (note, self.without) if text),
            violations=tuple(violations(self.instance, allocation.tasks, self.sharing, WRITTEN)),
            exact=self._in_fractions(allocation),
            finish_ratios=None if self.finish is None else ratios_of_users(allocation, self.finish),
        )

    def _in_fractions(self, allocation: Allocation) -> dict[str, Fraction] | None:
        """Return the measures that are rational, of an allocation in fractions."""
        if not self.exactly or allocation.exact is None or allocation.exact.radius:
            return None
        view, part = allocation.in_fractions, takes_part(self.instance)
        found = {"tasks": Fraction(view.tasks.sum())}
        if self.instance.speeds_given is not None:
            found["work"] = Fraction(view.work.sum())
        if part.any():
            found["smallest_share"] = Fraction(dominant_shares(view)[part].min())
        if self.exact_total:
            found["efficiency"] = Fraction(self.exact_weights @ view.work) / self.exact_total
        if envy_applies(allocation):
            found["envy"] = Fraction(largest_envy(view).tasks)
        return found

    def _regret(self, allocation: Allocation, against: Notion, whole: bool) -> tuple[Regret | None, str]:
        """Return the regret and a note. The reference is of whole tasks if this is asked for and found; else the note says why not."""
        note = ""
        for reference in (True, False) if whole and allocation.certificate.whole_tasks else (False,):
            try:
                with _failures_are_refusals():
                    found = regret(allocation, against, exact=self._solved(against, reference))
                if found.best_found:
                    note = (
                        f"regret against the best whole tasks found for {against.name} within the time limit, "
                        f"which are within {percent(found.gap)} of a bound: a lower bound"
                    )
                return found, note
            except FairoptError as error:
                note = f"no regret against {against.name}{', whole tasks' if reference else ''}: {error}"
        return None, note


@contextmanager
def _failures_are_refusals() -> Iterator[None]:
    """Turn any other exception into a `FairoptError`, so that only its row fails."""
    try:
        yield
    except FairoptError:
        raise
    except Exception as error:
        log.debug("a row of the comparison failed", exc_info=True)
        if line := line_at_fault(error):
            raise FairoptError(f"failed at {line} with {type(error).__name__}: {error}") from error
        raise FairoptError(
            f"failed unexpectedly with {type(error).__name__}: {error}; compute it by itself to see where, "
            "and report it unless the notion, the placement or the scheduler is your own"
        ) from error


# What was asked for --------------------------------------------------------------------------------------------------------------


def _same_but_for_trees(notion: Notion, other: Notion | None) -> bool:
    """Do two notions differ in the options of trees alone, such as ``guarantees``, or in nothing?"""
    if type(notion) is not type(other) or not isinstance(notion, ShareNotion):
        return notion == other
    return notion.changed(**{name: getattr(other, name) for name in OPTIONS_OF_TREES}) == other


class _Names:
    """Unique names of rows: the second "drfh" is "drfh (2)"."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def new(self, name: str) -> str:
        number, unique = 2, name
        while unique in self.taken:
            unique, number = f"{name} ({number})", number + 1
        self.taken.add(unique)
        return unique


def _tasks(
    value: npt.ArrayLike | Allocation | str | os.PathLike[str], instance: Instance, sharing: str, name: str, *, exact: bool = False
) -> FloatArray | Allocation:
    """Return an allocation that the caller gave; refuse one that does not fit this instance."""
    if isinstance(value, Allocation):
        if value.instance != instance or value.sharing != sharing:
            raise InvalidInstance(
                f'the allocation "{name}" is of another instance or sharing ({value.sharing}, here {sharing}); compare within one'
            )
        return value
    if isinstance(value, str | os.PathLike):
        from fairopt.formats.allocations import read

        tasks = read(Path(value), instance)
        return tasks if exact else tasks.astype(np.float64)
    what = f'tasks of the allocation "{name}"'
    require_labels(value, what, instance.users, instance.servers)
    tasks = numbers(value, what, (instance.n_users, instance.n_servers), "(users, servers)")
    check(tasks, np.isfinite(tasks) & (tasks >= 0), f'number of tasks in "{name}"', "finite and >= 0", instance.users, instance.servers)
    return np.asarray(value) if exact else tasks
