"""A study: for each instance, means over the seeds and their standard errors; then the rows that failed, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from fairopt.analysis.comparison import BEST_FOUND
from fairopt.instance import Instance
from fairopt.reporting.tables.comparison import MEASURES
from fairopt.reporting.tables.phrases import min_share
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Table, names, numbers, words
from fairopt.wording import joined, plural, printable

__all__ = ["study_blocks", "study_table"]

_LINES = 5  # messages that are printed
_ERRORS = "±: standard error over the seeds.\n"
_LEGEND = f"""\
{MEASURES}
regret: relative shortfall from the exact allocation.
level: shortfall of the lowest share.
worst: the largest gap between the sorted share lists; for other notions, the regret of the goal or of the condition."""


def study_blocks(frame: pd.DataFrame, means: pd.DataFrame, instances: Mapping[str, Instance | str]) -> Iterator[Block]:
    """Yield the means of each instance, what they mean, and the rows that failed."""
    seeds = frame["seed"].nunique()
    for name, part in means.groupby(level="instance", sort=False):
        rows = part.droplevel("instance")
        instance = instances[str(name)]
        low = min_share(instance) if isinstance(instance, Instance) else "min share"
        uses = [str(column) for column in rows if str(column).startswith("use of ") and not str(column).endswith(" error")]
        yield Note(f", {plural(seeds, 'seed')}", printable(str(name)))
        yield GAP
        for title, columns in (
            ("measures", {"tasks": "tasks", low: "smallest_share", "efficiency": "efficiency"}),
            ("fairness", {"Jain": "jain", "envy": "envy", "seconds": "seconds"}),
            ("in use", {column.removeprefix("use of "): column for column in uses}),
            ("regret", {"level": "regret level", "worst": "regret worst"}),
        ):
            yield study_table(rows, columns, title, with_kind=title == "measures")
            yield GAP
        yield from _cost(rows, seeds)
    yield _ERRORS * (seeds > 1) + _LEGEND
    if frame["kind"].eq(BEST_FOUND).any():
        yield f"{BEST_FOUND}: within the time limit, not proved optimal; the regret is a lower bound."
    failed = frame[frame["tasks"].isna()]
    for _, row in failed.drop_duplicates(["instance", "entry", "message"]).head(_LINES).iterrows():
        yield Note(printable(row["message"]), f"{row['instance']}, seed {row['seed']}, {row['entry']}: ")
    if len(failed):
        yield f"{plural(len(failed), 'row')} of {len(frame):,} without an allocation"


def _cost(rows: pd.DataFrame, seeds: int) -> Iterator[Block]:
    """Yield what fairness costs on the mean of the seeds: the tasks that each exact allocation runs less than the most possible."""
    prices = rows[rows["kind"].eq("exact") & rows["price of fairness"].notna()] if "price of fairness" in rows else rows[:0]
    told = []
    for name, row in prices[prices["price of fairness"] > 0].iterrows():
        price, error = float(row["price of fairness"]), float(row["price of fairness error"])
        spread = f" ± {100 * error:.1f}" if error > 0 else ""
        told.append(f"{printable(str(name))} loses {100 * price:.1f}{spread} %")
    if told:
        over = f", on the mean of {plural(seeds, 'seed')}" if seeds > 1 else ""
        yield f"What fairness costs{over}: {joined(told, _LINES)} of the most possible tasks (by weight)."
        yield GAP


def study_table(rows: pd.DataFrame, columns: Mapping[str, str], title: str, *, with_kind: bool = False) -> Table:
    """Return means with their standard errors, for each entry of a study.

    ``columns`` are titles and the columns of the summary (`fairopt.studies.sweep.summary`) that they stand for; a column that applies to no
    entry is left out.
    """
    shown = {heading: column for heading, column in columns.items() if rows[column].notna().any()}
    return Table.of(
        names(title, map(str, rows.index)),
        *([words("kind", map(str, rows["kind"]))] if with_kind else []),
        *(
            numbers(heading, rows[column], 4, errors=rows[f"{column} error"], percent=_is_part(column), decimals=1)
            for heading, column in shown.items()
        ),
    )


def _is_part(column: str) -> bool:
    return column == "efficiency" or column.startswith(("use of ", "regret "))
