"""Amounts of all resource types in YARN's answers, and the labels of its nodes.

An amount has ``memory`` (MiB), ``vCores``, and in ``resourceInformations`` every type of the cluster, such as ``yarn.io/gpu``, in its unit.
An older answer has the first two only.

>>> from fairopt.clusters.json_export import Part
>>> gpu = {"name": "yarn.io/gpu", "units": "", "value": 2}
>>> amount = {"memory": 4096, "vCores": 1, "resourceInformations": {"resourceInformation": [gpu]}}
>>> amounts_of(Part(amount, "apps.json"))
{'cpu': 1.0, 'memory': 4.0, 'yarn.io/gpu': 2.0}

What a file of queues says becomes such an amount, too, with the resources that it states (:func:`as_answer`): 0 in a file means 0, and in
an answer also that nothing is stated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairopt.clusters.json_export import Part, read_json

__all__ = [
    "Offer",
    "add",
    "amounts_of",
    "as_answer",
    "dominant",
    "known_amount",
    "one_or_more",
    "shared_labels",
    "stated",
    "total_of",
]

_PLAIN = {"cpu": ("vCores", 1.0), "memory": ("memory", 1024.0)}  # MiB -> GiB
_AGAIN = ("memory-mb", "vcores")  # what resourceInformations says again
_IN_FILES = {"memory": "memory", "memory-mb": "memory", "vcores": "cpu", "vcore": "cpu"}
_NUMBER = re.compile(r"(\d{1,20}(?:\.\d{0,20})?)\s*([A-Za-z]{0,2})", re.ASCII)
_COMMAND = "curl http://RESOURCEMANAGER:8088/ws/v1/cluster/get-node-labels > labels.json"
_UNITS = {"": 1.0, "p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTP", 1)
}


@dataclass(frozen=True, slots=True)
class Offer:
    """A node that accepts work: its labels, and what it offers."""

    name: str
    labels: tuple[str, ...]
    amounts: Mapping[str, float]

    def has(self, label: str) -> bool:
        """Return whether it is in the partition of a label; of none, if it has none."""
        return label in self.labels if label else not self.labels


def total_of(offers: Sequence[Offer]) -> dict[str, float]:
    """Return what nodes offer together."""
    return {"cpu": 0.0, "memory": 0.0} | add(*(dict(offer.amounts) for offer in offers))


def dominant(amounts: Mapping[str, float], total: Mapping[str, float]) -> float:
    """Return the largest part of a resource that amounts are."""
    return max((amount / total[resource] for resource, amount in amounts.items() if total.get(resource)), default=0.0)


def one_or_more(part: Part) -> list[Part]:
    """Return the parts of a list; a list of one may be written without the list."""
    return [part] if isinstance(part.value, dict) else part.items()


def amounts_of(part: Part) -> dict[str, float]:
    """Return an amount of every resource: cpu (virtual cores), memory (GiB), and other types by their names, in their base unit."""
    amounts = {resource: part.get(field).number(0.0) / unit for resource, (field, unit) in _PLAIN.items()}
    for each in one_or_more(part.get("resourceInformations").get("resourceInformation")):
        name = each["name"].text()
        if name not in _AGAIN:
            unit = each.get("units").text("")
            if unit not in _UNITS:
                each["units"].refuse(f'there is no unit "{unit}" of a resource type')
            amounts[name] = each["value"].number() * _UNITS[unit]
    return amounts


def as_answer(amounts: Mapping[str, float]) -> dict[str, Any]:
    """Return amounts of a file as an answer has them, with the resources that the file states.

    >>> as_answer({"memory": 4.0})
    {'memory': 4096.0, 'resourceInformations': {'resourceInformation': []}, 'stated': ['memory']}
    """
    answer: dict[str, Any] = {field: amounts[resource] * unit for resource, (field, unit) in _PLAIN.items() if resource in amounts}
    others = [{"name": resource, "value": amount} for resource, amount in amounts.items() if resource not in _PLAIN]
    return answer | {"resourceInformations": {"resourceInformation": others}, "stated": list(amounts)}


def stated(part: Part) -> list[str] | None:
    """Return the resources that a file states in an amount; None of the amount of an answer."""
    return None if part.get("stated").value is None else [each.text() for each in part["stated"].items()]


def known_amount(name: str, text: str) -> tuple[str, float] | None:
    """Return the resource and the amount that a file of queues means, in the units of an instance; None if it is no such amount.

    Memory without a unit is in MiB.

    >>> known_amount("memory-mb", "10240"), known_amount("memory", "10Gi"), known_amount("vcores", "12"), known_amount("yarn.io/gpu", "x")
    (('memory', 10.0), ('memory', 10.0), ('cpu', 12.0), None)
    """
    number = _NUMBER.fullmatch(text.strip())
    if number is None or number[2] not in _UNITS or not name:
        return None
    resource, amount = _IN_FILES.get(name.lower(), name), float(number[1]) * _UNITS[number[2]]
    if resource == "memory":
        amount /= 2**30 if number[2] else 1024
    return resource, amount


def add(*amounts: dict[str, float]) -> dict[str, float]:
    """Return the sum of amounts."""
    total: dict[str, float] = {}
    for each in amounts:
        for resource, amount in each.items():
            total[resource] = total.get(resource, 0.0) + amount
    return total


def shared_labels(path: str | os.PathLike[str]) -> Sequence[str]:
    """Return the labels whose partition is not exclusive, from the answer to ``/ws/v1/cluster/get-node-labels``."""
    answer = read_json(path, _COMMAND)
    if isinstance(answer.value, dict) and "nodeLabelsInfo" in answer:
        answer = answer["nodeLabelsInfo"]
    if not isinstance(answer.value, dict) or "nodeLabelInfo" not in answer.value:
        answer.refuse(f'there is no "nodeLabelInfo" in this answer; export it again: {_COMMAND}')
    shared = []
    for label in one_or_more(answer.get("nodeLabelInfo")):
        exclusive = label["exclusivity"].value
        if str(exclusive).lower() not in ("true", "false"):
            label["exclusivity"].refuse("expected true or false")
        if str(exclusive).lower() == "false":
            shared.append(label["name"].text())
    return shared
