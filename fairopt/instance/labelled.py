"""Values given by label: ``instance.replace(weights={"vision": 3}, counts={"new": 6})``; the others stay as they are.

>>> changed_rows("weights", {"vision": 3}, np.ones(2), ("vision", "language"), "user")
array([3., 1.])
>>> changed_rows("weights", {"visoin": 3}, np.ones(2), ("vision", "language"), "user")
Traceback (most recent call last):
fairopt.errors.InvalidInstance: weights: there is no user "visoin" (did you mean "vision"?)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Rational
from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance.fractions import is_exact
from fairopt.instance.limits import Limit
from fairopt.instance.queues import Queue
from fairopt.validation import BoolArray, FloatArray
from fairopt.wording import did_you_mean, joined, plural, written

__all__ = ["changed_limits", "changed_places", "changed_queues", "changed_rows", "rows_of"]


def rows_of(what: str, given: Any, labels: Sequence[str], kind: str, present: Sequence[Any] | None = None) -> list[Any]:
    """Return an entry for each label, of a sequence with one for each, or of a mapping by label; the others are as they are, or None.

    >>> rows_of("owners", {"b": "lab"}, ("a", "b"), "user")
    [None, 'lab']
    """
    if isinstance(given, Mapping):
        rows = [None] * len(labels) if present is None else list(present)
        for label, value in given.items():
            rows[_position(what, label, labels, kind)] = value
        return rows
    if isinstance(given, str | bytes | set | frozenset) or not isinstance(given, Iterable):
        raise InvalidInstance(f"{what} is {written(given)}; give a list with an entry for each {kind}, None where there is none")
    rows = list(given)
    if len(rows) != len(labels):
        raise InvalidInstance(f"{what} has {plural(len(rows), 'entry', 'entries')} for {plural(len(labels), kind)}; give one for each")
    return rows


def changed_rows(
    what: str,
    given: Mapping[str, Any],
    present: FloatArray | BoolArray,
    rows: Sequence[str],
    kind: str,
    columns: Sequence[str] = (),
    of_columns: str = "",
) -> FloatArray | BoolArray:
    """Return a copy of an array with the values of some rows changed.

    A value is a number; of a matrix, it is a mapping from labels of columns to numbers, one number for all columns, or a list. Of
    eligibility, a list of labels means these servers alone.

    Raises
    ------
    InvalidInstance
        If a label is not there, or a value is not a number.
    """
    values: Any = np.array(present)
    if values.dtype != bool and any(is_exact(each) for value in given.values() for each in _numbers_in(value)):
        values = values.astype(object)
    for label, value in given.items():
        row = _position(what, label, rows, kind)
        if values.ndim == 1:
            values[row] = _number(f'{what} of "{label}"', value, values)
        elif isinstance(value, Mapping):
            for column, part in value.items():
                position = _position(f'{what} of "{label}"', column, columns, of_columns)
                values[row, position] = _number(f'{what} of "{label}", "{column}"', part, values)
        elif values.dtype == bool and _are_labels(value):
            values[row] = False
            values[row, [_position(f'{what} of "{label}"', column, columns, of_columns) for column in value]] = True
        elif np.ndim(value) == 1:
            if len(value) != len(columns):
                raise InvalidInstance(f'{what} of "{label}": {len(value)} values for {len(columns)} {of_columns}s; give them by label')
            values[row] = [_number(f'{what} of "{label}"', each, values) for each in value]
        else:
            values[row] = _number(f'{what} of "{label}"', value, values)
    result: FloatArray | BoolArray = values
    return result


def changed_places(given: Mapping[str, str | None], present: Sequence[str | None], users: Sequence[str]) -> list[str | None]:
    """Return the queues that users are in, some of them changed.

    >>> changed_places({"ines": None}, ["vision", "interns"], ["alice", "ines"])
    ['vision', None]
    """
    return rows_of("queue_of", given, users, "user", present)


def changed_queues(given: Mapping[str, Any], present: Sequence[Queue]) -> list[Queue]:
    """Return queues with some of them changed: by a mapping of arguments of `Queue`, in which amounts are changed by resource.

    An amount of None, or a queue of None, is left out; a queue that is not there yet is added.

    >>> changed_queues({"lab": {"weight": 2, "guarantee": {"gpu": 8}}}, [Queue("lab", guarantee={"gpu": 4, "cpu": 1})])[0].to_dict()
    {'name': 'lab', 'weight': 2.0, 'guarantee': {'gpu': 8.0, 'cpu': 1.0}}
    """
    queues = {queue.name: queue for queue in present}
    for name, change in _changes(given, queues, Queue, '{"weight": 2}'):
        now = queues[name].given
        arguments = {word: getattr(now, word) for word in now.__dataclass_fields__ if word != "name"}
        _check_words("queues", name, change, list(arguments))
        for word, value in change.items():
            if word in ("guarantee", "limit", "lending_limit") and isinstance(value, Mapping):
                value = {resource: amount for resource, amount in {**arguments[word], **value}.items() if amount is not None}
            arguments[word] = value
        queues[name] = Queue(name, **arguments)
    return list(queues.values())


def changed_limits(given: Mapping[str, Any], present: Sequence[Limit]) -> list[Limit]:
    """Return limits with some of them changed: by a mapping of arguments of `Limit`; a limit of None is left out, a new one is added.

    >>> changed_limits({"licences": {"bound": 12}}, [Limit("licences", 10, users=["a"])])
    [Limit('licences', 12, users=['a'])]
    """
    limits = {limit.name: limit for limit in present}
    for name, change in _changes(given, limits, Limit, '{"bound": 2}'):
        _check_words("limits", name, change, [word for word in Limit.__dataclass_fields__ if word != "name"])
        limits[name] = limits[name].replace(**change)
    return list(limits.values())


def _changes(given: Mapping[str, Any], present: dict[str, Any], kind: type, example: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Put whole queues or limits in their places, take those of None out, and yield the changes of the others."""
    word = kind.__name__.lower()
    for name, change in given.items():
        if isinstance(change, kind):
            present[name] = change
            continue
        _position(f"{word}s", name, list(present), word)
        if change is None:
            del present[name]
        elif isinstance(change, Mapping):
            yield name, change
        else:
            advice = f"give a mapping such as {example}, a fairopt.{kind.__name__}, or None"
            raise InvalidInstance(f'{word}s: "{name}" is {written(change)}; {advice}')


