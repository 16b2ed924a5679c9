"""A grid of simulations: for each trace on its cluster, a row for each scheduler and seed; then the cells that failed, and why."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from fairopt.reporting.tables.simulation import LATE, finish_ratios
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Table, names, numbers, percents
from fairopt.wording import plural, printable

__all__ = ["simulated_study_blocks"]

_LINES = 5  # messages that are printed


def simulated_study_blocks(frame: pd.DataFrame, reference: str) -> Iterator[Block]:
    """Yield the cells of each simulation, what the columns mean, and the cells that failed."""
    several = frame["seed"].nunique() > 1
    for name, part in frame[frame["message"].eq("")].groupby("simulation", sort=False):
        label = part["scheduler"] + (", seed " + part["seed"].astype(str) if several else "")
        rows = part.set_index(label.rename("scheduler"))
        yield Note(f", {plural(int(rows['jobs'].iloc[0]), 'job')}; regret against exact {reference}", printable(str(name)))
        yield GAP
        yield Table.of(
            names("scheduler", map(str, rows.index)),
            numbers("jobs ended", rows["jobs_ended"], 6),
            numbers("wait", rows["wait_s"], unit="s", missing="-"),
            numbers("bounded", rows["bounded_slowdown"], missing="-"),
            numbers("worst", rows["bounded_slowdown_largest"], missing="-"),
            percents("use", rows["utilization"]),
            percents("regret", rows["regret"]),
        )
        yield GAP
        yield finish_ratios("scheduler", rows)
        yield GAP
    if frame["message"].eq("").any():
        yield Note(
            "wait: mean time until the first task of a job starts, of the jobs that started.\n"
            "bounded: mean of (end - submission) / run time, which counts as at least 10 s, of the jobs that ended. worst: the largest.\n"
            "regret: what waiting users lacked of the exact simulation, in parts of what users received there.\n"
            f"{LATE}",
            style="soft",
        )
    failed = frame[frame["message"].ne("")]
    for _, row in failed.drop_duplicates(["simulation", "scheduler", "message"]).head(_LINES).iterrows():
        yield Note(printable(row["message"]), f"{row['simulation']}, seed {row['seed']}, {row['scheduler']}: ")
    if len(failed):
        yield f"{plural(len(failed), 'cell')} of {len(frame):,} failed"
