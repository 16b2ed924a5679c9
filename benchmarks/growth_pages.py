"""What ``growth.py`` has measured, as a page of tables and as plots."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Any

import measuring
import numpy as np
from measuring import Row

_ASKED = 1.3  # exponent of the time in the number of pairs, at most
# Colours that the colour-blind tell apart (Okabe and Ito 2008), and a marker and a dash each: nobody is told by colour alone.
_LOOKS = {
    "fairopt": ("#000000", "o", "-"),
    "fairopt, proportional": ("#000000", "o", "-"),
    "fairopt by interior point": ("#666666", "s", "--"),
    "HiGHS simplex, one LP": ("#0072B2", "v", "-"),
    "HiGHS interior point, one LP": ("#0072B2", "^", "--"),
    "HiGHS PDLP, one LP": ("#0072B2", "P", ":"),
    "SciPy linprog, one LP": ("#56B4E9", "x", "-."),
    "CVXPY + HiGHS, one LP": ("#E69F00", "D", "-"),
    "CVXPY + Clarabel, one LP": ("#D55E00", "<", "--"),
    "CVXPY + Clarabel, proportional": ("#D55E00", "<", "--"),
    "CVXPY + SCS, one LP": ("#CC79A7", ">", ":"),
    "CVXPY + SCS, proportional": ("#CC79A7", ">", ":"),
    "CVXPY + ECOS, one LP": ("#CC79A7", "X", "-."),
    "CVXPY + HiGHS, leximin": ("#009E73", "p", "-"),
    "cvxpy-leximin": ("#009E73", "h", "--"),
}


def of(rows: list[Row], name: str) -> list[Row]:
    """Return what was measured of one contender."""
    return [row for row in rows if row["contender"] == name and "failed" not in row]


def slope(rows: list[Row], name: str) -> float | None:
    """Exponent of the time in the size, by least squares through the logarithms; None for fewer than three sizes."""
    points = np.array([(row["size"], row["processor"]) for row in of(rows, name)])
    return float(np.polyfit(*np.log(points.T), 1)[0]) if len(points) >= 3 else None


# The page -------------------------------------------------------------------------------------------------------------------------


def _claim(rows: list[Row], name: str) -> list[str]:
    """Say how near to a straight line the time of the first contender grows with the pairs."""
    own, power = of(rows, name), slope(rows, name)
    if power is None:
        return []
    size, seconds = (np.array([row[field] for row in own]) for field in ("size", "processor"))
    per_pair = seconds / size
    ratio = per_pair / np.exp(np.log(per_pair).mean())
    spreads = [row["spread"] for row in own if row.get("repeats", 1) > 1]
    repeats = f"Repeats of one size differ by {max(spreads):.0%} at most." if spreads else "Every size was solved once."
    return [
        f"**{name}: time grows with pairs to the power of {power:.2f}** (asked: at most {_ASKED}), "
        f"from {size[0]:,.0f} to {size[-1]:,.0f} pairs. The straight line through all sizes is exceeded by a factor of "
        f"{ratio.max():.2f} at most; a pair costs {1e6 * per_pair[0]:.1f} microseconds at the first size and "
        f"{1e6 * per_pair[-1]:.1f} at the last. {repeats}",
        "",
    ]


def table(title: str, axis: str, rows: list[Row], about: str = "") -> list[str]:
    """Markdown of one series. Ratio: time over that of fairopt at the same size."""
    lines = [f"## {title}", "", *([f"{about}.", ""] if about else [])]
    if not rows:
        return lines
    first = rows[0]["contender"]
    if axis == "pairs":
        lines += _claim(rows, first)
    lines += [f"| {axis} | contender | seconds | ratio | slope | memory, MiB | level error | gap |", "|---|---|---|---|---|---|---|---|"]
    for size in dict.fromkeys(row["size"] for row in rows):
        here = [row for row in rows if row["size"] == size]
        base = next((row["processor"] for row in of(here, first)), float("nan"))
        for row in here:
            label, name = f"{size:,g}" if size < 1e6 else f"{size:,.0f}", row["contender"]
            if row.get("levels"):
                label += f" ({row['levels']} level{'s' * (row['levels'] != 1)})"
            if "engine" in row:
                name += f" ({row['engine']}, residual {row['residual']:.0e})"
            if "failed" in row:
                lines.append(f"| {label} | {name} | {row['failed']} | | | | | |")
                continue
            power = slope(rows, row["contender"]) if row is of(rows, row["contender"])[-1] else None
            fitted = "" if power is None else f"{power:.2f}"
            exact = "| | |" if "engine" in row else f"| {row['error']:.0e} | {row['gap']:.0e} |"  # the reference, which would meet itself
            lines.append(
                f"| {label} | {name} | {row['processor']:.3f} | {row['processor'] / base:.2f} | {fitted} | {row['peak_mib']:.0f} {exact}"
            )
    return [*lines, ""]


def render(measured: dict[str, Row], folder: Path) -> None:
    """Write the page and the plots of what was measured."""
    recorded = " (`--record`: the last series)" if "record" in measured else ""
    lines = [
        "# How time and memory grow",
        "",
        f"By `python benchmarks/growth.py`{recorded}, which says how it measures; under each title stand the day, the "
        "machine and the versions. Seconds: processor time of a solve, on one thread. Ratio: of it to that of fairopt, at the same size. "
        "Slope: exponent of the time in the size, fitted; 1 is linear. Level error: largest relative difference of a share from the "
        "certified one (of the lowest, for one LP), under proportional fairness of a user's tasks. Gap: what is missing of the certified "
        "lowest level, or geometric mean of the tasks, once the tasks are scaled back into the capacities. The first of a series is what "
        "the others are compared with: beside its name stands the residual of its certificate. Memory: peak above what is in use before "
        "the solve.",
        "",
        "![Time against the number of pairs](growth-pairs.svg)",
        "",
        "![Time against users, servers, resources, density and levels](growth.svg)",
        "",
        "![Memory](growth-memory.svg)",
        "",
    ]
    for series in measured.values():
        lines += table(series["title"], series["axis"], series["rows"], series["about"])
    measuring.write(folder / "growth.md", "\n".join(lines))
    time = "processor time, s"
    curves = {name: series for name, series in measured.items() if len({row["size"] for row in series["rows"]}) > 1}
    pairs = {name: series for name, series in curves.items() if series["axis"] == "pairs"}
    others = {name: series for name, series in curves.items() if series["axis"] != "pairs"}
    straight = f"Is the time linear in the number of pairs, or within a power of {_ASKED}? (number: the slope; thin: linear)"
    for chosen, quantity, label, title, name in (
        (pairs, "processor", time, straight, "growth-pairs.svg"),
        (others, "processor", time, "How does the time grow? (numbers: slopes of fairopt's curves)", "growth.svg"),
        (curves, "peak_mib", "peak memory, MiB", "How does the memory grow?", "growth-memory.svg"),
    ):
        if chosen:
            plot(chosen, quantity, label, title, folder / name)


# Plots ----------------------------------------------------------------------------------------------------------------------------


def plot(measured: dict[str, Row], quantity: str, label: str, title: str, path: Path) -> None:
    """One log-log panel a series, one look a contender everywhere; beside the last point of our curves stands their slope."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "fairopt"
    import matplotlib.pyplot as plt

    columns = 2 if len(measured) <= 4 else 3
    lines = -(-len(measured) // columns)
    rows = [row for series in measured.values() for row in series["rows"]]
    names = [name for name in _LOOKS if of(rows, name)]
    named: dict[tuple[str, str, str], list[str]] = {}  # one look for both goals
    for name in names:
        named.setdefault(_LOOKS[name], []).append(name)
    legend = 0.22 * -(-len(named) // 3) + 0.15  # inches
    height = 3.7 * lines + legend + 0.4
    figure, panels = plt.subplots(lines, columns, figsize=(4.9 * columns, height), squeeze=False)
    for axes, series in zip(panels.flat, measured.values(), strict=False):
        _panel(axes, series, quantity)
    for line in panels:
        line[0].set_ylabel(label)
    for axes in panels.flat[len(measured) :]:
        axes.set_visible(False)
    labels = {look: same[0] if len(same) == 1 else same[0].partition(",")[0] for look, same in named.items()}
    handles = [plt.Line2D([], [], color=c, marker=m, linestyle=d, markersize=5, label=label) for (c, m, d), label in labels.items()]
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, weight="bold")
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False, fontsize=9, handlelength=3.5)
    figure.tight_layout(rect=(0, legend / height, 0.97, 1))
    measuring.write(path, measuring.svg(figure))
    plt.close(figure)


