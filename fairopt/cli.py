"""The command line: ``fairopt solve cluster.yaml --notion drfh``.

Exit status: 0, or 1 where a published result is not reproduced and nobody knows why, 2 for bad input (the file, an option, an engine that
is not installed), 3 where there is no solution to give, 130 after Ctrl-C. Messages and progress go to stderr, so that what a command
prints on stdout can be piped.
"""

from __future__ import annotations

import dataclasses
import io
import os
import sys
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from typer.core import TyperGroup

import fairopt as fo
from fairopt import tables
from fairopt.comparison_table import print_comparison
from fairopt.console import as_text, check_output, check_picture, deliver, present, say, work
from fairopt.instance import FloatArray

__all__ = ["app", "main"]

_INTERRUPTED = 130
_OF_NOTIONS = "Options of some notions"


class _Commands(TyperGroup):
    """Commands whose errors are one message on stderr and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except fo.FairoptError as error:
            say("error", str(error))
            raise typer.Exit(3 if isinstance(error, fo.NoSolution | fo.CertificateError) else 2) from None
        except BrokenPipeError:  # the reader of a pipe has seen enough
            raise
        except OSError as error:
            say("error", ": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Commands,
    name="fairopt",
    help="Exact fair allocations of several resources among the users of a cluster.",
    epilog="Example: fairopt solve examples/google-cluster.yaml --notion drfh",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A .yaml or .json file, or a folder with servers.csv and users.csv.")]
Sharing = Annotated[str | None, typer.Option(metavar="rdm|tdm", help="Divide resources, or each server's time.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each user.")]
Everything = Annotated[bool, typer.Option("--all", help="Show every user and server, however many there are.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there instead of stdout.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the allocation: .svg, .png or .pdf.")]
PlotPath = Annotated[Path | None, typer.Option(metavar="FILE", help="With --solver trajectory: also draw the path to the allocation.")]


def main() -> None:
    """Run the command line; the console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a label that the terminal's encoding lacks is no reason to stop
    try:
        app()
    except SystemExit as leaving:
        if leaving.code == _INTERRUPTED:
            sys.stdout.flush()
            os._exit(_INTERRUPTED)  # an engine may still be computing in its thread, and cannot be asked to stop
        raise


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairopt {fo.__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


# Commands ------------------------------------------------------------------------------------------------------------------------


@app.command(epilog="Example: fairopt solve examples/psdsf-figure-1.yaml --notion tsf --plot tsf.svg")
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
        "utility": None if utility is None else _read_utility(utility, instance),
        "alpha": alpha,
        "prefer": prefer if prefer in (None, "utilization") else _read_preference(Path(prefer), instance),
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


@app.command(epilog="Example: fairopt schedule examples/kesidis.yaml --criterion psdsf --placement joint")
def schedule(
    file: File,
    criterion: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="Whose turn it is: a notion that equalises a share, or rpsdsf; see: fairopt notions.",
            autocompletion=lambda: [*fo.NOTIONS, *fo.CRITERIA],
        ),
    ] = "drfh",
    placement: Annotated[
        str, typer.Option(metavar="ID", help="Which server; see: fairopt placements.", autocompletion=lambda: list(fo.PLACEMENTS))
    ] = "first-fit",
    metric: Annotated[str | None, typer.Option(metavar="l1|l2|cosine|dot|tightest", help="Of best-fit; l1 is the default.")] = None,
    slots: Annotated[int | None, typer.Option(metavar="NUMBER", help="Of slots: how many the largest server has (14).")] = None,
    utility: Annotated[
        Path | None, typer.Option(metavar="CSV", help="Of max-min: worth of a task; a column user, then one a server.")
    ] = None,
    ties: Annotated[
        str, typer.Option(metavar="index|largest-demand|random", help="Who is first of several with the smallest share.")
    ] = "index",
    seed: Annotated[int, typer.Option(help="Of random ties and placements.")] = 0,
    stop: Annotated[
        str, typer.Option(metavar="exhausted|first-block", help="Stop when nothing fits, or when the task of the lowest user does not.")
    ] = "exhausted",
    sharing: Sharing = None,
    as_json: Json = False,
    as_csv: Csv = False,
    everything: Everything = False,
    output: Output = None,
    plot: Plot = None,
) -> None:
    """Fill the servers of FILE with whole tasks, one at a time, as a scheduler does.

    Greedy: what comes of it is feasible, and is not the optimum that fairopt solve finds.
    """
    check_output(as_json, as_csv, output, plot)
    started = time.perf_counter()
    instance = work(f"reading {file}", lambda: fo.load(file))
    seconds = {"read": time.perf_counter() - started}
    options: dict[str, Any] = {"metric": metric, "slots": slots, "utility": None if utility is None else _read_utility(utility, instance)}
    allocation = work(
        f"filling by {criterion}, {placement}",
        lambda: fo.schedule(
            instance,
            criterion,
            placement=placement,
            ties=ties,  # type: ignore[arg-type]  # schedule says what there is
            seed=seed,
            stop=stop,  # type: ignore[arg-type]
            sharing=sharing,  # type: ignore[arg-type]
            **{name: value for name, value in options.items() if value is not None},
        ),
    )
    present(allocation, seconds | allocation.seconds, as_json, as_csv, everything, output, plot)


