"""Amounts of resources in the units of a scheduler, as whole numbers of its smallest unit.

The unit of ``memory`` (and ``ram``, ``ephemeral-storage``, ``hugepages-...``), and of every resource that the caller maps to memory of
the scheduler, is the first of these that is known: the one that the caller gives (``units``, ``--unit``), that of the instance, that in
the name of the resource. Resources named as above are in GiB where it is not known, as the importers write them; others are refused. A GB
in a name is taken as GiB, because people write so what Slurm calls G and Kubernetes Gi; a note says so. A GB behind a number is a power of
1000, and a note says how many GiB that is. ``cpu`` is in cores unless a unit is given. All other resources are counted in pieces.

An amount is rounded up to the smallest unit, so that the tasks it is for fit into it. Where rounding up would exceed what the servers have,
it is rounded by the largest remainder instead, and the sum is what the servers have.

>>> whole_units([1.5, 1.5], 3), whole_units([0.2, 0.2], 3), whole_units([2.0000000001, 1], 3)
([2, 1], [1, 1], [2, 1])
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fairopt.errors import InvalidInstance
from fairopt.instance import Instance
from fairopt.instance.tolerances import NOTHING
from fairopt.instance.units import BYTES, unit_in_name, without_unit
from fairopt.wording import did_you_mean, in_shell, joined, named

__all__ = [
    "Measure",
    "Measures",
    "check_headroom",
    "check_memory",
    "enlarged",
    "kind_of",
    "measures",
    "notes_of_units",
    "whole_part",
    "whole_units",
]

_MOST_HEADROOM = 1000
_MOST_GIB = 1e8  # of a server: 100 PiB; as bytes, they would be a tenth of a GiB
_CORES = {"cores": Fraction(1), "millicores": Fraction(1, 1000)}
_CPUS = ("cpu", "cpus", "core", "cores", "vcore", "vcores", "vcpu", "vcpus", "cpu cores", "cpu core")
_MEMORIES = ("memory", "mem", "ram", "ephemeral-storage", "memory-mb")


def kind_of(resource: str) -> str:
    """Return "cpu", "memory" (anything in bytes), "gpu", or "" for what is only counted. A unit in the name does not matter.

    >>> [kind_of(name) for name in ("CPU cores", "memory", "hugepages-2Mi", "RAM (GB)", "GPU", "nvidia.com/gpu", "pods")]
    ['cpu', 'memory', 'memory', 'memory', 'gpu', 'gpu', '']
    """
    name = without_unit(resource).lower()
    if name in _CPUS:
        return "cpu"
    if name in _MEMORIES or name.startswith("hugepages-"):
        return "memory"
    return "gpu" if name in ("gpu", "gpus") or name.endswith("/gpu") else ""


@dataclass(frozen=True, slots=True)
class Measure:
    """How a scheduler counts a resource.

    Attributes
    ----------
    key : str
        Its name there.
    kind : str
        As `kind_of` says.
    steps : float
        How many of the scheduler's smallest units are one unit of the instance.
    assumed : bool
        The unit of the instance was not given.
    note : str
        How the unit in its name is understood, where it has two meanings.
    """

    key: str
    kind: str
    steps: float
    assumed: bool = False
    note: str = ""


Measures = dict[str, Measure]


def measures(
    instance: Instance,
    key_of: Callable[[str], str | None],
    smallest: Mapping[str, Fraction | int],
    *,
    grammar: re.Pattern[str] | None = None,
    keys: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    in_bytes: Sequence[str] = (),
    system: str = "",
) -> Measures:
    """Return the measure of each resource that the scheduler knows.

    Parameters
    ----------
    key_of : function
        The scheduler's name of a resource; None where it has none.
    smallest : mapping
        The smallest unit by kind: "cpu" in cores, "memory" in bytes, "gpu" and "" in pieces.
    grammar : pattern, optional
        What a name of a resource may be there, as a whole.
    keys, units : mappings, optional
        Names and units of resources that the caller gives.
    in_bytes : sequence of str
        Names in the scheduler that are amounts of bytes there, beside those that `kind_of` knows.

    Raises
    ------
    InvalidInstance
        An unknown resource or unit, memory whose unit nothing says, a name that the scheduler's grammar forbids, and two resources of
        one name.
    """
    given, of_unit, resources = dict(keys or {}), dict(units or {}), instance.resources
    for resource in (*given, *of_unit):
        if resource not in resources:
            raise InvalidInstance(f'there is no resource "{resource}"{did_you_mean(resource, resources)}; there are {joined(resources, 8)}')
    result: Measures = {}
    for resource in resources:
        if resource in instance.shared:  # on no server, where quotas are: `fairopt.clusters.exported` says so
            continue
        key = given.get(resource) or key_of(resource)
        if key is None:
            continue
        there = "memory" if key in in_bytes else kind_of(key) if resource in given else ""
        kind = there or kind_of(resource)
        if grammar is not None and grammar.fullmatch(key) is None:
            raise InvalidInstance(
                f"{named(key)} cannot be the name of a resource in {system}; give another: --resource-name {in_shell(f'{resource}=NAME')}"
            )
        same = [name for name, measure in result.items() if measure.key == key]
        if same:
            option = f"--resource-name {in_shell(f'{resource}=NAME')}"
            raise InvalidInstance(f'"{same[0]}" and "{resource}" would both be "{key}" in {system}; name one: {option}')
        own, note = instance.units.get(resource), ""
        unit = of_unit.get(resource) or own
        if kind == "memory":
            if unit is None and kind_of(resource) != "memory":
                raise InvalidInstance(
                    f"nothing says in which unit {named(resource)} is, which is {named(key)} in {system}: "
                    f"give it, such as --unit {in_shell(f'{resource}=GiB')}"
                )
            size: Fraction | int = _known(BYTES, unit or "GiB", resource)
            if resource not in of_unit and own and own == unit_in_name(resource) and own not in ("B", binary := _binary(own)):
                size, note = BYTES[binary], _taken(resource, own, binary, system)
            elif size == 1 and (amount := _in_thousands(instance, resource)):
                note = _shrunk(resource, amount, system)
        elif kind == "cpu":
            size = _known(_CORES, unit or "cores", resource)
        elif resource in of_unit:
            raise InvalidInstance(
                f'"{resource}" is counted and has no unit; units are for cpu and memory '
                f"(is it memory? --resource-name {in_shell(f'{resource}=NAME')} says what it is called there)"
            )
        else:
            size = 1
        result[resource] = Measure(key, kind, float(Fraction(size) / Fraction(smallest.get(kind, 1))), unit is None, note)
    return result


def notes_of_units(known: Measures) -> list[str]:
    """Return how units in names of resources are understood."""
    return [measure.note for measure in known.values() if measure.note]


def _binary(unit: str) -> str:
    """Return the power of 1024 that people mean by a unit of bytes: "GiB" for "GB"."""
    return unit if unit == "B" or "i" in unit else f"{unit[0].upper()}iB"


def _taken(resource: str, unit: str, binary: str, system: str) -> str:
    return (
        f"the {unit} in the name of {named(resource)} is taken as {binary}, a power of 1024 as {system} counts; "
        f"--unit {named(resource)}={unit} makes it a power of 1000"
    )


def _in_thousands(instance: Instance, resource: str) -> float:
    """Return the largest amount of a task, or else of a server, that is whole in MB and not in MiB; 0 if there is none."""
    column = instance.resources.index(resource)
    for amounts in (instance.demands_by_kind[:, :, column], instance.capacities[:, column]):
        found = amounts[(amounts > 0) & (amounts % 1000**2 == 0) & (amounts % 1024**2 != 0)]
        if found.size:
            return float(found.max())
    return 0.0


def _shrunk(resource: str, amount: float, system: str) -> str:
    """Return what an amount in powers of 1000 is in those of 1024."""
    thousands = f"{amount / BYTES['GB']:g}"
    return (
        f"{thousands} GB of {named(resource)} is {amount / BYTES['GiB']:.4g} GiB, as a GB behind a number is a power of 1000: write GiB "
        f"where jobs ask {system} for {thousands} GiB, or fewer of them fit"
    )


def check_memory(resource: str, measure: Measure, server: str, amount: float) -> None:
    """Refuse memory of a server that cannot be in GiB, where no other unit is given: a file that says 256GiB means bytes.

    Raises
    ------
    InvalidInstance
    """
    if measure.kind == "memory" and measure.assumed and amount >= _MOST_GIB:
        raise InvalidInstance(
            f"server {named(server)} has {amount:.6g} of {named(resource)}, which cannot be GiB; say in which unit it is: "
            f"--unit {in_shell(f'{resource}=B')} for bytes"
        )


def _known(units: Mapping[str, Fraction | int], unit: str, resource: str) -> Fraction | int:
    if unit not in units:
        raise InvalidInstance(f'{named(resource)} has no unit "{unit}"{did_you_mean(unit, units)}; there are {", ".join(units)}')
    return units[unit]


def whole_units(amounts: Sequence[float], most: float) -> list[int]:
    """Return amounts as whole numbers whose sum is at most ``most``: rounded up if that fits, else by the largest remainder."""
    exact = [_snapped(amount) for amount in amounts]
    up = [math.ceil(amount) for amount in exact]
    room = whole_part(most)
    if sum(up) <= room:
        return up
    down = [math.floor(amount) for amount in exact]
    left = max(room - sum(down), 0)
    order = sorted(range(len(exact)), key=lambda n: (down[n] - exact[n], n))
    for n in order[: min(left, len(order))]:
        if exact[n] > down[n]:
            down[n] += 1
    return down


def whole_part(amount: float) -> int:
    """Return an amount rounded down, but for what rounding took off it.

    >>> whole_part(2.9999999999), whole_part(2.9)
    (3, 2)
    """
    return math.floor(_snapped(amount))


def enlarged(amount: int, factor: float) -> int:
    """Return an amount times a factor, rounded up.

    >>> enlarged(10, 1.1), enlarged(0, 1.1), enlarged(7, 1.0)
    (11, 0, 7)
    """
    return math.ceil(_snapped(amount * factor))


def check_headroom(headroom: float | None) -> None:
    """Refuse a factor that is not a number from 1 to 1000.

    Raises
    ------
    InvalidInstance
    """
    if headroom is not None and not headroom >= 1:
        raise InvalidInstance(f"headroom is {headroom:g}; give a factor >= 1, such as 1.1 for a tenth more than the exact amounts")
    if headroom is not None and headroom > _MOST_HEADROOM:
        raise InvalidInstance(f"headroom is {headroom:g}; give a factor of at most {_MOST_HEADROOM}, such as 1.1")


def _snapped(amount: float) -> float:
    nearest = round(amount)
    return float(nearest) if abs(amount - nearest) <= NOTHING * max(1.0, abs(amount)) else amount