def _panel(axes: Any, series: Row, quantity: str) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    rows = series["rows"]
    ends: list[tuple[float, float, str, str]] = []
    for name, (colour, marker, dash) in _LOOKS.items():
        own = of(rows, name)
        if not own:
            continue
        size, value = [row["size"] for row in own], [max(row[quantity], 1e-3 if quantity == "processor" else 1.0) for row in own]
        ours = name.startswith("fairopt")
        axes.loglog(
            size, value, color=colour, marker=marker, linestyle=dash, markersize=5, linewidth=2 if ours else 1.2, zorder=3 if ours else 2
        )
        power = slope(rows, name)
        if quantity == "processor" and power is not None and ours:  # of the others it is in the table
            ends.append((float(np.log10(value[-1])), size[-1], f"{power:.2f}", colour))
    first = of(rows, rows[0]["contender"])
    if series["axis"] == "pairs" and quantity == "processor" and first:
        size = np.array([row["size"] for row in first])
        through = np.exp(np.log(np.array([row["processor"] for row in first]) / size).mean())
        axes.loglog(size, through * size, color="0.6", linestyle="--", linewidth=1, zorder=1)
    head, _, fixed = series["title"].partition(":")
    below = wrap(fixed.strip(), 60)
    axes.set_title(head, loc="left", fontsize=11, pad=8 + 11 * len(below))
    axes.text(0, 1.02, "\n".join(below), transform=axes.transAxes, fontsize=8, color="0.35", va="bottom")
    axes.set_xlabel(series["axis"])
    axes.margins(x=0.1)
    ticks = sorted({row["size"] for row in rows})
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 10 ** np.floor(np.log10(low) + 0.5)), max(high, 10 ** np.ceil(np.log10(high) - 0.5)))
    axes.grid(visible=True, which="major", color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    apart, taken = 0.05 * np.log10(axes.get_ylim()[1] / axes.get_ylim()[0]), dict[float, float]()
    for level, end, text, colour in sorted(ends):  # one above the other
        taken[end] = max(level, taken.get(end, -np.inf) + apart)
        beside = {"xytext": (7, 0), "textcoords": "offset points", "annotation_clip": False}
        axes.annotate(text, (end, 10 ** taken[end]), **beside, color=colour, fontsize=8, va="center")


def _short(value: float) -> str:
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"
