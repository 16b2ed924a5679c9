"""The options of ``fairopt solve`` by purpose: what some notions take, how the program is solved, and pictures of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.forms import check_picture
from fairopt.commands.options import Plot, PlotEnvy, read_preference, read_utility
from fairopt.commands.outputs import Written
from fairopt.commands.solver_options import SolverOptions, read_solver_options

__all__ = ["HowSolved", "OfNotions", "Pictures"]


@dataclass(frozen=True)
class OfNotions:
    """What some notions take, beside the notion; also written in its name, as in ``--notion proportional:alpha=2``."""

    panel: ClassVar[str] = "Options of some notions"

    formulation: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="For drfh: leximin (default), or equalize (one LP that gives everybody the same share). For psdsf: equilibrium (default), "
            "or market (the convex program of time division).",
        ),
    ] = None
    utility: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For max-min, proportional: value of a task on each server: a column user, then a column for each server.",
        ),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="For proportional: 0 maximises the total, 1 (default) is proportional fairness, larger values favour small shares more.",
        ),
    ] = None
    beta: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="For fds, gfj: aversion to inequality, > 0. Default: 2."),
    ] = None
    lam: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="For fds, gfj: lambda, the weight of the total. Default: 2 (1 - beta) / beta.",
        ),
    ] = None
    prefer: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="For bbf, psdsf: of all fair allocations, choose the one with the largest weighted number of tasks, with the weights of "
            "this table (columns user, weight). Of the highest utilization: --notion bbf:prefer=utilization.",
        ),
    ] = None
    order: Annotated[
        Literal["sequential", "random", "asynchronous"] | None,
        typer.Option(help="For psdsf: how servers take turns. Default: sequential."),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="For psdsf: seed of the orders random and asynchronous. Default: 0."),
    ] = None
    delay: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="For psdsf, asynchronous: act on information up to N steps old. Default: 0.",
        ),
    ] = None

    def read(self, instance: fo.Instance) -> dict[str, Any]:
        """Return the options that were given, with what their files say, as arguments of `fairopt.solve`."""
        found = vars(self) | {
            "utility": None if self.utility is None else read_utility(self.utility, instance),
            "prefer": self.prefer if self.prefer in (None, "utilization") else read_preference(Path(self.prefer), instance),
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class HowSolved:
    """By which engine, how exactly, and for how long."""

    solver: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Engine. See: fairopt solvers.", autocompletion=completion.solvers),
    ] = None
    solver_options: SolverOptions = None
    digits: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --exact, for notions whose optimum is irrational (proportional, bbf, fds, gfj): number of digits. Default: 30.",
        ),
    ] = None
    tolerance: Annotated[float, typer.Option(metavar="NUMBER", help="Largest relative residual that the certificate accepts.")] = 1e-8
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Give up after this time, with exit status 3.")] = None
    allow_gap: Annotated[
        float | None,
        typer.Option(
            metavar="GAP",
            help="With --integral and --time-limit: the best tasks found by then are an answer, with exit status 0, if their gap to the "
            "bound is at most this, from 0 to 1.",
        ),
    ] = None

    def asked(self) -> dict[str, Any]:
        """Return what `fairopt.solve` and `fairopt.allocation.Optimum` both take; ``allow_gap`` is for the former alone."""
        found = vars(self) | {"solver_options": read_solver_options(self.solver_options)}
        return {name: value for name, value in found.items() if name != "allow_gap"}


@dataclass(frozen=True)
class Pictures:
    """Files of pictures of the answer, and of the way to it."""

    plot: Plot = None
    plot_envy: PlotEnvy = None
    plot_queues: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw what each queue holds, with its guarantee and its limit."), Written()
    ] = None
    plot_path: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw how the answer was reached: the path of --solver trajectory, or the sweeps of psdsf."),
        Written(),
    ] = None
    plot_polytope: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --solver trajectory and two or three users: also draw the path inside the feasible polytope."
        ),
        Written(),
    ] = None

    def check(self, notion: str, solver: str | None) -> None:
        """Refuse pictures of unknown kinds, and pictures of a way that the engine does not record; ``notion`` is without options."""
        for word, path in vars(self).items():
            if word != "plot":  # checked with the form of the answer
                check_picture(path, f"--{word.replace('_', '-')}")
        if self.plot_path is not None and solver != "trajectory" and notion != "psdsf":
            raise typer.BadParameter(
                "only two engines record how they reach their answer; add --solver trajectory, or use --notion psdsf",
                param_hint="--plot-path",
            )
        if self.plot_polytope is not None and solver != "trajectory":
            raise typer.BadParameter("only one engine has a path to draw; add --solver trajectory", param_hint="--plot-polytope")
