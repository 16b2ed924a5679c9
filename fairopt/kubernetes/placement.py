"""Where a pod may run: taints and tolerations, ``nodeSelector`` and required node affinity."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fairopt.clusters.json_export import Part
from fairopt.instance import BoolArray

if TYPE_CHECKING:
    from fairopt.kubernetes.records import Node

__all__ = ["Constraints", "Expression", "Labels", "Toleration", "read_affinity", "read_toleration"]

Toleration: TypeAlias = tuple[str, str, str, str]
"""Key, operator, value and effect."""

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


@dataclass(frozen=True, slots=True)
class Expression:
    """``key operator values``, of labels or fields of a node."""

    key: str
    operator: str
    values: tuple[str, ...]


_Term = tuple[tuple[Expression, ...], tuple[Expression, ...]]  # on labels, on fields: all must hold


@dataclass(frozen=True, slots=True)
class Constraints:
    """What restricts where a pod may run."""

    selector: tuple[Expression, ...]
    affinity: tuple[_Term, ...] | None  # one must hold
    tolerations: tuple[Toleration, ...]


def read_toleration(part: Part) -> Toleration:
    """Read a toleration."""
    operator = part.get("operator").text("") or "Equal"
    if operator not in ("Equal", "Exists"):
        part["operator"].refuse(f'there is no operator "{operator}" here; the operators are Equal and Exists')
    return part.get("key").text(""), operator, part.get("value").text(""), part.get("effect").text("")


def read_affinity(required: Part) -> tuple[_Term, ...] | None:
    """Read the terms of a required node affinity; None where there is none."""
    if required.value is None:
        return None
    return tuple(
        (
            tuple(_expression(each) for each in term.get("matchExpressions").items()),
            tuple(_expression(each) for each in term.get("matchFields").items()),
        )
        for term in required["nodeSelectorTerms"].items()
    )


def _expression(part: Part) -> Expression:
    operator, values = part["operator"].text(), tuple(each.text() for each in part.get("values").items())
    if operator not in _OPERATORS:
        part["operator"].refuse(f'there is no operator "{operator}"; the operators are {", ".join(_OPERATORS)}')
    if operator in ("Gt", "Lt") and not (len(values) == 1 and _integer(values[0]) is not None):
        part.get("values").refuse(f"{operator} compares with one whole number, written as text; found {list(values)}")
    return Expression(part["key"].text(), operator, values)


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


class Labels:
    """The labels and taints of the nodes, which constraints are checked against."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._answers: dict[tuple[Expression, bool], BoolArray] = {}  # many pods share a few expressions
        self._values: dict[tuple[str, bool], dict[str | None, list[int]]] = {}  # the nodes of each value of a label or a field
        kinds = dict.fromkeys(node.taints for node in nodes)
        number = {taints: j for j, taints in enumerate(kinds)}
        self._taints, self._taints_of = list(kinds), np.array([number[node.taints] for node in nodes], int)

    def allowed(self, constraints: Constraints, extra: Sequence[tuple[Collection[str], tuple[Toleration, ...]]] = ()) -> BoolArray:
        """Return where pods with these constraints may run, (nodes,); ``extra`` are tolerations that they get on some nodes."""
        allowed = self._allowed(constraints)
        for nodes, tolerations in extra:
            there = np.array([node.name in nodes for node in self._nodes], bool)
            allowed = allowed | (there & self._allowed(replace(constraints, tolerations=(*constraints.tolerations, *tolerations))))
        return allowed

    def among(self, names: Collection[str] | None) -> BoolArray:
        """Return which nodes have one of these names, (nodes,); None: all."""
        return np.array([names is None or node.name in names for node in self._nodes], bool)

    def _allowed(self, constraints: Constraints) -> BoolArray:
        tolerated = [all(any(_tolerates(t, taint) for t in constraints.tolerations) for taint in taints) for taints in self._taints]
        allowed: BoolArray = np.array(tolerated, bool)[self._taints_of]
        for expression in constraints.selector:
            allowed = allowed & self._holds(expression, False)
        if constraints.affinity is not None:
            some = np.zeros(len(self._nodes), bool)
            for on_labels, on_fields in constraints.affinity:
                if on_labels or on_fields:  # an empty term matches nothing
                    term = np.ones(len(self._nodes), bool)
                    for expressions, fields in ((on_labels, False), (on_fields, True)):
                        for expression in expressions:
                            term = term & self._holds(expression, fields)
                    some = some | term
            allowed = allowed & some
        return allowed

    def _holds(self, expression: Expression, field: bool) -> BoolArray:
        if (expression, field) not in self._answers:
            nodes_of = self._nodes_of(expression.key, field)
            values = expression.values if expression.operator == "In" else nodes_of
            found = np.zeros(len(self._nodes), bool)
            for value in values:
                if _matches(expression, value):
                    found[nodes_of.get(value, [])] = True
            self._answers[expression, field] = found
        return self._answers[expression, field]

    def _nodes_of(self, key: str, field: bool) -> dict[str | None, list[int]]:
        """Return the positions of the nodes by their value of a label or a field; None: without it."""
        if (key, field) not in self._values:
            nodes_of = self._values[key, field] = {}
            for i, node in enumerate(self._nodes):
                value = {"metadata.name": node.name}.get(key) if field else node.labels.get(key)
                nodes_of.setdefault(value, []).append(i)
        return self._values[key, field]


def _matches(expression: Expression, value: str | None) -> bool:
    match expression.operator:
        case "In":
            return value in expression.values
        case "NotIn":
            return value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    number = None if value is None else _integer(value)
    bound = int(expression.values[0])
    return number is not None and (number > bound if expression.operator == "Gt" else number < bound)


def _tolerates(toleration: Toleration, taint: tuple[str, str, str]) -> bool:
    key, operator, value, effect = toleration
    if effect and effect != taint[2]:
        return False
    if not key:
        return operator == "Exists"
    return key == taint[0] and (operator == "Exists" or value == taint[1])