@app.command(epilog="Example: fairopt compare examples/kesidis.yaml --notions drfh,psdsf --schedules drfh:best-fit,psdsf:joint --integral")
def compare(
    file: File,
    notions: Annotated[
        str, typer.Option(metavar="ID,...", help="Exact allocations; options as in proportional:alpha=2. See: fairopt notions.")
    ] = "drfh",
    schedules: Annotated[
        str,
        typer.Option(
            metavar="ID:ID,...", help="Greedy ones, criterion:placement; options as in drfh:best-fit:metric=l2. See: fairopt placements."
        ),
    ] = "",
    allocation: Annotated[
        list[Path] | None,
        typer.Option(metavar="CSV", help="Your own: columns user, server, tasks, or user and one a server. Several times, if you like."),
    ] = None,
    integral: Annotated[bool, typer.Option("--integral", help="Also the best allocation of whole tasks, and regret against that.")] = False,
    reference: Annotated[
        str | None, typer.Option(metavar="ID", help="Notion that all regrets are against; default: each schedule's own.")
    ] = None,
    sharing: Sharing = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Of each exact allocation.")] = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a row for each allocation.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there instead of stdout: CSV or JSON if so named.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw them: .svg, .png or .pdf.")] = None,
) -> None:
    """Compare exact allocations of FILE, schedules and your own in one table.

    A row that cannot be computed says why; the exit status is 3 where none can.
    """
    suffix = "" if output is None else output.suffix.lower()
    as_json, as_csv = as_json or (suffix == ".json" and not as_csv), as_csv or (suffix == ".csv" and not as_json)
    check_output(as_json, as_csv, output, plot)
    instance = work(f"reading {file}", lambda: fo.load(file))
    wanted, greedy = ([part.strip() for part in text.split(",") if part.strip()] for text in (notions, schedules))
    own: dict[str, Path] = {}
    for path in allocation or []:
        own[path.stem if path.stem not in own else str(path)] = path
    number = len(wanted) * (1 + integral) + len(greedy) + len(own)
    if not number:
        raise typer.BadParameter("there is nothing to compare; give --notions, --schedules or --allocation", param_hint="--notions")
    progress = Progress(console=Console(stderr=True), transient=True)
    rows = progress.add_task("allocations", total=number)
    comparison = work(
        "comparing",
        lambda: fo.compare(
            instance,
            notions=wanted,
            schedules=greedy,
            allocations=own,
            integral=integral,
            sharing=sharing,  # type: ignore[arg-type]  # compare says what there is
            time_limit=time_limit,
            reference=reference,
            done=lambda name: progress.update(rows, advance=1),
        ),
        progress,
    )
    if plot is not None:
        from fairopt.plots import save_figure

        save_figure(comparison.plot(), plot)
    if as_json:
        deliver(as_text(comparison.to_dict()), output)
    elif as_csv:
        deliver(comparison.to_frame().to_csv(), output)
    elif output is None:
        print_comparison(Console(highlight=False), comparison)
    else:
        page = Console(file=io.StringIO(), width=100, highlight=False)
        print_comparison(page, comparison)
        deliver(page.file.getvalue(), output)  # type: ignore[attr-defined]
    if all(row.allocation is None for row in comparison):
        raise typer.Exit(3)


