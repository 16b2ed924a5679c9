"""Units of resources: how an instance knows them, and amounts as text.

The numbers of an instance have the unit that its owner chose. It is known where it was given (``Instance(units={"memory": "GiB"})``, in a
file ``units:``), where amounts in a file have a byte unit, which means bytes, and where the name of the resource ends in one: "RAM (GB)".
Nothing is computed from a unit but exports to schedulers: all amounts of a resource have the same one.

>>> units_of(["gpu", "memory", "RAM (GB)"], {"memory": "GiB"})
{'memory': 'GiB', 'RAM (GB)': 'GB'}
>>> [unit_in_name(name) for name in ("RAM (GB)", "mem_mib", "memory GB", "memory", "GB", "hugepages-2Mi", "link (Gb/s)")]
['GB', 'MiB', 'GB', '', '', '', '']
>>> [amount(9216.0, "memory", "GiB"), amount(9216.0, "RAM (GB)", "GB"), amount(12.0, "gpu"), amount(64 * 2.0**30, "memory", "B")]
['9,216 GiB memory', '9,216 RAM (GB)', '12 gpu', '64 GiB memory']
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.wording import did_you_mean, figure, found, joined, named, printable

__all__ = ["BYTES", "amount", "bare_amount", "shown_unit", "unit_in_name", "units_of", "without_unit"]

BYTES = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGTP", 1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", 1)},
    "KB": 1000,
}
"""Units of amounts in bytes, and how many bytes each is."""
_LONGEST = 40  # characters of a unit
_SHOWN = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_SPELLED = {spelling: unit for unit in BYTES if unit != "B" for spelling in (unit, unit.lower(), unit.upper())}
_LETTERS = {spelling: f"{spelling}B" for letter in "KMGTP" for spelling in (letter, f"{letter}i")}  # as Slurm and Kubernetes write them
# A unit at the end of a name, in brackets or after a space or a sign. A single letter is one in brackets only.
_AT_END = re.compile(
    rf"(?P<name>.*?\S)(?:\s*[\[(]\s*(?P<inside>bytes|B|{'|'.join([*_SPELLED, *_LETTERS])})\s*[\])]"
    rf"|(?:\s+in\s+|[\s_,-]+)(?P<after>bytes|{'|'.join(_SPELLED)}))\s*"
)


@lru_cache(maxsize=1024)
def unit_in_name(resource: str) -> str:
    """Return the unit of bytes at the end of a name of a resource, as `BYTES` has it; "" for none."""
    match = _AT_END.fullmatch(resource)
    if match is None:
        return ""
    unit = match["inside"] or match["after"]
    return "B" if unit in ("bytes", "B") else _SPELLED.get(unit) or _LETTERS[unit]


def without_unit(resource: str) -> str:
    """Return a name of a resource without the unit at its end.

    >>> without_unit("RAM (GB)"), without_unit("memory")
    ('RAM', 'memory')
    """
    match = _AT_END.fullmatch(resource)
    return resource if match is None else match["name"]


def units_of(resources: Sequence[str], given: Mapping[str, str] | None) -> dict[str, str]:
    """Return the known units by resource, in the order of the resources: those given, and those in names.

    Raises
    ------
    InvalidInstance
        There is no such resource, a unit is no short text, or it is not that in the name of the resource.
    """
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInstance(f'units: expected a mapping such as {{"memory": "GiB"}}, found {found(given)}')
    own = dict(given or {})
    for resource, unit in own.items():
        if resource not in resources:
            raise InvalidInstance(
                f'units: there is no resource "{resource}"{did_you_mean(str(resource), resources)}; there are {joined(resources, 8)}'
            )
        if not isinstance(unit, str) or not unit.strip() or len(unit) > _LONGEST or not unit.isprintable():
            raise InvalidInstance(f"units, {resource}: expected a unit such as GiB, found {found(unit)}")
        inside = unit_in_name(resource)
        if inside and unit != inside:
            raise InvalidInstance(f"units, {resource}: its name says {inside}, and the unit given is {unit}; give one of them")
    every = {resource: own.get(resource) or unit_in_name(resource) for resource in resources}
    return {resource: unit for resource, unit in every.items() if unit}


def amount(value: Any, resource: str, unit: str = "", digits: int = 3) -> str:
    """Return an amount of a resource: number, unit and name. Bytes are shown as GiB, MiB or KiB where they are so many.

    >>> amount(0.5, "gpu"), amount(1536.0, "disk", "B", 6), amount(0.0, "memory", "B")
    ('0.5 gpu', '1.5 KiB disk', '0 B memory')
    """
    name = printable(resource) if unit_in_name(resource) else named(resource)
    return f"{bare_amount(value, resource, unit, digits)} {name}"


def bare_amount(value: Any, resource: str, unit: str = "", digits: int = 3) -> str:
    """Return an amount of a resource without its name: number and unit, unless the name has it."""
    size, shown = shown_unit(abs(value), resource, unit)
    number = figure(value / size if size > 1 else value, digits)
    return f"{number} {shown}" if shown else number


def shown_unit(largest: Any, resource: str, unit: str) -> tuple[int, str]:
    """Return the unit in which amounts up to ``largest`` are shown ("" where the name of the resource has it), and how large it is.

    >>> shown_unit(2.0**31, "memory", "B"), shown_unit(8.0, "memory", "GiB"), shown_unit(8.0, "RAM (GB)", "GB")
    ((1073741824, 'GiB'), (1, 'GiB'), (1, ''))
    """
    if unit_in_name(resource):
        return 1, ""
    return next((each for each in _SHOWN if largest >= each[0]), (1, unit)) if unit == "B" else (1, unit)
