"""What ``choices.py`` has measured, as a page and as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import measuring
import numpy as np
from choice_cells import GOALS, Cell
from choice_rows import ANSWERED, GAIN, IMPORTED, REFUSED, STOPPED, Measured, by_cell, fastest, times_the_best

LIMIT = 1.5  # times the fastest engine: what the default may take
# Colours that the colour-blind tell apart (Okabe and Ito 2008), and a marker each: nobody is told by colour alone.
_LOOKS = {
    "water-filling": ("#009E73", "*"),
    "highs": ("#0072B2", "v"),
    "best-response": ("#CC79A7", "p"),
    "large": ("#666666", "h"),
    "interior-point": ("#000000", "o"),
    "cvxpy": ("#D55E00", "D"),
    "trajectory": ("#E69F00", "s"),
    "pyomo": ("#56B4E9", "^"),
}
_SLOWEST = 1000.0  # times the fastest: the right end of the picture


def render(rows: Sequence[Measured], about: str, folder: Path) -> None:
    """Write the page and the picture."""
    cells = by_cell(rows)
    times = {cell: times_the_best(found, cell.engines()) for cell, found in cells.items()}
    measuring.write(folder / "engine_choices.md", "\n".join([*_page(cells, times, about), ""]))
    measuring.write(folder / "engine_choices.svg", _picture(cells, times))


def _page(cells: dict[Cell, dict[str, Measured]], times: dict[Cell, float | None], about: str) -> list[str]:
    judged = {cell: ratio for cell, ratio in times.items() if ratio is not None}
    unanswered = [cell.title for cell in times if cell not in judged]
    without = f" No engine has a certified answer to: {'; '.join(unanswered)}." if unanswered else ""
    within = sum(ratio <= LIMIT for ratio in judged.values())
    lines = [
        "# Which engine is the fastest",
        "",
        f"{about}. {len(cells)} cells, in [choices.csv](choices.csv); sizes are users x servers x resources. The time of the default is "
        "that of all engines that it tries, up to the first whose answer is certified. Imports are not counted; "
        f"{' and '.join(IMPORTED)}, whose packages take longer to import than most programs to solve, count as faster only where they gain "
        f"{GAIN:g} s.",
        "",
        f"The default takes at most {LIMIT:g} times the processor time of the fastest engine on {within} of {len(judged)} cells; the worst "
        f"is {max(judged.values(), default=1.0):.2f}.{without}",
        "",
        "![Times of engines, in parts of the fastest](engine_choices.svg)",
        "",
        "## Who is the fastest",
        "",
        "| goal | cells | the fastest on so many | refused | default / fastest: median | worst |",
        "|---|---|---|---|---|---|",
    ]
    for goal in GOALS:
        own = {cell: found for cell, found in cells.items() if cell.goal == goal}
        ratios = [judged[cell] for cell in own if cell in judged]
        if not ratios:
            continue
        won = Counter(best.engine for found in own.values() if (best := fastest(found)) is not None)
        refused = Counter(row.engine for found in own.values() for row in found.values() if row.outcome == REFUSED)
        lines.append(f"| {goal} | {len(own)} | {_counted(won)} | {_counted(refused)} | {np.median(ratios):.2f} | {max(ratios):.2f} |")
    lines += [
        "",
        "## Where the default is not the fastest",
        "",
        "By more than a tenth, the worst first. Seconds of the engines that answer.",
        "",
    ]
    lines += ["| cell | default / fastest | seconds |", "|---|---|---|"]
    for cell, ratio in sorted(judged.items(), key=lambda item: -item[1]):
        if ratio > 1.1:
            lines.append(f"| {cell.title} | {ratio:.2f} | {', '.join(map(_said, cells[cell].values()))} |")
    return lines


def _counted(numbers: Counter[str]) -> str:
    return ", ".join(f"{engine} {number}" for engine, number in numbers.most_common())


def _said(row: Measured) -> str:
    return (
        f"{row.engine} " + {ANSWERED: f"{row.seconds:.3g}", REFUSED: f"refused after {row.seconds:.2g}", STOPPED: "too slow"}[row.outcome]
    )


def _picture(cells: dict[Cell, dict[str, Measured]], times: dict[Cell, float | None]) -> str:
    """Draw, for each goal and engine, the times on all cells in parts of the fastest; at the right end those that were stopped."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "fairopt"
    import matplotlib.pyplot as plt

    places: list[tuple[str, str]] = []
    ratios: dict[tuple[str, str], list[float]] = {}
    for cell, found in cells.items():
        best = fastest(found)
        for row in found.values() if best is not None else ():
            ratio = row.seconds / best.seconds if row.outcome == ANSWERED else _SLOWEST
            ratios.setdefault((cell.goal, row.engine), []).append(min(ratio, _SLOWEST))
        if times[cell] is not None:
            ratios.setdefault((cell.goal, "default"), []).append(min(times[cell], _SLOWEST))
    for goal in GOALS:
        places += [(goal, engine) for engine in ("default", *_LOOKS) if (goal, engine) in ratios]
    figure, axes = plt.subplots(figsize=(8, 0.24 * len(places) + 1.2), layout="constrained")
    heights, height, last = [], 0.0, ""
    for goal, _ in places:
        height += 1.0 if goal == last or not last else 1.6
        last = goal
        heights.append(height)
    for (goal, engine), y in zip(places, heights, strict=True):
        colour, marker = _LOOKS.get(engine, ("#000000", "|"))
        x = np.array(ratios[goal, engine])
        size = 60 if engine == "default" else 16
        axes.scatter(x, np.full(x.size, y), s=size, c=colour, marker=marker, alpha=0.55, linewidths=1.2 if engine == "default" else 0)
    axes.axvline(LIMIT, color="#999999", linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    axes.set_xlim(0.9, _SLOWEST * 1.2)
    axes.set_xticks([1, LIMIT, 3, 10, 100, _SLOWEST], ["1", f"{LIMIT:g}", "3", "10", "100", "refused,\nor stopped"])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("processor time, in parts of that of the fastest engine")
    labels = [
        f"{goal}:  {engine}" if (place == 0 or places[place - 1][0] != goal) else engine for place, (goal, engine) in enumerate(places)
    ]
    axes.set_yticks(heights, labels, fontsize=8)
    axes.set_ylim(heights[-1] + 0.8, heights[0] - 0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    text = measuring.svg(figure)
    plt.close(figure)
    return text
