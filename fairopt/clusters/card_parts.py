"""What a task that shares a card takes of it.

A part f of a card (a GPU that is cut into shards, a fraction of one) lies on *one* card, so that floor(1/f) tasks of this part fit on a
card, and each of them takes 1/floor(1/f) of it: the *effective* part. Counted with f, 5 tasks of 3/5 would seem to fit on 3 cards.

The effective part is exact where all tasks that share a card have one part. Tasks of several parts may lie on one card, too (3/5 and 2/5):
then more of them fit than effective parts say.

>>> [effective_part(part) for part in (0.25, 0.6, 0.4)]
[0.25, 1.0, 0.5]
"""

from __future__ import annotations

from fairopt.clusters.amounts import whole_part

__all__ = ["effective_part"]


def effective_part(part: float) -> float:
    """Return what a task takes of the cards of a server, if it needs this part of one: whole cards, and for the rest 1/floor(1/rest).

    Parameters
    ----------
    part : float
        Of one card, >= 0; more than 1: of several cards, all but one of them whole.

    Examples
    --------
    >>> effective_part(3 / 10) == 1 / 3, effective_part(2), effective_part(1.4), effective_part(0)
    (True, 2.0, 1.5, 0.0)
    """
    whole = whole_part(part)
    rest = part - whole
    return float(whole) if rest <= 0 else whole + 1 / whole_part(1 / rest)
