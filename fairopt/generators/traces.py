"""A synthetic day of a large cluster: jobs over time whose sizes, durations, demands and users have the shape of a Google trace.

The numbers below describe the first 19.65 hours of the public trace (Reiss, Wilkes and Hellerstein, Google cluster-usage traces: format +
schema, 2011, CC-BY). A row of the data is one job with one shape of its tasks. The numbers are rounded statistics of the whole trace; no
row of the trace is copied. The trace has far more structure: users who submit at certain hours, jobs that fail and are submitted again,
constraints.
"""

from __future__ import annotations

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.trace import Trace
from fairopt.validation import check_whole_number, is_number
from fairopt.wording import written

__all__ = ["generate_trace"]

# The keys True and False stand for jobs that are present at the beginning and for jobs that are submitted later.
_PRESENT = 0.22  # fraction of the jobs that are present at the beginning
_SINGLE = {True: 0.59, False: 0.79}  # fraction of the jobs that have one task
_TASKS = {True: (5.0, 2.4), False: (24.0, 2.0)}  # number of tasks of the other jobs: median, and deviation of the logarithm
_MOST_TASKS = 10_000
_STAYS = 0.75, 8  # fraction of the present jobs that never end, for jobs of at most this many tasks
_RUN = (125.0, 0.2, 1.7)  # durations of later jobs: median seconds of one task, exponent of the number of tasks, deviation of the logarithm
_CPU = {True: (0.026, 1.3), False: (0.015, 1.0)}  # fraction of a machine: median, and deviation of the logarithm
_MEMORY = {True: (0.016, 1.3), False: (0.008, 1.6)}
_TOGETHER = 0.5  # correlation of the logarithms of CPU and memory
_LEAST, _LARGEST = 1e-4, 0.5  # fractions of a machine
_COMES_BACK = 0.27  # fraction of the users that submit jobs during the day
_JOBS_PER_SHAPE = 5


def generate_trace(*, jobs: int = 19_500, users: int = 565, hours: float = 19.65, diurnal: float = 0.25, seed: int = 0) -> Trace:
    """Draw a trace of CPU and memory with the shape of a day of a Google cluster. Demands are fractions of the largest machine.

    At the beginning, 22 % of the jobs are present. The others are submitted by a Poisson process (conditioned on their number) with the
    rate 1 + ``diurnal`` sin(2 pi t / 24 h). A job has

    * a user: user k of K, with a probability proportional to 1 / k (Zipf). All users may have jobs at the beginning. Of the users, 27 %, in
      another order, submit jobs later (in the trace 505 and 153 of 565);
    * tasks: one task with probability 0.59 (present at the beginning) or 0.79 (submitted later). Otherwise the number is lognormal with
      median 5 or 24 and deviation 2.4 or 2.0 of the logarithm, rounded up, at most 10,000. So most jobs have one task, and most tasks
      belong to the few large jobs;
    * a duration, the same for all its tasks. For a job of N tasks that is submitted later, it is lognormal with median 125 N^0.2 s and
      deviation 1.7 of the logarithm. A job present at the beginning never ends (inf) with probability 0.75 min(1, 8 / N); otherwise its
      duration is U[0, ``hours``];
    * demands: those of one of the shapes of its user. A user has one shape, and one more for every five jobs. Jobs present at the beginning
      and later jobs have separate shapes. CPU and memory of a shape are lognormal with medians 0.026 and 0.016 (at the beginning) or 0.015
      and 0.008 (later), deviations 1.3 and 1.3, or 1.0 and 1.6, and correlation 0.5 of the logarithms. They are clipped to [0.0001, 0.5].

    Parameters
    ----------
    jobs, users : int
        Users who draw no job do not appear.
    hours : float
        The length of the day.
    diurnal : float
        From 0, a constant rate, to 1.
    seed : int
        Equal seeds draw equal traces.

    Raises
    ------
    Unsupported
        A value is not allowed for its parameter.

    Notes
    -----
    The distributions and the defaults are fitted to the first 19.65 hours of the trace of Reiss, Wilkes and Hellerstein (2011). On 2,000
    servers of that cluster, the demand is several times the capacity, as in the trace.

    Examples
    --------
    >>> trace = generate_trace(jobs=1000, users=50, seed=1)
    >>> trace.n_jobs, len(trace.users) <= 50, trace.resources
    (1000, True, ('cpu', 'memory'))
    >>> round(float((trace.tasks == 1).mean()), 2)
    0.74
    """
    check_whole_number("jobs", jobs, 1)
    check_whole_number("users", users, 1)
    for word, value, most in (("hours", hours, np.inf), ("diurnal", diurnal, 1.0)):
        if not is_number(value) or not 0 <= value <= most or (word == "hours" and value == 0):
            raise Unsupported(f"{word} is {written(value)}; give a number {'> 0' if word == 'hours' else 'from 0 to 1'}")
    rng = np.random.default_rng(seed)
    length = 3600.0 * hours
    here = np.arange(jobs) < round(_PRESENT * jobs)
    submit = np.where(here, 0.0, _arrivals(jobs, length, diurnal, rng))
    submit.sort()  # jobs present at the beginning stay first
    user = _users(here, users, rng)
    tasks = np.where(here, _sizes(True, jobs, rng), _sizes(False, jobs, rng))
    median, exponent, deviation = _RUN
    comes = median * tasks**exponent * rng.lognormal(0.0, deviation, jobs)
    part, few = _STAYS
    stays = rng.random(jobs) < part * np.minimum(1.0, few / tasks)
    there = np.where(stays, np.inf, rng.uniform(0.0, length, jobs))
    return Trace(
        [f"U{n + 1:04d}" for n in user],
        submit,
        tasks,
        np.concatenate([_demands(user[here], True, rng), _demands(user[~here], False, rng)]),
        np.where(here, there, comes),
        resources=["cpu", "memory"],
    )


