"""The cards on which the jobs of a log were, in pieces: those of the nodes of a job, or of all nodes while it waits.

>>> decks_of([["g1"], []], {"g1": {"shard": 8}, "g2": {"shard": 2}})
(array([0, 1]), [[{'shard': 8}], [{'shard': 2}, {'shard': 8}]])
>>> job_in_cards({"cpu": 2.0, "shard": 4.0}, 2.0, "gres/shard=4", [{"shard": 2}, {"shard": 8}])
({'cpu': 2.0, 'gpu': 2.0}, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fairopt.instance import IntArray
from fairopt.slurm.pieces import CARD, PIECES, fewest, in_cards, numbers_of
from fairopt.slurm.syntax import tres

__all__ = ["decks_of", "job_in_cards"]


def decks_of(hosts_of: Sequence[Sequence[str]], pieces: Mapping[str, Mapping[str, int]]) -> tuple[IntArray, list[list[Mapping[str, int]]]]:
    """Return which different pieces of cards the nodes of each list have, and these; of a list without such nodes, those of all nodes."""
    everywhere = _different(pieces.values())
    known: dict[str, int] = {}
    decks: list[list[Mapping[str, int]]] = []
    of_list = np.zeros(len(hosts_of), np.int64)
    for j, names in enumerate(hosts_of):
        own = _different(pieces[name] for name in names if name in pieces) or everywhere
        of_list[j] = known.setdefault(str(own), len(decks))
        decks += [own] if of_list[j] == len(decks) else []
    return of_list, decks or [[]]


def _different(pieces: Iterable[Mapping[str, int]]) -> list[Mapping[str, int]]:
    return [dict(each) for each in sorted({tuple(sorted(each.items())) for each in pieces})]


def job_in_cards(
    amounts: Mapping[str, float], nodes: float, text: str, there: Sequence[Mapping[str, int]]
) -> tuple[dict[str, float], bool]:
    """Return what a job has, with pieces of cards counted in cards, and whether it may be on cards with different numbers of pieces."""
    if not any(amounts.get(name) for name in PIECES):
        return dict(amounts), False
    pieces: dict[str, int] = {}
    differ = False
    for name in PIECES:
        kinds = [kind.removeprefix("gres/") for kind in _types(text) if kind.startswith(f"gres/{name}:")]
        numbers = set[int]().union(*(numbers_of(each, name, kinds) for each in there))
        if numbers and amounts.get(name):
            pieces[name], several = fewest(numbers, amounts[name] / nodes)
            differ |= several
    found = in_cards({name: amount / nodes for name, amount in amounts.items()}, pieces)
    return {name: amount * nodes for name, amount in found.items()}, differ and not amounts.get(CARD)


def _types(text: str) -> list[str]:
    try:
        return list(tres(text))
    except ValueError:
        return []
