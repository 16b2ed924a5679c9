"""``fairopt reproduce``: published results beside our own."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairopt.commands import completion
from fairopt.commands.crews import Workers
from fairopt.commands.delivering import as_text, show, write_figure
from fairopt.commands.options import Json
from fairopt.commands.outputs import Written
from fairopt.commands.working import NOTHING, Bar, work
from fairopt.results import result
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Style, Table, words
from fairopt.validation import check_number_of_workers
from fairopt.wording import duration, figure, joined, plural, residual

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairopt.reproduction.reproducing import Experiment, Row

__all__ = ["reproduce"]

_VERDICTS: dict[str, tuple[str, Style, str]] = {  # of fairopt.reproduction.reproducing: word and style in a row, words in the summary
    "agrees": ("agrees", "good", "as published"),
    "known difference": ("known *", "warn", "different for a known reason"),
    "not printed": ("not printed", "soft", "not printed"),
    "not run": ("not run *", "warn", "not run"),
    "differs": ("DIFFERS *", "bad", "different UNEXPECTEDLY"),
}
_KINDS = {  # of fairopt.reproduction.trials.Row.kind
    "exact": "what a notion defines, certified",
    "greedy": "a schedule, one task at a time, which claims no optimum",
    "approximate": "a paper's approximation of a notion",
    "cluster": "jobs as clusters schedule them",
    "memory": "exact, with a memory",
    "decentralised": "each server acts on its own",
}

_FIGURES = {"drfh-trace": ("drfh-figure-5", "drfh-figure-6", "drfh-figure-7", "drfh-figure-8"), "psdsf-figure-6": ("psdsf-figure-6",)}


def reproduce(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", autocompletion=completion.trials, help="Experiments, such as bbf or pdrf-tables. Default: all."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer random trials (so wider intervals), and only a part of a trace.")] = False,
    workers: Workers = -1,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="FAIROPT_DATA",
            help="Folder of public traces, of which drfh-trace reads google2011/google2011_task_groups_0-19.6h.csv.gz. Default: a "
            "synthetic trace.",
        ),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also draw the figures of drfh-trace and psdsf-figure-6, as .png files in this folder."),
        Written(pictures=_FIGURES),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute the small examples of the papers in fractions. Without IDs, only these are computed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print published results beside our own.

    For example: fairopt reproduce drfh-trace --quick --plots figures; fairopt reproduce bbf --exact

    Exit status 0: every result agrees, or differs for a known reason that is printed. Exit status 1: one differs unexpectedly.
    """
    from fairopt.papers import PAPERS
    from fairopt.reproduction.reproducing import EXPERIMENTS, Verdict
    from fairopt.reproduction.reproducing import reproduce as run

    check_number_of_workers(workers)
    if plots is not None and not plots.is_dir():
        raise typer.BadParameter(f'there is no folder "{plots}"; make it first', param_hint="--plots")
    pictures: dict[str, Callable[[], Figure]] = {}
    started = time.perf_counter()
    number = sum(EXPERIMENTS[name].trials(quick) for name in ids or (PAPERS if exact else EXPERIMENTS) if name in EXPERIMENTS)
    bar = Bar("reproducing", number or None)
    to_run = run(
        ids or None,
        quick=quick,
        workers=workers,
        done=bar.advance,
        data=data,
        draw=pictures.__setitem__ if plots is not None else None,
        exact=exact,
        known=lambda row: bar.advance(0, f"{row.id}: {_VERDICTS[row.verdict.value][0].strip(' *')}"),
    )
    results: list[tuple[Experiment, list[Row]]] = []
    while (found := work("reproducing", lambda: next(to_run, None), bar, lost=NOTHING if as_json else _lost(results))) is not None:
        results.append(found)
        if not as_json:
            show(lambda width: _of_experiment(*results[-1]))
    if plots is not None:
        for name, figure in pictures.items():
            write_figure(figure, plots / f"{name}.png")
    seconds = time.perf_counter() - started
    unexpected = sum(row.verdict is Verdict.DIFFERS for _, rows in results for row in rows)
    if as_json:
        experiments = [
            {
                "name": experiment.id,
                "id": experiment.id,  # until 1.0
                "title": experiment.title,
                "source": experiment.source,
                "results": [{"name": row.id} | dataclasses.asdict(row) | {"verdict": row.verdict.value} for row in rows],
            }
            for experiment, rows in results
        ]
        question = {"experiments": ids or [], "quick": quick, "exact": exact, "data": data}
        answer = {
            "quick": quick,  # until 1.0
            "unexpected": unexpected,
            "experiments": experiments,
            "time_s": seconds,
            "seconds": seconds,  # until 1.0
        }
        typer.echo(as_text(result("reproduce", question, {}, answer)), nl=False)
    else:
        show(lambda width: _of_all(results, seconds))
    if unexpected:
        raise typer.Exit(1)


def _lost(results: Sequence[tuple[Experiment, list[Row]]]) -> str:
    """Return what to say where Ctrl-C ends an experiment."""
    names = joined([experiment.id for experiment, _ in results], 3)
    return f"the results of {names} are complete; the other experiments have none" if results else NOTHING


def _of_experiment(experiment: Experiment, rows: Sequence[Row]) -> Iterator[Block]:
    """Yield the table of an experiment, and the reasons of differences."""
    yield Note(f" [{experiment.id}]", experiment.title)
    yield Note(experiment.source, style="soft")
    verdicts = [_VERDICTS[row.verdict.value] for row in rows]
    yield Table.of(
        words("", (row.what for row in rows)),
        words("published", (() if row.published is None else _nested(row.published) for row in rows)),
        words("ours", ((*_nested(row.ours, 4), f"± {figure(row.tolerance, 2)}") if row.mean else _nested(row.ours) for row in rows)),
        words("kind", (row.kind for row in rows)),
        words("", (word for word, _, _ in verdicts), styles=tuple(style for _, style, _ in verdicts)),
    )
    for note in dict.fromkeys(row.note for row in rows if row.note):
        yield f"* {note}"
    yield GAP


def _of_all(results: Sequence[tuple[Experiment, list[Row]]], seconds: float) -> Iterator[Block]:
    """Yield what the results claim, and a summary."""
    if any(row.mean for _, rows in results for row in rows):
        yield "±: 99.9 % confidence interval of the difference from the published mean, over random trials."
    yield from _claims([row for _, rows in results for row in rows])
    found = [row.verdict.value for _, rows in results for row in rows]
    parts = [f"{found.count(verdict)} {meaning}" for verdict, (_, _, meaning) in _VERDICTS.items() if verdict in found]
    yield f"{plural(len(found), 'result')}: {', '.join(parts)}; {duration(seconds)}"


def _claims(rows: Sequence[Row]) -> Iterator[Block]:
    """Yield what each kind of result claims, and the largest relative error of the certificates."""
    kinds = {row.kind for row in rows}
    meant = ". ".join(f"{kind}: {means}" for kind, means in _KINDS.items() if kind in kinds)
    residuals = [row.residual for row in rows if row.residual is not None]
    worst = f". Largest relative error of {plural(len(residuals), 'certificate')}: {residual(max(residuals))}" if residuals else ""
    if meant:
        yield f"{meant}{worst}."


def _nested(values: list[Any], digits: int = 6) -> tuple[str, ...]:
    """Write numbers in a line, and rows of them in lines."""
    if values and isinstance(values[0], list):
        return tuple(line for part in values for line in _nested(part, digits))
    return (", ".join(value if isinstance(value, str) else figure(value, digits) for value in values),)
