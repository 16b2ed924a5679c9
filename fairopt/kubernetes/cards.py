"""Parts of GPUs that are no container request: those of KAI and of HAMi. A part lies on one card (:mod:`fairopt.clusters.parts`).

======  ==========================================================================================================================
KAI     annotations of a pod: ``gpu-fraction`` of a card, or ``gpu-memory`` in MiB, on each of ``gpu-fraction-num-devices`` cards
HAMi    requests of a container: on each of ``nvidia.com/gpu`` cards ``nvidia.com/gpumem`` in MiB, or ``nvidia.com/gpumem-percentage``,
        and ``nvidia.com/gpucores`` in percent of its computing power; without memory, that of the whole card
======  ==========================================================================================================================

What memory is in parts of a card depends on the node: on the label ``nvidia.com/gpu.memory``, or on HAMi's annotation
``hami.io/node-nvidia-register``, which lists the cards of the node (its allocatable counts each several times). So the demand of a pod
differs by kind of node, where cards have unlike memory. Of memory and computing power the larger part counts.

KAI holds a card that pods share by a pod of its own, in the namespace ``kai-resource-reservation``. These pods are nobody's: the parts
count, not the card.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.clusters.parts import Parts, effective_part
from fairopt.instance import BoolArray, IntArray
from fairopt.instance.quantities import NANO
from fairopt.wording import plural

if TYPE_CHECKING:
    from fairopt.kubernetes.records import Node, Pod

__all__ = [
    "GPU",
    "CardRequest",
    "Cards",
    "Deck",
    "gpu_of",
    "holds_shared_card",
    "note_slices",
    "of_annotations",
    "of_container",
    "read_deck",
    "taken_on",
]

GPU = "nvidia.com/gpu"
_MEMORY, _PERCENTAGE, _CORES = "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"
_FRACTION, _OF_MEMORY, _DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
_OF_MIG, _OF_VOLCANO = "nvidia.com/mig-", ("volcano.sh/vgpu-", "volcano.sh/gpu-memory")
_REGISTER = "hami.io/node-nvidia-register"
_RESERVATIONS = ("kai-resource-reservation", "runai-reservation", "kai-scale-adjust", "runai-scale-adjust")
_DECIMAL = re.compile(r"\d{0,18}\.?\d{1,18}", re.ASCII)
_IN_BYTES = 1 << 20  # a label of a TiB in MiB or more is in bytes, as some versions of the GPU feature discovery wrote it
_HUNDRED = 100


@dataclass(frozen=True, slots=True)
class CardRequest:
    """What a pod takes of each of several cards: the largest of a part, of memory in MiB, and of computing power in percent."""

    cards: int
    part: Fraction = Fraction(0)
    memory: int = 0
    cores: int = 0


@dataclass(frozen=True, slots=True)
class Deck:
    """The cards of a node: how many, the memory of each in MiB (0: not known), their computing power, and how many pods share one.

    Where cards are unlike, these are those of the smallest. Cards that are not healthy are not among them.
    """

    cards: int
    memory: int = 0
    cores: int = _HUNDRED
    sharers: int = 0
    unlike: bool = False
    broken: int = 0


# What a pod asks for -------------------------------------------------------------------------------------------------------------


def of_annotations(metadata: Part) -> tuple[CardRequest, ...]:
    """Return what the annotations of a pod ask for, which KAI reads."""
    given = metadata.get("annotations")
    fraction, memory, devices = (given.get(key) for key in (_FRACTION, _OF_MEMORY, _DEVICES))
    if fraction.value is None and memory.value is None:
        return ()
    cards = 1 if devices.value is None else _whole(devices, "a number of cards such as 2")
    if fraction.value is None:
        return (CardRequest(cards, memory=_whole(memory, "MiB of a card, such as 4096")),)
    part = _decimal(fraction)
    if not 0 < part <= 1:
        fraction.refuse(f'expected a part of one GPU, above 0 and at most 1, such as 0.5; found "{fraction.text()[:40]}"')
    return (CardRequest(cards, part),)


def of_container(amounts: dict[str, int]) -> tuple[dict[str, int], tuple[CardRequest, ...]]:
    """Return what a container asks for beside parts of cards, and those parts, where it asks HAMi for some."""
    if not any(amounts.get(key) for key in (_MEMORY, _PERCENTAGE, _CORES)):
        return amounts, ()
    cards, memory, percentage, cores = (amounts.get(key, 0) // NANO for key in (GPU, _MEMORY, _PERCENTAGE, _CORES))
    part = Fraction(0) if memory else Fraction(min(percentage or _HUNDRED, _HUNDRED), _HUNDRED)
    rest = {key: amount for key, amount in amounts.items() if key not in (GPU, _MEMORY, _PERCENTAGE, _CORES)}
    return rest, (CardRequest(cards or 1, part, memory, cores),)


def holds_shared_card(pod: Pod) -> bool:
    """Return whether a pod is one of KAI's own, which holds a card that pods share, or makes room for one."""
    return pod.space in _RESERVATIONS or pod.part.get("metadata").get("labels").get("app").value in _RESERVATIONS


