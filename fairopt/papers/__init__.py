"""Published results as data: one TOML file for each paper, with its small instances and its results.

A file has a ``title``, a ``source``, and

``[instances.NAME]``
    The arguments of `Instance`. Numbers may be fractions in quotes: "2/3". Or ``links`` and ``flows`` of `Instance.from_paths`.
``[[result]]``
    ``id``; ``what``, a few words; ``instance``; ``citation``, the place in the paper. A ``notion`` (solved exactly) or an ``algorithm``
    computes the result, with ``options``. ``quantity`` names the part of the result that is compared (default "tasks"). ``published`` holds
    the printed numbers, and ``tolerance`` half a unit of their last digit (default: exact, 1e-9). If the paper is wrong or prints no
    number, ``ours`` holds the result of fairopt, and ``differs`` the reason of the difference.

Other tables belong to the experiment of that paper in `fairopt.reproduction.reproducing`. The tests and ``fairopt reproduce`` read the
same files.

>>> paper = read("drf")
>>> paper.instances["drf"]
Instance(2 users, 1 server, 2 resources: 9 resource-1, 18 resource-2)
>>> result = paper.results[0]
>>> result.notion, result.published, result.citation
('drf', array([3., 2.]), 'section 4.1; Metin, precomputed DRF, section 3.1: A 3 tasks, B 2')
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.instance.fractions import ExactArray, fraction_of

__all__ = ["PAPERS", "Paper", "Result", "read"]

PAPERS = ("drf", "drfh", "psdsf", "kesidis", "bbf", "pdrf", "gavel", "metaopt", "soroush")

_EXACT = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """One published result; the fields are those of the file."""

    id: str
    what: str
    instance: str
    citation: str
    notion: str | None = None
    algorithm: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    quantity: str = "tasks"
    published: FloatArray | None = None
    ours: FloatArray | None = None
    differs: str = ""
    tolerance: float = _EXACT


@dataclass(frozen=True, slots=True, eq=False)
class Paper:
    """The file of one paper. ``more`` holds the tables that are neither instances nor results."""

    name: str
    title: str
    source: str
    instances: dict[str, Instance]
    results: tuple[Result, ...]
    more: dict[str, Any]


@cache
def read(name: str) -> Paper:
    """Read the file of a paper, one of `PAPERS`."""
    data = tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    return Paper(
        name=name,
        title=data.pop("title"),
        source=data.pop("source"),
        instances={key: _instance(arguments) for key, arguments in data.pop("instances", {}).items()},
        results=tuple(_result(entry) for entry in data.pop("result", [])),
        more=data,
    )


def _instance(arguments: dict[str, Any]) -> Instance:
    network = [arguments[name] for name in ("links", "flows") if name in arguments]
    others = {name: value for name, value in arguments.items() if name not in ("links", "flows")}
    numbers: dict[str, Any] = {name: value if name == "eligibility" else _fractions(value) for name, value in others.items()}
    return Instance.from_paths(*network).replace(**numbers) if network else Instance(**numbers)


def _result(entry: dict[str, Any]) -> Result:
    numbers: dict[str, Any] = {key: _numbers(entry[key]) for key in ("published", "ours") if key in entry}
    return Result(**(entry | numbers))


def _numbers(values: Any) -> FloatArray:
    """Return an array of numbers; fractions may be given as strings.

    >>> _numbers([[1, "2/3"]])
    array([[1.        , 0.66666667]])
    """

    return _fractions(values).astype(float)


def _fractions(values: Any) -> ExactArray:
    """Return an array of numbers as they are written: "2/3" is two thirds, 0.1 is a tenth."""

    def number(value: Any) -> Any:
        if isinstance(value, list):
            return [number(item) for item in value]
        return Fraction(value) if isinstance(value, str) else fraction_of(value)

    return np.array(number(values), dtype=object)
