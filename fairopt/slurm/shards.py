"""The jobs of a cluster that have pieces of GPUs, counted in GPUs (`fairopt.slurm.pieces`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from fairopt.clusters.account import Account
from fairopt.instance import BoolArray
from fairopt.slurm.jobs import Job
from fairopt.slurm.nodes import Node
from fairopt.slurm.pieces import CARD, PIECES, fewest, in_cards, numbers_of, unlike_cards
from fairopt.slurm.sizes import Size
from fairopt.wording import figure, joined, plural

__all__ = ["Shards", "without_pieces"]

_MOST = 4  # examples in a note
_Asked: TypeAlias = tuple[tuple[str, tuple[str, ...], float], ...]
"""Pieces that a job asks for on a node: "shard", the types ("shard:a100"; none: any), and how many."""


def without_pieces(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes whose pieces of cards are in their cards, and not beside them."""
    return [
        replace(node, offers={name: amount for name, amount in node.offers.items() if name not in node.pieces}) if node.pieces else node
        for node in nodes
    ]


class Shards:
    """The cards of some nodes and their pieces.

    Parameters
    ----------
    nodes : sequence of Node
        As they are configured.
    account : Account
        Gets notes on what pieces are counted as.
    """

    def __init__(self, nodes: Sequence[Node], account: Account) -> None:
        self._nodes = {node.name: node for node in nodes if node.pieces}
        self._account = account
        self._some: Counter[tuple[str, float, int, float]] = Counter()  # jobs by what they have: pieces, how many, of how many; of a card
        self._differ, self._several = 0.0, 0.0

    def asked(self, job: Job, size: Size) -> _Asked:
        """Return the pieces that a job asks for on a node; one that has nodes to itself asks for none, and has those that are there."""
        return () if job.request.exclusive else self._has(job, size)

    def _has(self, job: Job, size: Size) -> _Asked:
        if not self._nodes:
            return ()
        types = [kind.removeprefix(CARD) for kind in job.types if kind.startswith(f"{CARD}:")]
        return tuple((name, tuple(f"{name}{kind}" for kind in types), size.demand[name]) for name in PIECES if size.demand.get(name))

    def where(self, asked: _Asked, allowed: BoolArray, nodes: Sequence[Node]) -> BoolArray:
        """Return where a job may run that asks for pieces, (nodes,): on nodes that have some, on a card that has enough if any does."""
        for name, kinds, amount in asked:
            most = np.array(
                [max(self._numbers(node.name, name, kinds), default=0) if there else 0 for node, there in zip(nodes, allowed, strict=True)]
            )
            if most.any():
                allowed = np.asarray(most >= (amount if most.max() >= amount else 1))
        return allowed

    def _numbers(self, node: str, name: str, kinds: Sequence[str]) -> set[int]:
        return numbers_of(self._nodes[node].pieces, name, kinds) if node in self._nodes else set()

    def sizes(self, jobs: Sequence[Job], sizes: Sequence[Size], allowed: Sequence[BoolArray], nodes: Sequence[Node]) -> list[Size]:
        """Return the sizes of jobs in cards.

        Parameters
        ----------
        allowed : sequence of arrays (nodes,)
            Where each job may run (`where`).
        """
        if not self._nodes:
            return list(sizes)
        return [self._size(job, size, where, nodes) for job, size, where in zip(jobs, sizes, allowed, strict=True)]

    def _size(self, job: Job, size: Size, allowed: BoolArray, nodes: Sequence[Node]) -> Size:
        has = self._has(job, size)
        if not has:
            return size
        names = [name for name in job.on if name in self._nodes] or [nodes[i].name for i in np.flatnonzero(allowed).tolist()]
        pieces: dict[str, int] = {}
        differ = False
        for name, kinds, amount in has:
            numbers = set[int]().union(*(self._numbers(node, name, kinds) for node in names))
            if numbers:
                pieces[name], several = fewest(numbers, amount)
                differ |= several
        demand = size.demand
        if demand.get(CARD) and not job.request.amounts.get(CARD) and not job.request.exclusive:
            demand = {name: amount for name, amount in demand.items() if name != CARD}  # the cards in which the pieces are
        found = in_cards(demand, pieces)
        if not demand.get(CARD):
            self._differ += job.copies * differ
            for name, number in pieces.items():
                self._some[name, demand[name], number, found[CARD]] += job.copies  # type: ignore[assignment]
                self._several += job.copies * (demand[name] > number)
        return replace(size, demand=found)

    def note(self, limited: Iterable[str]) -> None:
        """Say how many jobs have pieces, and as what they count; ``limited`` is what accounts and QOS limit, by TRES or resource."""
        if not self._some:
            return
        if CARD in {name.removeprefix("gres/").partition(":")[0] for name in limited}:
            self._account.note("limits of gres/gpu count pieces of GPUs, too, of which Slurm counts only whole ones there")
        many = plural(sum(self._some.values()), "job has", "jobs have")
        names = joined([f"gres/{name}" for name in PIECES if any(name == each[0] for each in self._some)])
        most = [each for each, _ in self._some.most_common(_MOST)]
        texts = joined([f"{figure(asked)} of {number} as {figure(part, 4)}" for _, asked, number, part in sorted(most)], _MOST)
        more = ", ..." if len(self._some) > _MOST else ""
        self._account.note(
            f"{many} {names}: a piece and its GPU are one device, and the pieces of a job lie on one card, so they count as GPUs: "
            f"{texts}{more}"
        )
        if self._differ:
            self._account.note(unlike_cards(self._differ, "may run"))
        if self._several:
            self._account.note(
                f"{plural(self._several, 'job asks', 'jobs ask')} for more pieces than a card has: counted on several cards of a node, "
                "which Slurm allows only with MULTIPLE_SHARING_GRES_PJ"
            )