def _decimal(part: Part) -> Fraction:
    text = part.text().strip()
    if _DECIMAL.fullmatch(text) is None:
        part.refuse(f'expected a decimal number such as 0.5, found "{text[:40]}"')
    return Fraction(text)


def _whole(part: Part, what: str) -> int:
    number = _decimal(part)
    if number < 1 or number.denominator > 1:
        part.refuse(f'expected {what}; found "{part.text()[:40]}"')
    return int(number)


# What a node has -----------------------------------------------------------------------------------------------------------------


def gpu_of(resources: Iterable[str]) -> str:
    """Return the resource that GPUs are: that of NVIDIA, or the one that there is.

    >>> gpu_of(["cpu", "amd.com/gpu"]), gpu_of(["cpu"])
    ('amd.com/gpu', 'nvidia.com/gpu')
    """
    found = sorted(resource for resource in resources if resource.endswith("/gpu"))
    return GPU if GPU in found or not found else found[0]


def read_deck(metadata: Part, allocatable: Mapping[str, int]) -> Deck:
    """Read the cards of a node: those that HAMi lists, or those that it offers, with the memory that a label states."""
    gpu = gpu_of(allocatable)
    offered = allocatable.get(gpu, 0) // NANO
    register = metadata.get("annotations").get(_REGISTER)
    if register.value is not None and offered:
        listed = _registered(register)
        healthy = [deck for deck in listed if deck.cards]
        broken = len(listed) - len(healthy)
        if not healthy:
            return Deck(0, broken=broken)
        memory, cores, sharers = (min(getattr(deck, name) for deck in healthy) for name in ("memory", "cores", "sharers"))
        return Deck(len(healthy), memory, cores, sharers, unlike=len(set(healthy)) > 1, broken=broken)
    label = metadata.get("labels").get(f"{gpu}.memory")
    text = label.value if isinstance(label.value, str) else ""
    memory = int(text) if _DECIMAL.fullmatch(text) and "." not in text else 0
    return Deck(offered, memory if memory < _IN_BYTES else memory >> 20)


def _registered(register: Part) -> list[Deck]:
    """Return a deck for each card that HAMi lists: JSON, or text of versions before 2.5; a card that is not healthy counts as none."""
    text = register.text().strip()
    if not text.startswith("["):
        return [_listed(entry.split(","), register) for entry in text.split(":") if entry.strip()]
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        register.refuse("this is not the list of cards that HAMi writes; export the node again")
    found = []
    for card in Part(listed, register.place).items():
        memory, cores, sharers = (
            int(card.get(name).number(default)) for name, default in (("devmem", 0.0), ("devcore", 100.0), ("count", 0.0))
        )
        found.append(Deck(int(card.get("health").value is not False), memory, cores, sharers))
    return found


def _listed(fields: Sequence[str], register: Part) -> Deck:
    """Return the card of ``uuid,count,memory,cores,type,numa,healthy``."""
    numbers = [text.strip() for text in fields[1:4]]
    if len(numbers) < 3 or not all(text.isdecimal() and text.isascii() and len(text) < 18 for text in numbers):
        register.refuse("this is not the list of cards that HAMi writes; export the node again")
    sharers, memory, cores = map(int, numbers)
    return Deck(int(fields[-1].strip().lower() != "false"), memory, cores, sharers)


def note_slices(pods: Sequence[Pod], of_kai: bool, account: Account) -> None:
    """Note slices of GPUs that are resources of their own here, and are not for the scheduler: those of MIG in KAI, and Volcano's vGPUs."""

    def asking(*prefixes: str) -> float:
        return sum(pod.number for pod in pods if any(amount and r.startswith(prefixes) for r, amount in pod.request.items()))

    if of_kai and (number := asking(_OF_MIG)):
        account.note(
            f"{plural(number, 'pod asks', 'pods ask')} for MIG devices: KAI counts those in quotas, limits and shares of GPUs (mig-2g.10gb "
            "as 2 GPUs); here they are resources of their own, which no quota counts"
        )
    if number := asking(*_OF_VOLCANO):
        account.note(
            f"{plural(number, 'pod asks', 'pods ask')} for Volcano's vGPUs: they are counted over all GPUs of a node, while "
            "the memory of a vGPU lies on one GPU: a relaxation"
        )


