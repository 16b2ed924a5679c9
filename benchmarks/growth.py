"""How time and memory grow with users, servers, resources, density and levels: ``make bench-growth``.

    python benchmarks/growth.py            about 40 minutes; writes growth.md, growth.json and the plots to benchmarks/results
    python benchmarks/growth.py pairs      one series, a few minutes; what is there of the others stays
    python benchmarks/growth.py --quick    three minutes: small sizes and 5 seconds for each, printed only

After every series the results are written, so that a run can be stopped.

The question is weighted DRFH. Contenders marked "one LP" find its lowest level alone; the others the whole leximin. Every measurement is a
process of its own with one thread for linear algebra, which loads all packages and builds the instance before the clock starts. Time is
processor time (user and system), which other work on the machine disturbs least; memory is the peak above what is in use before the solve
(Linux only). Who has spent its time limit is stopped, and sits out the larger sizes of that series.

Exactness is measured against the certified answer of fairopt. *Level error*: largest relative difference of a share (of the lowest, for one
LP) as the contender reports it. *Gap*: how much of the certified lowest level is missing once its tasks are scaled back into the
capacities. Slopes are of least squares through the logarithms of size and time; 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import contenders
import instances
import numpy as np
from rich.progress import track

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
OURS = ("fairopt", "fairopt by interior point")
ONE_LP = ("HiGHS simplex, one LP", "HiGHS interior point, one LP", "CVXPY + HiGHS, one LP", "CVXPY + Clarabel, one LP")
FIRST_ORDER = ("HiGHS PDLP, one LP", "CVXPY + SCS, one LP")
LEXIMINS = ("CVXPY + HiGHS, leximin", "cvxpy-leximin")

Row = dict[str, Any]


@dataclass(frozen=True)
class Series:
    """What grows, and who competes. ``make`` builds the instance of a size."""

    title: str
    axis: str
    sizes: tuple[float, ...]
    make: Callable[[Any], fo.Instance]
    names: tuple[str, ...]
    quick: int = 2  # sizes of --quick


SERIES = {
    "pairs": Series(
        "Pairs, at a fixed number of limits: users x 10 servers x 3 resources, all pairs, min(N, K M) = 30",
        "pairs",
        (1e4, 3e4, 1e5, 3e5, 1e6),
        lambda pairs: instances.all_pairs(round(pairs / 10), 10, 3),
        (*OURS, *ONE_LP),
        3,
    ),
    "users": Series(
        "Users: N x 30 servers x 3 resources, all pairs",
        "users",
        (30, 100, 300, 1000, 3000, 10000),
        lambda users: instances.all_pairs(int(users), 30, 3),
        (*OURS, *ONE_LP, *FIRST_ORDER, *LEXIMINS),
    ),
    "servers": Series(
        "Servers: 300 users x K x 3 resources, all pairs",
        "servers",
        (10, 30, 100, 300, 1000),
        lambda servers: instances.all_pairs(300, int(servers), 3),
        (*OURS, *ONE_LP),
    ),
    "resources": Series(
        "Resources: 1,000 users x 20 servers x M, all pairs",
        "resources",
        (1, 2, 4, 8, 16),
        lambda resources: instances.all_pairs(1000, 20, int(resources)),
        (*OURS, *ONE_LP),
    ),
    "density": Series(
        "Density: 1,000 users x 60 servers x 3 resources, a part of the pairs",
        "part of the pairs",
        (0.03, 0.1, 0.3, 1.0),
        lambda part: instances.some_pairs(1000, 60, 3, part),
        (*OURS, *ONE_LP),
    ),
    "levels": Series(
        "Levels: 30 K users x K servers x 2 resources, one to three servers each, 30 % of the demands zero",
        "servers",
        (3, 10, 30, 60),
        lambda servers: instances.few_servers_each(30 * int(servers), int(servers), 2),
        (*OURS, *LEXIMINS),
    ),
}


# One measurement, in its own process ----------------------------------------------------------------------------------------------


def measure(series: str, size: float, name: str, limit: float, shares_file: Path) -> Row:
    """Let one contender solve one instance; the first one, fairopt, writes the certified shares. The system stops it after the limit."""
    solve = contenders.CONTENDERS[name]
    solve(fo.Instance([[1.0, 1.0]], [[0.1, 0.2], [0.2, 0.1]]))  # loads every package once, outside the measurement
    instance = SERIES[series].make(size)
    before = fresh_peak()
    clocks = time.perf_counter(), time.process_time()
    seconds, hard = int(clocks[1] + limit) + 1, resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))
    tasks = solve(instance)
    wall, processor = time.perf_counter() - clocks[0], time.process_time() - clocks[1]
    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
    peak = (memory("VmHWM") - before) / 1024
    extra: Row = {}
    if name == OURS[0]:
        allocation = fo.solve(instance, "drfh")
        np.save(shares_file, allocation.shares)
        extra = {"levels": len(allocation.levels), "residual": allocation.certificate.worst, "engine": allocation.solver}
    certified = np.load(shares_file)
    per_task = (instance.demands / instance.total_capacity).max(axis=1) / instance.weights
    shares = per_task * tasks.sum(axis=1)
    lowest = name in contenders.FIRST_LEVEL_ONLY
    error = abs(shares.min() / certified.min() - 1) if lowest else float(np.abs(shares / certified - 1).max())
    excess = max(1.0, float(np.max(tasks.T @ instance.demands / instance.row_capacity)))
    gap = max(1 - float(shares.min()) / excess / float(certified.min()), 0.0)
    pairs = int(instance.eligibility.sum())
    return {"pairs": pairs, "seconds": wall, "processor": processor, "peak_mib": peak, "error": error, "gap": gap, **extra}


def memory(field: str) -> int:
    """Read a field of this process from the system, KiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def fresh_peak() -> int:
    """Forget the peak of memory up to now, that of building the instance, and return what is in use, KiB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return memory("VmRSS")


def in_own_process(series: str, size: float, name: str, limit: float, shares_file: Path) -> Row:
    """Measure in a fresh interpreter; ``failed`` says why there is no time."""
    command = [sys.executable, __file__, "--one", series, str(size), name, str(limit), str(shares_file)]
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    row: Row = {"series": series, "size": size, "contender": name}

    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | one_thread)
    if done.returncode == 0:
        row |= json.loads(done.stdout.splitlines()[-1])
        return row
    if done.returncode < 0:
        return row | {"failed": f"over {limit:g} s"}
    return row | {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1][:120]}


def run(key: str, limit: float, quick: bool) -> list[Row]:
    """Measure a series, size by size; who fails sits out the larger sizes."""
    rows: list[Row] = []
    series, out = SERIES[key], set[str]()
    with tempfile.TemporaryDirectory() as folder:
        plan = [(size, name) for size in series.sizes[: series.quick if quick else None] for name in series.names]
        for size, name in track(plan, key):
            if name in out or OURS[0] in out:  # without the certified shares there is nothing to compare with
                continue
            rows.append(in_own_process(key, size, name, limit, Path(folder) / "shares.npy"))
            if "failed" in rows[-1]:
                out.add(name)
    return rows


# Tables and plots -----------------------------------------------------------------------------------------------------------------


def slope(rows: list[Row], least: float = 0.0) -> float:
    """Exponent of the time in the size, by least squares through the logarithms; not a number for fewer than three points."""
    points = np.array([(row["size"], row["processor"]) for row in rows if "failed" not in row and row["size"] >= least])
    return float(np.polyfit(*np.log(points.T), 1)[0]) if len(points) >= 3 else float("nan")


def table(key: str, rows: list[Row], about: str = "") -> list[str]:
    """Markdown of one series."""
    series = SERIES[key]
    lines = [f"## {series.title}", "", *([f"{about}.", ""] if about else [])]
    if key == "pairs":
        for name in OURS:
            own = [row for row in rows if row["contender"] == name and "failed" not in row]
            per_pair = [1e6 * row["processor"] / row["size"] for row in own]
            if own:
                lines += [
                    f"{name}: time grows with pairs to the power of {slope(own):.2f} (asked: at most 1.3), "
                    f"from {per_pair[0]:.1f} to {per_pair[-1]:.1f} microseconds a pair.",
                    "",
                ]
    lines += [f"| {series.axis} | contender | seconds | slope | memory, MiB | level error | gap |", "|---|---|---|---|---|---|---|"]
    for size in dict.fromkeys(row["size"] for row in rows):
        for row in rows:
            if row["size"] != size:
                continue
            label, name = f"{size:,g}", row["contender"]
            if "levels" in row:
                label += f" ({row['levels']} level{'s' * (row['levels'] != 1)})"
                name += f" ({row['engine']}, residual {row['residual']:.0e})"
            if "failed" in row:
                lines.append(f"| {label} | {name} | {row['failed']} | | | | |")
                continue
            own = [other for other in rows if other["contender"] == row["contender"] and "failed" not in other]
            exponent = slope(own) if row is own[-1] else float("nan")
            fitted = "" if np.isnan(exponent) else f"{exponent:.2f}"
            lines.append(
                f"| {label} | {name} | {row['processor']:.3f} | {fitted} | {row['peak_mib']:.0f} | {row['error']:.0e} | {row['gap']:.0e} |"
            )
    return [*lines, ""]


def plot(rows: list[Row], quantity: str, label: str, path: Path) -> None:
    """One log-log panel a series, one colour a contender everywhere."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "fairopt"
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    keys = list(dict.fromkeys(row["series"] for row in rows))
    names = [name for name in contenders.CONTENDERS if any(row["contender"] == name and "failed" not in row for row in rows)]
    looks = dict(zip(names, zip(plt.get_cmap("tab10").colors, "osD^v<>Xph", strict=False), strict=False))  # type: ignore[attr-defined]
    columns = min(3, len(keys))
    figure, panels = plt.subplots(-(-len(keys) // columns), columns, figsize=(5.2 * columns, 4.2 * -(-len(keys) // columns) + 0.8))
    flat = np.atleast_1d(panels).ravel()
    for axes, key in zip(flat, keys, strict=False):
        slopes: list[tuple[float, float, float, Any]] = []
        for name in names:
            own = [row for row in rows if row["series"] == key and row["contender"] == name and "failed" not in row]
            if not own:
                continue
            colour, marker = looks[name]
            size, value = [row["size"] for row in own], [max(row[quantity], 1e-3 if quantity == "processor" else 1.0) for row in own]
            axes.loglog(size, value, marker + "-", color=colour, markersize=5, linewidth=2.2 if name == OURS[0] else 1.2)
            if quantity == "processor" and not np.isnan(slope(own)):
                slopes.append((np.log10(value[-1]), size[-1], slope(own), colour))
        axes.set_title(SERIES[key].title.split(":")[0], loc="left", fontsize=11)
        axes.set_xlabel(SERIES[key].axis)
        axes.grid(visible=True, which="major", color="0.9")
        axes.margins(x=0.12)
        for minor in (axes.xaxis, axes.yaxis):  # numbers at powers of ten only
            minor.set_minor_formatter(NullFormatter())
        least, most = axes.get_ylim()
        axes.set_ylim(min(least, 10 ** np.floor(np.log10(least) + 0.5)), max(most, 10 ** np.ceil(np.log10(most) - 0.5)))
        apart, taken = 0.045 * np.log10(axes.get_ylim()[1] / axes.get_ylim()[0]), dict[float, float]()
        for level, end, exponent, colour in sorted(slopes):  # beside the last point, one above the other
            taken[end] = max(level, taken.get(end, -np.inf) + apart)
            where, beside = (end, 10 ** taken[end]), {"xytext": (6, 0), "textcoords": "offset points"}
            axes.annotate(f"{exponent:.1f}", where, **beside, color=colour, fontsize=8, va="center", annotation_clip=False)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in flat[::columns]:
        axes.set_ylabel(label)
    for axes in flat[len(keys) :]:
        axes.set_visible(False)
    handles = [plt.Line2D([], [], color=looks[name][0], marker=looks[name][1], label=name) for name in names]
    figure.legend(handles=handles, loc="lower center", ncols=min(4, len(names)), frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.1 if len(keys) > columns else 0.16, 1, 1))
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def main() -> None:
    """Measure, print the tables, and write them where everything was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", nargs="*", help=f"default: all of {', '.join(SERIES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes and short limits, printed only")
    parser.add_argument("--limit", type=float, help="seconds of processor time of a contender (default: 60; 5 with --quick)")
    parser.add_argument("--one", nargs=5, metavar=("SERIES", "SIZE", "CONTENDER", "LIMIT", "SHARES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        series, size, name, seconds, shares = arguments.one
        print(json.dumps(measure(series, float(size), name, float(seconds), Path(shares))))
        return
    unknown = set(arguments.series) - set(SERIES)
    if unknown:
        parser.error(f"there is no series {', '.join(sorted(unknown))}; there are {', '.join(SERIES)}")
    limit = arguments.limit or (5.0 if arguments.quick else 60.0)
    for key in arguments.series or SERIES:
        rows = run(key, limit, arguments.quick)
        print("\n".join(table(key, rows)), flush=True)
        if not arguments.quick:
            write(key, rows, limit)


def write(key: str, rows: list[Row], limit: float) -> None:
    """Write tables, numbers and plots, with what is there of other series."""
    RESULTS.mkdir(exist_ok=True)
    kept = RESULTS / "growth.json"
    measured = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    about = f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}"
    measured[key] = {"about": f"{about}, at most {limit:g} s for each", "rows": rows}
    measured = {name: measured[name] for name in SERIES if name in measured}
    kept.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    render(measured)


def render(measured: dict[str, Row]) -> None:
    """Write the tables and the plots of what was measured."""
    lines = [
        "# How time and memory grow",
        "",
        "By `benchmarks/growth.py`, each series in one go. Seconds: processor time, on one thread. Slope: exponent of the time in the "
        "size, fitted. Level error: largest relative difference of a share from the certified one (of the lowest, for one LP). Gap: what "
        "is missing of the certified lowest level once the tasks are scaled back into the capacities. Memory: peak above what is in use "
        "before the solve.",
        "",
        "![Time](growth.svg)",
        "",
        "![Memory](growth-memory.svg)",
        "",
    ]
    for name, series in measured.items():
        lines += table(name, series["rows"], series["about"])
    (RESULTS / "growth.md").write_text("\n".join(lines), encoding="utf-8")
    everything = [row for series in measured.values() for row in series["rows"]]
    plot(everything, "processor", "seconds of processor time", RESULTS / "growth.svg")
    plot(everything, "peak_mib", "peak memory, MiB", RESULTS / "growth-memory.svg")


if __name__ == "__main__":
    main()
