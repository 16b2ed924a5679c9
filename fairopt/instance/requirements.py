"""What a user requires of its servers: ``gpu_model in V100|T4; zone = a; cores >= 4``.

Clauses are separated by ";", and all must hold. Each is an attribute, an operator and a value:

=======================================  ==============================================================================
``=``  ``==``  ``!=``                    equal or not; compared as numbers if both sides are numbers, else as text (case matters)
``in a|b|c``  ``not in a|b``             one of these or none of them
``<``  ``<=``  ``>``  ``>=``             a number to compare with
=======================================  ==============================================================================

A server without the attribute passes ``!=`` and ``not in`` and fails all other operators. A server whose attribute is not a number fails
``<``, ``<=``, ``>`` and ``>=``. ``true`` and ``false`` may be written in any case. Values cannot contain ";" or "|".

>>> cluster = Attributes([{"gpu_model": "V100", "cores": 4}, {"gpu_model": "T4", "cores": 8}, {}])
>>> cluster.where("gpu_model in V100|T4; cores >= 8")
array([False,  True, False])
>>> cluster.where("gpu_model != T4")
array([ True, False,  True])
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance
from fairopt.instance.attributes import NUMBER, Value, text_of
from fairopt.validation import BoolArray, FloatArray, IntArray
from fairopt.wording import did_you_mean, joined

__all__ = ["Attributes", "Clause", "parse"]

COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
CLAUSE = re.compile(r"(?P<attribute>.*?)\s*(?P<operator>==|!=|<=|>=|=|<|>|(?<!\S)(not\s+)?in(?!\S))\s*(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition on one attribute."""

    attribute: str
    operator: str
    values: tuple[str, ...]


def parse(requires: str) -> tuple[Clause, ...]:
    """Return the clauses of a requirement.

    Raises
    ------
    InvalidInstance
        With the clause that cannot be read.

    >>> parse("cores >= 4; gpu_model not in V100|T4")
    (Clause(attribute='cores', operator='>=', values=('4',)), Clause(attribute='gpu_model', operator='not in', values=('V100', 'T4')))
    """
    return tuple(_clause(text.strip()) for text in requires.split(";") if text.strip())


def _clause(text: str) -> Clause:
    match = CLAUSE.fullmatch(text)
    if match is None:
        raise InvalidInstance(f'"{text}" has no operator; write attribute = value, or one of != in, not in, < <= > >=')
    attribute, operator, value = match["attribute"], " ".join(match["operator"].split()), match["value"]
    if not attribute:
        raise InvalidInstance(f'"{text}" has no attribute before {operator}; write, for instance, zone {operator} {value or "a"}')
    if not value or value[0] in "=<>!":
        raise InvalidInstance(f'"{text}" has no value after {operator}; write, for instance, {attribute} {operator} 4')
    if operator not in ("in", "not in"):
        if "|" in value:
            raise InvalidInstance(f'"{text}" has several values; write {attribute} in {value}')
        if operator in COMPARISONS and not NUMBER.fullmatch(value):
            raise InvalidInstance(f'"{text}" compares with "{value}", which is not a number; give a number, or use = or in')
        return Clause(attribute, "=" if operator == "==" else operator, (value,))
    values = tuple(part.strip() for part in value.split("|"))
    if "" in values:
        raise InvalidInstance(f'"{text}" has an empty value; write one | between two values')
    if len(values) == 1 and "," in value:
        raise InvalidInstance(f'"{text}" has a comma; separate values with |')
    return Clause(attribute, operator, values)


@dataclass(frozen=True, slots=True)
class _Column:
    """One attribute of all servers: its distinct values, and for each server the index of its value (-1: no value)."""

    texts: list[str]
    numbers: FloatArray
    codes: IntArray


class Attributes:
    """The attributes of the servers, which requirements are checked against.

    Parameters
    ----------
    servers : sequence of mappings
        The attributes of each server.
    """

    def __init__(self, servers: Sequence[Mapping[str, Value]]) -> None:
        self._servers = servers
        self._names = dict.fromkeys(sorted({name for server in servers for name in server}))
        self._columns: dict[str, _Column] = {}
        self._answers: dict[str | Clause, BoolArray] = {}  # hundreds of users share a few requirements

    def where(self, requires: str) -> BoolArray:
        """Return which servers meet a requirement, bool (servers,).

        Raises
        ------
        InvalidInstance
            The requirement cannot be read or asks for an attribute that no server has.
        """
        if requires not in self._answers:
            answer = np.ones(len(self._servers), bool)
            for clause in parse(requires):
                answer &= self.meets(clause)
            self._answers[requires] = answer
        return self._answers[requires].copy()

    def values(self, attribute: str) -> list[str]:
        """Return the values that an attribute has, as text, in the order of the servers; an attribute that no server has has none."""
        return self._column(attribute).texts if attribute in self._names else []

    def meets(self, clause: Clause) -> BoolArray:
        """Return which servers meet one condition, bool (servers,); it must not be changed.

        Raises
        ------
        InvalidInstance
            As `where`.
        """
        if clause not in self._answers:
            column = self._column(clause.attribute)
            good = np.zeros(len(column.texts) + 1, bool)  # the last: without the attribute
            if clause.operator in COMPARISONS:
                if np.isnan(column.numbers).all():
                    what = f'"{clause.attribute} {clause.operator} {clause.values[0]}"'
                    raise InvalidInstance(
                        f'{what} compares numbers, but that attribute is text ("{column.texts[0]}") on every server; use = or in'
                    )
                good[:-1] = COMPARISONS[clause.operator](column.numbers, float(clause.values[0]))
            else:
                numbers = [float(value) for value in clause.values if NUMBER.fullmatch(value)]
                words = {text_of(value) for value in clause.values if not NUMBER.fullmatch(value)}
                good[:-1] = np.isin(column.numbers, numbers) | np.array([text in words for text in column.texts], bool)
                if clause.operator in ("!=", "not in"):
                    good = ~good
            self._answers[clause] = good[column.codes]
        return self._answers[clause]

    def _column(self, name: str) -> _Column:
        if name not in self._columns:
            if name not in self._names:
                others = f"; the attributes are {joined([*self._names], 20)}" if self._names else "; give the servers attributes"
                raise InvalidInstance(f'no server has the attribute "{name}"{did_you_mean(name, self._names) or others}')
            texts = [text_of(server[name]) if name in server else None for server in self._servers]
            distinct = {text: code for code, text in enumerate(dict.fromkeys(t for t in texts if t is not None))}
            numbers = [float(text) if NUMBER.fullmatch(text) else np.nan for text in distinct]
            codes: npt.NDArray[np.int64] = np.array([-1 if text is None else distinct[text] for text in texts])
            self._columns[name] = _Column(list(distinct), np.array(numbers), codes)
        return self._columns[name]
