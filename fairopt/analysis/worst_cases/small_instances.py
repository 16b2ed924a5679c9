"""Small instances of whole numbers: random draws, small changes, and shrinking.

A search for an instance with some property (`fairopt.worst_case`) uses them. In each instance, a task of every user fits on some empty
server where the user may run; a user whose task fits nowhere tells nothing.

**Shrinking.** The instance that a search finds has many features that the property does not need. Shrinking removes them one step at a
time, and keeps a step if the smaller instance still has the property. A step does one of the following:

    remove one user, server or resource
    remove all placement constraints, weights, counts, task limits or speeds; or those of one user or server
    let tasks of one user demand the same on every server
    express a resource in the largest unit that keeps its numbers whole
    lower one capacity, demand, weight, count, task limit or speed: to the smallest value, to half, or by one

Every step makes the instance smaller, so shrinking ends. At the end, no single step keeps the property (two steps at once might).

>>> small = SmallInstances(users=2, servers=1, resources=2, capacities=(4, 9), demands=(0, 3))
>>> instance = small.draw(np.random.default_rng(0))
>>> instance.capacities.tolist(), instance.demands.tolist()
([[9.0, 7.0]], [[2.0, 1.0], [1.0, 0.0]])
>>> *_, least = shrink(instance, lambda smaller: smaller.capacities[0, 0] >= 3 * smaller.demands[0, 0])
>>> least.capacities.tolist(), least.demands.tolist()
([[3.0]], [[1.0]])
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray, Instance
from fairopt.instance.by_server import as_given

__all__ = ["VARIED", "SmallInstances", "shrink", "simpler", "tasks_fit"]

VARIED = ("weights", "constraints", "counts", "tasks", "demands-by-server", "speeds")
_RANGES = {"weights": (1, 5), "counts": (1, 3), "tasks": (1, 5), "speeds": (1, 4)}
_PATIENCE = 10_000  # the most draws of one instance in which all tasks fit


@dataclass(frozen=True, slots=True)
class SmallInstances:
    """Instances of one size.

    Parameters
    ----------
    users, servers, resources : int
    capacities, demands : (int, int)
        Smallest and largest number.
    vary : words of `VARIED`
        What else is drawn: weights of 1 to 5; servers where a user may not run; rows of 1 to 3 servers; users with 1 to 5 tasks; other
        demands of a user on each server; speeds of 1 to 4 of a user on each server.
    """

    users: int
    servers: int
    resources: int
    capacities: tuple[int, int]
    demands: tuple[int, int]
    vary: tuple[str, ...] = ()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The arguments of `Instance` that are drawn, and their shapes."""
        n, k, m = self.users, self.servers, self.resources
        varied: dict[str, tuple[int, ...]] = {"weights": (n,), "eligibility": (n, k), "counts": (k,), "tasks": (n,), "speeds": (n, k)}
        chosen = {name: shape for name, shape in varied.items() if ("constraints" if name == "eligibility" else name) in self.vary}
        return {"capacities": (k, m), "demands": (n, k, m) if "demands-by-server" in self.vary else (n, m), **chosen}

    def draw(self, rng: np.random.Generator) -> Instance:
        """Return a random instance.

        Raises
        ------
        InvalidInstance
            If no instance is found in which a task of every user fits.
        """
        for _ in range(_PATIENCE):
            instance = _sound({name: self._random(name, rng) for name in self.shapes})
            if instance is not None:
                return instance
        raise InvalidInstance(
            f"of {_PATIENCE:,} random instances none had an empty server for each user's task; allow larger capacities, or smaller demands"
        )

    def change(self, instance: Instance, rng: np.random.Generator) -> Instance:
        """Return the instance with a few other numbers, or with two users or servers swapped."""
        for _ in range(_PATIENCE):
            arrays = self.arrays(instance)
            for _ in range(rng.geometric(0.5)):
                self._change_one(arrays, rng)
            changed = _sound(arrays)
            if changed is not None:
                return changed
        return instance

    def holds(self, instance: Instance) -> bool:
        """Say whether capacities and demands are at least the smallest allowed; shrinking may make them smaller."""
        return bool((instance.capacities >= self.capacities[0]).all() and (instance.demands_by_kind >= self.demands[0]).all())

    def arrays(self, instance: Instance) -> dict[str, npt.NDArray[Any]]:
        """Return the arguments of an instance of this size that are drawn: `Instance` makes the same instance of them."""
        return {name: self._array(instance, name) for name in self.shapes}

    def _array(self, instance: Instance, name: str) -> npt.NDArray[Any]:
        """Return an argument of an instance of this size, in the shape in which it is drawn."""
        if name == "demands" and len(self.shapes[name]) == 3:
            return np.array(instance.demands_by_kind[:, instance.kind_of])
        return np.array(instance.speeds if name == "speeds" else _given(instance, name))

    def _random(self, name: str, rng: np.random.Generator) -> npt.NDArray[Any]:
        shape = self.shapes[name]
        if name == "eligibility":
            return rng.random(shape) < 0.7
        return rng.integers(*self._range(name), shape, endpoint=True).astype(float)

    def _range(self, name: str) -> tuple[int, int]:
        return {"capacities": self.capacities, "demands": self.demands, **_RANGES}[name]

    def _change_one(self, arrays: dict[str, npt.NDArray[Any]], rng: np.random.Generator) -> None:
        sizes = np.array([array.size for array in arrays.values()])
        name = list(arrays)[rng.choice(sizes.size, p=sizes / sizes.sum())]
        array, how = arrays[name], rng.integers(4)
        if how == 0 and len(array) > 1:  # order breaks ties, and says which server is first
            pair = rng.choice(len(array), 2, replace=False)
            array[pair] = array[pair[::-1]]
            return
        position = tuple(rng.integers(array.shape))
        if how == 1 and name != "eligibility":
            array[position] = np.clip(array[position] + rng.choice([-1, 1]), *self._range(name))
        else:
            array[position] = self._random(name, rng)[position]


