"""The judgement of a log of jobs as one would write it on paper: interval by interval, without anything kept from one to the next."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

import fairopt as fo

__all__ = ["slow_loop"]


def slow_loop(
    frame: pd.DataFrame, cluster: fo.Instance, shapes: dict[str, list[int]], window: tuple[float, float] = (-1.0, 1e9)
) -> dict[str, np.ndarray]:
    """Return the four sums of each owner in share-hours, change by change, each solved anew; A weighs 2."""
    rows = frame.to_dict("records")
    over = [row | {"start": row["end"] if np.isnan(row["start"]) else row["start"]} for row in rows]
    times = sorted({float(row[name]) for row in over for name in ("submit", "start", "end")} | {min(max(t, 0.0), 500.0) for t in window})
    total = cluster.total_capacity
    found = {name: np.zeros(4) for name in sorted(set(frame["user"]))}
    for first, last in itertools.pairwise(times):
        if first < window[0] or last > window[1]:
            continue
        asked, held = dict.fromkeys(shapes, 0.0), dict.fromkeys(shapes, 0.0)
        for row in over:
            asked[row["user"]] += row["tasks"] * (row["submit"] <= first < row["end"])
            held[row["user"]] += row["tasks"] * (row["start"] <= first < row["end"])
        due = dict(held)
        if asked != held:
            names = [name for name in shapes if asked[name]]
            small = cluster.replace(
                demands=[shapes[name] for name in names],
                users=names,
                weights=[2.0 if name == "A" else 1.0 for name in names],
                tasks=[asked[name] for name in names],
                queue_of=None,
                parallelism=None,
                guarantees=None,
            )
            due = dict.fromkeys(shapes, 0.0) | dict(zip(names, fo.solve(small, "drfh").tasks_per_user.tolist(), strict=True))
        for name, sums in found.items():
            share = max(amount / capacity for amount, capacity in zip(shapes[name], total, strict=True))
            gap = (due[name] - held[name]) * share
            sums += np.array([due[name] * share, held[name] * share, max(gap, 0.0), max(-gap, 0.0)]) * (last - first) / 3600
    return found