@app.command(epilog="Example: fairopt placements")
def placements(as_json: Json = False) -> None:
    """List the placements of schedules, and the criteria that are no notions."""
    entries = {"placement": fo.PLACEMENTS, "criterion": fo.CRITERIA}
    if as_json:
        listed = [
            {"id": name, "kind": kind, "title": getattr(entry, "title", ""), "source": getattr(entry, "source", "")}
            for kind, registry in entries.items()
            for name, entry in registry.items()  # type: ignore[attr-defined]
        ]
        typer.echo(as_text(listed), nl=False)
    else:
        tables.print_placements(Console(highlight=False))


@app.command(epilog="Example: fairopt notions --json")
def notions(as_json: Json = False) -> None:
    """List the notions of fairness: what each is, what theory promises of it, where it comes from."""
    if as_json:
        typer.echo(
            as_text(
                [
                    {
                        "id": name,
                        "title": notion.title,
                        "satisfies": {promise.value: source for promise, source in notion.satisfies.items()},
                        "source": notion.source,
                    }
                    for name, notion in fo.NOTIONS.items()
                ]
            ),
            nl=False,
        )
    else:
        tables.print_notions(Console(highlight=False))


@app.command(epilog="Example: fairopt solvers")
def solvers(as_json: Json = False) -> None:
    """List the engines: what each can solve, and how to install it if it is not there."""
    if as_json:
        typer.echo(
            as_text(
                [
                    {
                        "id": name,
                        "title": engine.title,
                        "features": sorted(feature.value for feature in engine.features),
                        "installed": engine.available(),
                        "install": engine.requirement,
                    }
                    for name, engine in fo.SOLVERS.items()
                ]
            ),
            nl=False,
        )
    else:
        tables.print_solvers(Console(highlight=False))


@app.command(epilog="Example: fairopt reproduce bbf pdrf-tables --quick")
def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Experiments, such as bbf or pdrf-tables; default: all.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer random trials: wider intervals.")] = False,
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers for random trials; the answer is the same with any number.")] = -1,
    as_json: Json = False,
) -> None:
    """Print what the papers publish beside what comes out here.

    The exit status is 0 also where a number differs for a reason that is known and printed, and 1 where one differs unexpectedly.
    """
    from fairopt.reproduce import EXPERIMENTS, Verdict
    from fairopt.reproduce import reproduce as run

    if jobs == 0 or jobs < -1:
        raise typer.BadParameter("give a number of workers, or -1 for one on each core", param_hint="--jobs")
    started = time.perf_counter()
    number = sum(EXPERIMENTS[name].trials(quick) for name in ids or EXPERIMENTS if name in EXPERIMENTS)
    progress = Progress(console=Console(stderr=True), transient=True)
    trials = progress.add_task("random trials", total=number)
    results = work(
        "reproducing",
        lambda: list(run(ids or None, quick=quick, jobs=jobs, done=lambda more: progress.advance(trials, more))),
        progress if number else None,
    )
    seconds = time.perf_counter() - started
    unexpected = sum(row.verdict is Verdict.DIFFERS for _, rows in results for row in rows)
    if as_json:
        experiments = [
            {
                "id": experiment.id,
                "title": experiment.title,
                "source": experiment.source,
                "results": [dataclasses.asdict(row) | {"verdict": row.verdict.value} for row in rows],
            }
            for experiment, rows in results
        ]
        typer.echo(as_text({"quick": quick, "unexpected": unexpected, "experiments": experiments, "seconds": seconds}), nl=False)
    else:
        tables.print_reproduction(Console(highlight=False), results, seconds)
    if unexpected:
        raise typer.Exit(1)