def _arrivals(number: int, length: float, diurnal: float, rng: np.random.Generator) -> FloatArray:
    """Return the times of a Poisson process, by rejection."""
    times = np.empty(0)
    while times.size < number:
        more = rng.uniform(0.0, length, number)
        rate = 1 + diurnal * np.sin(2 * np.pi * more / 86_400.0)
        times = np.concatenate([times, more[rng.uniform(0.0, 1 + diurnal, number) < rate]])
    return times[:number]


def _users(here: np.ndarray, users: int, rng: np.random.Generator) -> IntArray:
    """Return the user of each job."""
    back = rng.permutation(users)[: max(1, round(_COMES_BACK * users))]
    chosen = []
    for names, number in ((rng.permutation(users), int(here.sum())), (back, int((~here).sum()))):
        weight = 1 / np.arange(1, names.size + 1)
        chosen.append(names[rng.choice(names.size, number, p=weight / weight.sum())])
    return np.concatenate(chosen).astype(np.int64)


def _sizes(here: bool, number: int, rng: np.random.Generator) -> FloatArray:
    median, deviation = _TASKS[here]
    several = np.clip(np.ceil(median * rng.lognormal(0.0, deviation, number)), 2, _MOST_TASKS)
    return np.where(rng.random(number) < _SINGLE[here], 1.0, several)


def _demands(user: IntArray, here: bool, rng: np.random.Generator) -> FloatArray:
    """Return CPU and memory of a task of each job: one of the shapes of its user."""
    shapes = 1 + np.bincount(user) // _JOBS_PER_SHAPE
    normal = rng.standard_normal((int(shapes.sum()), 2))
    normal[:, 1] = _TOGETHER * normal[:, 0] + np.sqrt(1 - _TOGETHER**2) * normal[:, 1]
    median, deviation = np.array([_CPU[here], _MEMORY[here]]).T
    table = np.clip(median * np.exp(normal * deviation), _LEAST, _LARGEST)
    first = np.cumsum(shapes) - shapes
    return np.asarray(table[first[user] + rng.integers(0, shapes[user])], float)
