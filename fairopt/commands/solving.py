"""``fairopt solve``: the exact fair allocation of a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import fairopt as fo
from fairopt.allocation import Optimum
from fairopt.commands import completion
from fairopt.commands.delivering import draw_envy, present, write_figure
from fairopt.commands.forms import choose_form
from fairopt.commands.options import Changes, Csv, Exact, File, Json, Output, Rules, Sharing, ShownUsers, read_instance
from fairopt.commands.retired import warn_retired
from fairopt.commands.shares import Shares
from fairopt.commands.solve_options import HowSolved, OfNotions, Pictures
from fairopt.commands.working import work
from fairopt.instance import FloatArray
from fairopt.registry import words
from fairopt.solving import best_found, checked
from fairopt.specs import read_notion

__all__ = ["solve"]


def solve(
    file: File,
    notion: Annotated[
        str, typer.Option(metavar="ID", help="Notion of fairness. See: fairopt notions.", autocompletion=completion.notions)
    ] = "drfh",
    sharing: Sharing = None,
    integral: Annotated[bool, typer.Option("--integral", help="Solve for whole tasks, each on one server.")] = False,
    exact: Exact = False,
    changes: Changes = None,
    rules: Rules = None,
    of_notions: OfNotions = OfNotions(),
    shares: Shares = Shares(),
    how: HowSolved = HowSolved(),
    as_json: Json = False,
    as_csv: Csv = False,
    users_shown: ShownUsers = ShownUsers(),
    output: Output = None,
    pictures: Pictures = Pictures(),
) -> None:
    """Solve for the exact fair allocation of FILE and prove it.

    The certificate is recomputed from the answer. An answer that fails this check is an error: exit status 3.
    If a time limit ends the search for whole tasks, the best allocation found is shown with a bound on the optimum; exit status 3, too,
    unless --allow-gap accepts it.
    """
    form = choose_form(output, pictures.plot, as_json=as_json, as_csv=as_csv)
    choice = users_shown.choice(form)
    name, *with_options = words(notion)
    pictures.check(name, how.solver)
    if of_notions.prefer == "utilization":
        warn_retired("--prefer utilization", new=f"--notion {notion}:prefer=utilization")
    started = time.perf_counter()
    instance = read_instance(file, changes, rules)
    choice.require(instance)
    if pictures.plot_queues is not None and not instance.queues:
        raise typer.BadParameter(f"{file} has no queues to draw; leave it out", param_hint="--plot-queues")
    seconds = {"read": time.perf_counter() - started}
    options = of_notions.read(instance)
    asked: Any = notion
    if with_options:  # a notion that brings its options
        if options:
            raise typer.BadParameter(f"--notion {notion} has options of its own; write this one there, too", param_hint=f"--{min(options)}")
        notion = shares.of(notion)
        asked = read_notion(notion)[1]
    else:
        options |= shares.rules | shares.counted
    question = how.asked() | {"integral": integral, "exact": exact}
    if pictures.plot_path is not None and how.solver is None and not {"formulation", "prefer"} & options.keys():
        question["solver"] = "best-response"  # the other engine of psdsf, for large markets, records no sweeps
    try:
        allocation = work(
            f"solving {notion}", lambda: fo.solve(instance, asked, sharing=sharing, allow_gap=how.allow_gap, **question, **options)
        )
    except fo.NoSolution as error:  # at the time limit whole tasks may be known that are not proved to be the best
        chosen, shared = checked(instance, asked, sharing, options)
        found = best_found(instance, Optimum(chosen, **question), shared, error)
        if found is not None:
            present(found, seconds, form, users_shown.everything, output, pictures.plot, choice)
        raise
    _draw(allocation, pictures)
    present(allocation, seconds | allocation.seconds, form, users_shown.everything, output, pictures.plot, choice)


def _draw(allocation: fo.Allocation, pictures: Pictures) -> None:
    """Draw what is asked for beside the allocation itself."""
    if pictures.plot_queues is not None:
        write_figure(lambda: allocation.plot(by="queue"), pictures.plot_queues)
    if pictures.plot_envy is not None:
        draw_envy(allocation, pictures.plot_envy)
    if pictures.plot_path is not None or pictures.plot_polytope is not None:
        _draw_path(allocation, pictures.plot_path, pictures.plot_polytope)


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
