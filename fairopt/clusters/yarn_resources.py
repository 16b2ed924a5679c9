"""Amounts of all resource types in YARN's answers, and the labels of its nodes.

An amount has ``memory`` (MiB), ``vCores``, and in ``resourceInformations`` every type of the cluster, such as ``yarn.io/gpu``, in its unit.
An older answer has the first two only.

>>> from fairopt.clusters.json_export import Part
>>> gpu = {"name": "yarn.io/gpu", "units": "", "value": 2}
>>> amount = {"memory": 4096, "vCores": 1, "resourceInformations": {"resourceInformation": [gpu]}}
>>> amounts_of(Part(amount, "apps.json"))
{'cpu': 1.0, 'memory': 4.0, 'yarn.io/gpu': 2.0}
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from fairopt.clusters.json_export import Part, read_json

__all__ = ["add", "amounts_of", "one_or_more", "shared_labels"]

_PLAIN = {"cpu": ("vCores", 1.0), "memory": ("memory", 1024.0)}  # MiB -> GiB
_AGAIN = ("memory-mb", "vcores")  # what resourceInformations says again
_COMMAND = "curl http://RESOURCEMANAGER:8088/ws/v1/cluster/get-node-labels > labels.json"
_UNITS = {"": 1.0, "p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTP", 1)
}


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
