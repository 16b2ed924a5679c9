"""How long answers in fractions take, and how much faster they are than a simplex in pure Python.

``python benchmarks/in_fractions.py``: processor seconds of ``solve(..., exact=True)`` for several numbers of
users, servers, levels and digits, and the ratio to the rational simplex of the tests on an instance that this one can solve. Results are
under benchmarks/results/fractions.md.

Digits are those of each demand. Users of an instance with several levels are confined to groups of servers of growing size.

``python benchmarks/in_fractions.py largest``: the largest instance within a minute of processor time, for several numbers of levels and
of digits of each weight; demands have two digits. Three servers for twenty users. The size grows until a solve takes more than a minute, or
nearly one. Writes benchmarks/results/largest_fractions.md and .json, case by case. A case is named as levels:digits, ``largest 5:30``.
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from measuring import commit, machine, warm_up

import fairopt as fo

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reference.exact import leximin

TIME_LIMIT = 600.0
RESULTS = Path(__file__).resolve().parent / "results"
MINUTE = 60.0  # processor seconds of the largest instance
LARGEST = tuple((levels, digits) for levels in (1, 5, 40) for digits in (1, 6, 30))  # numbers of levels, and digits of each weight


@dataclass(frozen=True)
class Size:
    """An instance by its numbers of users, servers, resources, levels and digits; ``of_weights``: the digits of each weight."""

    users: int
    servers: int
    levels: int
    digits: int
    resources: int = 3
    of_weights: int = 1

    def instance(self) -> fo.Instance:
        """Draw it; the same each time."""
        rng = np.random.default_rng(0)
        demands = rng.integers(1, 10 ** (self.digits + 1), (self.users, self.resources)) / 10**self.digits
        server_group = np.arange(self.servers) * self.levels // self.servers
        user_group = np.arange(self.users) * self.levels // self.users
        capacities = rng.integers(10, 100, (self.servers, self.resources)) * (1.0 + server_group)[:, None]
        weights: Any = rng.integers(1, 10, self.users) if self.of_weights == 1 else self._weights()
        return fo.Instance(
            capacities,
            demands,
            weights=weights,
            eligibility=server_group[None, :] == user_group[:, None] if self.levels > 1 else None,
        )

    def _weights(self) -> list[Fraction]:
        """Draw weights between 1 and 10 with so many digits."""
        drawn, unit = random.Random(0), 10 ** (self.of_weights - 1)
        return [Fraction(drawn.randrange(unit, 10 * unit), unit) for _ in range(self.users)]


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
    warm_up(lambda: fo.solve(instance, "drfh", exact=True))
    ours = min(seconds_of(size)[0] for _ in range(3))
    started = time.process_time()
    expected = leximin(fo.Instance(instance.capacities, instance.demands, weights=instance.weights), "drfh")
    theirs = time.process_time() - started
    assert len(expected) == size.users
    return theirs / ours


def largest(levels: int, digits: int) -> dict[str, Any]:
    """Return the largest instance within a minute, what it takes, and the smallest that takes longer, if one was tried."""
    users, found = max(100, 3 * levels), dict[str, Any]()
    while True:
        size = Size(users, max(levels, users * 3 // 20), levels, 1, of_weights=digits)
        try:
            seconds, allocation = seconds_of(size)
        except fo.NoSolution:
            return found | {"too_large": users, "too_large_seconds": None}
        print(f"{levels} levels, weights of {digits} digits: {users} users, {size.servers} servers: {seconds:.1f} s", flush=True)
        if seconds > MINUTE:
            return found | {"too_large": users, "too_large_seconds": seconds}
        assert allocation.exact is not None
        longest = max(len(str(value)) for value in allocation.exact.tasks_per_user)
        found = {"levels": len(allocation.exact.levels), "digits": digits, "users": users, "servers": size.servers}
        found |= {"seconds": seconds, "longest": longest, "about": f"{time.strftime('%Y-%m-%d')}, {machine()}{commit()}"}
        more = min(2.0, (0.95 * MINUTE / max(seconds, 1e-3)) ** (1 / 3))  # time grows with the cube of the size, at least
        if more < 1.06:
            return found
        users = int(users * more) // 10 * 10


def write_largest(found: dict[str, dict[str, Any]]) -> None:
    """Write the largest instances as a table, a row a case, and as JSON."""
    ordered = {f"{levels}:{digits}": found[f"{levels}:{digits}"] for levels, digits in LARGEST if f"{levels}:{digits}" in found}
    (RESULTS / "largest_fractions.json").write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    lines = [
        "# The largest answers in fractions within a minute",
        "",
        '`python benchmarks/in_fractions.py largest`: `solve(..., "drfh", exact=True)` in processor time, everything included. Three',
        "resources, demands of two digits; digits are those of each weight. The longest fraction has numerator and denominator.",
        "Too large: the next size that was tried.",
        "",
        "| levels | digits | users | servers | seconds | digits of the longest fraction | too large, users | seconds |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in ordered.values():
        beyond = row.get("too_large_seconds")
        lines.append(
            f"| {row['levels']} | {row['digits']} | {row['users']:,} | {row['servers']} | {row['seconds']:.1f} | {row['longest']:,} | "
            f"{row.get('too_large', '')} | {'' if beyond is None else f'{beyond:.0f}'} |"
        )
    about = dict.fromkeys(row["about"] for row in ordered.values())
    (RESULTS / "largest_fractions.md").write_text("\n".join([*lines, "", *(f"Measured: {each}." for each in about), ""]), encoding="utf-8")


def main() -> None:
    """Print a line for each size, and the ratio; or find the largest instances."""
    if sys.argv[1:2] == ["largest"]:
        stored = RESULTS / "largest_fractions.json"
        found = json.loads(stored.read_text(encoding="utf-8")) if stored.exists() else {}
        for case in sys.argv[2:] or [f"{levels}:{digits}" for levels, digits in LARGEST]:
            levels, digits = map(int, case.split(":"))
            warm_up(lambda: fo.solve(Size(20, 5, 1, 1).instance(), "drfh", exact=True))
            found[case] = largest(levels, digits)
            write_largest(found)
        return
    warm_up(lambda: fo.solve(SIZES[0].instance(), "drfh", exact=True))
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
