"""Rules on the data of a box: linear conditions that the numbers of an instance keep, such as ``tasks[a] + tasks[b] <= 12``.

    lower <= A z <= upper,     z the numbers of the instance that vary, each within its range

A term is ``weights[user]``, ``tasks[user]``, ``demands[user, resource]``, ``speeds[user, server]`` or ``capacities[server, resource]``,
which is that of one server of the row. ``'*'`` in the place of a name stands for all of them: their numbers are added.

*Ranges.* A row bounds each of its terms by the ends of the others: so ranges shrink, and those in which a rule is broken everywhere are
left out. All ends are rounded outwards. As ranges shrink to a point, nothing but points that keep each rule is left.

>>> import fairopt as fo
>>> pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], resources=["cpu"], tasks=[5, 5])
>>> low = {"demands": pool.demands, "weights": pool.weights, "tasks": np.array([1.0, 2.0]), "capacities": pool.capacities}
>>> low["speeds"] = pool.speeds
>>> rules = DataRules.of(["tasks[a] + tasks['b'] <= 6"], pool, low, low | {"tasks": np.array([5.0, 5.0])})
>>> rules.cut(low, low | {"tasks": np.array([5.0, 5.0])})[1]["tasks"].round(6)
array([4., 5.])
>>> rules.keeps(low | {"tasks": np.array([3.0, 3.5])})
False
>>> rules.nearest(low | {"tasks": np.array([3.0, 3.5])}, low, low | {"tasks": np.array([5.0, 5.0])})["tasks"].sum().round(6)
np.float64(6.0)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.instance.rules import RuleReader
from fairopt.instance.tolerances import NOTHING, SAME
from fairopt.solvers.highs_model import HighsModel, Status
from fairopt.wording import brief, did_you_mean

__all__ = ["VARY", "Data", "DataRules"]

VARY = ("demands", "weights", "tasks", "capacities", "speeds")
"""What may vary in a box: data of the instance, by the names of its arguments."""

Data: TypeAlias = Mapping[str, FloatArray]

_ALL = "*"
_PASSES = 10  # over the rows, while ranges shrink


class _DataReader(RuleReader):
    """The text of a rule on data."""

    words: ClassVar[tuple[str, ...]] = VARY
    example: ClassVar[str] = "demands[alice, gpu] <= 2 * demands['lab/bob', gpu]"

    def term(self, word: str, keys: tuple[str, ...]) -> Hashable:
        """Return the word and its names."""
        return (word, *keys)


@dataclass(frozen=True, slots=True, eq=False)
class DataRules:
    """The rules as rows over all data, in the order of `VARY`, one number after another.

    Attributes
    ----------
    texts : (rules,) of str
    rows : (rules, numbers)
        Of numbers that vary; of capacities those of whole rows of servers.
    lower, upper : (rules,)
    """

    texts: tuple[str, ...]
    rows: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, texts: Sequence[str], instance: Instance, low: Data, high: Data) -> DataRules:
        """Return the rules on the data of an instance.

        Raises
        ------
        InvalidInstance
            A text is no rule, or names what is not there, what has no end, or demands or weights of which a user has several.
        """
        if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
            raise InvalidInstance(
                f'where is {texts!r}; give a list of rules on the numbers that vary, such as where=["{_DataReader.example}"]'
            )
        smallest, largest = _flat(low), _flat(high)
        fixed = smallest == largest
        rows, lower, upper = [], [], []
        for text in texts:
            left, sense, right = _DataReader(text).read()
            whole = left - right
            row, bound = np.zeros(smallest.size), -float(whole.constant)
            for term, value in whole.terms.items():
                row[_positions(text, term, instance, low)] += float(value) / _counts(term, instance)
            endless = (row != 0) & ~np.isfinite(largest)
            if endless.any():
                raise InvalidInstance(
                    f'the rule "{brief(text)}" is about tasks of a user who has no task limit; vary "tasks" between two numbers'
                )
            if not (row[~fixed] != 0).any():
                raise InvalidInstance(f'the rule "{brief(text)}" is about nothing that varies; leave it out, or vary what it names')
            bound -= float(row[fixed] @ np.where(row[fixed] != 0, smallest[fixed], 0.0))
            row[fixed] = 0.0
            rows.append(row)
            lower.append(-np.inf if sense == "<=" else bound)
            upper.append(np.inf if sense == ">=" else bound)
        return cls(tuple(texts), np.reshape(rows, (len(rows), smallest.size)), np.array(lower), np.array(upper))

    def __bool__(self) -> bool:
        return bool(self.texts)

    def without(self, index: int) -> DataRules:
        """Return all rules but one."""
        kept = np.arange(len(self.texts)) != index
        texts = tuple(text for k, text in enumerate(self.texts) if k != index)
        return replace(self, texts=texts, rows=self.rows[kept], lower=self.lower[kept], upper=self.upper[kept])

    def named(self, name: str, like: Data) -> BoolArray:
        """Return which numbers of a datum rules are about, in its shape in ``like``."""
        return np.asarray(_shaped((self.rows != 0).any(axis=0), like)[name])

    def terms(self, like: Data) -> Iterator[list[tuple[str, int, float]]]:
        """Yield the terms of each rule: a word of `VARY`, the place of the number among those of the word, and the coefficient."""
        for row in self.rows:
            of_word = _shaped(row, like)
            yield [(word, int(at), float(of_word[word].flat[at])) for word in VARY for at in np.flatnonzero(of_word[word])]

    def keeps(self, data: Data) -> bool:
        """Say whether data keep all rules, up to rounding."""
        z = self._finite(_flat(data))
        value, room = self.rows @ z, NOTHING * self._size(np.abs(self.rows) @ np.abs(z))
        return bool((value <= self.upper + room).all() and (value >= self.lower - room).all())

    def cut(self, low: Data, high: Data) -> tuple[Data, Data] | None:
        """Return the ranges without numbers that break a rule, whatever the others are; None if nothing is left."""
        least, most = _flat(low), _flat(high)
        for _ in range(_PASSES):
            before = least.copy(), most.copy()
            for row, lower, upper in zip(self.rows, self.lower, self.upper, strict=True):
                if not self._tighten(row, lower, upper, least, most):
                    return None
            if ((least <= before[0] + NOTHING * most) & (most >= before[1] * (1 - NOTHING))).all():
                break
        return _shaped(least, low), _shaped(most, low)

    @staticmethod
    def _tighten(row: FloatArray, lower: float, upper: float, least: FloatArray, most: FloatArray) -> bool:
        """Shrink the ranges of a row's terms in place; say whether anything is left."""
        at = np.flatnonzero(row)
        a = row[at]
        ends = np.where(a > 0, a * least[at], a * most[at]), np.where(a > 0, a * most[at], a * least[at])
        size = np.abs(np.concatenate([*ends, np.array([lower, upper])]))
        room = SAME * float(size[np.isfinite(size)].sum())
        small, large = float(ends[0].sum()), float(ends[1].sum())
        if small > upper + room or large < lower - room:
            return False
        others = upper - (small - ends[0]), lower - (large - ends[1])  # the most, and the least, that each term may be
        top = (others[0] + room) / a
        bottom = (others[1] - room) / a
        most[at] = np.clip(np.where(a > 0, top, bottom), least[at], most[at])
        least[at] = np.clip(np.where(a > 0, bottom, top), least[at], most[at])
        return True

    def nearest(self, data: Data, low: Data, high: Data) -> Data | None:
        """Return data within the ranges that keep all rules, near the given ones, in parts of the ranges; None if none are found."""
        z, least, most = (self._finite(_flat(each)) for each in (data, low, high))
        at = np.flatnonzero((self.rows != 0).any(axis=0))
        width = most[at] - least[at]
        unit = np.where(width > 0, width, 1.0)
        n = at.size  # columns: how far each number is above the smallest, and above and below the given one, in units
        rows = self.rows[:, at] * unit
        size = self._size(np.abs(rows).sum(axis=1))
        beside = sp.csr_array((len(rows), 2 * n))
        matrix = sp.csr_array(
            sp.vstack(
                [sp.hstack([sp.csr_array(rows / size[:, None]), beside]), sp.hstack([sp.eye_array(n), -sp.eye_array(n), sp.eye_array(n)])]
            )
        )
        moved = (np.clip(z[at], least[at], most[at]) - least[at]) / unit
        cost = np.concatenate([np.zeros(n), -np.ones(2 * n)])
        top = np.concatenate([width / unit, np.ones(2 * n)])
        start = self.rows[:, at] @ least[at]
        ends = (self.lower - start) / size, (self.upper - start) / size
        for margin in (NOTHING, 0.0):  # off the rules by a little, where there is room, so that rounding breaks none
            inner = np.minimum(ends[0] + margin, ends[1]), np.maximum(ends[1] - margin, ends[0])
            lower, upper = (np.concatenate([side, moved]) for side in inner)
            found = HighsModel(cost, np.zeros(3 * n), top, matrix, lower, upper).run(np.inf)
            if found.status is Status.OPTIMAL:
                answer = z.copy()
                answer[at] = np.clip(least[at] + unit * found.x[:n], least[at], most[at])
                near = _shaped(np.where(np.isfinite(_flat(data)), answer, _flat(data)), data)
                if self.keeps(near):
                    return near
        return None

    def broken(self, low: Data, high: Data) -> tuple[str, ...]:
        """Return rules that no data within the ranges keep together, of which none can be left out; () if some data keep all."""
        if self.nearest(low, low, high) is not None:
            return ()
        rules = self
        for index in reversed(range(len(self.texts))):
            fewer = rules.without(index)
            if fewer.texts and fewer.nearest(low, low, high) is None:
                rules = fewer
        return rules.texts

    @staticmethod
    def _finite(values: FloatArray) -> FloatArray:
        return np.where(np.isfinite(values), values, 0.0)

    def _size(self, values: FloatArray) -> FloatArray:
        bounds = np.maximum(*(np.where(np.isfinite(side), np.abs(side), 0.0) for side in (self.lower, self.upper)))
        size: FloatArray = np.maximum(values, bounds)
        return np.where(size > 0, size, 1.0)


