"""Published results compared with the results of fairopt: ``fairopt reproduce``.

An experiment yields rows. `EXPERIMENTS` maps identifiers to experiments. The small examples of each paper are data (`fairopt.papers`). The
random trials are functions. To add an experiment, write a function from a `Run` to rows, and add an entry.

The verdict of a row says that it agrees with the paper within the tolerance, or differs in a known and explained way, or differs
unexpectedly. An unexpected difference is a fault of fairopt or of the explanation. Two means agree if their difference is within its 99.9 %
confidence interval, by the pooled variance of both samples. Trial j of a setting has its own random numbers, so the results do not depend
on the number of workers.

>>> for experiment, rows in reproduce(["drf"]):
...     for row in rows:
...         print(experiment.id, row.id, row.published, row.ours, row.verdict.value)
drf drf-example [3.0, 2.0] [3.0, 2.0] agrees
drf drf-algorithm-1 [3.0, 2.0] [3.0, 2.0] agrees
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.allocation.exact_answer import as_text
from fairopt.certificate import Certificate
from fairopt.errors import InvalidInstance, NoSolution, SolverUnavailable, Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.instance.fractions import ExactArray, fractions_of
from fairopt.papers import PAPERS, Result, read
from fairopt.reproduction.flow_trials import soroush_ratio
from fairopt.reproduction.memory_trials import memory_rows
from fairopt.reproduction.property_trials import number_of_instances, psdsf_table_1
from fairopt.reproduction.schedule_trials import drfh_figure_4, drfh_placements, kesidis_tables, number_of_trials
from fairopt.reproduction.simulation_trials import drfh_figure_4_over_time, psdsf_figure_6
from fairopt.reproduction.trace_trials import drfh_trace, number_of_simulations
from fairopt.reproduction.trials import Row, Run, Verdict, Z, compared, interval, sample
from fairopt.scheduling import schedule
from fairopt.scheduling.precomputed import precomputed_drf
from fairopt.solvers import fill_lowest_first, precompute
from fairopt.solving import solve
from fairopt.wording import did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENTS", "Experiment", "Row", "Run", "Verdict", "answer", "answer_in_fractions", "reproduce"]


@dataclass(frozen=True, slots=True)
class Experiment:
    """Some results of one paper. ``trials`` returns the number of random trials or simulations of ``rows``, for a quick run or not."""

    id: str
    title: str
    source: str
    rows: Callable[[Run], Iterable[Row]]
    trials: Callable[[bool], int] = lambda quick: 0


def reproduce(
    ids: Iterable[str] | None = None,
    *,
    quick: bool = False,
    workers: int = 1,
    done: Callable[[int], object] | None = None,
    data: Path | None = None,
    draw: Callable[[str, Callable[[], Figure]], object] | None = None,
    exact: bool = False,
    known: Callable[[Row], object] | None = None,
) -> Iterator[tuple[Experiment, list[Row]]]:
    """Run experiments, one after another; each is run when the iterator comes to it.

    Parameters
    ----------
    ids : identifiers of `EXPERIMENTS`, optional
        Default: all experiments; of a run in fractions, the small examples of the papers.
    quick : bool
        Run fewer trials, with wider intervals.
    workers : int
        Number of workers for random trials; -1: one worker on each core.
    done : function of an int, optional
        Called with the number of trials finished since the last call.
    data : path, optional
        Folder of public traces. Without it, experiments use a synthetic trace.
    draw : function of a name and a function that returns a figure, optional
        Called for each figure of the experiments, such as "drfh-figure-5".
    exact : bool
        Answer the small examples in fractions: `Row.ours` is text such as "18/5". What has no answer in fractions is in floats, and its
        note says why; random trials and simulations are in floats.
    known : function of a row, optional
        Called with each row as soon as it is known.

    Raises
    ------
    InvalidInstance
        The experiment or the folder does not exist.
    """
    chosen = list((PAPERS if exact else EXPERIMENTS) if ids is None else ids)
    for name in chosen:
        if name not in EXPERIMENTS:
            raise InvalidInstance(f'there is no experiment "{name}"{did_you_mean(name, EXPERIMENTS)}; there are {", ".join(EXPERIMENTS)}')
    if data is not None and not data.is_dir():
        raise InvalidInstance(f"{data} is no folder; give the one that has the public traces, or none for synthetic ones")
    run = Run(quick, workers, done or (lambda trials: None), data, draw or (lambda name, figure: None), exact)
    return ((EXPERIMENTS[name], list(_told(EXPERIMENTS[name].rows(run), known or (lambda row: None)))) for name in chosen)


def _told(rows: Iterable[Row], known: Callable[[Row], object]) -> Iterator[Row]:
    for row in rows:
        known(row)
        yield row


# Small examples: data ------------------------------------------------------------------------------------------------------------


# Algorithms that are not notions, by name.
ALGORITHMS: dict[str, Callable[..., Allocation]] = {"schedule": schedule, "precomputed-drf": precomputed_drf}

# Quantities that are compared: functions of the instance, of the tasks (users, servers) and of the shares.
QUANTITIES: dict[str, Callable[[Instance, Any, Any], Any]] = {
    "tasks": lambda instance, tasks, shares: tasks.sum(axis=1),
    "first": lambda instance, tasks, shares: tasks[:1].sum(axis=1),  # tasks of the first user
    "shares": lambda instance, tasks, shares: shares,
    "granted": lambda instance, tasks, shares: tasks.sum(axis=1)[:, None] * instance.demands,
    "used": lambda instance, tasks, shares: tasks.sum(axis=1) @ instance.demands,
    "placed": lambda instance, tasks, shares: tasks,
    "unused": lambda instance, tasks, shares: instance.row_capacity - tasks.T @ instance.demands,
    "total": lambda instance, tasks, shares: tasks.sum(keepdims=True)[0],
    "lost": lambda instance, tasks, shares: solve(instance, "efficiency").tasks.sum(keepdims=True)[0] - tasks.sum(keepdims=True)[0],
    "left": lambda instance, tasks, shares: instance.total_capacity - tasks.sum(axis=1) @ instance.demands,
    "work": lambda instance, tasks, shares: (tasks if instance.speeds_given is None else tasks * instance.speeds_given).sum(axis=1),
    "rates": lambda instance, tasks, shares: instance.rates,
}


def answer(result: Result, instance: Instance, solver: str | None = None) -> FloatArray:
    """Compute the quantity of a result; ``solver`` names the engine if the result has a notion."""
    return _computed(result, instance, solver)[0]


def _computed(result: Result, instance: Instance, solver: str | None = None) -> tuple[FloatArray, Certificate | None]:
    """Compute the quantity of a result; return it with the certificate of its allocation, if it has one."""
    tasks, shares, proof = np.zeros((instance.n_users, instance.n_servers)), np.zeros(instance.n_users), None
    if result.notion is not None or result.algorithm is not None:
        allocation = _allocation(result, instance, **({} if solver is None else {"solver": solver}))
        tasks, shares, proof = allocation.tasks, allocation.shares, allocation.certificate
    return QUANTITIES[result.quantity](instance, tasks, shares), proof


def answer_in_fractions(result: Result, instance: Instance) -> ExactArray:
    """Compute the quantity of a result in fractions.

    >>> paper = read("psdsf")
    >>> (result,) = [each for each in paper.results if each.id == "psdsf-figure-2"]
    >>> answer_in_fractions(result, paper.instances[result.instance]).tolist()
    [Fraction(18, 5), Fraction(18, 5), Fraction(8, 1), Fraction(8, 1)]

    Raises
    ------
    Unsupported, NoSolution
        It has none, or none was found.
    """
    exact = instance.exact
    tasks, shares = fractions_of(np.zeros((exact.n_users, exact.n_servers))), fractions_of(np.zeros(exact.n_users))
    if result.notion is not None or result.algorithm is not None:
        found = _allocation(result, instance, exact=True).exact
        assert found is not None
        if found.radius:
            raise Unsupported("it is irrational")
        tasks, shares = found.tasks, found.shares
    quantity: ExactArray = QUANTITIES[result.quantity](exact, tasks, shares)
    return quantity


def _allocation(result: Result, instance: Instance, **options: Any) -> Allocation:
    """Return the allocation of a result that has a notion or an algorithm."""
    if result.notion is not None:
        return solve(instance, result.notion, **result.options, **options)
    return ALGORITHMS[str(result.algorithm)](instance, **result.options, **options)


def _examples(name: str, run: Run) -> Iterator[Row]:
    paper = read(name)
    for result in paper.results:
        try:
            ours, proof = _computed(result, paper.instances[result.instance])
        except SolverUnavailable as error:
            yield Row(
                id=result.id,
                what=result.what,
                citation=result.citation,
                published=None if result.published is None else result.published.tolist(),
                ours=[],
                tolerance=result.tolerance,
                mean=False,
                verdict=Verdict.NOT_RUN,
                note=f"Not run: {error}",
            )
            continue
        written, note = ours.tolist(), ""
        if run.exact:
            try:
                fractions = answer_in_fractions(result, paper.instances[result.instance])
                ours, written = fractions.astype(float), as_text(fractions)
            except (Unsupported, NoSolution) as error:
                note = f"{result.what} is in floats: {error}"
        as_published = None if result.published is None else _equal(ours, result.published, result.tolerance)
        row = compared(
            id=result.id,
            what=result.what,
            citation=result.citation,
            published=None if result.published is None else result.published.tolist(),
            ours=written,
            tolerance=result.tolerance,
            holds=as_published,
            as_known=result.ours is not None and _equal(ours, result.ours, result.tolerance),
            differs=result.differs,
            kind="" if proof is None else proof.qualifier or "exact",
            residual=None if proof is None or proof.qualifier else proof.worst,
        )
        yield replace(row, note=row.note or note)


def _equal(ours: FloatArray, theirs: FloatArray, tolerance: float) -> bool:
    return ours.shape == theirs.shape and bool(np.allclose(ours, theirs, rtol=1e-9, atol=tolerance))


# Random trials -------------------------------------------------------------------------------------------------------------------


def _pdrf_trials(run: Run) -> Iterator[Row]:
    """Numbers of users with fewer and with more tasks by precomputed DRF than by algorithm 1 of Ghodsi et al.: Metin, tables 1 and 2."""
    trials = read("pdrf").more["trials"]
    repetitions = trials["quick" if run.quick else "repetitions"]
    for setting in trials["setting"]:
        outcomes = sample(partial(_fewer_and_more, setting, trials["users"]), setting["id"], repetitions, run)
        for quantity, values in zip(("fewer", "more"), outcomes.T, strict=True):
            ours = float(values.mean())
            mean, deviation = setting[quantity]
            width = interval(values, deviation, trials["repetitions"])
            known = setting.get("ours", {}).get(quantity)
            as_known = known is not None and abs(ours - known[0]) <= interval(values, known[1], trials["repetitions"])
            yield compared(
                id=f"{setting['id']}-{quantity}",
                what=f"{setting['what']}, {quantity}",
                citation=f"{setting['what'].partition(',')[0]}: mean number of users with {quantity} tasks than by DRF",
                published=[mean],
                ours=[ours],
                tolerance=width,
                mean=True,
                holds=abs(ours - mean) <= width,
                as_known=as_known,
                differs=setting.get("differs", ""),
                kind="approximate",
            )


def _fewer_and_more(setting: dict[str, Any], users: int, rng: np.random.Generator) -> FloatArray:
    (low, high), (least, most), resources = setting["reserves"], setting["demands"], setting["resources"]
    capacity = rng.integers(low, high, resources, endpoint=True).astype(float)
    demands = rng.integers(least, most, (users, resources), endpoint=True).astype(float)
    share, endless = (demands / capacity).max(axis=1), np.full(users, np.inf)
    (cycle,) = precompute(capacity, demands, share, endless)
    by_task = fill_lowest_first(capacity, demands, share, endless, go_on=False)
    return np.array([(cycle.tasks < by_task).sum(), (cycle.tasks > by_task).sum()], float)


def _drfh_table_1(run: Run) -> Iterator[Row]:
    """Total capacity of 100 servers drawn from table I: the mean, and the interval that contains 99.9 % of such draws."""
    table = read("drfh").more["table-1"]
    counts, *columns = np.array(table["servers"], float).T
    part = counts / counts.sum()
    for name, column, published in zip(table["resources"], columns, table["published"], strict=True):
        mean = table["drawn"] * float(part @ column)
        width = Z * float(np.sqrt(table["drawn"] * (part @ column**2 - (part @ column) ** 2)))
        yield compared(
            id=f"drfh-table-1-{name.lower()}",
            what=f"{name} of {table['drawn']} servers of table I",
            citation="figure 4: what 100 servers drawn from table I hold",
            published=[published],
            ours=[mean],
            tolerance=width,
            mean=True,
            holds=abs(mean - published) <= width,
        )


# Registry ------------------------------------------------------------------------------------------------------------------------


def _experiments() -> Iterator[Experiment]:
    for name in PAPERS:
        paper = read(name)
        if paper.results:
            yield Experiment(name, paper.title, paper.source, partial(_examples, name))
    drfh, kesidis, pdrf, psdsf = read("drfh"), read("kesidis"), read("pdrf"), read("psdsf")
    yield Experiment("drfh-table-1", "Servers of the Google cluster", drfh.source, _drfh_table_1)
    yield Experiment("psdsf-figure-6", "A user who is away", psdsf.source, psdsf_figure_6)
    yield Experiment(
        "memory",
        "Fairness with a memory",
        "Vuppalapati et al. (OSDI 2023); Fikioris, Agarwal and Tardos (2021); Lifka (JSSPP 1995)",
        memory_rows,
    )
    yield Experiment("psdsf-table-1", "Properties under placement constraints", psdsf.source, psdsf_table_1, number_of_instances)
    yield Experiment("drfh-figure-4", "Three users on 100 servers", drfh.source, drfh_figure_4, number_of_trials("drfh", "figure-4"))
    yield Experiment(
        "drfh-figure-4-over-time",
        "Three users, one after another",
        drfh.source,
        drfh_figure_4_over_time,
        number_of_trials("drfh", "figure-4-over-time"),
    )
    yield Experiment(
        "drfh-placements", "Placements against the optimum", drfh.source, drfh_placements, number_of_trials("drfh", "placements")
    )
    yield Experiment("drfh-trace", "A day of a Google trace", drfh.source, drfh_trace, number_of_simulations)
    yield Experiment("kesidis-tables", "Random servers", kesidis.source, kesidis_tables, number_of_trials("kesidis", "trials"))
    yield Experiment("pdrf-tables", "PDRF against task-by-task DRF", pdrf.source, _pdrf_trials, number_of_trials("pdrf", "trials"))
    soroush = read("soroush")
    yield Experiment("soroush-ratio", soroush.title, soroush.source, soroush_ratio, number_of_trials("soroush", "trials"))


EXPERIMENTS: dict[str, Experiment] = {experiment.id: experiment for experiment in _experiments()}
