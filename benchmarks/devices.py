"""What a device is worth to the interior point: ``python benchmarks/devices.py torch:cuda``.

    python benchmarks/devices.py torch:cuda cupy        these arrays beside NumPy's, a few minutes; up to 4 million pairs
    python benchmarks/devices.py torch --pairs 1e5      no case of more pairs; "torch" is PyTorch on the processor
    python benchmarks/devices.py torch:cuda --alone --pairs 1e8       without NumPy: 10,000 users on 10,000 servers

The lowest level of all (one equal level), a leximin, a total, and an alpha-fair goal, all pairs eligible, demands of three resources (the
time of servers for the alpha-fair goal). Seconds are wall-clock time of one solve with its transfers, after a small one that loads all
packages; the program is formulated before. Residual is that of the certificate; memory what PyTorch had allocated on a GPU at most. An
answer that another engine had to finish says so. Counted on PyTorch's tensors, a level takes 350 bytes a pair on a device, a total 190, an
alpha-fair goal 170; the program itself takes 300 in main memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import instances

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Program
from fairopt.solvers.backend import Deadline

# Users, servers; of alpha-fair goals a few servers.
SIZES = ((1_000, 100), (1_000, 1_000), (2_000, 2_000), (10_000, 10_000))
ALPHA_FAIR = ((10_000, 10), (100_000, 10), (400_000, 10), (1_000_000, 100))
PAIRS = 4_000_000  # at most, unless told otherwise


def programs(most: float) -> list[tuple[str, int, int, Any, dict[str, Any]]]:
    """Return notion, users, servers, instance maker and options of every case with so many pairs at most."""
    cases: list[tuple[str, int, int, Any, dict[str, Any]]] = []
    for users, servers in SIZES:
        for notion, options in (("drfh", {"formulation": "equalize"}), ("drfh", {}), ("efficiency", {})):
            cases.append((notion, users, servers, lambda n, k: instances.all_pairs(n, k, 3), options))
    for users, servers in ALPHA_FAIR:
        cases.append(("proportional", users, servers, instances.rated, {"alpha": 2.0}))
    return [case for case in cases if case[1] * case[2] <= most]


def memory(name: str, reset: bool = False) -> str:
    """Return what PyTorch allocated on a GPU at most since the last reset."""
    if not name.startswith("torch:cuda"):
        return ""
    torch = sys.modules["torch"]
    if reset:
        torch.cuda.reset_peak_memory_stats()
    return f"{torch.cuda.max_memory_allocated() / 2**20:,.0f} MiB"


def measure(program: Program, name: str) -> str:
    """Solve a program on these arrays and return what it took."""
    engine = fo.SOLVERS["interior-point"](name)
    engine.solve(fo.formulate(instances.all_pairs(20, 20, 3), "drfh"), tolerance=1e-8, deadline=Deadline(None))
    memory(name, reset=True)
    clock = time.perf_counter()
    solution = engine.solve(program, tolerance=1e-8, deadline=Deadline(None))
    seconds = time.perf_counter() - clock
    residual = certify(program, solution).worst
    return f"{seconds:9.2f} s {solution.iterations:5d} steps   residual {residual:.0e}   {memory(name)}"


def main() -> None:
    """Measure every case on all arrays and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("arrays", nargs="+", metavar="ARRAYS", help='"torch:cuda", "torch", "cupy" ...')
    parser.add_argument("--pairs", type=float, default=PAIRS, help="of the largest case")
    parser.add_argument("--alone", action="store_true", help="without NumPy beside")
    given = parser.parse_args()
    names = given.arrays if given.alone else ["numpy", *given.arrays]
    for notion, users, servers, make, options in programs(given.pairs):
        program = fo.formulate(make(users, servers), notion, **options)
        print(f"{notion} {options or ''}: {users:,} users, {servers:,} servers", flush=True)
        for name in names:
            print(f"  {name:12s}{measure(program, name)}", flush=True)


if __name__ == "__main__":
    main()