@app.command(epilog="Example: fairopt worst-case drfh:first-fit --servers 2 --users 2 --tries 200 -o worst.yaml")
def worst_case(
    schedule: Annotated[
        str,
        typer.Argument(metavar="SCHEDULE", help="criterion:placement, such as drfh:best-fit, or with options drfh:best-fit:metric=cosine."),
    ],
    notion: Annotated[
        str | None,
        typer.Option(metavar="ID", help="What it is measured against; default: its criterion.", autocompletion=lambda: list(fo.NOTIONS)),
    ] = None,
    users: Annotated[int, typer.Option(metavar="N", help="Users of an instance, before shrinking.")] = 3,
    servers: Annotated[int, typer.Option(metavar="N", help="Servers.")] = 2,
    resources: Annotated[int, typer.Option(metavar="N", help="Resources.")] = 2,
    capacities: Annotated[tuple[int, int], typer.Option(metavar="LOW HIGH", help="Whole numbers that are drawn.")] = (8, 16),
    demands: Annotated[tuple[int, int], typer.Option(metavar="LOW HIGH", help="The same of demands.")] = (0, 4),
    vary: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Also weights, constraints, counts, tasks; one an option.")] = None,
    measure: Annotated[str, typer.Option(metavar="WORD", help="worst, level, leximin, largest, goal, condition or total.")] = "worst",
    divisible: Annotated[bool, typer.Option("--divisible", help="Against the optimum of divisible tasks, not of whole ones.")] = False,
    keep: Annotated[float, typer.Option(metavar="PART", help="Shrink while this part of the regret is left.")] = 0.9,
    tries: Annotated[int, typer.Option(metavar="N", help="Instances to try.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the search; the answer is the same for a seed, with any number of workers.")] = 0,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="End the search after this time.")] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Worker processes; -1 for one on each core.")] = 1,
    as_json: Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Also write the instance: .yaml, .json or a folder.")
    ] = None,
) -> None:
    """Search small instances for the one on which a schedule is worst, and make it smaller still.

    Ctrl-C ends the search with the worst so far; twice, at once.
    """
    check_output(as_json, False, output, None)
    if output is not None and output.suffix.lower() not in ("", ".yaml", ".yml", ".json"):
        raise typer.BadParameter(f"{output.name}: give a name that ends in .yaml or .json, or a folder", param_hint="--output")
    started = time.perf_counter()
    progress = Progress(console=Console(stderr=True), transient=True)
    bar = progress.add_task("largest regret 0", total=tries)
    ended = threading.Event()
    worst = work(
        "searching",
        lambda: fo.worst_case(
            schedule,
            notion,
            users=users,
            servers=servers,
            resources=resources,
            capacities=capacities,
            demands=demands,
            vary=vary or (),
            measure=measure,
            integral=False if divisible else None,
            keep=keep,
            tries=tries,
            seed=seed,
            time_limit=time_limit,
            jobs=jobs,
            done=lambda more, value: progress.update(bar, advance=more, description=f"largest regret {value:.3g}"),
            stop=ended.is_set,
        ),
        progress,
        ended,
    )
    seconds = time.perf_counter() - started
    if output is not None:
        fo.save(worst.instance, output)
    if as_json:
        typer.echo(as_text(worst.to_dict() | {"seconds": seconds}), nl=False)
    else:
        tables.print_worst_case(Console(highlight=False), worst, seconds)


@app.command(epilog="Example: fairopt schema > cluster.schema.json")
def schema() -> None:
    """Print the JSON Schema of instance files, for editors and validators."""
    from fairopt.formats import schema as describe

    typer.echo(as_text(describe()), nl=False)


# Files of options ----------------------------------------------------------------------------------------------------------------


def _read_utility(path: Path, instance: fo.Instance) -> FloatArray:
    """Read u[n,i], (users, servers): a column "user", then one for each server. Labels must match exactly, in any order."""
    from fairopt.formats.cells import read_table

    rows = read_table(path, "user").aligned(instance.users, instance.servers)
    return np.array([[row[server] for server in instance.servers] for row in rows])


def _read_preference(path: Path, instance: fo.Instance) -> FloatArray:
    """Read a weight on each user's tasks, (users,): columns user and weight."""
    from fairopt.formats.cells import read_table

    return np.array([row["weight"] for row in read_table(path, "user").aligned(instance.users, ["weight"])])