def _flat(data: Data) -> FloatArray:
    """Return all numbers, one after another, as a copy."""
    return np.concatenate([np.ravel(data[name]) for name in VARY])


def _shaped(values: Any, like: Data) -> Data:
    """Return numbers, one after another, in the shapes of data."""
    ends = np.cumsum([like[name].size for name in VARY])[:-1]
    return {name: part.reshape(like[name].shape) for name, part in zip(VARY, np.split(values, ends), strict=True)}


def _names(word: str, instance: Instance) -> tuple[tuple[str, Sequence[str]], ...]:
    """Return what the names in brackets are names of, and which there are."""
    users, servers, resources = ("user", instance.users), ("server", instance.servers), ("resource", instance.resources)
    return {"demands": (users, resources), "capacities": (servers, resources), "speeds": (users, servers)}.get(word, (users,))


def _positions(text: str, term: Any, instance: Instance, low: Data) -> Any:
    """Return the places of a term's numbers among all data."""
    word, *keys = term
    kinds = _names(word, instance)
    if len(keys) != len(kinds):
        form = ", ".join(what.upper() for what, _ in kinds)
        raise InvalidInstance(f"the rule \"{brief(text)}\" has {word}[{', '.join(keys)}]; write {word}[{form}], or '*' for all")
    if low[word].ndim > len(kinds):  # demands of each server, or weights of each resource: no single number is meant
        what = "server" if word == "demands" else "resource"
        raise InvalidInstance(
            f'the rule "{brief(text)}" has {word}[{", ".join(keys)}], and the {word} of this cluster differ by {what}; leave the rule out'
        )
    where = []
    for key, (what, known) in zip(keys, kinds, strict=True):
        if key in known:
            where.append(np.array([list(known).index(key)]))
        elif key == _ALL:
            where.append(np.arange(len(known)))
        else:
            raise InvalidInstance(f'the rule "{brief(text)}" names no {what} of the cluster: "{brief(key)}"{did_you_mean(key, known)}')
    first = sum(low[name].size for name in VARY[: VARY.index(word)])
    shape = low[word].shape
    return first + np.arange(low[word].size).reshape(shape)[np.ix_(*where)].ravel()


def _counts(term: Any, instance: Instance) -> Any:
    """Return by how much a term's numbers are multiplied in a box: capacities are those of all servers of a row."""
    word, *keys = term
    if word != "capacities":
        return 1.0
    of_row = np.repeat(instance.counts[:, None], len(instance.resources), axis=1).astype(float)
    rows = slice(None) if keys[0] not in instance.servers else [list(instance.servers).index(keys[0])]
    columns = slice(None) if keys[1] not in instance.resources else [list(instance.resources).index(keys[1])]
    return of_row[rows][:, columns].ravel()
