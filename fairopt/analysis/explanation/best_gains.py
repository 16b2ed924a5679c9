"""The sentences on what would help a user: of each kind of change the best one, and what it would give.

>>> found = [Gain("+1 gpu on rack", "capacity", by_solving=2.0), Gain("weight 2 instead of 1", "weight", by_solving=0.5)]
>>> what_helps(found, 4.0, [], float)
['What would help: +1 gpu on rack would give it 2 tasks more (+50 %).', 'Weight 2 instead of 1 would give it 0.5 tasks more (+12.5 %).']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from fairopt.analysis.explanation import Gain, Number, none_helps
from fairopt.analysis.explanation.gains import part_more
from fairopt.analysis.explanation.weights import OF_WEIGHTS, more_weight
from fairopt.wording import figure, plural

__all__ = ["what_helps"]

_ALIKE = 1e-3  # relative: gains that differ by less are equally good
_CLOSE = 1e-2  # relative: a gain by price that differs by less from the solved gain is not mentioned


def what_helps(found: Sequence[Gain], tasks: Number, idle: list[str], rounding: Callable[[float], float], of_work: str = "") -> list[str]:
    """Return the sentences on the gains of a user who has so many tasks; with ``of_work``, "the work of ", who does so much work.

    ``idle`` are the sentences on a weight that has no effect; ``rounding`` turns a relative tolerance into the one of these numbers.
    """
    if not found:
        return idle
    capacity = [gain for gain in found if gain.kind in ("capacity", "server")]
    weight = [gain for gain in found if gain.kind in OF_WEIGHTS]
    kinds = ("parallelism", "placement", "limit", "rule")
    parallelism, placement, limit, rule = ([gain for gain in found if gain.kind == kind] for kind in kinds)
    sentences = []
    if (best := _best(capacity)) is not None:
        equals = sum(gain.best_known >= best.best_known * (1 - rounding(_ALIKE)) for gain in capacity) - 1
        also = f"; {plural(equals, 'other change')} of this kind would give as much" if equals else ""
        sentences.append(f"What would help: {best.change} would give it {_gain(best, tasks, rounding, of_work)}{also}.")
    sentences += idle
    if (best := _best(weight)) is not None:
        sentences.append(f"{best.change[0].upper()}{best.change[1:]} would give it {_gain(best, tasks, rounding, of_work)}.")
    sentences += more_weight(weight)
    for gains in (rule, limit, parallelism):
        if (best := _best(gains)) is not None:
            sentences.append(f"{best.change[0].upper()}{best.change[1:]} would give it {_gain(best, tasks, rounding, of_work)}.")
    if (best := _best(placement)) is not None:
        sentences.append(f"If it {best.change}, it would have {_gain(best, tasks, rounding, of_work)}.")
    if not any(map(_best, (capacity, weight, rule, limit, parallelism, placement))):
        sentences = [*idle, none_helps(len(found))]
    late = [gain.note for gain in found if gain.note]
    return [*sentences, *([f"{plural(len(late), 'change was', 'changes were')} not solved: {late[0]}."] if late else [])]


def _best(found: Sequence[Gain]) -> Gain | None:
    """Return the largest gain; of nearly equal gains, one that was solved; None if no gain is positive."""
    most = max((gain.best_known for gain in found), default=0.0)
    least = most if isinstance(most, Fraction) else most * (1 - _ALIKE)
    good = [gain for gain in found if gain.best_known > 0 and gain.best_known >= least]
    return min(good, key=lambda gain: gain.by_solving is None, default=None)


def _gain(gain: Gain, tasks: Number, rounding: Callable[[float], float], of_work: str) -> str:
    more: Any = gain.best_known
    by_price: Any = gain.by_price
    text = of_work + plural(more, "task", digits=3)
    if tasks > 0:
        text += f" more ({part_more(more, tasks)})"
    if gain.by_solving is None:
        return f"up to {text}, by its price"
    if by_price is None or abs(by_price - more) <= rounding(_CLOSE) * max(abs(by_price), more):
        return text
    return f"{text}; {'up to ' if by_price > more else ''}{figure(by_price)} by its price"
