"""What ``large.py`` has measured, as a picture: time and memory against the number of pairs, up to a hundred million."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, svg, write

__all__ = ["plot"]

# Colours that the colour-blind tell apart (Okabe and Ito 2008), and a marker and a dash each.
_LOOKS = (("#000000", "o", "-"), ("#0072B2", "s", "--"), ("#D55E00", "^", "-."), ("#009E73", "D", ":"))
_NUMBER = 8  # bytes of a number of tasks


def plot(curves: dict[str, list[Row]], path: Path) -> None:
    """Draw processor time and peak memory of each curve, with a straight line through its first point, and the size of the table."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "fairopt"
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.6))
    for (name, rows), (colour, marker, dash) in zip(curves.items(), _LOOKS, strict=False):
        pairs = np.array([row["pairs"] for row in rows], float)
        look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": dash, "markersize": 6, "linewidth": 1.8}
        seconds = np.array([row["processor"] for row in rows])
        left.loglog(pairs, seconds, **look, label=name)
        left.loglog(pairs, seconds[0] * pairs / pairs[0], color=colour, linewidth=0.6, alpha=0.6)
        right.loglog(pairs, [row["peak_mib"] for row in rows], **look)
    sizes = np.array(sorted({row["pairs"] for rows in curves.values() for row in rows}), float)
    right.loglog(sizes, _NUMBER * sizes / 2**20, color="0.5", linewidth=1.0, linestyle="--")
    right.annotate(
        "the table of tasks alone",
        (sizes[len(sizes) // 2], _NUMBER * sizes[len(sizes) // 2] / 2**20),
        (10, -6),
        textcoords="offset points",
        fontsize=9,
        color="0.35",
    )
    for axes, text in ((left, "processor time, s (thin: linear from the first size)"), (right, "peak memory of the solve, MiB")):
        axes.set_title(text, loc="left", fontsize=10)
        axes.set_xlabel("pairs of users and servers")
        axes.grid(visible=True, which="major", color="0.92")
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    figure.suptitle("Does time stay linear up to a hundred million pairs?", x=0.01, ha="left", fontsize=12, weight="bold")
    figure.legend(loc="lower center", ncols=3, frameon=False, fontsize=9, handlelength=3.5)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    write(path, svg(figure))
    plt.close(figure)
