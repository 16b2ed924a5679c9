r"""Means over seeds, their intervals, and differences of pairs.

Of values :math:`x_1, \dots, x_n`, one for each seed, with mean :math:`m` and standard deviation
:math:`s = \sqrt{\sum_k (x_k - m)^2 / (n - 1)}`, the interval is :math:`m \pm h`:

* ``se``: the standard error of the mean, :math:`h = s / \sqrt n`;
* ``sd``: the standard deviation, :math:`h = s`: how much single seeds differ;
* ``ci95``: the 95 % confidence interval of the mean, :math:`h = t\, s / \sqrt n`, where :math:`t` is the 0.975 quantile of Student's t with
  :math:`n - 1` degrees of freedom (Student 1908).

A seed draws the same instance for every entry of a study, so the entries are *paired*. The interval of a difference is that of the
differences, seed by seed. It is usually much narrower than the intervals of the two means suggest.

>>> import numpy as np
>>> spread(np.array([1.0, 2.0, 3.0, 4.0]), "se").__round__(4), spread(np.array([1.0, 2.0, 3.0, 4.0]), "ci95").__round__(4)
(0.6455, 2.0543)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.wording import did_you_mean, joined

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SUFFIXES", "Interval", "Key", "Mean", "Means", "mean_of", "paired", "spread"]

Interval: TypeAlias = Literal["se", "sd", "ci95"]
Key: TypeAlias = tuple[str, str]  # instance and entry

SUFFIXES: Mapping[Interval, str] = {"se": "error", "sd": "sd", "ci95": "ci95"}
"""How a column of half widths is called, behind the name of the measure."""

_ROUNDING = 1e-9  # relative: what exact allocations of two engines may differ by
_LEVEL = 0.975  # quantile of a two-sided interval of 95 %


class Mean(NamedTuple):
    """A mean over seeds.

    Attributes
    ----------
    value : float
        The mean; nan of no seed.
    spread : float
        Half of the width of its interval; nan of fewer than two seeds.
    seeds : int
        How many seeds have a value.
    """

    value: float
    spread: float
    seeds: int


def spread(values: FloatArray, interval: Interval) -> float:
    """Return half of the width of the interval of the mean of some values; nan if there are fewer than two."""
    number = len(values)
    if number < 2:
        return math.nan
    deviation = float(np.std(values, ddof=1))
    if interval == "sd":
        return deviation
    error = deviation / math.sqrt(number)
    if interval == "se":
        return error
    from scipy.special import stdtrit  # the quantile alone: scipy.stats takes a second to import

    return float(stdtrit(number - 1, _LEVEL)) * error


def mean_of(values: Mapping[int, float], interval: Interval) -> Mean:
    """Return the mean over those seeds that have a value.

    >>> mean_of({0: 1.0, 1: 3.0, 2: float("nan")}, "sd")
    Mean(value=2.0, spread=1.4142135623730951, seeds=2)
    """
    known = np.array([value for value in values.values() if not math.isnan(value)])
    return Mean(float(known.mean()) if known.size else math.nan, spread(known, interval), known.size)


def paired(values: Mapping[int, float], reference: Mapping[int, float], interval: Interval) -> Mean:
    """Return the mean of the differences to a reference, over the seeds that both have; a difference of rounding is 0.

    >>> paired({0: 2.0, 1: 5.0, 2: 9.0}, {0: 1.0, 1: 4.0}, "se"), paired({0: 0.3}, {0: 0.1 + 0.2}, "se").value
    (Mean(value=1.0, spread=0.0, seeds=2), 0.0)
    """
    seeds = [seed for seed in values if seed in reference]
    return mean_of({seed: _difference(values[seed], reference[seed]) for seed in seeds}, interval)


def _difference(value: float, other: float) -> float:
    return value - other if abs(value - other) > _ROUNDING * max(abs(value), abs(other)) else 0.0


class Means:
    """The means of the measures of a study, for each instance and entry, in the order of its rows."""

    def __init__(self, rows: pd.DataFrame, interval: Interval, reference: str | None) -> None:
        needed = ("instance", "entry", "seed", "tasks")
        if lacking := [name for name in needed if name not in rows.columns]:
            raise Unsupported(f"rows have no column {joined(lacking)}; give the rows that fairopt.study returned")
        if not len(rows):
            raise Unsupported("there are no rows; give the rows that fairopt.study returned")
        if (twice := rows.duplicated(["instance", "entry", "seed"])).any():
            first = rows[twice].iloc[0]
            raise Unsupported(f'"{first["entry"]}" of "{first["instance"]}" has seed {first["seed"]} twice; give each seed once')
        self.interval = interval
        self.reference = reference
        self._rows: dict[Key, pd.DataFrame] = {
            (str(instance), str(entry)): part.set_index("seed")
            for (instance, entry), part in rows.groupby(["instance", "entry"], sort=False)
        }
        self.keys = list(self._rows)
        self.instances = list(dict.fromkeys(instance for instance, _ in self.keys))
        self.entries = list(dict.fromkeys(entry for _, entry in self.keys))
        self._seeds = {instance: rows.loc[rows["instance"] == instance, "seed"].nunique() for instance in self.instances}
        if reference is not None:
            if reference not in self.entries:
                raise Unsupported(
                    f'there is no entry "{reference}"{did_you_mean(reference, self.entries)}; choose from {", ".join(self.entries)}'
                )
            if without := [instance for instance in self.instances if (instance, reference) not in self._rows]:
                raise Unsupported(f'"{without[0]}" has no row of "{reference}"; choose another reference, or leave this instance out')

    def seeds(self, instance: str) -> int:
        """Return how many seeds an instance has, in the rows of any entry."""
        return self._seeds[instance]

    def failed(self, key: Key) -> pd.DataFrame:
        """Return the rows without an allocation."""
        rows = self._rows[key]
        return rows[rows["tasks"].isna()]

    def solved(self, key: Key) -> int:
        """Return how many seeds have an allocation."""
        return int(self._rows[key]["tasks"].notna().sum())

    def absent(self, key: Key) -> int:
        """Return for how many seeds of the instance this entry has no row."""
        return self._seeds[key[0]] - len(self._rows[key])

    def mean(self, key: Key, measure: str) -> Mean:
        """Return the mean of a measure."""
        return mean_of(self._values(key, measure), self.interval)

    def difference(self, key: Key, measure: str) -> Mean:
        """Return the mean of the differences to the reference; nan for the reference itself."""
        if self.reference is None or key[1] == self.reference:
            return mean_of({}, self.interval)
        return paired(self._values(key, measure), self._values((key[0], self.reference), measure), self.interval)

    def has_difference(self, measure: str) -> bool:
        """Say whether any entry has a difference to the reference."""
        return any(self.difference(key, measure).seeds for key in self.keys)

    def frame(self, measures: Sequence[str]) -> pd.DataFrame:
        """Return all means, spreads and differences, a row for each instance and entry."""
        import pandas as pd

        suffix = SUFFIXES[self.interval]
        lines = []
        for key in self.keys:
            kinds = map(str, self._rows[key]["kind"].unique()) if "kind" in self._rows[key] else ()
            line: dict[str, object] = {"kind": " or ".join(kinds), "seeds": self.solved(key), "failed": len(self.failed(key))}
            line["absent"] = self.absent(key)
            for name in measures:
                mean = self.mean(key, name)
                line |= {name: mean.value, f"{name} {suffix}": mean.spread}
                if self.reference is not None:
                    apart = self.difference(key, name)
                    line |= {f"{name} difference": apart.value, f"{name} difference {suffix}": apart.spread}
            lines.append(line)
        return pd.DataFrame(lines, index=pd.MultiIndex.from_tuples(self.keys, names=["instance", "entry"]))

    def _values(self, key: Key, measure: str) -> dict[int, float]:
        """Return the values of a measure by seed; those that there are not are left out."""
        rows = self._rows[key]
        known = rows[measure][rows["tasks"].notna()].dropna() if measure in rows else rows["tasks"].iloc[:0]
        return dict(zip(map(int, known.index), map(float, known), strict=True))
