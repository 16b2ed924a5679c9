"""``fairopt solve``: the exact fair allocation of a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

import fairopt as fo
from fairopt.commands.console import check_output, check_picture, present, work
from fairopt.commands.options import Csv, Everything, File, Json, Output, Plot, PlotPath, Sharing, read_preference, read_utility

__all__ = ["solve"]

_OF_NOTIONS = "Options of some notions"


def solve(
    file: File,
    notion: Annotated[
        str, typer.Option(metavar="ID", help="Notion of fairness; see: fairopt notions.", autocompletion=lambda: list(fo.NOTIONS))
    ] = "drfh",
    solver: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Engine; see: fairopt solvers.", autocompletion=lambda: list(fo.SOLVERS)),
    ] = None,
    sharing: Sharing = None,
    integral: Annotated[bool, typer.Option("--integral", help="Whole tasks on single servers.")] = False,
    formulation: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Of drfh: leximin (default), or equalize, one LP for one equal share. Of psdsf: equilibrium (default), or market, "
            "the convex program of time division.",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    utility: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Of max-min, proportional: worth of a task; a column user, then one a server.",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", help="Of proportional: 0 is the largest total, 1 (default) proportional.", rich_help_panel=_OF_NOTIONS
        ),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Of fds, gfj: how much the poor count, > 0 (default 2).", rich_help_panel=_OF_NOTIONS),
    ] = None,
    lam: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Of fds, gfj: lambda, how much the total counts (default 2 (1 - beta) / beta).",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    prefer: Annotated[
        str | None,
        typer.Option(
            metavar="utilization|CSV",
            help="Of bbf and psdsf: choose among all fair allocations; columns user, weight.",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Of psdsf: how servers take turns: sequential (default), random or asynchronous.",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Of psdsf: seed of the last two orders (default 0).", rich_help_panel=_OF_NOTIONS)
    ] = None,
    delay: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Of psdsf, asynchronous: a decision is carried out up to so many actions of others later (default 0).",
            rich_help_panel=_OF_NOTIONS,
        ),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Largest relative residual of the certificate that is accepted.")] = 1e-8,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Give up after this time, with exit status 3.")] = None,
    as_json: Json = False,
    as_csv: Csv = False,
    everything: Everything = False,
    output: Output = None,
    plot: Plot = None,
    plot_path: PlotPath = None,
) -> None:
    """Solve for the exact fair allocation of FILE and prove it.

    The certificate that is printed is recomputed from the answer: an answer that fails it is an error, exit status 3.
    """
    check_output(as_json, as_csv, output, plot)
    check_picture(plot_path, "--plot-path")
    if plot_path is not None and solver != "trajectory":
        raise typer.BadParameter("only one engine follows a path; add --solver trajectory", param_hint="--plot-path")
    started = time.perf_counter()
    instance = work(f"reading {file}", lambda: fo.load(file))
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
    allocation = work(
        f"solving {notion}",
        lambda: fo.solve(
            instance,
            notion,
            solver=solver,
            integral=integral,
            sharing=sharing,  # type: ignore[arg-type]  # solve says what there is
            tolerance=tolerance,
            time_limit=time_limit,
            **{name: value for name, value in options.items() if value is not None},
        ),
    )
    if plot_path is not None:
        from fairopt.plots import save_figure

        if allocation.trace is None:
            raise fo.InvalidInstance(f"{file} leaves no room for any task, so that there is no path to draw; leave --plot-path out")
        save_figure(allocation.trace.plot(), plot_path)
    present(allocation, seconds | allocation.seconds, as_json, as_csv, everything, output, plot)
