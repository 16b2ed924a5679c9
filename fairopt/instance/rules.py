"""Rules: linear conditions of any sign on what users and queues hold, such as ``x["vision"] >= 2 * x["course"]``.

    sum over terms of a y  <=, ==, >=  b,        y = x[name]: tasks,  work[name]: work,  amount["gpu", name]: what these tasks take of it

A name is a user, or a queue, which stands for all users below it; where it is both, ``"user:a"`` and ``"queue:a"`` tell which. A second
name selects servers, by a name or by a requirement: ``x["vision", "zone = a"]``. (Where nothing runs faster than elsewhere, work is tasks.)

>>> Rule("x['lab/alice'] >= 2 * x[course]")
Rule("x['lab/alice'] >= 2 * x[course]")
>>> x = Tasks()
>>> (x["vision", "zone = a"] <= 0.5 * x["vision"]).text
"x['vision', 'zone = a'] - 1/2 * x['vision'] <= 0"
>>> Rule("4 <= x[a] <= 8")
Traceback (most recent call last):
fairopt.errors.InvalidInstance: the rule "4 <= x[a] <= 8" is a chain of comparisons; write two rules
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeAlias, get_args

from fairopt.errors import InvalidInstance
from fairopt.instance.fractions import fraction_of
from fairopt.validation import is_number
from fairopt.wording import brief, did_you_mean, joined

if TYPE_CHECKING:
    from fairopt.instance.instance import Instance

__all__ = ["Expression", "Rule", "RuleReader", "Sense", "Tasks", "Term", "rules_of", "tasks"]

Measure: TypeAlias = Literal["x", "work", "amount"]
Sense: TypeAlias = Literal["<=", "==", ">="]

_SENSES: dict[type[ast.cmpop], Sense] = {ast.LtE: "<=", ast.Eq: "==", ast.GtE: ">="}
_LONGEST = 10_000  # characters


@dataclass(frozen=True, slots=True, order=True)
class Term:
    """What a user or a queue holds.

    Attributes
    ----------
    measure : {"x", "work", "amount"}
        Tasks, work, or an amount of a resource.
    name : str
        Of a user or a queue.
    servers : str
        Where: the name of a server or a requirement; "": everywhere.
    resource : str
        Of an amount.
    """

    measure: Measure
    name: str
    servers: str = ""
    resource: str = ""

    def __str__(self) -> str:
        keys = [*([self.resource] if self.measure == "amount" else []), self.name, *([self.servers] if self.servers else [])]
        return f"{self.measure}[{', '.join(map(repr, keys))}]"


class Expression:
    """A sum of terms and a number. Comparing it makes a `Rule`."""

    __slots__ = ("constant", "terms")
    __hash__ = None  # type: ignore[assignment]  # == makes a rule

    def __init__(self, terms: Mapping[Any, Fraction], constant: Fraction = Fraction(0)) -> None:
        self.terms, self.constant = {term: value for term, value in terms.items() if value}, constant

    def __add__(self, other: object) -> Expression:
        more = _expression(other)
        terms = {term: self.terms.get(term, Fraction(0)) + more.terms.get(term, Fraction(0)) for term in {**self.terms, **more.terms}}
        return Expression(terms, self.constant + more.constant)

    __radd__ = __add__

    def __neg__(self) -> Expression:
        return self * -1

    def __sub__(self, other: object) -> Expression:
        return self + -_expression(other)

    def __rsub__(self, other: object) -> Expression:
        return _expression(other) - self

    def __mul__(self, factor: object) -> Expression:
        other = _expression(factor)
        if self.terms and other.terms:
            raise InvalidInstance(f"a rule is linear: {self} times {other} is not; multiply by a number")
        times, of = (self.constant, other) if not self.terms else (other.constant, self)
        return Expression({term: value * times for term, value in of.terms.items()}, of.constant * times)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Expression:
        divisor = _expression(other)
        if divisor.terms:
            raise InvalidInstance(f"a rule is linear: something divided by {divisor} is not; divide by a number")
        if not divisor.constant:
            raise InvalidInstance(f"{self} is divided by 0; divide by another number")
        return self * (1 / divisor.constant)

    def __le__(self, other: object) -> Rule:
        return Rule.between(self, "<=", _expression(other))

    def __ge__(self, other: object) -> Rule:
        return Rule.between(self, ">=", _expression(other))

    def __eq__(self, other: object) -> Rule:  # type: ignore[override]
        return Rule.between(self, "==", _expression(other))

    def __lt__(self, other: object) -> Rule:
        raise InvalidInstance("a rule compares by <=, == or >=; amounts can be divided without end, so that < has no meaning of its own")

    __gt__ = __lt__

    def __str__(self) -> str:
        parts = [(value, f"{'' if abs(value) == 1 else f'{abs(value)} * '}{term}") for term, value in self.terms.items()]
        parts += [(self.constant, str(abs(self.constant)))] if self.constant or not parts else []
        text = "".join(f" {'-' if value < 0 else '+'} {part}" for value, part in parts)
        return text.removeprefix(" + ").replace(" - ", "-", 1) if text.startswith(" - ") else text.removeprefix(" + ")

    __repr__ = __str__


def _expression(value: object) -> Expression:
    if isinstance(value, Expression):
        return value
    if not (is_number(value) or isinstance(value, Fraction | Decimal)):
        raise InvalidInstance(f"a rule compares sums of x[...] and numbers; {brief(repr(value))} is neither")
    of: Any = value
    number = fraction_of(of) if of == of and abs(of) != float("inf") else None
    if not isinstance(number, Fraction):
        raise InvalidInstance(f"a rule compares with {value}; give a finite number")
    return Expression({}, number)


class Tasks:
    """``x[name]``, ``x[name, servers]``: tasks of a user, or of all users below a queue; with another measure their work."""

    def __init__(self, measure: Measure = "x", names: Sequence[str] = (), resources: Sequence[str] = ()) -> None:
        self._measure, self._names, self._resources = measure, names, resources

    def __getitem__(self, key: object) -> Expression:
        term = _term(self._measure, key if isinstance(key, tuple) else (key,))
        for word, known, what in ((term.name, self._names, "user or queue"), (term.resource, self._resources, "resource")):
            if word and known and word.removeprefix("user:").removeprefix("queue:") not in known and word not in known:
                raise InvalidInstance(f'there is no {what} "{brief(word)}"{did_you_mean(word, known)}')
        return Expression({term: Fraction(1)})

    @property
    def work(self) -> Tasks:
        """``work[name]``."""
        return Tasks("work", self._names, self._resources)

    @property
    def amount(self) -> Tasks:
        """``amount[resource, name]``, ``amount[resource, name, servers]``: what these tasks take of a resource."""
        return Tasks("amount", self._names, self._resources)


def tasks(instance: Instance) -> Tasks:
    """Return what makes rules about an instance: ``x[user]``, ``x[queue]``, ``x[user, servers]`` are tasks, and comparisons are rules.

    Its ``work`` and ``amount`` make rules about work and about amounts of resources, ``x.amount["gpu", "vision"] <= 8``.

    Raises
    ------
    InvalidInstance
        A name is not there.

    >>> import fairopt as fo
    >>> lab = fo.Instance([[12]], [[1], [1]], users=["vision", "course"], resources=["gpu"])
    >>> x = fo.tasks(lab)
    >>> fo.solve(lab.replace(rules=[x["vision"] >= 2 * x["course"], x["course"] >= 3]), "efficiency").tasks_per_user
    array([9., 3.])
    """
    names = (*instance.users, *(queue.name for queue in instance.queues))
    return Tasks(names=names, resources=instance.resources)


def _term(measure: Measure, keys: tuple[object, ...]) -> Term:
    usual = '["gpu", "alice"] or ["gpu", "alice", "zone = a"]' if measure == "amount" else '["alice"] or ["alice", "zone = a"]'
    least = 2 if measure == "amount" else 1
    if not least <= len(keys) <= least + 1 or not all(isinstance(key, str) and key.strip() for key in keys):
        raise InvalidInstance(f"{measure}[{', '.join(map(repr, keys))}] names nothing; write {measure}{usual}")
    words = [str(key) for key in keys]
    resource = words.pop(0) if measure == "amount" else ""
    return Term(measure, words[0], words[1] if len(words) > 1 else "", resource)


# Rules ---------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False, slots=True, repr=False)
class Rule:
    """A linear condition of any sign on an allocation.

    Parameters
    ----------
    text : str
        ``x['a'] >= 2 * x['b']``: quoted names (a bare identifier will do), numbers, fractions such as 1/3, ``+ - * /``, one of <= == >=.
        In Python, comparing `fairopt.tasks` makes rules, too.

    Attributes
    ----------
    text : str
        As it was given; messages name the rule by it.
    terms : tuple of (Term, Fraction)
        The left side, everything but the number.
    sense : {"<=", "==", ">="}
    bound : Fraction
        The right side.

    Raises
    ------
    InvalidInstance
        The text is no rule; the message says where in it.
    """

    text: str
    terms: tuple[tuple[Term, Fraction], ...]
    sense: Sense
    bound: Fraction

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InvalidInstance(f"a rule is text or a comparison of x[...], as in fo.tasks; found {brief(repr(text))}")
        left, sense, right = RuleReader(text).read()
        self._set(text.strip(), left - right, sense)

    @classmethod
    def between(cls, left: Expression, sense: Sense, right: Expression) -> Rule:
        """Return the rule that compares two sums."""
        rule, whole = object.__new__(cls), left - right
        rule._set(f"{Expression(whole.terms)} {sense} {-whole.constant}", whole, sense)
        return rule

    def called(self, name: str) -> Rule:
        """Return the rule with a name in place of its text.

        >>> Rule("x['a'] >= 4").called("guaranteed tasks of a")
        Rule("guaranteed tasks of a")
        """
        rule = object.__new__(type(self))
        rule._set(name, Expression(dict(self.terms), -self.bound), self.sense)
        return rule

    def _set(self, text: str, whole: Expression, sense: Sense) -> None:
        if not whole.terms:
            raise InvalidInstance(f'the rule "{brief(text)}" is about nobody; name a user or a queue, as in x[alice] >= 4')
        for name, value in (("text", text), ("terms", tuple(whole.terms.items())), ("sense", sense), ("bound", -whole.constant)):
            object.__setattr__(self, name, value)

    def __bool__(self) -> bool:
        raise InvalidInstance(
            f'the rule "{brief(self.text)}" has no truth of its own: a chain such as 4 <= x["a"] <= 8 would lose a side in Python; '
            "write two rules"
        )

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f'Rule("{self.text}")' if '"' not in self.text else f"Rule({self.text!r})"


def rules_of(rules: Any) -> tuple[Rule, ...]:
    """Return the rules of an argument, whose text is read."""
    if rules is None:
        return ()
    if isinstance(rules, str | Rule | Mapping) or not hasattr(rules, "__iter__"):
        raise InvalidInstance(f'rules are a list, as in rules=["x[a] >= 4"]; found {brief(repr(rules))}')
    return tuple(each if isinstance(each, Rule) else Rule(each) for each in rules)


class RuleReader:
    """The text of a rule, by Python's own grammar of expressions.

    A subclass reads rules of other words: ``words``, what is compared; ``example``, a rule; `term`, what names in brackets stand for.
    """

    words: ClassVar[tuple[str, ...]] = get_args(Measure)
    example: ClassVar[str] = "x['lab/alice'] >= 2 * x[course]"

    def __init__(self, text: str) -> None:
        self.text = text

    def term(self, word: str, keys: tuple[str, ...]) -> Hashable:
        """Return what is compared."""
        measure: Any = word
        return _term(measure, keys)

    def read(self) -> tuple[Expression, Sense, Expression]:
        """Return the left side, the comparison and the right side."""
        if len(self.text) > _LONGEST:
            raise InvalidInstance(f"a rule has {len(self.text):,} characters, and at most {_LONGEST:,} are read; write several rules")
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except SyntaxError as error:
            if "=" in self.text and not any(sign in self.text for sign in ("<=", ">=", "==")):
                self._refuse('has "=" where == belongs', None)
            place = f" at character {error.offset}" if error.offset else " to its end"
            raise InvalidInstance(f"the rule {self._quoted()} cannot be read{place}; write, for instance, {self.example}") from None
        except (ValueError, RecursionError, MemoryError):
            raise InvalidInstance(f"the rule {self._quoted()} cannot be read; write, for instance, {self.example}") from None
        if not isinstance(tree, ast.Compare):
            self._refuse("compares nothing; write <=, == or >= between two sides", None)
        if len(tree.ops) > 1:
            self._refuse("is a chain of comparisons; write two rules", None)
        sense = _SENSES.get(type(tree.ops[0]))
        if sense is None:
            self._refuse("compares by something else than <=, == or >=; write one of these", None)
        try:
            return self._sum(tree.left), sense, self._sum(tree.comparators[0])
        except RecursionError:
            raise InvalidInstance(f"the rule {self._quoted()} has too many parts; write several rules") from None

    def _sum(self, node: ast.expr) -> Expression:
        """Return the expression of a part of the text."""
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            digits = (ast.get_source_segment(self.text.strip(), node) or "").replace("_", "")
            if digits.replace(".", "").isdecimal() and digits.isascii():
                return Expression({}, Fraction(digits))  # as it is written
            try:
                return _expression(node.value)
            except (InvalidInstance, OverflowError):
                self._refuse("has a number that is too large", node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self._sum(node.operand)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp):
            left, right = self._sum(node.left), self._sum(node.right)
            try:
                if isinstance(node.op, ast.Add):
                    return left + right
                if isinstance(node.op, ast.Sub):
                    return left - right
                if isinstance(node.op, ast.Mult):
                    return left * right
                if isinstance(node.op, ast.Div):
                    return left / right
            except InvalidInstance as error:
                if str(error).startswith("the rule "):  # said of a part of it already
                    raise
                self._refuse(f"is wrong: {error}", node)
            self._refuse("has an operator other than + - * /", node)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in self.words:
            keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            try:
                return Expression({self.term(node.value.id, tuple(self._name(key) for key in keys)): Fraction(1)})
            except InvalidInstance as error:
                if str(error).startswith("the rule "):  # said of a part of it already
                    raise
                self._refuse(f"is wrong: {error}", node)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            word = node.value.id
            there = joined([f"{each}[...]" for each in self.words])
            self._refuse(f"has {word}[...]{did_you_mean(word, self.words)}, and there are {there}", node)
        self._refuse(f"has something that is neither a number nor {self.words[0]}[...]", node)

    def _name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.Name):
            return node.id
        written = ast.get_source_segment(self.text.strip(), node) or ""
        self._refuse(f"has a name without quotes; write '{written}' in quotes", node)

    def _refuse(self, what: str, node: ast.expr | None) -> NoReturn:
        if node is None:
            raise InvalidInstance(f"the rule {self._quoted()} {what}")
        stripped = self.text.strip()
        place = len(stripped.encode()[: node.col_offset].decode(errors="ignore")) + 1
        part = ast.get_source_segment(stripped, node) or ""
        raise InvalidInstance(f'the rule {self._quoted()} {what} (at character {place}: "{brief(part)}")')

    def _quoted(self) -> str:
        return f'"{brief(self.text.strip())}"'