# What pods take on nodes ---------------------------------------------------------------------------------------------------------


class Cards:
    """What pods take of the cards of nodes.

    Nodes whose cards are alike are one kind; where no pod asks for memory or computing power, all nodes are.

    Attributes
    ----------
    gpu : str
        The resource that cards are.
    kind : int array (nodes,)
        The kind of each node.
    kinds : int
        How many kinds there are.
    """

    def __init__(self, nodes: Sequence[Node], pods: Sequence[Pod], account: Account) -> None:
        self.gpu = gpu_of(resource for node in nodes for resource in node.allocatable)
        self._nodes = nodes
        asked: dict[tuple[CardRequest, ...], float] = {}
        for pod in pods:
            if pod.cards:
                asked[pod.cards] = asked.get(pod.cards, 0.0) + pod.number
        by_memory = any(each.memory or each.cores for cards in asked for each in cards)
        decks = [_alike(node.deck) if by_memory and node.deck.cards else None for node in nodes]
        self._decks = list(dict.fromkeys(deck for deck in decks if deck is not None)) or [Deck(1)]
        number = {deck: k for k, deck in enumerate(self._decks)}
        self.kind: IntArray = np.array([0 if deck is None else number[deck] for deck in decks], int)
        self.kinds = len(self._decks)
        unknown = [node.name for node in nodes if node.deck.cards and not node.deck.memory]
        if unknown and any(each.memory for cards in asked for each in cards):
            account.note(
                f"{plural(len(unknown), 'node')} with GPUs, such as {unknown[0]}, without a label {self.gpu}.memory: how much memory their "
                "cards have is not known, so a pod that asks for memory of a card takes a whole one there"
            )
        unlike = [node.name for node in nodes if node.deck.unlike]
        if unlike and by_memory:
            account.note(
                f"{plural(len(unlike), 'node')}, such as {unlike[0]}, with GPUs of unlike memory or computing power: every GPU of such a "
                "node counts as its smallest, so a pod that fits only on a larger one may not run there"
            )
        broken = [node for node in nodes if node.deck.broken]
        if broken:
            gpus = plural(sum(node.deck.broken for node in broken), "GPU is", "GPUs are")
            account.note(f"{gpus} not healthy by HAMi's list, such as of {broken[0].name}: they do not count")
        counted = Parts()
        for cards, pods_of in asked.items():
            parts = {part for deck in self._decks for each in cards if 0 < (part := _part(each, deck)) < 1}
            for part in parts:
                counted.taken(part, pods_of)
        for note in counted.notes("GPU", "pod"):
            account.note(note)

    def taken(self, cards: Sequence[CardRequest]) -> list[Fraction]:
        """Return how many cards a pod takes on each kind of node."""
        return [taken_on(deck, cards) for deck in self._decks]

    def allowed(self, cards: Sequence[CardRequest]) -> BoolArray:
        """Return which nodes have enough cards side by side, and large enough ones, (nodes,); nodes without cards are no matter here."""
        return np.array(
            [
                all(not node.deck.cards or (each.cards <= node.deck.cards and _part(each, node.deck) <= 1) for each in cards)
                for node in self._nodes
            ],
            bool,
        )


def taken_on(deck: Deck, cards: Sequence[CardRequest]) -> Fraction:
    """Return how many cards a pod takes on a node with these cards."""
    return sum((each.cards * effective_part(min(_part(each, deck), Fraction(1))) for each in cards), Fraction(0))


def _alike(deck: Deck) -> Deck:
    """Return what a part of a card depends on."""
    return Deck(1, deck.memory, deck.cores, deck.sharers)


def _part(request: CardRequest, deck: Deck) -> Fraction:
    """Return the part of a card: of memory that is not known, the whole card."""
    of_memory = Fraction(0) if not request.memory else Fraction(request.memory, deck.memory) if deck.memory else Fraction(1)
    of_cores = Fraction(request.cores, deck.cores) if request.cores and deck.cores else Fraction(0)
    least = Fraction(1, deck.sharers) if deck.sharers else Fraction(0)
    return max(request.part, of_memory, of_cores, least)