def tasks_fit(instance: Instance) -> bool:
    """Say whether one task of each user fits on some empty server where the user may run."""
    demands = instance.demands_by_kind[:, instance.kind_of]
    return bool((instance.eligibility & (demands <= instance.capacities).all(axis=2)).any(axis=1).all())


def _sound(arguments: dict[str, Any]) -> Instance | None:
    """Return the instance if it is valid and a task of every user fits; else None."""
    try:
        instance = Instance(**arguments)
    except InvalidInstance:  # such as a user who demands nothing
        return None
    return instance if tasks_fit(instance) else None


def _given(instance: Instance, name: str) -> Any:
    """Return an argument of an instance, None for its default; demands by server only where they differ."""
    if name == "demands":
        return as_given(instance.demands_by_kind, instance.kind_of)
    return getattr(instance, {"eligibility": "placement", "rates": "rates_per_server", "speeds": "speeds_given"}.get(name, name))


# Shrinking -----------------------------------------------------------------------------------------------------------------------


def shrink(instance: Instance, keeps: Callable[[Instance], bool], refused: int = 0) -> Iterator[Instance]:
    """Yield the instance, then the instance after each step for which ``keeps`` is true; the last one is minimal.

    So many candidates of the first step as ``refused`` are known not to keep it.
    """
    smaller: Instance | None = instance
    while smaller is not None:
        yield smaller
        candidates = itertools.islice(simpler(smaller), refused, None)
        smaller, refused = next((candidate for candidate in candidates if keeps(candidate)), None), 0


def simpler(instance: Instance) -> Iterator[Instance]:
    """Yield the instances that are one step smaller and in which a task of every user fits, the largest steps first."""
    for changes in _steps(instance):
        try:
            candidate = instance.replace(**changes)
        except InvalidInstance:
            continue
        if tasks_fit(candidate):
            yield candidate


