"""``fairopt solve``: the exact fair allocation of a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

import fairopt as fo
from fairopt.allocation import Optimum
from fairopt.commands import completion
from fairopt.commands.delivering import draw_envy, present, write_figure
from fairopt.commands.forms import check_picture, choose_form
from fairopt.commands.options import (
    Changes,
    Csv,
    Everything,
    Exact,
    File,
    Guarantees,
    Json,
    Only,
    Output,
    Plot,
    PlotEnvy,
    PlotPath,
    PlotPolytope,
    PlotQueues,
    QueueShare,
    ResourceWeights,
    Rules,
    Sharing,
    Shown,
    Sort,
    Top,
    choose_users,
    counts,
    read_instance,
    read_preference,
    read_utility,
    with_rules,
)
from fairopt.commands.retired import warn_retired
from fairopt.commands.solver_options import SolverOptions, read_solver_options
from fairopt.commands.working import work
from fairopt.instance import FloatArray
from fairopt.registry import words
from fairopt.solving import best_found, checked
from fairopt.specs import read_notion

__all__ = ["solve"]

_OF_NOTIONS = "Options of some notions"


def solve(
    file: File,
    notion: Annotated[
        str, typer.Option(metavar="ID", help="Notion of fairness. See: fairopt notions.", autocompletion=completion.notions)
    ] = "drfh",
    solver: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Engine. See: fairopt solvers.", autocompletion=completion.solvers),
    ] = None,
    solver_options: SolverOptions = None,
    sharing: Sharing = None,
    integral: Annotated[bool, typer.Option("--integral", help="Solve for whole tasks, each on one server.")] = False,
    exact: Exact = False,
    digits: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --exact, for notions whose optimum is irrational (proportional, bbf, fds, gfj): number of digits. Default: 30.",
        ),
    ] = None,
    formulation: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="For drfh: leximin (default), or equalize (one LP that gives everybody the same share). For psdsf: equilibrium (default), "
            "or market (the convex program of time division).",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    utility: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For max-min, proportional: value of a task on each server: a column user, then a column for each server.",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="For proportional: 0 maximises the total, 1 (default) is proportional fairness, larger values favour small shares more.",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="For fds, gfj: aversion to inequality, > 0. Default: 2.", rich_help_panel=_OF_NOTIONS),
    ] = None,
    lam: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="For fds, gfj: lambda, the weight of the total. Default: 2 (1 - beta) / beta.",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    prefer: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="For bbf, psdsf: of all fair allocations, choose the one with the largest weighted number of tasks, with the weights of "
            "this table (columns user, weight). Of the highest utilization: --notion bbf:prefer=utilization.",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    order: Annotated[
        Literal["sequential", "random", "asynchronous"] | None,
        typer.Option(
            help="For psdsf: how servers take turns. Default: sequential.",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="For psdsf: seed of the orders random and asynchronous. Default: 0.", rich_help_panel=_OF_NOTIONS),
    ] = None,
    delay: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="For psdsf, asynchronous: act on information up to N steps old. Default: 0.",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    guarantees: Guarantees = None,
    queue_share: QueueShare = None,
    resource_weights: ResourceWeights = None,
    only: Only = None,
    tolerance: Annotated[float, typer.Option(metavar="NUMBER", help="Largest relative residual that the certificate accepts.")] = 1e-8,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Give up after this time, with exit status 3.")] = None,
    allow_gap: Annotated[
        float | None,
        typer.Option(
            metavar="GAP",
            help="With --integral and --time-limit: the best tasks found by then are an answer, with exit status 0, if their gap to the "
            "bound is at most this, from 0 to 1.",
        ),
    ] = None,
    changes: Changes = None,
    rules: Rules = None,
    as_json: Json = False,
    as_csv: Csv = False,
    everything: Everything = False,
    shown: Shown = None,
    sort: Sort = None,
    top: Top = None,
    output: Output = None,
    plot: Plot = None,
    plot_envy: PlotEnvy = None,
    plot_queues: PlotQueues = None,
    plot_path: PlotPath = None,
    plot_polytope: PlotPolytope = None,
) -> None:
    """Solve for the exact fair allocation of FILE and prove it.

    The certificate is recomputed from the answer. An answer that fails this check is an error: exit status 3.
    If a time limit ends the search for whole tasks, the best allocation found is shown with a bound on the optimum; exit status 3, too,
    unless --allow-gap accepts it.
    """
    form = choose_form(output, plot, as_json=as_json, as_csv=as_csv)
    choice = choose_users(form, shown, sort, top)
    for path, option in (
        (plot_envy, "--plot-envy"),
        (plot_queues, "--plot-queues"),
        (plot_path, "--plot-path"),
        (plot_polytope, "--plot-polytope"),
    ):
        check_picture(path, option)
    if plot_path is not None and solver != "trajectory" and words(notion)[0] != "psdsf":
        raise typer.BadParameter(
            "only two engines record how they reach their answer; add --solver trajectory, or use --notion psdsf", param_hint="--plot-path"
        )
    if plot_path is not None and solver is None and formulation is None and prefer is None:
        solver = "best-response"  # the other engine of psdsf, for large markets, records no sweeps
    if plot_polytope is not None and solver != "trajectory":
        raise typer.BadParameter("only one engine has a path to draw; add --solver trajectory", param_hint="--plot-polytope")
    if prefer == "utilization":
        warn_retired("--prefer utilization", new=f"--notion {notion}:prefer=utilization")
    started = time.perf_counter()
    instance = read_instance(file, changes, rules)
    choice.require(instance)
    if plot_queues is not None and not instance.queues:
        raise typer.BadParameter(f"{file} has no queues to draw; leave it out", param_hint="--plot-queues")
    seconds = {"read": time.perf_counter() - started}
    options: dict[str, Any] = {
        "formulation": formulation,
        "utility": None if utility is None else read_utility(utility, instance),
        "alpha": alpha,
        "beta": beta,
        "lam": lam,
        "prefer": prefer if prefer in (None, "utilization") else read_preference(Path(prefer), instance),
        "order": order,
        "seed": seed,
        "delay": delay,
    }
    if len(words(notion)) > 1:  # it brings its options
        (notion,) = with_rules([notion], guarantees, queue_share, counts(resource_weights, only))
    else:
        options |= {"guarantees": guarantees, "queue_share": queue_share, **counts(resource_weights, only)}
    asked = read_notion(notion)[1] if len(words(notion)) > 1 else notion
    options = {name: value for name, value in options.items() if value is not None}
    how: dict[str, Any] = {
        "solver": solver,
        "solver_options": read_solver_options(solver_options),
        "integral": integral,
        "exact": exact,
        "digits": digits,
        "tolerance": tolerance,
        "time_limit": time_limit,
    }
    try:
        allocation = work(
            f"solving {notion}",
            lambda: fo.solve(instance, asked, sharing=sharing, allow_gap=allow_gap, **how, **options),
        )
    except fo.NoSolution as error:  # at the time limit whole tasks may be known that are not proved to be the best
        chosen, shared = checked(instance, asked, sharing, options)
        found = best_found(instance, Optimum(chosen, **how), shared, error)
        if found is not None:
            present(found, seconds, form, everything, output, plot, choice)
        raise
    if plot_queues is not None:
        write_figure(lambda: allocation.plot(by="queue"), plot_queues)
    if plot_envy is not None:
        draw_envy(allocation, plot_envy)
    if plot_path is not None or plot_polytope is not None:
        _draw_path(allocation, plot_path, plot_polytope)
    present(allocation, seconds | allocation.seconds, form, everything, output, plot, choice)


def _draw_path(allocation: fo.Allocation, path: Path | None, polytope: Path | None) -> None:
    """Draw the path to the answer, and the path inside its polytope beside the DRF allocation."""
    trace = allocation.trace
    if trace is None:
        if allocation.tasks.any():
            raise fo.Unsupported(f'the engine "{allocation.solver}" does not record how it reaches its answer; leave --plot-path out')
        raise fo.InvalidInstance("no task fits on any server, so there is no path to draw; leave --plot-path and --plot-polytope out")
    if path is not None:
        write_figure(trace.plot, path)
    if polytope is not None:
        write_figure(lambda: trace.plot_polytope(_beside(allocation)), polytope)


def _beside(allocation: fo.Allocation) -> dict[str, FloatArray]:
    """Return the DRF tasks of the pairs of a path, by name; nothing if identical users were merged on the path."""
    instance, pairs = allocation.instance, allocation.trace.pairs
    if len(pairs) != instance.eligibility.sum():
        return {}
    # Under bbf, a user without a task limit asks for one task.
    tasks = np.where(np.isfinite(instance.tasks), instance.tasks, 1.0) if allocation.notion == "bbf" else instance.tasks
    drf = fo.solve(instance.replace(tasks=tasks), "drfh", sharing=allocation.sharing)  # type: ignore[arg-type]
    held = [drf.tasks[instance.users.index(user), instance.servers.index(server)] for user, server in pairs]
    return {"DRF" if instance.counts.sum() == 1 else "DRFH": np.array(held)}
