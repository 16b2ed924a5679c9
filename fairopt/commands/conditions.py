"""Conditions under which a check fails: ``--fail-if 'regret > 0.1'``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

import typer

from fairopt.analysis.comparison import Comparison, Row
from fairopt.wording import did_you_mean, exactly, figure

__all__ = ["Condition", "read_condition"]

_OPERATORS: dict[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_FORM = re.compile(r"\s*([A-Za-z-]+)\s*(>=|<=|>|<)\s*([0-9.eE+-]+)\s*(%?)\s*")
_REGRETS = ("level", "leximin", "largest", "goal", "condition", "queue", "total")
_SYNONYMS = {"worst": "regret", "regret-worst": "regret", "min-share": "share"} | {f"regret-{name}": name for name in _REGRETS}
"""Words of `fairopt study` and `fairopt worst-case` for the same measures."""
_MEASURES: dict[str, Callable[[Row], float | None]] = {
    "regret": lambda row: None if row.regret is None else row.regret.worst,
    **{name: (lambda row, name=name: None if row.regret is None else getattr(row.regret, name)) for name in _REGRETS},  # type: ignore[misc]
    "envy": lambda row: None if row.envy is None else float(row.envy.tasks),
    "efficiency": lambda row: row.efficiency,
    "share": lambda row: row.smallest_share,
    "jain": lambda row: row.jain,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A measure of a row of a comparison, and the bound that it must not pass."""

    measure: str
    sign: str
    bound: float

    def require(self, *, compared: bool) -> None:
        """Refuse a regret where nothing has one: ``compared`` says whether anything is compared with an exact allocation."""
        if self.measure in ("regret", *_REGRETS) and not compared:
            raise typer.BadParameter(
                f"{self.measure} is measured of schedules and of your own allocations; give --schedules or --allocation "
                "(or --reference, to measure exact allocations against a notion)",
                param_hint="--fail-if",
            )

    def broken(self, comparison: Comparison) -> list[str]:
        """Return a sentence for each row that fails: the condition holds for it, or it lacks the measure.

        Given allocations are checked; without any, the schedules; without these, too, all rows that can have the measure.
        """
        rows = list(comparison)
        for kinds in (("given",), ("greedy", "approximate")):
            if any(row.kind in kinds for row in comparison):
                rows = [row for row in comparison if row.kind in kinds]
                break
        else:
            rows = [row for row in rows if row.allocation is None or self._value(row) is not None] or rows
        found = []
        for row in rows:
            value = None if row.allocation is None else self._value(row)
            if value is None:
                found.append(f"{row.name} has no {self.measure}, so that it cannot be checked{f': {row.message}' if row.message else ''}")
            elif _OPERATORS[self.sign](value, self.bound):
                found.append(f"{row.name}: {self.measure} is {figure(value, 4)}, {self.sign} {exactly(self.bound)}")
        return found

    def _value(self, row: Row) -> float | None:
        value = _MEASURES[self.measure](row)
        return None if value is None or value != value else value


def read_condition(text: str) -> Condition:
    """Read a condition.

    >>> read_condition("regret > 0.1"), read_condition("efficiency<80%").bound
    (Condition(measure='regret', sign='>', bound=0.1), 0.8)
    >>> read_condition("regret-level > 0.1").measure
    'level'
    """
    match = _FORM.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        bound = float(match[3]) / (100 if match[4] else 1)
        if not math.isfinite(bound):
            raise ValueError
    except ValueError:
        raise typer.BadParameter(f'"{text}" is not a condition such as: regret > 0.1', param_hint="--fail-if") from None
    measure = _SYNONYMS.get(match[1].lower(), match[1].lower())
    if measure not in _MEASURES:
        raise typer.BadParameter(
            f'there is no measure "{match[1]}"{did_you_mean(measure, _MEASURES)}; there are {", ".join(_MEASURES)}', param_hint="--fail-if"
        )
    return Condition(measure, match[2], bound)