def _check_words(what: str, name: str, change: Mapping[str, Any], known: Sequence[str]) -> None:
    for word in change:
        if word not in known:
            raise InvalidInstance(f'{what}: "{name}" has no "{word}"{did_you_mean(word, known) or f"; it has {joined(list(known))}"}')


def _numbers_in(value: Any) -> Iterator[object]:
    """Yield what may be a number in the new value of a row."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif np.ndim(value) == 1:
        yield from value
    else:
        yield value


def _are_labels(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(each, str) for each in value)


def _position(what: str, label: object, labels: Sequence[str], kind: str) -> int:
    try:
        return labels.index(label)
    except ValueError:
        hint = did_you_mean(label, labels) if isinstance(label, str) else ""
        there = f"; the {kind}s are {joined(labels, 8)}" if labels else f"; there are no {kind}s"
        raise InvalidInstance(f'{what}: there is no {kind} "{label}"{hint or there}') from None


def _number(what: str, value: object, values: FloatArray | BoolArray) -> Any:
    if values.dtype == bool:
        if isinstance(value, bool | np.bool_):
            return value
        raise InvalidInstance(f"{what} is {written(value)}; give True or False")
    if isinstance(value, int | float | np.integer | np.floating | Rational | Decimal) and not isinstance(value, bool):
        return value
    raise InvalidInstance(f"{what} is {written(value)}; give a number")
