"""Parts of cards: a part of a GPU lies on one card, so it takes what is left unused beside it, too.

Of a part f of a card, 0 < f <= 1, floor(1/f) fit on one card. So each of them takes the *effective part*

    e(f) = 1 / floor(1/f) >= f:        e(0.5) = 1/2,  e(0.4) = 1/2,  e(0.6) = 1.

Then servers with m cards hold exactly as many tasks of one part as m cards do: m floor(1/f). Tasks of unlike parts may share a card in the
cluster in ways that do not count here (0.6 and 0.4 fill one card, and take 1 and 1/2): a restriction, which a note names.

Parts are fractions, read from decimal text: 0.1 is 1/10, and ten of it fit.

>>> parts = Parts()
>>> [str(parts.taken(Fraction(amount))) for amount in ("0.4", "2")]
['1/2', '2']
>>> for note in parts.notes("GPU"):
...     print(note)
a part of a GPU lies on one card: 0.4 takes an effective 1/2, as 2 fit on a card (1 task); shares and quotas count what it takes
"""

from __future__ import annotations

import math
from fractions import Fraction

from fairopt.wording import joined, plural

__all__ = ["Parts", "effective_part", "in_effective_parts"]

_MOST_SHOWN = 5


def effective_part(part: Fraction) -> Fraction:
    """Return what a part of a card, above 0 and up to 1, takes of it: 1 / floor(1 / part).

    >>> [str(effective_part(Fraction(text))) for text in ("1", "0.6", "0.5", "0.4", "0.3", "0.1")]
    ['1', '1', '1/2', '1/2', '1/3', '1/10']
    """
    return Fraction(1, math.floor(1 / part))


def in_effective_parts(amount: Fraction) -> Fraction:
    """Return what a task takes that asks for an amount of cards, >= 0: whole cards, and the effective part of what is left.

    >>> [str(in_effective_parts(Fraction(text))) for text in ("0", "2", "1.4")]
    ['0', '2', '3/2']
    """
    whole = math.floor(amount)
    return whole + (effective_part(amount - whole) if amount > whole else Fraction(0))


class Parts:
    """What tasks take of cards, and the notes that say so."""

    def __init__(self) -> None:
        self._number: dict[Fraction, float] = {}

    def taken(self, amount: Fraction, number: float = 1.0) -> Fraction:
        """Return what a task takes that asks for an amount of cards: whole cards, and at most one part; ``number`` tasks do."""
        part = amount - math.floor(amount)
        if part:
            self._number[part] = self._number.get(part, 0.0) + number
        return in_effective_parts(amount)

    def notes(self, card: str, what: str = "task") -> list[str]:
        """Return what is said of the parts: those that take more than they ask for, and that unlike parts share no card."""
        rounded = sorted(part for part in self._number if effective_part(part) != part)
        found = []
        if rounded:
            each = [
                f"{float(part):.4g} takes an effective {effective_part(part)}, as {effective_part(part).denominator} "
                f"{'fits' if effective_part(part) == 1 else 'fit'} on a card ({plural(self._number[part], what)})"
                for part in rounded
            ]
            found.append(f"a part of a {card} lies on one card: {joined(each, _MOST_SHOWN)}; shares and quotas count what it takes")
        if rounded and len(self._number) > 1:
            shown = joined([f"{float(part):.4g}" for part in sorted(self._number)], _MOST_SHOWN)
            found.append(
                f"parts of a {card} of unlike sizes ({shown}) may share a card in the cluster, which does not count: a restriction"
            )
        return found
