"""Pieces of GPUs in Slurm: shards (``gres/shard``) and MPS (``gres/mps``).

A piece and its GPU are one device: a GPU that a job has is not there in pieces, and one that is shared is not there as a whole. So pieces
are counted in GPUs. With k pieces of a card, s of them are the part s/k of one card, which takes what `effective_part` says.

``Gres=gpu:a100:4,shard:a100:40`` are 10 pieces of each card. Without types, or where a job names none on a node with several, of the cards
that have enough pieces for the job that with the fewest counts.

>>> pieces_of([("gpu", "a100", 4.0), ("shard", "a100", 40.0)])
{'shard': 10, 'shard:a100': 10}
>>> pieces_of([("gpu", "a100", 1.0), ("gpu", "t4", 2.0), ("shard", "a100", 8.0), ("shard", "t4", 4.0)])
{'shard': 2, 'shard:a100': 8, 'shard:t4': 2}
>>> in_cards({"cpu": 4.0, "shard": 3.0}, {"shard": 10})["gpu"] == 1 / 3
True

Source: the pages Generic Resource Scheduling and slurm.conf (MULTIPLE_SHARING_GRES_PJ) of Slurm's documentation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from fairopt.clusters.amounts import whole_part
from fairopt.clusters.parts import in_effective_parts
from fairopt.wording import plural

__all__ = ["CARD", "PIECES", "card_type", "fewest", "in_cards", "numbers_of", "pieces_of", "unlike_cards"]

CARD = "gpu"
PIECES = ("mps", "shard")


def card_type(name: str) -> str:
    """Return the type of card that a type of pieces is, other types of generic resources as they are.

    >>> card_type("shard:a100"), card_type("gpu:a100"), card_type("nic:ib")
    ('gpu:a100', 'gpu:a100', 'nic:ib')
    """
    base, _, kind = name.partition(":")
    return f"{CARD}:{kind}" if kind and base in PIECES else name


def pieces_of(listed: Iterable[tuple[str, str, float]]) -> dict[str, int]:
    """Return how many pieces a card has, by "shard" and by "shard:a100".

    Parameters
    ----------
    listed : iterable of (name, type or "", number)
        The generic resources of a node. Pieces of a node that lists no GPU are not of a card.
    """
    amounts: Counter[tuple[str, str]] = Counter()
    for name, kind, amount in listed:
        amounts[name, kind] += amount  # type: ignore[assignment]
    cards = {kind: amount for (name, kind), amount in amounts.items() if name == CARD and amount}
    found: dict[str, int] = {}
    for name in PIECES:
        own = {kind: amount for (other, kind), amount in amounts.items() if other == name and amount}
        if not own or not cards:
            continue
        apart = {kind: own[kind] / cards[kind] for kind in own if kind and kind in cards}
        together = sum(own.values()) / sum(cards.values())
        each = {kind: max(whole_part(pieces), 1) for kind, pieces in (apart or dict.fromkeys(filter(None, cards), together)).items()}
        found[name] = min(each.values(), default=max(whole_part(together), 1))
        found |= {f"{name}:{kind}": pieces for kind, pieces in each.items()}
    return found


def numbers_of(pieces: Mapping[str, int], name: str, kinds: Sequence[str]) -> set[int]:
    """Return how many pieces the cards of a node have, of these types ("shard:a100") or of all; empty: it has no such pieces.

    >>> numbers_of({"shard": 2, "shard:a100": 8, "shard:t4": 2}, "shard", [])
    {8, 2}
    """
    if name not in pieces:
        return set()
    return {pieces.get(kind, pieces[name]) for kind in kinds or [each for each in pieces if each.startswith(f"{name}:")] or [name]}


def fewest(numbers: Iterable[int], amount: float) -> tuple[int, bool]:
    """Return the fewest pieces of a card that has enough of them, if one has, and whether cards that have enough differ.

    >>> fewest({2, 4, 8}, 3), fewest({2}, 3)
    ((4, True), (2, False))
    """
    numbers = set(numbers)
    enough = {number for number in numbers if number >= amount} or numbers
    return min(enough), len(enough) > 1


def unlike_cards(jobs: float, verb: str) -> str:
    """Say that jobs may be on cards with different numbers of pieces."""
    return (
        f"{plural(jobs, 'job')} {verb} on cards with different numbers of pieces: counted with the card that has the "
        "fewest of those that have enough, an approximation"
    )


def in_cards(amounts: Mapping[str, float], pieces: Mapping[str, int]) -> dict[str, float]:
    """Return amounts with the pieces of cards, of which a card has so many, counted in cards.

    What has whole cards has no pieces beside them: ``--exclusive`` takes the cards of a node, and their pieces are these cards.
    """
    found = {name: amount for name, amount in amounts.items() if name not in pieces}
    cut = sum(in_effective_parts(Fraction(amounts[name]) / number) for name, number in pieces.items() if name in amounts)
    return found | {CARD: float(cut)} if cut and not found.get(CARD) else found
