"""How long an exact allocation in a tree of queues takes, against the leximin of the same users without the tree.

    python benchmarks/queues.py [CASE ...]
    python benchmarks/queues.py --profile CASE

Trees are drawn by `fairopt.generators.trees`, seed 0. "tree" is the filling of the tree with the defaults of drfh; "flat" is drfh of the
same users with the same weights, without queues. Each is measured in a process of its own, with one thread for linear algebra: the
fastest of some solves. Limit: two minutes of processor time. Levels are the stages that the certificate proves, worst residual is its
largest number. The openb tables are read from FAIROPT_DATA/openb (Weng et al. 2023); without them, random users of the same number on as
many classes of servers stand in, and the results say so.
Writes benchmarks/results/queues.md and queues.json; with cases named, or ``--profile``, it only prints.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import instances
import numpy as np
from measuring import Row, best_of, commit, in_own_process, machine, warm_up, write

import fairopt as fo
from fairopt.generators.trees import in_queues

RESULTS = Path(__file__).resolve().parent / "results"
_LIMIT = 120  # seconds of processor time


@dataclass(frozen=True)
class Case:
    """An instance with a tree, and what fairopt is asked to reach."""

    title: str
    make: Callable[[], fo.Instance]
    goal: str
    repeats: int = 3


def openb(endless: bool) -> fo.Instance:
    """Return the classes of pods of openb on its 27 classes of servers; ``endless``: without a limit to their tasks."""
    folder = Path(os.environ.get("FAIROPT_DATA", "")) / "openb"
    if (folder / "openb_node_configs.csv").exists():
        instance = fo.import_openb(folder / "openb_node_configs.csv", folder / "openb_classes_qos_shape_gpuspec33.csv").instance
    else:
        instance = instances.some_pairs(467, 27, 3, 0.7)
        rng = np.random.default_rng(0)
        instance = instance.replace(weights=np.ones(467), counts=np.ceil(rng.pareto(1.0, 27) * 10), tasks=np.ceil(rng.pareto(1.0, 467) * 2))
    return instance.replace(tasks=np.full(instance.n_users, np.inf)) if endless else instance


CASES = {
    "openb": Case(
        "openb: its classes of pods on 27 classes of servers, 30 queues of three levels with guarantees and limits",
        lambda: in_queues(openb(False), 30, depth=3, guarantees=0.5, limits=0.25, weights=5),
        "below 2 s, and at most 3 times the flat leximin",
    ),
    "openb-endless": Case(
        "the same without limits to their tasks: everybody contends",
        lambda: in_queues(openb(True), 30, depth=3, guarantees=0.5, limits=0.25, weights=5),
        "below 2 s, and at most 3 times the flat leximin",
    ),
    "many-queues": Case(
        "5,000 users x 30 classes of servers x 3 resources, all pairs, 200 queues of three levels with guarantees and limits",
        lambda: in_queues(instances.all_pairs(5000, 30, 3), 200, depth=3, guarantees=0.5, limits=0.25, weights=5),
        "below 10 s",
        1,
    ),
    "many-servers": Case(
        "1,000 users x 100 servers x 3 resources, all pairs, 20 queues with limits",
        lambda: in_queues(instances.all_pairs(1000, 100, 3), 20, guarantees=0.0, limits=0.1, weights=5),
        "below 10 s",
        1,
    ),
}


def flat(instance: fo.Instance) -> fo.Instance:
    """Return the same users without the tree."""
    return instance.replace(queues=(), queue_of=None)


def measure(case: Case, tree: bool) -> Row:
    """Run one of the two here and now."""
    warm_up(lambda: fo.solve(fo.generate("uniform", users=4, servers=2, queues=2, seed=0), "drfh"))
    instance = case.make() if tree else flat(case.make())
    answers: list[fo.Allocation] = []

    def solve() -> np.ndarray:
        answers.append(fo.solve(instance, "drfh"))
        return answers[-1].tasks

    _, row = best_of(solve, _LIMIT, case.repeats)
    last = answers[-1]
    levels = np.unique(last.shares.round(9)).size
    return row | {"instance": repr(instance), "engine": last.solver, "levels": levels, "worst_residual": last.certificate.worst}


def profile(case: Case) -> None:
    """Print where the time of a tree goes."""
    warm_up(lambda: fo.solve(fo.generate("uniform", users=4, servers=2, queues=2, seed=0), "drfh"))
    instance, profiler = case.make(), cProfile.Profile()
    profiler.enable()
    try:
        fo.solve(instance, "drfh", time_limit=_LIMIT)
    finally:
        profiler.disable()
        for order in ("tottime", "cumulative"):
            pstats.Stats(profiler).sort_stats(order).print_stats(25)


def table(case: Case, rows: dict[str, Row]) -> list[str]:
    """Return a case in Markdown."""
    lines = [f"## {case.title}", "", f"{rows['tree'].get('instance', '')}. Goal: {case.goal}.".lstrip(". "), ""]
    lines += [
        "| | seconds | processor | ratio | memory, MiB | shares that differ | engine | worst residual |",
        "|---|---|---|---|---|---|---|---|",
    ]
    base = rows["flat"].get("processor")
    for name, row in rows.items():
        if "failed" in row:
            lines.append(f"| {name} | failed: {row['failed']} | | | | | | |")
            continue
        ratio = f"{row['processor'] / base:.1f}" if base else ""
        lines.append(
            f"| {name} | {row['seconds']:.2f} | {row['processor']:.2f} | {ratio} | {row['peak_mib']:.0f} | {row['levels']} "
            f"| {row['engine']} | {row['worst_residual']:.0e} |"
        )
    return [*lines, ""]


def main() -> None:
    """Measure every case, or those named, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="default: all")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "KIND"), help=argparse.SUPPRESS)
    parser.add_argument("--profile", choices=list(CASES))
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(CASES[arguments.one[0]], arguments.one[1] == "tree")))
        return
    if arguments.profile:
        profile(CASES[arguments.profile])
        return
    lines = [
        "# Benchmarks of trees of queues",
        "",
        f"{machine()}; one run of `benchmarks/queues.py`{commit()}, {time.strftime('%Y-%m-%d')}. tree: the filling of the tree, "
        "flat: the leximin of the same users without queues, both drfh. Processor: seconds of processor time. Ratio: of processor time. "
        "Memory: peak above the instance.",
        "",
    ]
    everything = {}
    for key in arguments.cases or CASES:
        rows = {kind: in_own_process(__file__, ["--one", key, kind], _LIMIT) for kind in ("tree", "flat")}
        everything[key] = rows
        lines += table(CASES[key], rows)
        print("\n".join(table(CASES[key], rows)), flush=True)
    if not arguments.cases:
        write(RESULTS / "queues.md", "\n".join(lines))
        write(RESULTS / "queues.json", json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
