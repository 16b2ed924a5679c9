"""How long answers in fractions take, and how much faster they are than a simplex in pure Python.

``python benchmarks/in_fractions.py``: processor seconds of ``solve(..., exact=True)`` for several numbers of
users, servers, levels and digits, and the ratio to the rational simplex of the tests on an instance that this one can solve. Results are
under benchmarks/results/fractions.md.

Digits are those of each demand. Users of an instance with several levels are confined to groups of servers of growing size.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import fairopt as fo

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reference.exact import leximin

TIME_LIMIT = 600.0


@dataclass(frozen=True)
class Size:
    """An instance by its numbers of users, servers, resources, levels and digits."""

    users: int
    servers: int
    levels: int
    digits: int
    resources: int = 3

    def instance(self) -> fo.Instance:
        """Draw it; the same each time."""
        rng = np.random.default_rng(0)
        demands = rng.integers(1, 10 ** (self.digits + 1), (self.users, self.resources)) / 10**self.digits
        server_group = np.arange(self.servers) * self.levels // self.servers
        user_group = np.arange(self.users) * self.levels // self.users
        capacities = rng.integers(10, 100, (self.servers, self.resources)) * (1.0 + server_group)[:, None]
        return fo.Instance(
            capacities,
            demands,
            weights=rng.integers(1, 10, self.users),
            eligibility=server_group[None, :] == user_group[:, None] if self.levels > 1 else None,
        )


SIZES = (
    *(Size(20, 5, 1, digits) for digits in (1, 15)),
    *(Size(200, 30, 1, digits) for digits in (1, 3, 15)),
    *(Size(100, 50, 40, digits) for digits in (1, 3, 15)),
    *(Size(400, 60, 1, digits) for digits in (1, 15)),
    *(Size(400, 80, 40, digits) for digits in (1, 15)),
    Size(800, 100, 1, 1),
)


def seconds_of(size: Size) -> tuple[float, fo.Allocation]:
    """Return the processor seconds of an exact answer, and the answer."""
    instance = size.instance()
    started = time.process_time()
    allocation = fo.solve(instance, "drfh", exact=True, time_limit=TIME_LIMIT)
    return time.process_time() - started, allocation


def against_pure_python() -> float:
    """Return how many times as long the simplex of the tests takes, on an instance of its size."""
    size = Size(12, 4, 1, 1)
    instance = size.instance()
    fo.solve(instance, "drfh", exact=True)  # what is imported
    ours = min(seconds_of(size)[0] for _ in range(3))
    started = time.process_time()
    expected = leximin(fo.Instance(instance.capacities, instance.demands, weights=instance.weights), "drfh")
    theirs = time.process_time() - started
    assert len(expected) == size.users
    return theirs / ours


def main() -> None:
    """Print a line for each size, and the ratio."""
    fo.solve(SIZES[0].instance(), "drfh", exact=True)
    print("users servers resources levels digits  processor seconds  digits of the longest fraction  iterations")
    for size in SIZES:
        seconds, allocation = seconds_of(size)
        assert allocation.exact is not None
        longest = max(len(str(value)) for value in allocation.exact.tasks_per_user)
        print(
            f"{size.users:5} {size.servers:7} {size.resources:9} {len(allocation.exact.levels):6} {size.digits:6}  {seconds:17.2f}  "
            f"{longest:30}  {allocation.details['iterations']:15}",
            flush=True,
        )
    print(f"the simplex in pure Python takes {against_pure_python():,.0f} times as long on 12 users, 4 servers, 3 resources")


if __name__ == "__main__":
    main()
