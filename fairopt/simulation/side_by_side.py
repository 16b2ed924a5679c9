"""Several schedulers on one trace (`fairopt.simulation.courses` measures what each made of it), kept in a folder as they finish."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fairopt.errors import Unsupported
from fairopt.files.stores import Store
from fairopt.instance import Instance, require_instance
from fairopt.instance.packing_rules import REWRITE, as_limits
from fairopt.processes.crew import Crew, check_workers
from fairopt.registry import contents
from fairopt.results import plain
from fairopt.simulation.baselines.options import Baseline
from fairopt.simulation.billing import BillingLike
from fairopt.simulation.courses import Course, SideBySide
from fairopt.simulation.keeping import digest_of, state_part
from fairopt.simulation.past_usage import UsageLike
from fairopt.simulation.plans import refuse_rules_of, scheduler_of, takes_usage
from fairopt.simulation.simulating import simulate, stated
from fairopt.simulation.streams import streams_of
from fairopt.specs import NotionSpec, ScheduleSpec
from fairopt.trace import Trace
from fairopt.validation import check_seconds
from fairopt.wording import figure

__all__ = ["Asked", "SideBySide", "compare_over_time"]

_Done: TypeAlias = Callable[[str, float, int], object]

_SAMPLES = 500  # while jobs are submitted
_WINDOWS = 24  # in that time


def compare_over_time(
    trace: Trace,
    cluster: Instance,
    schedulers: Sequence[ScheduleSpec | NotionSpec],
    *,
    reference: NotionSpec = "drfh",
    exact: NotionSpec | None = None,
    until: float | None = None,
    step: float | None = None,
    window: float | None = None,
    resume: Path | str | None = None,
    store: Path | str | None = None,
    usage: UsageLike | None = None,
    billing: BillingLike = None,
    workers: int = 1,
    backend: str = "loky",
    address: str | None = None,
    done: Callable[[str, float, int], object] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> SideBySide:
    """Follow a trace on a cluster under several schedulers, and compare waiting, slowdown, shares, shortfall, envy and Jain's index.

    Parameters
    ----------
    trace : Trace
    cluster : Instance
    schedulers : sequence
        As `fairopt.simulate` takes them.
    reference : str
        The exact fluid simulation that shortfalls are measured against, as `fairopt.simulate` takes it.
    until : float, optional
        End of the simulations, in seconds.
    step : float, optional
        Seconds between samples; default: a five-hundredth of the time over which jobs are submitted.
    window : float, optional
        Seconds of a window of Jain's index; default: a twenty-fourth of that time.
    resume : path, optional
        A folder, made if it is not there, that keeps each scheduler once it has finished, and the state of the one that is simulated, as
        `fairopt.simulate` does. A run that is stopped goes on from there, if trace, cluster and options are the same. Only schedulers
        that are named by a string are kept.
    workers, backend, address
        Workers, one scheduler each, as `fairopt.study` takes them; the default is this process alone, one scheduler after the other. The
        folder of ``resume`` must be one that the workers write to, too.
    done : function, optional
        Called with the scheduler, the simulated time and the number of tasks so far; with several workers, at the end of each scheduler.
    usage, billing : optional
        What owners had used before, and the unit in which that is counted, for those schedulers that have a memory: `fairopt.simulate`.
    exact, store : optional
        The former names of ``reference`` and ``resume``.
    stopped : function, optional
        Called from time to time (with several workers, at the end of each scheduler); True ends the simulation, and those that have not
        begun are left out (`SideBySide.not_begun`).

    Returns
    -------
    SideBySide

    Raises
    ------
    InvalidInstance, Unsupported
        As `fairopt.simulate`. The folder cannot be used. No scheduler is given.

    Examples
    --------
    >>> import fairopt as fo
    >>> cluster = fo.Instance([[4]], [[1]], users=["nobody"], resources=["cpu"])
    >>> trace = fo.Trace(
    ...     ["A", "A", "B", "B"], [0, 0, 0, 5], [3, 2, 4, 1], [[1]] * 4, [100, 50, 60, 20], resources=["cpu"], gangs=[1, 1, 1, 1])
    >>> found = compare_over_time(trace, cluster, ["fifo", "backfill", "fairtree:half_life=1d"])
    >>> found.to_frame()[["wait_s", "bounded_slowdown"]].round(2).reset_index().to_numpy().tolist()
    [['fifo', 113.75, 4.69], ['backfill', 62.5, 2.12], ['fairtree:half_life=1d', 65.0, 2.22]]
    """
    began = time.perf_counter()
    reference = reference if exact is None else exact
    resume = resume if store is None else store
    check_workers(workers, backend, address)
    if isinstance(schedulers, str):
        schedulers = [schedulers]
    if not schedulers:
        raise Unsupported('no scheduler is given; name some, such as "drfh:best-fit" and "backfill"')
    words = [spec for spec in schedulers if isinstance(spec, str)]
    if twice := next((spec for k, spec in enumerate(words) if spec in words[:k]), None):
        raise Unsupported(f'the scheduler "{twice}" is there twice; name each once')
    asked = Asked.of(trace, cluster, until=until, step=step, window=window, resume=resume, usage=usage, billing=billing)
    plans = []
    for spec in [*schedulers, reference]:  # a wrong word is refused before anything is simulated
        name, plan = scheduler_of(spec)
        refuse_rules_of(cluster, name, plan)
        plans.append(plan)
    if (usage is not None or billing is not None) and not any(takes_usage(plan) for plan in plans):
        raise Unsupported(
            "usage and billing are for schedulers with a memory, fairtree, priority, maui, and notions with a half-life; none of these is "
            "compared: leave usage and billing out"
        )

    with Crew(workers, backend, address) as crew:
        ahead = {} if crew.alone else _ahead(crew, asked.course, [reference, *schedulers], done, stopped)
    ideal = ahead.pop(0) if 0 in ahead else asked.course(reference, done, stopped)
    courses: list[Course] = []
    not_begun: list[str] = []
    for number, spec in enumerate(schedulers, 1):
        if number in ahead:
            courses.append(ahead[number])
        elif courses and stopped is not None and stopped():
            not_begun.append(str(spec))
        else:
            courses.append(ideal if isinstance(spec, str) and spec == reference else asked.course(spec, done, stopped))
    question: dict[str, Any] = {"schedulers": schedulers, "reference": reference, "until_s": until}
    question |= {"step_s": asked.step, "window_s": asked.window}
    question |= {word: value for word, value in (("usage", usage), ("billing", billing)) if value is not None}
    found = asked.side_by_side(courses, ideal, not_begun)
    return replace(found, seconds=time.perf_counter() - began, question=plain(question))


@dataclass(frozen=True, slots=True)
class Asked:
    """What all schedulers on a trace are asked; it travels to workers.

    Attributes
    ----------
    trace : Trace
    cluster : Instance
    until : float or None
    step, window : float
        Seconds between samples, and of a window of Jain's index.
    own_step : bool
        Did the user choose the step?
    usage, billing
        As `compare_over_time` takes them.
    keep : _Kept or None
        Where finished schedulers are kept.
    """

    trace: Trace
    cluster: Instance
    until: float | None
    step: float
    window: float
    own_step: bool
    usage: UsageLike | None
    billing: BillingLike
    keep: _Kept | None

    @classmethod
    def of(
        cls,
        trace: Trace,
        cluster: Instance,
        *,
        until: float | None = None,
        step: float | None = None,
        window: float | None = None,
        resume: Path | str | None = None,
        usage: UsageLike | None = None,
        billing: BillingLike = None,
    ) -> Asked:
        """Return what is asked, with the defaults that `compare_over_time` says, and rules as the limits that they are."""
        require_instance(cluster)
        cluster = as_limits(cluster, "a simulation", instead=REWRITE, tasks_of_others=True)
        length = float(trace.submit[-1] - trace.submit[0]) if isinstance(trace, Trace) else 0.0
        for word, value in (("step", step), ("window", window)):
            if value is not None:
                check_seconds(word, value)
        own_step = step is not None
        step = step if step is not None else length / _SAMPLES if length > 0 else 1.0
        window = window if window is not None else length / _WINDOWS if length > 0 else 3600.0
        keep = None if resume is None else _Kept(Path(resume), trace, cluster, (until, step, *stated(usage, billing)))
        return cls(trace, cluster, until, step, window, own_step, usage, billing, keep)

    def course(self, spec: Any, done: _Done | None = None, stopped: Callable[[], bool] | None = None) -> Course:
        """Return what a scheduler makes of the trace: what is kept of it, or else simulated."""
        name = spec if isinstance(spec, str) else None
        plan = scheduler_of(spec)[1]
        known: dict[str, Any] = {"usage": self.usage, "billing": self.billing} if takes_usage(plan) else {}
        if "usage" in known and self.usage is None and not isinstance(plan, Baseline):
            known = {}  # billing is the unit of schedulers of jobs, and of usage from before
        if self.keep is not None and name is not None and (kept := self.keep.read(name)) is not None:
            return kept
        report = (lambda now, tasks: done(str(spec), now, tasks)) if done is not None else None
        state = None if self.keep is None or name is None else self.keep.store.folder
        try:
            found = simulate(
                self.trace, self.cluster, spec, until=self.until, step=self.step, resume=state, done=report, stopped=stopped, **known
            )
        except Unsupported as error:
            if self.own_step or "a sample every" not in str(error):
                raise
            raise Unsupported(
                f"under {spec}, jobs end far beyond the {figure(float(self.trace.submit[-1] - self.trace.submit[0]))} s in which they are "
                "submitted: too many samples; check that demands have the units of the cluster, or give an end or a step (until=, step=)"
            ) from None
        course = Course.of(found)
        if self.keep is not None and name is not None and course.complete:
            self.keep.write(name, course)
        return course

    def side_by_side(self, courses: Sequence[Course], exact: Course, not_begun: Sequence[str] = ()) -> SideBySide:
        """Return schedulers with their measures against the exact simulation."""
        streams = streams_of(self.trace, self.cluster)
        return SideBySide(self.trace, self.cluster, streams.users, streams.weights, tuple(courses), exact, self.window, tuple(not_begun))


def _ahead(
    crew: Crew, course_of: Callable[[Any], Course], specs: Sequence[Any], done: _Done | None, stopped: Callable[[], bool] | None
) -> dict[int, Course]:
    """Simulate schedulers on workers, each once; return their courses by position, if they were done before all was stopped."""

    def same(one: Any, other: Any) -> bool:
        return one is other or (isinstance(one, str) and isinstance(other, str) and one == other)

    first = {j: next(k for k, other in enumerate(specs) if same(spec, other)) for j, spec in enumerate(specs)}
    asked = sorted(set(first.values()))
    courses: dict[int, Course] = {}
    with contextlib.closing(crew.each(course_of, [specs[j] for j in asked])) as results:
        for position, course in results:
            courses[asked[position]] = course
            if done is not None:
                done(str(specs[asked[position]]), course.until, int(np.isfinite(course.finished).sum()))
            if stopped is not None and stopped():
                break
    return {j: courses[k] for j, k in first.items() if k in courses}


class _Kept:
    """Finished schedulers in a store, each in a part whose name tells what was asked."""

    def __init__(self, folder: Path, trace: Trace, cluster: Instance, options: tuple[object, ...]) -> None:
        self.store = Store(folder)
        self.digest = digest_of(trace, cluster, list(options))
        self.sizes = len(streams_of(trace, cluster).users), len(cluster.resources), len(cluster.limits), len(trace.jobs)

    def part(self, name: str) -> str:
        """Return the part of a scheduler."""
        word = "".join(letter if letter.isalnum() else "-" for letter in name)[:40]
        return f"{word}-{digest_of(self.digest, name, contents(name))}.npz"

    def read(self, name: str) -> Course | None:
        """Return what was kept of a scheduler, if anything was."""
        path = self.store.path(self.part(name))
        return Course.from_file(path, *self.sizes) if path.exists() else None

    def write(self, name: str, course: Course) -> None:
        """Keep a scheduler instead of its state."""
        self.store.write(self.part(name), course.to_bytes())
        self.store.remove(state_part(name))
