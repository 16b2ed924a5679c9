"""Max-min fair flows over several paths, exactly, by a loop of linear programs, and as the field approximates them.

``python benchmarks/flows.py [CASE ...]``

The baselines are in `flow_baselines`. Every contender has a process of its own and is measured in processor time, the fastest of some
solves; fairopt's time includes the making of the instance, the program and the certificate. "smallest" and "largest" are the extreme ratios
of a rate to the exact one, "mean" the geometric mean of min(ratio, 1/ratio) over the flows (1: all rates are exact; what lies below 1e-4
counts as 1e-4, as in the paper on Soroush), "off" how many flows differ by more than 1e-6, and "total" all rates, relative to the exact
ones. "times fairopt" below 1: faster than the exact answer.
Writes benchmarks/results/flows.md and .json; cases that are named are measured again, the others stay as they are.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from flow_baselines import Flows, Links, Network, equi_depth_binning, exact, geometric_binning, highs_loop, pop, water_filling
from measuring import Row, best_of, commit, in_own_process, machine, warm_up, write

import fairopt as fo
from fairopt.generators import grid, random_graph

RESULTS = Path(__file__).resolve().parent / "results"
_LIMIT, _LIMIT_OF_LOOPS, _REPEATS = 480.0, 120.0, 3  # processor seconds, processor seconds, solves
_OFF, _LEAST = 1e-6, 1e-4

CASES: dict[str, tuple[str, Callable[[], tuple[Links, Flows]]]] = {
    "graph": ("1,000 flows on a random graph of 600 links", lambda: random_graph(1000, 200, 6, 4)),
    "grid": ("1,000 flows on a grid of 577 links", lambda: grid(1000, 17, 18, 4)),
    "large": ("10,000 flows on a random graph of 2,000 links", lambda: random_graph(10_000, 800, 5, 4)),
}
EXACT = "fairopt, exact"
CONTENDERS: dict[str, Callable[[Network], np.ndarray]] = {
    EXACT: lambda network: exact(network).tasks_per_user,
    "HiGHS loop, primal simplex": lambda network: highs_loop(network, primal=True),
    "HiGHS loop as it comes": lambda network: highs_loop(network, primal=False),
    "geometric binning (SWAN)": geometric_binning,
    "equi-depth binning (Soroush)": equi_depth_binning,
    "approximate water-filling (Soroush)": lambda network: water_filling(network, rounds=1),
    "adaptive water-filling (Soroush)": lambda network: water_filling(network, rounds=10),
    "POP, 4 parts": pop,
}


def limit(name: str) -> float:
    return _LIMIT_OF_LOOPS if "loop" in name else _LIMIT


def measure(case: str, name: str, certified: Path) -> Row:
    """Run one contender here and now; the exact one keeps its rates in a file, with which others compare theirs."""
    warm_up(lambda: CONTENDERS[name](Network.of({"a": 1.0, "b": 3.0}, {"f": [["a"], ["b"]], "g": [["a"]]})))
    network = Network.of(*CASES[case][1]())
    answers: list[fo.Allocation] = []

    def solve() -> np.ndarray:
        if name != EXACT:
            return CONTENDERS[name](network)
        answers.append(exact(network))
        return answers[-1].tasks_per_user

    rates, row = best_of(solve, limit(name), _REPEATS)
    row |= {"paths": int(network.flow.size)}
    if name == EXACT:
        np.save(certified, rates)
        return row | {"levels": len(answers[-1].levels), "residual": answers[-1].certificate.worst}
    best = np.load(certified)
    ratio = np.maximum(rates, 0.0) / best
    nearness = np.maximum(np.minimum(ratio, 1 / np.maximum(ratio, 1e-300)), _LEAST)
    return row | {
        "smallest": float(ratio.min()),
        "largest": float(ratio.max()),
        "mean": float(np.exp(np.log(nearness).mean())),
        "off": int((np.abs(ratio - 1) > _OFF).sum()),
        "total": float(rates.sum() / best.sum()),
    }


def measured(case: str) -> dict[str, Row]:
    """Let every contender solve a case."""
    certified, rows = RESULTS / f"flows-{case}.npy", {}
    for name in CONTENDERS:
        rows[name] = in_own_process(__file__, ["--one", case, name, str(certified)], limit(name))
        print(case, name, rows[name], file=sys.stderr, flush=True)
    certified.unlink(missing_ok=True)
    return rows


def table(case: str, rows: dict[str, Row]) -> list[str]:
    """Return what was measured of a case, as Markdown."""
    ours = rows[EXACT]
    about = f", {ours['paths']:,} paths: {ours['levels']} levels, worst residual {ours['residual']:.0e}" if "levels" in ours else ""
    lines = [
        f"## {CASES[case][0]}{about}",
        "",
        "| | processor | times fairopt | memory, MiB | smallest | largest | mean | off | total |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        if "failed" in row:
            lines.append(f"| {name} | failed: {row['failed']} | | | | | | | |")
            continue
        times = f"{row['processor'] / ours['processor']:.3f}" if "processor" in ours else ""
        error = "certified | | | | "
        if name != EXACT:
            error = f"{row['smallest']:.3g} | {row['largest']:.3g} | {row['mean']:.4f} | {row['off']:,} | {row['total']:.3f}"
        lines.append(f"| {name} | {row['processor']:.3f} | {times} | {row['peak_mib']:.0f} | {error} |")
    return [*lines, ""]


def main() -> None:
    """Measure every case, or those named, and write the tables."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(*sys.argv[2:4], Path(sys.argv[4]))))
        return
    kept = RESULTS / "flows.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if sys.argv[1:] and kept.exists() else {}
    for case in sys.argv[1:] or CASES:
        found[case] = measured(case)
        print("\n".join(table(case, found[case])), flush=True)
    lines = [
        "# Max-min fair flows",
        "",
        f"{machine()}; `benchmarks/flows.py`{commit()}, {time.strftime('%Y-%m-%d')}. Processor seconds of the fastest of up to {_REPEATS} "
        "solves. Flows have up to four paths. fairopt's answer is certified; the others are compared with it: extreme ratios of rates, "
        "the geometric mean of min(ratio, 1/ratio), how many flows differ by more than 1e-6, and the total. The loop and the "
        "approximations check nothing.",
        "",
        *(line for case in CASES if case in found for line in table(case, found[case])),
    ]
    write(RESULTS / "flows.md", "\n".join(lines))
    write(kept, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
