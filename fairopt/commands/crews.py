"""The options that say who computes: how many workers, of which kind, and where. Every command that takes workers has all three."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

__all__ = ["Address", "Backend", "Workers"]

Workers = Annotated[
    int, typer.Option("--workers", metavar="N", help="Workers; -1: one for each core. Of a cluster at --address: at most N at once.")
]
Backend = Annotated[
    Literal["loky", "threading", "dask", "ray"],
    typer.Option("--backend", help="Where workers run: in processes (loky) or threads of this machine, or on a dask or ray cluster."),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="URL", help="Address of the dask or ray cluster, as tcp://10.0.0.1:8786. Default: one on this machine."
    ),
]
