"""A box of instances: the topology of a cluster, and a range for each number that varies.

Servers, users, counts and eligibility are those of one instance. Demands, weights, numbers of tasks, capacities and speeds lie between a
smallest and a largest number each; what does not vary has one number. The instance with all numbers given need not lie in the box. Rules
(`fairopt.analysis.bounds.data_rules`) may leave out a part of it.

>>> import fairopt as fo
>>> box = Box.of(fo.Instance([[10, 2], [2, 10]], [[1, 1], [1, 1]]), {"demands": (1, 2)})
>>> box.ranges.low["demands"].tolist(), box.ranges.high["demands"].tolist()
([[1.0, 1.0], [1.0, 1.0]], [[2.0, 2.0], [2.0, 2.0]])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from fairopt.analysis.bounds.data_rules import VARY, Data, DataRules
from fairopt.errors import InvalidInstance, NoSolution, Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.wording import brief, did_you_mean, joined

__all__ = ["VARY", "Box", "Ranges"]

_ENDS = 0.5  # part of the numbers of a random instance that are ends of their ranges: the worst often is


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """The smallest and the largest number of each datum, by the words of `VARY`; capacities are those of a whole row of servers."""

    low: Data
    high: Data

    def with_part(self, name: str, position: tuple[int, ...], low: float, high: float) -> Ranges:
        """Return the ranges with another range of one number."""
        lows, highs = self.low[name].copy(), self.high[name].copy()
        lows[position], highs[position] = low, high
        return Ranges({**self.low, name: lows}, {**self.high, name: highs})

    def widest(self) -> tuple[float, str, tuple[int, ...]]:
        """Return the widest range, relative to its largest number: how wide, of what, and where."""
        return max(self._widths(), key=lambda width: width[0])

    def _widths(self) -> Iterator[tuple[float, str, tuple[int, ...]]]:
        for name in VARY:
            low, high = self.low[name], self.high[name]
            wide = 1 - np.divide(low, high, out=np.ones_like(high), where=(high > low) & np.isfinite(high))
            position = np.unravel_index(int(wide.argmax()), wide.shape)
            yield float(wide[position]), name, tuple(map(int, position))

    def split(self) -> tuple[Ranges, Ranges]:
        """Return both halves of the ranges, cut through the widest."""
        _, name, position = self.widest()
        low, high = float(self.low[name][position]), float(self.high[name][position])
        middle = (low + high) / 2
        return self.with_part(name, position, low, middle), self.with_part(name, position, middle, high)

    def at(self, part: float) -> Ranges:
        """Return the point of the ranges that lies ``part`` of the way from the smallest numbers to the largest, as ranges."""
        point = {name: _between(self.low[name], self.high[name], part) for name in VARY}
        return Ranges(point, point)

    @property
    def data(self) -> Data:
        """The numbers, where the ranges are a point."""
        return self.low


def _between(low: FloatArray, high: FloatArray, part: float) -> FloatArray:
    with np.errstate(invalid="ignore"):  # inf - inf of tasks without a limit
        return np.where(low == high, low, low + part * (high - low))


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """All instances with the topology of ``instance`` whose data lie in ``ranges`` and keep ``rules``; ``varied`` names what varies."""

    instance: Instance
    ranges: Ranges
    varied: tuple[str, ...]
    rules: DataRules

    @classmethod
    def of(cls, instance: Instance, vary: Mapping[str, Any], where: Sequence[str] = ()) -> Box:
        """Return the box of what varies: name -> (smallest, largest), each a number or an array in the shape of the argument.

        ``where`` are rules on the numbers. Ranges without numbers that break a rule are smaller.

        Raises
        ------
        Unsupported
            ``vary`` names what cannot vary.
        InvalidInstance
            A range is empty, or has no end. A rule cannot be read, or no instance keeps all of them.
        """
        if not isinstance(cast(Any, instance), Instance):
            raise InvalidInstance(f"cluster is {type(instance).__name__}; give a fairopt.Instance, or what fairopt.load returns")
        if not isinstance(vary, Mapping):
            raise Unsupported(
                f'vary is {vary!r}; with a cluster, give what varies and between which numbers, such as vary={{"demands": (1, 2)}}'
            )
        if not vary:
            raise Unsupported('vary is empty, so the box has a single instance; give what varies, such as vary={"demands": (1, 2)}')
        kinds = instance.demands_by_kind  # where demands differ by server, the box has no bound, and demands cannot vary
        given = {
            "demands": kinds[:, 0] if kinds.shape[1] == 1 else kinds[:, instance.kind_of], "weights": instance.weights,
            "tasks": instance.tasks, "capacities": instance.capacities, "speeds": instance.speeds,
        }  # fmt: skip
        low, high = dict(given), dict(given)
        for name, pair in vary.items():
            if name not in VARY:
                raise Unsupported(f'"{name}" cannot vary{did_you_mean(str(name), VARY)}; use any of {", ".join(VARY)}')
            low[name], high[name] = _range(instance, name, pair, given[name].shape)
        for side in (low, high):
            side["capacities"] = side["capacities"] * instance.counts[:, None]
        varied, rules = tuple(name for name in VARY if name in vary), DataRules.of(where, instance, low, high)
        if rules and (broken := rules.broken(low, high)):
            raise InvalidInstance(
                f"the box is empty: no instance of it keeps {_quoted(broken)}; leave a rule out, or give a wider range of what it names"
            )
        return cls(instance, cls(instance, Ranges(low, high), varied, rules).cut(Ranges(low, high)) or Ranges(low, high), varied, rules)

    def cut(self, ranges: Ranges) -> Ranges | None:
        """Return a part of the ranges without numbers that break a rule, whatever the others are; None if nothing is left."""
        if not self.rules:
            return ranges
        found = self.rules.cut(ranges.low, ranges.high)
        return None if found is None else Ranges(*found)

    def kept(self, data: Data, ranges: Ranges | None = None) -> Data | None:
        """Return the data if they keep all rules, else data near them that do, of some ranges; None if none are found."""
        if not self.rules or self.rules.keeps(data):
            return data
        within = self.ranges if ranges is None else ranges
        return self.rules.nearest(data, within.low, within.high)

    @property
    def ruled(self) -> BoolArray:
        """Users about whose demands there is a rule, (users,)."""
        return np.asarray(self.rules.named("demands", self.ranges.low).any(axis=1))

    @property
    def tied(self) -> BoolArray:
        """Users about whose numbers there is a rule, (users,)."""
        low = self.ranges.low
        of_speeds = self.rules.named("speeds", low).any(axis=1)
        return np.asarray(self.ruled | self.rules.named("weights", low) | self.rules.named("tasks", low) | of_speeds)

    @property
    def eligible(self) -> tuple[BoolArray, BoolArray]:
        """Pairs of a user and a server that can run tasks in every instance of the box, and in some instance, (users, servers) each."""
        allowed = self.instance.placement
        placed = np.ones((self.instance.n_users, self.instance.n_servers), bool) if allowed is None else np.asarray(allowed, bool)
        always = _fits(self.ranges.high["demands"], self.ranges.low["capacities"]) & (self.ranges.low["speeds"] > 0)
        some = _fits(self.ranges.low["demands"], self.ranges.high["capacities"]) & (self.ranges.high["speeds"] > 0)
        return placed & always, placed & some

    @property
    def has_speeds(self) -> bool:
        """Does some task do other work than 1 somewhere? Then shares and totals count work."""
        return bool((self.ranges.low["speeds"] != 1).any() or (self.ranges.high["speeds"] != 1).any())

    @property
    def total_capacity(self) -> FloatArray:
        """The largest capacity of the whole cluster in the box, (resources,)."""
        return np.asarray(self.ranges.high["capacities"].sum(axis=0))

    def at(self, data: Data) -> Instance:
        """Return an instance of the box."""
        changes: dict[str, Any] = {name: data[name] for name in self.varied}
        if "capacities" in changes:
            changes["capacities"] = changes["capacities"] / self.instance.counts[:, None]
        return self.instance.replace(**changes)

    def draw(self, rng: np.random.Generator) -> Data:
        """Return the data of a random instance: of each number that varies, half the time an end, else evenly from its range.

        Data that break a rule are moved to near ones that keep all.

        Raises
        ------
        NoSolution
            No such data are found.
        """
        data = {name: self.ranges.low[name] for name in VARY}
        for name in self.varied:
            low, high = self.ranges.low[name], self.ranges.high[name]
            part = np.where(rng.random(low.shape) < _ENDS, rng.integers(0, 2, low.shape), rng.random(low.shape))
            with np.errstate(invalid="ignore"):  # inf - inf of tasks without a limit
                data[name] = np.where(low == high, low, np.clip(low + part * (high - low), low, high))
        found = self.kept(data)
        if found is None:
            raise NoSolution(
                "no numbers near random ones were found that keep all rules of the box; give wider ranges, or leave a rule out"
            )
        return found

    def check(self) -> None:
        """Refuse what no branch and bound knows, and boxes with instances that are invalid.

        Raises
        ------
        Unsupported, InvalidInstance
        """
        _check_topology(self.instance)
        low, high = self.ranges.low, self.ranges.high
        nothing = np.flatnonzero(~(low["demands"] > 0).any(axis=1))
        if nothing.size:
            raise InvalidInstance(
                f'{self._user(nothing[0])} demands nothing at the low end of "demands"; give a smallest demand > 0 of at least one resource'
            )
        for name in ("weights", "tasks"):
            if not (low[name] > 0).all():
                raise InvalidInstance(f'the smallest number of "{name}" is {low[name].min():g}; give one > 0')
        if (low["speeds"] < high["speeds"])[low["speeds"] == 0].any():
            raise InvalidInstance('the smallest number of "speeds" is 0 where the largest is more; give one > 0')
        if self.has_speeds and np.isfinite(high["tasks"]).any():
            raise Unsupported("no bound is known where users have finitely many tasks and speeds differ from 1; leave tasks or speeds out")
        total = low["capacities"].sum(axis=0)
        lacking = (total == 0) & (high["demands"] > 0).any(axis=0)
        if lacking.any():
            resource = self.instance.resources[int(np.flatnonzero(lacking)[0])]
            raise InvalidInstance(
                f'the cluster may have no "{resource}", and users may demand it; give a smallest capacity > 0 of a server'
            )
        never = np.flatnonzero(~self.eligible[0].any(axis=1))
        if never.size:
            raise InvalidInstance(
                f"{self._user(never[0])} can run on no server in some instance of the box; "
                "give larger capacities, smaller demands or more servers"
            )

    def _user(self, n: int) -> str:
        return f'user "{self.instance.users[n]}"'


def _quoted(rules: Sequence[str]) -> str:
    """Return rules as a message names them."""
    return ("the rule " if len(rules) == 1 else "the rules ") + joined([f'"{brief(rule)}"' for rule in rules])


def _fits(demands: FloatArray, capacities: FloatArray) -> BoolArray:
    return np.asarray(((demands[:, None] == 0) | (capacities[None] > 0)).all(axis=2), bool)


def _range(instance: Instance, name: str, pair: Any, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        raise InvalidInstance(f'the range of "{name}" is {pair!r}; give the smallest and the largest number, such as (1, 2)')
    ends = []
    for word, given in zip(("smallest", "largest"), pair, strict=True):
        try:
            values = np.array(np.broadcast_to(np.asarray(given, float), shape))
        except (TypeError, ValueError) as error:
            raise InvalidInstance(f'the {word} numbers of "{name}" are {given!r}; give a number, or an array of shape {shape}') from error
        if np.isnan(values).any() or (values < 0).any():
            raise InvalidInstance(f'the {word} numbers of "{name}" are {given!r}; give numbers >= 0')
        ends.append(values)
    low, high = ends
    same = low == high
    endless = ~np.isfinite(high) & ~(same & (name == "tasks"))
    if endless.any():
        raise InvalidInstance(
            f'the range of "{name}" has no largest number{_where(instance, name, endless)}: a bound needs a bounded box; give a finite one'
        )
    if (low > high).any():
        first = tuple(np.argwhere(low > high)[0])
        raise InvalidInstance(
            f'the range of "{name}" is empty{_where(instance, name, low > high)}: from {low[first]:g} to {high[first]:g}; '
            "give the smallest number first"
        )
    return low, high


def _where(instance: Instance, name: str, wrong: BoolArray) -> str:
    """Return the first place of a mistake, where not all places have it."""
    if wrong.all():
        return ""
    position = np.argwhere(wrong)[0]
    rows = instance.servers if name == "capacities" else instance.users
    resource = f', "{instance.resources[position[1]]}"' if position.size > 1 else ""
    return f' at "{rows[position[0]]}"{resource}'


def _check_topology(instance: Instance) -> None:
    """Refuse what no branch and bound knows."""
    has = {
        "queues": bool(instance.queues),
        "named limits": bool(instance.selections),
        "rules": bool(instance.rules),
        "resources of the whole cluster": bool(instance.shared),
        "demands that differ by server": instance.demands_by_kind.shape[1] > 1,
        "rates": instance.rates_per_server is not None,
        "limited parallelism": bool(np.isfinite(instance.parallelism).any()),
        "guarantees": bool(np.any(instance.guarantees)),
        "weights per resource": instance.weights.ndim == 2,
    }
    if there := [word for word, yes in has.items() if yes]:
        raise Unsupported(
            f"the cluster has {joined(there)}; bounds are known for servers, demands, weights, numbers of tasks, speeds and eligibility: "
            "leave the rest out, or search without bound=True"
        )
