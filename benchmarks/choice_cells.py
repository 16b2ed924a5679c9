"""The grid on which engines are compared: goals, shapes and sizes. A cell is its numbers, from which its instance is drawn again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import fairopt as fo
from fairopt.program import Program
from fairopt.program.reduction import Reduction
from fairopt.solvers import candidates

GOALS: dict[str, tuple[str, dict[str, Any]]] = {
    "leximin": ("drfh", {}),
    "equal level": ("drfh", {"formulation": "equalize"}),
    "total": ("efficiency", {}),
    "proportional": ("proportional", {}),
    "alpha 0.5": ("proportional", {"alpha": 0.5}),
    "alpha 4": ("proportional", {"alpha": 4.0}),
    "trade-off": ("gfj", {}),
    "server by server": ("per-server-drf", {}),
    "divided time": ("psdsf", {"sharing": "tdm"}),
    "queues": ("drfh", {}),  # a tree: the leximin among queues, and inside of them
    "rule": ("drfh", {}),  # one condition of the user's own on the tasks
}
SEVERAL = 3  # servers of a user in the cells of many levels, at most
_CAPPED = {"none": [], "tasks": ["finite tasks"], "parallelism": ["one task at a time"]}
_QUEUES = 10  # users of a queue
_GUARANTEED = 0.5  # of the cluster, to all queues together
_FINITE = 0.3  # of the users have a number of tasks


@dataclass(frozen=True, slots=True)
class Cell:
    """A question of the grid.

    Attributes
    ----------
    goal : str
        A key of `GOALS`.
    users, servers, resources : int
    places : int
        Servers of a user: it draws from 1 to ``places`` of them; 0: all servers.
    takes : float
        Part of the resources that a user takes, in expectation; one at least.
    caps : {"none", "tasks", "parallelism"}
        Three users in ten have a number of tasks, 0.2 to 2 times what their part of the cluster holds; or nobody holds more than one.
    spread : float
        Orders of magnitude over which the weights lie.
    eligible : float
        Part of the pairs that are eligible, in expectation; everybody has one server at least. With ``places`` it is 1.
    groups : int
        Users and servers are in this many groups, and nobody may run on a server of another group.
    draw : int
        Which of the instances with these numbers.
    """

    goal: str
    users: int
    servers: int
    resources: int
    places: int = 0
    takes: float = 1.0
    caps: str = "none"
    spread: float = 0.7
    eligible: float = 1.0
    groups: int = 1
    draw: int = 0

    @property
    def pairs(self) -> int:
        """Users times servers."""
        return self.users * self.servers

    @property
    def title(self) -> str:
        """The cell in words."""
        words = [f"{self.goal}, {self.users:,} x {self.servers:,} x {self.resources:,}"]
        words += [f"1 to {self.places} servers each"] * (self.places > 0) + [f"{self.eligible:.0%} of the pairs"] * (self.eligible < 1)
        words += [f"{self.groups} groups"] * (self.groups > 1) + [f"{self.takes:.0%} of the resources"] * (self.takes < 1)
        words += _CAPPED[self.caps]
        words += ["equal weights"] * (self.spread == 0) + [f"weights over {self.spread:g} orders"] * (self.spread > 1)
        words += [f"draw {self.draw + 1}"] * (self.draw > 0)
        return ", ".join(words)

    def instance(self) -> fo.Instance:
        """Draw the instance: capacities U[1, 10], demands U[0.01, 0.1], the same on every call."""
        rng = np.random.default_rng(self.draw)
        n, k, m = self.users, self.servers, self.resources
        capacities, demands = rng.uniform(1, 10, (k, m)), rng.uniform(0.01, 0.1, (n, m))
        taken = rng.random((n, m)) < self.takes
        taken[np.arange(n), rng.integers(m, size=n)] = True
        demands[~taken] = 0.0
        given: dict[str, Any] = {"weights": 10 ** rng.uniform(0, self.spread, n)}
        if self.places:
            given["eligibility"] = eligible = np.zeros((n, k), bool)
            for user, number in enumerate(rng.integers(1, self.places + 1, n)):
                eligible[user, rng.choice(k, number, replace=False)] = True
        if self.eligible < 1 or self.groups > 1:
            of_server = np.arange(k) % self.groups
            own = rng.integers(k, size=n)  # a server that the user may run on whatever is drawn
            given["eligibility"] = eligible = (rng.random((n, k)) < self.eligible) & (of_server == of_server[own][:, None])
            eligible[np.arange(n), own] = True
        if self.caps == "tasks":
            alone = np.divide(capacities.sum(axis=0), demands, out=np.full((n, m), np.inf), where=taken).min(axis=1)
            part = given["weights"] / given["weights"].sum() * alone * rng.uniform(0.2, 2, n)
            given["tasks"] = np.where(rng.random(n) < _FINITE, np.maximum(np.ceil(part), 1), np.inf)
        if self.caps == "parallelism":
            given |= {"parallelism": np.ones(n), "counts": np.ones(k), "rates": rng.lognormal(0, 0.5, (n, k))}
        if self.goal == "queues":
            number = max(n // _QUEUES, 2)
            part = rng.dirichlet(np.ones(number)) * _GUARANTEED
            total = dict(zip((f"resource-{r + 1}" for r in range(m)), capacities.sum(axis=0), strict=True))
            given["queues"] = [fo.Queue(f"q{q}", guarantee={r: float(p * c) for r, c in total.items()}) for q, p in enumerate(part)]
            given["queue_of"] = [f"q{user % number}" for user in range(n)]
        instance = fo.Instance(capacities, demands, **given)
        if self.goal == "rule":
            instance = instance.replace(rules=[f"x['{instance.users[0]}'] >= 2 * x['{instance.users[1]}']"])
        return instance

    def program(self) -> Program:
        """Return the program from which the engine is chosen."""
        notion, options = GOALS[self.goal]
        program = fo.formulate(self.instance(), notion, **options)
        reduction = Reduction.of(program)
        return program if reduction is None else reduction.program

    def engines(self) -> list[str]:
        """Return the engines that are tried if none is named, in order."""
        return [engine.name for engine in candidates(self.program(), None)]


def _shapes(goal: str, *sizes: tuple[int, int, int]) -> Iterator[Cell]:
    return (Cell(goal, *size) for size in sizes)


def _varied(cells: Iterator[Cell], *changes: dict[str, Any]) -> Iterator[Cell]:
    """Yield each cell with each change; ``places`` is a part of the servers where it is below 1."""
    for cell in cells:
        for change in changes:
            places = change.get("places", 0)
            places = max(round(2 * places * cell.servers), 1) if 0 < places < 1 else min(places, cell.servers)
            if change.get("places", 0) and cell.servers == 1:
                continue
            yield replace(cell, **change | {"places": places})


_PLAIN: dict[str, Any] = {}
_LEVELS = {"places": SEVERAL, "takes": 0.7}
_SPARSE = {"places": 0.1}
_QUARTER = {"places": 0.25, "takes": 0.7}
_CAPS = {"caps": "tasks"}
_SPREAD = {"spread": 6.0}
_NETWORK = {"takes": 0.03}
_MOST = {"eligible": 0.9}
_EQUAL = {"spread": 0.0}
_DRAWS = tuple({"eligible": 0.3, "draw": draw} for draw in range(3))  # each user has many servers that are about as good
_ONE_EACH = {"caps": "parallelism"}
_SMALL = ((10, 3, 2), (40, 10, 2))
_MIDDLE = ((30, 100, 3), (200, 20, 3), (1000, 5, 2))
_LARGE = ((2000, 10, 3), (1000, 50, 3), (100, 300, 2))
_MANY_PAIRS = ((10_000, 10, 2), (2000, 50, 3), (1000, 100, 2))
_IN_GROUPS = (((200, 20, 3), 5), ((500, 100, 2), 4), ((1000, 40, 3), 10), ((3000, 60, 3), 20))
_MANY_SERVERS = ((500, 300, 3), (1000, 600, 3), (300, 800, 3))
_MORE_RESOURCES = ((3000, 100, 4), (4000, 50, 5), (10_000, 20, 4))
_POOLS = ((30, 1, 3), (1000, 1, 2), (100_000, 1, 1))


def grid() -> list[Cell]:
    """Return all cells."""
    cells: list[Cell] = []
    for goal in ("leximin", "proportional"):
        cells += _varied(_shapes(goal, *_SMALL, *_MIDDLE, *_LARGE), _PLAIN, _LEVELS, _CAPS, _CAPS | _LEVELS)
        cells += _varied(_shapes(goal, _MIDDLE[1], *_LARGE[1:]), _SPARSE)
        cells += _varied(_shapes(goal, _SMALL[1], *_MIDDLE[1:], _LARGE[0]), _SPREAD)
        cells += _varied(_shapes(goal, *_POOLS), _PLAIN, _CAPS, _SPREAD)
        cells += _varied(_shapes(goal, (100, 1, 100), (600, 1, 300)), _NETWORK, _NETWORK | _CAPS)
        cells += _varied(_shapes(goal, (1000, 1, 600)), _NETWORK | {"takes": 0.01})
        cells += _varied(_shapes(goal, (60, 3, 1), (400, 3, 1), (2000, 10, 1)), _ONE_EACH)
        cells += _varied(_shapes(goal, *_MANY_PAIRS), _PLAIN, _SPREAD)
    cells += _varied(_shapes("leximin", (100, 50, 3), (3000, 60, 3), (5000, 100, 3)), _LEVELS)
    cells += _varied(_shapes("leximin", (1000, 10, 3), (1000, 20, 3)), {"places": 0.25})
    cells += _varied(_shapes("leximin", (200, 20, 3), (466, 27, 3)), _QUARTER, _QUARTER | _CAPS)
    cells += _varied(_shapes("leximin", _MIDDLE[1], (500, 100, 3), (3000, 100, 4)), _MOST)
    cells += _varied(_shapes("leximin", _MANY_PAIRS[1]), _MOST | _EQUAL, _MOST | {"spread": 3.0}, _MOST | _SPREAD)
    cells += _varied(_shapes("proportional", (500, 50, 3), _MANY_PAIRS[1]), _MOST)
    for goal in ("leximin", "proportional", "alpha 0.5", "alpha 4"):
        cells += _varied(_shapes(goal, *_MANY_SERVERS), *_DRAWS)
    cells += _varied(_shapes("leximin", *_MORE_RESOURCES), _PLAIN)
    cells += _varied(_shapes("proportional", _MORE_RESOURCES[1]), _PLAIN)
    cells += _varied(_shapes("divided time", _MIDDLE[1]), _MOST)
    for size, groups in _IN_GROUPS:
        cells += _varied(_shapes("leximin", size), {"groups": groups})
    for goal in ("alpha 0.5", "alpha 4"):
        cells += _varied(_shapes(goal, _SMALL[1], *_MIDDLE, _LARGE[0], _POOLS[1]), _PLAIN, _LEVELS, _CAPS, _SPREAD)
    cells += _varied(_shapes("equal level", *_SMALL, *_MIDDLE, *_LARGE), _PLAIN, _LEVELS)
    cells += _varied(_shapes("total", *_SMALL, *_MIDDLE, *_LARGE, _POOLS[1]), _PLAIN, _LEVELS, _CAPS)
    cells += _varied(_shapes("trade-off", *_SMALL, *_MIDDLE, (500, 10, 2), (1000, 10, 2), _POOLS[1]), _PLAIN, _LEVELS)
    cells += _varied(_shapes("server by server", *_SMALL, *_MIDDLE, _LARGE[0]), _PLAIN, _CAPS)
    cells += _varied(_shapes("divided time", *_SMALL, *_MIDDLE, *_LARGE), _PLAIN, _LEVELS, _CAPS)
    cells += _varied(_shapes("divided time", (30, 1000, 2)), _PLAIN)
    cells += _varied(_shapes("queues", *_SMALL, *_MIDDLE), _PLAIN, _LEVELS, _CAPS)
    cells += _varied(_shapes("queues", _LARGE[0]), _PLAIN)
    cells += _varied(_shapes("queues", (200, 20, 3), (466, 27, 3)), _QUARTER, _QUARTER | _CAPS)
    cells += _varied(_shapes("queues", (400, 25, 3), (1000, 20, 3)), _PLAIN, _CAPS)
    cells += _varied(_shapes("rule", *_SMALL, *_MIDDLE), _PLAIN, _LEVELS)
    return cells
