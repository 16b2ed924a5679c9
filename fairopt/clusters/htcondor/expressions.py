"""Expressions of ClassAds, as far as requests and requirements of jobs use them.

Literals, attributes (``MY.``, ``TARGET.``, or of the own ad, then of the other), arithmetic, comparison (``==``, ``=?=``, ``=!=``), ``&&``,
``||``, ``!``, ``?:``, and some functions, ``countMatches`` among them, by which jobs choose GPUs. Names and texts are compared without
case. What is not known is *undefined*, and stays so through most operations; ``&&`` and ``||`` need not know it if the other side decides.
JSON has an expression as text: ``/Expr(...)/``.

>>> slot, text = {"arch": "X86_64", "memory": 4096}, '/Expr(TARGET.Arch == "x86_64" && TARGET.Memory >= RequestMemory)/'
>>> evaluated(text, {"requestmemory": 2048}, slot)
True
>>> evaluated("/Expr(ifThenElse(MemoryUsage =!= undefined, MemoryUsage, (ImageSize + 1023) / 1024))/", {"imagesize": 5000}, {})
5
>>> evaluated("/Expr(TARGET.HasGPU && Cpus > 2)/", {"cpus": 1}, {}), evaluated("/Expr(TARGET.HasGPU)/", {}, {}) is UNDEFINED
(False, True)
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

__all__ = ["UNDEFINED", "Unreadable", "evaluated", "is_expression"]

Ad: TypeAlias = Mapping[str, Any]
"""The attributes of an ad, their names in small letters."""


class Unreadable(ValueError):
    """An expression that is not understood: its grammar, or a function that is not known."""


class _Undefined:
    """The value of what is not known."""

    def __repr__(self) -> str:
        return "UNDEFINED"


UNDEFINED = _Undefined()
_Node: TypeAlias = Callable[["_Scope"], Any]
_EXPRESSION = re.compile(r"/Expr\((.*)\)/", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_]\w*)?)
    |(?P<mark>=\?=|=!=|==|!=|<=|>=|&&|\|\||[-+*/%<>!?:(),{}]))""",
    re.VERBOSE,
)
_MOST = 20_000  # characters of an expression
_DEEPEST = 60  # parentheses, and attributes that are expressions themselves
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LEVELS = (("||",), ("&&",), ("==", "!=", "=?=", "=!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))


class _Scope:
    """The two ads that an expression is about."""

    def __init__(self, my: Ad, target: Ad, depth: int = 0) -> None:
        self.my, self.target, self.depth = my, target, depth

    def raw(self, name: str) -> Any:
        """Return what an attribute is written as, an expression for one."""
        side, _, rest = name.lower().rpartition(".")
        places = [ad for ad, which in ((self.my, "my"), (self.target, "target")) if side in ("", which)]
        return next((ad[rest] for ad in places if ad.get(rest) is not None), UNDEFINED)

    def of(self, name: str) -> Any:
        """Return the value of an attribute."""
        side, _, rest = name.lower().rpartition(".")
        for own, other, which in ((self.my, self.target, "my"), (self.target, self.my, "target")):
            if side in ("", which) and own.get(rest) is not None:
                value = own[rest]
                if not is_expression(value):
                    return value
                if self.depth > _DEEPEST:
                    raise Unreadable("attributes refer to each other in a circle")
                return _parsed(value)(_Scope(own, other, self.depth + 1))
        if side not in ("", "my", "target"):
            raise Unreadable(f'"{name}" is not an attribute')
        return UNDEFINED


def is_expression(value: object) -> bool:
    """Return whether a value of JSON is an expression."""
    return isinstance(value, str) and value.startswith("/Expr(")


def evaluated(value: object, my: Ad, target: Ad) -> Any:
    """Return the value of an expression, or of a literal; `UNDEFINED` if an attribute that it needs is missing.

    Raises
    ------
    Unreadable
        It has something that is not understood.
    """
    if not is_expression(value):
        return value
    try:
        return _parsed(str(value))(_Scope(my, target))
    except Unreadable:
        raise
    except (ArithmeticError, ValueError):
        raise Unreadable("a number in it is too large") from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except TypeError:
        raise Unreadable("an operator or a function has values that it does not take") from None


@lru_cache(maxsize=4096)
def _parsed(text: str) -> _Node:
    match = _EXPRESSION.fullmatch(text)
    if match is None or len(text) > _MOST:
        raise Unreadable("it is no expression, or too long")
    return _Parser(match[1]).whole()


class _Parser:
    """A parser by recursive descent."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise Unreadable(f'"{text[position : position + 20].strip()}" is not understood')
            self._tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            position = match.end()
        self._at = self._depth = 0

    def whole(self) -> _Node:
        """Return the whole expression."""
        found = self._choice()
        if self._at < len(self._tokens):
            raise Unreadable(f'"{self._tokens[self._at][1]}" is not understood there')
        return found

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, mark: str) -> None:
        if self._peek() != mark:
            raise Unreadable(f'"{mark}" is missing')
        self._at += 1

    def _choice(self) -> _Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Unreadable("it is nested too deeply")
        test = self._binary(0)
        if self._peek() == "?":
            self._at += 1
            yes = self._choice()
            self._take(":")
            no, condition = self._choice(), test
            test = lambda scope: _if(condition(scope), lambda: yes(scope), lambda: no(scope))  # noqa: E731
        self._depth -= 1
        return test

    def _binary(self, level: int) -> _Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self._peek() in _LEVELS[level] and self._tokens[self._at][0] == "mark":
            sign = self._peek()
            self._at += 1
            left = _joined(sign, left, self._binary(level + 1))
        return left

    def _unary(self) -> _Node:
        sign = self._peek()
        if sign in ("!", "-", "+") and self._tokens[self._at][0] == "mark":
            self._at += 1
            inner = self._unary()
            return {"!": lambda scope: _not(inner(scope)), "-": lambda scope: _arithmetic("-", 0, inner(scope)), "+": inner}[sign]
        return self._atom()

    def _atom(self) -> _Node:
        if self._at >= len(self._tokens):
            raise Unreadable("it ends too early")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            number = float(text) if set(text) & set(".eE") else int(text)
            return lambda scope: number
        if kind == "text":
            plain = re.sub(r"\\(.)", r"\1", text[1:-1])
            return lambda scope: plain
        if kind == "name":
            lower = text.lower()
            if self._peek() == "(":
                return self._call(lower)
            if lower in ("true", "false", "undefined", "error"):
                literal = {"true": True, "false": False}.get(lower, UNDEFINED)
                return lambda scope: literal
            return lambda scope: scope.of(text)
        if text == "(":
            inner = self._choice()
            self._take(")")
            return inner
        raise Unreadable(f'"{text}" is not understood there')

    def _call(self, name: str) -> _Node:
        self._take("(")
        first = self._peek() if self._at < len(self._tokens) and self._tokens[self._at][0] == "name" else ""
        given: list[_Node] = []
        while self._peek() != ")":
            given.append(self._choice())
            if self._peek() != ")":
                self._take(",")
        self._take(")")
        if name == "ifthenelse" and len(given) == 3:
            test, yes, no = given
            return lambda scope: _if(test(scope), lambda: yes(scope), lambda: no(scope))
        if name == "countmatches" and len(given) == 2 and first:
            return lambda scope: _matches(scope, first, given[1](scope))
        if name not in _FUNCTIONS:
            raise Unreadable(f"the function {name} is not known")
        return lambda scope: _FUNCTIONS[name](*(each(scope) for each in given))


def _matches(scope: _Scope, name: str, ads: Any) -> Any:
    """Return in how many of a list of ads, such as those of the GPUs of a slot, the expression of an attribute is true.

    >>> job, slot = {"requiregpus": "/Expr(Capability >= 8)/"}, {"availablegpus": [{"capability": 8.6}, {"capability": 7.0}]}
    >>> evaluated("/Expr(countMatches(MY.RequireGPUs, TARGET.AvailableGPUs) >= 1)/", job, slot)
    True
    """
    wish = scope.raw(name)
    if wish is UNDEFINED or not isinstance(ads, list):
        return UNDEFINED
    found = [evaluated(wish, ad, scope.my) for ad in ads if isinstance(ad, dict)]
    return sum(value is not UNDEFINED and _truth(value) for value in found)


def _if(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    return UNDEFINED if test is UNDEFINED else yes() if _truth(test) else no()


def _truth(value: Any) -> bool:
    if isinstance(value, bool | int | float):
        return bool(value)
    raise Unreadable(f"{value!r} is neither true nor false")


def _not(value: Any) -> Any:
    return UNDEFINED if value is UNDEFINED else not _truth(value)


def _joined(sign: str, left: _Node, right: _Node) -> _Node:
    if sign in ("&&", "||"):
        decides = sign == "||"

        def logical(scope: _Scope) -> Any:
            first = left(scope)
            if first is not UNDEFINED and _truth(first) is decides:
                return decides
            second = right(scope)
            if second is not UNDEFINED and _truth(second) is decides:
                return decides
            return UNDEFINED if first is UNDEFINED or second is UNDEFINED else not decides

        return logical
    if sign in ("=?=", "=!="):
        return lambda scope: (_is(left(scope), right(scope))) is (sign == "=?=")
    if sign in _COMPARE:
        return lambda scope: _compared(sign, left(scope), right(scope))
    return lambda scope: _arithmetic(sign, left(scope), right(scope))


def _is(one: Any, other: Any) -> bool:
    """Return whether two values are of one kind and the same; texts with their case."""
    return type(one) is type(other) and bool(one == other)


def _compared(sign: str, one: Any, other: Any) -> Any:
    if one is UNDEFINED or other is UNDEFINED:
        return UNDEFINED
    if isinstance(one, str) and isinstance(other, str):
        return _COMPARE[sign](one.lower(), other.lower())
    if isinstance(one, str) or isinstance(other, str):
        raise Unreadable(f"{one!r} and {other!r} cannot be compared")
    return _COMPARE[sign](one, other)


def _arithmetic(sign: str, one: Any, other: Any) -> Any:
    if one is UNDEFINED or other is UNDEFINED:
        return UNDEFINED
    if not (isinstance(one, int | float) and isinstance(other, int | float)):
        raise Unreadable(f"{one!r} {sign} {other!r} is no arithmetic")
    if sign in ("/", "%") and not other:
        return UNDEFINED
    whole = isinstance(one, int) and isinstance(other, int)
    if sign == "/":
        return int(one / other) if whole else one / other
    if sign == "%":
        return math.fmod(one, other) if not whole else int(math.fmod(one, other))
    return {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign](one, other)


def _numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        if any(value is UNDEFINED for value in values):
            return UNDEFINED
        if not values or not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
            raise Unreadable("a function of numbers has something else")
        return function(*values)

    return call


def _texts(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        if any(value is UNDEFINED for value in values):
            return UNDEFINED
        if len(values) < 2 or not all(isinstance(value, str) for value in values):
            raise Unreadable("a function of texts has something else")
        return function(*values)

    return call


def _members(text: str, marks: str = " ,") -> list[str]:
    return [word for word in re.split(f"[{re.escape(marks)}]+", text) if word] if marks else [text]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "isundefined": lambda value: value is UNDEFINED,
    "min": _numbers(lambda *values: min(values)),
    "max": _numbers(lambda *values: max(values)),
    "int": _numbers(lambda value: int(value)),
    "real": _numbers(lambda value: float(value)),
    "floor": _numbers(lambda value: math.floor(value)),
    "ceiling": _numbers(lambda value: math.ceil(value)),
    "round": _numbers(lambda value: math.floor(value + 0.5)),
    "quantize": _numbers(lambda value, step: math.ceil(value / step) * step if step else value),
    "stringlistmember": _texts(lambda word, words, *marks: word in _members(words, *marks)),
    "stringlistimember": _texts(lambda word, words, *marks: word.lower() in _members(words.lower(), *marks)),
}
