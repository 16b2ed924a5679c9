"""How time and memory grow with pairs, users, servers, resources, density and levels: ``make bench-growth``.

    python benchmarks/growth.py                about 25 minutes; writes growth.md, growth.json and plots to benchmarks/results
    python benchmarks/growth.py users density  these series; what is there of the others stays
    python benchmarks/growth.py --record       a million pairs, with ten minutes for each general solver
    python benchmarks/growth.py --quick        four minutes: small sizes and 5 seconds for each, printed only

A run that was stopped goes on where it was, if asked again in the same way at the same commit: what it measured stays in
results/unfinished until all is.

The first four series ask: *does time grow with the number of pairs, from 1e4 to 1e6, as a straight line does, or nearly so, where the
smaller of users and limits is fixed?* On both sides, many users on few servers and few users on many, for the leximin of weighted DRFH and
for proportional fairness. Contenders marked "one LP" find its lowest level alone; the others the whole leximin. Every measurement is
a process of its own with one thread for linear algebra, which loads all packages and builds the instance before the clock starts. Time is
processor time (user and system), which other work on the machine disturbs least: the fastest of three solves of fairopt, and of as many of
others as two seconds allow. Memory is the peak of the first solve above what is in use before it (Linux only). Who has spent its time limit
is stopped, and sits out the larger sizes of that series; so does who would need twice its limit if its time went on growing as it did.

Exactness is measured against the certified answer of fairopt. *Level error*: largest relative difference of a share (of the lowest, for one
LP) as the contender reports it; of a user's tasks, under proportional fairness. *Gap*: how much of the certified lowest level (of the
geometric mean of tasks) is missing once the tasks are scaled back into the capacities. Slopes are of least squares through the
logarithms of size and time; 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import contenders
import instances
import measuring
import numpy as np
from growth_pages import render, slope, table
from measuring import Row
from rich.progress import track

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
OURS = ("fairopt", "fairopt by interior point")
ONE_LP = ("HiGHS simplex, one LP", "HiGHS interior point, one LP", "CVXPY + HiGHS, one LP", "CVXPY + Clarabel, one LP")
MORE = ("SciPy linprog, one LP", "CVXPY + ECOS, one LP", "HiGHS PDLP, one LP", "CVXPY + SCS, one LP")
LEXIMINS = ("CVXPY + HiGHS, leximin", "cvxpy-leximin")
PROPORTIONAL = ("fairopt, proportional", "CVXPY + Clarabel, proportional", "CVXPY + SCS, proportional")
_REPEATS = 3
_OURS = 60.0  # seconds of processor time for fairopt, at least


@dataclass(frozen=True)
class Series:
    """What grows, and who competes, the first of them certified. ``make`` builds the instance of a size."""

    title: str
    axis: str
    sizes: tuple[float, ...]
    make: Callable[[float], fo.Instance]
    names: tuple[str, ...]
    quick: int = 2  # sizes of --quick
    limit: float = 10.0  # seconds of processor time of a solve by others
    notion: str = "drfh"


PAIRS = (1e4, 3e4, 1e5, 3e5, 1e6)
SERIES = {
    "pairs of many users": Series(
        "Many users: N x 10 servers x 3 resources, all pairs, weighted DRFH; min(N, K M) = 30",
        "pairs",
        PAIRS,
        lambda pairs: instances.all_pairs(round(pairs / 10), 10, 3),
        (OURS[0], *ONE_LP),
        limit=60.0,
    ),
    "pairs of many servers": Series(
        "Many servers: 30 users x K x 3 resources, all pairs, weighted DRFH; min(N, K M) = 30",
        "pairs",
        PAIRS,
        lambda pairs: instances.all_pairs(30, round(pairs / 30), 3),
        (OURS[0], *ONE_LP),
        limit=60.0,
    ),
    "pairs, proportional": Series(
        "Many users, proportional fairness: N x 10 servers, rates of their own; min(N, K) = 10",
        "pairs",
        PAIRS,
        lambda pairs: instances.rated(round(pairs / 10), 10),
        PROPORTIONAL,
        limit=60.0,
        notion="proportional",
    ),
    "pairs of many servers, proportional": Series(
        "Many servers, proportional fairness: 30 users x K, rates of their own; min(N, K) = 30",
        "pairs",
        PAIRS,
        lambda pairs: instances.rated(30, round(pairs / 30)),
        PROPORTIONAL,
        limit=60.0,
        notion="proportional",
    ),
    "users": Series(
        "Users: N x 30 servers x 3 resources, all pairs",
        "users",
        (30, 100, 300, 1000, 3000, 10000),
        lambda users: instances.all_pairs(int(users), 30, 3),
        (*OURS, *ONE_LP, *MORE, *LEXIMINS),
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
RECORD = {
    "record": Series(
        "For the record, a million pairs: 1,000 users x 1,000 servers x 3 resources, weighted DRFH, ten minutes for each",
        "pairs",
        (1e6,),
        lambda pairs: instances.all_pairs(1000, round(pairs / 1000), 3),
        (OURS[0], "HiGHS interior point, one LP", "HiGHS simplex, one LP", "HiGHS PDLP, one LP"),
        limit=600.0,
    )
}
ALL = SERIES | RECORD


# One measurement, in its own process ----------------------------------------------------------------------------------------------


def measure(key: str, size: float, name: str, limit: float, certified_file: Path) -> Row:
    """Let one contender solve one instance; the first one of a series, fairopt, writes the certified tasks of each user."""
    series, solve = ALL[key], contenders.CONTENDERS[name]
    ours, first = name.startswith("fairopt"), name == series.names[0]
    measuring.warm_up(lambda: solve(instances.rated(3, 2) if series.notion == "proportional" else instances.all_pairs(3, 2, 2)))
    instance = series.make(size)
    tasks, row = measuring.best_of(lambda: solve(instance), limit, _REPEATS, _REPEATS if ours else 1)
    if first:
        allocation = fo.solve(instance, series.notion)
        np.save(certified_file, allocation.tasks_per_user)
        engine = allocation.solver
        if "finished_by" in allocation.details:
            engine += f", finished by {allocation.details['finished_by']}"
        row |= {"levels": len(allocation.levels), "residual": allocation.certificate.worst, "engine": engine}
    per_task = None if series.notion == "proportional" else contenders.share_per_task(instance)
    row |= measuring.exactness(instance, tasks, np.load(certified_file), per_task, name in contenders.FIRST_LEVEL_ONLY)
    return row | {"pairs": int(instance.eligibility.sum())}


def expected(rows: list[Row], size: float) -> float:
    """Return the seconds at a size if time goes on growing as between the last two sizes, and at least linearly."""
    if not rows:
        return 0.0
    last, before = rows[-1], rows[-2] if len(rows) > 1 else rows[-1]
    power = np.log(last["processor"] / before["processor"]) / np.log(last["size"] / before["size"]) if len(rows) > 1 else 1.0
    return float(last["processor"] * (size / last["size"]) ** max(power, 1.0))


class Journal:
    """The measurements of a run that has not ended, a line each, and the certified tasks that they are compared with."""

    def __init__(self, folder: Path, about: str) -> None:
        self.folder, self.lines = folder, folder / "rows.jsonl"
        self.rows: dict[tuple[str, float, str], Row] = {}
        if self.lines.exists():
            begun, *lines = self.lines.read_text(encoding="utf-8").splitlines()
            whole = [json.loads(line) for line in lines if line.endswith("}")]  # not one that was being written
            if json.loads(begun) == about:
                self.rows = {(row["series"], row["size"], row["contender"]): row for row in whole}
                print(f"goes on after {len(self.rows)} measurements of a run that was stopped; delete {folder.name} to begin anew")
        if not self.rows:
            shutil.rmtree(folder, ignore_errors=True)
        measuring.write(self.lines, "".join(json.dumps(line) + "\n" for line in (about, *self.rows.values())))

    def certified(self, key: str, size: float) -> Path:
        return self.folder / f"{key}-{size:g}.npy"

    def add(self, row: Row) -> None:
        self.rows[row["series"], row["size"], row["contender"]] = row
        with self.lines.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def run(key: str, sizes: tuple[float, ...], limit: float | None, journal: Journal) -> list[Row]:
    """Measure a series, size by size; who fails, or would need twice the limit, sits out the larger sizes."""
    series, rows, out = ALL[key], list[Row](), set[str]()
    names = [name for name in series.names if find_spec(contenders.PACKAGES.get(name, "numpy"))]
    for size, name in track([(size, name) for size in sizes for name in names], key):
        if name in out or series.names[0] in out:  # without the certified answer there is nothing to compare with
            continue
        allowed = max(_OURS, series.limit) if name.startswith("fairopt") else limit or series.limit
        row: Row = {"series": key, "size": size, "contender": name}
        if (key, size, name) in journal.rows:
            row = journal.rows[key, size, name]
        else:
            ahead = expected([old for old in rows if old["contender"] == name], size)
            if ahead > 2 * allowed:
                row["failed"] = f"not tried, about {ahead:.0f} s"
            else:
                arguments = ["--one", key, str(size), name, str(allowed), str(journal.certified(key, size))]
                row |= measuring.in_own_process(__file__, arguments, allowed)
            journal.add(row)
        rows.append(row)
        if "failed" in row:
            out.add(name)
    return rows


def main() -> None:
    """Measure, print the tables, and write them where everything was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", nargs="*", help=f"default: all of {', '.join(SERIES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes and short limits, printed only")
    parser.add_argument("--record", action="store_true", help="a million pairs, with ten minutes for each general solver")
    parser.add_argument("--limit", type=float, help="seconds of processor time of a solve (default: by series; 5 with --quick) by others")
    parser.add_argument("--one", nargs=5, metavar=("SERIES", "SIZE", "CONTENDER", "LIMIT", "CERTIFIED"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        series, size, name, seconds, certified = arguments.one
        print(json.dumps(measure(series, float(size), name, float(seconds), Path(certified))))
        return
    unknown = set(arguments.series) - set(ALL)
    if unknown:
        parser.error(f"there is no series {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    limit = arguments.limit or (5.0 if arguments.quick else None)
    keys = arguments.series or list(RECORD if arguments.record else SERIES)
    about = f"{measuring.machine()}; fairopt {fo.__version__}{measuring.commit()}"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "rows" if arguments.quick else RESULTS / "unfinished"
        journal = Journal(folder, f"{about}; {' '.join(keys)}; {limit}")
        for key in keys:
            sizes = ALL[key].sizes[: ALL[key].quick if arguments.quick else None]
            rows = run(key, sizes, limit, journal)
            print("\n".join(table(ALL[key].title, ALL[key].axis, rows)), flush=True)
            if not arguments.quick:
                keep(key, rows, f"{time.strftime('%Y-%m-%d')}, {about}, others at most {limit or ALL[key].limit:g} s a solve")
        shutil.rmtree(folder)


def keep(key: str, rows: list[Row], about: str) -> None:
    """Write tables, numbers and plots, with what is there of other series."""
    kept = RESULTS / "growth.json"
    measured = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    measured[key] = {"title": ALL[key].title, "axis": ALL[key].axis, "about": about, "slope": slope(rows, ALL[key].names[0]), "rows": rows}
    measured = {name: measured[name] for name in ALL if name in measured}
    measuring.write(kept, json.dumps(measured, indent=1) + "\n")
    render(measured, RESULTS)


if __name__ == "__main__":
    main()