def _steps(instance: Instance) -> Iterator[dict[str, Any]]:
    """Yield, for each step, the arguments of the instance that the step changes."""
    yield from _without_a_row(instance)
    plain: dict[str, Any] = {
        "eligibility": True, "weights": 1.0, "counts": 1.0, "tasks": np.inf, "parallelism": np.inf, "speeds": 1.0,
    }  # fmt: skip
    given = {name: _given(instance, name) for name in plain}
    special = {name: value for name, value in given.items() if value is not None and not np.all(value == plain[name])}
    for name in special:
        yield {name: None}
    for name, value in special.items():
        for j in range(len(value)):
            if not np.all(value[j] == plain[name]):
                yield {name: _changed(value, j, plain[name])}
    demands = _given(instance, "demands")
    differ = _that_differ(demands)
    for n in differ:
        for i in range(instance.n_servers):
            yield {"demands": _changed(demands, n, demands[n, i])}
    for r in range(instance.n_resources):
        column = np.concatenate([instance.capacities[:, r], demands[..., r].ravel()])
        unit = np.gcd.reduce(column.astype(np.int64)) if (column == np.round(column)).all() else 0
        if unit > 1:
            scale = np.where(np.arange(instance.n_resources) == r, unit, 1)
            yield {"capacities": instance.capacities / scale, "demands": demands / scale}
    least = {"capacities": 0.0, "demands": 0.0, "weights": 1.0, "counts": 1.0, "tasks": 1.0, "speeds": 1.0}
    for name, lowest in least.items():
        values = _given(instance, name)
        for position in () if values is None else _positions(values, differ):
            for value in _lower(float(np.max(values[position])), lowest):
                yield {name: _changed(values, position, value)}


def _positions(values: FloatArray, differ: list[int]) -> Iterator[Any]:
    """Yield the position of each number; of demands by server that are alike one for all servers, since otherwise a user differed anew."""
    for position in np.ndindex(values.shape):
        if values.ndim < 3 or position[0] in differ:
            yield position
        elif position[1] == 0:
            yield position[0], slice(None), position[2]


def _that_differ(demands: FloatArray) -> list[int]:
    """Return the users whose demands differ by server."""
    return [] if demands.ndim == 2 else [int(n) for n in np.flatnonzero((demands != demands[:, :1]).any(axis=(1, 2)))]


def _without_a_row(instance: Instance) -> Iterator[dict[str, Any]]:
    """Yield the arguments of each instance without one user, server or resource."""
    axes = {  # of each argument
        "users": dict.fromkeys(
            ("users", "demands", "weights", "tasks", "parallelism", "eligibility", "rates", "speeds", "guarantees", "queue_of"), 0
        ),
        "servers": {"servers": 0, "capacities": 0, "counts": 0, "eligibility": 1, "rates": 1, "speeds": 1},
        "resources": {"resources": 0, "capacities": 1, "demands": -1} | ({"weights": 1} if instance.weights.ndim == 2 else {}),
    }
    if instance.demands_by_kind.shape[1] > 1:
        axes["servers"]["demands"] = 1
    for what, arguments in axes.items():
        number = len(getattr(instance, what))
        for j in range(number if number > 1 else 0):
            changes = {}
            for name, axis in arguments.items():
                value = _given(instance, name)
                labels = name in (what, "queue_of")
                changes[name] = None if value is None else (*value[:j], *value[j + 1 :]) if labels else np.delete(value, j, axis)
            yield changes


def _changed(values: Any, position: Any, value: Any) -> Any:
    changed = np.array(values)
    changed[position] = value
    return changed


def _lower(value: float, least: float) -> FloatArray:
    """Return smaller numbers: ``least``, half of ``value``, and ``value`` less one.

    >>> _lower(9.0, 0.0), _lower(1.5, 1.0), _lower(1.0, 1.0), _lower(float("inf"), 1.0)
    (array([0., 4., 8.]), array([1.]), array([], dtype=float64), array([], dtype=float64))
    """
    if not least < value < np.inf:
        return np.empty(0)
    return np.unique(np.maximum([least, np.floor(value / 2), np.ceil(value) - 1], least))
