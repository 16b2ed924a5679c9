"""Amounts of resources in the format of Kubernetes, as whole numbers of 1e-9, and in the units of an instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from fairopt.clusters.json_export import Part
from fairopt.instance.quantities import NANO, nano

__all__ = ["Amounts", "add", "amounts_of", "in_units", "largest_of", "quantity", "unit_of"]

Amounts: TypeAlias = dict[str, int]
"""By resource, in units of 1e-9."""

_GIB = NANO << 30


def amounts_of(part: Part) -> Amounts:
    """Read quantities by resource, in units of 1e-9."""
    return {resource: quantity(each) for resource, each in part.entries().items()}


def quantity(part: Part) -> int:
    """Read a quantity, in units of 1e-9."""
    if isinstance(part.value, bool) or not isinstance(part.value, str | int | float):
        part.refuse("expected a quantity such as 500m, 2 or 1.5Gi")
    try:
        return nano(part.value)
    except ValueError as error:
        part.refuse(str(error))


def add(amounts: Sequence[Amounts]) -> Amounts:
    """Add amounts of resources."""
    total: Amounts = {}
    for each in amounts:
        for resource, amount in each.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def largest_of(one: Amounts, other: Amounts) -> Amounts:
    """Return the larger amount of each resource."""
    return {resource: max(one.get(resource, 0), other.get(resource, 0)) for resource in one | other}


def unit_of(resource: str) -> str:
    """Return the unit in which an instance counts a resource."""
    if resource == "cpu":
        return "cores"
    return "GiB" if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-") else ""


def in_units(resource: str, amount: int) -> float:
    """Return an amount, given in units of 1e-9, in the unit of the instance."""
    return amount / (_GIB if unit_of(resource) == "GiB" else NANO)
