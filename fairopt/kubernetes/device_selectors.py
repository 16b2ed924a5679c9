"""Selectors of devices: the plain forms of CEL that classes and claims use; what else stands in them is named, not guessed.

``device.driver``, ``device.attributes["DOMAIN"].NAME`` and ``device.capacity["DOMAIN"].NAME``, compared with ``==``, ``!=``, ``<``, ``<=``,
``>``, ``>=`` and ``in``, with ``&&``, ``||``, ``!`` and parentheses; ``quantity(TEXT)`` with ``compareTo``; ``lowerAscii``, ``startsWith``,
``endsWith``, ``contains`` and ``has``. As in CEL, a device that lacks what an expression reads does not match.

>>> gpu = Device("gpu-0", "example.com", "n1", {("example.com", "model"): "A100"}, {("example.com", "memory"): Fraction(80 << 30)})
>>> big = 'device.driver == "example.com" && device.capacity["example.com"].memory.compareTo(quantity("40Gi")) >= 0'
>>> Selector.of(big).matches(gpu), Selector.of("device.driver == 'x'").matches(gpu), Selector.of("device.color.hue() && true").unknown
(True, False, ('device.color.hue()',))
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from fairopt.instance.quantities import NANO, nano

__all__ = ["Device", "Selector"]

_TOKEN = re.compile(
    r"""\s*(?:("(?:[^"\\\n])*"|'(?:[^'\\\n])*')|(-?\d{1,18}(?![\w.]))|([A-Za-z_]\w*)|(&&|\|\||[=!<>]=|[-!<>()\[\].,]))""", re.ASCII
)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OF_TEXT: dict[str, Callable[[str, str], bool]] = {"startsWith": str.startswith, "endsWith": str.endswith, "contains": str.__contains__}
_DEEPEST = 50  # parentheses in parentheses


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a node: attributes and capacities by domain and name; a capacity is a Fraction, as an amount is."""

    name: str
    driver: str
    node: str
    attributes: Mapping[tuple[str, str], str | int | bool] = field(default_factory=dict)
    capacity: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)
    shared: bool = False  # several claims may have it


class _NotRead(Exception):
    """The expression has a form that is not read."""


class _Lacking(Exception):
    """The device lacks what the expression reads, or has it of another type."""


_Term: TypeAlias = Callable[[Device], Any]


@dataclass(frozen=True, slots=True)
class Selector:
    """An expression: the terms between its outermost ``&&`` that are read, and the texts of those that are not."""

    terms: tuple[_Term, ...]
    unknown: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Selector:
        """Read an expression."""
        terms: list[_Term] = []
        unknown: list[str] = []
        for part in _conjuncts(text):
            try:
                terms.append(_Parser(part).whole())
            except _NotRead:
                unknown.append(part.strip())
        return cls(tuple(terms), tuple(unknown))

    def matches(self, device: Device) -> bool:
        """Return whether a device meets all terms that are read."""
        try:
            return all(term(device) is True for term in self.terms)
        except _Lacking:
            return False


def _conjuncts(text: str) -> list[str]:
    """Return the parts between ``&&`` outside of parentheses and quotes; the whole text where ``||`` stands beside them."""
    parts, depth, quote, start, n = [], 0, "", 0, 0
    while n < len(text):
        letter = text[n]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif not depth and text.startswith("||", n):
            return [text]
        elif not depth and text.startswith("&&", n):
            parts.append(text[start:n])
            start = n = n + 2
            continue
        n += 1
    return [*parts, text[start:]]


class _Parser:
    """Reads one expression."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []  # kind and text
        position, text = 0, text.strip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise _NotRead
            kind = ("text", "number", "name", "sign")[(match.lastindex or 1) - 1]
            self._tokens.append((kind, match[match.lastindex or 1]))
            position = match.end()
        self._next = 0
        self._depth = 0

    def whole(self) -> _Term:
        """Return the whole expression."""
        found = self._or()
        if self._next < len(self._tokens):
            raise _NotRead
        return found

    def _peek(self) -> str:
        return self._tokens[self._next][1] if self._next < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str:
        text = self._peek()
        if text not in wanted:
            raise _NotRead
        self._next += 1
        return text

    def _of_kind(self, wanted: str) -> str:
        if self._next >= len(self._tokens) or self._tokens[self._next][0] != wanted:
            raise _NotRead
        self._next += 1
        return self._tokens[self._next - 1][1]

    def _or(self) -> _Term:
        terms = [self._and()]
        while self._peek() == "||":
            self._next += 1
            terms.append(self._and())
        return terms[0] if len(terms) == 1 else lambda device: _joined(terms, device, decides=True)

    def _and(self) -> _Term:
        terms = [self._not()]
        while self._peek() == "&&":
            self._next += 1
            terms.append(self._not())
        return terms[0] if len(terms) == 1 else lambda device: _joined(terms, device, decides=False)

    def _not(self) -> _Term:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotRead
        if self._peek() == "!":
            self._next += 1
            inner = self._not()
            self._depth -= 1
            return lambda device: not _truth(inner(device))
        found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> _Term:
        left = self._value()
        sign = self._peek()
        if sign == "in":
            self._next += 1
            among = self._list()
            return lambda device: any(_same_type(left(device), each(device)) and left(device) == each(device) for each in among)
        if sign not in _COMPARISONS:
            return left
        self._next += 1
        right, compare = self._value(), _COMPARISONS[sign]
        return lambda device: compare(*_alike(left(device), right(device)))

    def _list(self) -> list[_Term]:
        self._take("[")
        found = [self._value()]
        while self._take(",", "]") == ",":
            found.append(self._value())
        return found

    def _value(self) -> _Term:
        kind, text = self._tokens[self._next] if self._next < len(self._tokens) else ("", "")
        self._next += 1
        if kind == "text":
            return self._methods(lambda device: text[1:-1])
        if kind == "number":
            return lambda device: int(text)
        if text in ("true", "false"):
            return lambda device: text == "true"
        if text == "(":
            inner = self._or()
            self._take(")")
            return inner
        if text == "quantity":
            amount = self._quantity()
            return lambda device: amount
        if text == "has":
            self._take("(")
            given = self._value()
            self._take(")")
            return lambda device: _has(given, device)
        if text == "device":
            return self._methods(self._of_device())
        raise _NotRead

    def _of_device(self) -> _Term:
        self._take(".")
        kind = self._take("driver", "attributes", "capacity")
        if kind == "driver":
            return lambda device: device.driver
        self._take("[")
        domain = self._of_kind("text")[1:-1]
        self._take("]")
        if self._take(".", "[") == ".":
            name = self._of_kind("name")
        else:
            name = self._of_kind("text")[1:-1]
            self._take("]")
        return lambda device: _held(device.attributes if kind == "attributes" else device.capacity, domain, name)

    def _quantity(self) -> Fraction:
        self._take("(")
        text = self._of_kind("text")[1:-1]
        self._take(")")
        try:
            return Fraction(nano(text), NANO)
        except ValueError:
            raise _NotRead from None

    def _methods(self, value: _Term) -> _Term:
        while self._peek() == ".":
            self._next += 1
            name = self._of_kind("name")
            value = self._method(name, value)
        return value

    def _method(self, name: str, value: _Term) -> _Term:
        if name in ("compareTo", "isGreaterThan", "isLessThan"):
            self._take("(")
            self._take("quantity")
            amount = self._quantity()
            self._take(")")
            if name == "compareTo":
                return lambda device: (_amount(value(device)) > amount) - (_amount(value(device)) < amount)
            compare = operator.gt if name == "isGreaterThan" else operator.lt
            return lambda device: compare(_amount(value(device)), amount)
        if name == "lowerAscii":
            self._take("(")
            self._take(")")
            return lambda device: _text(value(device)).lower()
        if name in _OF_TEXT:
            self._take("(")
            part = self._of_kind("text")[1:-1]
            self._take(")")
            return lambda device: _OF_TEXT[name](_text(value(device)), part)
        raise _NotRead


def _joined(terms: Sequence[_Term], device: Device, *, decides: bool) -> bool:
    """Return what terms between ``||`` (where True decides) or ``&&`` (False) say; what one lacks is no matter where another decides."""
    lacking = False
    for term in terms:
        try:
            if _truth(term(device)) is decides:
                return decides
        except _Lacking:
            lacking = True
    if lacking:
        raise _Lacking
    return not decides


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Lacking
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Lacking
    return value


def _amount(value: Any) -> Fraction:
    if not isinstance(value, Fraction):
        raise _Lacking
    return value


def _same_type(one: Any, other: Any) -> bool:
    return type(one) is type(other)


def _alike(one: Any, other: Any) -> tuple[Any, Any]:
    if not _same_type(one, other):
        raise _Lacking
    return one, other


def _held(amounts: Mapping[tuple[str, str], Any], domain: str, name: str) -> Any:
    if (domain, name) not in amounts:
        raise _Lacking
    return amounts[domain, name]


def _has(given: _Term, device: Device) -> bool:
    try:
        given(device)
    except _Lacking:
        return False
    return True
