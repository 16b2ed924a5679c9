"""How far the approximations of papers (``fo.BASELINES``) are from max-min fair rates, and how long they take, beside the exact answer.

``python benchmarks/baselines.py [CASE ...]``

Flows over up to four paths on random graphs of three sizes. "error" is 1 less the geometric mean of min(ratio, 1 / ratio) over the flows,
ratio being a rate to the exact one (what lies below 1e-4 counts as 1e-4); "smallest" and "largest" are the extreme ratios. Times are
processor seconds of one solve in this process after a small one, making the program included. Where `flow_baselines`, which is written
apart with SciPy, has the same approximation and its answer is the only one (water-filling, POP), the largest relative difference between
the two is under "apart"; the benchmark fails where it exceeds 1e-5.
Writes benchmarks/results/baselines.md, .json and .svg; cases that are named are measured again, the others stay as they are.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import flow_baselines
import numpy as np
from measuring import Row, commit, machine, svg, warm_up, write

import fairopt as fo
from fairopt.generators import random_graph

RESULTS = Path(__file__).resolve().parent / "results"
_LEAST, _APART = 1e-4, 1e-5
CASES = {
    "50": (50, 20, 4, 4),  # flows, nodes, degree, paths
    "200": (200, 60, 4, 4),
    "1000": (1000, 200, 6, 4),
}
EXACT = "exact"
SPECS = {
    EXACT: "max-min",
    "water-filling, one pass": "max-min:water-filling",
    "water-filling, 10 rounds": "max-min:water-filling:rounds=10",
    "geometric binning, in turn": "max-min:geometric-binning:ratio=2",
    "geometric binning, one program": "max-min:geometric-binning:ratio=2:part=0.1",
    "equal binning, one program": "max-min:equal-binning:part=0.1",
    "SWAN": "max-min:swan:ratio=2",
    "POP, 4 parts": "max-min:pop:parts=4",
}
APART: dict[str, Callable[[flow_baselines.Network], np.ndarray]] = {
    "water-filling, one pass": lambda network: flow_baselines.water_filling(network, rounds=1),
    "water-filling, 10 rounds": lambda network: flow_baselines.water_filling(network, rounds=10),
    "POP, 4 parts": lambda network: flow_baselines.pop(network, parts=4),
}
# Colours that the colour-blind tell apart (Okabe and Ito 2008), and a marker each: nobody is told by colour alone.
_LOOKS = {
    EXACT: ("#000000", "o"),
    "water-filling, one pass": ("#56B4E9", "v"),
    "water-filling, 10 rounds": ("#0072B2", "^"),
    "geometric binning, in turn": ("#D55E00", "s"),
    "geometric binning, one program": ("#E69F00", "D"),
    "equal binning, one program": ("#009E73", "P"),
    "SWAN": ("#CC79A7", "X"),
    "POP, 4 parts": ("#666666", "*"),
}


def rates(instance: fo.Instance, name: str) -> np.ndarray:
    """Return the rates of one contender."""
    answer = fo.solve(instance, SPECS[name]) if name == EXACT else fo.schedule(instance, SPECS[name])
    return answer.tasks_per_user


def measured(case: str) -> dict[str, Row]:
    """Measure all contenders on one network."""
    small, network = fo.Instance.from_paths(*random_graph(5, 5, 2, 2)), random_graph(*CASES[case])
    instance = fo.Instance.from_paths(*network)
    found: dict[str, Row] = {}
    best = np.zeros(0)
    for name in SPECS:
        warm_up(partial(rates, small, name))
        before = time.process_time()
        own = rates(instance, name)
        row: dict[str, Any] = {"processor": time.process_time() - before}
        if name == EXACT:
            best = own
        else:
            ratio = np.maximum(own, 0.0) / best
            near = np.maximum(np.minimum(ratio, 1 / np.maximum(ratio, 1e-300)), _LEAST)
            row |= {"error": float(1 - np.exp(np.log(near).mean())), "smallest": float(ratio.min()), "largest": float(ratio.max())}
        if name in APART:
            other = APART[name](flow_baselines.Network.of(*network))
            row["apart"] = float(np.max(np.abs(own - other) / np.maximum(other, 1e-12)))
            if row["apart"] > _APART:
                raise SystemExit(f"{name} differs from the same written apart by {row['apart']:.2g} on {case}")
        found[name] = row
        print(case, name, row, flush=True)
    return found


def page(found: dict[str, dict[str, Row]]) -> str:
    """Return the tables as Markdown."""
    lines = [
        "# Approximations of max-min fair flows",
        "",
        f"{machine()}; `benchmarks/baselines.py`{commit()}, {time.strftime('%Y-%m-%d')}. Processor seconds of one solve; fairopt's exact "
        "answer is certified. A ratio is that of a flow's rate to its exact one. The error is 1 less the geometric mean of "
        "min(ratio, 1 / ratio) over the flows; *smallest* and *largest* are the extreme ratios. *apart*: the largest relative difference "
        "from the same approximation written apart with SciPy, where its answer is the only one.",
        "",
        "![Fairness error against time](baselines.svg)",
        "",
    ]
    for case in CASES:
        if case in found:
            lines += [f"## {int(case):,} flows", "", "| | processor | error | smallest | largest | apart |", "|---|---|---|---|---|---|"]
            for name, row in found[case].items():
                error = (
                    "| certified | 1 | 1 |" if name == EXACT else f"| {row['error']:.4f} | {row['smallest']:.3g} | {row['largest']:.3g} |"
                )
                apart = f"{row['apart']:.0e}" if "apart" in row else ""
                lines.append(f"| {name} | {row['processor']:.3f} {error} {apart} |")
            lines.append("")
    return "\n".join(lines)


def plot(found: dict[str, dict[str, Row]], path: Path) -> None:
    """Draw error against time, a panel for each size; the exact answer has the error 0."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "fairopt"
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    cases = [case for case in CASES if case in found]
    figure, panels = plt.subplots(1, len(cases), figsize=(4.0 * len(cases), 4.6), squeeze=False, sharey=True)
    for axes, case in zip(panels[0], cases, strict=True):
        for name, row in found[case].items():
            colour, marker = _LOOKS[name]
            axes.plot(row["processor"], row.get("error", 0.0), marker, color=colour, markersize=11 if name == EXACT else 7, label=name)
        axes.axvline(found[case][EXACT]["processor"], color="#000000", linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_title(f"{int(case):,} flows", fontsize=10)
        axes.set_xlabel("processor seconds")
        axes.grid(alpha=0.3)
        axes.set_ylim(-0.02, None)
    panels[0][0].set_ylabel("fairness error (0: exact)")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.suptitle("How unfair are the approximations, and how fast?", x=0.01, ha="left", fontsize=12, weight="bold")
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    write(path, svg(figure))
    plt.close(figure)


def main() -> None:
    """Measure every case, or those named, and write table and picture."""
    kept = RESULTS / "baselines.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for case in [word for word in sys.argv[1:] if word in CASES] or CASES:
        found[case] = measured(case)
        write(kept, json.dumps(found, indent=1) + "\n")
    write(RESULTS / "baselines.md", page(found))
    plot(found, RESULTS / "baselines.svg")


if __name__ == "__main__":
    main()
