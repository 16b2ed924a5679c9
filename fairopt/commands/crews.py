"""The options that say who computes: how many workers, of which kind, and where; and studies that go on until they are interrupted.

Every command that takes workers has all three options.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

import typer

from fairopt.commands.console import say
from fairopt.commands.said import INTERRUPTED
from fairopt.commands.working import Bar, work

__all__ = ["CrewOptions", "Workers", "until_interrupted"]

T = TypeVar("T")

Workers = Annotated[
    int, typer.Option("--workers", metavar="N", help="Workers; -1: one for each core. Of a cluster at --address: at most N at once.")
]


@dataclass(frozen=True)
class CrewOptions:
    """How many workers compute, and where; ``vars`` of it are arguments of the public functions."""

    workers: Workers = 1
    backend: Annotated[
        Literal["loky", "threading", "dask", "ray"],
        typer.Option("--backend", help="Where workers run: in processes (loky) or threads of this machine, or on a dask or ray cluster."),
    ] = "loky"
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="URL",
            help="Address of the dask or ray cluster, as tcp://10.0.0.1:8786. Default: one on this machine; for ray, that of RAY_ADDRESS "
            "if it is set.",
        ),
    ] = None


def until_interrupted(doing: str, what: str, study: Callable[[Callable[[int, int], object], Callable[[], bool]], T]) -> T:
    """Return study(done, stop), with a bar that counts ``what``; if Ctrl-C ends it, say what is kept, and exit.

    Raises
    ------
    typer.Exit
        It was interrupted.
    """
    bar, ended = Bar(what), threading.Event()
    try:
        return work(doing, lambda: study(lambda finished, total: bar.reach(finished, total), ended.is_set), bar, ended)
    except KeyboardInterrupt as interrupted:
        if interrupted.args:
            say("interrupted", str(interrupted))
        raise typer.Exit(INTERRUPTED) from None
