"""Which engine is the fastest: ``python benchmarks/choices.py``; every engine that can, on a grid of goals, shapes and sizes.

    python benchmarks/choices.py               about 15 minutes of processor time; goes on where a run was stopped
    python benchmarks/choices.py --anew        forgets what was measured before
    python benchmarks/choices.py --goal total  these goals anew; what is there of the others stays

The grid is `choice_cells.grid`. Every solve is `fairopt.solve` with an engine that is named: what it takes to check, formulate, solve,
polish and certify. It runs in a process of its own with one thread, which has loaded all packages and solved a small instance of the same
goal before the clock starts. Short ones are repeated, in rounds in which the engines take turns; the least processor time counts.

The engines that fairopt would take come first, in its order. Any other is stopped at a multiple of the least time so far: that it is not
the fastest is known by then. An answer that fails its certificate counts as refused, with the time that it took.

Rows go to choices.csv as they come. The default's time is the sum over the engines that it tries, up to the first that answers: it follows
from the rows and from what `fairopt.solvers.choosing` says today. Beside the rows stand the page and the picture, which are written from
them.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from choice_cells import GOALS, Cell, grid
from choice_pages import render
from choice_rows import ANSWERED, REFUSED, STOPPED, Measured, by_cell, fastest, read, save
from measuring import machine
from threadpoolctl import threadpool_limits

import fairopt as fo
from fairopt.errors import FairoptError, Unsupported
from fairopt.solvers import SOLVERS

RESULTS = Path(__file__).resolve().parent / "results"
CANNOT, STARTED = "cannot", "started"  # beside the outcomes of a row
_LIMIT = 20.0  # seconds of processor time of a solve
_LEAST_LIMIT = 0.1
_TIMES = 2.0  # the least time so far, after which another engine is stopped
_STOPPED = 3  # cells of a goal on which an engine was stopped, after which it sits out the larger ones
_ROUNDS, _REPEATS = 2, 3  # of short solves, and repeats in each round
_SHORT = 0.1  # seconds: what takes longer is measured once
_WATCHED = 0.02  # seconds between two looks at the clock of a process


# Measurements -----------------------------------------------------------------------------------------------------------------------


def too_slow(rows: Iterable[Measured], cell: Cell) -> set[str]:
    """Return the engines that were stopped on several cells of this goal that are no larger, and were the fastest on none."""
    smaller = [row for row in rows if row.cell.goal == cell.goal and row.cell.pairs <= cell.pairs]
    stopped = Counter(row.engine for row in smaller if row.outcome == STOPPED)
    won = {best.engine for found in by_cell(smaller).values() if (best := fastest(found)) is not None}
    return {engine for engine, times in stopped.items() if times >= _STOPPED and engine not in won}


def measure(cell: Cell, out: Collection[str] = (), most: float = _LIMIT) -> list[Measured]:
    """Let every engine that can solve the cell, in turns; those that are ``out`` are left out if fairopt would not take them first."""
    first, *others = _engines(cell)
    order = [first, *(name for name in others if name not in out)]
    found: dict[str, Measured] = {}
    for again in range(_ROUNDS):
        for name in order:
            least = min((row.seconds for row in found.values() if row.outcome == ANSWERED), default=most)
            if again and (name not in found or found[name].seconds > min(_SHORT, _TIMES * least)):
                continue
            outcome, seconds = _in_own_process(cell, name, min(most, max(_LEAST_LIMIT, _TIMES * least)))
            if outcome != CANNOT and (name not in found or seconds < found[name].seconds):
                found[name] = Measured(cell, name, outcome, seconds)
    return list(found.values())


def _engines(cell: Cell) -> list[str]:
    """Return the engines that can solve the cell, those that fairopt takes first."""
    receiver, process = _started(_send_engines, cell)
    names: list[str] = receiver.recv()
    process.join()
    return names


def _send_engines(cell: Cell, sender: Connection) -> None:
    order, program = cell.engines(), cell.program()
    sender.send(
        order + [name for name, engine in SOLVERS.items() if not engine.lacks(program) and engine.available() and name not in order]
    )


def _started(function: Callable[..., None], *arguments: Any) -> tuple[Connection, BaseProcess]:
    """Let a function send from a process of its own. The packages are loaded there, and no solver has started a thread here."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=function, args=(*arguments, sender))
    process.start()
    sender.close()
    return receiver, process


def _in_own_process(cell: Cell, engine: str, limit: float) -> tuple[str, float]:
    """Return the outcome and the least processor time of one engine, which is stopped at the limit.

    A limit that the system keeps would make the clock of the process coarse.
    """
    receiver, process = _started(_solve, cell, engine)
    outcome, seconds, end = STOPPED, limit, float("inf")
    try:
        while _spent(process.pid) < end:
            if receiver.poll(_WATCHED):
                outcome, seconds = receiver.recv()
                if outcome != STARTED:
                    break
                outcome, seconds, end = STOPPED, limit, seconds + limit
    except EOFError:  # it ended without an answer, such as for want of memory
        pass
    process.kill()
    process.join()
    return outcome, seconds


def _spent(process: int | None) -> float:
    """Return the processor time of a process, seconds."""
    after_name = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


def _solve(cell: Cell, engine: str, sender: Connection) -> None:
    """Send the outcome of an engine, with its least time: of all solves up to an answer, and of repeats where these are short."""
    notion, options = GOALS[cell.goal]
    with contextlib.suppress(FairoptError):
        fo.solve(Cell(cell.goal, 3, min(cell.servers, 2), 2).instance(), notion, solver=engine, **options)
    instance = cell.instance()
    sender.send((STARTED, time.process_time()))
    outcome, times = ANSWERED, []
    while not times or (len(times) < _REPEATS and sum(times) < _SHORT):
        before = time.process_time()
        try:
            fo.solve(instance, notion, solver=engine, **options)
        except Unsupported:
            outcome = CANNOT
        except FairoptError:
            outcome = REFUSED
        times.append(time.process_time() - before)
    sender.send((outcome, min(times)))


def _load() -> None:
    """Import what engines import, and take one thread for linear algebra, once for all processes.

    Not Pyomo: it makes a lock that processes share, and one that is stopped might keep it.
    """
    import clarabel  # noqa: F401
    import cvxpy  # noqa: F401
    import highspy  # noqa: F401

    threadpool_limits(1)


def main() -> None:
    """Measure the cells that are not in the file, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--anew", action="store_true", help="forget what was measured before")
    parser.add_argument("--goal", action="append", choices=list(GOALS), default=[], help="measure cells of this goal anew; can be repeated")
    arguments = parser.parse_args()
    path, cells = RESULTS / "choices.csv", grid()
    rows = [row for row in read(path) if row.cell in set(cells) and row.cell.goal not in arguments.goal and not arguments.anew]
    about = f"{machine()}; `benchmarks/choices.py`, {time.strftime('%Y-%m-%d')}"
    _load()
    there = {row.cell for row in rows}
    for cell in cells:
        if cell in there or (arguments.goal and cell.goal not in arguments.goal):
            continue
        measured = measure(cell, too_slow(rows, cell))
        rows += measured
        save(path, rows)
        print(f"{cell.title}: " + ", ".join(f"{row.engine} {row.seconds:.3g} ({row.outcome})" for row in measured), flush=True)
    render(rows, about, RESULTS)


if __name__ == "__main__":
    main()
